/*
 * The auditor: does this plan keep the promises of sched.h?
 *
 * It keeps its own books from inputs and outputs, and never looks into the scheduler.
 * sched_check() does that, and is called as well.  audit_plan() follows the order in which a
 * plan takes effect: ENDs, the blocks and slots that they free, admissions, blocks, rows.  Last
 * come the promises about requests that are not in the plan: each must have been left out for a
 * reason.
 *
 *      audit-service   the time that users are charged for
 *      audit-growth    which running requests are promised more, and which give way to them
 *      audit-forecast  which requests the pool will not hold
 *      audit-slots     which requests are admitted; audit-queue: which is next;
 *                      audit-preemptions: which give way
 *      audit-swap      the moves between pool and swap, and their blocks' contents
 *      audit-windows   the pages of layers with a window
 *      audit-blocks    the owners of blocks; audit-usage: the users' shares of the pool
 *      audit-map       the map of the pool, against the counts
 *      audit-rows      the rows; audit-order: which come first;
 *                      audit-left-out: requests without rows
 *      audit-guides    requests that wait for a token or a mask of their own
 *      audit-held      requests whose tokens come from outside
 *      audit-drafts    rows of tokens that were guessed
 */
#include "tests/sim/sim.h"

#include <string.h>

uint64_t audit_charged(const struct sim *sim, uint32_t channel)
{
        uint64_t bytes = 0;

        for (uint32_t i = 0; i < sim->flight_count; i++) {
                const struct sim_flight *flight = &sim->flights[i];

                for (uint32_t row = 0; row < flight->row_count; row++) {
                        const struct sim_request *owner = flight->rows[row].owner;

                        if (flight->rows[row].pending && !owner->decided &&
                            owner->channel == channel)
                                bytes += owner->core.record_bytes_max;
                }
        }
        return bytes + audit_held_bytes(sim, channel);
}

/* From the event that decides its end on, it is ENDING. */
void audit_decide(struct sim *sim, struct sim_request *request, enum smv_reason reason,
                  enum smv_code code)
{
        request->decided = true;
        request->reason = reason;
        request->code = code;
        sim_must(sim, request->core.state == REQUEST_ENDING, "the end of %s is decided, it is %s",
                 request->name, request_state_name(request->core.state));
}

/*
 * All of its prompt was read.  A request that publishes reports itself whether another was in
 * its way.
 */
static void audit_read(struct sim *sim, struct sim_request *request)
{
        if (request->core.publish && !request->core.pinned) {
                audit_decide(sim, request, SMV_END_ERROR, SMV_BUSY);
                return;
        }
        audit_decide(sim, request, SMV_END_LENGTH, SMV_OK);
        audit_published(sim, request);
}

static void audit_own_length(struct sim *sim, struct sim_request *request, enum smv_reason reason)
{
        audit_decide(sim, request, reason, SMV_OK);
        audit_learn(sim, request);
}

void audit_goes_on(struct sim *sim, const struct sim_request *request)
{
        enum request_state state = !request->admitted    ? REQUEST_WAITING
                                   : request->preempting ? REQUEST_PREEMPTING
                                                         : REQUEST_DECODE;

        sim_must(sim, request->core.state == state, "%s goes on as %s", request->name,
                 request_state_name(request->core.state));
}

void audit_result(struct sim *sim, struct sim_request *request, uint32_t token,
                  enum sched_verdict verdict)
{
        const struct sequence *sequence = &request->core.sequence;
        uint32_t prompt = request->core.prompt_count;
        bool makes = request->core.max_tokens > 0; /* else nothing comes of it but its END */

        if (verdict == SCHED_NUMERIC)
                audit_invalidate(sim, request);
        if (!request->decided) {
                request->made += makes && !sched_has_no_token(verdict);
                sim->made_restored += request->core.restored > 0;
                if (verdict == SCHED_NUMERIC)
                        audit_decide(sim, request, SMV_END_ERROR, SMV_NUMERIC);
                else if (verdict == SCHED_STUCK)
                        audit_decide(sim, request, SMV_END_ERROR, SMV_NO_TOKEN);
                else if (!makes)
                        audit_read(sim, request);
                else if (verdict == SCHED_EOS)
                        audit_own_length(sim, request, SMV_END_EOS);
                else if (verdict == SCHED_STOP)
                        audit_own_length(sim, request, SMV_END_STOP);
                else if (request->made == request->core.max_tokens)
                        audit_own_length(sim, request, SMV_END_LENGTH);
                else
                        audit_goes_on(sim, request);
                if (!request->decided && request->guided)
                        audit_await_mask(sim, request);
                sim_must(sim,
                         !makes || sched_has_no_token(verdict) ||
                                 request->truth[prompt + request->made - 1] == token,
                         "%s made another token than alone", request->name);
        }
        sim_must(sim, sequence->token_count == prompt + request->made, "%s has %u tokens, not %u",
                 request->name, sequence->token_count, prompt + request->made);
        sim_must(
                sim,
                !memcmp(sequence->tokens, request->truth, sequence->token_count * sizeof(uint32_t)),
                "the tokens of %s are not what it made", request->name);
}

/*
 * The events that may wake it: deadlines of requests that existed when it last looked at all of
 * them.
 */
static void audit_soonest(struct sim *sim)
{
        if (sim->now_ns < sim->soonest_ns)
                return;
        sim->soonest_ns = SIM_NEVER;
        each_request(sim, r)
        {
                if (!r->decided && r->deadline_ns > sim->now_ns && r->deadline_ns < sim->soonest_ns)
                        sim->soonest_ns = r->deadline_ns;
        }
}

/* The stall of each, as the core has it, is one of those that the books allow. */
void audit_before(struct sim *sim)
{
        audit_soonest(sim);
        each_request(sim, r)
        {
                r->was_stalled = !r->decided && r->core.stalled;
                r->was_stalled_ns = r->core.stalled_ns;
                r->asked_first = r->was_stalled && r->admitted && !r->preempting;
                if (r->decided)
                        continue;
                sim_must(sim, !r->was_stalled || r->stalled_first <= r->was_stalled_ns,
                         "%s is stalled, and has no reason to be", r->name);
                sim_must(sim,
                         r->stalled_surely == SIM_NEVER ||
                                 (r->was_stalled && r->was_stalled_ns <= r->stalled_surely),
                         "%s is stalled, and does not say so", r->name);
        }
}

static void audit_first_rows(struct sim *sim)
{
        each_request(sim, r)
        {
                r->first_row = SIM_NO_ROW;
                /*
                 * Preempted without a row in flight: for lack of pages it had none.  It waits in
                 * line again.
                 */
                if (r->core.preemptions > r->preemptions && r->core.state != REQUEST_PREEMPTING)
                        r->asked_first = false;
        }
        for (uint32_t i = sim->plan.row_count; i--;)
                sim_of(sim, sim->plan.rows[i].sequence->request)->first_row =
                        sim->plan.rows[i].position;
}

static void audit_shape(struct sim *sim)
{
        const struct plan *plan = &sim->plan;

        sim_must(sim,
                 plan->row_count <= plan->row_max && plan->page_count <= plan->page_max &&
                         plan->copy_count <= plan->copy_max && plan->move_count <= plan->move_max &&
                         plan->move_count <= sched_move_max(&sim->conf) &&
                         plan->end_count <= plan->end_max &&
                         plan->retired_count <= plan->retired_max,
                 "a list is longer than its maximum");
        sim_must(sim, plan->row_count <= sim->conf.rows, "the plan is over its budget");
        if (plan->row_count) {
                sim_must(sim, sim->flight_count < sim->conf.depth, "one plan too many in flight");
                sim_must(sim, plan->number == sim->last_plan + 1, "plan %u comes after %u",
                         (unsigned)plan->number, (unsigned)sim->last_plan);
                sim->last_plan = plan->number;
        } else {
                sim_must(sim,
                         plan->number == 0 && plan->page_count == 0 && !plan->copy_count &&
                                 !plan->move_count,
                         "a plan without rows has a number, or pages, or copies, or moves");
        }
}

/*
 * Compares its output with the one it would make alone.  If it was cancelled, stalled or late,
 * the output is shorter.
 */
static void audit_output(struct sim *sim, const struct sim_request *request)
{
        uint32_t made = request->made, most = request->core.max_tokens;
        bool early = most ? request->end_at && request->end_at <= most
                          : request->end_at == 1 && sched_has_no_token(request->verdict);
        bool cut = request->reason == SMV_END_CANCELLED || request->reason == SMV_END_STALLED ||
                   request->code == SMV_TIMEOUT;
        uint32_t alone = !early ? most : request->end_at - sched_has_no_token(request->verdict);

        sim_must(sim, cut && most ? made < (early ? request->end_at : most) : made == alone,
                 "%s ends after %u tokens, alone after %u", request->name, made, alone);
        sim_must(sim,
                 cut || request->code == SMV_BUSY || early == (request->reason != SMV_END_LENGTH),
                 "%s ends for another reason than alone", request->name);
        sim_must(sim,
                 !memcmp(request->core.sequence.tokens, request->truth,
                         (request->core.prompt_count + made) * sizeof(uint32_t)),
                 "%s has other tokens than alone", request->name);
}

/* Is there space for one more record of it, beside all rows in flight and those of this plan? */
static bool has_space(struct sim *sim, const struct sim_request *request)
{
        uint64_t bytes = audit_charged(sim, request->channel) + request->core.record_bytes_max;

        for (uint32_t i = 0; i < sim->plan.row_count; i++) {
                const struct plan_row *row = &sim->plan.rows[i];

                if (row->want == PLAN_LOGITS &&
                    sim_of(sim, row->sequence->request)->channel == request->channel)
                        bytes += row->sequence->request->record_bytes_max;
        }
        return bytes <= sim->channels[request->channel].told;
}

/* Its end comes of itself, with this plan: it is late, or was stalled for too long. */
static void audit_own_end(struct sim *sim, struct sim_request *request, const struct plan_end *end)
{
        request->reason = end->reason;
        request->code = end->code;
        if (sim->now_ns >= request->deadline_ns) {
                sim_must(sim, end->reason == SMV_END_ERROR && end->code == SMV_TIMEOUT,
                         "%s is late, and ends otherwise", request->name);
                sim->late++;
                return;
        }
        sim_must(sim, end->reason == SMV_END_STALLED && end->code == SMV_OK,
                 "%s ends, and nobody asked for it", request->name);
        sim_must(sim,
                 request->stalled_first != SIM_NEVER &&
                         sim->now_ns - request->stalled_first >= sim->conf.stall_timeout_ns,
                 "%s was not stalled that long", request->name);
        sim_must(sim, !has_space(sim, request), "%s is stalled, and there is space", request->name);
}

static void audit_ends(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->plan.end_count; i++) {
                const struct plan_end *end = &sim->plan.ends[i];
                struct sim_request *request = sim_of(sim, end->request);

                sim_must(sim, request->alive && !request->ended, "%s ends twice", request->name);
                if (!request->decided)
                        audit_own_end(sim, request, end);
                request->decided = true;
                sim_must(sim, end->reason == request->reason && end->code == request->code,
                         "%s ends for reason %u", request->name, end->reason);
                request->ended = true;
                sim->end_counts[end->reason]++;
                audit_output(sim, request);
        }
        each_request(sim, r)
        {
                sim_must(sim, r->ended == r->decided, "the END of %s is due", r->name);
                sim_must(sim, r->decided || sim->now_ns < r->deadline_ns, "%s is late, and goes on",
                         r->name);
        }
}

/*
 * A request that has ended and has no row in flight is retired in the same plan; no other
 * request is.
 */
static void audit_retired(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->plan.retired_count; i++) {
                struct sim_request *request = sim_of(sim, sim->plan.retired[i]);

                sim_must(sim, request->alive && request->ended, "%s retires before its END",
                         request->name);
                sim_must(sim, !request->in_flight, "%s retires with rows in flight", request->name);
                sim_must(sim, request->core.state == REQUEST_RETIRED, "%s retires, and is %s",
                         request->name, request_state_name(request->core.state));
                request->alive = false;
                audit_note(sim, request);
                for (uint32_t b = 0; b < request->block_count; b++)
                        sim->block_table_count[request->blocks[b]]--;
                if (request->admitted)
                        sim->slot_owner[request->slot] = NULL;
                audit_unpublished(sim, request);
        }
        each_request(sim, r)
        {
                sim_must(sim, !r->ended || r->in_flight, "%s is over and does not retire", r->name);
                sim_must(sim, !r->ended || r->core.state == REQUEST_ENDING, "%s ended, and is %s",
                         r->name, request_state_name(r->core.state));
        }
}

/* The numbers that a waiting request gives for its reason show that it has to wait. */
static void audit_facts(struct sim *sim, const struct sim_request *request)
{
        uint32_t facts[REQUEST_FACT_N];
        bool holds = true;

        for (uint32_t i = 0; i < REQUEST_FACT_N; i++)
                facts[i] = request_fact(&request->core, (enum request_fact)i);
        switch (request_waits_for(&request->core)) {
        case REQUEST_WAITS_FOR_BLOCKS:
                holds = facts[REQUEST_NEEDS] > facts[REQUEST_FREE] &&
                        facts[REQUEST_FREE] >= facts[REQUEST_CACHED] &&
                        facts[REQUEST_CACHED] >= facts[REQUEST_OWN];
                break;
        case REQUEST_WAITS_FOR_WINDOWS:
                holds = facts[REQUEST_NEEDS] > facts[REQUEST_FREE] &&
                        facts[REQUEST_NEEDS] == sim_windows_of(sim, request) &&
                        facts[REQUEST_FREE] <= sim_windows_promised_max(sim);
                break;
        case REQUEST_WAITS_FOR_FORECAST:
                holds = facts[REQUEST_EXPECTED] > facts[REQUEST_POOL] &&
                        facts[REQUEST_POOL] == sim->conf.blocks;
                break;
        case REQUEST_WAITS_FOR_SHARE:
                holds = !facts[REQUEST_USER_SLOTS] != !facts[REQUEST_USER_BLOCKS] &&
                        facts[REQUEST_USER_SLOTS] >= facts[REQUEST_USER_SLOTS_MAX] &&
                        facts[REQUEST_USER_BLOCKS] >= facts[REQUEST_USER_BLOCKS_MAX] &&
                        facts[REQUEST_USER_SLOTS] + facts[REQUEST_USER_BLOCKS] >
                                facts[REQUEST_USER_SLOTS_MAX] + facts[REQUEST_USER_BLOCKS_MAX];
                break;
        default:
                break;
        }
        sim_must(sim, holds, "the numbers of %s do not explain its wait", request->name);
}

static void audit_waits(struct sim *sim, const struct sched_counts *counts)
{
        uint32_t waits[REQUEST_WAIT_N] = { 0 };
        uint64_t recomputed = 0;

        each_request(sim, r)
        {
                enum request_wait wait = request_waits_for(&r->core);
                bool waiting = r->core.state == REQUEST_WAITING;

                sim_must(sim, waiting == (wait != REQUEST_WAITS_FOR_NOTHING), "%s is %s, for %u",
                         r->name, request_state_name(r->core.state), wait);
                sim_must(sim, request_pauses(&r->core) == r->core.preemptions,
                         "%s was preempted %u times, and tells of %u", r->name, r->core.preemptions,
                         request_pauses(&r->core));
                recomputed += r->core.recomputed;
                waits[wait] += waiting;
                audit_facts(sim, r);
        }
        for (uint32_t i = 0; i < REQUEST_WAIT_N; i++)
                sim_must(sim, waits[i] == counts->waits[i], "%u wait for %u, it says %u", waits[i],
                         i, counts->waits[i]);
        sim_must(sim, recomputed <= counts->recomputed, "%u positions are too many",
                 (unsigned)recomputed);
}

static void audit_counts(struct sim *sim)
{
        uint32_t waiting = 0, running = 0, ending = 0;
        struct sched_counts counts;

        each_request(sim, r)
        {
                waiting += !r->admitted && !r->decided;
                running += r->admitted && !r->decided;
                ending += r->decided;
        }
        sched_count(sim->sched, &counts);
        audit_blocks(sim, &counts);
        audit_swap(sim, &counts);
        audit_windows(sim, &counts);
        audit_drafts(sim, &counts);
        audit_users(sim, &counts);
        audit_waits(sim, &counts);
        sim_must(sim, counts.waiting == waiting, "%u wait, it says %u", waiting, counts.waiting);
        sim_must(sim, counts.running == running, "%u run, it says %u", running, counts.running);
        sim_must(sim, counts.stalled == sim->plan.stalled, "%u are stalled, it says %u",
                 sim->plan.stalled, counts.stalled);
        sim_must(sim, counts.ending == ending, "%u end, it says %u", ending, counts.ending);
        sim_must(sim, counts.preemptions == sim->preempted, "%u were preempted, it says %u",
                 (unsigned)sim->preempted, (unsigned)counts.preemptions);
        sim_must(sim, counts.blocks_lost == sim->blocks_lost,
                 "%u were preempted for lack of blocks, it says %u", (unsigned)sim->blocks_lost,
                 (unsigned)counts.blocks_lost);
        sim_must(sim, counts.plans_in_flight == sim->flight_count + (sim->plan.row_count > 0),
                 "it says that %u plans are in flight", counts.plans_in_flight);
}

void audit_plan(struct sim *sim)
{
        audit_shape(sim);
        audit_first_rows(sim);
        audit_ends(sim);
        audit_retired(sim);
        audit_forget(sim);
        audit_slots(sim);
        audit_moves(sim);
        audit_pages(sim);
        audit_copies(sim);
        audit_rows(sim);
        audit_deadlines(sim);
        audit_guides(sim);
        audit_held(sim);
        audit_left_out(sim);
        audit_counts(sim);
        audit_map(sim);
        each_request(sim, r)
        {
                if (r->first_row != SIM_NO_ROW)
                        r->idle_ns = sim->now_ns;
        }
}
