/*
 * Numbers within a range, digit by digit.
 *
 * A reader of digits compares them with both bounds while they come: each bound is less, equal so
 * far, or greater.  With the number of digits, and a remainder if the number has to be a multiple,
 * this says whether the number is within the range, and whether it can still get there.  There are
 * few states, whatever the bounds are.
 *
 * The number is a magnitude: its sign is the caller's.  It has no exponent.  Pure functions.
 */
#ifndef CONSTRAINT_NUMBER_RANGE_H
#define CONSTRAINT_NUMBER_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/constraint/decimal.h"

struct number_range {
        struct decimal low, high;
        bool has_high;
        bool above, below;    /* the bound itself is outside */
        uint8_t whole_max;    /* digits before the point, if there is no high bound */
        uint8_t fraction_max; /* digits behind the point; 0: no point */
        uint32_t multiple;    /* 0, or the number times 10^multiple_scale is a multiple of it */
        uint8_t multiple_scale;
};

/* Two words, so that an expression can have it as a term. */
struct number_state {
        uint32_t remainder;
        uint32_t packed;
};

struct number_state number_begin(void);
/* False: the digits that were read cannot get into the range, or this byte is no part of it. */
bool number_step(const struct number_range *range, struct number_state *state, uint8_t byte);
bool number_complete(const struct number_range *range, struct number_state state);
bool number_possible(const struct number_range *range, struct number_state state);

#endif
