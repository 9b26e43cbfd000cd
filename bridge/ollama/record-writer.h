/* Writes the answer to /api/generate and /api/chat: its records, or one for all. */
#ifndef BRIDGE_OLLAMA_RECORD_WRITER_H
#define BRIDGE_OLLAMA_RECORD_WRITER_H

#include "bridge/core/run.h"
#include "bridge/ollama/request.h"

/* It is call->own, and run->own. */
struct ollama_answer {
        struct ollama_request request;
        struct run *run;
};

extern const struct run_ops ollama_streamed, ollama_whole;

/* A request without a prompt only loads the model, or unloads it: it stays where it is. */
void ollama_reply_empty(struct call *call, const struct ollama_answer *answer);

#endif
