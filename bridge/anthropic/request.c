#include "bridge/anthropic/request.h"

#include <stdio.h>
#include <string.h>

#include <samovar/protocol.h>

#include "bridge/core/constraint.h"
#include "bridge/core/penalties.h"
#include "bridge/core/sampling.h"
#include "bridge/core/tools.h"

#define PARAM_BYTES     48u
#define TEMPERATURE_MAX 1

/* ---- blocks ---- */

static bool is_type(const struct fields *fields, uint32_t block, const char *word)
{
        return text_is(text_of(fields->json, json_member(fields->json, block, "type")), word);
}

static bool refuse_block(struct fields *fields, uint32_t block, const char *param)
{
        struct text type = text_of(fields->json, json_member(fields->json, block, "type"));

        return fields_fail(fields, FAILURE_UNSUPPORTED, param,
                           "%s has a block of the type \"%.40s\", which is not supported here: the "
                           "model reads text only",
                           param, type.at ? type.at : "");
}

static bool need_text(struct fields *fields, uint32_t block, const char *name, const char *param,
                      struct text *ret_text)
{
        *ret_text = text_of(fields->json, json_member(fields->json, block, name));
        if (ret_text->at)
                return true;
        return fields_fail(fields, FAILURE_REQUEST, param, "%s: a block needs %s, a string", param,
                           name);
}

/* A tool_reference names a tool that was searched for; the model knows all tools in any case. */
static bool read_text_block(struct fields *fields, struct conversation *conversation,
                            uint32_t block, const char *param, struct text *to)
{
        bool reference = is_type(fields, block, "tool_reference");
        struct text text;

        if (!reference && !is_type(fields, block, "text"))
                return refuse_block(fields, block, param);
        if (!need_text(fields, block, reference ? "tool_name" : "text", param, &text))
                return false;
        conversation_add_text(conversation, to, text, "\n");
        return true;
}

/* A string, or an array of text blocks. */
static bool read_text(struct fields *fields, struct conversation *conversation, uint32_t node,
                      const char *param, struct text *to)
{
        enum json_kind kind = json_kind(fields->json, node);

        if (kind == JSON_STRING)
                conversation_add_text(conversation, to, text_of(fields->json, node), "\n");
        if (kind == JSON_STRING || kind == JSON_NULL || kind == JSON_ABSENT)
                return true;
        if (kind != JSON_ARRAY)
                return fields_fail(fields, FAILURE_REQUEST, param,
                                   "%s must be a string or an array of blocks", param);
        for (uint32_t block = json_first(fields->json, node); block != JSON_NONE;
             block = json_next(fields->json, block))
                if (!read_text_block(fields, conversation, block, param, to))
                        return false;
        return true;
}

/* ---- system ---- */

static bool is_for_anthropic(struct text text)
{
        static const char prefix[] = "x-anthropic-";

        return text.bytes >= sizeof(prefix) - 1 && !memcmp(text.at, prefix, sizeof(prefix) - 1);
}

/* Each block is a turn; conversation_pack() joins those at the front. */
static void add_system(struct conversation *conversation, struct text text)
{
        struct turn *turn;

        if (!text.bytes || is_for_anthropic(text))
                return;
        turn = conversation_turn(conversation, TURN_SYSTEM);
        if (turn)
                turn->content = text;
}

static void read_system(struct fields *fields, struct conversation *conversation, uint32_t node,
                        const char *param)
{
        enum json_kind kind = json_kind(fields->json, node);
        struct text text;

        if (fields->failed || kind == JSON_ABSENT || kind == JSON_NULL)
                return;
        if (kind == JSON_STRING) {
                add_system(conversation, text_of(fields->json, node));
                return;
        }
        if (kind != JSON_ARRAY) {
                fields_fail(fields, FAILURE_REQUEST, param,
                            "%s must be a string or an array of text blocks", param);
                return;
        }
        for (uint32_t block = json_first(fields->json, node); block != JSON_NONE;
             block = json_next(fields->json, block)) {
                text = (struct text){ 0 };
                if (!read_text_block(fields, conversation, block, param, &text))
                        return;
                add_system(conversation, text);
        }
}

/* ---- user ---- */

/* The turn that goes on, if the last one has this role. */
static struct turn *turn_of(struct conversation *conversation, enum turn_role role)
{
        struct turn *last = conversation->last_turn;

        return last && last->role == role ? last : conversation_turn(conversation, role);
}

/* Templates have no mark for a result that is an error. */
static bool read_result(struct fields *fields, struct conversation *conversation, uint32_t block,
                        const char *param)
{
        struct turn *turn = conversation_turn(conversation, TURN_TOOL);
        bool is_error = false;

        if (!turn || !need_text(fields, block, "tool_use_id", param, &turn->call_id))
                return false;
        field_bool(fields, block, "is_error", &is_error);
        if (is_error)
                turn->content = TEXT("Error:");
        return read_text(fields, conversation, json_member(fields->json, block, "content"), param,
                         &turn->content);
}

static bool read_user_block(struct fields *fields, struct conversation *conversation,
                            uint32_t block, const char *param)
{
        struct turn *turn;

        if (is_type(fields, block, "tool_result"))
                return read_result(fields, conversation, block, param);
        turn = turn_of(conversation, TURN_USER);
        return turn && read_text_block(fields, conversation, block, param, &turn->content);
}

/* ---- assistant ---- */

static bool read_call(struct fields *fields, struct conversation *conversation, struct turn *turn,
                      uint32_t block, const char *param)
{
        struct turn_call *call = conversation_call(conversation, turn);
        uint32_t input = json_member(fields->json, block, "input");

        if (!call || !need_text(fields, block, "id", param, &call->id) ||
            !need_text(fields, block, "name", param, &call->name))
                return false;
        if (json_kind(fields->json, input) != JSON_OBJECT)
                return fields_fail(fields, FAILURE_REQUEST, param,
                                   "%s: the input of a tool_use must be an object", param);
        call->arguments_node = input;
        return true;
}

/* The signature may be any text: only the model's maker could check it. */
static bool read_assistant_block(struct fields *fields, struct conversation *conversation,
                                 uint32_t block, const char *param)
{
        struct turn *turn = turn_of(conversation, TURN_ASSISTANT);
        struct text text;

        if (!turn)
                return false;
        if (is_type(fields, block, "tool_use"))
                return read_call(fields, conversation, turn, block, param);
        if (is_type(fields, block, "redacted_thinking"))
                return true;
        if (!is_type(fields, block, "thinking"))
                return read_text_block(fields, conversation, block, param, &turn->content);
        if (!need_text(fields, block, "thinking", param, &text))
                return false;
        conversation_add_text(conversation, &turn->reasoning, text, "\n");
        return true;
}

/* ---- messages ---- */

static void read_message(struct fields *fields, struct conversation *conversation, uint32_t message,
                         const char *param)
{
        struct text role = text_of(fields->json, json_member(fields->json, message, "role"));
        uint32_t content = json_member(fields->json, message, "content");
        bool user = text_is(role, "user");
        struct turn *turn;

        if (text_is(role, "system")) {
                read_system(fields, conversation, content, param);
                return;
        }
        if (!user && !text_is(role, "assistant")) {
                fields_fail(fields, FAILURE_REQUEST, param,
                            "%s.role must be user, assistant or system", param);
                return;
        }
        if (json_kind(fields->json, content) != JSON_ARRAY) {
                turn = turn_of(conversation, user ? TURN_USER : TURN_ASSISTANT);
                if (turn)
                        read_text(fields, conversation, content, param, &turn->content);
                return;
        }
        for (uint32_t block = json_first(fields->json, content); block != JSON_NONE;
             block = json_next(fields->json, block))
                if (!(user ? read_user_block : read_assistant_block)(fields, conversation, block,
                                                                     param))
                        return;
}

static void read_messages(struct fields *fields, struct conversation *conversation)
{
        uint32_t messages = field_array(fields, 0, "messages");
        char param[PARAM_BYTES];
        unsigned index = 0;

        if (fields->failed)
                return;
        if (!json_count(fields->json, messages)) {
                fields_fail(fields, FAILURE_REQUEST, "messages",
                            "messages must be an array with at least one message");
                return;
        }
        for (uint32_t message = json_first(fields->json, messages);
             message != JSON_NONE && !fields->failed; message = json_next(fields->json, message)) {
                snprintf(param, sizeof(param), "messages[%u]", index++);
                read_message(fields, conversation, message, param);
        }
}

/* ---- tools ---- */

/* False: the model is not told of any tool. */
static bool read_choice(struct fields *fields, struct conversation *conversation,
                        struct anthropic_request *request)
{
        uint32_t choice = field_object(fields, 0, "tool_choice");

        if (fields->failed || choice == JSON_NONE)
                return !fields->failed;
        field_bool(fields, choice, "disable_parallel_tool_use", &request->one_call);
        if (is_type(fields, choice, "auto"))
                return true;
        if (is_type(fields, choice, "none"))
                return false;
        request->options.tool_choice = SMV_TOOLS_REQUIRED;
        if (is_type(fields, choice, "any"))
                return true;
        if (!is_type(fields, choice, "tool"))
                return fields_fail(fields, FAILURE_REQUEST, "tool_choice",
                                   "tool_choice must have the type auto, any, tool or none");
        tools_allow(fields, conversation,
                    text_of(fields->json, json_member(fields->json, choice, "name")), 1,
                    &request->options);
        return !fields->failed;
}

static void read_tool(struct fields *fields, struct conversation *conversation, uint32_t node,
                      unsigned index)
{
        struct text type = text_of(fields->json, json_member(fields->json, node, "type"));
        struct tool *tool;

        if (type.at && !text_is(type, "custom")) {
                fields_fail(fields, FAILURE_UNSUPPORTED, "tools",
                            "tools[%u] has the type \"%.40s\"; only custom is supported: the "
                            "server runs no tools itself",
                            index, type.at);
                return;
        }
        tool = conversation_tool(conversation);
        if (!tool)
                return;
        tool->name = text_of(fields->json, json_member(fields->json, node, "name"));
        tool->description = text_of(fields->json, json_member(fields->json, node, "description"));
        tool->schema = field_object(fields, node, "input_schema");
        tools_read_strict(fields, conversation, node, tool);
        if (!tool->name.bytes)
                fields_fail(fields, FAILURE_REQUEST, "tools", "tools[%u].name must be a string",
                            index);
}

static void read_tools(struct fields *fields, struct conversation *conversation,
                       struct anthropic_request *request)
{
        uint32_t tools = field_array(fields, 0, "tools");
        unsigned index = 0;

        if (!read_choice(fields, conversation, request))
                return;
        for (uint32_t tool = json_first(fields->json, tools); tool != JSON_NONE && !fields->failed;
             tool = json_next(fields->json, tool))
                read_tool(fields, conversation, tool, index++);
}

/* ---- thinking ---- */

/* Without the field the template's own default holds. */
static void read_thinking(struct fields *fields, struct conversation *conversation,
                          struct anthropic_request *request)
{
        static const char *const on[] = { "enabled", "adaptive", "between_tools" };
        uint32_t thinking = field_object(fields, 0, "thinking");
        uint32_t output = field_object(fields, 0, "output_config");
        struct text effort = { 0 };
        struct template_var *var;

        if (output != JSON_NONE && field_text(fields, output, "effort", &effort)) {
                var = conversation_var(conversation, TEXT("reasoning_effort"));
                if (var)
                        var->word = effort;
        }
        if (thinking == JSON_NONE)
                return;
        for (size_t i = 0; i < sizeof(on) / sizeof(*on); i++)
                if (is_type(fields, thinking, on[i])) {
                        conversation_think(conversation, true);
                        request->has_budget = field_uint(fields, thinking, "budget_tokens", 0,
                                                         INT64_MAX, &request->budget);
                        return;
                }
        if (is_type(fields, thinking, "disabled"))
                conversation_think(conversation, false);
        else
                fields_fail(fields, FAILURE_REQUEST, "thinking",
                            "thinking.type must be enabled, adaptive, between_tools or disabled");
}

/* ---- all of it ---- */

/* output_format is the name that the field had before. */
static void read_format(struct call *call, struct fields *fields, struct smv_generate *options)
{
        uint32_t output = field_object(fields, 0, "output_config");

        constraint_read_format(call, fields, field_of(fields, output, "format"),
                               "output_config.format", options);
        constraint_read_format(call, fields, field_of(fields, 0, "output_format"), "output_format",
                               options);
        constraint_settle(call, fields, options);
}

void anthropic_read_prompt(struct call *call, struct fields *fields,
                           struct anthropic_request *request)
{
        struct conversation conversation = { .arena = &call->arena, .json = call->json };

        request->options = (struct smv_generate){ SMV_SIZE(smv_generate), .clamp = 1, .parts = 1 };
        field_text(fields, 0, "model", &request->model);
        if (!request->model.bytes)
                fields_fail(fields, FAILURE_REQUEST, "model", "model is missing: a string");
        read_system(fields, &conversation, field_of(fields, 0, "system"), "system");
        read_messages(fields, &conversation);
        read_tools(fields, &conversation, request);
        read_thinking(fields, &conversation, request);
        tools_settle(fields, &conversation, request->one_call, &request->options);
        read_format(call, fields, &request->options);
        if (!fields->failed && conversation_pack(&conversation, &request->options))
                call->arena.failed = true;
        request->miss = cache_miss_of(&conversation);
}

void anthropic_read_options(struct call *call, struct fields *fields,
                            struct anthropic_request *request)
{
        sampling_read(fields, 0, TEMPERATURE_MAX, &request->options);
        penalties_read(fields, &call->arena, 0, SMV_PENALTY_MAX, &request->options);
        sampling_read_stops(fields, &call->arena, 0, "stop_sequences", &request->options);
        sampling_read_tier(fields, &request->options);
        if (!sampling_read_length(fields, 0, "max_tokens", &request->options))
                fields_fail(fields, FAILURE_REQUEST, "max_tokens",
                            "max_tokens is missing: a whole number");
        field_bool(fields, 0, "stream", &request->stream);
        request->diagnose = field_object(fields, 0, "diagnostics") != JSON_NONE;
        field_refuse(fields, 0, "mcp_servers", "the server runs no tools itself");
        field_refuse(fields, 0, "container", "the server runs no tools itself");
}
