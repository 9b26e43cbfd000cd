/* POST /api/generate and /api/chat. */
#ifndef BRIDGE_OLLAMA_GENERATE_H
#define BRIDGE_OLLAMA_GENERATE_H

#include "bridge/core/call.h"

void ollama_generate(struct call *call);
void ollama_chat(struct call *call);

#endif
