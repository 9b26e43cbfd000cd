/*
 * A line of a batch whose call runs, or waits to be asked again.
 *
 * Its call is like one of HTTP, of background class, with another sink for its answer.
 */
#ifndef BRIDGE_OPENAI_BATCH_REQUEST_H
#define BRIDGE_OPENAI_BATCH_REQUEST_H

#include "bridge/core/bridge.h"
#include "bridge/openai/batch-lines.h"

struct batch_request {
        struct list_head of_batch;
        uint64_t number;   /* of the caller */
        struct call *call; /* NULL: it has ended, or waits */
        const char *endpoint;
        struct bytes custom_id, body;
        bool done; /* it has an answer */
        unsigned status;
        char request_id[40];
        struct bytes answer;
        struct loop_timer *step; /* set to now when it is done */
};

/* It has a copy of what it needs of the line.  NULL: out of memory. */
struct batch_request *batch_request_new(const struct batch_line_request *line,
                                        struct loop_timer *step);
/* Ends its call, and removes it from its list. */
void batch_request_free(struct batch_request *request);
/* Begins its call.  -ENOMEM. */
int batch_request_ask(struct batch_request *request, struct bridge *bridge, uint32_t principal);
/* It is done, but the daemon had no place for it, or was away: it may be asked again. */
bool batch_request_found_no_place(const struct batch_request *request);
/* It is done, and its answer is no failure. */
bool batch_request_succeeded(const struct batch_request *request);
/* The line for the file of answers. */
int batch_request_put(struct json_builder *to, const struct batch_request *request);

#endif
