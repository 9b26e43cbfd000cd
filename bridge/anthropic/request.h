/*
 * Reads a request of Anthropic's Messages: system, messages, tools, thinking, options.
 *
 * Blocks are text, tool_use, tool_result, thinking and redacted_thinking; those of other kinds are
 * refused.  Neighbouring turns of a role become one, as Anthropic says.  A block of a system text
 * that begins with "x-anthropic-" is dropped: it is meant for Anthropic's own servers, changes from
 * request to request, and stands at the front, so it would keep every prompt out of the cache.
 */
#ifndef BRIDGE_ANTHROPIC_REQUEST_H
#define BRIDGE_ANTHROPIC_REQUEST_H

#include <samovar/client.h>

#include "bridge/core/cache-miss.h"
#include "bridge/core/call.h"
#include "bridge/core/conversation.h"
#include "bridge/core/fields.h"

struct anthropic_request {
        struct text model;
        struct smv_generate options;
        bool stream;
        bool one_call; /* disable_parallel_tool_use */
        bool diagnose; /* why no more of the prompt was cached */
        struct cache_miss miss;
        bool has_budget; /* thinking.budget_tokens, if the model thinks */
        uint64_t budget;
};

/* What decides the prompt. */
void anthropic_read_prompt(struct call *call, struct fields *fields,
                           struct anthropic_request *request);
/* Everything else. */
void anthropic_read_options(struct call *call, struct fields *fields,
                            struct anthropic_request *request);

#endif
