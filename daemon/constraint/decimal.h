/* Decimals without a sign: what the bounds of numbers are.  Pure functions. */
#ifndef CONSTRAINT_DECIMAL_H
#define CONSTRAINT_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#define NUMBER_DIGITS 40 /* before the point and behind it */

/*
 * `digits` has `whole` digits before the point and `count - whole` behind it, and zeros behind all.
 * There are no zeros in front, but 0 itself has one digit, and none at the end behind the point.
 */
struct decimal {
        uint8_t digits[2 * NUMBER_DIGITS];
        uint8_t whole, count;
};

/* Reads a number of JSON.  False: it has too many digits. */
bool decimal_read(const char *text, struct decimal *ret_decimal, bool *ret_negative);
int decimal_compare(const struct decimal *one, const struct decimal *other);
bool decimal_is_zero(const struct decimal *decimal);

/*
 * The nearest decimal with at most `scale` digits behind the point that is not below (up) or not
 * above (down); with `above` or `below`, one that differs.  False: there is none.
 */
bool decimal_up(struct decimal *decimal, unsigned scale, bool above);
bool decimal_down(struct decimal *decimal, unsigned scale, bool below);

#endif
