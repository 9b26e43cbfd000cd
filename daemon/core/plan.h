/*
 * A plan: what the core asks the engine to do in one step.
 *
 * A plan is numbered; up to `depth` plans are in flight, and results come back
 * as events that refer to their plan.  So the host may not know the token of a row yet: it
 * can be the result of a row of an earlier plan.  If a sequence turns out to have ended,
 * its rows in later plans are computed and their results are ignored.
 *
 * The engine carries a plan out in this order: moves, one after the other; then copies; then
 * rows.
 *
 * Every list has a maximum that follows from sched_conf; nothing here allocates
 * after plan_init().
 */
#ifndef DAEMON_CORE_PLAN_H
#define DAEMON_CORE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/kvpool.h"
#include "daemon/core/request.h"
#include "daemon/core/sched-conf.h"

#define PLAN_TOKEN UINT32_MAX /* from_row of a row whose token is known */

enum plan_want {
        PLAN_NOTHING,
        PLAN_LOGITS, /* a token is drawn */
        PLAN_SCORE,  /* the log probability of the next token of the prompt, which is known */
};

/* The rows of one slot are adjacent in the plan, at consecutive positions. */
struct plan_row {
        struct sequence *sequence;
        uint32_t slot;
        uint32_t position;
        uint32_t token;     /* if from_row is PLAN_TOKEN; otherwise the token is ... */
        uint32_t from_row;  /* ... the result of this row (an index into rows) ... */
        uint64_t from_plan; /* ... of this plan */
        enum plan_want want;
        bool write; /* false: its KV is in the block already, so the row must not write it */
};

/*
 * From now on, entry `index` of the slot's page table is `block`.  `window` is the window page of
 * that block, or WINDOW_NONE: no row of the slot reads it.
 */
struct plan_page {
        uint32_t slot, index;
        block_t block;
        uint32_t window;
};

struct plan_copy { /* copy-on-write, before the rows run */
        block_t from, to;
        uint32_t window_from, window_to; /* window pages, or WINDOW_NONE */
};

struct plan_end { /* the engine sends the END of this request now */
        struct request *request;
        enum smv_reason reason;
        enum smv_code code;
};

struct plan {
        uint64_t number;  /* 0: the plan has no rows, nothing to run */
        uint64_t wake_ns; /* if no rows and no plan in flight: sleep no longer than this */
        uint32_t stalled; /* requests left out because their channel has no free bytes */
        uint32_t row_count, page_count, move_count, copy_count, end_count, retired_count;
        struct plan_row *rows;
        struct plan_page *pages;
        struct block_move *moves; /* between pool and swap */
        struct plan_copy *copies;
        struct plan_end *ends;
        struct request **retired; /* after their END: the core no longer uses them */
        uint32_t row_max, page_max, move_max, copy_max, end_max, retired_max;
};

#define PLAN_SLEEP UINT64_MAX

/* Makes sure that the engine wakes at `at_ns` at the latest. */
static inline void plan_wake(struct plan *plan, uint64_t at_ns)
{
        if (at_ns < plan->wake_ns)
                plan->wake_ns = at_ns;
}

int plan_init(struct plan *plan, const struct sched_conf *conf); /* 0 or -ENOMEM */
void plan_deinit(struct plan *plan);

#endif
