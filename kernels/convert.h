/*
 * Conversion between floats and the numbers of files and pages.
 *
 * Conversion to half rounds to nearest, ties to even. A number that is too large becomes
 * infinity. NaN stays NaN and becomes quiet in both directions. The processors' own conversions
 * do the same, so a vector path and this one give the same bits.
 */
#ifndef KERNELS_CONVERT_H
#define KERNELS_CONVERT_H

#include <stdbool.h>
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

/* Has no branches, like float_to_bfloat(), so that the compiler can vectorise loops of it. */
static inline float half_to_float(uint16_t half)
{
        uint32_t sign = (uint32_t)(half & 0x8000) << 16;
        uint32_t bits = (uint32_t)(half & 0x7fff) << 13;
        uint32_t normal = bits + ((127 - 15) << 23);
        /* computed as if there were a hidden one bit, which is subtracted again: exact */
        uint32_t subnormal = float_bits(bits_float(normal + (1 << 23)) - 0x1p-14f);
        uint32_t is_subnormal = -(uint32_t)(bits < 0x00800000);
        uint32_t infinite = -(uint32_t)(bits >= 0x0f800000) & 0x7f800000;
        uint32_t quiet = -(uint32_t)(bits > 0x0f800000) & 0x00400000;

        return bits_float((subnormal & is_subnormal) | (normal & ~is_subnormal) | infinite | quiet |
                          sign);
}
uint16_t float_to_half(float f);

static inline float bfloat_to_float(uint16_t bfloat)
{
        return bits_float((uint32_t)bfloat << 16);
}

/* Rounds to nearest, ties to even, as float_to_half() does. */
static inline uint16_t float_to_bfloat(float f)
{
        uint32_t bits = float_bits(f);
        bool nan = (bits & 0x7fffffff) > 0x7f800000;

        return (uint16_t)(nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/*
 * E4M3, a byte: up to 448. All ones is NaN. A number that is too large becomes NaN, because there
 * is no infinity.
 */
float e4m3_to_float(uint8_t byte);
uint8_t float_to_e4m3(float f);

#ifdef __cplusplus
}
#endif

#endif
