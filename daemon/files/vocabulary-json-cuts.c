/*
 * The pre_tokenizer of tokenizer.json: how a text is cut before the model sees it.
 *
 * Each step becomes a cut by an expression.  Steps without an expression in the file have one of
 * the library that reads them, written here.
 */
#include "daemon/files/vocabulary-bert.h"
#include "daemon/files/vocabulary-json-parts.h"

#include <stdlib.h>
#include <string.h>

/* \w of Rust, which Whitespace means: it has the two joiners besides. */
#define WORD "\\w\\x{200c}\\x{200d}"

static int refuse(struct json_tokenizer *rd, uint32_t step)
{
        return json_tokenizer_refuse(rd, "pre_tokenizer", step);
}

static int add(struct json_tokenizer *rd, const char *expression, enum cut_kind kind, bool inverted)
{
        return error_pass(vocabulary_builder_add_cut(&rd->m, expression, kind, inverted));
}

static bool read_behaviour(const struct json_tokenizer *rd, uint32_t step, enum cut_kind *ret_kind)
{
        static const char *const names[CUT_KIND_N] = {
                [CUT_APART] = "Isolated",
                [CUT_DROP] = "Removed",
                [CUT_TO_LAST] = "MergedWithPrevious",
                [CUT_TO_NEXT] = "MergedWithNext",
                [CUT_RUNS] = "Contiguous",
        };

        for (int kind = 0; kind < CUT_KIND_N; kind++)
                if (json_tokenizer_says(rd, step, "behavior", names[kind])) {
                        *ret_kind = (enum cut_kind)kind;
                        return true;
                }
        return false;
}

/* An expression for exactly this text. */
static int add_text(struct json_tokenizer *rd, const char *text, enum cut_kind kind, bool inverted)
{
        char *expression = json_tokenizer_quote(text);
        int r;

        if (!expression)
                return error_raise(-ENOMEM);
        r = add(rd, expression, kind, inverted);
        free(expression);
        return error_pass(r);
}

static int read_split(struct json_tokenizer *rd, uint32_t step)
{
        uint32_t pattern = json_tokenizer_member(rd, step, "pattern");
        const char *expression =
                json_string(rd->json, json_tokenizer_member(rd, pattern, "Regex"), NULL);
        const char *text =
                json_string(rd->json, json_tokenizer_member(rd, pattern, "String"), NULL);
        bool inverted = json_tokenizer_is_on(rd, step, "invert", false);
        enum cut_kind kind;

        if ((!expression && !text) || !read_behaviour(rd, step, &kind))
                return refuse(rd, step);
        return expression ? add(rd, expression, kind, inverted)
                          : add_text(rd, text, kind, inverted);
}

/* The steps that only cut.  1: it is another one. */
static int read_cut(struct json_tokenizer *rd, uint32_t step)
{
        const char *text =
                json_string(rd->json, json_tokenizer_member(rd, step, "delimiter"), NULL);
        enum cut_kind kind = CUT_APART;

        if (json_tokenizer_is(rd, step, "Split"))
                return read_split(rd, step);
        if (json_tokenizer_is(rd, step, "Digits"))
                return add(rd, "\\p{N}",
                           json_tokenizer_is_on(rd, step, "individual_digits", false) ? CUT_APART
                                                                                      : CUT_RUNS,
                           false);
        if (json_tokenizer_is(rd, step, "Punctuation")) {
                if (json_tokenizer_member(rd, step, "behavior") != JSON_NONE &&
                    !read_behaviour(rd, step, &kind))
                        return refuse(rd, step);
                return add(rd, vocabulary_sign, kind, false);
        }
        if (json_tokenizer_is(rd, step, "Whitespace"))
                return add(rd, "[" WORD "]+|[^" WORD "\\s]+", CUT_DROP, true);
        if (json_tokenizer_is(rd, step, "WhitespaceSplit"))
                return add(rd, "\\s+", CUT_DROP, false);
        if (json_tokenizer_is(rd, step, "BertPreTokenizer"))
                return error_pass(vocabulary_bert_cuts(&rd->m));
        if (json_tokenizer_is(rd, step, "CharDelimiterSplit") && text)
                return add_text(rd, text, CUT_DROP, false);
        return 1;
}

/* Old files say only whether there is a bar in front. */
static bool read_scheme(struct json_tokenizer *rd, uint32_t step, enum vocabulary_blank *ret_blank)
{
        static const struct {
                const char *name;
                enum vocabulary_blank blank;
        } schemes[] = { { "always", BLANK_EACH },
                        { "first", BLANK_FIRST },
                        { "never", BLANK_NEVER } };

        if (json_tokenizer_is_null(rd, json_tokenizer_member(rd, step, "prepend_scheme"))) {
                *ret_blank = json_tokenizer_is_on(rd, step, "add_prefix_space", true) ? BLANK_EACH
                                                                                      : BLANK_NEVER;
                return true;
        }
        for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
                *ret_blank = schemes[i].blank;
                if (json_tokenizer_says(rd, step, "prepend_scheme", schemes[i].name))
                        return true;
        }
        return false;
}

/*
 * Blanks become bars, and a bar is added in front unless there is one.  Behind WhitespaceSplit,
 * that is done with each word; so there is one bar before each, however many blanks there were.
 */
static int read_metaspace(struct json_tokenizer *rd, uint32_t step)
{
        enum vocabulary_blank blank;

        if (rd->bars || !json_tokenizer_says(rd, step, "replacement", BAR) ||
            !read_scheme(rd, step, &blank) || (rd->words && blank != BLANK_EACH))
                return refuse(rd, step);
        rd->m.v.blank = blank;
        rd->m.v.blank_once = true;
        rd->m.v.squeezes_all = rd->words;
        /* Without cutting at bars, words would still be apart. */
        if (rd->words && !json_tokenizer_is_on(rd, step, "split", true))
                return refuse(rd, step);
        return json_tokenizer_is_on(rd, step, "split", true) ? add(rd, " ", CUT_TO_NEXT, false) : 0;
}

static int read_plain(struct json_tokenizer *rd, uint32_t step)
{
        int r = read_cut(rd, step);

        return r == 1 ? refuse(rd, step) : error_pass(r);
}

static int read_byte_level(struct json_tokenizer *rd, uint32_t step)
{
        if (json_tokenizer_is_on(rd, step, "add_prefix_space", true)) {
                /* Behind a cut it would go before each piece. */
                if (rd->m.v.cut_count)
                        return refuse(rd, step);
                rd->m.v.blank = BLANK_EACH;
                rd->m.v.blank_once = true;
        }
        if (json_tokenizer_is_on(rd, step, "use_regex", true))
                return error_pass(vocabulary_builder_add_cuts(&rd->m, splitter_named("gpt2")));
        return 0;
}

/* Steps behind ByteLevel see its letters. */
static int read_letters(struct json_tokenizer *rd)
{
        uint32_t part = json_tokenizer_member(rd, 0, "pre_tokenizer"), step;
        struct json_steps steps = json_tokenizer_steps(rd, part, "pretokenizers");
        bool letters = false;
        int r = 0;

        while (!r && (step = json_tokenizer_step(rd, &steps)) != JSON_NONE) {
                uint32_t first = rd->m.v.cut_count;

                if (!json_tokenizer_is(rd, step, "ByteLevel")) {
                        r = read_plain(rd, step);
                        for (uint32_t i = first; letters && i < rd->m.v.cut_count; i++)
                                rd->m.cuts[i].letters = true;
                } else if (letters) {
                        return refuse(rd, step);
                } else {
                        r = read_byte_level(rd, step);
                        letters = true;
                }
        }
        if (!r && !letters)
                r = vocabulary_builder_refuse(
                        &rd->m, "its pre_tokenizer has no 'ByteLevel', its decoder has");
        return error_pass(r);
}

static int read_words(struct json_tokenizer *rd)
{
        uint32_t part = json_tokenizer_member(rd, 0, "pre_tokenizer"), step;
        struct json_steps steps = json_tokenizer_steps(rd, part, "pretokenizers");
        int r = 0;

        while (!r && (step = json_tokenizer_step(rd, &steps)) != JSON_NONE)
                r = read_plain(rd, step);
        return error_pass(r);
}

static int read_bars(struct json_tokenizer *rd)
{
        uint32_t part = json_tokenizer_member(rd, 0, "pre_tokenizer"), step;
        struct json_steps steps = json_tokenizer_steps(rd, part, "pretokenizers");
        bool bars = rd->bars;
        int r = 0;

        while (!r && (step = json_tokenizer_step(rd, &steps)) != JSON_NONE) {
                if (!bars && !rd->words && json_tokenizer_is(rd, step, "WhitespaceSplit")) {
                        rd->words = true;
                        continue;
                }
                if (bars || !json_tokenizer_is(rd, step, "Metaspace"))
                        return refuse(rd, step);
                bars = true;
                r = read_metaspace(rd, step);
        }
        if (!r && (!bars || (rd->words && rd->bars)))
                r = vocabulary_builder_refuse(
                        &rd->m,
                        "its decoder replaces bars by blanks, but nothing replaces blanks by bars");
        return error_pass(r);
}

int json_tokenizer_cuts(struct json_tokenizer *rd)
{
        int r;

        if (!rd->letters && rd->splitter)
                return vocabulary_builder_refuse(
                        &rd->m, "a splitter was given, but this tokenizer uses none");
        if (!rd->letters)
                return error_pass(rd->plain ? read_words(rd) : read_bars(rd));
        r = read_letters(rd);
        if (r || !rd->splitter)
                return error_pass(r);
        vocabulary_builder_drop_cuts(&rd->m);
        return error_pass(vocabulary_builder_add_cuts(&rd->m, splitter_named(rd->splitter)));
}
