/*
 * Free numbers: gives out numbers of a range, such as the indices of a table, and takes them back.
 *
 * A stack: the number that came back last is given out next, because its entry of the table is
 * most likely still in a cache.  At first the lowest number is given out first.  The caller
 * provides the memory, one uint32_t for each number; nothing here allocates, and each function
 * but free_numbers_init() takes constant time.
 */
#ifndef BASE_FREE_NUMBERS_H
#define BASE_FREE_NUMBERS_H

#include <assert.h>
#include <stdint.h>

struct free_numbers {
        uint32_t *numbers; /* numbers[0 .. count) are free; the last one is given out next */
        uint32_t count, max;
};

/* All numbers from `first` to first + max - 1 are free.  `memory` has space for max entries. */
static inline void free_numbers_init(struct free_numbers *free_numbers, uint32_t *memory,
                                     uint32_t first, uint32_t max)
{
        *free_numbers = (struct free_numbers){ .numbers = memory, .count = max, .max = max };
        for (uint32_t i = 0; i < max; i++)
                memory[i] = first + (max - 1 - i);
}

/* At least one number must be free. */
static inline uint32_t free_numbers_take(struct free_numbers *free_numbers)
{
        assert(free_numbers->count > 0 && free_numbers->count <= free_numbers->max);

        return free_numbers->numbers[--free_numbers->count];
}

/* The number that the next take returns.  At least one number must be free. */
static inline uint32_t free_numbers_next(const struct free_numbers *free_numbers)
{
        assert(free_numbers->count > 0 && free_numbers->count <= free_numbers->max);

        return free_numbers->numbers[free_numbers->count - 1];
}

/* The number must have been taken, which is not checked. */
static inline void free_numbers_give_back(struct free_numbers *free_numbers, uint32_t number)
{
        assert(free_numbers->count < free_numbers->max);

        free_numbers->numbers[free_numbers->count++] = number;
}

#endif
