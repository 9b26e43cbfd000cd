/*
 * Reads what /v1/responses has instead of messages: items, instructions and flat tools.
 *
 * Neighbouring function calls, and a message before them, are one turn of the assistant.  Reasoning
 * belongs to what follows it.  Items and tools of unknown types are skipped with a line in the log,
 * because agents send more of them each month.
 */
#ifndef BRIDGE_OPENAI_RESPONSE_ITEMS_H
#define BRIDGE_OPENAI_RESPONSE_ITEMS_H

#include "bridge/core/conversation.h"
#include "bridge/core/fields.h"

/*
 * The type of an item that only stored items have: the next message of the assistant continues the
 * one before it, because the response did.
 */
#define RESPONSE_CONTINUES "samovar_continues"

/*
 * `input`: a string, or an array of items; `stored`: they come from the store, not from the client.
 * fields->json may be another than conversation->json.
 */
void response_read_input(struct fields *fields, struct conversation *conversation, uint32_t input,
                         bool stored);
void response_read_instructions(struct fields *fields, struct conversation *conversation);
void response_read_tools(struct fields *fields, struct conversation *conversation,
                         struct smv_generate *options);
/* reasoning.effort, chat_template_kwargs. */
void response_read_vars(struct fields *fields, struct conversation *conversation);

#endif
