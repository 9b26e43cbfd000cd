/*
 * Makes the plan of one step.
 *
 *      end requests past their deadline -> release the slots of preempted requests ->
 *      name the blocks that earlier plans compute -> rows for stalled requests ->
 *      end requests that stalled too long -> send ENDs -> retire requests without rows in flight ->
 *      slots for waiting requests (enter.c) -> rows for decodes, then prompts
 *
 * Naming comes before the rows: only later plans can read the blocks that this plan computes.
 *
 * Rows.  conf.rows is at least conf.slots, so there is a row for every slot.
 * Decodes never compete for rows, only for the room of a channel that they share.
 * The request that has waited longest for room is considered first.  Otherwise the first
 * request in the list would take all the room that a slow reader frees.  The others
 * would then be ended as stalled although their reader reads.  (A prompt that stalls
 * has one row to go, so it may be considered among the decodes.)
 *
 * Prompts share the rows that decodes leave, or fewer, if that many would delay decodes
 * (pace.h).  Short prompts go before long ones, as long as they leave half of the rows.  Then the
 * prompts are read one after the other, so in each class at most one is only partly read.
 *
 * The token that a decode needs may still be in flight.  Then the new row refers to the row
 * whose result is that token.  A slot has at most one row per plan that wants a result,
 * so that row is its newest row.
 */
#include "daemon/core/sched-state.h"

#include <string.h>

static bool has_room(const struct sched *sched, const struct request *request)
{
        const struct room *room = &sched->rooms[request->room_channel];

        return room->told >= room->owed && room->told - room->owed >= request->record_bytes_max;
}

static uint64_t stall_deadline(const struct sched *sched, const struct request *request)
{
        return sched_after(request->stalled_ns, sched->conf.stall_ns);
}

/*
 * Room that arrived before this check still counts, even after the deadline.  The request
 * has just got a row for it, or will get one when fewer plans are in flight.
 */
static void end_stalled(struct sched *sched, uint64_t now_ns)
{
        for (uint32_t i = 0; i < sched->stalled.count;) {
                struct request *request = sched->stalled.at[i];

                if (now_ns < stall_deadline(sched, request))
                        return; /* the others in the list stalled later */
                if (has_room(sched, request))
                        i++;
                else
                        sched_end(sched, request, SMV_END_STALLED, SMV_OK);
        }
}

/*
 * Ends the requests of a list that are past their deadline.  Returns the next deadline of the
 * others, or UINT64_MAX.
 */
static uint64_t end_late_of(struct sched *sched, const struct roster *roster, uint64_t now_ns)
{
        uint64_t next = UINT64_MAX;

        for (uint32_t i = 0; i < roster->count;) {
                struct request *request = roster->at[i];

                if (request->deadline_ns && now_ns >= request->deadline_ns) {
                        sched_end(sched, request, SMV_END_ERROR, SMV_TIMEOUT); /* removes it */
                        continue;
                }
                if (request->deadline_ns && request->deadline_ns < next)
                        next = request->deadline_ns;
                i++;
        }
        return next;
}

/*
 * Looks at all requests, but only when the earliest deadline has come.  That may be the deadline
 * of a request that has ended already.
 */
static void end_late(struct sched *sched, uint64_t now_ns)
{
        uint64_t waiting, running;

        if (!sched->deadline_ns || now_ns < sched->deadline_ns)
                return;
        waiting = end_late_of(sched, &sched->waiting, now_ns);
        running = end_late_of(sched, &sched->running, now_ns);
        if (running > waiting)
                running = waiting;
        sched->deadline_ns = running == UINT64_MAX ? 0 : running;
}

static void retire(struct sched *sched, struct request *request)
{
        if (request->sequence.slot != SEQUENCE_NO_SLOT) {
                assert(!request->stalled);
                sched_free_slot(sched, request);
        }
        share_forget(&sched->shares, request->uid, request->class);
        request_move(request, REQUEST_RETIRED);
}

static bool in_flight(const struct sched *sched, const struct request *request)
{
        return request->sequence.slot != SEQUENCE_NO_SLOT && sched_slot(sched, request)->plans;
}

/* Sends the ENDs that are due, then retires the ending requests without rows in flight. */
static void deliver(struct sched *sched, struct plan *plan)
{
        uint32_t kept = 0;

        assert(sched->ending_count - sched->told_count <= plan->end_max);
        assert(sched->ending_count <= plan->retired_max);
        for (uint32_t i = sched->told_count; i < sched->ending_count; i++)
                plan->ends[plan->end_count++] = sched->endings[i];

        for (uint32_t i = 0; i < sched->ending_count; i++) {
                struct request *request = sched->endings[i].request;

                if (in_flight(sched, request)) {
                        sched->endings[kept++] = sched->endings[i];
                        continue;
                }
                retire(sched, request);
                plan->retired[plan->retired_count++] = request;
        }
        sched->ending_count = sched->told_count = kept;
}

static void tell_page(struct plan *plan, const struct slot *slot, uint32_t index)
{
        assert(plan->page_count < plan->page_max);
        plan->pages[plan->page_count++] = (struct plan_page){
                .slot = slot->request->sequence.slot,
                .index = index,
                .block = slot->blocks[index],
        };
}

/* Takes the next block of a slot.  It was promised, so the pool can supply it. */
static void add_page(struct sched *sched, struct plan *plan, struct slot *slot)
{
        assert(slot->promised > 0 && sched->promised > 0);
        assert(slot->block_count < sched->table_max);
        slot->promised--;
        sched->promised--;
        share_redeem(&sched->shares, slot->request->uid, 1);
        slot->blocks[slot->block_count++] =
                prefix_take(&sched->prefix, request_domain(slot->request));
        tell_page(plan, slot, slot->block_count - 1);
}

/*
 * Called before the first row of a slot: tells the device which blocks were found, and copies a
 * tail.  The source of the copy is held until that plan has run, so no other sequence
 * writes to it before it was read.
 */
static void move_in(struct sched *sched, struct plan *plan, struct slot *slot)
{
        struct flight *flight = &sched->flights[plan->number % sched->conf.depth];

        for (uint32_t i = 0; i < slot->block_count; i++)
                tell_page(plan, slot, i);
        if (slot->tail != BLOCK_NONE) {
                assert(plan->copy_count < plan->copy_max);
                add_page(sched, plan, slot);
                plan->copies[plan->copy_count++] = (struct plan_copy){
                        .from = slot->tail,
                        .to = slot->blocks[slot->block_count - 1],
                };
                flight->sources[flight->source_count++] = slot->tail;
                sched->copies++;
                slot->tail = BLOCK_NONE;
        }
        slot->moved = true;
}

static void add_row(struct sched *sched, struct plan *plan, struct slot *slot, enum plan_want want)
{
        struct request *request = slot->request;
        struct sequence *sequence = &request->sequence;
        struct plan_row *row = &plan->rows[plan->row_count];
        uint32_t position = slot->planned++;

        assert(plan->row_count < plan->row_max);
        assert(position < request_positions(request));
        if (position >= request->charged) {
                request->charged = position + 1;
                share_charge(&sched->shares, request->uid, request->class,
                             want == PLAN_LOGITS ? 2 : 1);
        }
        if (position / BLOCK_POSITIONS == slot->block_count)
                add_page(sched, plan, slot);

        *row = (struct plan_row){
                .sequence = sequence,
                .slot = sequence->slot,
                .position = position,
                .from_row = PLAN_TOKEN,
                .want = want,
                .write = position >= slot->cached,
        };
        if (position < sequence->token_count) {
                row->token = sequence->tokens[position];
        } else {
                assert(slot->wanted > 0 && slot->newest_plan > sched->plans_done);
                row->from_row = slot->newest_row;
                row->from_plan = slot->newest_plan;
        }
        plan->row_count++;
}

static void add_part(struct sched *sched, struct plan *plan, struct slot *slot, bool wants)
{
        struct flight *flight = &sched->flights[plan->number % sched->conf.depth];
        struct request *request = slot->request;
        uint32_t last = plan->row_count - 1;

        assert(flight->part_count < sched->conf.slots);
        assert(slot->newest_plan < plan->number);
        flight->parts[flight->part_count++] = (struct part){
                .request = request,
                .wanted_row = wants ? last : PART_NO_ROW,
        };
        slot->plans++;
        slot->newest_plan = plan->number;
        slot->newest_row = last;
        if (!wants)
                return;

        slot->wanted++;
        sched->rooms[request->room_channel].owed += request->record_bytes_max;
        if (request->state == REQUEST_PREFILL)
                request_move(request, REQUEST_DECODE);
}

static void set_stalled(struct sched *sched, struct request *request, bool stalled)
{
        if (request->stalled == stalled)
                return;
        request->stalled = stalled;
        request->stalled_ns = sched->now_ns;
        if (stalled)
                roster_add(&sched->stalled, request);
        else
                roster_remove(&sched->stalled, request);
}

/* The number of rows that a request could have now. */
static uint32_t rows_due(const struct sched *sched, const struct request *request)
{
        const struct slot *slot = sched_slot(sched, request);

        if (request->state == REQUEST_PREFILL)
                return request->sequence.token_count - slot->planned;
        return request->state == REQUEST_DECODE && slot->planned < request_positions(request);
}

/*
 * Adds the rows that a request may have now: the rest of its prompt, or one row of a
 * decode.  The last of these wants a result.  If fewer rows are left, it gets fewer.  If there is
 * no room for the record of that result, it gets all rows but the last.  Returns how many.
 */
static uint32_t deal(struct sched *sched, struct plan *plan, struct request *request, uint32_t left)
{
        struct slot *slot = sched_slot(sched, request);
        uint32_t moves = slot->moved ? 0 : slot->block_count + (slot->tail != BLOCK_NONE);
        uint32_t due = rows_due(sched, request), count;
        bool wants, room = true;

        if (!due || !left)
                return 0;
        if (moves > sched->moves_left) {
                if (has_room(sched, request)) /* it does not wait for room, but for pages */
                        set_stalled(sched, request, false);
                return 0;
        }

        count = due < left ? due : left;
        wants = count == due;
        if (wants && !has_room(sched, request)) {
                room = wants = false;
                count--;
        }
        set_stalled(sched, request, !room && !count);
        if (!count)
                return 0;

        if (request->state == REQUEST_DECODE)
                sched->decodes += count;
        else
                sched->before +=
                        (uint64_t)count * slot->planned + (uint64_t)count * (count - 1) / 2;
        sched->moves_left -= moves;
        if (!slot->moved)
                move_in(sched, plan, slot);
        else
                sched_name(sched, slot, plan);
        for (uint32_t i = 1; i <= count; i++)
                add_row(sched, plan, slot, wants && i == count ? PLAN_LOGITS : PLAN_NOTHING);
        add_part(sched, plan, slot, wants);
        return count;
}

static uint32_t rows_left(const struct plan *plan)
{
        return plan->row_max - plan->row_count;
}

/* True if the request is in `state`, is not stalled, and has no rows in this plan yet. */
static bool is_to_be_asked(const struct sched *sched, const struct plan *plan,
                           const struct request *request, enum request_state state)
{
        return request->state == state && !request->stalled &&
               sched_slot(sched, request)->newest_plan < plan->number;
}

static void deal_decodes(struct sched *sched, struct plan *plan)
{
        for (uint32_t i = 0; i < sched->running.count; i++)
                if (is_to_be_asked(sched, plan, sched->running.at[i], REQUEST_DECODE))
                        deal(sched, plan, sched->running.at[i], rows_left(plan));
}

static bool is_prompt_of(const struct sched *sched, const struct plan *plan,
                         const struct request *request, enum request_class class)
{
        return request->class == class && is_to_be_asked(sched, plan, request, REQUEST_PREFILL);
}

/* Adds the prompts of a class that have at most `longest` rows to go and fit completely. */
static uint32_t deal_short(struct sched *sched, struct plan *plan, enum request_class class,
                           uint32_t longest, uint32_t left)
{
        uint32_t dealt = 0;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                struct request *request = sched->running.at[i];

                if (is_prompt_of(sched, plan, request, class) &&
                    rows_due(sched, request) <= longest && rows_due(sched, request) <= left - dealt)
                        dealt += deal(sched, plan, request, left - dealt);
        }
        return dealt;
}

/* Adds the prompts of a class in order; the last one may fit only in part. */
static uint32_t deal_class(struct sched *sched, struct plan *plan, enum request_class class,
                           uint32_t left)
{
        uint32_t dealt = 0;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                struct request *request = sched->running.at[i];

                if (is_prompt_of(sched, plan, request, class))
                        dealt += deal(sched, plan, request, left - dealt);
        }
        return dealt;
}

/* The furthest position at which a prompt may continue in this plan. */
static uint32_t furthest(const struct sched *sched, const struct plan *plan)
{
        uint32_t position = 0;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];

                if (is_to_be_asked(sched, plan, request, REQUEST_PREFILL) &&
                    sched_slot(sched, request)->planned > position)
                        position = sched_slot(sched, request)->planned;
        }
        return position;
}

/* Adds prompts: short ones first, in at most half of the rows; then all in order. */
static void deal_prompts(struct sched *sched, struct plan *plan)
{
        uint32_t decodes = sched->decodes, left = rows_left(plan), quarter, half;

        if (decodes && left)
                left = pace_rows(&sched->pace, decodes, furthest(sched, plan), left);
        quarter = left / 4;
        half = left / 2;
        for (int class = 0; class < REQUEST_CLASS_N; class ++) {
                uint32_t count = deal_short(sched, plan, class, quarter, half < left ? half : left);

                half -= count;
                left -= count;
                left -= deal_class(sched, plan, class, left);
        }
}

/*
 * Names the blocks that earlier plans compute for all running requests, so that requests that get
 * a slot now can find them.
 */
static void name_all(struct sched *sched)
{
        for (uint32_t i = 0; i < sched->running.count; i++)
                sched_name(sched, sched_slot(sched, sched->running.at[i]), NULL);
}

/* A preempted request may get a slot again when there is room for its next record. */
static bool ask_stalled(struct sched *sched, struct plan *plan, struct request *request)
{
        if (request->sequence.slot != SEQUENCE_NO_SLOT)
                deal(sched, plan, request, rows_left(plan));
        else if (has_room(sched, request))
                set_stalled(sched, request, false);
        return !request->stalled;
}

static void deal_stalled(struct sched *sched, struct plan *plan)
{
        for (uint32_t i = 0; i < sched->stalled.count;) {
                if (!ask_stalled(sched, plan, sched->stalled.at[i])) /* else it left the list */
                        i++;
        }
}

/*
 * With no plan in flight the engine sleeps.  Then every request with a slot lacks room.  A waiting
 * request can begin only at the time that enter.c has set, or when a stalled one may be preempted.
 */
static void fall_asleep(struct sched *sched, struct plan *plan)
{
        bool may_park = sched->waiting.count && !sched->conf.batch_size;

        assert(sched->stalled.count >= sched->running.count);
        assert(sched->stalled.count || !sched->waiting.count || sched->conf.batch_size);
        if (sched->stalled.count)
                plan_wake(plan, stall_deadline(sched, sched->stalled.at[0]));
        for (uint32_t i = 0; i < sched->stalled.count && may_park; i++) {
                const struct request *request = sched->stalled.at[i];

                if (request->sequence.slot != SEQUENCE_NO_SLOT &&
                    request->parks < sched->conf.parks_max &&
                    sched->now_ns < sched_grace_end(sched, request))
                        plan_wake(plan, sched_grace_end(sched, request));
        }
}

static void take_off(struct sched *sched, const struct plan *plan)
{
        struct flight *flight = &sched->flights[plan->number % sched->conf.depth];

        flight->step = (struct pace_step){
                .decodes = sched->decodes,
                .prompts = plan->row_count - sched->decodes,
                .before = sched->before,
        };
        flight->begun_ns = sched->now_ns;
        sched->plans_made = plan->number;
}

void sched_next(struct sched *sched, uint64_t now_ns, struct plan *ret_plan)
{
        struct plan *plan = ret_plan;
        bool may_run = !sched->held && sched_in_flight(sched) < sched->conf.depth;

        assert(now_ns >= sched->now_ns);
        assert(plan->row_max == sched->conf.rows && plan->page_max >= sched->conf.rows);
        sched->now_ns = now_ns;
        plan->number = sched->plans_made + 1;
        plan->wake_ns = PLAN_SLEEP;
        plan->row_count = plan->page_count = plan->copy_count = 0;
        plan->end_count = plan->retired_count = 0;
        sched->moves_left = sched->table_max;
        sched->decodes = 0;
        sched->before = 0;

        end_late(sched, now_ns);
        if (may_run) {
                sched_clear_parked(sched);
                name_all(sched);
                deal_stalled(sched, plan);
        }
        end_stalled(sched, now_ns);
        deliver(sched, plan);
        if (may_run) {
                sched_enter(sched, plan);
                deal_decodes(sched, plan);
                deal_prompts(sched, plan);
        }

        plan->stalled = sched->stalled.count;
        if (plan->row_count)
                take_off(sched, plan);
        else
                plan->number = 0;
        if (!sched->held && !sched_in_flight(sched))
                fall_asleep(sched, plan);
        if (sched->deadline_ns)
                plan_wake(plan, sched->deadline_ns);
}
