/*
 * Errors that end a rendering early, and allocations that are charged to its budgets.
 */
#include <errno.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/text/template/budget.h"

/* ---- errors ---- */

int budget_fail(struct budget *budget, const char *format, ...)
{
        char what[200];
        va_list args;

        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        return errtext_set(budget->why, budget->why_bytes, -EINVAL, "%s (line %u)", what,
                           budget->line);
}

int budget_no_fuel(struct budget *budget)
{
        budget->fuel = 0;
        return budget_fail(budget, "the template ran out of fuel; the limit is %llu steps",
                           (unsigned long long)budget->limits.fuel);
}

int budget_no_memory(struct budget *budget)
{
        if (arena_is_spent(budget->arena))
                return error_raise(budget_fail(
                        budget, "the template ran out of memory; the limit is %zu bytes",
                        budget->limits.memory_bytes));
        return error_raise(errtext_set(budget->why, budget->why_bytes, -ENOMEM,
                                       "out of memory while rendering the template"));
}

void *budget_take(struct budget *budget, size_t bytes, int *ret_r)
{
        void *taken = arena_take(budget->arena, bytes);

        *ret_r = taken ? 0 : budget_no_memory(budget);
        return taken;
}

int budget_grow(struct budget *budget, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
        void *old, *new;
        uint32_t more = *capacity ? *capacity * 2 : 4;
        int r;

        if (count < *capacity)
                return 0;
        if (*capacity > UINT32_MAX / 4)
                return error_pass(budget_no_memory(budget));
        if ((r = budget_charge_bytes(budget, count * size)))
                return error_pass(r);
        if (!(new = budget_take(budget, more * size, &r)))
                return error_pass(r);
        memcpy(&old, array, sizeof(old));
        if (count)
                memcpy(new, old, count * size);
        memcpy(array, &new, sizeof(new));
        *capacity = more;
        return 0;
}

/* ---- lists and maps ---- */

static int made(struct budget *budget, int r)
{
        if (r == -E2BIG)
                return error_raise(
                        budget_fail(budget, "values nest deeper than %u", VALUE_DEPTH_MAX));
        return error_pass(r < 0 ? budget_no_memory(budget) : 0);
}

int budget_list(struct budget *budget, uint32_t capacity, enum list_flavour flavour,
                struct value *ret_list)
{
        int r = budget_charge(budget, capacity / 4);

        if (!r)
                r = made(budget, value_list(budget->arena, capacity, ret_list));
        ret_list->flavour = flavour;
        return error_pass(r);
}

int budget_list_add(struct budget *budget, struct value *list, struct value item)
{
        return error_pass(made(budget, value_list_add(list, item)));
}

int budget_map(struct budget *budget, uint32_t capacity, struct value *ret_map)
{
        int r = budget_charge(budget, capacity / 4);

        return error_pass(r ? r : made(budget, value_map(budget->arena, capacity, ret_map)));
}

/* A tuple that is a key has at most this many parts, and no part contains other values. */
#define KEY_PARTS 8u

static bool is_key(struct value key)
{
        if (key.kind != VALUE_LIST)
                return key.kind != VALUE_UNDEFINED && key.kind <= VALUE_STRING;
        if (key.flavour != LIST_TUPLE || key.list->count > KEY_PARTS)
                return false;
        for (uint32_t i = 0; i < key.list->count; i++)
                if (key.list->items[i].kind > VALUE_STRING)
                        return false;
        return true;
}

/* How many bytes a comparison of this key may look at. */
static uint64_t key_bytes(struct value key)
{
        uint64_t bytes = 8;

        if (key.kind == VALUE_STRING)
                return bytes + key.text->count;
        for (uint32_t i = 0; key.kind == VALUE_LIST && i < key.list->count; i++)
                bytes += key_bytes(key.list->items[i]);
        return bytes;
}

static unsigned comparisons(const struct map *map)
{
        unsigned n = 1;

        while (map->count >> n && n < 32)
                n++;
        return n;
}

int budget_map_add(struct budget *budget, struct value *map, struct value key, struct value item)
{
        if (!is_key(key))
                return error_raise(budget_fail(budget, "this kind of %s is not supported as a key",
                                               value_type(key)));
        return error_pass(made(budget, value_map_add(map, key, item)));
}

int budget_map_end(struct budget *budget, struct value *map)
{
        unsigned each = comparisons(map->map);
        uint64_t bytes = 0;
        int r;

        for (uint32_t i = 0; i < map->map->count; i++)
                bytes += key_bytes(map->map->entries[i].key) * each;
        r = budget_charge(budget, map->map->count + bytes / 64);
        return error_pass(r ? r : made(budget, value_map_end(budget->arena, map)));
}

int budget_map_find(struct budget *budget, const struct map *map, struct value key,
                    const struct map_entry **ret_entry)
{
        int r = 0;

        *ret_entry = NULL;
        if (is_key(key))
                r = budget_charge_bytes(budget, key_bytes(key) * comparisons(map));
        if (!r && is_key(key))
                *ret_entry = value_map_find(map, key);
        return error_pass(r);
}
