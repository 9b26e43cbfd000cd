#include "bridge/core/constraint.h"

#include <errno.h>

#include "json/reader.h"

#define SCHEMA_NODES_MAX 500000u
#define WHY_BYTES        128u

/* The members of a description that requests have a field for. */
enum member { SCHEMA, REGEX, GRAMMAR, CHOICES };
static const char *const members[] = {
        [SCHEMA] = "schema",
        [REGEX] = "regex",
        [GRAMMAR] = "grammar",
        [CHOICES] = "choices",
};

/* What one field asks for. */
struct wish {
        const char *name; /* of the field */
        enum member member;
        uint32_t node;      /* JSON_NONE: a schema that every object obeys */
        bool without_space; /* a schema: between its values ... */
        bool open;          /* ... and with members that it does not name */
};

static void describe(struct call *call, const struct wish *wish, const struct json_document *json,
                     struct smv_generate *options)
{
        struct bytes text = { 0 };
        struct json_builder to = json_build(&text);

        json_put_object(&to);
        json_put_key(&to, members[wish->member]);
        if (wish->node == JSON_NONE)
                json_put_raw(&to, "{\"type\":\"object\"}");
        else
                json_put_node(&to, json, wish->node);
        if (wish->without_space && wish->member == SCHEMA)
                json_put_key_word(&to, "space", "none");
        if (!wish->open && wish->member == SCHEMA && wish->node != JSON_NONE)
                json_put_key_bool(&to, "only_named", true);
        json_put_object_end(&to);
        if (json_put_end(&to))
                call->arena.failed = true;
        else
                options->constraint = arena_copy(&call->arena, text.at, text.count).at;
        options->constraint_bytes = text.count;
        call->constrained_by = wish->name;
        bytes_deinit(&text);
}

/* A schema that is sent as the text of its JSON, as clients of vLLM do. */
static void describe_text(struct call *call, struct fields *fields, const struct wish *wish,
                          struct smv_generate *options)
{
        struct text text = text_of(fields->json, wish->node);
        struct json_document *json = NULL;
        struct wish parsed = *wish;
        char why[WHY_BYTES];
        int r = json_parse(text.at, text.bytes, SCHEMA_NODES_MAX, &json, why, sizeof(why));

        parsed.node = 0;
        if (!r)
                describe(call, &parsed, json, options);
        else if (r == -ENOMEM)
                call->arena.failed = true;
        else
                fields_fail(fields, FAILURE_REQUEST, wish->name, "%s is no JSON: %s", wish->name,
                            why);
        json_free(json);
}

static void take(struct call *call, struct fields *fields, const struct wish *wish,
                 struct smv_generate *options)
{
        if (fields->failed)
                return;
        if (call->constrained_by)
                fields_fail(fields, FAILURE_REQUEST, wish->name,
                            "%s and %s both constrain the answer; a request may have one of them",
                            call->constrained_by, wish->name);
        else if (wish->member == SCHEMA && json_kind(fields->json, wish->node) == JSON_STRING)
                describe_text(call, fields, wish, options);
        else
                describe(call, wish, fields->json, options);
}

void constraint_read_format(struct call *call, struct fields *fields, uint32_t format,
                            const char *name, struct smv_generate *options)
{
        struct text type = text_of(fields->json, json_member(fields->json, format, "type"));
        uint32_t inner = field_of(fields, format, "json_schema");
        uint32_t schema = field_of(fields, inner != JSON_NONE ? inner : format, "schema");
        struct wish wish = { name, SCHEMA, schema, false };

        if (!json_count(fields->json, format) || text_is(type, "text"))
                return;
        if (!text_is(type, "json_schema") && !text_is(type, "json_object"))
                fields_fail(fields, FAILURE_UNSUPPORTED, name,
                            "%s has the type \"%.40s\"; it may be text, json_object or "
                            "json_schema",
                            name, type.at ? type.at : "");
        else if (schema == JSON_NONE && text_is(type, "json_schema"))
                fields_fail(fields, FAILURE_REQUEST, name, "%s has no schema", name);
        else
                take(call, fields, &wish, options);
}

void constraint_read_ollama(struct call *call, struct fields *fields, struct smv_generate *options)
{
        uint32_t format = field_asked(fields, 0, "format");
        struct wish wish = { "format", SCHEMA, JSON_NONE, false };

        if (format == JSON_NONE)
                return;
        if (json_kind(fields->json, format) == JSON_OBJECT)
                wish.node = format;
        else if (!text_is(text_of(fields->json, format), "json"))
                fields_fail(fields, FAILURE_REQUEST, wish.name,
                            "format must be \"json\" or a schema");
        take(call, fields, &wish, options);
}

/* A member of vLLM's structured_outputs; json_object is one without a node of its own. */
static void read_structured(struct call *call, struct fields *fields, struct smv_generate *options)
{
        static const struct {
                const char *name, *param;
                enum member member;
        } rows[] = {
                { "json", "structured_outputs.json", SCHEMA },
                { "regex", "structured_outputs.regex", REGEX },
                { "choice", "structured_outputs.choice", CHOICES },
                { "grammar", "structured_outputs.grammar", GRAMMAR },
        };
        uint32_t object = field_object(fields, 0, "structured_outputs");
        struct wish wish = { .name = "structured_outputs.json_object", .node = JSON_NONE };
        bool any = false, only_named = true;

        field_bool(fields, object, "disable_any_whitespace", &wish.without_space);
        field_bool(fields, object, "disable_additional_properties", &only_named);
        wish.open = !only_named;
        if (field_bool(fields, object, "json_object", &any) && any)
                take(call, fields, &wish, options);
        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                wish.name = rows[i].param;
                wish.member = rows[i].member;
                wish.node = field_asked(fields, object, rows[i].name);
                if (wish.node != JSON_NONE)
                        take(call, fields, &wish, options);
        }
        field_refuse(fields, object, "whitespace_pattern", "only disable_any_whitespace is known");
        field_refuse(fields, object, "structural_tag", "the daemon does not have it yet");
}

void constraint_read_extras(struct call *call, struct fields *fields, struct smv_generate *options)
{
        static const struct {
                const char *name;
                enum member member;
        } rows[] = {
                { "json_schema", SCHEMA },     { "guided_json", SCHEMA },    { "regex", REGEX },
                { "guided_regex", REGEX },     { "grammar", GRAMMAR },       { "ebnf", GRAMMAR },
                { "guided_grammar", GRAMMAR }, { "guided_choice", CHOICES },
        };
        struct wish wish = { 0 };

        for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
                wish.name = rows[i].name;
                wish.member = rows[i].member;
                wish.node = field_asked(fields, 0, rows[i].name);
                if (wish.node != JSON_NONE)
                        take(call, fields, &wish, options);
        }
        field_refuse(fields, 0, "guided_whitespace_pattern",
                     "only structured_outputs.disable_any_whitespace is known");
        read_structured(call, fields, options);
}

void constraint_settle(const struct call *call, struct fields *fields,
                       const struct smv_generate *options)
{
        if (call->constrained_by && options->tool_choice == SMV_TOOLS_REQUIRED)
                fields_fail(fields, FAILURE_REQUEST, call->constrained_by,
                            "%s does not go with a tool_choice that asks for a call: the answer is "
                            "calls only",
                            call->constrained_by);
}
