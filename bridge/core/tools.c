#include "bridge/core/tools.h"

#include <samovar/protocol.h>

#include "json/reader.h"

#define ARGUMENT_NODES_MAX 65536u
#define WHY_BYTES          128u

bool tools_read_role(struct fields *fields, uint32_t message, const char *param,
                     enum turn_role *ret_role)
{
        static const struct {
                const char *name;
                enum turn_role role;
        } roles[] = { { "system", TURN_SYSTEM }, { "developer", TURN_SYSTEM },
                      { "user", TURN_USER },     { "assistant", TURN_ASSISTANT },
                      { "tool", TURN_TOOL },     { "function", TURN_TOOL } };
        struct text role = text_of(fields->json, json_member(fields->json, message, "role"));

        for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
                if (text_is(role, roles[i].name)) {
                        *ret_role = roles[i].role;
                        return true;
                }
        return fields_fail(fields, FAILURE_REQUEST, param,
                           "%s.role must be system, developer, user, assistant, tool or function",
                           param);
}

static void read_call(struct fields *fields, struct conversation *conversation, struct turn *turn,
                      uint32_t node, const char *param)
{
        uint32_t function = json_member(fields->json, node, "function");
        uint32_t arguments = json_member(fields->json, function, "arguments");
        struct turn_call *call = conversation_call(conversation, turn);

        if (!call)
                return;
        call->id = text_of(fields->json, json_member(fields->json, node, "id"));
        call->name = text_of(fields->json, json_member(fields->json, function, "name"));
        call->arguments = text_of(fields->json, arguments);
        if (json_kind(fields->json, arguments) == JSON_OBJECT)
                call->arguments_node = arguments;
        if (!call->name.at)
                fields_fail(fields, FAILURE_REQUEST, param,
                            "%s.tool_calls: each call needs function.name, a string", param);
}

void tools_read_calls(struct fields *fields, struct conversation *conversation, struct turn *turn,
                      uint32_t message, const char *param)
{
        uint32_t calls = field_of(fields, message, "tool_calls");

        for (uint32_t call = json_first(fields->json, calls); call != JSON_NONE;
             call = json_next(fields->json, call))
                read_call(fields, conversation, turn, call, param);
}

void tools_read_strict(struct fields *fields, struct conversation *conversation, uint32_t object,
                       struct tool *tool)
{
        field_bool(fields, object, "strict", &tool->strict);
        conversation->strict |= tool->strict;
}

void tools_allow(struct fields *fields, struct conversation *conversation, struct text name,
                 uint32_t most, struct smv_generate *options)
{
        const char **names = (const char **)(uintptr_t)options->allowed_tools;

        if (!name.bytes) {
                fields_fail(fields, FAILURE_REQUEST, "tool_choice",
                            "tool_choice has a tool without a name");
                return;
        }
        if (options->allowed_tool_count == SMV_ALLOWED_TOOLS_MAX) {
                fields_fail(fields, FAILURE_REQUEST, "tool_choice",
                            "tool_choice names more than %u tools", SMV_ALLOWED_TOOLS_MAX);
                return;
        }
        if (!names)
                names = arena_alloc(conversation->arena, most * sizeof(*names));
        if (!names)
                return;
        names[options->allowed_tool_count++] = name.at;
        options->allowed_tools = names;
}

static bool has_tool(const struct conversation *conversation, const char *name)
{
        for (const struct tool *tool = conversation->tools; tool; tool = tool->next)
                if (text_is(tool->name, name))
                        return true;
        return false;
}

void tools_settle(struct fields *fields, const struct conversation *conversation, bool one_call,
                  struct smv_generate *options)
{
        if (!conversation->tool_count && options->tool_choice == SMV_TOOLS_REQUIRED)
                fields_fail(fields, FAILURE_REQUEST, "tool_choice",
                            "tool_choice asks for a call, but there are no tools");
        if (conversation->tool_count > SMV_MESSAGES_MAX)
                fields_fail(fields, FAILURE_REQUEST, "tools",
                            "tools has %zu elements; it may have %u",
                            (size_t)conversation->tool_count, SMV_MESSAGES_MAX);
        for (size_t i = 0; i < options->allowed_tool_count && !fields->failed; i++)
                if (!has_tool(conversation, options->allowed_tools[i]))
                        fields_fail(fields, FAILURE_REQUEST, "tool_choice",
                                    "tool_choice names the tool \"%.60s\", which is not one of "
                                    "tools",
                                    options->allowed_tools[i]);
        if (one_call && conversation->tool_count)
                options->calls_max = 1;
}

static void read_tool(struct fields *fields, struct conversation *conversation, uint32_t node,
                      unsigned index)
{
        struct text type = text_of(fields->json, json_member(fields->json, node, "type"));
        uint32_t function = json_member(fields->json, node, "function");
        struct tool *tool;

        if (type.at && !text_is(type, "function")) {
                fields_fail(fields, FAILURE_UNSUPPORTED, "tools",
                            "tools[%u] has the type \"%.40s\"; only function is supported", index,
                            type.at);
                return;
        }
        tool = conversation_tool(conversation);
        if (!tool)
                return;
        tool->name = text_of(fields->json, json_member(fields->json, function, "name"));
        tool->description =
                text_of(fields->json, json_member(fields->json, function, "description"));
        tool->schema = field_of(fields, function, "parameters");
        tools_read_strict(fields, conversation, function, tool);
        if (!tool->name.bytes)
                fields_fail(fields, FAILURE_REQUEST, "tools",
                            "tools[%u].function.name must be a string", index);
}

void tools_read(struct fields *fields, struct conversation *conversation)
{
        uint32_t tools = field_array(fields, 0, "tools");
        unsigned index = 0;

        for (uint32_t tool = json_first(fields->json, tools); tool != JSON_NONE && !fields->failed;
             tool = json_next(fields->json, tool))
                read_tool(fields, conversation, tool, index++);
}

void tools_put_arguments(struct json_builder *to, const struct bytes *arguments)
{
        struct json_document *json = NULL;
        char why[WHY_BYTES];

        if (arguments->count &&
            !json_parse(arguments->at, arguments->count, ARGUMENT_NODES_MAX, &json, why,
                        sizeof(why)) &&
            json_kind(json, 0) == JSON_OBJECT) {
                json_put_node(to, json, 0);
        } else {
                json_put_object(to);
                json_put_object_end(to);
        }
        json_free(json);
}

struct text tools_cut_text(struct arena *arena, const struct run_call *made)
{
        return arena_format(arena, "{\"name\": \"%.*s\", \"arguments\": %.*s",
                            (int)made->name.count, made->name.at, (int)made->arguments.count,
                            made->arguments.at ? made->arguments.at : "");
}
