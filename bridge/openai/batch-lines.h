/* Reads the lines of a batch's input.  Pure functions. */
#ifndef BRIDGE_OPENAI_BATCH_LINES_H
#define BRIDGE_OPENAI_BATCH_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "bridge/core/arena.h"
#include "json/document.h"

/* The lines of a text, one after another.  Blank lines are skipped, but counted. */
struct batch_lines {
        struct text text;
        size_t at;
        uint32_t number; /* of the last line, from 1 */
};

bool batch_lines_next(struct batch_lines *lines, struct text *ret_line);

/* The endpoints that a batch may have, for messages. */
#define BATCH_ENDPOINTS "/v1/chat/completions, /v1/completions or /v1/responses"
/* The one of this name, which lives for ever; NULL: there is none. */
const char *batch_endpoint(struct text name);

struct batch_line_request {
        struct json_document *json; /* the caller frees it */
        struct text custom_id;
        const char *endpoint; /* as of batch_endpoint() */
        uint32_t body;        /* its node */
};

/*
 * False, and why: the line is wrong.  `endpoint` is that of the batch; NULL: each line may have
 * another one.
 */
bool batch_line_read(struct text line, const char *endpoint, struct batch_line_request *ret_request,
                     char *why, size_t why_bytes);

#endif
