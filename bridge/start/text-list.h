/*
 * A text that is a list: items with commas between them.  Blanks around an item do not count.
 */
#ifndef BRIDGE_START_TEXT_LIST_H
#define BRIDGE_START_TEXT_LIST_H

#include <stdint.h>

struct text_list {
        char *text;   /* a copy, with a NUL behind each item */
        char **items; /* ends with NULL */
        uint32_t count;
};

/* text NULL: no items.  -EINVAL: an item is empty.  On error there is nothing to deinit. */
int text_list_init(struct text_list *list, const char *text);
void text_list_deinit(struct text_list *list);

#endif
