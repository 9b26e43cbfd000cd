/*
 * Attention of long runs over the pages of their slots: of prompts, or chunks of them, where rows
 * need not have the bits that they would have alone.  The formula is that of attend.h, and so
 * are q, out, pages and what becomes of numbers that are not finite.
 *
 *      tile    128 pairs (row of a run, head of the group that has one KV head): 8 warps of 16;
 *              head_dim 256: 64, 4 warps
 *      step    64 (32) positions from a multiple of that on; each warp fetches K or V of a page
 *      grid    room.blocks of 8 (4) warps, whatever the step is; a block takes one tile of one KV
 *              head after the other, from the list, until there is none
 *      moves   4 * head_dim bytes, or 2 * head_dim + 8 of bytes, for each tile, KV head and position that the tile sees, out of
 *              the L2 cache; q and out once
 *      does    4 * head_dim operations for each pair and position
 *
 * attend.h's tiles are 16 pairs, which fetch all that for 16 operations a byte: 90 TFLOP/s from a
 * cache of 5.5 TB/s, a tenth of what tensor cores do.  Here it is 128 operations a byte.
 *
 * Order of sums: a pair takes its steps in ascending order, and the numbers of a step in that of
 * the products; each step's sums (head_dim 256: each page's) join what there is, scaled to the
 * largest score so far.  So a row has the same bits in any run that comes here, with any company;
 * but not those that attend() gives it, and who comes here depends on how a prompt is cut.  For
 * deterministic kernels (kernels.h) that is too much.
 *
 * Tolerance: weights are rounded to halves before they are multiplied with V, but not in the sum
 * that divides; so of n positions whose values are no larger than v, a number is off by v * (2^-11 +
 * n * 2^-25) for that, by 2 v e if e is what exponents are off by, and by 2^-8 of itself, a bfloat.
 * Where weights are rounded to bfloats (pages of these, or of bytes), v * 2^-8 is in place of the first.
 *
 * It can not: divide one tile among blocks, so a chunk of few rows with a very long past leaves
 * multiprocessors idle; and run beside attend(): it goes before or after.
 */
#ifndef KERNELS_CUDA_ATTEND_PROMPT_H
#define KERNELS_CUDA_ATTEND_PROMPT_H

#include "kernels/cuda/attend.h"

/*
 * Runs of so many rows come here.  A block takes a tile through 64 positions in about 1.4 us
 * (head_dim 128, 3 TFLOP/s a multiprocessor), so that a run of few tiles goes through a context of L
 * in 22 ns * L, however few; attend() shares its fetches among all blocks, which makes 6 ps * L
 * for each row and head.  With 32 heads that is even at 120 rows, if no other run is beside it.
 */
#define ATTEND_PROMPT_ROWS 128u

/* Those that attend_serves(). */
bool attend_prompt_serves(uint32_t head_dim, kv_type type);

struct attend_prompt_item {
        seen_run run;
        uint32_t tile; /* of the run */
};

struct attend_prompt_list {
        uint32_t count;
        unsigned next; /* the first that no block took; 0 between kernels */
        unsigned done; /* blocks that found nothing more; likewise */
        uint32_t reserved[5];
        attend_prompt_item items[];
};

/* What it needs on the device, beside what attend() has. */
struct attend_prompt_room {
        uint32_t rows_min; /* of runs that come here */
        uint32_t blocks;
        attend_prompt_list *list;
};

/*
 * Sets blocks for such heads, for a device of so many multiprocessors and steps of so many
 * rows; says how many bytes the list must have.  -EOVERFLOW: it cannot.
 */
int attend_prompt_room_of(attend_prompt_room *room, const attend_room *of, uint32_t processors,
                          uint32_t rows_max, size_t *ret_bytes);

/* Once a step, when its rows are on the device.  Of a bucket of fewer rows than that, nothing. */
int attend_prompt_plan(device *device, const step_view *view, const attend_room *of,
                       const attend_prompt_room *room);

/* Those runs' rows; what args->room has beside its shape is attend()'s. */
int attend_prompt(device *device, const attend_args *args, const attend_prompt_room *room);

#endif
