/*
 * The forms of `samovar status`: status.c asks the daemon, and prints what one of these makes of
 * its reply.
 */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

#include "cli/cli.h"
#include "json/document.h"

/* status-all.c: prints the reply, JSON of our own library, with one value a line. */
void status_print_all(const char *json);

struct status_size {
        unsigned rows, columns;
};

/*
 * status-screen.c: appends lines to `to`, at most `size.rows`, each with at most `size.columns`
 * characters.  0 or -ENOMEM.
 */
int status_make_screen(const struct json_document *status, struct status_size size,
                       struct bytes *to);

#endif
