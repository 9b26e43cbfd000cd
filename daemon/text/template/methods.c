/*
 * The methods of maps, lists and loops.
 */
#include "daemon/text/template/budget.h"
#include "daemon/text/template/builtins.h"
#include "daemon/text/template/compare.h"
#include "daemon/text/template/objects.h"

#define COUNT(rows) (sizeof(rows) / sizeof(*(rows)))

/* ---- maps ---- */

static int map_view(struct budget *budget, struct value self, bool keys, bool values,
                    struct value *ret_value)
{
        const struct map *map = self.map;
        struct value pair;
        int r = budget_list(budget, map->count, LIST_VIEW, ret_value);

        for (uint32_t i = 0; !r && i < map->count; i++) {
                if (!keys || !values) {
                        r = budget_list_add(budget, ret_value,
                                            keys ? map->entries[i].key : map->entries[i].value);
                        continue;
                }
                r = budget_list(budget, 2, LIST_TUPLE, &pair);
                if (!r)
                        r = budget_list_add(budget, &pair, map->entries[i].key);
                if (!r)
                        r = budget_list_add(budget, &pair, map->entries[i].value);
                if (!r)
                        r = budget_charge(budget, 1);
                if (!r)
                        r = budget_list_add(budget, ret_value, pair);
        }
        return error_pass(r);
}

static int map_items(struct budget *budget, struct value self, const struct call *call,
                     struct value *ret_value)
{
        (void)call;
        return error_pass(map_view(budget, self, true, true, ret_value));
}

static int map_keys(struct budget *budget, struct value self, const struct call *call,
                    struct value *ret_value)
{
        (void)call;
        return error_pass(map_view(budget, self, true, false, ret_value));
}

static int map_values(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        (void)call;
        return error_pass(map_view(budget, self, false, true, ret_value));
}

static int map_get(struct budget *budget, struct value self, const struct call *call,
                   struct value *ret_value)
{
        struct value key = call->slots[0];
        const struct map_entry *entry;
        int r = value_check_key(budget, key);

        if (r)
                return error_pass(r);
        r = budget_map_find(budget, self.map, key, &entry);
        *ret_value = entry                        ? entry->value
                     : is_missing(call->slots[1]) ? value_none()
                                                  : call->slots[1];
        return error_pass(r);
}

static int map_copy(struct budget *budget, struct value self, const struct call *call,
                    struct value *ret_value)
{
        (void)call;
        *ret_value = self;
        return error_pass(budget_charge(budget, 1));
}

static int changes(struct budget *budget, struct value self, const struct call *call,
                   struct value *ret_value)
{
        (void)call;
        *ret_value = self;
        return error_raise(budget_fail(budget, "templates may not change a %s", value_type(self)));
}

static const struct builtin map_rows[] = {
        { "items", map_items, "", 0 },     { "keys", map_keys, "", 0 },
        { "values", map_values, "", 0 },   { "get", map_get, "/ /", 1 },
        { "copy", map_copy, "", 0 },       { "clear", changes, "*", 0 },
        { "pop", changes, "*", 0 },        { "popitem", changes, "*", 0 },
        { "setdefault", changes, "*", 0 }, { "update", changes, "*", 0 },
        { "fromkeys", NULL, "", 0 },
};
const struct builtins map_methods = { "method of dictionaries", map_rows, COUNT(map_rows) };

/* ---- lists ---- */

static int list_count(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        int64_t count = 0;
        bool equal;
        int r = 0;

        for (uint32_t i = 0; !r && i < self.list->count; i++) {
                r = value_equal(budget, self.list->items[i], call->slots[0], &equal);
                count += !r && equal;
        }
        *ret_value = value_integer(count);
        return error_pass(r);
}

static int list_index(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        bool equal;
        int r;

        for (uint32_t i = 0; i < self.list->count; i++) {
                r = value_equal(budget, self.list->items[i], call->slots[0], &equal);
                *ret_value = value_integer(i);
                if (r || equal)
                        return error_pass(r);
        }
        return error_raise(budget_fail(budget, "a value is not found in a %s", value_type(self)));
}

static const struct builtin list_rows[] = {
        { "count", list_count, "/", 1 }, { "index", list_index, "/", 1 },
        { "copy", map_copy, "", 0 },     { "append", changes, "*", 0 },
        { "clear", changes, "*", 0 },    { "pop", changes, "*", 0 },
        { "reverse", changes, "*", 0 },  { "insert", changes, "*", 0 },
        { "sort", changes, "*", 0 },     { "extend", changes, "*", 0 },
        { "remove", changes, "*", 0 },
};
const struct builtins list_methods = { "method of lists", list_rows, COUNT(list_rows) };

/* ---- loops ---- */

static int loop_cycle(struct budget *budget, struct value self, const struct call *call,
                      struct value *ret_value)
{
        if (!call->all.count)
                return error_raise(budget_fail(budget, "'cycle' has no arguments"));
        *ret_value = call->all.values[self.loop->at % call->all.count];
        return error_pass(budget_charge(budget, 1));
}

static int loop_changed(struct budget *budget, struct value self, const struct call *call,
                        struct value *ret_value)
{
        struct value given;
        bool equal = false;
        int r = budget_list(budget, call->all.count, LIST_TUPLE, &given);

        for (uint32_t i = 0; !r && i < call->all.count; i++)
                r = budget_list_add(budget, &given, call->all.values[i]);
        if (!r && !is_missing(self.loop->changed))
                r = value_equal(budget, given, self.loop->changed, &equal);
        self.loop->changed = given;
        *ret_value = value_bool(!equal);
        return error_pass(r);
}

static const struct builtin loop_rows[] = {
        { "cycle", loop_cycle, "*", 0 },
        { "changed", loop_changed, "*", 0 },
};
const struct builtins loop_methods = { "method of loops", loop_rows, COUNT(loop_rows) };
