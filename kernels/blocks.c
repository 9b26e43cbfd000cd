#include "kernels/blocks.h"

#include <stddef.h>

#include "kernels/rows.h"

#define RUNS 8u /* of Q4_K and Q5_K */

static float half_at(const uint8_t *at)
{
        uint16_t half;

        memcpy(&half, at, sizeof(half));
        return half_to_float(half);
}

/* scale | 16 bytes: numbers 0 .. 15 in their lower halves, 16 .. 31 in the upper ones */
static void q4_0(const uint8_t *block, float *ret_floats)
{
        float scale = half_at(block);

        for (unsigned i = 0; i < 16; i++) {
                ret_floats[i] = scale * (float)((block[2 + i] & 15) - 8);
                ret_floats[16 + i] = scale * (float)((block[2 + i] >> 4) - 8);
        }
}

/* scale | 32 signed bytes */
static void q8_0(const uint8_t *block, float *ret_floats)
{
        float scale = half_at(block);

        for (unsigned i = 0; i < 32; i++)
                ret_floats[i] = scale * (float)(int8_t)block[2 + i];
}

/*
 * Eight scales and eight least values of six bits, in twelve bytes.  The first four of each are
 * the lower six bits of bytes 0 .. 3 and 4 .. 7; of the others the lower four bits are the halves
 * of bytes 8 .. 11, and the upper two are the bits that were left over in bytes 0 .. 7.
 */
static void take_runs(const uint8_t *packed, float scale, float least, float ret_scales[RUNS],
                      float ret_leasts[RUNS])
{
        for (unsigned i = 0; i < 4; i++) {
                ret_scales[i] = scale * (float)(packed[i] & 63);
                ret_leasts[i] = least * (float)(packed[4 + i] & 63);
                ret_scales[4 + i] = scale * (float)((packed[8 + i] & 15) | packed[i] >> 6 << 4);
                ret_leasts[4 + i] = least * (float)(packed[8 + i] >> 4 | packed[4 + i] >> 6 << 4);
        }
}

/* Two runs in 32 bytes, in their lower and upper halves; high: the fifth bits, one byte a place. */
static void runs_to_floats(const uint8_t *numbers, const uint8_t *high, const float *scales,
                           const float *leasts, float *ret_floats)
{
        for (unsigned run = 0; run < RUNS; run++, ret_floats += 32) {
                const uint8_t *from = numbers + run / 2 * 32;

                for (unsigned i = 0; i < 32; i++) {
                        unsigned n = from[i] >> run % 2 * 4 & 15;

                        if (high)
                                n |= (high[i] >> run & 1u) << 4;
                        ret_floats[i] = scales[run] * (float)n - leasts[run];
                }
        }
}

/* scale | scale of the least values | 12 bytes of runs | 128 bytes */
static void q4_k(const uint8_t *block, float *ret_floats)
{
        float scales[RUNS], leasts[RUNS];

        take_runs(block + 4, half_at(block), half_at(block + 2), scales, leasts);
        runs_to_floats(block + 16, NULL, scales, leasts, ret_floats);
}

/* The same with 32 bytes of fifth bits before the numbers. */
static void q5_k(const uint8_t *block, float *ret_floats)
{
        float scales[RUNS], leasts[RUNS];

        take_runs(block + 4, half_at(block), half_at(block + 2), scales, leasts);
        runs_to_floats(block + 48, block + 16, scales, leasts, ret_floats);
}

/*
 * 128 bytes of lower four bits | 64 bytes of upper two | 16 signed scales | scale
 *
 * Each half of the block has 128 numbers, in four rows of 32: the first two are the lower halves
 * of 64 bytes, the others the upper ones; a byte of upper bits has those of a place in all rows.
 */
static void q6_k(const uint8_t *block, float *ret_floats)
{
        const float scale = half_at(block + 208);

        for (unsigned i = 0; i < 256; i++) {
                unsigned half = i / 128, row = i / 32 % 4, place = i % 32;
                unsigned low = block[half * 64 + row % 2 * 32 + place] >> row / 2 * 4 & 15;
                unsigned high = block[128 + half * 32 + place] >> row * 2 & 3;
                float run = scale * (float)(int8_t)block[192 + i / 16];

                ret_floats[i] = run * (float)((int)(low | high << 4) - 32);
        }
}

const struct block_format *block_format(enum row_type type)
{
        static const struct block_format formats[ROW_TYPE_N] = {
                [ROW_Q4_0] = { 32, 18, q4_0 },   [ROW_Q8_0] = { 32, 34, q8_0 },
                [ROW_Q4_K] = { 256, 144, q4_k }, [ROW_Q5_K] = { 256, 176, q5_k },
                [ROW_Q6_K] = { 256, 210, q6_k },
        };

        return type < ROW_TYPE_N && formats[type].numbers ? &formats[type] : NULL;
}
