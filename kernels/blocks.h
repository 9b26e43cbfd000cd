/*
 * Block formats: a fixed count of a row's numbers in a fixed count of bytes, with scales that the
 * numbers share. A row consists of whole blocks. A block need not be aligned.
 *
 *      Q4_0, Q5_0, Q8_0   32 numbers, one scale
 *      Q4_1, Q5_1         32 numbers, one scale and one least value
 *      IQ4_NL, MXFP4      32 numbers, looked up in a table, and one scale; MXFP4's scale is a power
 *                         of two
 *      F8_E4M3            128 numbers of eight bits (convert.h), one scale, which is a float
 *      Q4_K, Q5_K         256 numbers: eight runs of 32, each with a scale and a least value of six
 *                         bits, multiplied by two scales of the block
 *      Q2_K               256 numbers: sixteen runs of 16, each with a scale and a least value of
 *                         four bits, multiplied by two scales of the block
 *      Q3_K, Q6_K         256 numbers: sixteen runs of 16, each with a signed scale of six or eight
 *                         bits, multiplied by one scale of the block
 *
 * In all formats a number means scale * run's scale * (code - zero) - least * run's least, exact
 * to the last bit: a float holds the products exactly, and there is one subtraction. F8_E4M3 has
 * nothing to subtract, and its product is rounded.
 */
#ifndef KERNELS_BLOCKS_H
#define KERNELS_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define BLOCK_NUMBERS_MAX 256u
#define BLOCK_RUNS_MAX    16u

/*
 * A block, unpacked. If a format has no scales of runs, they are 1; if it has no least values,
 * they are 0.
 */
struct block {
        float scale, min;
        int8_t scales[BLOCK_RUNS_MAX];
        uint8_t mins[BLOCK_RUNS_MAX];
        uint8_t codes[BLOCK_NUMBERS_MAX]; /* in the row's order */
};

struct block_format {
        uint32_t numbers, bytes;
        uint32_t run;        /* numbers that share a scale */
        const int8_t *table; /* (16): the number of each code; NULL: code - zero */
        uint8_t zero;
        void (*take)(const uint8_t *from, struct block *ret_block);
        bool is_e4m3; /* codes are numbers of eight bits */
};

/* Returns NULL if the type has no blocks. */
const struct block_format *block_format(enum row_type type);
/* The number that a code stands for, before any scale. */
float block_number(const struct block_format *format, uint8_t code);
void block_means(const struct block_format *format, const struct block *block, float *ret_floats);
void block_to_floats(const struct block_format *format, const uint8_t *from, float *ret_floats);

#endif
