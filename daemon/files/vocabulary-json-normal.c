/*
 * The normalizer of tokenizer.json: what changes a text before it is cut.
 *
 * A vocabulary with bars has blanks in memory.  So a step that turns blanks into bars changes
 * nothing here, and one that puts a bar in front puts a blank there (vocabulary_blank).
 */
#include "daemon/files/vocabulary-bert.h"
#include "daemon/files/vocabulary-json-parts.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/files/base64.h"

static int refuse(struct json_tokenizer *rd, uint32_t step)
{
        return json_tokenizer_refuse(rd, "normalizer", step);
}

static int add(struct json_tokenizer *rd, enum normal_kind kind)
{
        return error_pass(vocabulary_builder_add_normal(&rd->m, kind, NULL, NULL, 0));
}

static int read_strip(struct json_tokenizer *rd, uint32_t step)
{
        int r = 0;

        if (json_tokenizer_is_on(rd, step, "strip_left", true))
                r = add(rd, NORMAL_TRIM_LEFT);
        if (!r && json_tokenizer_is_on(rd, step, "strip_right", true))
                r = add(rd, NORMAL_TRIM_RIGHT);
        return error_pass(r);
}

static int read_replace(struct json_tokenizer *rd, uint32_t step)
{
        uint32_t pattern = json_tokenizer_member(rd, step, "pattern");
        const char *expression =
                json_string(rd->json, json_tokenizer_member(rd, pattern, "Regex"), NULL);
        const char *text =
                json_string(rd->json, json_tokenizer_member(rd, pattern, "String"), NULL);
        size_t bytes;
        const char *content =
                json_string(rd->json, json_tokenizer_member(rd, step, "content"), &bytes);
        char *quoted;
        int r;

        if ((!expression && !text) || !content)
                return refuse(rd, step);
        if (expression)
                return error_pass(vocabulary_builder_add_normal(&rd->m, NORMAL_REPLACE, expression,
                                                                content, bytes));
        quoted = json_tokenizer_quote(text);
        if (!quoted)
                return error_raise(-ENOMEM);
        r = vocabulary_builder_add_normal(&rd->m, NORMAL_REPLACE, quoted, content, bytes);
        free(quoted);
        return error_pass(r);
}

static int read_bert(struct json_tokenizer *rd, uint32_t step)
{
        bool lower = json_tokenizer_is_on(rd, step, "lowercase", true);

        return error_pass(vocabulary_bert_normals(
                &rd->m, json_tokenizer_is_on(rd, step, "clean_text", true),
                json_tokenizer_is_on(rd, step, "handle_chinese_chars", true),
                json_tokenizer_is_on(rd, step, "strip_accents", lower), lower));
}

/* The steps without members.  1: it is another one. */
static int read_plain(struct json_tokenizer *rd, uint32_t step)
{
        static const struct {
                const char *type;
                enum normal_kind kind;
        } plain[] = {
                { "NFC", NORMAL_NFC },         { "NFD", NORMAL_NFD },
                { "NFKC", NORMAL_NFKC },       { "NFKD", NORMAL_NFKD },
                { "Lowercase", NORMAL_LOWER }, { "StripAccents", NORMAL_DROP_MARKS },
                { "Nmt", NORMAL_NMT },
        };

        for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
                if (json_tokenizer_is(rd, step, plain[i].type))
                        return add(rd, plain[i].kind);
        return 1;
}

/* The rules are base64 in the file; without any the step changes nothing. */
static int read_rules(struct json_tokenizer *rd, uint32_t step)
{
        uint32_t node = json_tokenizer_member(rd, step, "precompiled_charsmap");
        size_t bytes, count;
        const char *text = json_string(rd->json, node, &bytes);
        char *rules;
        int r;

        if (json_tokenizer_is_null(rd, node) || (text && !bytes))
                return 0;
        if (!text)
                return refuse(rd, step);
        rules = malloc(bytes);
        if (!rules)
                return error_raise(-ENOMEM);
        if (!base64_decode(text, bytes, rules, &count))
                r = vocabulary_builder_refuse(&rd->m, "its 'precompiled_charsmap' is not base64");
        else
                r = vocabulary_builder_add_normal(&rd->m, NORMAL_RULES_CLUSTERS, NULL, rules,
                                                  count);
        free(rules);
        return error_pass(r);
}

static int read_prepend(struct json_tokenizer *rd, uint32_t step)
{
        size_t bytes;
        const char *content =
                json_string(rd->json, json_tokenizer_member(rd, step, "prepend"), &bytes);

        if (!content)
                return refuse(rd, step);
        if (!rd->letters && !rd->plain && !strcmp(content, BAR)) {
                rd->m.v.blank = BLANK_EACH;
                return 0;
        }
        return error_pass(
                vocabulary_builder_add_normal(&rd->m, NORMAL_PREPEND, NULL, content, bytes));
}

static int read_step(struct json_tokenizer *rd, uint32_t step)
{
        int r;

        /* Behind blanks as bars, no step sees the text that it would see in the library. */
        if (rd->bars)
                return refuse(rd, step);
        if (!rd->letters && !rd->plain && json_tokenizer_replaces(rd, step, " ", BAR)) {
                rd->bars = rd->m.v.normal_blanks = true;
                return 0;
        }
        if (rd->m.v.blank) /* only that may come behind a bar in front */
                return refuse(rd, step);
        r = read_plain(rd, step);
        if (r != 1)
                return error_pass(r);
        if (json_tokenizer_is(rd, step, "Strip"))
                return error_pass(read_strip(rd, step));
        if (json_tokenizer_is(rd, step, "Replace"))
                return error_pass(read_replace(rd, step));
        if (json_tokenizer_is(rd, step, "Precompiled"))
                return error_pass(read_rules(rd, step));
        if (json_tokenizer_is(rd, step, "Prepend"))
                return error_pass(read_prepend(rd, step));
        if (json_tokenizer_is(rd, step, "BertNormalizer"))
                return error_pass(read_bert(rd, step));
        return refuse(rd, step);
}

int json_tokenizer_normaliser(struct json_tokenizer *rd)
{
        uint32_t part = json_tokenizer_member(rd, 0, "normalizer"), step;
        struct json_steps steps = json_tokenizer_steps(rd, part, "normalizers");
        int r = 0;

        while (!r && (step = json_tokenizer_step(rd, &steps)) != JSON_NONE)
                r = read_step(rd, step);
        if (!r && !rd->bars && rd->m.v.blank)
                r = vocabulary_builder_refuse(&rd->m,
                                              "its normalizer does not replace blanks by bars");
        return error_pass(r);
}
