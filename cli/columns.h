/*
 * Columns: texts that grow side by side, each in its own lines and colour.
 *
 * On a terminal they are drawn as they come.  The cursor stays below the last row, and a line is
 * redrawn in its place.  If stdout is no terminal, everything is printed at once on closing,
 * without cursor moves.  There are no colours if NO_COLOR is set.  A character counts as one cell,
 * which is wrong for some characters.  Control characters are shown as "?".
 */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "json/bytes.h"

#define COLUMNS_MAX 3u

struct columns {
        bool live, coloured;
        uint32_t count, width; /* of each, in cells */
        uint32_t rows;         /* rows on the screen */
        struct bytes texts[COLUMNS_MAX];
        uint32_t drawn[COLUMNS_MAX]; /* lines of each text on the screen */
        struct bytes out;
};

void columns_open(struct columns *columns, uint32_t count);
/* Appends to one text.  This and the next functions return 0 or an exit status. */
int columns_add(struct columns *columns, uint32_t number, const char *text, size_t bytes);
/* Shows everything; the cursor is below it afterwards.  Frees the texts. */
int columns_close(struct columns *columns);
/* Draws a line from which the columns branch.  Call it before anything is added. */
int columns_fork(struct columns *columns);

#endif
