/* Reads the conversation of chat/completions: messages, tools, tool_choice, template switches. */
#ifndef BRIDGE_OPENAI_MESSAGES_H
#define BRIDGE_OPENAI_MESSAGES_H

#include <samovar/client.h>

#include "bridge/core/conversation.h"
#include "bridge/core/fields.h"

void openai_read_messages(struct fields *fields, struct conversation *conversation);
/* vLLM's add_generation_prompt and continue_final_message, once the messages are read. */
void openai_read_end(struct fields *fields, struct conversation *conversation);
/* The array `tools`, and tool_choice. */
void openai_read_tools(struct fields *fields, struct conversation *conversation,
                       struct smv_generate *options);
void openai_set_effort(struct conversation *conversation, struct text effort);
/* chat_template_kwargs, reasoning_effort. */
void openai_read_vars(struct fields *fields, struct conversation *conversation);

/*
 * The text of `content`: a string, or the texts of its parts.  `kinds` are the types of parts that
 * are text.  False: a part is none, and was refused.
 */
bool openai_read_content(struct fields *fields, struct conversation *conversation, uint32_t node,
                         const char *const *kinds, const char *param, struct text *ret_text);

#endif
