/* GET /api/tags, /api/ps, /api/version; POST /api/show, /api/pull. */
#ifndef BRIDGE_OLLAMA_MODELS_H
#define BRIDGE_OLLAMA_MODELS_H

#include "bridge/core/call.h"

void ollama_tags(struct call *call);
void ollama_ps(struct call *call);
void ollama_version(struct call *call);
void ollama_pull(struct call *call);

/* "details", as several answers have them. */
void ollama_put_details(struct json_builder *to, const struct smv_model *model);

#endif
