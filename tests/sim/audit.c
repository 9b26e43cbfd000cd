/*
 * The auditor: is this plan what sched.h promises?
 *
 * It keeps its own books from what goes in and what comes out, and never looks
 * into the scheduler; sched_check() is for that, and is called as well.  The
 * order of audit_plan() is the order in which a plan takes effect: ENDs, then
 * what they free, who is let in, blocks, rows.  Last come the promises about what
 * is not in the plan: whoever was left out must have been left out for a reason.
 * Who is let in is judged in audit-slots.c, and what blocks are whose in audit-blocks.c.
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
        return bytes;
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

void audit_result(struct sim *sim, struct sim_request *request, uint32_t token,
                  enum sched_verdict verdict)
{
        const struct sequence *sequence = &request->core.sequence;
        uint32_t prompt = request->core.prompt_count;

        if (!request->decided) {
                request->made += verdict != SCHED_NUMERIC;
                if (verdict == SCHED_NUMERIC)
                        audit_decide(sim, request, SMV_END_ERROR, SMV_NUMERIC);
                else if (verdict == SCHED_EOS)
                        audit_decide(sim, request, SMV_END_EOS, SMV_OK);
                else if (verdict == SCHED_STOP)
                        audit_decide(sim, request, SMV_END_STOP, SMV_OK);
                else if (request->made == request->core.max_tokens)
                        audit_decide(sim, request, SMV_END_LENGTH, SMV_OK);
                else
                        sim_must(sim, request->core.state == REQUEST_DECODE, "%s goes on as %s",
                                 request->name, request_state_name(request->core.state));
                sim_must(sim,
                         verdict == SCHED_NUMERIC ||
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

static void audit_shape(struct sim *sim)
{
        const struct plan *plan = &sim->plan;

        sim_must(sim,
                 plan->row_count <= plan->row_max && plan->page_count <= plan->page_max &&
                         plan->copy_count <= plan->copy_max && plan->end_count <= plan->end_max &&
                         plan->retired_count <= plan->retired_max,
                 "a list is longer than its maximum");
        sim_must(sim, plan->row_count <= sim->conf.rows, "the plan is over its budget");
        if (plan->row_count) {
                sim_must(sim, sim->flight_count < sim->conf.depth, "one plan too many in flight");
                sim_must(sim, plan->number == sim->last_plan + 1, "plan %u comes after %u",
                         (unsigned)plan->number, (unsigned)sim->last_plan);
                sim->last_plan = plan->number;
        } else {
                sim_must(sim, plan->number == 0 && plan->page_count == 0 && !plan->copy_count,
                         "a plan without rows has a number, or pages, or copies");
        }
}

/* What it would have come to alone; who was cancelled or stalled came less far. */
static void audit_output(struct sim *sim, const struct sim_request *request)
{
        uint32_t made = request->made, most = request->core.max_tokens;
        bool early = request->end_at && request->end_at <= most;
        bool cut = request->reason == SMV_END_CANCELLED || request->reason == SMV_END_STALLED;
        uint32_t alone = !early ? most : request->end_at - (request->verdict == SCHED_NUMERIC);

        sim_must(sim, cut ? made < (early ? request->end_at : most) : made == alone,
                 "%s ends after %u tokens, alone after %u", request->name, made, alone);
        sim_must(sim, cut || early == (request->reason != SMV_END_LENGTH),
                 "%s ends for another reason than alone", request->name);
        sim_must(sim,
                 !memcmp(request->core.sequence.tokens, request->truth,
                         (request->core.prompt_count + made) * sizeof(uint32_t)),
                 "%s has other tokens than alone", request->name);
}

/* Is there room for one more record of it, beside all rows in flight and those of this plan? */
static bool has_room(struct sim *sim, const struct sim_request *request)
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

static void audit_ends(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->plan.end_count; i++) {
                const struct plan_end *end = &sim->plan.ends[i];
                struct sim_request *request = sim_of(sim, end->request);

                sim_must(sim, request->alive && !request->ended, "%s ends twice", request->name);
                if (!request->decided) {
                        sim_must(sim, end->reason == SMV_END_STALLED && end->code == SMV_OK,
                                 "%s ends, and nobody asked for it", request->name);
                        sim_must(sim,
                                 request->stalled_first != SIM_NEVER &&
                                         sim->now_ns - request->stalled_first >= sim->conf.stall_ns,
                                 "%s was not stalled that long", request->name);
                        sim_must(sim, !has_room(sim, request), "%s is stalled, and there is room",
                                 request->name);
                        request->decided = true;
                        request->reason = end->reason;
                }
                sim_must(sim, end->reason == request->reason && end->code == request->code,
                         "%s ends for reason %u", request->name, end->reason);
                request->ended = true;
                sim->end_counts[end->reason]++;
                audit_output(sim, request);
        }
        each_request(sim, r) sim_must(sim, r->ended == r->decided, "the END of %s is due", r->name);
}

/* Who is over and has no row in flight is forgotten, in the same plan; nobody else. */
static void audit_retired(struct sim *sim)
{
        for (uint32_t i = 0; i < sim->plan.retired_count; i++) {
                struct sim_request *request = sim_of(sim, sim->plan.retired[i]);

                sim_must(sim, request->alive && request->ended, "%s retires before its END",
                         request->name);
                sim_must(sim, !request->flying, "%s retires with rows in flight", request->name);
                sim_must(sim, request->core.state == REQUEST_RETIRED, "%s retires, and is %s",
                         request->name, request_state_name(request->core.state));
                request->alive = false;
                for (uint32_t b = 0; b < request->block_count; b++)
                        sim->block_holders[request->blocks[b]]--;
                if (request->admitted)
                        sim->slot_owner[request->slot] = NULL;
        }
        each_request(sim, r)
        {
                sim_must(sim, !r->ended || r->flying, "%s is over and does not retire", r->name);
                sim_must(sim, !r->ended || r->core.state == REQUEST_ENDING, "%s ended, and is %s",
                         r->name, request_state_name(r->core.state));
        }
}

/* Why no more was found: it is where that ends, and true of what the same user has said. */
static void audit_divergence(struct sim *sim, const struct sim_request *owner)
{
        const struct sequence *sequence = &owner->core.sequence;
        uint32_t at = sequence->diverged_at;

        if (!at)
                return;
        sim_must(sim, at >= sequence->cached_count && at < owner->core.prompt_count,
                 "%s of %u diverges at %u, and %u were found", owner->name,
                 owner->core.prompt_count, at, sequence->cached_count);
        sim_must(sim, sequence->known_token != owner->truth[at],
                 "%s has at %u the token that is known", owner->name, at);
        sim_must(sim, sim_was_said(sim, owner, at, sequence->known_token),
                 "%s is told of token %u at %u, which its user never said", owner->name,
                 sequence->known_token, at);
        sim->divergences++;
}

/*
 * A row of one who begins: what stands before it was found.  The last row of the
 * prompt is computed in any case, without being written if all was found.
 */
static void audit_beginning(struct sim *sim, struct sim_request *owner, const struct plan_row *row)
{
        const struct sequence *sequence = &owner->core.sequence;
        uint32_t last = owner->core.prompt_count - 1;

        sim_must(sim, row->position == sequence->cached_count && row->position <= last,
                 "%s begins at %u, and %u were found", owner->name, row->position,
                 sequence->cached_count);
        owner->moved = true;
        owner->dealt = owner->dealt_then = row->position;
        owner->found = row->position + !row->write;
        sim_must(sim, row->write || row->position == last, "%s at %u does not write", owner->name,
                 row->position);
        sim_must(sim, blocks_for(owner->found) <= owner->block_count,
                 "%u positions of %s were found, in %u blocks", owner->found, owner->name,
                 owner->block_count);
        sim->found_rows += owner->found;
        audit_divergence(sim, owner);
}

/* A token that the host knows is sent along; one that it cannot know is named. */
static void audit_token(struct sim *sim, const struct plan_row *row,
                        const struct sim_request *owner)
{
        if (row->position < owner->core.sequence.token_count) {
                sim_must(sim,
                         row->from_row == PLAN_TOKEN && row->token == owner->truth[row->position],
                         "%s at %u is not given its token", owner->name, row->position);
                return;
        }
        for (uint32_t i = 0; i < sim->flight_count; i++) {
                const struct sim_flight *flight = &sim->flights[i];
                const struct sim_row *from;

                if (flight->number != row->from_plan || row->from_row >= flight->row_count)
                        continue;
                from = &flight->rows[row->from_row];
                if (from->owner == owner && from->pending && from->position + 1 == row->position)
                        return;
        }
        sim_must(sim, false, "%s at %u is to read row %u of plan %u, which is not it", owner->name,
                 row->position, row->from_row, (unsigned)row->from_plan);
}

static void audit_rows(struct sim *sim)
{
        const struct plan *plan = &sim->plan;

        each_request(sim, r) r->dealt_then = r->dealt;
        for (uint32_t i = 0; i < plan->row_count; i++) {
                const struct plan_row *row = &plan->rows[i];
                struct sim_request *owner = sim_of(sim, row->sequence->request);
                uint32_t prompt = owner->core.prompt_count;
                bool first = !i || row[-1].slot != row->slot;

                sim_must(sim, owner->alive && row->sequence == &owner->core.sequence,
                         "a row of one who is not there");
                sim_must(sim, owner->admitted && !owner->decided && row->slot == owner->slot,
                         "a row of %s, which is not running", owner->name);
                if (!owner->moved)
                        audit_beginning(sim, owner, row);
                sim_must(sim, first == (owner->dealt == owner->dealt_then),
                         "the rows of %s are not neighbours", owner->name);
                sim_must(sim, row->position == owner->dealt, "%s at %u, but it stands at %u",
                         owner->name, row->position, owner->dealt);
                sim_must(sim, row->position < prompt + owner->core.max_tokens - 1,
                         "%s at %u is a row too many", owner->name, row->position);
                sim_must(sim, row->position / BLOCK_POSITIONS < owner->block_count,
                         "%s at %u has no block", owner->name, row->position);
                sim_must(sim, row->write == (row->position >= owner->found),
                         "%s at %u writes, or does not, and %u were found", owner->name,
                         row->position, owner->found);
                sim_must(sim,
                         !row->write || sim->block_holders[owner->blocks[row->position /
                                                                         BLOCK_POSITIONS]] == 1,
                         "%s writes at %u into a block that others read", owner->name,
                         row->position);
                sim_must(sim,
                         row->want == (row->position + 1 < prompt ? PLAN_NOTHING : PLAN_LOGITS),
                         "%s at %u wants the wrong thing", owner->name, row->position);
                audit_token(sim, row, owner);
                owner->dealt++;
        }
        each_request(sim, r)
                sim_must(sim, r->core.state != REQUEST_DECODE || r->dealt >= r->core.prompt_count,
                         "%s decodes, and its prompt is not read", r->name);
}

static bool wanted(const struct sim_request *request) /* a token of it is in this plan */
{
        return request->dealt > request->dealt_then && request->dealt >= request->core.prompt_count;
}

/* What is left of a channel's room after this plan; never less than nothing. */
static uint64_t room_after(struct sim *sim, uint32_t channel)
{
        uint64_t charged = audit_charged(sim, channel);

        each_request(sim, r)
        {
                if (r->channel == channel && wanted(r))
                        charged += r->core.record_bytes_max;
        }
        sim_must(sim, charged <= sim->channels[channel].told, "channel %u is overcommitted",
                 channel);
        return sim->channels[channel].told - charged;
}

/*
 * Is the list of pages too full to tell of what was found for it?  What that is,
 * nobody outside can see before it is told; at most it is all of the prompt.
 */
static bool no_page_left(const struct sim *sim, const struct sim_request *request)
{
        uint32_t told = sim->plan.copy_count;

        for (uint32_t i = 0; i < sim->plan.page_count; i++)
                told += audit_page_is_found(sim, &sim->plan.pages[i]);
        return !request->moved &&
               told + blocks_for(request->core.prompt_count) > sched_table_max(&sim->conf);
}

enum omission { RAN, OUT_OF_WORK, OUT_OF_BUDGET, OUT_OF_ROOM, EITHER };

/* Why has it no row, or not all that it could have?  There must be a reason. */
static enum omission audit_omission(struct sim *sim, const struct sim_request *request,
                                    uint64_t room)
{
        uint32_t prompt = request->core.prompt_count, most = request->core.max_tokens;
        bool no_room = room < request->core.record_bytes_max;
        bool no_budget = sim->plan.row_count == sim->conf.rows;

        if (request->dealt_then >= prompt) {
                if (request->dealt > request->dealt_then)
                        return RAN;
                if (request->dealt == prompt + most - 1)
                        return OUT_OF_WORK;
                sim_must(sim, no_room, "%s could decode, and is left out", request->name);
                return OUT_OF_ROOM;
        }
        if (request->dealt >= prompt)
                return RAN;
        if (no_page_left(sim, request))
                return EITHER;
        sim_must(sim, no_room || no_budget, "there is budget left, and %s is not read on",
                 request->name);
        if (!no_room)
                return OUT_OF_BUDGET;
        /* Only its last row needs room: if that was its turn is open, unless nothing else was. */
        if (request->dealt == request->dealt_then)
                return no_budget ? EITHER : OUT_OF_ROOM;
        sim_must(sim, no_budget || request->dealt == prompt - 1, "%s is read by halves",
                 request->name);
        return request->dealt == prompt - 1 ? EITHER : OUT_OF_BUDGET;
}

/* Chunks go in the order of being let in, room goes to who has been stalled longest. */
static void audit_order(struct sim *sim, const struct sim_request *left, enum omission why)
{
        each_request(sim, r)
        {
                if (r->dealt == r->dealt_then || r == left)
                        continue;
                sim_must(sim,
                         why != OUT_OF_BUDGET || r->dealt_then >= r->core.prompt_count ||
                                 r->turn < left->turn,
                         "%s is read before %s, which was let in first", r->name, left->name);
                sim_must(sim,
                         why != OUT_OF_ROOM || !wanted(r) || r->channel != left->channel ||
                                 left->core.record_bytes_max > r->core.record_bytes_max ||
                                 r->stalled_first <= left->stalled_surely,
                         "%s has room before %s, which was stalled longer", r->name, left->name);
        }
}

struct stalls {
        uint32_t surely, maybe;
        uint64_t wake_first, wake_surely; /* when the first of them is to end */
};

static void earlier(uint64_t *wake_ns, uint64_t since_ns, uint64_t stall_ns)
{
        if (stall_ns < SIM_NEVER - since_ns && since_ns + stall_ns < *wake_ns)
                *wake_ns = since_ns + stall_ns;
}

static void audit_stall(struct sim *sim, struct sim_request *request, enum omission why,
                        struct stalls *stalls)
{
        if (why == OUT_OF_ROOM || why == EITHER) {
                if (request->stalled_first == SIM_NEVER)
                        request->stalled_first = sim->now_ns;
        } else {
                request->stalled_first = request->stalled_surely = SIM_NEVER;
        }
        if (why == OUT_OF_ROOM) {
                if (request->stalled_surely == SIM_NEVER)
                        request->stalled_surely = sim->now_ns;
                sim_must(sim, sim->now_ns - request->stalled_surely < sim->conf.stall_ns,
                         "%s is stalled for too long", request->name);
                stalls->surely++;
        }
        stalls->maybe += why == EITHER;
        earlier(&stalls->wake_first, request->stalled_first, sim->conf.stall_ns);
        earlier(&stalls->wake_surely, request->stalled_surely, sim->conf.stall_ns);
}

/* The promises about who is not in the plan. */
static void audit_left_out(struct sim *sim)
{
        struct stalls stalls = { .wake_first = PLAN_SLEEP, .wake_surely = PLAN_SLEEP };
        enum omission why[SIM_REQUESTS];
        uint64_t room[SIM_CHANNELS];

        for (uint32_t i = 0; i < sim->conf.channels; i++)
                room[i] = room_after(sim, i);
        if (sim->flight_count == sim->conf.depth)
                return;

        each_request(sim, r)
        {
                if (!r->admitted || r->decided)
                        continue;
                why[r->core.number] = audit_omission(sim, r, room[r->channel]);
                audit_order(sim, r, why[r->core.number]);
        }
        each_request(sim, r)
        {
                if (r->admitted && !r->decided)
                        audit_stall(sim, r, why[r->core.number], &stalls);
        }
        sim_must(sim,
                 sim->plan.stalled >= stalls.surely &&
                         sim->plan.stalled <= stalls.surely + stalls.maybe,
                 "%u are stalled, the plan says %u", stalls.surely, sim->plan.stalled);
        if (!sim->plan.row_count && !sim->flight_count)
                sim_must(sim,
                         sim->plan.wake_ns >= stalls.wake_first &&
                                 sim->plan.wake_ns <= stalls.wake_surely,
                         "it sleeps until %llu, not %llu", (unsigned long long)sim->plan.wake_ns,
                         (unsigned long long)stalls.wake_surely);
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
        sim_must(sim, counts.waiting == waiting, "%u wait, it says %u", waiting, counts.waiting);
        sim_must(sim, counts.passed_over == sim->passed_over, "%u are passed over, it says %u",
                 sim->passed_over, counts.passed_over);
        sim_must(sim, counts.running == running, "%u run, it says %u", running, counts.running);
        sim_must(sim, counts.stalled == sim->plan.stalled, "%u are stalled, it says %u",
                 sim->plan.stalled, counts.stalled);
        sim_must(sim, counts.ending == ending, "%u end, it says %u", ending, counts.ending);
        sim_must(sim, counts.plans_in_flight == sim->flight_count + (sim->plan.row_count > 0),
                 "it says that %u plans are in flight", counts.plans_in_flight);
}

void audit_plan(struct sim *sim)
{
        audit_shape(sim);
        audit_ends(sim);
        audit_retired(sim);
        audit_slots(sim);
        audit_pages(sim);
        audit_copies(sim);
        audit_rows(sim);
        audit_left_out(sim);
        audit_counts(sim);
}
