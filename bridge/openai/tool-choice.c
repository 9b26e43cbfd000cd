#include "bridge/openai/tool-choice.h"

#include "bridge/core/tools.h"

static struct text name_of(const struct fields *fields, uint32_t tool)
{
        uint32_t function = field_of(fields, tool, "function");

        return text_of(fields->json,
                       json_member(fields->json, function != JSON_NONE ? function : tool, "name"));
}

static bool refuse(struct fields *fields)
{
        return fields_fail(fields, FAILURE_REQUEST, "tool_choice",
                           "tool_choice must be auto, none, required, a function with its name, or "
                           "allowed_tools with a mode and tools");
}

static bool refuse_type(struct fields *fields, struct text type)
{
        return fields_fail(
                fields, FAILURE_UNSUPPORTED, "tool_choice",
                "tool_choice has the type \"%.40s\"; only function and allowed_tools are "
                "supported",
                type.at);
}

/* A mode.  False: none, or refused. */
static bool read_word(struct fields *fields, struct text word, struct smv_generate *options)
{
        if (text_is(word, "none"))
                return false;
        if (text_is(word, "required") || text_is(word, "any"))
                options->tool_choice = SMV_TOOLS_REQUIRED;
        else if (!text_is(word, "auto"))
                return refuse(fields);
        return true;
}

static bool read_allowed(struct fields *fields, struct conversation *conversation, uint32_t node,
                         struct smv_generate *options)
{
        uint32_t inner = field_of(fields, node, "allowed_tools"), tools;
        struct text mode;

        inner = inner != JSON_NONE ? inner : node;
        tools = json_member(fields->json, inner, "tools");
        mode = text_of(fields->json, json_member(fields->json, inner, "mode"));
        if (json_kind(fields->json, tools) != JSON_ARRAY || !json_count(fields->json, tools) ||
            !mode.at || text_is(mode, "none"))
                return refuse(fields);
        for (uint32_t tool = json_first(fields->json, tools); tool != JSON_NONE && !fields->failed;
             tool = json_next(fields->json, tool))
                tools_allow(fields, conversation, name_of(fields, tool),
                            json_count(fields->json, tools), options);
        return !fields->failed && read_word(fields, mode, options);
}

static bool read_object(struct fields *fields, struct conversation *conversation, uint32_t node,
                        struct smv_generate *options)
{
        struct text type = text_of(fields->json, json_member(fields->json, node, "type"));

        if (text_is(type, "allowed_tools"))
                return read_allowed(fields, conversation, node, options);
        if (type.at && !text_is(type, "function"))
                return refuse_type(fields, type);
        options->tool_choice = SMV_TOOLS_REQUIRED;
        options->calls_max = 1;
        tools_allow(fields, conversation, name_of(fields, node), 1, options);
        return !fields->failed;
}

bool openai_read_choice(struct fields *fields, struct conversation *conversation,
                        struct smv_generate *options)
{
        uint32_t node = field_of(fields, 0, "tool_choice");

        if (node == JSON_NONE)
                return true;
        if (json_kind(fields->json, node) == JSON_OBJECT)
                return read_object(fields, conversation, node, options);
        return read_word(fields, text_of(fields->json, node), options);
}
