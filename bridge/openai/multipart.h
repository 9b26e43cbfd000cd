/*
 * Reads a body of multipart/form-data that lies in memory.  Pure functions.
 *
 * Strict where forms differ: CRLF only, a boundary of 1 to 70 characters, at most 16 parts, and a
 * last boundary at the end.
 */
#ifndef BRIDGE_OPENAI_MULTIPART_H
#define BRIDGE_OPENAI_MULTIPART_H

#include <stdbool.h>

#include "bridge/core/arena.h"

#define MULTIPART_PARTS_MAX 16u

struct multipart_part {
        struct text name, filename; /* filename: at NULL if it is no file */
        struct text content;
};

struct multipart {
        struct multipart_part parts[MULTIPART_PARTS_MAX];
        unsigned count;
};

/* Texts point into the body.  False, and why: it is no such body. */
bool multipart_read(const char *content_type, struct text body, struct multipart *ret_form,
                    const char **ret_why);
/* NULL: there is no part of this name. */
const struct multipart_part *multipart_part(const struct multipart *form, const char *name);

#endif
