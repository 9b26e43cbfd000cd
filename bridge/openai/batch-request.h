/*
 * A line of a batch whose call runs, or waits to be asked again.
 *
 * Its call is like one of HTTP, of background class, with another sink for its answer.
 */
#ifndef BRIDGE_OPENAI_BATCH_REQUEST_H
#define BRIDGE_OPENAI_BATCH_REQUEST_H

#include "bridge/core/bridge.h"

struct batch_request {
        struct list_head of_batch;
        struct call *call; /* NULL: it has ended, or waits */
        struct text text;  /* of the line */
        struct bytes body;
        bool done; /* it has an answer */
        unsigned status;
        char request_id[40];
        struct bytes answer;
        struct loop_timer *step; /* set to now when it is done */
};

struct batch_request *batch_request_new(struct text text, struct loop_timer *step); /* or NULL */
/* Ends its call, and removes it from its list. */
void batch_request_free(struct batch_request *request);
/* Begins its call.  `endpoint` must live as long as it runs.  -ENOMEM. */
int batch_request_ask(struct batch_request *request, struct bridge *bridge, uint32_t principal,
                      const char *endpoint);
/* The line for the file of answers. */
int batch_request_put(struct json_builder *to, const struct batch_request *request,
                      struct text custom_id);

#endif
