/*
 * The budget of one rendering: its memory, its fuel and its error.
 *
 * A function charges fuel in proportion to the bytes that it will copy or look at, before it does
 * so; a few linear scans charge right after.  Therefore no filter can work for longer than there is
 * fuel, however it is called.  Memory comes from the arena and is not freed before the rendering
 * ends.
 *
 * Operations on values get a budget and nothing else of the machine (run.h).
 */
#ifndef DAEMON_TEXT_TEMPLATE_BUDGET_H
#define DAEMON_TEXT_TEMPLATE_BUDGET_H

#include "base/error.h"
#include "daemon/text/template.h"

struct budget {
        struct arena *arena;
        struct template_limits limits;
        uint64_t fuel;        /* left */
        unsigned calls;       /* how deep macros and the filter `map` call each other now */
        uint32_t line;        /* of the instruction that runs, for messages; the machine sets it */
        const struct tm *now; /* for strftime_now */
        char *why;
        size_t why_bytes;
};

/* Ends the rendering with a sentence and appends the line to it; returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int budget_fail(struct budget *budget, const char *format,
                                                      ...);
/* After an allocation failed: -EINVAL if the budget is spent, -ENOMEM if malloc() failed. */
int budget_no_memory(struct budget *budget);
int budget_no_fuel(struct budget *budget);

static inline int budget_charge(struct budget *budget, uint64_t steps)
{
        if (budget->fuel < steps)
                return error_raise(budget_no_fuel(budget));
        budget->fuel -= steps;
        return 0;
}

static inline int budget_charge_bytes(struct budget *budget, uint64_t bytes)
{
        return budget_charge(budget, bytes / 64);
}

/* NULL: *ret_r is the error. */
void *budget_take(struct budget *budget, size_t bytes, int *ret_r);
/* Makes room for `count` + 1 things of `size` bytes in *array; 0 or an error. */
int budget_grow(struct budget *budget, void *array, uint32_t count, uint32_t *capacity,
                size_t size);

/* As value_list() and so on; an error names the limit: the budget or the depth. */
int budget_list(struct budget *budget, uint32_t capacity, enum list_flavour flavour,
                struct value *ret_list);
int budget_list_add(struct budget *budget, struct value *list, struct value item);
int budget_map(struct budget *budget, uint32_t capacity, struct value *ret_map);
int budget_map_add(struct budget *budget, struct value *map, struct value key, struct value item);
int budget_map_end(struct budget *budget, struct value *map);
/* *ret_entry is NULL if the key is not there. */
int budget_map_find(struct budget *budget, const struct map *map, struct value key,
                    const struct map_entry **ret_entry);

#endif
