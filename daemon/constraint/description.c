#include "daemon/constraint/description.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "json/builder.h"
#include "json/reader.h"

enum member {
        MEMBER_JSON,
        MEMBER_SCHEMA,
        MEMBER_REGEX,
        MEMBER_GRAMMAR,
        MEMBER_CHOICES,
        MEMBER_TAGS, /* the last one that is a constraint */
        MEMBER_SPACE,
        MEMBER_ANY_ORDER,
        MEMBER_ONLY_NAMED,
        MEMBER_MIN,
        MEMBER_MAX,
        MEMBER_CLOSED,
        MEMBER_BEGIN,
        MEMBER_END,
        MEMBER_N,
};

static const char *const names[MEMBER_N] = {
        [MEMBER_JSON] = "json",       [MEMBER_SCHEMA] = "schema",         [MEMBER_REGEX] = "regex",
        [MEMBER_GRAMMAR] = "grammar", [MEMBER_CHOICES] = "choices",       [MEMBER_TAGS] = "tags",
        [MEMBER_SPACE] = "space",     [MEMBER_ANY_ORDER] = "any_order",   [MEMBER_MIN] = "min",
        [MEMBER_MAX] = "max",         [MEMBER_CLOSED] = "closed",         [MEMBER_BEGIN] = "begin",
        [MEMBER_END] = "end",         [MEMBER_ONLY_NAMED] = "only_named",
};

#define BIT(member) (1u << (member))
#define OF_JSON     (BIT(MEMBER_SPACE) | BIT(MEMBER_ANY_ORDER) | BIT(MEMBER_ONLY_NAMED))
#define OF_TAGS     (BIT(MEMBER_MIN) | BIT(MEMBER_MAX) | BIT(MEMBER_CLOSED))
#define OF_A_TAG    (BIT(MEMBER_BEGIN) | BIT(MEMBER_END))

/* A tag is a sequence of three parts. */
#define TAG_PARTS 3u

/* Each array is made once, as large as it must be. */
struct description_memory {
        struct json_document *json;
        struct structure *tags;         /* the parts of "tags" ... */
        struct structure *tag_parts;    /* ... and theirs */
        uint8_t (*tokens)[TOKEN_BYTES]; /* marks that are control tokens */
        uint32_t token_count;
        struct bytes *schemas; /* of the description, or of each tag */
        struct regex_text **choices;
        uint32_t schema_count, choices_count;
};

struct reading {
        struct description_memory *memory;
        const struct description_tokens *tokens;
        char where[24]; /* "", or "tags[3]: " */
        char *why;
        size_t why_bytes;
};

/* The members of an object. */
struct members {
        uint32_t at[MEMBER_N]; /* JSON_NONE: not given */
        enum member kind;
};

#define REFUSE(in, format, ...)                                                                    \
        error_raise(errtext_set((in)->why, (in)->why_bytes, -EINVAL, "%s" format, (in)->where,     \
                                ##__VA_ARGS__))

static int no_memory(const struct reading *in)
{
        return error_raise(errtext_set(in->why, in->why_bytes, -ENOMEM, "out of memory"));
}

/* ---- which members there are ---- */

static int find_members(const struct reading *in, uint32_t object, struct members *ret_members)
{
        const struct json_document *json = in->memory->json;

        if (json_kind(json, object) != JSON_OBJECT)
                return REFUSE(in, "it is not an object of JSON");
        for (unsigned i = 0; i < MEMBER_N; i++)
                ret_members->at[i] = JSON_NONE;
        for (uint32_t at = json_first(json, object); at != JSON_NONE; at = json_next(json, at)) {
                const char *key = json_key(json, at, NULL);
                unsigned i = 0;

                while (i < MEMBER_N && (!key || strcmp(key, names[i]) != 0))
                        i++;
                if (i == MEMBER_N)
                        return REFUSE(in, "it has the unknown member \"%.40s\"", key ? key : "");
                ret_members->at[i] = at;
        }
        return 0;
}

/* Which constraint it is, and whether the other members go with it. */
static int find_kind(const struct reading *in, bool is_tag, struct members *members)
{
        uint32_t may = is_tag ? OF_A_TAG : 0;
        unsigned count = 0;

        for (unsigned i = 0; i <= MEMBER_TAGS; i++)
                if (members->at[i] != JSON_NONE) {
                        members->kind = i;
                        count++;
                }
        if (count != 1)
                return REFUSE(in,
                              "it has %u of json, schema, regex, grammar, choices and tags; one "
                              "is wanted",
                              count);
        if (is_tag && members->kind == MEMBER_TAGS)
                return REFUSE(in, "a tag cannot have tags");
        if (members->kind <= MEMBER_SCHEMA)
                may |= OF_JSON;
        if (members->kind == MEMBER_TAGS)
                may |= OF_TAGS;
        for (unsigned i = MEMBER_SPACE; i < MEMBER_N; i++)
                if (members->at[i] != JSON_NONE && !(may & BIT(i)))
                        return REFUSE(in, "%s does not go with %s", names[i], names[members->kind]);
        return 0;
}

/* ---- what they are ---- */

static int read_bool(const struct reading *in, const struct members *members, enum member which,
                     bool *ret_bool)
{
        if (members->at[which] != JSON_NONE &&
            !json_bool(in->memory->json, members->at[which], ret_bool))
                return REFUSE(in, "%s is not true or false", names[which]);
        return 0;
}

static int read_count(const struct reading *in, const struct members *members, enum member which,
                      uint32_t *ret_count)
{
        uint64_t count = 0;

        if (members->at[which] == JSON_NONE)
                return 0;
        if (!json_whole(in->memory->json, members->at[which], &count) ||
            count > DESCRIPTION_TAGS_MAX)
                return REFUSE(in, "%s is not a number from 0 to %u", names[which],
                              DESCRIPTION_TAGS_MAX);
        *ret_count = (uint32_t)count;
        return 0;
}

static int read_text(const struct reading *in, const struct members *members, enum member which,
                     struct regex_text *ret_text)
{
        size_t bytes = 0;
        const char *text = json_string(in->memory->json, members->at[which], &bytes);

        if (!text)
                return REFUSE(in, "%s is not a text", names[which]);
        *ret_text = (struct regex_text){ text, (uint32_t)bytes };
        return 0;
}

static int read_schema(const struct reading *in, const struct members *members,
                       struct structure *ret_part)
{
        static const char *const spaces[] = {
                [JSON_SPACE_ONE] = "one", [JSON_SPACE_NONE] = "none", [JSON_SPACE_FREE] = "free"
        };
        struct description_memory *memory = in->memory;
        struct bytes *text = &memory->schemas[memory->schema_count];
        struct json_builder builder = json_build(text);
        unsigned space = JSON_SPACE_ONE;
        int r;

        if (members->at[MEMBER_SPACE] != JSON_NONE) {
                const char *asked = json_string(memory->json, members->at[MEMBER_SPACE], NULL);

                while (space < 3 && (!asked || strcmp(asked, spaces[space]) != 0))
                        space++;
                if (space == 3)
                        return REFUSE(in, "space is not \"one\", \"none\" or \"free\"");
        }
        ret_part->kind = STRUCTURE_SCHEMA;
        ret_part->schema.space = space;
        r = read_bool(in, members, MEMBER_ANY_ORDER, &ret_part->schema.any_order);
        if (!r)
                r = read_bool(in, members, MEMBER_ONLY_NAMED, &ret_part->schema.only_named);
        if (r)
                return error_pass(r);
        memory->schema_count++;
        json_put_node(&builder, memory->json, members->at[MEMBER_SCHEMA]);
        if (json_put_end(&builder))
                return no_memory(in);
        ret_part->text = (struct regex_text){ text->at, (uint32_t)text->count };
        return 0;
}

/* Any value: the schema true. */
static int read_json(const struct reading *in, struct members *members, struct structure *ret_part)
{
        bool is_wanted = false;

        json_bool(in->memory->json, members->at[MEMBER_JSON], &is_wanted);
        if (!is_wanted)
                return REFUSE(in, "json is not true");
        members->at[MEMBER_SCHEMA] = members->at[MEMBER_JSON];
        return error_pass(read_schema(in, members, ret_part));
}

static int read_choices(const struct reading *in, const struct members *members,
                        struct structure *ret_part)
{
        struct description_memory *memory = in->memory;
        uint32_t list = members->at[MEMBER_CHOICES], count = json_count(memory->json, list), i = 0;
        struct regex_text *texts;

        if (json_kind(memory->json, list) != JSON_ARRAY || !count)
                return REFUSE(in, "choices is not a list of texts");
        if (count > DESCRIPTION_CHOICES_MAX)
                return REFUSE(in, "choices has %u texts; it may have %u", count,
                              DESCRIPTION_CHOICES_MAX);
        texts = calloc(count, sizeof(*texts));
        if (!texts)
                return no_memory(in);
        memory->choices[memory->choices_count++] = texts;
        for (uint32_t at = json_first(memory->json, list); at != JSON_NONE;
             at = json_next(memory->json, at), i++) {
                size_t bytes = 0;

                texts[i].bytes = json_string(memory->json, at, &bytes);
                texts[i].count = (uint32_t)bytes;
                if (!texts[i].bytes)
                        return REFUSE(in, "choices has no text at index %u", i);
        }
        *ret_part = (struct structure){ .kind = STRUCTURE_ONE_OF,
                                        .choices = texts,
                                        .choice_count = count };
        return 0;
}

/* Any kind but tags. */
static int read_content(const struct reading *in, struct members *members,
                        struct structure *ret_part)
{
        switch (members->kind) {
        case MEMBER_JSON:
                return error_pass(read_json(in, members, ret_part));
        case MEMBER_SCHEMA:
                return error_pass(read_schema(in, members, ret_part));
        case MEMBER_CHOICES:
                return error_pass(read_choices(in, members, ret_part));
        default:
                ret_part->kind = members->kind == MEMBER_REGEX ? STRUCTURE_REGEX : STRUCTURE_GBNF;
                return error_pass(read_text(in, members, members->kind, &ret_part->text));
        }
}

/* ---- tags ---- */

/* A mark is a text, or a control token that is spelled so. */
static int read_mark(const struct reading *in, const struct members *members, enum member which,
                     struct structure *ret_part)
{
        struct description_memory *memory = in->memory;
        struct regex_text text = { 0 };
        uint32_t token;
        int r = read_text(in, members, which, &text);

        if (!r && !text.count)
                r = REFUSE(in, "%s is empty", names[which]);
        if (r)
                return error_pass(r);
        token = in->tokens->find(in->tokens->arg, text.bytes, text.count);
        if (token != UINT32_MAX) {
                uint8_t *bytes = memory->tokens[memory->token_count++];

                grammar_token_bytes(token, bytes);
                text = (struct regex_text){ (const char *)bytes, TOKEN_BYTES };
        }
        *ret_part = (struct structure){ .kind = STRUCTURE_LITERAL, .text = text };
        return 0;
}

static int read_tag(const struct reading *in, uint32_t node, struct structure *parts)
{
        struct members members;
        int r = find_members(in, node, &members);

        if (!r)
                r = find_kind(in, true, &members);
        if (!r)
                r = read_mark(in, &members, MEMBER_BEGIN, &parts[0]);
        if (!r)
                r = read_content(in, &members, &parts[1]);
        if (!r)
                r = read_mark(in, &members, MEMBER_END, &parts[2]);
        return error_pass(r);
}

static int read_tags(struct reading *in, const struct members *members, struct structure *ret_part)
{
        struct description_memory *memory = in->memory;
        uint32_t list = members->at[MEMBER_TAGS], i = 0;
        int r;

        *ret_part = (struct structure){ .kind = STRUCTURE_TEXT,
                                        .parts = memory->tags,
                                        .count = json_count(memory->json, list),
                                        .max = REGEX_FOREVER };
        r = read_count(in, members, MEMBER_MIN, &ret_part->min);
        if (!r)
                r = read_count(in, members, MEMBER_MAX, &ret_part->max);
        if (!r)
                r = read_bool(in, members, MEMBER_CLOSED, &ret_part->closed);
        if (!r && ret_part->min > ret_part->max)
                r = REFUSE(in, "min is more than max");
        for (uint32_t at = json_first(memory->json, list); !r && at != JSON_NONE;
             at = json_next(memory->json, at), i++) {
                struct structure *parts = &memory->tag_parts[i * TAG_PARTS];

                snprintf(in->where, sizeof(in->where), "tags[%u]: ", i);
                memory->tags[i] = (struct structure){ .kind = STRUCTURE_SEQUENCE,
                                                      .parts = parts,
                                                      .count = TAG_PARTS };
                r = read_tag(in, at, parts);
        }
        return error_pass(r);
}

/* Takes the memory for so many tags, or for a description without tags. */
static int take_memory(struct reading *in, const struct members *members)
{
        struct description_memory *memory = in->memory;
        uint32_t list = members->at[MEMBER_TAGS], tags = json_count(memory->json, list);

        if (members->kind == MEMBER_TAGS &&
            (json_kind(memory->json, list) != JSON_ARRAY || !tags || tags > DESCRIPTION_TAGS_MAX))
                return REFUSE(in, "tags is not a list of 1 to %u tags", DESCRIPTION_TAGS_MAX);
        memory->tags = calloc(tags + 1ul, sizeof(*memory->tags));
        memory->tag_parts = calloc(tags * TAG_PARTS + 1ul, sizeof(*memory->tag_parts));
        memory->tokens = calloc(tags * 2ul + 1, sizeof(*memory->tokens));
        memory->schemas = calloc(tags + 1ul, sizeof(*memory->schemas));
        memory->choices = calloc(tags + 1ul, sizeof(struct regex_text *));
        return memory->tags && memory->tag_parts && memory->tokens && memory->schemas &&
                               memory->choices
                       ? 0
                       : no_memory(in);
}

static int read_root(struct reading *in, struct structure *ret_root)
{
        struct members members;
        int r = find_members(in, 0, &members);

        if (!r)
                r = find_kind(in, false, &members);
        if (!r)
                r = take_memory(in, &members);
        if (r)
                return error_pass(r);
        return error_pass(members.kind == MEMBER_TAGS ? read_tags(in, &members, ret_root)
                                                      : read_content(in, &members, ret_root));
}

int description_open(const char *text, size_t bytes, const struct description_tokens *tokens,
                     struct description *ret_description, char *why, size_t why_bytes)
{
        struct reading in = { .tokens = tokens, .why = why, .why_bytes = why_bytes };
        struct description description = { .memory = calloc(1, sizeof(*in.memory)) };
        int r;

        in.memory = description.memory;
        if (!in.memory)
                return no_memory(&in);
        r = json_parse(text, bytes, JSON_SCHEMA_NODES, &in.memory->json, why, why_bytes);
        if (!r)
                r = read_root(&in, &description.root);
        if (r)
                description_close(&description);
        else
                *ret_description = description;
        return error_pass(r);
}

void description_close(struct description *description)
{
        struct description_memory *memory = description->memory;

        for (uint32_t i = 0; i < memory->schema_count; i++)
                bytes_deinit(&memory->schemas[i]);
        for (uint32_t i = 0; i < memory->choices_count; i++)
                free(memory->choices[i]);
        json_free(memory->json);
        free(memory->tags);
        free(memory->tag_parts);
        free(memory->tokens);
        free(memory->schemas);
        free(memory->choices);
        free(memory);
        description->memory = NULL;
}

void description_explain(const struct description *description, const char *path, char *why,
                         size_t why_bytes)
{
        static const char head[] = "part \"", foot[] = "\": ";
        const char *place = why + sizeof(head) - 1, *end = strstr(why, foot);
        char what[400], where[24] = "";
        unsigned tag;

        if (strncmp(why, head, sizeof(head) - 1) != 0 || !end)
                return;
        if (description->root.kind == STRUCTURE_TEXT && !strncmp(place, path, strlen(path)) &&
            sscanf(place + strlen(path), "/%u", &tag) == 1)
                snprintf(where, sizeof(where), "tags[%u]: ", tag);
        snprintf(what, sizeof(what), "%s", end + sizeof(foot) - 1);
        snprintf(why, why_bytes, "%s%s", where, what);
}
