/*
 * Reads a vocabulary from tokenizer.json.  Hugging Face's `tokenizers` builds a pipeline from this
 * file.  Three pipelines are supported here.  Every part must have one of the shapes below;
 * otherwise the file is refused with the part's name.
 *
 *                   byte-level               bars                       words
 *      normalizer   any steps                steps, then Prepend and    any steps
 *                                            Replace, of bars
 *      pre          cuts, ByteLevel, cuts    Metaspace, also behind     cuts
 *                                            WhitespaceSplit
 *      model        BPE                      BPE, Unigram               BPE, WordPiece, WordLevel
 *      decoder      ByteLevel, or none       Replace, ByteFallback,     WordPiece, BPEDecoder, or
 *                                            Fuse, Strip; Metaspace     none
 *      post         a token in front, and some behind, in all
 *
 * Without a decoder, `tokenizers` writes a blank between tokens.  Here the pieces are joined as
 * they are, so that they are the text again if no blank was dropped.
 *
 * `dropout` makes an encoding random while a model is trained, and has no effect here.  Truncation
 * and padding are settings of the program that made the file.  They do not affect the ids.
 */
#include "daemon/files/vocabulary-json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/vocabulary-json-parts.h"
#include "daemon/files/vocabulary.h"

#define NODES_MAX (4u * VOCABULARY_ENTRIES_MAX)
#define SPARE_IDS (1u << 18) /* without a token; bounds the memory that a small file takes */

/* ---- words ---- */

int json_words_measure(const struct json_document *json, uint32_t object,
                       struct json_words *ret_words, char *why, size_t why_bytes)
{
        *ret_words = (struct json_words){ 0 };
        if (json_kind(json, object) != JSON_OBJECT)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "the vocabulary is not an object of names and ids"));
        for (uint32_t n = json_first(json, object); n != JSON_NONE; n = json_next(json, n)) {
                size_t bytes;
                const char *name = json_key(json, n, &bytes);
                uint64_t id;

                if (!json_whole(json, n, &id) || id >= VOCABULARY_ENTRIES_MAX)
                        return error_raise(
                                errtext_set(why, why_bytes, -EINVAL,
                                            "the id of token '%s' is not a number below %u",
                                            shown(name).text, VOCABULARY_ENTRIES_MAX));
                if (id >= ret_words->ids)
                        ret_words->ids = id + 1;
                ret_words->bytes += bytes;
                ret_words->count++;
        }
        return 0;
}

int json_words_fit(const struct json_words *words, char *why, size_t why_bytes)
{
        if (words->ids > 2 * words->count + SPARE_IDS)
                return error_raise(errtext_set(why, why_bytes, -EINVAL,
                                               "its largest id is %" PRIu64 ", but it has %" PRIu64
                                               " tokens",
                                               words->ids - 1, words->count));
        return 0;
}

static bool is_added(const struct vocabulary_builder *m, uint32_t id)
{
        return m->entries[id].kind == ENTRY_CONTROL || m->entries[id].kind == ENTRY_USER;
}

int json_words_read(const struct json_document *json, uint32_t object, struct vocabulary_builder *m,
                    enum spelling spelling, bool fallback)
{
        int r = 0;

        for (uint32_t n = json_first(json, object); !r && n != JSON_NONE; n = json_next(json, n)) {
                size_t bytes;
                const char *name = json_key(json, n, &bytes);
                uint64_t id = 0;
                uint32_t found;
                bool hex = fallback && bytes == 6 && !memcmp(name, "<0x", 3);

                json_whole(json, n, &id);
                found = vocabulary_builder_find(m, name, bytes);
                if (vocabulary_builder_has(m, id) && found == id)
                        continue; /* an added token, listed again */
                if (found != VOCABULARY_NONE && !is_added(m, found)) {
                        /* Of a name that occurs twice, the last id is meant. */
                        r = vocabulary_builder_move_entry(m, found, id, name, bytes);
                        continue;
                }
                r = vocabulary_builder_add_entry(m, id, name, bytes,
                                                 hex ? ENTRY_BYTE : ENTRY_NORMAL,
                                                 hex ? SPELT_HEX : spelling, 0);
        }
        return error_pass(r);
}

/* ---- shapes ---- */

bool json_tokenizer_says(const struct json_tokenizer *rd, uint32_t node, const char *key,
                         const char *text)
{
        size_t bytes;
        const char *found = json_string(rd->json, json_tokenizer_member(rd, node, key), &bytes);

        return found && bytes == strlen(text) && !memcmp(found, text, bytes);
}

bool json_tokenizer_is(const struct json_tokenizer *rd, uint32_t node, const char *type)
{
        return json_tokenizer_says(rd, node, "type", type);
}

bool json_tokenizer_is_null(const struct json_tokenizer *rd, uint32_t node)
{
        enum json_kind kind = json_kind(rd->json, node);

        return kind == JSON_ABSENT || kind == JSON_NULL;
}

bool json_tokenizer_is_on(const struct json_tokenizer *rd, uint32_t node, const char *key,
                          bool absent)
{
        bool on = absent;

        json_bool(rd->json, json_tokenizer_member(rd, node, key), &on);
        return on;
}

struct json_steps json_tokenizer_steps(const struct json_tokenizer *rd, uint32_t node,
                                       const char *list)
{
        if (json_tokenizer_is(rd, node, "Sequence"))
                return (struct json_steps){
                        json_first(rd->json, json_tokenizer_member(rd, node, list)), false
                };
        return (struct json_steps){ json_tokenizer_is_null(rd, node) ? JSON_NONE : node, true };
}

uint32_t json_tokenizer_step(const struct json_tokenizer *rd, struct json_steps *steps)
{
        uint32_t at = steps->at;

        steps->at = steps->alone || at == JSON_NONE ? JSON_NONE : json_next(rd->json, at);
        return at;
}

bool json_tokenizer_has(const struct json_tokenizer *rd, const char *part, const char *list,
                        const char *type)
{
        struct json_steps steps =
                json_tokenizer_steps(rd, json_tokenizer_member(rd, 0, part), list);
        uint32_t step;

        while ((step = json_tokenizer_step(rd, &steps)) != JSON_NONE)
                if (json_tokenizer_is(rd, step, type))
                        return true;
        return false;
}

int json_tokenizer_refuse(struct json_tokenizer *rd, const char *part, uint32_t node)
{
        const char *type = json_string(rd->json, json_tokenizer_member(rd, node, "type"), NULL);

        return vocabulary_builder_refuse(&rd->m,
                                         "its %s has '%s', which is not supported in this place",
                                         part, shown(type ? type : "no type").text);
}

bool json_tokenizer_replaces(const struct json_tokenizer *rd, uint32_t node, const char *from,
                             const char *to)
{
        return json_tokenizer_is(rd, node, "Replace") &&
               json_tokenizer_says(rd, json_tokenizer_member(rd, node, "pattern"), "String",
                                   from) &&
               json_tokenizer_says(rd, node, "content", to);
}

char *json_tokenizer_quote(const char *text)
{
        char *expression = malloc(2 * strlen(text) + 1), *to = expression;

        for (; expression && *text; text++) {
                if (strchr("\\[](){}.*+?^$|-&#/", *text))
                        *to++ = '\\';
                *to++ = *text;
        }
        if (expression)
                *to = '\0';
        return expression;
}

/* ---- the model ---- */

static int read_kind(struct json_tokenizer *rd)
{
        static const char *const types[] = { [JSON_MODEL_BPE] = "BPE",
                                             [JSON_MODEL_WORDPIECE] = "WordPiece",
                                             [JSON_MODEL_WORDS] = "WordLevel",
                                             [JSON_MODEL_UNIGRAM] = "Unigram" };

        for (unsigned kind = 0; kind < sizeof(types) / sizeof(*types); kind++)
                if (json_tokenizer_is(rd, rd->model, types[kind])) {
                        rd->kind = (enum json_model)kind;
                        return 0;
                }
        if (!json_tokenizer_is_null(rd, json_tokenizer_member(rd, rd->model, "type")))
                return json_tokenizer_refuse(rd, "model", rd->model);
        /* Old files do not name the type: then it is told by what it has a list of. */
        if (json_kind(rd->json, json_tokenizer_member(rd, rd->model, "merges")) == JSON_ARRAY)
                return 0;
        if (json_kind(rd->json, json_tokenizer_member(rd, rd->model, "vocab")) != JSON_ARRAY)
                return json_tokenizer_refuse(rd, "model", rd->model);
        rd->kind = JSON_MODEL_UNIGRAM;
        return 0;
}

/* The mark at the border of words. */
static int read_border(struct json_tokenizer *rd)
{
        size_t prefix_bytes = 0, suffix_bytes = 0;
        const char *prefix = json_string(
                rd->json, json_tokenizer_member(rd, rd->model, "continuing_subword_prefix"),
                &prefix_bytes);
        const char *suffix =
                json_string(rd->json, json_tokenizer_member(rd, rd->model, "end_of_word_suffix"),
                            &suffix_bytes);

        if (rd->kind == JSON_MODEL_UNIGRAM)
                return 0;
        if (rd->kind != JSON_MODEL_BPE)
                suffix_bytes = 0;
        if (rd->kind == JSON_MODEL_WORDS)
                prefix_bytes = 0;
        if (rd->kind == JSON_MODEL_WORDPIECE && !prefix) {
                prefix = "##";
                prefix_bytes = 2;
        }
        if (rd->kind == JSON_MODEL_WORDPIECE && !prefix_bytes)
                return vocabulary_builder_refuse(
                        &rd->m, "its model has an empty 'continuing_subword_prefix'");
        if (prefix_bytes && suffix_bytes)
                return vocabulary_builder_refuse(&rd->m,
                                                 "its model has 'continuing_subword_prefix' and "
                                                 "'end_of_word_suffix', which exclude each other");
        rd->m.mark = suffix_bytes ? suffix : prefix_bytes ? prefix : "";
        rd->m.mark_bytes = suffix_bytes ? suffix_bytes : prefix_bytes;
        if (rd->kind != JSON_MODEL_BPE || prefix_bytes)
                rd->m.v.border = BORDER_FRONT;
        else if (suffix_bytes)
                rd->m.v.border = BORDER_BEHIND;
        return 0;
}

/* Whether each byte that UTF-8 has is a token, in letters. */
static bool has_letters(const struct json_tokenizer *rd)
{
        bool has[256] = { false };

        for (uint32_t id = 0; id < rd->m.entry_capacity; id++)
                if (rd->m.entries[id].count == 1)
                        has[(uint8_t)*rd->m.entries[id].bytes] = true;
        for (unsigned byte = 0; byte < 0xF5; byte++)
                if (!has[byte] && byte != 0xC0 && byte != 0xC1)
                        return false;
        return true;
}

/* A letter that is no token would become tokens of its own bytes in UTF-8. */
static int check_fallback(struct json_tokenizer *rd)
{
        if (rd->fallback && rd->m.v.border)
                return vocabulary_builder_refuse(
                        &rd->m, "its model has 'byte_fallback', and marks the border of words");
        if (rd->fallback && rd->letters && !has_letters(rd))
                return vocabulary_builder_refuse(
                        &rd->m, "its model has 'byte_fallback', and not every byte as a letter");
        return 0;
}

static int read_word_max(struct json_tokenizer *rd)
{
        uint32_t node = json_tokenizer_member(rd, rd->model, "max_input_chars_per_word");
        uint64_t most = 100;

        if (rd->kind != JSON_MODEL_WORDPIECE)
                return 0;
        if (node != JSON_NONE && (!json_whole(rd->json, node, &most) || !most))
                return vocabulary_builder_refuse(
                        &rd->m, "its model's 'max_input_chars_per_word' is not a number above 0");
        rd->m.v.word_max = most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
        return 0;
}

/* An 'unk_token' that is no token: text without tokens is dropped. */
static int read_model(struct json_tokenizer *rd)
{
        uint32_t unknown = json_tokenizer_member(rd, rd->model, "unk_token");
        const char *name;
        size_t bytes;
        int r;

        if ((r = check_fallback(rd)) || (r = read_word_max(rd)))
                return error_pass(r);
        rd->m.v.whole_wins = json_tokenizer_is_on(rd, rd->model, "ignore_merges", false);
        rd->m.v.unknown_run = json_tokenizer_is_on(rd, rd->model, "fuse_unk", false);
        name = json_string(rd->json, unknown, &bytes);
        rd->m.v.unknown = name ? vocabulary_builder_find(&rd->m, name, bytes) : VOCABULARY_NONE;
        if (!name && !json_tokenizer_is_null(rd, unknown))
                return vocabulary_builder_refuse(&rd->m, "its model's 'unk_token' is not a string");
        return 0;
}

static int read_added_one(struct json_tokenizer *rd, uint32_t node)
{
        size_t bytes;
        const char *name =
                json_string(rd->json, json_tokenizer_member(rd, node, "content"), &bytes);
        enum entry_kind kind =
                json_tokenizer_is_on(rd, node, "special", false) ? ENTRY_CONTROL : ENTRY_USER;
        bool normalised = json_tokenizer_is_on(rd, node, "normalized", kind == ENTRY_USER);
        uint64_t id = UINT64_MAX;
        int r;

        json_whole(rd->json, json_tokenizer_member(rd, node, "id"), &id);
        if (!name || id == UINT64_MAX)
                return vocabulary_builder_refuse(&rd->m,
                                                 "an added token without 'content' or 'id'");
        r = vocabulary_builder_add_entry(&rd->m, id, name, bytes, kind, SPELT_PLAIN, 0);
        if (r)
                return error_pass(r);
        vocabulary_builder_set_matching(
                &rd->m, (uint32_t)id,
                (json_tokenizer_is_on(rd, node, "lstrip", false) ? ENTRY_STRIPS_LEFT : 0) |
                        (json_tokenizer_is_on(rd, node, "rstrip", false) ? ENTRY_STRIPS_RIGHT : 0) |
                        (json_tokenizer_is_on(rd, node, "single_word", false) ? ENTRY_ALONE : 0) |
                        (normalised ? ENTRY_NORMALISED : 0));
        return 0;
}

static int read_added(struct json_tokenizer *rd)
{
        int r = 0;

        for (uint32_t n = json_first(rd->json, rd->added); !r && n != JSON_NONE;
             n = json_next(rd->json, n))
                r = read_added_one(rd, n);
        return error_pass(r);
}

static int read_merges(struct json_tokenizer *rd)
{
        int r = 0;

        for (uint32_t n = json_first(rd->json, json_tokenizer_member(rd, rd->model, "merges"));
             !r && n != JSON_NONE; n = json_next(rd->json, n)) {
                uint32_t first = json_first(rd->json, n);
                size_t left_bytes, right_bytes;
                const char *left = json_string(rd->json, n, &left_bytes), *right;

                if (left) {
                        r = vocabulary_builder_add_merge_line(&rd->m, left, left_bytes);
                        continue;
                }
                left = json_string(rd->json, first, &left_bytes);
                right = json_count(rd->json, n) == 2
                                ? json_string(rd->json, json_next(rd->json, first), &right_bytes)
                                : NULL;
                if (!left || !right)
                        return vocabulary_builder_refuse(&rd->m,
                                                         "merge %u is neither a string nor a pair",
                                                         rd->m.v.merge_count);
                r = vocabulary_builder_add_merge(&rd->m, left, left_bytes, right, right_bytes);
        }
        return error_pass(r);
}

/* Allocates space for the model's words and the added tokens. */
static int begin(struct json_tokenizer *rd, char *why, size_t why_bytes)
{
        struct json_words words = { 0 };
        uint64_t id;
        size_t bytes;
        int r;

        if (rd->kind == JSON_MODEL_UNIGRAM) {
                r = json_tokenizer_measure_scored(rd, &words.count, &words.bytes);
                words.ids = words.count;
        } else {
                r = json_words_measure(rd->json, json_tokenizer_member(rd, rd->model, "vocab"),
                                       &words, why, why_bytes);
        }
        if (r)
                return error_pass(r);
        for (uint32_t n = json_first(rd->json, rd->added); n != JSON_NONE;
             n = json_next(rd->json, n)) {
                if (json_whole(rd->json, json_tokenizer_member(rd, n, "id"), &id) &&
                    id < VOCABULARY_ENTRIES_MAX && id >= words.ids)
                        words.ids = id + 1;
                if (json_string(rd->json, json_tokenizer_member(rd, n, "content"), &bytes))
                        words.bytes += bytes;
                words.count++;
        }
        r = json_words_fit(&words, why, why_bytes);
        if (r)
                return error_pass(r);
        return error_pass(vocabulary_builder_begin(
                &rd->m, words.ids,
                json_count(rd->json, json_tokenizer_member(rd, rd->model, "merges")),
                words.bytes + words.count, why, why_bytes));
}

/* Which of the pipelines it is decides what the model may be. */
static int check_style(struct json_tokenizer *rd)
{
        if (rd->kind == JSON_MODEL_UNIGRAM) {
                rd->plain = false; /* its pieces have bars also without a decoder */
                return rd->letters ? vocabulary_builder_refuse(
                                             &rd->m, "its model is 'Unigram', and its decoder "
                                                     "'ByteLevel'")
                                   : 0;
        }
        if (rd->kind != JSON_MODEL_BPE && !rd->plain)
                return vocabulary_builder_refuse(
                        &rd->m,
                        "its model has words, but its decoder or pre_tokenizer splits them");
        if (rd->m.v.border && !rd->plain && !(rd->letters && rd->m.v.border == BORDER_BEHIND))
                return vocabulary_builder_refuse(
                        &rd->m, "its model has 'continuing_subword_prefix' or 'end_of_word_suffix' "
                                "for pieces of this kind");
        return 0;
}

static enum spelling spelling_of(const struct json_tokenizer *rd)
{
        if (rd->letters)
                return SPELT_LETTERS;
        if (!rd->plain)
                return SPELT_BARS;
        return rd->m.v.border ? SPELT_WORDS : SPELT_PLAIN;
}

/* The pieces of the model and what it does with them. */
static int read_pieces(struct json_tokenizer *rd)
{
        int r;

        rd->fallback = (rd->kind == JSON_MODEL_BPE || rd->kind == JSON_MODEL_UNIGRAM) &&
                       json_tokenizer_is_on(rd, rd->model, "byte_fallback", false);
        if (rd->kind == JSON_MODEL_UNIGRAM)
                return error_pass(json_tokenizer_read_scored(rd));
        r = json_words_read(rd->json, json_tokenizer_member(rd, rd->model, "vocab"), &rd->m,
                            spelling_of(rd), rd->fallback && !rd->letters);
        if (!r)
                r = read_model(rd);
        return r || rd->kind != JSON_MODEL_BPE ? error_pass(r) : error_pass(read_merges(rd));
}

static enum vocabulary_kind kind_of(const struct json_tokenizer *rd)
{
        if (rd->kind == JSON_MODEL_UNIGRAM)
                return VOCABULARY_UNIGRAM;
        if (rd->letters)
                return VOCABULARY_BYTE_LEVEL;
        return rd->kind == JSON_MODEL_BPE ? VOCABULARY_CHARACTERS : VOCABULARY_WORDPIECE;
}

static int read_all(struct json_tokenizer *rd, char *why, size_t why_bytes)
{
        int r;

        rd->model = json_tokenizer_member(rd, 0, "model");
        rd->added = json_tokenizer_member(rd, 0, "added_tokens");
        r = read_kind(rd);
        if (r)
                return error_pass(r);
        if (rd->splitter && !splitter_named(rd->splitter))
                return vocabulary_builder_refuse(&rd->m, "the splitter '%s' is not supported",
                                                 shown(rd->splitter).text);
        if ((r = begin(rd, why, why_bytes)) || (r = read_border(rd)) ||
            (r = json_tokenizer_decoder(rd)) || (r = check_style(rd)) ||
            (r = json_tokenizer_normaliser(rd)) || (r = json_tokenizer_cuts(rd)) ||
            (r = read_added(rd)))
                return error_pass(r);
        if ((r = read_pieces(rd)) || (r = json_tokenizer_ends(rd)))
                return error_pass(r);
        rd->m.v.kind = kind_of(rd);
        rd->m.v.keeps_bars = rd->plain;
        return 0;
}

int vocabulary_from_json(const char *text, size_t bytes, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes)
{
        struct json_tokenizer rd = { .m = { .why = why, .why_bytes = why_bytes },
                                     .splitter = splitter };
        struct json_document *json = NULL;
        int r = error_raise(
                json_parse_repeating(text, bytes, "vocab", NODES_MAX, &json, why, why_bytes));

        rd.json = json;
        if (!r)
                r = read_all(&rd, why, why_bytes);
        if (!r)
                r = vocabulary_builder_finish(&rd.m, ret_vocabulary);
        if (r)
                vocabulary_builder_free(&rd.m);
        json_free(json);
        return error_pass(r);
}
