/*
 * Reads the requests of Ollama's /api/generate and /api/chat.
 *
 * Options that the daemon does not have are refused, unless they ask for nothing.  Programs often
 * send all options with Ollama's defaults, although their users chose none; so repeat_penalty is
 * taken with 1.1, too.  Without an option the model's own value holds, and not Ollama's default.
 */
#ifndef BRIDGE_OLLAMA_REQUEST_H
#define BRIDGE_OLLAMA_REQUEST_H

#include <samovar/client.h>

#include "bridge/core/call.h"
#include "bridge/core/fields.h"

struct ollama_request {
        struct text model, prompt;
        struct smv_generate options;
        bool chat; /* of /api/chat */
        bool raw;  /* the prompt goes to the model as it is */
        bool stream, logprobs;
        bool empty;  /* it only loads the model ... */
        bool unload; /* ... or, with keep_alive 0, unloads it */
};

void ollama_read(struct call *call, struct fields *fields, struct ollama_request *request);
/* The name of the model: `model`, or `name` as older programs say. */
void ollama_read_model(struct fields *fields, struct text *ret_model);

#endif
