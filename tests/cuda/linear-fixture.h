/*
 * Shared by tests of products with weights: random numbers, memory, and file rows of any type.
 */
#ifndef TESTS_CUDA_LINEAR_FIXTURE_H
#define TESTS_CUDA_LINEAR_FIXTURE_H

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <initializer_list>

extern "C" {
#include <cmocka.h>
}

#include "kernels/convert.h"
#include "kernels/cuda/linear.h"

static uint64_t dice;

static inline void roll_from_seed(void)
{
        const char *seed = getenv("SEED");

        dice = seed ? strtoull(seed, nullptr, 0) : (uint64_t)time(nullptr) << 20 | 1;
        print_message("SEED=%llu\n", (unsigned long long)dice);
}

static inline uint32_t roll(void)
{
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        return (uint32_t)(dice >> 20);
}

static inline float real(void) /* -1 .. 1, exact as a bfloat */
{
        return (float)((int)(roll() % 255) - 127) / 128;
}

static inline uint16_t exact_bfloat(float f)
{
        assert_int_equal(float_bits(f) & 0xffff, 0);
        return (uint16_t)(float_bits(f) >> 16);
}

template <class T> static inline T *make(size_t count, int byte)
{
        void *made;

        if (posix_memalign(&made, 256, count ? count * sizeof(T) : 1))
                abort();
        memset(made, byte, count * sizeof(T));
        return (T *)made;
}

/* ---- file rows ---- */

/* Any codes except NaN, and a small scale that no other type could hold. */
static inline void roll_e4m3(uint32_t columns, uint8_t *row)
{
        for (uint32_t k = 0; k < columns; k += 128, row += 132) {
                float scale = real() * 0.0123f;

                memcpy(row, &scale, 4);
                for (uint32_t i = 4; i < 132; i++)
                        do
                                row[i] = (uint8_t)roll();
                        while ((row[i] & 0x7f) == 0x7f);
        }
}

/*
 * Blocks of random bytes, except for their scales (where: offsets of halves), which are small
 * numbers.
 */
static inline void roll_row(row_type type, uint32_t columns, uint8_t *row)
{
        size_t bytes = row_bytes(type, columns);
        size_t block = type == ROW_Q8_0 ? 34 : type == ROW_Q4_0 ? 18 : row_bytes(type, 256);
        size_t scale = type == ROW_Q6_K ? 208 : 0;

        for (size_t i = 0; i < bytes; i++)
                row[i] = (uint8_t)roll();
        if (type == ROW_F32 || type == ROW_F16 || type == ROW_BF16) {
                for (uint32_t i = 0; i < columns; i++) {
                        float f = real();
                        uint16_t half = type == ROW_F16 ? float_to_half(f) : exact_bfloat(f);

                        if (type == ROW_F32)
                                memcpy(row + i * 4, &f, 4);
                        else
                                memcpy(row + i * 2, &half, 2);
                }
                return;
        }
        if (type == ROW_F8_E4M3) {
                roll_e4m3(columns, row);
                return;
        }
        for (size_t at = scale; at < bytes; at += block) {
                uint16_t half = float_to_half(real() / 64);

                memcpy(row + at, &half, 2);
                half = float_to_half(real() / 64);
                if (type == ROW_Q4_K || type == ROW_Q5_K)
                        memcpy(row + at + 2, &half, 2);
        }
}

#endif
