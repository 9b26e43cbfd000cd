/*
 * What the core asks of the engine for one step, and what it must know of it.
 *
 * A plan is numbered; up to `depth` plans are in flight, and results come back
 * as events that name their plan.  So a row's token may be one that the host
 * has not seen: the result of a row of an earlier plan.  Rows of a sequence
 * that turns out to have ended are computed and thrown away.
 *
 * Every list has a maximum that follows from sched_conf; nothing here allocates
 * after plan_init().  Moves of pages between tiers will be one more list.
 */
#ifndef DAEMON_CORE_PLAN_H
#define DAEMON_CORE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/kvpool.h"
#include "daemon/core/request.h"

#define PLAN_TOKEN UINT32_MAX /* from_row of a row whose token is known */

enum plan_want { PLAN_NOTHING, PLAN_LOGITS };

/* Rows of one slot are neighbours, at consecutive positions. */
struct plan_row {
        struct sequence *sequence;
        uint32_t slot;
        uint32_t position;
        uint32_t token;     /* when from_row is PLAN_TOKEN, else: */
        uint32_t from_row;  /* the result of this row (an index into rows) ... */
        uint64_t from_plan; /* ... of this plan */
        enum plan_want want;
        bool write; /* its KV is written; false: it is there already */
};

struct plan_page { /* from now on, entry `index` of the slot's page table is `block` */
        uint32_t slot, index;
        block_t block;
};

struct plan_copy { /* copy-on-write, before the rows run */
        block_t from, to;
};

struct plan_end { /* this request's END is due, now */
        struct request *request;
        enum smv_reason reason;
        enum smv_code code;
};

struct plan {
        uint64_t number;  /* of a plan with rows; 0: nothing to run */
        uint64_t wake_ns; /* without rows, and none in flight: sleep no longer than this */
        uint32_t stalled; /* requests left out because their channel has no room */
        uint32_t row_count, page_count, copy_count, end_count, retired_count;
        struct plan_row *rows;
        struct plan_page *pages;
        struct plan_copy *copies;
        struct plan_end *ends;
        struct request **retired; /* after its END: the core has forgotten it */
        uint32_t row_max, page_max, copy_max, end_max, retired_max;
};

#define PLAN_SLEEP UINT64_MAX

static inline void plan_wake(struct plan *plan, uint64_t at_ns) /* or earlier */
{
        if (at_ns < plan->wake_ns)
                plan->wake_ns = at_ns;
}

struct sched_conf;
int plan_init(struct plan *plan, const struct sched_conf *conf); /* 0 or -ENOMEM */
void plan_deinit(struct plan *plan);

#endif
