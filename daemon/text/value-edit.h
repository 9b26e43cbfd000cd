/*
 * Value edit: copies of values in which one part is another one.
 */
#ifndef DAEMON_TEXT_VALUE_EDIT_H
#define DAEMON_TEXT_VALUE_EDIT_H

#include "daemon/text/value.h"

/* Replaces a map by a copy in which the value `old` of its own is another one: 0 or -ENOMEM. */
int value_edit_member(struct arena *arena, struct value *map, const struct value *old,
                      struct value other);
/* Replaces a list by a copy in which this item is another one. */
int value_edit_item(struct arena *arena, struct value *list, uint32_t index, struct value other);

#endif
