/*
 * Reads a vocabulary from tokenizer.json.  Hugging Face's `tokenizers` builds a pipeline from this
 * file.  Two pipelines are supported here, told apart by the decoder.  Every part must have one of
 * the shapes below; otherwise the file is refused with the part's name.
 *
 *                   byte-level                          with bars for blanks
 *      normalizer   the steps of vocabulary-json-normal.c in both
 *      pre          cuts (vocabulary-json-cuts.c),      Metaspace, also behind WhitespaceSplit;
 *                   then ByteLevel                      none if the normalizer makes the bars
 *      model        BPE                                 BPE with byte_fallback or unk_token;
 *                                                       Unigram
 *      decoder      ByteLevel                           Replace, ByteFallback, Fuse, Strip;
 *                                                       Metaspace
 *      post         a token in front, and some behind, in both
 *
 * Truncation and padding are settings of the program that made the file.  They do not affect the
 * ids.
 */
#include "daemon/files/vocabulary-json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/files/vocabulary-json-parts.h"
#include "daemon/files/vocabulary.h"

#define NODES_MAX (4u * VOCABULARY_ENTRIES_MAX)
#define SPARE_IDS 4096u

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

int json_words_read(const struct json_document *json, uint32_t object, struct vocabulary_builder *m,
                    enum spelling spelling, bool fallback)
{
        int r = 0;

        for (uint32_t n = json_first(json, object); !r && n != JSON_NONE; n = json_next(json, n)) {
                size_t bytes;
                const char *name = json_key(json, n, &bytes);
                uint64_t id = 0;
                bool hex = fallback && bytes == 6 && !memcmp(name, "<0x", 3);

                json_whole(json, n, &id);
                if (vocabulary_builder_has(m, id) && vocabulary_builder_find(m, name, bytes) == id)
                        continue; /* an added token, listed again */
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

static int refuse_given(struct json_tokenizer *rd, const char *key, bool empty_too)
{
        uint32_t node = json_tokenizer_member(rd, rd->model, key);
        size_t bytes = 0;

        if (json_tokenizer_is_null(rd, node) ||
            (empty_too && json_string(rd->json, node, &bytes) && !bytes))
                return 0;
        return vocabulary_builder_refuse(&rd->m, "its model has '%s', which is not supported", key);
}

static int read_model(struct json_tokenizer *rd)
{
        uint32_t unknown = json_tokenizer_member(rd, rd->model, "unk_token");
        size_t bytes;
        const char *name;
        int r;

        if ((r = refuse_given(rd, "dropout", false)) ||
            (r = refuse_given(rd, "continuing_subword_prefix", true)) ||
            (r = refuse_given(rd, "end_of_word_suffix", true)))
                return error_pass(r);
        if (rd->fallback && rd->letters)
                return vocabulary_builder_refuse(
                        &rd->m, "its model has 'byte_fallback', and bytes as letters");
        rd->m.v.whole_wins = json_tokenizer_is_on(rd, rd->model, "ignore_merges", false);
        rd->m.v.unknown_run = json_tokenizer_is_on(rd, rd->model, "fuse_unk", false);
        if (json_tokenizer_is_null(rd, unknown))
                return 0;
        name = json_string(rd->json, unknown, &bytes);
        rd->m.v.unknown = name ? vocabulary_builder_find(&rd->m, name, bytes) : VOCABULARY_NONE;
        if (rd->m.v.unknown == VOCABULARY_NONE)
                return vocabulary_builder_refuse(&rd->m, "its model's 'unk_token' is not a token");
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

        if (rd->unigram) {
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
                json_count(rd->json, json_tokenizer_member(rd, rd->model, "merges")), words.bytes,
                why, why_bytes));
}

/* Old files do not name the model's type: then it is told by what it has a list of. */
static bool is_model(const struct json_tokenizer *rd, const char *type, const char *list)
{
        if (!json_tokenizer_is_null(rd, json_tokenizer_member(rd, rd->model, "type")))
                return json_tokenizer_is(rd, rd->model, type);
        return json_kind(rd->json, json_tokenizer_member(rd, rd->model, list)) == JSON_ARRAY;
}

/* The pieces of the model and what it does with them. */
static int read_pieces(struct json_tokenizer *rd)
{
        int r;

        rd->fallback = json_tokenizer_is_on(rd, rd->model, "byte_fallback", false);
        if (rd->unigram)
                return error_pass(json_tokenizer_read_scored(rd));
        r = json_words_read(rd->json, json_tokenizer_member(rd, rd->model, "vocab"), &rd->m,
                            rd->letters ? SPELT_LETTERS : SPELT_BARS, rd->fallback);
        if (!r)
                r = read_model(rd);
        return r ? error_pass(r) : error_pass(read_merges(rd));
}

static int read_all(struct json_tokenizer *rd, char *why, size_t why_bytes)
{
        int r;

        rd->model = json_tokenizer_member(rd, 0, "model");
        rd->added = json_tokenizer_member(rd, 0, "added_tokens");
        rd->unigram = is_model(rd, "Unigram", "vocab");
        if (!rd->unigram && !is_model(rd, "BPE", "merges"))
                return json_tokenizer_refuse(rd, "model", rd->model);
        if (rd->splitter && !splitter_named(rd->splitter))
                return vocabulary_builder_refuse(&rd->m, "the splitter '%s' is not supported",
                                                 shown(rd->splitter).text);
        if ((r = begin(rd, why, why_bytes)) || (r = json_tokenizer_decoder(rd)) ||
            (r = json_tokenizer_normaliser(rd)) || (r = json_tokenizer_cuts(rd)) ||
            (r = read_added(rd)))
                return error_pass(r);
        if ((r = read_pieces(rd)) || (r = json_tokenizer_ends(rd)))
                return error_pass(r);
        rd->m.v.kind = rd->unigram   ? VOCABULARY_UNIGRAM
                       : rd->letters ? VOCABULARY_BYTE_LEVEL
                                     : VOCABULARY_CHARACTERS;
        if (rd->unigram && rd->letters)
                return vocabulary_builder_refuse(
                        &rd->m, "its model is 'Unigram', and its decoder 'ByteLevel'");
        if (rd->m.v.kind == VOCABULARY_CHARACTERS && !rd->m.v.merge_count)
                return vocabulary_builder_refuse(&rd->m, "its model has no merges");
        return 0;
}

int vocabulary_from_json(const char *text, size_t bytes, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes)
{
        struct json_tokenizer rd = { .m = { .why = why, .why_bytes = why_bytes },
                                     .splitter = splitter };
        struct json_document *json = NULL;
        int r = error_raise(json_parse(text, bytes, NODES_MAX, &json, why, why_bytes));

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
