/* POST /tokenize, /detokenize, /apply-template: texts and tokens, as llama-server and vLLM have. */
#ifndef BRIDGE_OWN_TEXTS_H
#define BRIDGE_OWN_TEXTS_H

#include "bridge/core/call.h"

void own_tokenize(struct call *call);
void own_detokenize(struct call *call);
void own_apply_template(struct call *call);

#endif
