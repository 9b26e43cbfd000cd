/*
 * How many of what a test may have more or fewer of: SMV_TEST_SCALE, 20 or 1/10, multiplies it.
 */
#ifndef TESTS_SCALE_H
#define TESTS_SCALE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* n times SMV_TEST_SCALE, rounded up, at most `most`. */
static inline uint32_t scaled(uint32_t n, uint32_t most)
{
        const char *scale = getenv("SMV_TEST_SCALE");
        unsigned times = 1, of = 1;
        uint64_t all;

        if (scale)
                sscanf(scale, "%u/%u", &times, &of);
        all = (n * (uint64_t)times + of - 1) / of;
        return all > most ? most : (uint32_t)all;
}

#endif
