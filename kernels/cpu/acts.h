/*
 * Rows of x as products want them: as they are, rounded to bfloats (an instruction set's own affair, with
 * a zero behind them), or quantized.
 *
 * A quantized row is blocks of 32 numbers, each rounded to a byte and a scale of its own, whatever
 * blocks the weights have: finer than a scale for 256, and one kind for all formats.  A product of block
 * and block is then exact in integers, and the float sums are few.  The sums of the
 * bytes are there because codes of weights have no sign: what is subtracted from all of them is
 * subtracted once.
 */
#ifndef KERNELS_CPU_ACTS_H
#define KERNELS_CPU_ACTS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum act_kind { ACT_FLOATS, ACT_BFLOATS, ACT_BYTES, ACT_KINDS };

#define ACT_NUMBERS 32u

struct act {
        float scale;       /* largest / 127; 0: all are below 2^-100; NaN or infinite as they are */
        float less_scaled; /* scale * less */
        int32_t less;      /* minus the sum of bytes ... */
        int16_t less_halves[2]; /* ... of the first 16, of the last 16 */
        int8_t bytes[ACT_NUMBERS];
};

static inline enum act_kind act_kind_of(enum row_type type)
{
        return type == ROW_F32 || type == ROW_F16 || type == ROW_F8_E4M3 ? ACT_FLOATS
               : type == ROW_BF16                                        ? ACT_BFLOATS
                                                                         : ACT_BYTES;
}

/* From one row to the next, so that rows begin at lines. */
static inline size_t act_stride(enum act_kind kind, uint32_t columns)
{
        size_t blocks = (columns + ACT_NUMBERS - 1) / ACT_NUMBERS;
        size_t bytes =
                kind == ACT_BYTES ? blocks * sizeof(struct act) : (columns + 1u) * sizeof(float);

        return (bytes + 63) / 64 * 64;
}

#endif
