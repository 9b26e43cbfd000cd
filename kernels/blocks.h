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
 *      IQ4_XS             256 numbers, looked up in IQ4_NL's table: eight runs of 32, each with a
 *                         signed scale of six bits, multiplied by one scale of the block
 *      IQ1, IQ2, IQ3      256 numbers, four or eight of which are one index into a codebook
 *                         (kernels/block-grids.h). Runs of 32, or of 16 (IQ1_M, IQ2_XS, IQ2_S),
 *                         each with an odd scale, multiplied by one scale of the block. Unpacked,
 *                         each number has a code of its own
 *      TQ1_0, TQ2_0       256 numbers, -1, 0 or 1 (TQ2_0: or 2), one scale
 *      NVFP4              64 numbers, looked up in MXFP4's table: four runs of 16, each with an
 *                         E4M3 scale (convert.h), multiplied by one scale of the block, a float
 *                         that a file has in another tensor
 *
 * In all formats a number means scale * run's scale * (code - zero) - least * run's least, exact
 * to the last bit: a float holds the products exactly, and there is one subtraction. With a table,
 * the code's entry takes the place of code - zero. F8_E4M3 and NVFP4 have nothing to subtract, and
 * their products are rounded, one after the other.
 */
#ifndef KERNELS_BLOCKS_H
#define KERNELS_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/block.h"
#include "kernels/kernels.h"

struct block_format {
        uint32_t numbers, bytes;
        uint32_t run;        /* numbers that share a scale */
        const int8_t *table; /* (16): the number of each code; NULL: code - zero */
        uint8_t zero;
        void (*take)(const uint8_t *from, struct block *ret_block);
        bool is_e4m3;         /* codes are numbers of eight bits */
        bool has_e4m3_scales; /* scales of runs are */
};

/* Returns NULL if the type has no blocks. */
const struct block_format *block_format(enum row_type type);
/* The factor of a run that its entry of `scales` stands for. */
float block_run_scale(const struct block_format *format, int8_t scale);
/* The number that a code stands for, before any scale. */
float block_number(const struct block_format *format, uint8_t code);
void block_means(const struct block_format *format, const struct block *block, float *ret_floats);
void block_to_floats(const struct block_format *format, const uint8_t *from, float *ret_floats);

#endif
