/*
 * Filters of lists.  The key by which they sort, group or choose is found by a path into each item.
 * A key that is a string is compared in lower case, unless case counts.
 */
#include "daemon/text/template/access.h"
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/case.h"
#include "daemon/text/template/code.h"
#include "daemon/text/template/compare.h"
#include "daemon/text/template/filters.h"
#include "daemon/text/template/objects.h"
#include "daemon/text/template/operate.h"
#include "daemon/text/template/print.h"
#include "daemon/text/template/strings.h"
#include "daemon/text/template/text.h"

#include "base/errtext.h"

static const struct value missing = { .kind = MISSING };

/* ---- one item, or the number of items ---- */

static int nothing(struct value *ret_value)
{
        *ret_value = (struct value){ .kind = VALUE_UNDEFINED };
        return 0;
}

int filter_first(struct budget *budget, struct value self, const struct call *call,
                 struct value *ret_value)
{
        const struct value *items;
        uint32_t count;
        int r = value_items(budget, self, &items, &count);

        (void)call;
        if (r || !count)
                return error_pass(r ? r : nothing(ret_value));
        *ret_value = items[0];
        return 0;
}

int filter_last(struct budget *budget, struct value self, const struct call *call,
                struct value *ret_value)
{
        const struct value *items;
        uint32_t count;
        int r = value_items(budget, self, &items, &count);

        (void)call;
        if (!r && (self.kind == VALUE_UNDEFINED ||
                   (self.kind == VALUE_LIST && self.flavour == LIST_STREAM)))
                r = budget_fail(budget, "a %s has no 'last'", value_type(self));
        if (r || !count)
                return error_pass(r ? r : nothing(ret_value));
        *ret_value = items[count - 1];
        return 0;
}

int filter_length(struct budget *budget, struct value self, const struct call *call,
                  struct value *ret_value)
{
        uint32_t length;
        bool has;
        int r = value_length(budget, self, &length, &has);

        (void)call;
        if (!r && !has)
                r = budget_fail(budget, "a %s has no length", value_type(self));
        *ret_value = value_integer(length);
        return error_pass(r);
}

/* ---- the same items in another order ---- */

static int make_list(struct budget *budget, const struct value *items, uint32_t count,
                     enum list_flavour flavour, struct value *ret_value)
{
        int r = budget_list(budget, count, flavour, ret_value);

        for (uint32_t i = 0; !r && i < count; i++)
                r = budget_list_add(budget, ret_value, items[i]);
        return error_pass(r);
}

int filter_list(struct budget *budget, struct value self, const struct call *call,
                struct value *ret_value)
{
        const struct value *items;
        uint32_t count;
        int r = value_items(budget, self, &items, &count);

        (void)call;
        return error_pass(r ? r : make_list(budget, items, count, LIST_LIST, ret_value));
}

int filter_reverse(struct budget *budget, struct value self, const struct call *call,
                   struct value *ret_value)
{
        static const struct value parts[] = { { .kind = VALUE_NONE },
                                              { .kind = VALUE_NONE },
                                              { .kind = VALUE_INTEGER, .integer = -1 } };
        const struct value *items;
        uint32_t count;
        int r;

        (void)call;
        if (self.kind == VALUE_STRING)
                return error_pass(value_slice(budget, self, parts, ret_value));
        r = value_items(budget, self, &items, &count);
        if (!r)
                r = budget_list(budget, count, LIST_STREAM, ret_value);
        while (!r && count--)
                r = budget_list_add(budget, ret_value, items[count]);
        return error_pass(r);
}

int filter_items(struct budget *budget, struct value self, const struct call *call,
                 struct value *ret_value)
{
        const struct arguments none = { .count = 0 };
        int r;

        (void)call;
        if (self.kind == VALUE_UNDEFINED)
                return error_pass(budget_list(budget, 0, LIST_STREAM, ret_value));
        if (self.kind != VALUE_MAP)
                return error_raise(budget_fail(budget, "a %s has no 'items'", value_type(self)));
        r = builtin_call(budget, &map_methods, builtin_find(&map_methods, "items", 5), self, &none,
                         ret_value);
        ret_value->flavour = LIST_STREAM;
        return error_pass(r);
}

/* The key by which an item is sorted; without a path, the item itself. */
static int key_of(struct budget *budget, struct value item, struct value path,
                  struct value otherwise, bool cased, struct value *ret_key)
{
        int r = 0;

        *ret_key = item;
        if (!is_missing(path) && path.kind != VALUE_NONE)
                r = value_path(budget, item, path, otherwise, ret_key);
        if (!r && !cased && ret_key->kind == VALUE_STRING)
                r = string_in_case(budget, ret_key->text, CASE_LOWER, ret_key);
        return error_pass(r);
}

/* The keys for a path such as "a,b": a list with the key of each part. */
static int keys_of(struct budget *budget, struct value item, struct value path, bool cased,
                   struct value *ret_key)
{
        const struct text comma = TEXT_WORD(comma, ",");
        uint32_t from = 0, end, count = 1;
        struct value part, key;
        int r;

        if (path.kind != VALUE_STRING)
                return error_pass(key_of(budget, item, path, missing, cased, ret_key));
        for (uint32_t i = 0; i < path.text->count; i++)
                count += path.text->bytes[i] == ',';
        r = budget_list(budget, count, LIST_LIST, ret_key);
        while (!r && count--) {
                end = text_find(path.text, &comma, from, path.text->count);
                if (end == TEXT_NOWHERE)
                        end = path.text->count;
                r = text_slice(budget, path.text, from, end, &part);
                if (!r)
                        r = key_of(budget, item, part, missing, cased, &key);
                if (!r)
                        r = budget_list_add(budget, ret_key, key);
                from = end + 1;
        }
        return error_pass(r);
}

static int sort_by(struct budget *budget, struct value self, struct value path, bool cased,
                   bool reverse, struct sortable **ret_things, uint32_t *ret_count)
{
        const struct value *items;
        struct sortable *things;
        int r = value_items(budget, self, &items, ret_count);

        if (!r)
                r = budget_charge(budget, *ret_count / 2);
        if (r || !(things = budget_take(budget, (size_t)*ret_count * sizeof(*things), &r)))
                return error_pass(r);
        for (uint32_t i = 0; !r && i < *ret_count; i++) {
                things[i].value = items[i];
                r = keys_of(budget, items[i], path, cased, &things[i].key);
        }
        *ret_things = things;
        return error_pass(r ? r : value_sort(budget, things, *ret_count, reverse));
}

static int list_things(struct budget *budget, const struct sortable *things, uint32_t count,
                       struct value *ret_value)
{
        int r = budget_list(budget, count, LIST_LIST, ret_value);

        for (uint32_t i = 0; !r && i < count; i++)
                r = budget_list_add(budget, ret_value, things[i].value);
        return error_pass(r);
}

int filter_sort(struct budget *budget, struct value self, const struct call *call,
                struct value *ret_value)
{
        struct sortable *things = NULL;
        uint32_t count = 0;
        int r = sort_by(budget, self, call->slots[2], truth_argument(call->slots[1], false),
                        truth_argument(call->slots[0], false), &things, &count);

        return error_pass(r ? r : list_things(budget, things, count, ret_value));
}

int filter_dictsort(struct budget *budget, struct value self, const struct call *call,
                    struct value *ret_value)
{
        struct value by = call->slots[1], pairs;
        struct sortable *things = NULL;
        bool keys = is_missing(by) || (by.kind == VALUE_STRING && text_is(by.text, "key"));
        uint32_t count = 0;
        int r;

        if (self.kind == VALUE_UNDEFINED)
                return error_pass(undefined_fail(budget, self));
        if (!keys && !(by.kind == VALUE_STRING && text_is(by.text, "value")))
                return error_raise(budget_fail(budget, "'dictsort' sorts by 'key' or 'value'"));
        r = filter_items(budget, self, call, &pairs);
        if (!r)
                r = sort_by(budget, pairs, value_integer(!keys),
                            truth_argument(call->slots[0], false),
                            truth_argument(call->slots[2], false), &things, &count);
        return error_pass(r ? r : list_things(budget, things, count, ret_value));
}

/* ---- the same items in groups ---- */

/* Pairs of a value and the items that have it, sorted by the value. */
int filter_groupby(struct budget *budget, struct value self, const struct call *call,
                   struct value *ret_value)
{
        struct value path = call->slots[0], otherwise = call->slots[1], group, key, pair;
        bool cased = truth_argument(call->slots[2], false), equal;
        const struct value *items;
        struct sortable *things;
        uint32_t count, end;
        int r = value_items(budget, self, &items, &count);

        if (!r)
                r = budget_list(budget, count, LIST_LIST, ret_value);
        if (r || !(things = budget_take(budget, (size_t)count * sizeof(*things), &r)))
                return error_pass(r);
        for (uint32_t i = 0; !r && i < count; i++) {
                things[i].value = items[i];
                r = key_of(budget, items[i], path, otherwise, cased, &things[i].key);
        }
        if (!r)
                r = value_sort(budget, things, count, false);
        for (uint32_t i = 0; !r && i < count; i = end) {
                for (end = i + 1, equal = true; !r && end < count && equal; end += equal)
                        r = value_equal(budget, things[i].key, things[end].key, &equal);
                if (!r)
                        r = list_things(budget, things + i, end - i, &group);
                if (!r)
                        r = key_of(budget, things[i].value, path, otherwise, true, &key);
                if (!r)
                        r = budget_list(budget, 2, LIST_TUPLE, &pair);
                if (!r)
                        r = budget_list_add(budget, &pair, key);
                if (!r)
                        r = budget_list_add(budget, &pair, group);
                /* the cast is safe: no other code has seen this list yet */
                if (!r)
                        ((struct list *)pair.list)->grouped = true;
                if (!r)
                        r = budget_list_add(budget, ret_value, pair);
        }
        return error_pass(r);
}

/* The first of all equal items, in order; each key is compared with all keys seen before. */
int filter_unique(struct budget *budget, struct value self, const struct call *call,
                  struct value *ret_value)
{
        bool cased = truth_argument(call->slots[0], false);
        const struct value *items;
        struct value seen, key;
        uint32_t count;
        int r = value_items(budget, self, &items, &count);

        if (!r)
                r = budget_list(budget, count, LIST_STREAM, ret_value);
        if (!r)
                r = budget_list(budget, count, LIST_LIST, &seen);
        for (uint32_t i = 0; !r && i < count; i++) {
                bool twice = false;

                r = key_of(budget, items[i], call->slots[1], missing, cased, &key);
                if (!r)
                        r = value_check_key(budget, key);
                if (!r)
                        r = value_in(budget, key, seen, &twice);
                if (!r && !twice)
                        r = budget_list_add(budget, &seen, key);
                if (!r && !twice)
                        r = budget_list_add(budget, ret_value, items[i]);
        }
        return error_pass(r);
}

/* A list of `count` items from items[from] on, filled up to `capacity` if there is a fill value. */
static int pack(struct budget *budget, const struct value *items, uint32_t from, uint32_t count,
                uint32_t capacity, struct value fill, struct value *ret_list)
{
        int r;

        /* `items` may be NULL if count is 0 */
        if (count)
                items += from;
        r = make_list(budget, items, count, LIST_LIST, ret_list);

        if (r || is_missing(fill) || fill.kind == VALUE_NONE || capacity <= count)
                return error_pass(r);
        r = budget_list(budget, capacity, LIST_LIST, ret_list);
        for (uint32_t i = 0; !r && i < capacity; i++)
                r = budget_list_add(budget, ret_list, i < count ? items[i] : fill);
        return error_pass(r);
}

int filter_batch(struct budget *budget, struct value self, const struct call *call,
                 struct value *ret_value)
{
        const struct value *items;
        struct value part;
        uint32_t count, n;
        int64_t size;
        int r = value_items(budget, self, &items, &count);

        if (!r)
                r = integer_argument(budget, call->slots[0], 1, &size);
        if (!r && (size < 1 || size > UINT32_MAX))
                r = budget_fail(budget, "a batch has %lld items", (long long)size);
        if (!r)
                r = budget_list(budget, (uint32_t)(count / size) + 1, LIST_STREAM, ret_value);
        for (uint32_t from = 0; !r && from < count; from += n) {
                n = count - from < size ? count - from : (uint32_t)size;
                r = pack(budget, items, from, n, (uint32_t)size, call->slots[1], &part);
                if (!r)
                        r = budget_list_add(budget, ret_value, part);
        }
        return error_pass(r);
}

int filter_slice(struct budget *budget, struct value self, const struct call *call,
                 struct value *ret_value)
{
        const struct value *items;
        struct value part;
        uint32_t count, from = 0;
        int64_t slices;
        int r = value_items(budget, self, &items, &count);

        if (!r)
                r = integer_argument(budget, call->slots[0], 1, &slices);
        if (!r && slices < 1)
                r = budget_fail(budget, "%lld slices", (long long)slices);
        if (!r)
                r = budget_charge(budget, (uint64_t)slices);
        if (!r)
                r = budget_list(budget, (uint32_t)slices, LIST_STREAM, ret_value);
        for (int64_t i = 0; !r && i < slices; i++) {
                uint32_t each = (uint32_t)(count / slices), more = i < count % slices;

                r = pack(budget, items, from, each + more, each + 1,
                         i >= count % slices ? call->slots[1] : missing, &part);
                if (!r)
                        r = budget_list_add(budget, ret_value, part);
                from += each + more;
        }
        return error_pass(r);
}

/* ---- all items together ---- */

int filter_join(struct budget *budget, struct value self, const struct call *call,
                struct value *ret_value)
{
        const struct value *items;
        struct value between, parts;
        uint32_t count;
        int r = value_items(budget, self, &items, &count);

        if (!r)
                r = is_missing(call->slots[0]) ? text_ours(budget, "", 0, &between)
                                               : print_text(budget, call->slots[0], &between);
        if (!r && !is_missing(call->slots[1]) && call->slots[1].kind != VALUE_NONE) {
                r = budget_list(budget, count, LIST_LIST, &parts);
                for (uint32_t i = 0; !r && i < count; i++) {
                        struct value part;

                        r = value_path(budget, items[i], call->slots[1], missing, &part);
                        if (!r)
                                r = budget_list_add(budget, &parts, part);
                }
                if (!r)
                        items = parts.list->items;
        }
        return error_pass(r ? r
                            : string_join(budget, between.text, items, count, false, ret_value));
}

int filter_sum(struct budget *budget, struct value self, const struct call *call,
               struct value *ret_value)
{
        const struct value *items;
        struct value item;
        uint32_t count;
        int r = value_items(budget, self, &items, &count);

        *ret_value = is_missing(call->slots[1]) ? value_integer(0) : call->slots[1];
        if (!r && ret_value->kind == VALUE_STRING)
                r = budget_fail(budget, "strings cannot be summed; use join");
        for (uint32_t i = 0; !r && i < count; i++) {
                r = key_of(budget, items[i], call->slots[0], missing, true, &item);
                if (!r)
                        r = budget_charge(budget, 1);
                if (!r)
                        r = value_binary(budget, BINARY_ADD, *ret_value, item, ret_value);
        }
        return error_pass(r);
}

static int extreme(struct budget *budget, struct value self, const struct call *call, int sign,
                   struct value *ret_value)
{
        bool cased = truth_argument(call->slots[0], false);
        const struct value *items;
        struct value key, best = missing;
        uint32_t count;
        int r = value_items(budget, self, &items, &count), order = -1;

        nothing(ret_value);
        for (uint32_t i = 0; !r && i < count; i++) {
                r = key_of(budget, items[i], call->slots[1], missing, cased, &key);
                if (!r && i)
                        r = value_order(budget, key, best, &order);
                if (r || (i && order * sign >= 0))
                        continue;
                best = key;
                *ret_value = items[i];
        }
        return error_pass(r);
}

int filter_min(struct budget *budget, struct value self, const struct call *call,
               struct value *ret_value)
{
        return error_pass(extreme(budget, self, call, 1, ret_value));
}

int filter_max(struct budget *budget, struct value self, const struct call *call,
               struct value *ret_value)
{
        return error_pass(extreme(budget, self, call, -1, ret_value));
}
