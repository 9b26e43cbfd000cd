/*
 * The parts of the current step that kernels read, all of it in device memory.
 *
 * The kernels of a step are captured once and launched again for other rows, so at launch only the
 * size of the bucket is known: grids are made for the largest number of rows in this bucket, and
 * blocks past the counts have nothing to do.
 */
#ifndef KERNELS_CUDA_STEP_VIEW_H
#define KERNELS_CUDA_STEP_VIEW_H

#include <stdint.h>

#include "kernels/kernels.h"

struct step_counts {
        uint32_t rows, runs, wants;
};

struct view_row {
        uint32_t slot, position, token, write;
};

/* Rows of this step at consecutive positions of one slot. */
struct view_run {
        uint32_t row, count, slot, position; /* all but `count`: of its first row */
};

struct step_view {
        const step_counts *counts;
        const view_row *rows;
        const view_run *runs;   /* in order; together they cover all rows */
        const uint32_t *tables; /* (slots, pages_max): the pages of each slot in a group */
        const uint32_t *want;   /* rows whose logits are wanted, ascending */
        const pick *picks;      /* for each wanted row, how to pick its token */
        uint32_t pages_max;
        uint32_t rows_max; /* of this bucket: launches are made for it */
};

#endif
