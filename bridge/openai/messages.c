#include "bridge/openai/messages.h"

#include <stdio.h>

#include "bridge/core/tools.h"
#include "bridge/openai/tool-choice.h"

#define PARAM_BYTES 48u

static bool is_one_of(struct text text, const char *const *words)
{
        for (; *words; words++)
                if (text_is(text, *words))
                        return true;
        return false;
}

static bool read_part(struct fields *fields, struct conversation *conversation, uint32_t part,
                      const char *const *kinds, const char *param, struct text *to)
{
        struct text type = text_of(fields->json, json_member(fields->json, part, "type"));
        struct text text = text_of(fields->json, json_member(fields->json, part, "text"));

        if (text_is(type, "refusal"))
                text = text_of(fields->json, json_member(fields->json, part, "refusal"));
        else if (!is_one_of(type, kinds))
                return fields_fail(fields, FAILURE_UNSUPPORTED, param,
                                   "a content part of the type \"%.40s\" is not supported: the "
                                   "model reads text only",
                                   type.at ? type.at : "");
        if (!text.at)
                return fields_fail(fields, FAILURE_REQUEST, param,
                                   "a content part has no text: text must be a string");
        conversation_add_text(conversation, to, text, "\n");
        return true;
}

bool openai_read_content(struct fields *fields, struct conversation *conversation, uint32_t node,
                         const char *const *kinds, const char *param, struct text *ret_text)
{
        enum json_kind kind = json_kind(fields->json, node);

        if (kind == JSON_STRING)
                *ret_text = text_of(fields->json, node);
        if (kind == JSON_STRING || kind == JSON_NULL || kind == JSON_ABSENT)
                return true;
        if (kind != JSON_ARRAY)
                return fields_fail(fields, FAILURE_REQUEST, param,
                                   "%s must be a string or an array of parts", param);
        for (uint32_t part = json_first(fields->json, node); part != JSON_NONE;
             part = json_next(fields->json, part))
                if (!read_part(fields, conversation, part, kinds, param, ret_text))
                        return false;
        return true;
}

/* Two names of the same: llama-server's, which many send back, and vLLM's. */
static struct text read_reasoning(struct fields *fields, uint32_t message)
{
        struct text text =
                text_of(fields->json, json_member(fields->json, message, "reasoning_content"));

        return text.at ? text
                       : text_of(fields->json, json_member(fields->json, message, "reasoning"));
}

static void read_message(struct fields *fields, struct conversation *conversation, uint32_t message,
                         const char *param)
{
        static const char *const kinds[] = { "text", "input_text", "output_text", NULL };
        enum turn_role role = TURN_USER;
        struct turn *turn;

        if (!tools_read_role(fields, message, param, &role))
                return;
        turn = conversation_turn(conversation, role);
        if (!turn || !openai_read_content(fields, conversation,
                                          json_member(fields->json, message, "content"), kinds,
                                          param, &turn->content))
                return;
        turn->name = text_of(fields->json, json_member(fields->json, message, "name"));
        turn->call_id = text_of(fields->json, json_member(fields->json, message, "tool_call_id"));
        if (role != TURN_ASSISTANT)
                return;
        turn->reasoning = read_reasoning(fields, message);
        tools_read_calls(fields, conversation, turn, message, param);
}

void openai_read_messages(struct fields *fields, struct conversation *conversation)
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

static enum asked read_switch(struct fields *fields, const char *name)
{
        bool value = false;

        if (!field_bool(fields, 0, name, &value))
                return ASKED_NOTHING;
        return value ? ASKED_YES : ASKED_NO;
}

void openai_read_end(struct fields *fields, struct conversation *conversation)
{
        const struct turn *last = conversation->last_turn;

        conversation->new_answer = read_switch(fields, "add_generation_prompt");
        conversation->continuation = read_switch(fields, "continue_final_message");
        if (fields->failed || conversation->continuation != ASKED_YES)
                return;
        if (conversation->new_answer == ASKED_YES)
                fields_fail(fields, FAILURE_REQUEST, "continue_final_message",
                            "continue_final_message and add_generation_prompt are both true; at "
                            "most one of them may be");
        else if (!last || last->role != TURN_ASSISTANT)
                fields_fail(fields, FAILURE_REQUEST, "continue_final_message",
                            "continue_final_message is true, but the last message is not from the "
                            "assistant");
        else if (last->calls)
                fields_fail(fields, FAILURE_REQUEST, "continue_final_message",
                            "continue_final_message is true, but the last message has tool_calls; "
                            "only a text can be continued");
}

/* ---- tools ---- */

void openai_read_tools(struct fields *fields, struct conversation *conversation,
                       struct smv_generate *options)
{
        field_refuse(fields, 0, "functions", "use tools");
        if (openai_read_choice(fields, conversation, options))
                tools_read(fields, conversation);
}

/* Templates know either a word, or only whether the model shall think. */
void openai_set_effort(struct conversation *conversation, struct text effort)
{
        struct template_var *var = conversation_var(conversation, TEXT("reasoning_effort"));

        if (var)
                var->word = effort;
        if (text_is(effort, "none"))
                conversation_think(conversation, false);
}

void openai_read_vars(struct fields *fields, struct conversation *conversation)
{
        uint32_t vars = field_object(fields, 0, "chat_template_kwargs");
        struct text effort = { 0 };

        for (uint32_t node = json_first(fields->json, vars); node != JSON_NONE;
             node = json_next(fields->json, node)) {
                size_t bytes;
                const char *key = json_key(fields->json, node, &bytes);
                struct template_var *var =
                        conversation_var(conversation, (struct text){ key, bytes });
                if (var)
                        var->node = node;
        }
        if (field_text(fields, 0, "reasoning_effort", &effort))
                openai_set_effort(conversation, effort);
}
