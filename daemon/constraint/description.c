#include "daemon/constraint/description.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/constraint/choices.h"
#include "daemon/constraint/gbnf.h"
#include "daemon/constraint/json-schema.h"
#include "json/builder.h"
#include "json/reader.h"

enum member {
        MEMBER_JSON,
        MEMBER_SCHEMA,
        MEMBER_REGEX,
        MEMBER_GRAMMAR,
        MEMBER_CHOICES,
        MEMBER_SPACE, /* from here on: no constraints themselves */
        MEMBER_ANY_ORDER,
        MEMBER_N,
};

static const char *const names[MEMBER_N] = {
        [MEMBER_JSON] = "json",           [MEMBER_SCHEMA] = "schema",   [MEMBER_REGEX] = "regex",
        [MEMBER_GRAMMAR] = "grammar",     [MEMBER_CHOICES] = "choices", [MEMBER_SPACE] = "space",
        [MEMBER_ANY_ORDER] = "any_order",
};

struct description {
        const struct json_document *json;
        uint32_t members[MEMBER_N]; /* JSON_NONE: not given */
        const struct grammar_limits *limits;
        char *why;
        size_t why_bytes;
};

#define REFUSE(about, ...)                                                                         \
        error_raise(errtext_set((about)->why, (about)->why_bytes, -EINVAL, __VA_ARGS__))

static int no_memory(const struct description *about)
{
        return error_raise(errtext_set(about->why, about->why_bytes, -ENOMEM, "out of memory"));
}

static int find_members(struct description *about)
{
        const struct json_document *json = about->json;

        if (json_kind(json, 0) != JSON_OBJECT)
                return REFUSE(about, "it is not an object of JSON");
        for (unsigned i = 0; i < MEMBER_N; i++)
                about->members[i] = JSON_NONE;
        for (uint32_t at = json_first(json, 0); at != JSON_NONE; at = json_next(json, at)) {
                const char *key = json_key(json, at, NULL);
                unsigned i = 0;

                while (i < MEMBER_N && (!key || strcmp(key, names[i]) != 0))
                        i++;
                if (i == MEMBER_N)
                        return REFUSE(about, "it has the unknown member \"%.40s\"", key ? key : "");
                about->members[i] = at;
        }
        return 0;
}

/* Which constraint it is. */
static int find_kind(const struct description *about, enum member *ret_kind)
{
        unsigned count = 0;

        for (unsigned i = 0; i < MEMBER_SPACE; i++)
                if (about->members[i] != JSON_NONE) {
                        *ret_kind = i;
                        count++;
                }
        if (count != 1)
                return REFUSE(about,
                              "it has %u of json, schema, regex, grammar and choices; "
                              "one is wanted",
                              count);
        if (*ret_kind <= MEMBER_SCHEMA)
                return 0;
        for (unsigned i = MEMBER_SPACE; i < MEMBER_N; i++)
                if (about->members[i] != JSON_NONE)
                        return REFUSE(about, "%s goes with json and schema, not with %s", names[i],
                                      names[*ret_kind]);
        return 0;
}

static int read_options(const struct description *about, struct json_schema_options *ret_options)
{
        static const char *const spaces[] = {
                [JSON_SPACE_ONE] = "one", [JSON_SPACE_NONE] = "none", [JSON_SPACE_FREE] = "free"
        };
        const char *space = json_string(about->json, about->members[MEMBER_SPACE], NULL);
        unsigned i = 0;

        *ret_options = (struct json_schema_options){ JSON_SPACE_ONE, false };
        if (about->members[MEMBER_SPACE] != JSON_NONE) {
                while (i < 3 && (!space || strcmp(space, spaces[i]) != 0))
                        i++;
                if (i == 3)
                        return REFUSE(about, "space is not \"one\", \"none\" or \"free\"");
                ret_options->space = i;
        }
        if (about->members[MEMBER_ANY_ORDER] != JSON_NONE &&
            !json_bool(about->json, about->members[MEMBER_ANY_ORDER], &ret_options->any_order))
                return REFUSE(about, "any_order is not true or false");
        return 0;
}

static int compile_schema(const struct description *about, struct grammar **ret_grammar)
{
        struct json_schema_options options;
        struct bytes text = { 0 };
        struct json_builder builder = json_build(&text);
        int r = read_options(about, &options);

        if (r)
                return error_pass(r);
        json_put_node(&builder, about->json, about->members[MEMBER_SCHEMA]);
        if (json_put_end(&builder))
                r = no_memory(about);
        else
                r = json_schema_compile(text.at, text.count, &options, about->limits, ret_grammar,
                                        about->why, about->why_bytes);
        bytes_deinit(&text);
        return error_pass(r);
}

static int compile_json(const struct description *about, struct grammar **ret_grammar)
{
        struct json_schema_options options;
        bool is_wanted = false;
        int r;

        if (!json_bool(about->json, about->members[MEMBER_JSON], &is_wanted) || !is_wanted)
                return REFUSE(about, "json is not true");
        r = read_options(about, &options);
        return r ? error_pass(r)
                 : error_pass(json_schema_compile("true", 4, &options, about->limits, ret_grammar,
                                                  about->why, about->why_bytes));
}

static int compile_text(const struct description *about, enum member kind,
                        struct grammar **ret_grammar)
{
        size_t bytes = 0;
        const char *text = json_string(about->json, about->members[kind], &bytes);

        if (!text)
                return REFUSE(about, "%s is not a text", names[kind]);
        return error_pass((kind == MEMBER_REGEX ? regex_compile : gbnf_compile)(
                text, bytes, about->limits, ret_grammar, about->why, about->why_bytes));
}

static int compile_choices(const struct description *about, struct grammar **ret_grammar)
{
        uint32_t list = about->members[MEMBER_CHOICES], count = json_count(about->json, list),
                 i = 0;
        struct regex_text *texts;
        int r = 0;

        if (json_kind(about->json, list) != JSON_ARRAY || !count)
                return REFUSE(about, "choices is not a list of texts");
        if (count > DESCRIPTION_CHOICES_MAX)
                return REFUSE(about, "choices has %u texts; it may have %u", count,
                              DESCRIPTION_CHOICES_MAX);
        texts = calloc(count, sizeof(*texts));
        if (!texts)
                return no_memory(about);
        for (uint32_t at = json_first(about->json, list); !r && at != JSON_NONE;
             at = json_next(about->json, at), i++) {
                size_t bytes = 0;

                texts[i].bytes = json_string(about->json, at, &bytes);
                texts[i].count = (uint32_t)bytes;
                if (!texts[i].bytes)
                        r = REFUSE(about, "choices has no text at index %u", i);
        }
        if (!r)
                r = choices_compile(texts, count, about->limits, ret_grammar, about->why,
                                    about->why_bytes);
        free(texts);
        return error_pass(r);
}

static int compile(struct description *about, struct grammar **ret_grammar)
{
        enum member kind = MEMBER_JSON;
        int r = find_members(about);

        if (!r)
                r = find_kind(about, &kind);
        if (r)
                return error_pass(r);
        switch (kind) {
        case MEMBER_JSON:
                return error_pass(compile_json(about, ret_grammar));
        case MEMBER_SCHEMA:
                return error_pass(compile_schema(about, ret_grammar));
        case MEMBER_CHOICES:
                return error_pass(compile_choices(about, ret_grammar));
        default:
                return error_pass(compile_text(about, kind, ret_grammar));
        }
}

int description_compile(const char *text, size_t bytes, const struct grammar_limits *limits,
                        struct grammar **ret_grammar, char *why, size_t why_bytes)
{
        struct description about = { .limits = limits, .why = why, .why_bytes = why_bytes };
        struct json_document *json = NULL;
        int r = json_parse(text, bytes, JSON_SCHEMA_NODES, &json, why, why_bytes);

        if (r < 0)
                return error_pass(r);
        about.json = json;
        r = compile(&about, ret_grammar);
        json_free(json);
        return error_pass(r);
}
