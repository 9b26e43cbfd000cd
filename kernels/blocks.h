/*
 * Block formats: so many numbers of a row in so many bytes, with scales that they
 * share.  A row is whole blocks.  A block need not be aligned.
 *
 *      Q4_0, Q5_0, Q8_0   32 numbers, one scale
 *      Q4_1, Q5_1         ... and one least value
 *      IQ4_NL, MXFP4      32 numbers, which a table has, and one scale; MXFP4's is a power of two
 *      F8_E4M3            128 numbers of eight bits (rows.h), one scale, which is a float
 *      Q4_K, Q5_K         256 numbers: eight runs of 32, each with a scale and a least
 *                         value of six bits, over two scales of the block
 *      Q2_K               256 numbers: sixteen runs of 16, ... of four bits, over two scales of the block
 *      Q3_K, Q6_K         256 numbers: sixteen runs of 16, each with a signed scale of six
 *                         or eight bits, over one scale of the block
 *
 * All of them mean  scale * run's scale * (code - zero) - least * run's least,  to the last bit: the
 * products are what a float holds exactly, and there is one subtraction.  F8_E4M3 has nothing to subtract,
 * and its product is rounded.
 */
#ifndef KERNELS_BLOCKS_H
#define KERNELS_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define BLOCK_NUMBERS_MAX 256u
#define BLOCK_RUNS_MAX    16u

/* A block, taken apart.  Where a format has no scales of runs, they are 1; no least values: 0. */
struct block {
        float scale, least;
        int8_t scales[BLOCK_RUNS_MAX];
        uint8_t leasts[BLOCK_RUNS_MAX];
        uint8_t codes[BLOCK_NUMBERS_MAX]; /* in the row's order */
};

struct block_format {
        uint32_t numbers, bytes;
        uint32_t run;        /* numbers that share a scale */
        const int8_t *table; /* (16): what codes mean; NULL: code - zero */
        uint8_t zero;
        void (*take)(const uint8_t *from, struct block *ret_block);
        bool is_e4m3; /* codes are numbers of eight bits */
};

/* NULL: the type has no blocks. */
const struct block_format *block_format(enum row_type type);
/* What a code means, before any scale. */
float block_number(const struct block_format *format, uint8_t code);
void block_means(const struct block_format *format, const struct block *block, float *ret_floats);
void block_to_floats(const struct block_format *format, const uint8_t *from, float *ret_floats);

#endif
