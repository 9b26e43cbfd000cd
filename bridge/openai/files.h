/* /v1/files: uploads for batches, and what batches have written. */
#ifndef BRIDGE_OPENAI_FILES_H
#define BRIDGE_OPENAI_FILES_H

#include "bridge/core/call.h"

void openai_file_upload(struct call *call);  /* POST /v1/files */
void openai_file_list(struct call *call);    /* GET /v1/files */
void openai_file_get(struct call *call);     /* GET /v1/files/{id} */
void openai_file_content(struct call *call); /* GET /v1/files/{id}/content */
void openai_file_delete(struct call *call);  /* DELETE /v1/files/{id} */

/* The limit of a list, 1 to `most`, from the query; 20 if there is none. */
uint32_t openai_list_limit(const struct call *call, uint32_t most);

#endif
