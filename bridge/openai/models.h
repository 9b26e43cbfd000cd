/* GET /v1/models and /v1/models/{id}, which satisfy the clients of OpenAI and of Anthropic. */
#ifndef BRIDGE_OPENAI_MODELS_H
#define BRIDGE_OPENAI_MODELS_H

#include "bridge/core/call.h"

void openai_models(struct call *call);
void openai_model(struct call *call);

#endif
