/*
 * The auditor of requests that have no row, or fewer than they could have: there must be a
 * reason.  Where nothing runs, it also checks when the engine is to wake.
 */
#include "tests/sim/sim.h"

static bool wanted(const struct sim_request *request) /* a token of it is in this plan */
{
        return request->planned > request->planned_before && request->planned >= request->known;
}

/* The rest of a channel's space after this plan, and what rows of drafts took of it last. */
static uint64_t room_after(struct sim *sim, uint32_t channel)
{
        uint64_t charged = audit_charged(sim, channel), told = sim->channels[channel].told;

        each_request(sim, r)
        {
                if (r->channel == channel && wanted(r))
                        charged += r->core.record_bytes_max;
        }
        charged += audit_draft_bytes(sim, channel);
        sim_must(sim, charged <= told, "channel %u is overcommitted", channel);
        sim_must(sim, sched_pending_bytes(sim->sched, channel) == charged,
                 "%llu bytes of channel %u are reserved, it says %llu", (unsigned long long)charged,
                 channel, (unsigned long long)sched_pending_bytes(sim->sched, channel));
        return told - charged + audit_draft_bytes(sim, channel);
}

/*
 * Whether the list of pages is too full to name the blocks found for it.  These cannot be seen
 * from outside before they are named; at most they are all its known positions.
 */
bool audit_no_page_left(const struct sim *sim, const struct sim_request *request)
{
        uint32_t told = sim->plan.copy_count;

        for (uint32_t i = 0; i < sim->plan.page_count; i++)
                told += audit_page_is_found(sim, &sim->plan.pages[i]);
        return !request->moved && told + blocks_for(request->known) > sched_table_max(&sim->conf);
}

enum omission { RAN, OUT_OF_WORK, LEFT_ALONE, OUT_OF_BUDGET, OUT_OF_ROOM, OUT_OF_BLOCKS, EITHER };

bool audit_reads(const struct sim_request *request)
{
        return !request->moved || request->planned_before < request->known;
}

/* Rows of prompts, or all others. */
uint32_t audit_rows_of(const struct sim *sim, bool prompts)
{
        uint32_t count = 0;

        each_request(sim, r)
        {
                if (r->admitted && audit_reads(r) == prompts)
                        count += r->planned - r->planned_before;
        }
        return count;
}

/*
 * The rows that blocks from the swap may have taken from prompts; none if nothing decodes.  A block
 * that was awaited from there may have come for another request, or may be lost, so all blocks of
 * those that begin count.
 */
uint32_t audit_rows_for_moves(const struct sim *sim)
{
        uint32_t count = 0;

        if (!sim->conf.prefix.swap_blocks || !audit_rows_of(sim, false))
                return 0;
        each_request(sim, r)
        {
                if (r->admitted && (!r->moved || r->moved_step == sim->step_count))
                        count += r->known / BLOCK_POSITIONS;
        }
        return count;
}

/* Prompts may have fewer rows than there are, so that decodes do not wait for them; but one. */
static bool is_paced(const struct sim *sim)
{
        return sim->conf.token_gap_ns && audit_rows_of(sim, false) &&
               (audit_rows_of(sim, true) || audit_rows_for_moves(sim));
}

/*
 * It begins in this plan, and was short by the blocks that it awaited from the swap.  Then they had
 * left it, so it has no more than short prompts may have: half of the rows.
 */
bool audit_seemed_short(const struct sim *sim, const struct sim_request *request)
{
        return sim->conf.prefix.swap_blocks && request->moved_step == sim->step_count &&
               2 * (request->planned - request->planned_before) <= sim->conf.rows;
}

/* Nothing is left for a prompt that is not read on; then drafts have nothing at all. */
static bool is_out_of_rows(const struct sim *sim)
{
        if (audit_draft_rows(sim))
                return false;
        return sim->plan.row_count + audit_rows_for_moves(sim) >= sim->conf.rows || is_paced(sim);
}

/* Why has it no row, or not all that it could have?  There must be a reason. */
static enum omission audit_omission(struct sim *sim, const struct sim_request *request,
                                    uint64_t space)
{
        bool no_room = space < request->core.record_bytes_max;
        bool no_budget = is_out_of_rows(sim) || audit_seemed_short(sim, request);

        if (!audit_reads(request)) {
                if (request->planned > request->planned_before)
                        return RAN;
                if (request->planned == sim_positions(request))
                        return OUT_OF_WORK;
                if (audit_is_left_alone(sim, request)) /* stalled, and then drafts were allowed */
                        return request->core.drafts && request->was_stalled && request->core.stalled
                                       ? EITHER
                                       : LEFT_ALONE;
                if (request->lacks_block)
                        return no_room ? EITHER : OUT_OF_BLOCKS;
                sim_must(sim, no_room, "%s could decode, and is left out", request->name);
                return OUT_OF_ROOM;
        }
        if (request->planned >= request->known)
                return RAN;
        if (audit_no_page_left(sim, request))
                return EITHER;
        sim_must(sim, no_room || no_budget, "there is budget left, and %s is not read on",
                 request->name);
        if (!no_room)
                return OUT_OF_BUDGET;
        /* Only its last row needs space: if that was its turn is open, unless nothing else was. */
        if (request->planned == request->planned_before)
                return no_budget ? EITHER : OUT_OF_ROOM;
        sim_must(sim, no_budget || request->planned == request->known - 1, "%s is read by halves",
                 request->name);
        return request->planned == request->known - 1 ? EITHER : OUT_OF_BUDGET;
}

/* Room goes to the request that has been stalled longest. */
static void audit_turns(struct sim *sim, const struct sim_request *left, enum omission why)
{
        each_request(sim, r)
        {
                if (r->planned == r->planned_before || r == left)
                        continue;
                sim_must(sim,
                         why != OUT_OF_ROOM || !wanted(r) || r->channel != left->channel ||
                                 left->core.record_bytes_max > r->core.record_bytes_max ||
                                 r->stalled_first <= left->stalled_surely,
                         "%s has space before %s, which was stalled longer", r->name, left->name);
        }
}

static void earlier(uint64_t *wake_ns, uint64_t since_ns, uint64_t stall_timeout_ns)
{
        if (stall_timeout_ns < SIM_NEVER - since_ns && since_ns + stall_timeout_ns < *wake_ns)
                *wake_ns = since_ns + stall_timeout_ns;
}

static void audit_stall(struct sim *sim, struct sim_request *request, enum omission why,
                        struct sim_stalls *stalls)
{
        if (why == OUT_OF_BLOCKS) { /* it may have been stalled before, and stay so */
                sim_must(sim, !request->core.stalled || request->was_stalled,
                         "%s has space, and is stalled", request->name);
                request->stalled_surely = SIM_NEVER;
                if (!request->core.stalled)
                        request->stalled_first = SIM_NEVER;
                stalls->maybe += request->core.stalled;
        } else if (why == OUT_OF_ROOM || why == EITHER) {
                if (request->stalled_first == SIM_NEVER)
                        request->stalled_first = sim->now_ns;
        } else {
                request->stalled_first = request->stalled_surely = SIM_NEVER;
        }
        if (why == OUT_OF_ROOM) {
                if (request->stalled_surely == SIM_NEVER)
                        request->stalled_surely = sim->now_ns;
                sim_must(sim, sim->now_ns - request->stalled_surely < sim->conf.stall_timeout_ns,
                         "%s is stalled for too long", request->name);
                stalls->surely++;
        }
        /* only pages were lacking */
        if (why == EITHER && !request->core.stalled)
                request->stalled_surely = SIM_NEVER;
        stalls->maybe += why == EITHER;
        earlier(&stalls->wake_first, request->stalled_first, sim->conf.stall_timeout_ns);
        earlier(&stalls->wake_surely, request->stalled_surely, sim->conf.stall_timeout_ns);
}

/*
 * A request that was stalled when it was preempted stays stalled until there is space.  Whether
 * that ends at once when there is space is left open.
 */
static void audit_preempted_stall(struct sim *sim, struct sim_request *request,
                                  struct sim_stalls *stalls)
{
        uint64_t charged = audit_charged(sim, request->channel);

        if (charged + request->core.record_bytes_max <= sim->channels[request->channel].told)
                request->stalled_surely = SIM_NEVER;
        if (!request->core.stalled)
                request->stalled_first = SIM_NEVER;
        sim_must(sim,
                 request->stalled_surely == SIM_NEVER ||
                         sim->now_ns - request->stalled_surely < sim->conf.stall_timeout_ns,
                 "%s is preempted and stalled for too long", request->name);
        stalls->maybe += request->core.stalled;
        earlier(&stalls->wake_first, request->stalled_first, sim->conf.stall_timeout_ns);
        earlier(&stalls->wake_surely, request->stalled_surely, sim->conf.stall_timeout_ns);
}

/* Checks the promises about requests that are not in the plan. */
void audit_left_out(struct sim *sim)
{
        struct sim_stalls stalls = { .wake_first = PLAN_SLEEP, .wake_surely = PLAN_SLEEP };
        enum omission why[SIM_REQUESTS];
        uint64_t space[SIM_CHANNELS];

        for (uint32_t i = 0; i < sim->conf.channels; i++)
                space[i] = room_after(sim, i);
        if (sim->flight_count == sim->conf.depth)
                return;

        each_request(sim, r)
        {
                if (!r->admitted || r->decided || r->preempting)
                        continue;
                why[r->core.number] = audit_omission(sim, r, space[r->channel]);
                audit_turns(sim, r, why[r->core.number]);
        }
        audit_order(sim, space);
        each_request(sim, r)
        {
                if (r->decided)
                        continue;
                if (r->admitted && !r->preempting)
                        audit_stall(sim, r, why[r->core.number], &stalls);
                else if (r->preemptions)
                        audit_preempted_stall(sim, r, &stalls);
        }
        sim_must(sim,
                 sim->plan.stalled >= stalls.surely &&
                         sim->plan.stalled <= stalls.surely + stalls.maybe,
                 "%u are stalled, the plan says %u", stalls.surely, sim->plan.stalled);
        if (!sim->plan.row_count && !sim->flight_count && !sim->held)
                audit_sleep(sim, &stalls);
}
