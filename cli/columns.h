/*
 * Columns: texts that grow side by side, each in its own lines and its own colour.
 *
 * On a terminal they are drawn as they come: the cursor rests below the last row, and a line is
 * redrawn where it is.  Elsewhere, and all at once, when they are closed: the same without the
 * cursor's moves.  Colours are left out where NO_COLOR says so.  A character counts as one cell, which is
 * not so for all of them, and control characters are shown as "?".
 */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/bytes.h"

#define COLUMNS_MAX 3u

struct columns {
        bool live, coloured;
        uint32_t count, width; /* of each, in cells */
        uint32_t rows;         /* that are on the screen */
        struct bytes texts[COLUMNS_MAX];
        uint32_t drawn[COLUMNS_MAX]; /* lines of each that are */
        struct bytes out;
};

void columns_open(struct columns *columns, uint32_t count);
/* More of one.  These return 0, or an exit status. */
int columns_add(struct columns *columns, uint32_t number, const char *text, size_t bytes);
/* All is shown, and the cursor stands below it. */
int columns_close(struct columns *columns);
/* A line across all of them: one trunk that becomes branches.  Before anything is added. */
int columns_fork(struct columns *columns);

#endif
