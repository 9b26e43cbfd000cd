/*
 * Numbers as files and pages write them, and floats.
 *
 * To half rounds to nearest, ties to even; too large becomes infinity, NaN stays
 * NaN and becomes quiet in both directions.  That is what the processors' own
 * conversions do, so a vector path and this one give the same bits.
 */
#ifndef KERNELS_ROWS_H
#define KERNELS_ROWS_H

#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline uint32_t float_bits(float f)
{
        uint32_t u;

        memcpy(&u, &f, sizeof(u));
        return u;
}

static inline float bits_float(uint32_t u)
{
        float f;

        memcpy(&f, &u, sizeof(f));
        return f;
}

float half_to_float(uint16_t half);
uint16_t float_to_half(float f);

static inline float bfloat_to_float(uint16_t bfloat)
{
        return bits_float((uint32_t)bfloat << 16);
}

/* To nearest, ties to even, as to half. */
uint16_t float_to_bfloat(float f);

/* E4M3, a byte: up to 448; all ones is NaN, and what is too large becomes that: there is no infinity. */
float e4m3_to_float(uint8_t byte);
uint8_t float_to_e4m3(float f);

/* `columns` numbers of a file row, whole blocks of them; `row` need not be aligned. */
void row_to_floats(enum row_type type, const void *row, uint32_t columns, float *ret_floats);

#ifdef __cplusplus
}
#endif

#endif
