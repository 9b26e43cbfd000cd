/*
 * Attention of long runs over the pages of their slots: prompts, or chunks of them, where rows
 * need not have the same bits as when they are alone.  The formula is that of attend.h.  So are
 * q, out, pages and the handling of numbers that are not finite.
 *
 *      tile    128 pairs (row of a run, head of the group that has one KV head): 8 warps of 16;
 *              head_dim 256: 64, 4 warps
 *      step    64 (32) positions from a multiple of that on; each warp fetches K or V of a page
 *      grid    scratch.blocks of 8 (4) warps, for any step; a block takes tiles of one KV head from
 *              the list, one after the other, until there are none
 *      moves   for each tile, KV head and position that the tile sees: 4 * head_dim bytes, or
 *              2 * head_dim + 8 where numbers are bytes, out of the L2 cache; q and out once
 *      does    4 * head_dim operations for each pair and position
 *
 * The tiles of attend.h have 16 pairs, which is 16 operations for each byte fetched: 90 TFLOP/s
 * from a cache of 5.5 TB/s, a tenth of what tensor cores can do.  Here it is 128 operations a
 * byte.
 *
 * Order of sums: a pair takes its steps in ascending order, and the numbers of a step in the
 * order of the products.  Each step's sums (head_dim 256: each page's) are added to the sums so
 * far, scaled to the largest score so far.  So a row has the same bits in any run that this
 * kernel serves, with any other rows.  But they are not the bits that attend() gives it, and
 * whether a row is served here depends on how a prompt is cut.  Deterministic kernels (kernels.h)
 * do not allow that.
 *
 * Tolerance: weights are rounded to halves before they are multiplied with V, but not in the sum
 * that divides.  For n positions with values no larger than v, this makes an error of v * (2^-11
 * + n * 2^-25).  An error e of the exponents adds 2 v e, and rounding to a bfloat adds 2^-8 of
 * the number itself.  Where weights are rounded to bfloats (pages of bfloats, or of bytes), v *
 * 2^-8 replaces the first term.
 *
 * Limits: it cannot divide one tile among blocks, so a chunk of few rows with a very long past
 * leaves multiprocessors idle.  And it cannot run at the same time as attend(): it runs before or
 * after.
 */
#ifndef KERNELS_CUDA_ATTEND_PROMPT_H
#define KERNELS_CUDA_ATTEND_PROMPT_H

#include "kernels/cuda/attend.h"

/*
 * Runs of at least this many rows are served here.  A block takes a tile through 64 positions in
 * about 1.4 us (head_dim 128, 3 TFLOP/s a multiprocessor).  So a run of few tiles needs 22 ns * L
 * for a context of L, however few they are.  attend() shares its fetches among all blocks, which
 * takes 6 ps * L for each row and head.  With 32 heads both take the same time at 120 rows, if
 * there is no other run in the step.
 */
#define ATTEND_PROMPT_ROWS 128u

/*
 * The same as attend_serves(), without head dimension 512: too many registers would hold its sums.
 * All its runs are left to attend().
 */
bool attend_prompt_serves(uint32_t head_dim, kv_type type);

struct attend_prompt_item {
        view_run run;
        uint32_t tile; /* in the run */
};

struct attend_prompt_list {
        uint32_t count;
        unsigned next; /* the first item that no block took; 0 between kernels */
        unsigned done; /* blocks that found no more items; 0 between kernels */
        uint32_t reserved[5];
        attend_prompt_item items[];
};

/* The memory that it needs on the device, besides that of attend(). */
struct attend_prompt_scratch {
        uint32_t rows_min; /* least rows of a run that is served here */
        uint32_t blocks;
        attend_prompt_list *list;
};

/*
 * Sets `blocks` for these heads, for a device with `processors` multiprocessors and steps of up
 * to `rows_max` rows.  Returns in *ret_bytes how many bytes the list must have.  -EOVERFLOW: the
 * sizes are too large.
 */
int attend_prompt_scratch_of(attend_prompt_scratch *scratch, const attend_scratch *of,
                             uint32_t processors, uint32_t rows_max, size_t *ret_bytes);

/*
 * Called once a step, when its rows are on the device.  Does nothing for a bucket of fewer rows
 * than rows_min.
 */
int attend_prompt_plan(device *device, const step_view *view, const attend_scratch *of,
                       const attend_prompt_scratch *scratch);

/*
 * Attention for the rows of those runs.  In args->scratch only the shape is used; the rest belongs
 * to attend().
 */
int attend_prompt(device *device, const attend_args *args, const attend_prompt_scratch *scratch);

#endif
