/*
 * Rows of x in the forms that products need: as floats, rounded to bfloats, or quantised. Each
 * instruction set has its own form of bfloats, with a zero after the last one.
 *
 * A quantised row is blocks of 32 numbers. Each number is rounded to a byte, and each block has a
 * scale of its own, whatever blocks the weights have. That is finer than one scale for 256, and
 * all formats share one form. The product of two blocks is then exact in integers, and there are
 * few float sums. The sums of the bytes are stored because the codes of weights have no sign: a
 * value that is subtracted from all codes is then subtracted only once.
 */
#ifndef KERNELS_CPU_ACTS_H
#define KERNELS_CPU_ACTS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum act_kind { ACT_FLOATS, ACT_BFLOATS, ACT_BYTES, ACT_KINDS };

#define ACT_NUMBERS 32u

struct act {
        /* largest / 127; 0 if all numbers are below 2^-100; NaN or infinite if a number is. */
        float scale;
        float less_scaled;      /* scale * less */
        int32_t less;           /* minus the sum of bytes */
        int16_t less_halves[2]; /* minus the sums of the first 16 and of the last 16 */
        int8_t bytes[ACT_NUMBERS];
};

static inline enum act_kind act_kind_of(enum row_type type)
{
        return type == ROW_F32 || type == ROW_F16 || type == ROW_F8_E4M3 ? ACT_FLOATS
               : type == ROW_BF16                                        ? ACT_BFLOATS
                                                                         : ACT_BYTES;
}

/* Bytes from one row to the next, so that rows begin at cache lines. */
static inline size_t act_stride(enum act_kind kind, uint32_t columns)
{
        size_t blocks = (columns + ACT_NUMBERS - 1) / ACT_NUMBERS;
        size_t bytes =
                kind == ACT_BYTES ? blocks * sizeof(struct act) : (columns + 1u) * sizeof(float);

        return (bytes + 63) / 64 * 64;
}

#endif
