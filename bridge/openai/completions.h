/* POST /v1/completions, and /v1/embeddings, which is refused by name. */
#ifndef BRIDGE_OPENAI_COMPLETIONS_H
#define BRIDGE_OPENAI_COMPLETIONS_H

#include "bridge/core/call.h"

void openai_completions(struct call *call);
void openai_embeddings(struct call *call);

#endif
