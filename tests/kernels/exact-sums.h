/*
 * The bits of sums of products of bfloats, as tiles make them (kernels/cpu/tiles.h), and numbers
 * for tests of them.
 *
 * Floats are not used: each step is exact in integers, then it is rounded once, to 24 bits and to
 * nearest even, whatever its exponent is.  A result below 2^-126 becomes a zero of its sign.
 */
#ifndef TESTS_KERNELS_EXACT_SUMS_H
#define TESTS_KERNELS_EXACT_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#define SIGN     0x80000000u
#define INFINITE 0x7f800000u
#define SOME_NAN 0x7fc00000u

/* How often the steps so far met the cases that a test should contain. */
extern struct seen {
        uint64_t flushed, overflowed, nans;
        uint64_t minus_zeros; /* of two terms that are -0 */
        uint64_t brinks;      /* fmaf() rounds these up to 2^-126 */
} seen;

/* All floats are bits. */
uint32_t exact_add(uint32_t a, uint32_t b);
uint32_t exact_add_product(uint32_t sum, uint16_t x, uint16_t w);
/* c after a dot of some pairs of columns.  Pairs of the weight row are `apart` numbers apart. */
uint32_t exact_dot_add(uint32_t c, const uint16_t *x, const uint16_t *w, uint32_t apart,
                       uint32_t pairs);

bool is_nan(uint32_t bits);
/* Equal, or both NaN: tiles.h does not say which NaN a sum is. */
bool is_same(uint32_t bits, uint32_t should);

/* BRINK: products are 2^-126, 2^-150 and the like.  LARGE: they are near 2^128. */
enum numbers { ANY_SIZE, OF_A_MODEL, BRINK, LARGE, EDGES, NUMBERS };

/* Some are zeros and subnormal, of every kind. */
uint16_t bfloat_any(enum numbers kind);
uint32_t float_any(enum numbers kind);
/* Infinite, or NaN. */
uint16_t special_any(void);

#endif
