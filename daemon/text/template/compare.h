/*
 * Python's comparisons of values, `in`, and sorting.
 */
#ifndef DAEMON_TEXT_TEMPLATE_COMPARE_H
#define DAEMON_TEXT_TEMPLATE_COMPARE_H

#include "daemon/text/template/budget.h"
#include "daemon/text/template/code.h"

int value_compare(struct budget *budget, enum compare op, struct value a, struct value b,
                  bool *ret_truth);
int value_equal(struct budget *budget, struct value a, struct value b, bool *ret_equal);
/* Gives -1, 0 or 1; an error if the two have no order. */
int value_order(struct budget *budget, struct value a, struct value b, int *ret_order);
/* An error for a map, a list, and a tuple that contains one. */
int value_check_key(struct budget *budget, struct value value);
int value_in(struct budget *budget, struct value item, struct value holder, bool *ret_in);

/* Sorts things by their keys; stable. */
struct sortable {
        struct value key, value;
};
int value_sort(struct budget *budget, struct sortable *things, uint32_t count, bool reverse);

#endif
