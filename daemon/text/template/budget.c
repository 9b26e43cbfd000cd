/*
 * Errors that end a rendering early, and allocations that are charged to its budgets.
 */
#include <errno.h>
#include <string.h>

#include "daemon/text/template/operate.h"
#include "daemon/text/template/run.h"
#include "daemon/why.h"

/* ---- errors ---- */

int run_fail(struct run *run, const char *format, ...)
{
        char what[200];
        va_list args;

        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        return why_say(run->why, run->why_bytes, -EINVAL, "%s (line %u)", what,
                       run->template->code[run->pc].line);
}

int run_no_fuel(struct run *run)
{
        run->fuel = 0;
        return run_fail(run, "the template ran out of fuel, of which it had %llu",
                        (unsigned long long)run->limits.fuel);
}

int run_no_memory(struct run *run)
{
        if (arena_is_spent(run->arena))
                return error_raise(
                        run_fail(run, "the template ran out of memory, of which it had %zu bytes",
                                 run->limits.memory_bytes));
        return error_raise(
                why_say(run->why, run->why_bytes, -ENOMEM, "no memory to render the template"));
}

void *run_take(struct run *run, size_t bytes, int *ret_r)
{
        void *taken = arena_take(run->arena, bytes);

        *ret_r = taken ? 0 : run_no_memory(run);
        return taken;
}

int run_grow(struct run *run, void *array, uint32_t count, uint32_t *room, size_t size)
{
        void *old, *new;
        uint32_t more = *room ? *room * 2 : 4;
        int r;

        if (count < *room)
                return 0;
        if (*room > UINT32_MAX / 4)
                return error_pass(run_no_memory(run));
        if ((r = run_charge_bytes(run, count * size)))
                return error_pass(r);
        if (!(new = run_take(run, more * size, &r)))
                return error_pass(r);
        memcpy(&old, array, sizeof(old));
        if (count)
                memcpy(new, old, count * size);
        memcpy(array, &new, sizeof(new));
        *room = more;
        return 0;
}

/* ---- lists and maps ---- */

static int made(struct run *run, int r)
{
        if (r == -E2BIG)
                return error_raise(run_fail(run, "values nest deeper than %u", VALUE_DEPTH_MAX));
        return error_pass(r < 0 ? run_no_memory(run) : 0);
}

int run_list(struct run *run, uint32_t room, enum list_flavour flavour, struct value *ret_list)
{
        int r = run_charge(run, room / 4);

        if (!r)
                r = made(run, value_list(run->arena, room, ret_list));
        ret_list->flavour = flavour;
        return error_pass(r);
}

int run_list_add(struct run *run, struct value *list, struct value item)
{
        return error_pass(made(run, value_list_add(list, item)));
}

int run_map(struct run *run, uint32_t room, struct value *ret_map)
{
        int r = run_charge(run, room / 4);

        return error_pass(r ? r : made(run, value_map(run->arena, room, ret_map)));
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

int run_map_add(struct run *run, struct value *map, struct value key, struct value item)
{
        if (!is_key(key))
                return error_raise(
                        run_fail(run, "such a %s as a key is not known here", value_type(key)));
        return error_pass(made(run, value_map_add(map, key, item)));
}

int run_map_end(struct run *run, struct value *map)
{
        unsigned each = comparisons(map->map);
        uint64_t bytes = 0;
        int r;

        for (uint32_t i = 0; i < map->map->count; i++)
                bytes += key_bytes(map->map->entries[i].key) * each;
        r = run_charge(run, map->map->count + bytes / 64);
        return error_pass(r ? r : made(run, value_map_end(run->arena, map)));
}

int run_map_find(struct run *run, const struct map *map, struct value key,
                 const struct map_entry **ret_entry)
{
        int r = 0;

        *ret_entry = NULL;
        if (is_key(key))
                r = run_charge_bytes(run, key_bytes(key) * comparisons(map));
        if (!r && is_key(key))
                *ret_entry = value_map_find(map, key);
        return error_pass(r);
}
