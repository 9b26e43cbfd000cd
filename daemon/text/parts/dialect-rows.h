/*
 * Dialect rows: the table of the dialects that are known, for dialect.c.
 */
#ifndef DAEMON_TEXT_PARTS_DIALECT_ROWS_H
#define DAEMON_TEXT_PARTS_DIALECT_ROWS_H

#include <stddef.h>

#include "daemon/text/parts/dialect-form.h"

#define DIALECT_SIGNS_MAX 3u

/* A template has the dialect if it has each of the texts in `has`, and none of those in `lacks`. */
struct dialect_signs {
        const char *has[DIALECT_SIGNS_MAX], *lacks[DIALECT_SIGNS_MAX];
};

/* A dialect may have several rows, which then follow each other. */
struct dialect_row {
        const char *name;
        struct dialect_signs signs;
        enum dialect_shape shape;
        uint32_t traits;
        const struct dialect_tags *tags;
        const struct dialect_writing *writing;
        struct dialect_spelling marks[MARK_N]; /* but those of reasoning */
};

/* A model has it if either mark is in its template, or if the first is a token. */
struct dialect_reasoning {
        struct dialect_spelling think, think_end;
};

/* The most specific first: the first whose signs are in the template is taken. */
extern const struct dialect_row dialect_rows[];
extern const size_t dialect_row_count;
extern const struct dialect_reasoning dialect_reasonings[];
extern const size_t dialect_reasoning_count;

#endif
