/* The routes of Ollama that there cannot be here: they are refused with the reason. */
#ifndef BRIDGE_OLLAMA_REFUSED_H
#define BRIDGE_OLLAMA_REFUSED_H

#include "bridge/core/call.h"

void ollama_embed(struct call *call);  /* /api/embed, /api/embeddings */
void ollama_change(struct call *call); /* create, copy, delete, push, blobs */

#endif
