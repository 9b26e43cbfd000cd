/*
 * Panels: 32 weight rows, interleaved so that each row has its own vector lanes.
 *
 * A panel is one sequence of slabs, in the order in which a product reads them, so that memory
 * sees a single forward stream. A slab holds a fixed number of columns of all 32 rows. It begins
 * with a few numbers for each row; then come the codes. The codes of 32 columns, with everything
 * else that belongs to them, are a block. A product is finished with a block before it reads the
 * next one. Data stored elsewhere, to be read at the same time, would make a second stream.
 *
 * Codes are in quads: four neighbouring columns of a row are four bytes, and the quads of the 32
 * rows are 128 bytes. So a vector holds one quad of several rows. Each lane sums its own row with
 * the columns ascending, and no sum is ever taken across lanes.
 *
 *      F32     1 column    [32] f32
 *      F16     1           [32] f16
 *      BF16    2           [32][2] bf16; an odd last column has a zero beside it
 *      F8_E4M3 128         f32 d[32]; f16 start[32]     | [128][32] e4m3
 *      Q8_0    32          f16 d[32]             | bytes: the number + 128
 *      Q4_0    32          f16 d[32]             | nibbles
 *      Q4_1    32          f16 d[32], m[32]      | nibbles
 *      Q5_0    32          f16 d[32]             | fifths | nibbles
 *      Q5_1    32          f16 d[32], m[32]      | fifths | nibbles
 *      IQ4_NL  32          f16 d[32]             | nibbles
 *      MXFP4   32          bf16 d[32]            | nibbles
 *      Q4_K    256         f16 d[32], m[32]; runs       | 8 x nibbles
 *      Q5_K    256         f16 d[32], m[32]; runs       | 8 x (fifths | nibbles)
 *      Q6_K    256         f16 d[32]             | 8 x (s8 scale[2][32] | pairs[0] | nibbles |
 *                                                     pairs[1])
 *      Q3_K    256         f16 d[32]             | 8 x (s8 scale[2][32] | fifths | pairs)
 *      Q2_K    256         f16 d[32], m[32]      | 8 x (u8 scale[2][32] | pairs)
 *      IQ4_XS  256         f16 d[32]; s8 scale[8][32]   | 8 x nibbles
 *      IQ3_XXS, IQ3_S      the same
 *      IQ2_XXS 256         f16 d[32]; s8 scale[8][32]   | 8 x (fifths | pairs)
 *      IQ1_S               the same
 *      IQ2_XS  256         f16 d[32]             | 8 x (s8 scale[2][32] | fifths | pairs)
 *      IQ2_S, IQ1_M        the same
 *      TQ1_0, TQ2_0   256  f16 d[32]             | 8 x pairs
 *      NVFP4   64          f32 d[32]             | 2 x (e4m3 scale[2][32] | nibbles)
 *
 * Sizes in bytes are for 32 columns of all rows.
 *
 *      bytes     1024 bytes: 8 quads
 *      nibbles   512 bytes: 4 quads; quad j in the lower halves of bytes, quad j + 4 in the upper
 *      pairs     256 bytes: two bits of each code, above nibbles, below fifths, in two dwords of a
 *                row [2][32]: bits 8 i + 2 j of the first dword are those of column 4 j + i, of the
 *                second dword those of the column 16 further
 *      fifths    128 bytes: one more bit of each code, the uppermost: bit 8 i + j of a row's dword
 *                is that of column 4 j + i
 *      runs      eight scales and eight least values of six bits, in three dwords of a row
 *                [3][32]: five in the lower 30 bits of each, the sixteenth in the upper two bits of
 *                all three
 *      scale     a byte for each 16 columns; Q2_K has the least value in its upper half. [8][32]: a
 *                byte for each 32 columns
 *
 * Types with a codebook, and TQ1_0, take more bytes here than in a file: see row_kept_bytes().
 *
 * `start` is the value at which a row's sum over a slab starts: 0, or NaN if one of the row's
 * codes is NaN. So a product need not test each code for NaN; the loops read that code as one
 * more number.
 *
 * m is subtracted, so Q4_1 and Q5_1 store it with the opposite sign. A number means exactly what
 * the file says (kernels/blocks.h), to the bit: repacking loses nothing. The layout is the same
 * for every instruction set.
 */
#ifndef KERNELS_CPU_PANEL_H
#define KERNELS_CPU_PANEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define PANEL 32u

#define SLAB_SCALES (PANEL * 2u) /* bytes: a 16-bit number for each row */
#define SLAB_QUADS  (PANEL * 4u) /* bytes: a quad for each row */

/* F8_E4M3: offsets from the beginning of a slab. */
#define E4M3_STARTS (PANEL * 4u)
#define E4M3_CODES  (PANEL * 6u)

enum slab_low { LOW_NUMBERS, LOW_BYTES, LOW_NIBBLES, LOW_PAIRS };
enum slab_high { HIGH_NONE, HIGH_FIFTHS, HIGH_PAIRS }; /* bits above the low ones */
enum slab_runs { RUNS_NONE, RUNS_SIX_BITS, RUNS_WHOLE, RUNS_SIGNED, RUNS_HALVES, RUNS_E4M3 };

/* The properties of a type that a product needs; constants in a loop compiled for one type. */
struct slab {
        uint16_t columns, bytes;
        uint8_t low, high;
        uint8_t runs; /* scales of runs; RUNS_SIGNED and those after it are of 16 columns */
        bool has_mins;
        bool has_table;   /* codes are indexes into a table */
        uint8_t zero;     /* what is subtracted from a code */
        uint8_t halvings; /* the scale is d / 2^halvings */
        bool is_rare; /* few models have it: a pass has fewer rows of x, and its loops are fewer */
};

static const struct slab slabs[ROW_TYPE_N] = {
        [ROW_F32] = { 1, 128 },
        [ROW_F16] = { 1, 64 },
        [ROW_BF16] = { 2, 128 },
        [ROW_F8_E4M3] = { 128, 4288 },
        [ROW_Q8_0] = { 32, 1088, LOW_BYTES, .zero = 128 },
        [ROW_Q4_0] = { 32, 576, LOW_NIBBLES, .zero = 8 },
        [ROW_Q4_1] = { 32, 640, LOW_NIBBLES, .has_mins = true },
        [ROW_Q5_0] = { 32, 704, LOW_NIBBLES, HIGH_FIFTHS, .zero = 16 },
        [ROW_Q5_1] = { 32, 768, LOW_NIBBLES, HIGH_FIFTHS, .has_mins = true },
        [ROW_IQ4_NL] = { 32, 576, LOW_NIBBLES, .has_table = true },
        [ROW_MXFP4] = { 32, 576, LOW_NIBBLES, .has_table = true },
        [ROW_Q4_K] = { 256, 4608, LOW_NIBBLES, HIGH_NONE, RUNS_SIX_BITS, .has_mins = true },
        [ROW_Q5_K] = { 256, 5632, LOW_NIBBLES, HIGH_FIFTHS, RUNS_SIX_BITS, .has_mins = true },
        [ROW_Q6_K] = { 256, 6720, LOW_NIBBLES, HIGH_PAIRS, RUNS_SIGNED, .zero = 32 },
        [ROW_Q3_K] = { 256, 3648, LOW_PAIRS, HIGH_FIFTHS, RUNS_SIGNED, .zero = 4 },
        [ROW_Q2_K] = { 256, 2688, LOW_PAIRS, HIGH_NONE, RUNS_HALVES, .has_mins = true },
        [ROW_IQ4_XS] = { 256, 4416, LOW_NIBBLES, HIGH_NONE, RUNS_WHOLE, .has_table = true },
        [ROW_IQ3_XXS] = { 256, 4416, LOW_NIBBLES, HIGH_NONE, RUNS_WHOLE, .has_table = true,
                          .halvings = 1, .is_rare = true },
        [ROW_IQ3_S] = { 256, 4416, LOW_NIBBLES, HIGH_NONE, RUNS_WHOLE, .has_table = true,
                        .is_rare = true },
        [ROW_IQ2_XXS] = { 256, 3392, LOW_PAIRS, HIGH_FIFTHS, RUNS_WHOLE, .has_table = true,
                          .halvings = 3, .is_rare = true },
        [ROW_IQ2_XS] = { 256, 3648, LOW_PAIRS, HIGH_FIFTHS, RUNS_SIGNED, .has_table = true,
                         .halvings = 3, .is_rare = true },
        [ROW_IQ2_S] = { 256, 3648, LOW_PAIRS, HIGH_FIFTHS, RUNS_SIGNED, .has_table = true,
                        .halvings = 3, .is_rare = true },
        [ROW_IQ1_S] = { 256, 3392, LOW_PAIRS, HIGH_FIFTHS, RUNS_WHOLE, .has_table = true,
                        .halvings = 3, .is_rare = true },
        [ROW_IQ1_M] = { 256, 3648, LOW_PAIRS, HIGH_FIFTHS, RUNS_SIGNED, .has_table = true,
                        .halvings = 3, .is_rare = true },
        [ROW_TQ1_0] = { 256, 2112, LOW_PAIRS, .zero = 1, .is_rare = true },
        [ROW_TQ2_0] = { 256, 2112, LOW_PAIRS, .zero = 1, .is_rare = true },
        [ROW_NVFP4] = { 64, 1280, LOW_NIBBLES, HIGH_NONE, RUNS_E4M3, .has_table = true,
                        .halvings = 1, .is_rare = true },
};

/*
 * Where the values of all runs of the slab begin, if the type has them before the blocks, and where
 * the first block begins.
 */
static inline uint32_t slab_runs_at(const struct slab *s)
{
        return SLAB_SCALES * (1u + (s->has_mins || s->runs == RUNS_E4M3));
}

static inline uint32_t slab_blocks_at(const struct slab *s)
{
        return slab_runs_at(s) + (s->runs == RUNS_SIX_BITS ? 3 * SLAB_QUADS
                                  : s->runs == RUNS_WHOLE  ? 8 * PANEL
                                                           : 0);
}

/*
 * A block begins with the scales of its runs of 16 columns, if the type has them. These functions
 * return where the lower bits of codes begin and end, and where the upper bits begin (of the
 * first or the second half of the columns). The last one returns how many bytes the block has.
 */
static inline uint32_t slab_low_at(const struct slab *s)
{
        return (s->runs >= RUNS_SIGNED ? 2 * PANEL : 0) + (s->high == HIGH_NONE ? 0 : SLAB_QUADS);
}

static inline uint32_t slab_low_end(const struct slab *s)
{
        return slab_low_at(s) + SLAB_QUADS * (s->low == LOW_BYTES     ? 8u
                                              : s->low == LOW_NIBBLES ? 4u
                                                                      : 2u);
}

static inline uint32_t slab_high_at(const struct slab *s, uint32_t half)
{
        if (s->high == HIGH_PAIRS && half)
                return slab_low_end(s);
        return s->runs >= RUNS_SIGNED ? 2 * PANEL : 0;
}

static inline uint32_t slab_block_bytes(const struct slab *s)
{
        return slab_low_end(s) + (s->high == HIGH_PAIRS ? SLAB_QUADS : 0);
}

static inline size_t panel_bytes(enum row_type type, uint32_t columns)
{
        const struct slab *s = &slabs[type];

        return (columns + s->columns - 1u) / s->columns * (size_t)s->bytes;
}

/*
 * Puts rows of the file, one after the other. Several threads may put rows of a panel, if each
 * puts different rows.
 */
void panel_put(enum row_type type, uint8_t *panel, uint32_t row, uint32_t rows, uint32_t columns,
               const uint8_t *file_rows);
/* Converts a row back to the floats that it means. */
void panel_get(enum row_type type, const uint8_t *panel, uint32_t row, uint32_t columns,
               float *ret_floats);

#endif
