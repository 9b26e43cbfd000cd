/* POST /v1/chat/completions. */
#ifndef BRIDGE_OPENAI_CHAT_H
#define BRIDGE_OPENAI_CHAT_H

#include "bridge/core/call.h"

void openai_chat(struct call *call);

#endif
