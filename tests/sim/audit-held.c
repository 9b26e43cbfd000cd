/*
 * The auditor of requests whose tokens come from outside.
 *
 * The world brings the tokens: each comes some time after its row has run, or never.  Until then
 * its request is held.  It has no row, no page and no copy in any plan, and of the bytes for its
 * record those stay reserved that are written with the token.  If it is preempted, it gives up its
 * slot like any other one, and gets no slot again before its token is there.  A token that comes
 * after the end changes nothing.  That others do not wait for it is checked where each of them is:
 * in the queue (audit-queue.c), where others give way (audit-slots.c, audit-growth.c), among those
 * that have no row (audit-left-out.c), and where the engine sleeps (audit-sleep.c).
 */
#include "tests/sim/sim.h"

#include <string.h>

void audit_hold(struct sim *sim, struct sim_request *request, uint32_t token)
{
        uint64_t ns = request->token_ns;

        if (sim->ragged && ns != SIM_NEVER)
                ns = sim_random(sim) % (2 * ns + 1);
        request->held = true;
        request->asked_ns = sim->now_ns;
        request->token_due_ns = ns == SIM_NEVER ? SIM_NEVER : sim->now_ns + ns;
        request->token = token;
        audit_goes_on(sim, request);
        sim_must(sim,
                 request->core.sequence.token_count == request->core.prompt_count + request->made,
                 "%s is held, and has a token more", request->name);
}

/* When it comes, as things are now. */
static uint64_t due_ns(const struct sim *sim, const struct sim_request *request)
{
        return sim->masks_hurry ? sim->now_ns : request->token_due_ns;
}

/* Its end is decided, or it has retired: the core must not change anything. */
static void tell_in_vain(struct sim *sim, struct sim_request *request)
{
        uint64_t bytes = sched_pending_bytes(sim->sched, request->channel);
        unsigned char before[sizeof(request->core)];
        struct sched_counts counts, then;

        memcpy(before, &request->core, sizeof(before));
        sched_count(sim->sched, &counts);
        sim->tokens_in_vain++;
        sim_note(sim, &(struct sched_event){ .kind = SCHED_TOKEN,
                                             .request = &request->core,
                                             .token = request->token,
                                             .verdict = sim_below(sim, 2) ? SCHED_EOS
                                                                          : SCHED_CONTINUE });
        sched_count(sim->sched, &then);
        sim_must(sim, !memcmp(before, &request->core, sizeof(before)),
                 "%s is over, and a token changes it", request->name);
        sim_must(sim,
                 counts.waiting == then.waiting && counts.running == then.running &&
                         counts.ending == then.ending &&
                         counts.blocks_in_use == then.blocks_in_use &&
                         bytes == sched_pending_bytes(sim->sched, request->channel),
                 "%s is over, and its token counts", request->name);
}

void audit_forget_token(struct sim *sim, struct sim_request *request)
{
        if (request->held)
                tell_in_vain(sim, request);
        request->held = false;
}

/* Its record takes what is left of the space that was reserved, or less. */
static void tell_token(struct sim *sim, struct sim_request *request)
{
        enum sched_verdict verdict = sim_verdict(request, request->made + 1);

        sim_write(sim, request,
                  (uint32_t)(request->core.record_bytes_max - request->core.asked_bytes_max));
        sim->answers++;
        sim->answers_without_slot += !request->admitted;
        sim_note(sim, &(struct sched_event){ .kind = SCHED_TOKEN,
                                             .request = &request->core,
                                             .token = request->token,
                                             .verdict = verdict });
        audit_result(sim, request, request->token, verdict);
}

void audit_tell_tokens(struct sim *sim)
{
        each_request(sim, r)
        {
                if (!r->held || due_ns(sim, r) > sim->now_ns)
                        continue;
                r->held = false;
                if (!r->admitted)
                        r->idle_ns = sim->now_ns; /* until now it did not wait for others */
                if (r->decided)
                        tell_in_vain(sim, r);
                else
                        tell_token(sim, r);
        }
}

uint64_t audit_next_token_ns(const struct sim *sim)
{
        uint64_t next = SIM_NEVER;

        each_request(sim, r)
        {
                if (r->held && due_ns(sim, r) < next)
                        next = due_ns(sim, r);
        }
        return next;
}

uint64_t audit_held_bytes(const struct sim *sim, uint32_t channel)
{
        uint64_t bytes = 0;

        each_request(sim, r)
        {
                if (r->held && !r->decided && r->channel == channel)
                        bytes += r->core.record_bytes_max - r->core.asked_bytes_max;
        }
        return bytes;
}

/* Whether the plan touches it: a row, or a page of its slot. */
static bool is_in_plan(const struct sim *sim, const struct sim_request *request)
{
        const struct plan *plan = &sim->plan;

        for (uint32_t i = 0; i < plan->row_count; i++)
                if (plan->rows[i].sequence == &request->core.sequence)
                        return true;
        for (uint32_t i = 0; i < plan->page_count; i++)
                if (request->admitted && plan->pages[i].slot == request->slot)
                        return true;
        return false;
}

void audit_held(struct sim *sim)
{
        uint32_t skipped = 0;
        bool admitted = false;

        each_request(sim, r)
        {
                bool held = r->held && !r->decided, comes = r->admitted_step == sim->step_count;

                sim_must(sim, r->core.held == held, "%s is %s, and says otherwise", r->name,
                         held ? "held" : "not held");
                admitted |= r->admitted && comes;
                if (!held)
                        continue;
                sim_must(sim, !is_in_plan(sim, r), "%s is held, and the plan has a part of it",
                         r->name);
                sim_must(sim, !r->admitted || !comes, "%s is held, and gets a slot", r->name);
                sim->left_held += r->admitted;
                skipped += !r->admitted;
        }
        sim->held_skipped += admitted ? skipped : 0;
}
