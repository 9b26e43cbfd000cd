/* POST /v1/completions. */
#ifndef BRIDGE_OPENAI_COMPLETIONS_H
#define BRIDGE_OPENAI_COMPLETIONS_H

#include "bridge/core/call.h"

void openai_completions(struct call *call);

#endif
