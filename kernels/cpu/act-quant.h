/*
 * Rows of x in the forms that products need: as floats, rounded to bfloats, or quantised. Each
 * instruction set has its own form of bfloats, with a zero after the last one.
 *
 * A quantised row is blocks of 32 numbers. Each number is rounded to a byte, and each block has a
 * scale of its own, whatever blocks the weights have. That is finer than one scale for 256, and
 * all formats share one form. The product of two blocks is then exact in integers, and there are
 * few float sums. The sums of the bytes are stored because the codes of weights have no sign: a
 * value that is subtracted from all codes is then subtracted only once.
 *
 * A row has the bytes of all its blocks first, so that no block crosses a cache line, and then
 * their sums.
 */
#ifndef KERNELS_CPU_ACT_QUANT_H
#define KERNELS_CPU_ACT_QUANT_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum act_kind { ACT_FLOATS, ACT_BFLOATS, ACT_BYTES, ACT_KINDS };

#define ACT_BLOCK 32u

/* Of a block. */
struct act_sums {
        /* largest / 127; 0 if all numbers are below 2^-100; NaN or infinite if a number is. */
        float scale;
        float minus_sum_scaled;      /* scale * minus_sum */
        int32_t minus_sum;           /* minus the sum of bytes */
        int16_t minus_sum_halves[2]; /* minus the sums of the first 16 and of the last 16 */
};

static inline enum act_kind act_kind_of(enum row_type type)
{
        return type == ROW_F32 || type == ROW_F16 || type == ROW_F8_E4M3 ? ACT_FLOATS
               : type == ROW_BF16                                        ? ACT_BFLOATS
                                                                         : ACT_BYTES;
}

/* Where the sums of a quantised row begin. */
static inline size_t act_sums_at(uint32_t columns)
{
        return (columns + ACT_BLOCK - 1) / ACT_BLOCK * ACT_BLOCK;
}

/*
 * Bytes from one row to the next. Rows begin at cache lines, and are an odd number of them, so that
 * the same block of several rows is not always in the same set of a cache.
 */
static inline size_t act_stride(enum act_kind kind, uint32_t columns)
{
        size_t blocks = (columns + ACT_BLOCK - 1) / ACT_BLOCK;
        size_t bytes = kind == ACT_BYTES ? act_sums_at(columns) + blocks * sizeof(struct act_sums)
                                         : (columns + 1u) * sizeof(float);

        return ((bytes + 63) / 64 | 1) * 64;
}

#endif
