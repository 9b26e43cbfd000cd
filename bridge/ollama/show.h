/*
 * POST /api/show.
 *
 * `template` is an example as the model reads it, with a tool if the daemon can read the model's
 * calls.  The source of the template stays in the daemon, because no program that we know renders
 * it: litellm looks only whether the word "tools" is there, others show it to their user.
 */
#ifndef BRIDGE_OLLAMA_SHOW_H
#define BRIDGE_OLLAMA_SHOW_H

#include "bridge/core/call.h"

void ollama_show(struct call *call);

#endif
