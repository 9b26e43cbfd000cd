/* /v1/responses and what belongs to it. */
#ifndef BRIDGE_OPENAI_RESPONSES_H
#define BRIDGE_OPENAI_RESPONSES_H

#include "bridge/core/call.h"

void openai_responses(struct call *call);            /* POST /v1/responses */
void openai_response_tokens(struct call *call);      /* POST .../input_tokens */
void openai_response_get(struct call *call);         /* GET .../{id} */
void openai_response_delete(struct call *call);      /* DELETE .../{id} */
void openai_response_input_items(struct call *call); /* GET .../{id}/input_items */
void openai_response_cancel(struct call *call);      /* POST .../{id}/cancel */

#endif
