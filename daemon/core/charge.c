/*
 * Divides the time of a step among the users that had rows in it.
 *
 * Each part of a plan has a cost: what prefill-budget has learned about a row of its kind at its
 * position.  A row far from its beginning costs more, because it attends to all positions before
 * it.  The time of the step is divided in proportion to these costs.  So errors of the estimate
 * move time from one user to another, but the sum of the charges of a step is its time.
 *
 * Blocks that come from the swap cost the time of their copies.  If they come in a plan without
 * rows for their request, its next part is charged.
 *
 * Rows that are computed again after a preemption are charged again, as all others.  Rows whose
 * results are ignored because their request has ended are charged, too: they took the time.  So are
 * those of drafts, whether their tokens were right or not.
 */
#include "daemon/core/sched-state.h"

#define TOTAL_MAX (UINT64_C(1) << 27) /* times PREFILL_STEP_NS_MAX it has 63 bits */

static uint64_t cost_of(const struct sched *sched, const struct flight *flight,
                        const struct part *part)
{
        const struct prefill_budget *budget = &sched->prefill_budget;

        uint64_t cost = 0;

        for (uint32_t i = 0; part->decode && i < part->row_count; i++)
                cost += prefill_budget_decode_cost(budget, flight->step.decode_rows,
                                                   part->position + i);
        if (part->decode)
                return cost;
        return prefill_budget_prompt_cost(budget, part->position, part->row_count) +
               part->fetched * sched->conf.swap_copy_ns;
}

static void limit_credit(struct sched *sched)
{
        for (uint32_t i = 0; i < sched->stalled.count; i++)
                if (sched->stalled.at[i]->state == REQUEST_WAITING)
                        fair_share_count_stalled(&sched->fair_share, sched->stalled.at[i]->uid);
        fair_share_limit_credit(&sched->fair_share);
}

void sched_charge(struct sched *sched, const struct flight *flight, uint64_t ns)
{
        uint64_t total = 0, sum = 0, charged = 0;
        uint32_t shift = 0;

        assert(ns <= PREFILL_STEP_NS_MAX);
        for (uint32_t i = 0; i < flight->part_count; i++)
                total += cost_of(sched, flight, &flight->parts[i]);
        while (total >> shift >= TOTAL_MAX)
                shift++;
        total >>= shift;
        for (uint32_t i = 0; i < flight->part_count; i++) {
                const struct part *part = &flight->parts[i];
                uint64_t until;

                sum += cost_of(sched, flight, part);
                until = ns * (sum >> shift) / total;
                fair_share_charge(&sched->fair_share, part->request->uid, until - charged);
                charged = until;
        }
        assert(charged == ns);
        limit_credit(sched);
}
