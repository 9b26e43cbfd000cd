/*
 * The auditor of requests whose next row needs the tokens before it, or a mask.
 *
 * The world makes the masks: each comes some time after it was asked for, or never.  A request gets
 * no slot before its first mask is there, and no row that wants a result between a result and the
 * next mask.  It has one such row in flight at most.  That others do not wait for it is checked
 * where each of them is: in the queue (audit-queue.c), and among those that have no row
 * (audit-left-out.c).
 */
#include "tests/sim/sim.h"

void audit_await_mask(struct sim *sim, struct sim_request *request)
{
        uint64_t ns = request->mask_ns;

        if (sim->ragged && ns != SIM_NEVER)
                ns = sim_random(sim) % (2 * ns + 1);
        request->unready = true;
        request->asked_ns = sim->now_ns;
        request->mask_due_ns = ns == SIM_NEVER ? SIM_NEVER : sim->now_ns + ns;
}

/* When it comes, as things are now. */
static uint64_t due_ns(const struct sim *sim, const struct sim_request *request)
{
        return sim->masks_hurry ? sim->now_ns : request->mask_due_ns;
}

void audit_tell_mask(struct sim *sim, struct sim_request *request)
{
        request->unready = false;
        if (!request->admitted)
                request->idle_ns = sim->now_ns; /* until now it did not wait for others */
        sim->masks_in_vain += request->decided;
        sim_note(sim, &(struct sched_event){ .kind = SCHED_READY, .request = &request->core });
        sim_must(sim, !request->decided || request->core.state == REQUEST_ENDING,
                 "the end of %s is decided, a mask comes, and it is %s", request->name,
                 request_state_name(request->core.state));
}

void audit_tell_masks(struct sim *sim)
{
        each_request(sim, r)
        {
                if (r->unready && due_ns(sim, r) <= sim->now_ns)
                        audit_tell_mask(sim, r);
        }
}

uint64_t audit_next_mask_ns(const struct sim *sim)
{
        uint64_t next = SIM_NEVER;

        each_request(sim, r)
        {
                if (r->unready && due_ns(sim, r) < next)
                        next = due_ns(sim, r);
        }
        return next;
}

uint32_t audit_pending(const struct sim *sim, const struct sim_request *request)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < sim->flight_count; i++)
                for (uint32_t row = 0; row < sim->flights[i].row_count; row++)
                        count += sim->flights[i].rows[row].owner == request &&
                                 sim->flights[i].rows[row].pending;
        return count;
}

bool audit_is_left_alone(const struct sim *sim, const struct sim_request *request)
{
        return request->unready || request->held ||
               ((request->alone || request->guided || request->core.drafts) &&
                audit_pending(sim, request)) ||
               audit_has_run(sim, request);
}

static uint32_t count_wanted(const struct sim *sim, const struct sim_request *request)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < sim->plan.row_count; i++)
                count += sim->plan.rows[i].sequence == &request->core.sequence &&
                         sim->plan.rows[i].want == PLAN_LOGITS;
        return count;
}

static void audit_one(struct sim *sim, struct sim_request *request)
{
        uint32_t pending = audit_pending(sim, request);

        sim_must(sim, !request->unready || !count_wanted(sim, request),
                 "%s is to make a token, and its mask is not there", request->name);
        sim_must(sim,
                 pending ? !count_wanted(sim, request)
                         : count_wanted(sim, request) <= 1 + request->drafted,
                 "%s is to make a token, and does not know the last one", request->name);
        sim_must(sim, !request->unready || !pending || request->drafts,
                 "%s has a row in flight, and its mask is open", request->name);
        if (!request->admitted || request->decided || audit_reads(request))
                return;
        sim->left_unready += request->unready;
        sim->left_alone += pending && request->planned < sim_positions(request);
}

void audit_guides(struct sim *sim)
{
        uint32_t skipped = 0;
        bool admitted = false;

        each_request(sim, r)
        {
                if (r->alone || r->guided)
                        audit_one(sim, r);
                if (r->admitted && r->admitted_step == sim->step_count) {
                        sim_must(sim, !r->unready, "%s gets a slot, and its mask is not there",
                                 r->name);
                        admitted = true;
                }
                skipped += r->unready && !r->admitted && !r->decided;
        }
        sim->skipped += admitted ? skipped : 0;
}
