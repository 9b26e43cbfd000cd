/* The head of an answer: its status and its fields, line by line. */
#ifndef CLI_WEB_HEAD_H
#define CLI_WEB_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#include "json/bytes.h"

#define WEB_HEAD_BYTES_MAX (1u << 20) /* of all answers of a request, with those of redirects */

struct web_head {
        int status;
        bool complete;       /* on_head() was called */
        bool too_long;       /* a line was refused for this */
        struct bytes fields; /* "name\0value\0" of each */
        size_t bytes;        /* of all lines */
        const char *url;
};

/* The value of the first field of this name, in any case; NULL: none. */
const char *web_field(const struct web_head *head, const char *name);
/* The URL that answered, behind all redirects. */
const char *web_url(const struct web_head *head);

/* What follows is for web.c. */

/*
 * Takes a line, without its end: "HTTP/1.1 206 Partial Content", which begins a new head, or
 * "Name: value".  False: too long, or no memory.
 */
bool web_head_add(struct web_head *head, const char *line, size_t bytes);
/* Whether it says where to go instead. */
bool web_head_redirects(const struct web_head *head);
/* Begins the next one. */
void web_head_reset(struct web_head *head);
void web_head_deinit(struct web_head *head);

#endif
