/*
 * What is planned: one step is dealt.
 *
 *      what earlier plans compute, named -> rows for the stalled -> who has stalled
 *      too long, ends -> ENDs out -> who can, retires -> slots for the waiting ->
 *      rows for decodes, then prompts
 *
 * Names come first: what this plan computes can be read by later ones only.
 *
 * Waiting requests get slots strictly in order of arrival.  The first in line
 * waits until its blocks can be promised, and everybody behind it waits too,
 * even one that would fit: else a stream of small requests could pass a large
 * one for ever.  Whoever has a slot ends sooner or later, so nobody starves.
 * Only those whose user has his share are passed over, while others wait, and
 * his others behind them; so each user is served in his own order.
 *
 * Rows.  conf.rows is at least conf.slots, so there is a row for every slot
 * and decodes never compete for rows, only for the room of a channel they
 * share.  Who has waited longest for room is asked first; else the first in
 * line would take each bit of room that a slow reader frees, and the others
 * would be ended as stalled though their reader reads.  (A prompt that stalls
 * has one row to go, so it may be asked among the decodes.)
 *
 * A decode's token may still be in flight; then its row names the row whose
 * result it will be.  Because a slot has rows that want a result at most once
 * a plan, "its newest row" is that row.
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
        uint64_t since = sched_slot(sched, request)->stalled_ns;

        return since < UINT64_MAX - sched->conf.stall_ns ? since + sched->conf.stall_ns
                                                         : UINT64_MAX;
}

/*
 * Room that came in time, or late but before anybody looked, still counts: it
 * has just become a row, or will when fewer plans are in flight.
 */
static void end_stalled(struct sched *sched, uint64_t now_ns)
{
        for (uint32_t i = 0; i < sched->stalled.count;) {
                struct request *request = sched->stalled.at[i];

                if (now_ns < stall_deadline(sched, request))
                        return; /* the others stalled later */
                if (has_room(sched, request))
                        i++;
                else
                        sched_end(sched, request, SMV_END_STALLED, SMV_OK);
        }
}

static void retire(struct sched *sched, struct request *request)
{
        if (request->sequence.slot != SEQUENCE_NO_SLOT) {
                struct slot *slot = sched_slot(sched, request);

                assert(!slot->plans && !slot->wanted && !slot->stalled);
                sched_let_go(sched, slot);
                share_give_back(&sched->shares, request->uid,
                                blocks_for(request_positions(request)));
                slot->promised = 0;
                slot->request = NULL;
                sched->free_slots[sched->free_slot_count++] = request->sequence.slot;
                request->sequence.slot = SEQUENCE_NO_SLOT;
        }
        share_forget(&sched->shares, request->uid);
        request_move(request, REQUEST_RETIRED);
}

static bool in_flight(const struct sched *sched, const struct request *request)
{
        return request->sequence.slot != SEQUENCE_NO_SLOT && sched_slot(sched, request)->plans;
}

/* ENDs that are due, then goodbye to all that no plan in flight has a row of. */
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

/* What the pool has of its tokens, held, so that nothing of it is evicted for the rest. */
static void hold_known(struct sched *sched, struct slot *slot)
{
        const struct request *request = slot->request;
        struct prefix_hit hit;

        prefix_find(&sched->prefix, request_domain(request), request->sequence.tokens,
                    request->sequence.token_count, slot->blocks, &hit);
        for (uint32_t i = 0; i < hit.whole_count; i++)
                prefix_hold(&sched->prefix, slot->blocks[i]);
        slot->block_count = hit.whole_count;
        slot->tail = hit.tail;
        if (hit.tail != BLOCK_NONE)
                prefix_hold(&sched->prefix, hit.tail);
        slot->cached = hit.whole_count * BLOCK_POSITIONS + hit.tail_count;
}

static bool can_promise(const struct sched *sched, uint32_t blocks)
{
        return sched->promised + (uint64_t)blocks <= prefix_left(&sched->prefix);
}

/*
 * Holds what is there of it and promises it the rest.  False: that cannot be
 * promised yet.  A tail is held beside the block it will be copied to; where
 * that is one block too many, there is no tail.
 */
static bool provide(struct sched *sched, struct slot *slot)
{
        const struct request *request = slot->request;
        uint32_t worst = blocks_for(request_positions(request));

        if (!can_promise(sched, worst - request->sequence.token_count / BLOCK_POSITIONS))
                return false; /* whatever is there */
        hold_known(sched, slot);
        slot->promised = worst - slot->block_count;
        if (slot->tail != BLOCK_NONE && !can_promise(sched, slot->promised)) {
                prefix_drop(&sched->prefix, slot->tail);
                slot->tail = BLOCK_NONE;
                slot->cached = slot->block_count * BLOCK_POSITIONS;
        }
        if (!can_promise(sched, slot->promised)) {
                while (slot->block_count)
                        prefix_drop(&sched->prefix, slot->blocks[--slot->block_count]);
                return false;
        }
        sched->promised += slot->promised;
        return true;
}

/* False: it has to wait for blocks.  Of what was found, the last row is computed again. */
static bool admit(struct sched *sched, struct request *request)
{
        uint32_t number = sched->free_slots[sched->free_slot_count - 1];
        uint32_t last = request->sequence.token_count - 1;
        struct slot *slot = &sched->slots[number];

        assert(!slot->request && !slot->block_count && !slot->plans);
        *slot = (struct slot){ .request = request, .blocks = slot->blocks, .tail = BLOCK_NONE };
        if (!provide(sched, slot)) {
                *slot = (struct slot){ .blocks = slot->blocks, .tail = BLOCK_NONE };
                return false;
        }
        slot->named = slot->block_count;
        slot->planned = slot->cached < last ? slot->cached : last;
        request->sequence.cached_count = slot->planned;
        sched->free_slot_count--;
        share_take(&sched->shares, request->uid, slot->block_count + slot->promised);
        request->sequence.slot = number;
        request_move(request, REQUEST_PREFILL);
        roster_add(&sched->running, request);
        return true;
}

/*
 * From the front, until there is no slot left or one has to wait for blocks, and
 * all behind it.  Those who are passed over keep their order.  True: the last
 * who bound them has his slot, so they are to be asked again.
 */
static bool admit_line(struct sched *sched)
{
        struct roster *waiting = &sched->waiting;
        uint32_t kept = 0, at = 0;
        bool again = false;

        share_look(&sched->shares);
        while (at < waiting->count && sched->free_slot_count && !again) {
                struct request *request = waiting->at[at];
                uint32_t blocks = blocks_for(request_positions(request));

                if (!share_may_take(&sched->shares, request->uid, blocks)) {
                        share_pass_over(&sched->shares, request->uid);
                        waiting->at[kept++] = request;
                } else if (!admit(sched, request)) {
                        break;
                } else {
                        again = kept && sched->free_slot_count && sched->shares.waiting_users == 1;
                }
                at++;
        }
        sched->passed_over = kept;
        memmove(waiting->at + kept, waiting->at + at,
                (waiting->count - at) * sizeof(struct request *));
        waiting->count -= at - kept;
        return again;
}

static void admit_waiting(struct sched *sched)
{
        while (admit_line(sched))
                ;
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

/* The next block of a slot: it was promised, so it is there. */
static void add_page(struct sched *sched, struct plan *plan, struct slot *slot)
{
        assert(slot->promised > 0 && sched->promised > 0);
        assert(slot->block_count < sched->table_max);
        slot->promised--;
        sched->promised--;
        slot->blocks[slot->block_count++] = prefix_take(&sched->prefix);
        tell_page(plan, slot, slot->block_count - 1);
}

/*
 * Before its first row: the device hears of the blocks that were found, and a tail
 * is copied.  Its source is held until that plan has run, so nobody writes there
 * before it was read.
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
                slot->tail = BLOCK_NONE;
        }
        slot->moved = true;
}

static void add_row(struct sched *sched, struct plan *plan, struct slot *slot, enum plan_want want)
{
        struct sequence *sequence = &slot->request->sequence;
        struct plan_row *row = &plan->rows[plan->row_count];
        uint32_t position = slot->planned++;

        assert(plan->row_count < plan->row_max);
        assert(position < request_positions(slot->request));
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

static void set_stalled(struct sched *sched, struct slot *slot, bool stalled)
{
        if (slot->stalled == stalled)
                return;
        slot->stalled = stalled;
        slot->stalled_ns = sched->now_ns;
        if (stalled)
                roster_add(&sched->stalled, slot->request);
        else
                roster_remove(&sched->stalled, slot->request);
}

/*
 * The rows that a request may have now: the rest of its prompt or one of a
 * decode, of which the last wants a result; fewer if the step is full; and
 * without room for that result's record, all but the last.  False: none.
 */
static bool deal(struct sched *sched, struct plan *plan, struct request *request)
{
        struct slot *slot = sched_slot(sched, request);
        uint32_t moves = slot->moved ? 0 : slot->block_count + (slot->tail != BLOCK_NONE);
        uint32_t left = plan->row_max - plan->row_count;
        uint32_t due = 0, count;
        bool wants, room = true;

        if (request->state == REQUEST_PREFILL)
                due = request->prompt_count - slot->planned;
        else if (slot->planned < request_positions(request))
                due = 1;
        if (!due || !left || moves > sched->moves_left)
                return false;

        count = due < left ? due : left;
        wants = count == due;
        if (wants && !has_room(sched, request)) {
                room = wants = false;
                count--;
        }
        set_stalled(sched, slot, !room && !count);
        if (!count)
                return false;

        sched->moves_left -= moves;
        if (!slot->moved)
                move_in(sched, plan, slot);
        else
                sched_name(sched, slot, plan);
        for (uint32_t i = 1; i <= count; i++)
                add_row(sched, plan, slot, wants && i == count ? PLAN_LOGITS : PLAN_NOTHING);
        add_part(sched, plan, slot, wants);
        return true;
}

/* Everybody in this state who was not asked among the stalled. */
static void deal_all(struct sched *sched, struct plan *plan, enum request_state state)
{
        for (uint32_t i = 0; i < sched->running.count; i++) {
                struct request *request = sched->running.at[i];
                const struct slot *slot = sched_slot(sched, request);

                if (request->state == state && !slot->stalled && slot->newest_plan < plan->number)
                        deal(sched, plan, request);
        }
}

/* What all have computed by plans before this one, for those who come now to find. */
static void name_all(struct sched *sched)
{
        for (uint32_t i = 0; i < sched->running.count; i++)
                sched_name(sched, sched_slot(sched, sched->running.at[i]), NULL);
}

static void deal_stalled(struct sched *sched, struct plan *plan)
{
        for (uint32_t i = 0; i < sched->stalled.count;) {
                if (!deal(sched, plan, sched->stalled.at[i])) /* with rows, it leaves the list */
                        i++;
        }
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

        if (may_run) {
                name_all(sched);
                deal_stalled(sched, plan);
        }
        end_stalled(sched, now_ns);
        deliver(sched, plan);
        if (may_run) {
                admit_waiting(sched);
                deal_all(sched, plan, REQUEST_DECODE);
                deal_all(sched, plan, REQUEST_PREFILL);
        }

        plan->stalled = sched->stalled.count;
        if (plan->row_count)
                sched->plans_made = plan->number;
        else
                plan->number = 0;
        if (sched->held || sched_in_flight(sched))
                return;
        /* It sleeps: so everybody with a slot lacks room, and nobody else could begin. */
        assert(sched->stalled.count == sched->running.count);
        assert(sched->running.count || !sched->waiting.count);
        if (plan->stalled)
                plan->wake_ns = stall_deadline(sched, sched->stalled.at[0]);
}
