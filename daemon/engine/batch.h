/*
 * A batch: a plan converted to the flat arrays that kernels take.
 *
 * Only this module translates the core's terms (requests, blocks) to the backend's terms (slots,
 * pages).  Blocks are pages of GROUP_BLOCKS, window pages those of GROUP_WINDOWS.  Blocks of the
 * swap are swap pages with the same numbers, and a backend copies pages of both kinds in one list.
 * The arrays of a batch are allocated once, for the largest possible plan.  Up to `depth`
 * batches are in flight, so a plan's rows are still known when its results arrive.  Engine thread
 * only.
 */
#ifndef DAEMON_ENGINE_BATCH_H
#define DAEMON_ENGINE_BATCH_H

#include "daemon/core/plan.h"
#include "daemon/core/sched.h"
#include "kernels/kernels.h"

struct batch {
        struct step step; /* points into the arrays below */
        struct step_row *rows;
        struct step_run *runs;
        struct step_page *pages;
        struct step_copy *copies;
        uint32_t *want;
        struct pick *picks;
        struct sequence **want_sequences; /* the sequence of each wanted row ... */
        bool *want_scores;                /* ... and whether it is a score */
        struct sequence **run_sequences;  /* the sequence of each run */
        /* Of the picks of drafts; the memory of all of them. */
        struct pick_space *spaces;
        uint32_t space_count;
        struct pick_edit *space_edits;
        uint32_t *space_masks;
};

int batch_init(struct batch *batch, const struct sched_conf *conf, uint32_t vocab);
void batch_deinit(struct batch *batch);
void batch_build(struct batch *batch, const struct plan *plan);

#endif
