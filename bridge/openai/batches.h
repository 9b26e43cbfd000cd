/* /v1/batches. */
#ifndef BRIDGE_OPENAI_BATCHES_H
#define BRIDGE_OPENAI_BATCHES_H

#include "bridge/core/call.h"

void openai_batch_create(struct call *call); /* POST /v1/batches */
void openai_batch_list(struct call *call);   /* GET /v1/batches */
void openai_batch_get(struct call *call);    /* GET /v1/batches/{id} */
void openai_batch_cancel(struct call *call); /* POST /v1/batches/{id}/cancel */

#endif
