/*
 * Reads a vocabulary from tokenizer.json.  Hugging Face's `tokenizers` builds a pipeline from this
 * file.  Two pipelines are supported here.  Every part must have one of the shapes below; otherwise
 * the file is refused with the part's name.
 *
 *                   byte-level                          characters
 *      normalizer   none, NFC                           Prepend and Replace, of bars; or
 *      pre          Split by a known expression, then   Metaspace, which does not split
 *                   ByteLevel; or ByteLevel alone
 *      model        BPE                                 BPE with byte_fallback or unk_token
 *      decoder      ByteLevel                           Replace, ByteFallback, Fuse, Strip;
 *                                                       Metaspace
 *      post         a bos in front, or nothing
 *
 * Truncation and padding are settings of the program that made the file.  They do not affect the
 * ids.
 */
#include "daemon/files/vocabulary-json.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/files/vocabulary.h"

#define NODES_MAX (4u * VOCABULARY_ENTRIES_MAX)
#define SPARE_IDS 4096u
#define BAR       "\xE2\x96\x81"

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define BLANKS       "\\s+(?!\\S)|\\s+"
#define WITH_DIGITS(digits)                                                                        \
        "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                              \
        "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" BLANKS

static const struct {
        const char *expression;
        enum vocabulary_splitter splitter;
} expressions[] = {
        { CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" BLANKS, SPLITTER_GPT2 },
        { WITH_DIGITS("\\p{N}{1,3}"), SPLITTER_LLAMA3 },
        { WITH_DIGITS("\\p{N}"), SPLITTER_QWEN2 },
};

struct trait_reader {
        struct vocabulary_builder m;
        const struct json_document *json;
        const char *splitter; /* named by the caller, or NULL */
        uint32_t model, added;
        bool letters;
        bool bars; /* its normalizer turns blanks into bars */
        bool fallback;
};

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

static uint32_t member(const struct trait_reader *rd, uint32_t node, const char *key)
{
        return json_member(rd->json, node, key);
}

static bool says(const struct trait_reader *rd, uint32_t node, const char *key, const char *text)
{
        size_t bytes;
        const char *found = json_string(rd->json, member(rd, node, key), &bytes);

        return found && bytes == strlen(text) && !memcmp(found, text, bytes);
}

static bool is_type(const struct trait_reader *rd, uint32_t node, const char *type)
{
        return says(rd, node, "type", type);
}

static bool is_null(const struct trait_reader *rd, uint32_t node)
{
        enum json_kind kind = json_kind(rd->json, node);

        return kind == JSON_ABSENT || kind == JSON_NULL;
}

static bool is_on(const struct trait_reader *rd, uint32_t node, const char *key, bool absent)
{
        bool on = absent;

        json_bool(rd->json, member(rd, node, key), &on);
        return on;
}

/* Steps of a pipeline in order: those of a Sequence, or a single one. */
struct steps {
        uint32_t at;
        bool alone;
};

static struct steps steps_of(const struct trait_reader *rd, uint32_t node, const char *list)
{
        if (is_type(rd, node, "Sequence"))
                return (struct steps){ json_first(rd->json, member(rd, node, list)), false };
        return (struct steps){ is_null(rd, node) ? JSON_NONE : node, true };
}

static uint32_t take_step(const struct trait_reader *rd, struct steps *steps)
{
        uint32_t at = steps->at;

        steps->at = steps->alone || at == JSON_NONE ? JSON_NONE : json_next(rd->json, at);
        return at;
}

static int refuse_part(struct trait_reader *rd, const char *part, uint32_t node)
{
        const char *type = json_string(rd->json, member(rd, node, "type"), NULL);

        return vocabulary_builder_refuse(&rd->m,
                                         "its %s has '%s', which is not supported in this place",
                                         part, shown(type ? type : "no type").text);
}

/* A Replace step from one text to another. */
static bool replaces(const struct trait_reader *rd, uint32_t node, const char *from, const char *to)
{
        return is_type(rd, node, "Replace") &&
               says(rd, member(rd, node, "pattern"), "String", from) &&
               says(rd, node, "content", to);
}

static int read_normaliser(struct trait_reader *rd)
{
        uint32_t part = member(rd, 0, "normalizer"), step;
        struct steps steps = steps_of(rd, part, "normalizers");

        while ((step = take_step(rd, &steps)) != JSON_NONE) {
                if (rd->letters && is_type(rd, step, "NFC"))
                        rd->m.v.normaliser = NORMALISER_NFC;
                else if (!rd->letters && !rd->bars && is_type(rd, step, "Prepend") &&
                         says(rd, step, "prepend", BAR))
                        rd->m.v.blank = BLANK_EACH;
                else if (!rd->letters && replaces(rd, step, " ", BAR))
                        rd->bars = true;
                else
                        return refuse_part(rd, "normalizer", step);
        }
        if (!rd->bars && rd->m.v.blank)
                return vocabulary_builder_refuse(&rd->m,
                                                 "its normalizer does not replace blanks by bars");
        return 0;
}

static int read_expression(struct trait_reader *rd, uint32_t step)
{
        uint32_t pattern = member(rd, step, "pattern");
        const char *expression = json_string(rd->json, member(rd, pattern, "Regex"), NULL);

        if (!expression || !says(rd, step, "behavior", "Isolated") ||
            is_on(rd, step, "invert", false))
                return refuse_part(rd, "pre_tokenizer", step);
        if (rd->splitter)
                return 0;
        for (size_t i = 0; i < sizeof(expressions) / sizeof(*expressions); i++)
                if (!strcmp(expressions[i].expression, expression))
                        rd->m.v.splitter = expressions[i].splitter;
        if (rd->m.v.splitter == SPLITTER_N)
                return vocabulary_builder_refuse(
                        &rd->m, "its pre_tokenizer splits by '%s', which is not supported",
                        shown(expression).text);
        return 0;
}

/* Blanks become bars, and a bar is added in front unless there is one. */
static int read_metaspace(struct trait_reader *rd, uint32_t step)
{
        static const struct {
                const char *name;
                enum vocabulary_blank blank;
        } schemes[] = { { "always", BLANK_EACH },
                        { "first", BLANK_FIRST },
                        { "never", BLANK_NEVER } };

        if (rd->bars || is_on(rd, step, "split", true) || !says(rd, step, "replacement", BAR))
                return refuse_part(rd, "pre_tokenizer", step);
        for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
                if (!says(rd, step, "prepend_scheme", schemes[i].name))
                        continue;
                rd->m.v.blank = schemes[i].blank;
                rd->m.v.blank_once = true;
                return 0;
        }
        return refuse_part(rd, "pre_tokenizer", step);
}

static int read_pre_tokenizer(struct trait_reader *rd)
{
        uint32_t part = member(rd, 0, "pre_tokenizer"), step;
        struct steps steps = steps_of(rd, part, "pretokenizers");
        bool split = false, letters = false, bars = rd->bars;
        int r = 0;

        if (!rd->letters && rd->splitter)
                return vocabulary_builder_refuse(
                        &rd->m, "a splitter was given, but this tokenizer uses none");
        rd->m.v.splitter = rd->splitter ? splitter_named(rd->splitter) : SPLITTER_N;
        while (!r && (step = take_step(rd, &steps)) != JSON_NONE) {
                if (rd->letters && !split && !letters && is_type(rd, step, "Split")) {
                        split = true;
                        r = read_expression(rd, step);
                } else if (rd->letters && !letters && is_type(rd, step, "ByteLevel") &&
                           !is_on(rd, step, "add_prefix_space", true) &&
                           is_on(rd, step, "use_regex", true) == !split) {
                        letters = true;
                        if (!split && !rd->splitter)
                                rd->m.v.splitter = SPLITTER_GPT2;
                } else if (!rd->letters && !bars && is_type(rd, step, "Metaspace")) {
                        bars = true;
                        r = read_metaspace(rd, step);
                } else {
                        r = refuse_part(rd, "pre_tokenizer", step);
                }
        }
        if (!r && rd->letters && !letters)
                r = vocabulary_builder_refuse(
                        &rd->m, "its pre_tokenizer has no 'ByteLevel', its decoder has");
        if (!r && !rd->letters && !bars)
                r = vocabulary_builder_refuse(
                        &rd->m,
                        "its decoder replaces bars by blanks, but nothing replaces blanks by bars");
        if (!rd->letters)
                rd->m.v.splitter = SPLITTER_NONE;
        return error_pass(r);
}

/*
 * The blank in front, which Strip removes again, is handled by the caller: tokenizer_adds_blank().
 */
static int read_decoder(struct trait_reader *rd)
{
        uint32_t part = member(rd, 0, "decoder"), step;
        struct steps steps = steps_of(rd, part, "decoders");
        bool bars = false;

        rd->letters = is_type(rd, part, "ByteLevel");
        while (!rd->letters && (step = take_step(rd, &steps)) != JSON_NONE) {
                bool meta = is_type(rd, step, "Metaspace") && says(rd, step, "replacement", BAR);

                bars = bars || meta || replaces(rd, step, BAR, " ");
                if (!meta && !replaces(rd, step, BAR, " ") && !is_type(rd, step, "ByteFallback") &&
                    !is_type(rd, step, "Fuse") &&
                    !(is_type(rd, step, "Strip") && says(rd, step, "content", " ")))
                        return refuse_part(rd, "decoder", step);
        }
        if (!rd->letters && !bars)
                return vocabulary_builder_refuse(
                        &rd->m, "its decoder is neither 'ByteLevel' nor one of bars");
        return 0;
}

/* A token may stand before the text; nothing may follow the text. */
static int read_template(struct trait_reader *rd, uint32_t node)
{
        uint32_t at = json_first(rd->json, member(rd, node, "single")), token, ids;
        const char *name;
        uint64_t id;

        token = member(rd, at, "SpecialToken");
        if (token != JSON_NONE) {
                name = json_string(rd->json, member(rd, token, "id"), NULL);
                ids = member(rd, member(rd, member(rd, node, "special_tokens"), name ? name : ""),
                             "ids");
                if (json_count(rd->json, ids) != 1 ||
                    !json_whole(rd->json, json_first(rd->json, ids), &id) ||
                    id >= rd->m.entry_capacity)
                        return refuse_part(rd, "post_processor", node);
                rd->m.v.bos = (uint32_t)id;
                rd->m.v.add_bos = true;
                at = json_next(rd->json, at);
        }
        if (member(rd, at, "Sequence") == JSON_NONE || json_next(rd->json, at) != JSON_NONE)
                return refuse_part(rd, "post_processor", node);
        return 0;
}

static int read_post_processor(struct trait_reader *rd)
{
        struct steps steps = steps_of(rd, member(rd, 0, "post_processor"), "processors");
        uint32_t step;
        int r = 0;

        while (!r && (step = take_step(rd, &steps)) != JSON_NONE) {
                if (is_type(rd, step, "TemplateProcessing"))
                        r = read_template(rd, step);
                else if (!is_type(rd, step, "ByteLevel"))
                        r = refuse_part(rd, "post_processor", step);
        }
        return error_pass(r);
}

/* ---- the model ---- */

static int refuse_given(struct trait_reader *rd, const char *key, bool empty_too)
{
        uint32_t node = member(rd, rd->model, key);
        size_t bytes = 0;

        if (is_null(rd, node) || (empty_too && json_string(rd->json, node, &bytes) && !bytes))
                return 0;
        return vocabulary_builder_refuse(&rd->m, "its model has '%s', which is not supported", key);
}

static int read_model(struct trait_reader *rd)
{
        uint32_t unknown = member(rd, rd->model, "unk_token");
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
        rd->m.v.whole_wins = is_on(rd, rd->model, "ignore_merges", false);
        rd->m.v.unknown_run = is_on(rd, rd->model, "fuse_unk", false);
        if (is_null(rd, unknown))
                return 0;
        name = json_string(rd->json, unknown, &bytes);
        rd->m.v.unknown = name ? vocabulary_builder_find(&rd->m, name, bytes) : VOCABULARY_NONE;
        if (rd->m.v.unknown == VOCABULARY_NONE)
                return vocabulary_builder_refuse(&rd->m, "its model's 'unk_token' is not a token");
        return 0;
}

static bool is_ascii(const char *text, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                if ((uint8_t)text[i] >= 0x80)
                        return false;
        return true;
}

static int read_added_one(struct trait_reader *rd, uint32_t node)
{
        size_t bytes;
        const char *name = json_string(rd->json, member(rd, node, "content"), &bytes);
        enum entry_kind kind = is_on(rd, node, "special", false) ? ENTRY_CONTROL : ENTRY_USER;
        bool normalised = is_on(rd, node, "normalized", kind == ENTRY_USER);
        uint64_t id = UINT64_MAX;
        int r;

        json_whole(rd->json, member(rd, node, "id"), &id);
        if (!name || id == UINT64_MAX)
                return vocabulary_builder_refuse(&rd->m,
                                                 "an added token without 'content' or 'id'");
        if (is_on(rd, node, "single_word", false))
                return vocabulary_builder_refuse(
                        &rd->m, "the added token '%s' has 'single_word', which is not supported",
                        shown(name).text);
        if (normalised && (rd->bars || (rd->m.v.normaliser && !is_ascii(name, bytes))))
                return vocabulary_builder_refuse(
                        &rd->m, "the added token '%s' has 'normalized', which is not supported",
                        shown(name).text);
        r = vocabulary_builder_add_entry(&rd->m, id, name, bytes, kind, SPELT_PLAIN, 0);
        if (r)
                return error_pass(r);
        vocabulary_builder_set_strips(
                &rd->m, (uint32_t)id,
                (is_on(rd, node, "lstrip", false) ? ENTRY_STRIPS_LEFT : 0) |
                        (is_on(rd, node, "rstrip", false) ? ENTRY_STRIPS_RIGHT : 0));
        return 0;
}

static int read_added(struct trait_reader *rd)
{
        int r = 0;

        for (uint32_t n = json_first(rd->json, rd->added); !r && n != JSON_NONE;
             n = json_next(rd->json, n))
                r = read_added_one(rd, n);
        return error_pass(r);
}

static int read_merges(struct trait_reader *rd)
{
        int r = 0;

        for (uint32_t n = json_first(rd->json, member(rd, rd->model, "merges"));
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
static int begin(struct trait_reader *rd, char *why, size_t why_bytes)
{
        struct json_words words;
        uint64_t id;
        size_t bytes;
        int r = json_words_measure(rd->json, member(rd, rd->model, "vocab"), &words, why,
                                   why_bytes);

        if (r)
                return error_pass(r);
        for (uint32_t n = json_first(rd->json, rd->added); n != JSON_NONE;
             n = json_next(rd->json, n)) {
                if (json_whole(rd->json, member(rd, n, "id"), &id) && id < VOCABULARY_ENTRIES_MAX &&
                    id >= words.ids)
                        words.ids = id + 1;
                if (json_string(rd->json, member(rd, n, "content"), &bytes))
                        words.bytes += bytes;
                words.count++;
        }
        r = json_words_fit(&words, why, why_bytes);
        if (r)
                return error_pass(r);
        return error_pass(vocabulary_builder_begin(
                &rd->m, words.ids, json_count(rd->json, member(rd, rd->model, "merges")),
                words.bytes, why, why_bytes));
}

static int read_all(struct trait_reader *rd, char *why, size_t why_bytes)
{
        int r;

        rd->model = member(rd, 0, "model");
        rd->added = member(rd, 0, "added_tokens");
        if (!is_type(rd, rd->model, "BPE") &&
            (!is_null(rd, member(rd, rd->model, "type")) ||
             json_kind(rd->json, member(rd, rd->model, "merges")) != JSON_ARRAY))
                return refuse_part(rd, "model", rd->model);
        if (rd->splitter && splitter_named(rd->splitter) == SPLITTER_N)
                return vocabulary_builder_refuse(&rd->m, "the splitter '%s' is not supported",
                                                 shown(rd->splitter).text);
        if ((r = begin(rd, why, why_bytes)) || (r = read_decoder(rd)) ||
            (r = read_normaliser(rd)) || (r = read_pre_tokenizer(rd)) || (r = read_added(rd)))
                return error_pass(r);
        rd->fallback = is_on(rd, rd->model, "byte_fallback", false);
        r = json_words_read(rd->json, member(rd, rd->model, "vocab"), &rd->m,
                            rd->letters ? SPELT_LETTERS : SPELT_BARS, rd->fallback);
        if (r || (r = read_model(rd)) || (r = read_post_processor(rd)) || (r = read_merges(rd)))
                return error_pass(r);
        rd->m.v.kind = rd->letters ? VOCABULARY_BYTE_LEVEL : VOCABULARY_CHARACTERS;
        if (!rd->letters && !rd->m.v.merge_count)
                return vocabulary_builder_refuse(&rd->m, "its model has no merges");
        return 0;
}

int vocabulary_from_json(const char *text, size_t bytes, const char *splitter,
                         struct vocabulary **ret_vocabulary, char *why, size_t why_bytes)
{
        struct trait_reader rd = { .m = { .why = why, .why_bytes = why_bytes },
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
