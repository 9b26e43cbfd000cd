#include "daemon/core/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int plan_init(struct plan *plan, const struct sched_conf *conf)
{
        assert(plan);
        assert(conf->rows >= conf->slots && conf->slots > 0);
        assert(conf->requests_max > 0);

        *plan = (struct plan){
                .wake_ns = PLAN_SLEEP,
                .row_max = conf->rows,
                .page_max = sched_page_max(conf),
                .move_max = sched_move_max(conf),
                .copy_max = conf->slots,
                /* One plan can carry all ENDs: a hang-up ends all requests at once. */
                .end_max = conf->requests_max,
                .retired_max = conf->requests_max,
        };
        plan->rows = calloc(plan->row_max, sizeof(*plan->rows));
        plan->pages = calloc(plan->page_max, sizeof(*plan->pages));
        plan->moves = calloc(plan->move_max + 1, sizeof(*plan->moves));
        plan->copies = calloc(plan->copy_max, sizeof(*plan->copies));
        plan->ends = calloc(plan->end_max, sizeof(*plan->ends));
        plan->retired = calloc(plan->retired_max, sizeof(struct request *));
        if (!plan->rows || !plan->pages || !plan->moves || !plan->copies || !plan->ends ||
            !plan->retired) {
                plan_deinit(plan);
                return -ENOMEM;
        }
        return 0;
}

void plan_deinit(struct plan *plan)
{
        if (!plan)
                return;
        free(plan->rows);
        free(plan->pages);
        free(plan->moves);
        free(plan->copies);
        free(plan->ends);
        free(plan->retired);
        *plan = (struct plan){ 0 };
}
