/*
 * Python's operations on values: operators, comparisons, attributes, items, iteration.
 */
#ifndef DAEMON_TEXT_TEMPLATE_OPERATE_H
#define DAEMON_TEXT_TEMPLATE_OPERATE_H

#include "daemon/text/template/run.h"

const char *value_type(struct value value); /* Python's name of the type */
bool value_truth(struct value value);
bool value_is_number(struct value value);   /* true and false are numbers, too */
bool value_is_sequence(struct value value); /* a list or a tuple */
double value_real(struct value number);
int64_t value_whole(struct value number); /* of a bool or an integer */

/* Fails the rendering, because the undefined `value` was used.  Never 0. */
int value_is_undefined(struct run *run, struct value value);

int value_binary(struct run *run, enum binary op, struct value a, struct value b,
                 struct value *ret_value);
int value_sign(struct run *run, struct value value, bool negate, struct value *ret_value);
int value_compare(struct run *run, enum compare op, struct value a, struct value b,
                  bool *ret_truth);
int value_equal(struct run *run, struct value a, struct value b, bool *ret_equal);
/* Gives -1, 0 or 1; an error if the two have no order. */
int value_order(struct run *run, struct value a, struct value b, int *ret_order);
/* An error for a map, a list, and a tuple that contains one. */
int value_is_key(struct run *run, struct value value);
int value_in(struct run *run, struct value item, struct value holder, bool *ret_in);

/* The items of a loop over a value: a text's characters, a map's keys; none if it is undefined. */
int value_items(struct run *run, struct value value, const struct value **ret_items,
                uint32_t *ret_count);
bool value_is_iterable(struct value value);
/* *ret_has is false if a value of this type has no length. */
int value_length(struct run *run, struct value value, uint32_t *ret_length, bool *ret_has);

int value_attribute(struct run *run, struct value value, const struct text *name,
                    struct value *ret_value);
int value_item(struct run *run, struct value value, struct value key, struct value *ret_value);
/* parts: start, stop and step; a part that is not given is none. */
int value_slice(struct run *run, struct value value, const struct value *parts,
                struct value *ret_value);

int namespace_set(struct run *run, struct namespace *names, const struct text *name,
                  struct value value);

/* Follows a path such as "a.b.0" item by item, as Jinja does. */
int value_path(struct run *run, struct value value, struct value path, struct value otherwise,
               struct value *ret_value);

/* Sorts things by their keys; stable. */
struct sortable {
        struct value key, value;
};
int value_sort(struct run *run, struct sortable *things, uint32_t count, bool reverse);

#endif
