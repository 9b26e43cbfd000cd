/* The wish of a request: its tools, as JSON with the keys in their order. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/edge/call-form.h"
#include "json/builder.h"

#define ANY_ARGUMENTS "{\"type\":\"object\"}"
#define NO_ARGUMENTS  "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}"

#define REFUSE(format, ...) error_raise(errtext_set(why, why_bytes, -EINVAL, format, ##__VA_ARGS__))

static void put_value(struct json_builder *to, const struct value *value);

static void put_members(struct json_builder *to, const struct map *map)
{
        for (uint32_t i = 0; i < map->count; i++) {
                const struct map_entry *entry = &map->entries[i];

                if (entry->key.kind != VALUE_STRING)
                        continue;
                json_put_key_bytes(to, entry->key.text->bytes, entry->key.text->count);
                put_value(to, &entry->value);
        }
}

/* The recursion is as deep as a value may be: VALUE_DEPTH_MAX. */
static void put_value(struct json_builder *to, const struct value *value)
{
        switch (value->kind) {
        case VALUE_BOOL:
                json_put_bool(to, value->truth);
                break;
        case VALUE_INTEGER:
                json_put_int(to, value->integer);
                break;
        case VALUE_FLOAT:
                json_put_float(to, value->real);
                break;
        case VALUE_STRING:
                json_put_text(to, value->text->bytes, value->text->count);
                break;
        case VALUE_LIST:
                json_put_array(to);
                for (uint32_t i = 0; i < value->list->count; i++)
                        put_value(to, &value->list->items[i]);
                json_put_array_end(to);
                break;
        case VALUE_MAP:
                json_put_object(to);
                put_members(to, value->map);
                json_put_object_end(to);
                break;
        default:
                json_put_null(to);
        }
}

static bool equals(const struct value *value, const struct text *text)
{
        return value->kind == VALUE_STRING && value->text->count == text->count &&
               !memcmp(value->text->bytes, text->bytes, text->count);
}

static bool is_word(const struct value *value, const char *word)
{
        return value && value->kind == VALUE_STRING && value->text->count == strlen(word) &&
               !memcmp(value->text->bytes, word, value->text->count);
}

static bool may_be_called(const struct call_question *question, const struct text *name)
{
        const struct value *names = &question->names;

        if (names->kind != VALUE_LIST)
                return true;
        for (uint32_t i = 0; i < names->list->count; i++)
                if (equals(&names->list->items[i], name))
                        return true;
        return false;
}

/* The map with the name and the schema; some clients send it without the map around it. */
static struct value function_of(struct value tool)
{
        const struct value *function = value_member(tool, "function");

        return function ? *function : tool;
}

static bool is_strict(const struct value *function)
{
        const struct value *strict = value_member(*function, "strict");

        return strict && strict->kind == VALUE_BOOL && strict->truth;
}

static const struct value *name_of(const struct value *function)
{
        const struct value *name = value_member(*function, "name");

        return name && name->kind == VALUE_STRING && name->text->count ? name : NULL;
}

static bool is_free(const struct call_question *question)
{
        const struct value *tools = &question->tools;

        if (question->choice == WIRE_TOOLS_REQUIRED || question->max || question->constrained ||
            question->names.kind == VALUE_LIST)
                return false;
        for (uint32_t i = 0; i < tools->list->count; i++) {
                struct value function = function_of(tools->list->items[i]);

                if (is_strict(&function))
                        return false;
        }
        return true;
}

/* Arguments are an object, also where the schema only says what its members are. */
static int put_schema(struct json_builder *to, const struct value *function,
                      const struct text *name, char *why, size_t why_bytes)
{
        const struct value *schema = value_member(*function, "parameters");
        const struct value *type;

        schema = schema ? schema : value_member(*function, "input_schema");
        if (!schema || schema->kind == VALUE_NONE) {
                json_put_raw(to, NO_ARGUMENTS);
                return 0;
        }
        type = value_member(*schema, "type");
        if (schema->kind != VALUE_MAP || (type && !is_word(type, "object")))
                return REFUSE("tool \"%.60s\": its parameters are no schema of an object",
                              text_shown(name).text);
        json_put_object(to);
        if (!type)
                json_put_key_word(to, "type", "object");
        put_members(to, schema->map);
        json_put_object_end(to);
        return 0;
}

static int put_tool(const struct call_question *question, const struct value *function,
                    struct json_builder *to, char *why, size_t why_bytes)
{
        const struct value *name = name_of(function);
        int r = 0;

        if (!name)
                return REFUSE("a tool has no name");
        json_put_object(to);
        json_put_key_text(to, "name", name->text->bytes, name->text->count);
        json_put_key(to, "schema");
        if (question->choice == WIRE_TOOLS_AUTO && !is_strict(function))
                json_put_raw(to, ANY_ARGUMENTS);
        else
                r = put_schema(to, function, name->text, why, why_bytes);
        json_put_object_end(to);
        return r;
}

/* Each name must be that of a tool. */
static int check_names(const struct call_question *question, char *why, size_t why_bytes)
{
        const struct value *names = &question->names, *tools = &question->tools;

        for (uint32_t i = 0; names->kind == VALUE_LIST && i < names->list->count; i++) {
                const struct value *wanted = &names->list->items[i];
                bool found = false;

                for (uint32_t k = 0; !found && k < tools->list->count; k++) {
                        struct value function = function_of(tools->list->items[k]);
                        const struct value *name = name_of(&function);

                        found = name && equals(wanted, name->text);
                }
                if (!found)
                        return REFUSE("no tool has the name \"%.60s\"",
                                      text_shown(wanted->text).text);
        }
        return 0;
}

static int put_tools(const struct call_question *question, struct json_builder *to, char *why,
                     size_t why_bytes)
{
        const struct list *tools = question->tools.list;
        int r = 0;

        json_put_key(to, "tools");
        json_put_array(to);
        for (uint32_t i = 0; !r && i < tools->count; i++) {
                struct value function = function_of(tools->items[i]);
                const struct value *name = name_of(&function);

                if (!name || may_be_called(question, name->text))
                        r = put_tool(question, &function, to, why, why_bytes);
        }
        json_put_array_end(to);
        return error_pass(r);
}

int call_wish_put(const struct call_question *question, struct bytes *to, char *why,
                  size_t why_bytes)
{
        struct json_builder builder = json_build(to);
        int r;

        if (question->choice == WIRE_TOOLS_NONE)
                return 0;
        if (question->tools.kind != VALUE_LIST || !question->tools.list->count)
                return question->choice == WIRE_TOOLS_REQUIRED
                               ? REFUSE("there are no tools to call")
                               : 0;
        if (is_free(question))
                return 0;
        r = check_names(question, why, why_bytes);
        if (r)
                return error_pass(r);
        json_put_object(&builder);
        json_put_key_bool(&builder, "required", question->choice == WIRE_TOOLS_REQUIRED);
        json_put_key_uint(&builder, "max", question->max);
        r = put_tools(question, &builder, why, why_bytes);
        json_put_object_end(&builder);
        return r ? error_pass(r) : error_pass(json_put_end(&builder));
}
