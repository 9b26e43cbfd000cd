/* POST /v1/messages and /v1/messages/count_tokens. */
#ifndef BRIDGE_ANTHROPIC_MESSAGES_H
#define BRIDGE_ANTHROPIC_MESSAGES_H

#include "bridge/core/call.h"

void anthropic_messages(struct call *call);
void anthropic_count_tokens(struct call *call);

#endif
