/*
 * Block formats: so many numbers of a row in so many bytes, with scales that they
 * share.  A row is whole blocks.  A block need not be aligned.
 *
 *      Q4_0, Q8_0      32 numbers, one scale
 *      Q4_K, Q5_K      256 numbers: eight runs of 32, each with a scale and a least
 *                      value of six bits, over two scales of the block
 *      Q6_K            256 numbers: sixteen runs of 16, each with a scale of eight
 *                      bits, over one scale of the block
 *
 * What a number means is fixed to the last bit: a product that a float holds
 * exactly, and for Q4_K and Q5_K one subtraction.
 */
#ifndef KERNELS_BLOCKS_H
#define KERNELS_BLOCKS_H

#include <stdint.h>

#include "kernels/kernels.h"

#define BLOCK_NUMBERS_MAX 256u

struct block_format {
        uint32_t numbers, bytes;
        void (*to_floats)(const uint8_t *block, float *ret_floats);
};

/* NULL: the type has no blocks. */
const struct block_format *block_format(enum row_type type);

#endif
