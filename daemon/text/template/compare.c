/*
 * Comparisons: equality, order, `in`; and sorting.
 */
#include "daemon/text/template/compare.h"

#include <string.h>

#include "daemon/text/template/access.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/code.h"
#include "daemon/text/template/objects.h"
#include "daemon/text/template/text.h"

/* Compares the items only if both lists have the same length. */
static int equal_lists(struct budget *budget, const struct list *a, const struct list *b,
                       bool *ret_equal)
{
        int r = 0;

        *ret_equal = a->count == b->count;
        for (uint32_t i = 0; !r && *ret_equal && i < a->count; i++)
                r = value_equal(budget, a->items[i], b->items[i], ret_equal);
        return error_pass(r);
}

static int equal_maps(struct budget *budget, const struct map *a, const struct map *b,
                      bool *ret_equal)
{
        int r = 0;

        *ret_equal = a->count == b->count;
        for (uint32_t i = 0; !r && *ret_equal && i < a->count; i++) {
                const struct map_entry *other;

                r = budget_map_find(budget, b, a->entries[i].key, &other);
                *ret_equal = other;
                if (other)
                        r = value_equal(budget, a->entries[i].value, other->value, ret_equal);
        }
        return error_pass(r);
}

/* Recurses at most VALUE_DEPTH_MAX deep. */
int value_equal(struct budget *budget, struct value a, struct value b, bool *ret_equal)
{
        int r = budget_charge(budget, 1);

        *ret_equal = false;
        if (r)
                return error_pass(r);
        if (value_is_number(a) && value_is_number(b)) {
                *ret_equal = a.kind == VALUE_FLOAT || b.kind == VALUE_FLOAT
                                     ? value_real(a) == value_real(b)
                                     : value_whole(a) == value_whole(b);
                return 0;
        }
        if (a.kind != b.kind || a.flavour != b.flavour)
                return 0;
        switch (a.kind) {
        case VALUE_UNDEFINED:
        case VALUE_NONE:
                *ret_equal = true;
                return 0;
        case VALUE_STRING:
                *ret_equal = text_same(a.text, b.text);
                return error_pass(*ret_equal ? budget_charge_bytes(budget, a.text->count) : 0);
        case VALUE_LIST:
                return error_pass(equal_lists(budget, a.list, b.list, ret_equal));
        case VALUE_MAP:
                return error_pass(equal_maps(budget, a.map, b.map, ret_equal));
        case VALUE_FUNCTION:
                *ret_equal = a.function == b.function;
                return 0;
        default:
                *ret_equal = a.names == b.names;
                return 0;
        }
}

static int order_lists(struct budget *budget, const struct list *a, const struct list *b,
                       int *ret_order)
{
        bool equal = true;
        int r = 0;

        for (uint32_t i = 0; i < a->count && i < b->count; i++) {
                r = value_equal(budget, a->items[i], b->items[i], &equal);
                if (r || !equal)
                        return error_pass(
                                r ? r : value_order(budget, a->items[i], b->items[i], ret_order));
        }
        *ret_order = a->count < b->count ? -1 : a->count > b->count;
        return 0;
}

int value_order(struct budget *budget, struct value a, struct value b, int *ret_order)
{
        int r = budget_charge(budget, 1);

        *ret_order = 0;
        if (r)
                return error_pass(r);
        if (a.kind == VALUE_UNDEFINED || b.kind == VALUE_UNDEFINED)
                return error_pass(undefined_fail(budget, a.kind == VALUE_UNDEFINED ? a : b));
        if (a.kind == VALUE_STRING && b.kind == VALUE_STRING) {
                *ret_order = value_key_order(a, b);
                return error_pass(budget_charge_bytes(
                        budget, a.text->count < b.text->count ? a.text->count : b.text->count));
        }
        if (value_is_number(a) && value_is_number(b)) {
                *ret_order = value_key_order(a, b);
                return 0;
        }
        if (value_is_sequence(a) && value_is_sequence(b) && a.flavour == b.flavour)
                return error_pass(order_lists(budget, a.list, b.list, ret_order));
        return error_raise(budget_fail(budget, "a %s and a %s cannot be ordered", value_type(a),
                                       value_type(b)));
}

int value_check_key(struct budget *budget, struct value value)
{
        int r = budget_charge(budget, 1);

        if (!r &&
            (value.kind == VALUE_MAP || (value.kind == VALUE_LIST && value.flavour != LIST_TUPLE)))
                r = budget_fail(budget, "a %s cannot be a key", value_type(value));
        for (uint32_t i = 0; !r && value.kind == VALUE_LIST && i < value.list->count; i++)
                r = value_check_key(budget, value.list->items[i]);
        return error_pass(r);
}

int value_in(struct budget *budget, struct value item, struct value holder, bool *ret_in)
{
        const struct value *items;
        const struct map_entry *entry;
        uint32_t count;
        int r;

        *ret_in = false;
        if (holder.kind == VALUE_STRING) {
                if (item.kind != VALUE_STRING)
                        return error_raise(
                                budget_fail(budget, "a str cannot contain a %s", value_type(item)));
                *ret_in = text_find(holder.text, item.text, 0, holder.text->count) != TEXT_NOWHERE;
                return error_pass(budget_charge_bytes(budget, (uint64_t)holder.text->count +
                                                                      item.text->count));
        }
        if (holder.kind == VALUE_MAP) {
                if ((r = value_check_key(budget, item)))
                        return error_pass(r);
                r = budget_map_find(budget, holder.map, item, &entry);
                *ret_in = entry;
                return error_pass(r);
        }
        r = value_items(budget, holder, &items, &count);
        for (uint32_t i = 0; !r && !*ret_in && i < count; i++)
                r = value_equal(budget, item, items[i], ret_in);
        return error_pass(r);
}

int value_compare(struct budget *budget, enum compare op, struct value a, struct value b,
                  bool *ret_truth)
{
        int order, r;

        if (op == COMPARE_EQ || op == COMPARE_NE) {
                r = value_equal(budget, a, b, ret_truth);
                *ret_truth = *ret_truth == (op == COMPARE_EQ);
                return error_pass(r);
        }
        if (op == COMPARE_IN || op == COMPARE_NOT_IN) {
                r = value_in(budget, a, b, ret_truth);
                *ret_truth = *ret_truth == (op == COMPARE_IN);
                return error_pass(r);
        }
        r = value_order(budget, a, b, &order);
        *ret_truth = op == COMPARE_LT   ? order < 0
                     : op == COMPARE_LE ? order <= 0
                     : op == COMPARE_GT ? order > 0
                                        : order >= 0;
        return error_pass(r);
}

/* ---- sorting ---- */

static int merge_sorted(struct budget *budget, const struct sortable *from, struct sortable *to,
                        uint32_t count, uint32_t width, bool reverse)
{
        int order, r;

        for (uint64_t start = 0; start < count; start += 2ull * width) {
                uint64_t middle = start + width < count ? start + width : count;
                uint64_t end = middle + width < count ? middle + width : count;
                uint64_t a = start, b = middle;

                for (uint64_t i = start; i < end; i++) {
                        order = a == middle ? 1 : -1;
                        if (a < middle && b < end) {
                                if ((r = value_order(budget, from[a].key, from[b].key, &order)))
                                        return error_pass(r);
                                order = reverse ? -order : order;
                        }
                        to[i] = order <= 0 ? from[a++] : from[b++];
                }
        }
        return 0;
}

int value_sort(struct budget *budget, struct sortable *things, uint32_t count, bool reverse)
{
        struct sortable *other, *from = things, *swap;
        int r;

        other = budget_take(budget, (size_t)count * sizeof(*other), &r);
        for (uint32_t width = 1; !r && width < count; width *= 2) {
                r = merge_sorted(budget, from, other, count, width, reverse);
                swap = from;
                from = other;
                other = swap;
        }
        if (!r && from != things)
                memcpy(things, from, (size_t)count * sizeof(*things));
        return error_pass(r);
}
