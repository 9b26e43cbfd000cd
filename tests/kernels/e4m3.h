/*
 * E4M3 as its definition says, for tests that compare code with it: sign 1, exponent 4 (bias
 * 7), fraction 3; all ones is NaN, there is no infinity.
 */
#ifndef TESTS_KERNELS_E4M3_H
#define TESTS_KERNELS_E4M3_H

#include <math.h>
#include <stdint.h>

static inline double e4m3_value(uint8_t byte)
{
        int exponent = byte >> 3 & 15, fraction = byte & 7;
        double v = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);

        if ((byte & 0x7f) == 0x7f)
                return NAN;
        return byte & 0x80 ? -v : v;
}

/* The byte whose value is nearest to x, which is finite; in a tie the even byte. */
static inline uint8_t e4m3_nearest(double x)
{
        uint8_t nearest = 0;

        for (uint8_t byte = 1; byte < 0x7f; byte++) {
                double less =
                        fabs(e4m3_value(byte) - fabs(x)) - fabs(e4m3_value(nearest) - fabs(x));

                if (less < 0 || (less == 0 && byte % 2 == 0))
                        nearest = byte;
        }
        return (uint8_t)(signbit(x) ? 0x80 | nearest : nearest);
}

#endif
