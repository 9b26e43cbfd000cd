/*
 * POST /api/show.
 *
 * The daemon does not tell the source of the chat template.  So what the template can do is found
 * by rendering examples with it: whether a tool is shown, and whether thoughts are.  `template` is
 * the example with a tool, as the model reads it.
 */
#ifndef BRIDGE_OLLAMA_SHOW_H
#define BRIDGE_OLLAMA_SHOW_H

#include "bridge/core/call.h"

void ollama_show(struct call *call);

#endif
