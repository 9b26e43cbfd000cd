/* Writes the answer to Messages: its events, or the whole message. */
#ifndef BRIDGE_ANTHROPIC_MESSAGE_WRITER_H
#define BRIDGE_ANTHROPIC_MESSAGE_WRITER_H

#include "bridge/anthropic/blocks.h"
#include "bridge/anthropic/request.h"
#include "bridge/core/run.h"

/* It is call->own, and run->own. */
struct anthropic_message {
        char id[48];
        struct anthropic_request request;
        struct blocks blocks;
        struct run *run;
        struct failure too_long; /* the daemon's refusal, until the tokens are counted */
};

extern const struct run_ops anthropic_streamed, anthropic_whole;

#endif
