/*
 * What kernels read of the step that is being run, all of it in device memory.
 *
 * A step is recorded once and replayed for other rows, so nothing here is known at launch but the
 * room: grids are made for as many rows as there may be in this bucket, and what
 * is past the counts has nothing to do.
 */
#ifndef KERNELS_CUDA_STEP_H
#define KERNELS_CUDA_STEP_H

#include <stdint.h>

#include "kernels/kernels.h"

struct step_counts {
        uint32_t rows, runs, wants;
};

struct seen_row {
        uint32_t slot, position, token, write;
};

/* Rows at consecutive positions of one slot, all of this step. */
struct seen_run {
        uint32_t row, count, slot, position; /* those of its first */
};

struct step_view {
        const step_counts *counts;
        const seen_row *rows;
        const seen_run *runs;   /* in order, they cover all rows */
        const uint32_t *tables; /* (slots, pages_max): of each slot, its pages */
        const uint32_t *want;   /* rows whose logits are wanted, ascending */
        const pick *picks;      /* how each of those is picked */
        uint32_t pages_max;
        uint32_t rows_max; /* of this bucket: what launches are made for */
};

#endif
