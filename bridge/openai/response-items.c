#include "bridge/openai/response-items.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "bridge/core/tools.h"
#include "bridge/openai/messages.h"
#include "bridge/openai/tool-choice.h"
#include "json/builder.h"

#define PARAM_BYTES 48u

/* The state between items that belong together. */
struct reading {
        struct turn *assistant; /* the turn that further calls join; NULL: none */
        struct text reasoning;  /* for the next turn of the assistant */
        bool stored;            /* the items are our own: they may have RESPONSE_CONTINUES */
        bool continues;         /* the next message goes on where the last turn ends */
};

static const char *const text_kinds[] = { "input_text",   "output_text",    "text",
                                          "summary_text", "reasoning_text", NULL };

/* What follows belongs to another turn. */
static void end_turn(struct reading *reading)
{
        *reading = (struct reading){ .stored = reading->stored };
}

static struct turn *assistant_turn(struct conversation *conversation, struct reading *reading)
{
        if (reading->assistant)
                return reading->assistant;
        reading->assistant = conversation_turn(conversation, TURN_ASSISTANT);
        if (reading->assistant) {
                reading->assistant->reasoning = reading->reasoning;
                reading->reasoning = (struct text){ 0 };
        }
        return reading->assistant;
}

/* The message of a response that has continued the turn before it. */
static void read_continuation(struct fields *fields, struct conversation *conversation,
                              struct reading *reading, uint32_t item, const char *param)
{
        struct turn *turn = conversation->last_turn;
        struct text more = { 0 };

        if (!turn->reasoning.at)
                turn->reasoning = reading->reasoning;
        *reading = (struct reading){ .assistant = turn, .stored = true };
        if (openai_read_content(fields, conversation, json_member(fields->json, item, "content"),
                                text_kinds, param, &more))
                conversation_add_text(conversation, &turn->content, more, "");
}

static void read_message(struct fields *fields, struct conversation *conversation,
                         struct reading *reading, uint32_t item, const char *param)
{
        struct text role = text_of(fields->json, json_member(fields->json, item, "role"));
        struct turn *turn;

        if (text_is(role, "assistant") && reading->continues) {
                read_continuation(fields, conversation, reading, item, param);
                return;
        }
        if (text_is(role, "assistant")) {
                reading->assistant = NULL;
                turn = assistant_turn(conversation, reading);
        } else if (text_is(role, "user")) {
                turn = conversation_turn(conversation, TURN_USER);
        } else if (text_is(role, "system") || text_is(role, "developer")) {
                turn = conversation_turn(conversation, TURN_SYSTEM);
        } else {
                fields_fail(fields, FAILURE_REQUEST, param,
                            "%s.role must be user, assistant, system or developer", param);
                return;
        }
        if (turn && turn->role != TURN_ASSISTANT)
                end_turn(reading);
        if (turn)
                openai_read_content(fields, conversation,
                                    json_member(fields->json, item, "content"), text_kinds, param,
                                    &turn->content);
}

/* The input of a custom tool is any text.  Its call has an object with this text, as all calls. */
static struct text input_object(struct conversation *conversation, struct text input)
{
        struct bytes object = { 0 };
        struct json_builder builder = json_build(&object);
        struct text copy = { 0 };

        json_put_object(&builder);
        json_put_key_text(&builder, "input", input.at ? input.at : "", input.bytes);
        json_put_object_end(&builder);
        if (!json_put_end(&builder))
                copy = arena_copy(conversation->arena, object.at, object.count);
        bytes_deinit(&object);
        return copy;
}

static void read_call(struct fields *fields, struct conversation *conversation,
                      struct reading *reading, uint32_t item, bool is_custom)
{
        const char *member = is_custom ? "input" : "arguments";
        struct turn *turn = assistant_turn(conversation, reading);
        struct turn_call *call = turn ? conversation_call(conversation, turn) : NULL;

        if (!call)
                return;
        call->id = text_of(fields->json, json_member(fields->json, item, "call_id"));
        call->name = text_of(fields->json, json_member(fields->json, item, "name"));
        call->arguments = text_of(fields->json, json_member(fields->json, item, member));
        if (is_custom)
                call->arguments = input_object(conversation, call->arguments);
        if (!call->name.at)
                fields_fail(fields, FAILURE_REQUEST, "input", "a function_call needs a name");
}

static void read_output(struct fields *fields, struct conversation *conversation,
                        struct reading *reading, uint32_t item, const char *param)
{
        struct turn *turn = conversation_turn(conversation, TURN_TOOL);

        end_turn(reading);
        if (!turn)
                return;
        turn->call_id = text_of(fields->json, json_member(fields->json, item, "call_id"));
        openai_read_content(fields, conversation, json_member(fields->json, item, "output"),
                            text_kinds, param, &turn->content);
}

/* The text is in `content`; if a server hides it, there is at most a summary. */
static void read_reasoning(struct fields *fields, struct conversation *conversation,
                           struct reading *reading, uint32_t item, const char *param)
{
        uint32_t content = field_of(fields, item, "content");

        if (!json_count(fields->json, content))
                content = field_of(fields, item, "summary");
        reading->assistant = NULL;
        openai_read_content(fields, conversation, content, text_kinds, param, &reading->reasoning);
}

static void read_item(struct fields *fields, struct conversation *conversation,
                      struct reading *reading, uint32_t item, const char *param)
{
        struct text type = text_of(fields->json, json_member(fields->json, item, "type"));

        if (json_kind(fields->json, item) != JSON_OBJECT)
                fields_fail(fields, FAILURE_REQUEST, param, "%s must be an object", param);
        else if (!type.at || text_is(type, "message"))
                read_message(fields, conversation, reading, item, param);
        else if (text_is(type, "function_call"))
                read_call(fields, conversation, reading, item, false);
        else if (text_is(type, "custom_tool_call"))
                read_call(fields, conversation, reading, item, true);
        else if (text_is(type, "function_call_output") || text_is(type, "custom_tool_call_output"))
                read_output(fields, conversation, reading, item, param);
        else if (text_is(type, "reasoning"))
                read_reasoning(fields, conversation, reading, item, param);
        else if (reading->stored && text_is(type, RESPONSE_CONTINUES))
                reading->continues =
                        conversation->last_turn && conversation->last_turn->role == TURN_ASSISTANT;
        else
                log_limited(LOG_INFO, "item_skipped type=%s", type.at);
}

void response_read_input(struct fields *fields, struct conversation *conversation, uint32_t input,
                         bool stored)
{
        struct reading reading = { .stored = stored };
        char param[PARAM_BYTES];
        struct turn *turn;
        unsigned index = 0;

        if (json_kind(fields->json, input) == JSON_STRING) {
                turn = conversation_turn(conversation, TURN_USER);
                if (turn)
                        turn->content = text_of(fields->json, input);
                return;
        }
        if (json_kind(fields->json, input) != JSON_ARRAY) {
                fields_fail(fields, FAILURE_REQUEST, "input",
                            "input must be a string or an array of items");
                return;
        }
        for (uint32_t item = json_first(fields->json, input); item != JSON_NONE && !fields->failed;
             item = json_next(fields->json, item)) {
                snprintf(param, sizeof(param), "input[%u]", index++);
                read_item(fields, conversation, &reading, item, param);
        }
}

void response_read_instructions(struct fields *fields, struct conversation *conversation)
{
        struct text instructions = { 0 };
        struct turn *turn;

        if (!field_text(fields, 0, "instructions", &instructions) || !instructions.bytes)
                return;
        turn = conversation_turn(conversation, TURN_SYSTEM);
        if (turn)
                turn->content = instructions;
}

static void read_tool(struct fields *fields, struct conversation *conversation, uint32_t node,
                      unsigned index)
{
        struct text type = text_of(fields->json, json_member(fields->json, node, "type"));
        struct tool *tool;

        if (!text_is(type, "function")) {
                log_limited(LOG_INFO, "tool_skipped type=%s", type.at ? type.at : "");
                return;
        }
        tool = conversation_tool(conversation);
        if (!tool)
                return;
        tool->name = text_of(fields->json, json_member(fields->json, node, "name"));
        tool->description = text_of(fields->json, json_member(fields->json, node, "description"));
        tool->schema = field_of(fields, node, "parameters");
        tools_read_strict(fields, conversation, node, tool);
        if (!tool->name.bytes)
                fields_fail(fields, FAILURE_REQUEST, "tools", "tools[%u].name must be a string",
                            index);
}

void response_read_tools(struct fields *fields, struct conversation *conversation,
                         struct smv_generate *options)
{
        uint32_t tools = field_array(fields, 0, "tools");
        unsigned index = 0;

        if (!openai_read_choice(fields, conversation, options))
                return;
        for (uint32_t tool = json_first(fields->json, tools); tool != JSON_NONE && !fields->failed;
             tool = json_next(fields->json, tool))
                read_tool(fields, conversation, tool, index++);
}

void response_read_vars(struct fields *fields, struct conversation *conversation)
{
        uint32_t reasoning = field_object(fields, 0, "reasoning");
        struct text effort = { 0 };

        openai_read_vars(fields, conversation);
        if (field_text(fields, reasoning, "effort", &effort))
                openai_set_effort(conversation, effort);
}
