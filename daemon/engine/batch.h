/*
 * A batch: a plan laid out as the flat arrays that kernels want.
 *
 * The one place where the core's words (requests, blocks) become the backend's
 * (slots, pages).  Its arrays are as large as a plan may be, made once.  Up to
 * `depth` batches are in flight, so that a plan's rows are still known when its
 * results come.  Engine thread only.
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
        struct sequence **want_sequences; /* whose result each wanted row is */
};

int batch_init(struct batch *batch, const struct sched_conf *conf);
void batch_deinit(struct batch *batch);
void batch_build(struct batch *batch, const struct plan *plan);

#endif
