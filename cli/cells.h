/*
 * Characters as a terminal shows them: how many cells each takes, and which of them it must not be
 * sent, because they would control it or change the order of the text around them.
 */
#ifndef CLI_CELLS_H
#define CLI_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/bytes.h"

/* 0: it is drawn over the character before; 1; or 2, for wide characters. */
unsigned cell_width(int32_t point);
/* False: it is a control character, a newline or tab, or one that changes the direction of text. */
bool cell_is_safe(int32_t point);

/*
 * Appends the text, cut at `cells`.  Characters that are not safe, and bytes that are no UTF-8,
 * become "?".  *ret_used gets the cells that it takes; it may be NULL.  0 or -ENOMEM.
 */
int cells_add(struct bytes *to, const char *text, unsigned cells, unsigned *ret_used);

#endif
