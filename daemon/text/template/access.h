/*
 * The parts of values, as Python and Jinja get them: attributes, items, slices, iteration.
 */
#ifndef DAEMON_TEXT_TEMPLATE_ACCESS_H
#define DAEMON_TEXT_TEMPLATE_ACCESS_H

#include "daemon/text/template/budget.h"

/* The items of a loop over a value: a text's characters, a map's keys; none if it is undefined. */
int value_items(struct budget *budget, struct value value, const struct value **ret_items,
                uint32_t *ret_count);
bool value_is_iterable(struct value value);
/* *ret_has is false if a value of this type has no length. */
int value_length(struct budget *budget, struct value value, uint32_t *ret_length, bool *ret_has);

int value_attribute(struct budget *budget, struct value value, const struct text *name,
                    struct value *ret_value);
int value_item(struct budget *budget, struct value value, struct value key,
               struct value *ret_value);
/* parts: start, stop and step; a part that is not given is none. */
int value_slice(struct budget *budget, struct value value, const struct value *parts,
                struct value *ret_value);

int namespace_set(struct budget *budget, struct namespace *names, const struct text *name,
                  struct value value);

/* Follows a path such as "a.b.0" item by item, as Jinja does. */
int value_path(struct budget *budget, struct value value, struct value path, struct value otherwise,
               struct value *ret_value);

#endif
