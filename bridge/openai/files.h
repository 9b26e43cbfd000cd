/* /v1/files: uploads for batches, and what batches have written. */
#ifndef BRIDGE_OPENAI_FILES_H
#define BRIDGE_OPENAI_FILES_H

#include "bridge/core/call.h"

void openai_file_upload(struct call *call);  /* POST /v1/files */
void openai_file_list(struct call *call);    /* GET /v1/files */
void openai_file_get(struct call *call);     /* GET /v1/files/{id} */
void openai_file_content(struct call *call); /* GET /v1/files/{id}/content */
void openai_file_delete(struct call *call);  /* DELETE /v1/files/{id} */

/*
 * A call that waits until something is stored.  Its client may leave before: then call is NULL.  It
 * is freed by openai_awaited().
 */
struct openai_wait {
        struct call *call;
};
/* NULL: out of memory, and the call has failed. */
struct openai_wait *openai_await(struct call *call);
/* Frees it; returns the call, or NULL. */
struct call *openai_awaited(struct openai_wait *wait);

/* The limit of a list, 1 to `most`, from the query; 20 if there is none. */
uint32_t openai_list_limit(const struct call *call, uint32_t most);

#endif
