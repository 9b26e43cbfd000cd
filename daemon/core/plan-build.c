/*
 * Makes the plan of one step.
 *
 *      end requests past their deadline -> release the slots of preempted requests ->
 *      insert the blocks that earlier plans compute into the index ->
 *      give back window pages that no row sees any more -> rows for stalled requests ->
 *      end requests that stalled too long -> send ENDs -> retire requests without rows in flight ->
 *      blocks for requests that grow (growth.c) -> slots for waiting requests (slots.c) ->
 *      rows for decodes, then prompts
 *
 * Inserting comes before the rows: only later plans can read the blocks that this plan computes.
 *
 * Rows.  conf.rows is at least conf.slots, so there is a row for every slot.
 * Decodes never compete for rows, only for the free bytes of a channel that they share.
 * The request that has waited longest for them is considered first.  Otherwise the first
 * request in the list would take all the bytes that a slow reader frees.  The others
 * would then be ended as stalled although their reader reads.  (A prompt that stalls
 * has one row to go, so it may be considered among the decodes.)
 *
 * Prompts share the rows that decodes leave, or fewer, if that many would delay decodes
 * (prefill-budget.h).  They are read in the order of their ranks (sched_rank()): those of the user
 * that was served least come first, and of these the best class.  In each rank short prompts go
 * before long ones, as long as they leave half of the rows.  Then the prompts are read one after
 * the other.  Each step is charged before a later one is planned, so users with long prompts take
 * turns.
 *
 * A prompt that is scored needs logits for its rows, of which a plan has one for each slot.  So it
 * may have one such row, and those of free slots.
 *
 * The token that a decode needs may still be in flight.  Then the new row refers to the row
 * whose result is that token.  A slot has at most one row per plan that wants a result,
 * so that row is its newest row.
 */
#include "daemon/core/sched-state.h"

#include <string.h>

/* The bytes that its records may take, if nothing else is planned. */
static uint64_t space_of(const struct sched *sched, const struct request *request)
{
        const struct channel_space *space = &sched->channels[request->channel_number];

        return space->free_bytes > space->pending_bytes ? space->free_bytes - space->pending_bytes
                                                        : 0;
}

/* Is there space for its next record? */
static bool has_space(const struct sched *sched, const struct request *request)
{
        return space_of(sched, request) >=
               (request_must_score(request) ? request->score_bytes_max : request->record_bytes_max);
}

static uint64_t stall_deadline(const struct sched *sched, const struct request *request)
{
        return sched_after(request->stalled_ns, sched->conf.stall_timeout_ns);
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
                if (has_space(sched, request))
                        i++;
                else
                        sched_end(sched, request, SMV_END_STALLED, SMV_OK);
        }
}

/*
 * Ends the requests of a list that are past their deadline.  Returns the next deadline of the
 * others, or UINT64_MAX.
 */
static uint64_t end_overdue_of(struct sched *sched, const struct request_list *list,
                               uint64_t now_ns)
{
        uint64_t next = UINT64_MAX;

        for (uint32_t i = 0; i < list->count;) {
                struct request *request = list->at[i];

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
static void end_overdue(struct sched *sched, uint64_t now_ns)
{
        uint64_t waiting, running;

        if (!sched->deadline_ns || now_ns < sched->deadline_ns)
                return;
        waiting = end_overdue_of(sched, &sched->waiting, now_ns);
        running = end_overdue_of(sched, &sched->running, now_ns);
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
        fair_share_remove_request(&sched->fair_share, request->uid);
        if (!sched->conf.batch_size && sched->conf.learned[request->priority])
                forecast_note(&sched->forecast, request->blocks_lost);
        request_move(request, REQUEST_RETIRED);
}

static bool in_flight(const struct sched *sched, const struct request *request)
{
        return request->sequence.slot != SEQUENCE_NO_SLOT && sched_slot(sched, request)->plans;
}

/* Sends the ENDs that are due, then retires the ending requests without rows in flight. */
static void deliver_ends(struct sched *sched, struct plan *plan)
{
        uint32_t left = 0;

        assert(sched->ending_count - sched->sent_count <= plan->end_max);
        assert(sched->ending_count <= plan->retired_max);
        for (uint32_t i = sched->sent_count; i < sched->ending_count; i++)
                plan->ends[plan->end_count++] = sched->endings[i];

        for (uint32_t i = 0; i < sched->ending_count; i++) {
                struct request *request = sched->endings[i].request;

                if (in_flight(sched, request)) {
                        sched->endings[left++] = sched->endings[i];
                        continue;
                }
                retire(sched, request);
                plan->retired[plan->retired_count++] = request;
        }
        sched->ending_count = sched->sent_count = left;
}

void sched_list_page(const struct sched *sched, struct plan *plan, const struct slot *slot,
                     uint32_t index)
{
        assert(plan->page_count < plan->page_max);
        plan->pages[plan->page_count++] = (struct plan_page){
                .slot = slot->request->sequence.slot,
                .index = index,
                .block = slot->blocks[index],
                .window = index < slot->window_begin
                                  ? WINDOW_NONE
                                  : prefix_window(&sched->prefix, slot->blocks[index]),
        };
}

void sched_take_reserved(struct sched *sched, struct slot *slot)
{
        assert(slot->reserved > 0 && sched->reserved > 0);
        assert(slot->block_count < sched->table_max);
        slot->reserved--;
        sched->reserved--;
        fair_share_release(&sched->fair_share, slot->request->uid, 1);
}

/* Allocates the next block of a slot.  It was reserved, so the pool can supply it. */
static void allocate_page(struct sched *sched, struct plan *plan, struct slot *slot)
{
        sched_take_reserved(sched, slot);
        slot->blocks[slot->block_count++] =
                prefix_allocate(&sched->prefix, request_domain(slot->request));
        if (sched->conf.prefix.window)
                prefix_take_window(&sched->prefix, slot->blocks[slot->block_count - 1]);
        sched_list_page(sched, plan, slot, slot->block_count - 1);
}

/*
 * Called before the first row of a slot: tells the device which blocks were found, and copies a
 * tail.  The source of the copy is referenced until that plan has run, so no other sequence
 * writes to it before it was read.
 */
static void map_slot(struct sched *sched, struct plan *plan, struct slot *slot)
{
        struct flight *flight = &sched->flights[plan->number % sched->conf.depth];

        for (uint32_t i = 0; i < slot->block_count; i++)
                sched_list_page(sched, plan, slot, i);
        if (slot->tail != BLOCK_NONE) {
                block_t to;

                assert(plan->copy_count < plan->copy_max);
                allocate_page(sched, plan, slot);
                to = slot->blocks[slot->block_count - 1];
                plan->copies[plan->copy_count++] = (struct plan_copy){
                        .from = slot->tail,
                        .to = to,
                        .window_from = prefix_window(&sched->prefix, slot->tail),
                        .window_to = prefix_window(&sched->prefix, to),
                };
                flight->sources[flight->source_count++] = slot->tail;
                sched->copies++;
                slot->tail = BLOCK_NONE;
        }
        slot->mapped = true;
}

/* A new row of the slot at this position, for which it gets a page if it has none. */
static struct plan_row *new_row(struct sched *sched, struct plan *plan, struct slot *slot,
                                uint32_t position, enum plan_want want)
{
        struct sequence *sequence = &slot->request->sequence;
        struct plan_row *row = &plan->rows[plan->row_count++];

        assert(plan->row_count <= plan->row_max);
        assert(position < request_positions(slot->request));
        if (position / BLOCK_POSITIONS == slot->block_count)
                allocate_page(sched, plan, slot);
        *row = (struct plan_row){
                .sequence = sequence,
                .slot = sequence->slot,
                .position = position,
                .from_row = PLAN_TOKEN,
                .want = want,
                .write = position >= slot->cached,
        };
        return row;
}

/* The rows of a draft, behind the row that the decode has in any case. */
static void add_draft_rows(struct sched *sched, struct plan *plan, struct slot *slot,
                           uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                uint32_t position = slot->planned + i;

                slot->request->sequence.tokens[position] = slot->draft[i];
                new_row(sched, plan, slot, position, PLAN_LOGITS)->token = slot->draft[i];
        }
}

static void add_row(struct sched *sched, struct plan *plan, struct slot *slot, enum plan_want want)
{
        struct request *request = slot->request;
        struct sequence *sequence = &request->sequence;
        uint32_t position = slot->planned++;
        struct plan_row *row = new_row(sched, plan, slot, position, want);

        if (position < sequence->token_count) {
                row->token = sequence->tokens[position];
        } else {
                assert(slot->wanted > 0 && slot->newest_plan > sched->plans_done);
                row->from_row = slot->newest_row;
                row->from_plan = slot->newest_plan;
        }
        if (position < request->computed) {
                request->recomputed++;
                sched->recomputed++;
        }
}

/* Some rows of a request that come next, and what they want. */
struct next_rows {
        uint32_t count;
        uint32_t plain;  /* the first ones, which want nothing */
        uint32_t scores; /* those that follow, which want a score */
        bool wants;      /* the last one wants a result */
        uint32_t drafts; /* rows of a draft follow, which want results, too */
        bool fits;       /* false: there would be more, but there is no space for a record */
};

static enum plan_want want_of(const struct next_rows *next, uint32_t row)
{
        if (next->wants && row + 1 == next->count)
                return PLAN_LOGITS;
        return row >= next->plain && row < next->plain + next->scores ? PLAN_SCORE : PLAN_NOTHING;
}

/* The last rows of the plan, as many as `next` has, are of this slot. */
static void add_part(struct sched *sched, struct plan *plan, struct slot *slot,
                     const struct next_rows *next)
{
        struct flight *flight = &sched->flights[plan->number % sched->conf.depth];
        struct request *request = slot->request;
        uint32_t rows = next->count + next->drafts, last = plan->row_count - next->drafts - 1;

        assert(flight->part_count < sched->conf.slots);
        assert(slot->newest_plan < plan->number);
        flight->parts[flight->part_count++] = (struct part){
                .request = request,
                .wanted_row = next->wants ? last : PART_NO_ROW,
                .drafted = next->drafts,
                .row_count = rows,
                .scores = next->scores,
                .fetched = slot->fetched - slot->fetches_charged,
                .position = plan->rows[plan->row_count - rows].position,
                .decode = request->state == REQUEST_DECODE,
        };
        slot->fetches_charged = slot->fetched;
        slot->plans++;
        request->since_ns = sched->now_ns;
        slot->newest_plan = plan->number;
        slot->newest_row = last;
        slot->scores += next->scores;
        request->scored += next->scores;
        sched->channels[request->channel_number].pending_bytes +=
                next->scores * (uint64_t)request->score_bytes_max;
        if (next->scores + next->wants > 1)
                sched->scores_left -= next->scores + next->wants - 1;
        if (!next->wants)
                return;

        slot->wanted++;
        slot->drafted = next->drafts;
        sched->drafts_left -= next->drafts;
        sched->channels[request->channel_number].pending_bytes +=
                (1 + next->drafts) * (uint64_t)request->record_bytes_max;
        if (request->state == REQUEST_PREFILL)
                request_move(request, REQUEST_DECODE);
}

static void set_stalled(struct sched *sched, struct request *request, bool stalled)
{
        if (request->stalled == stalled)
                return;
        request->stalled = stalled;
        request->stalled_ns = sched->now_ns;
        sched->stalls += stalled;
        if (stalled)
                request_list_add(&sched->stalled, request);
        else
                request_list_remove(&sched->stalled, request);
}

/* The number of rows that a request could have now. */
static uint32_t rows_due(const struct sched *sched, const struct request *request)
{
        const struct slot *slot = sched_slot(sched, request);

        if (request->state == REQUEST_PREFILL)
                return request->sequence.token_count - slot->planned;
        return request->state == REQUEST_DECODE && slot->planned < request_positions(request) &&
               !((request->alone || request->awaits || request->drafts) && slot->wanted) &&
               !slot->drafted && !sched_is_unready(request);
}

static void count_rows(struct prefill_step *step, enum request_state state, uint64_t position,
                       uint64_t count)
{
        uint64_t positions = count * position + count * (count - 1) / 2;

        if (state == REQUEST_DECODE) {
                step->decode_rows += (uint32_t)count;
                step->decode_positions += positions;
        } else {
                step->prompt_rows += (uint32_t)count;
                step->prompt_positions += positions;
        }
}

/* Tells the device the page table, of which it does not know `pages` entries. */
static void ready_slot(struct sched *sched, struct plan *plan, struct slot *slot, uint32_t pages)
{
        sched->pages_left -= pages;
        if (!slot->mapped)
                map_slot(sched, plan, slot);
        else
                sched_insert(sched, slot, plan);
}

/* How many rows it has from this position of its prompt on before the first that has a record. */
static uint32_t plain_rows(const struct request *request, uint32_t position)
{
        uint32_t end =
                request_must_score(request) ? request->scored : request->sequence.token_count - 1;

        return end > position ? end - position : 0;
}

/*
 * How many of the blocks that a prompt awaits come in this plan.  They come in several plans if
 * decodes would wait too long for all of them.  A plan needs rows to run.  So if only rows with
 * records would follow, and there is no space, the last block is not awaited any more: its rows are
 * computed.
 */
static uint32_t fetches_due(const struct sched *sched, const struct request *request, uint32_t left)
{
        struct slot *slot = sched_slot(sched, request);

        if (slot->swapped && !has_space(sched, request) &&
            !plain_rows(request, slot->planned + slot->swapped * BLOCK_POSITIONS))
                slot->swapped--;
        return sched->step.decode_rows && slot->swapped > left ? left : slot->swapped;
}

/*
 * The next rows, of which there are more than the plain ones, have scores: as many as there are
 * logits and space for.  Rows behind these follow in a later plan.
 */
static void limit_scores(const struct sched *sched, const struct request *request,
                         struct next_rows *next, uint64_t *space)
{
        uint32_t position = sched_slot(sched, request)->planned + next->plain;
        uint32_t due = request->prompt_count - 1 - position, most = 1 + sched->scores_left;
        uint32_t count = next->count - next->plain;
        uint64_t fit = *space / request->score_bytes_max;

        next->scores = count < due ? count : due;
        next->fits = fit >= next->scores;
        if (next->scores > fit)
                next->scores = (uint32_t)fit;
        if (next->scores > most)
                next->scores = most;
        *space -= next->scores * (uint64_t)request->score_bytes_max;
        if (next->scores + (count > due) > most || next->scores < (count < due ? count : due)) {
                next->count = next->plain + next->scores;
                next->wants = false;
        }
}

/* The most bytes that a request may need for the rows that it may still have in this plan. */
static uint64_t space_due(const struct sched *sched, const struct request *request)
{
        uint32_t due = sched_slot(sched, request)->newest_plan <= sched->plans_made &&
                                       (request->state == REQUEST_PREFILL ||
                                        request->state == REQUEST_DECODE)
                               ? rows_due(sched, request)
                               : 0;

        if (!due)
                return 0;
        return request->record_bytes_max +
               (request_must_score(request) ? due * (uint64_t)request->score_bytes_max : 0);
}

/*
 * Of `space`, the bytes that records of drafts may take: others of the channel may have rows after
 * this one, and a request that is stalled there waits for space to become free.
 */
static uint64_t spare_space(const struct sched *sched, const struct request *request,
                            uint64_t space)
{
        for (uint32_t i = 0; i < sched->stalled.count; i++)
                if (sched->stalled.at[i]->channel_number == request->channel_number)
                        return 0;
        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *other = sched->running.at[i];
                uint64_t due = 0;

                if (other != request && other->channel_number == request->channel_number)
                        due = space_due(sched, other);
                space -= due < space ? due : space;
        }
        return space;
}

/*
 * How many tokens of its draft a decode may have rows for, with `space` bytes behind its own
 * record.  The last row of a run may give the last token.  A block must be its own or free; and no
 * window page is taken for one.
 */
static uint32_t drafts_due(const struct sched *sched, const struct request *request, uint64_t space)
{
        const struct slot *slot = sched_slot(sched, request);
        uint32_t count = slot->draft_count, last = slot->planned;
        uint32_t end = request_positions(request), pages;

        if (count > sched->drafts_left)
                count = sched->drafts_left;
        if (!count)
                return 0;
        space = spare_space(sched, request, space);
        if (count > space / request->record_bytes_max)
                count = (uint32_t)(space / request->record_bytes_max);
        if (count > end - 1 - last)
                count = end - 1 - last;
        pages = sched->conf.prefix.window ? 0 : slot->reserved;
        if (pages > sched->prefix.pool.free.count)
                pages = sched->prefix.pool.free.count;
        /* The decode's own row may need the first of them. */
        end = (slot->block_count + pages) * BLOCK_POSITIONS;
        if (end <= last + 1)
                return 0;
        return count > end - 1 - last ? end - 1 - last : count;
}

/* The rows that it may have of `left`, if its blocks are there. */
static struct next_rows next_rows(const struct sched *sched, const struct request *request,
                                  uint32_t left)
{
        uint32_t due = rows_due(sched, request), planned = sched_slot(sched, request)->planned;
        uint64_t space = space_of(sched, request);
        struct next_rows next = {
                .count = due < left ? due : left,
                .wants = due <= left,
                .fits = true,
        };

        if (request_must_score(request)) {
                next.plain = plain_rows(request, planned);
                if (next.count > next.plain)
                        limit_scores(sched, request, &next, &space);
        }
        if (next.wants && space < request->record_bytes_max) {
                next.fits = next.wants = false;
                next.count--;
        } else if (next.wants && request->state == REQUEST_DECODE) {
                next.drafts = drafts_due(sched, request, space - request->record_bytes_max);
        }
        return next;
}

/*
 * Adds the rows that a request may have now: the rest of its prompt, or one row of a
 * decode.  The last of these wants a result.  If fewer rows are left, it gets fewer.  If there is
 * no space for the record of that result, it gets all rows but the last.  Blocks from the swap come
 * first; beside decodes, each of them takes the place of a row.  Returns how many of `left` are
 * used.
 */
static uint32_t add_request_rows(struct sched *sched, struct plan *plan, struct request *request,
                                 uint32_t left)
{
        struct slot *slot = sched_slot(sched, request);
        uint32_t pages = slot->mapped ? 0 : slot->block_count + (slot->tail != BLOCK_NONE);
        struct next_rows next;
        uint32_t used = 0, fetches;

        if (!rows_due(sched, request) || !left || sched_lacks_block(sched, request))
                return 0;
        fetches = fetches_due(sched, request, left);
        if (pages + fetches > sched->pages_left) {
                if (has_space(sched, request)) /* it waits for pages, not for free bytes */
                        set_stalled(sched, request, false);
                return 0;
        }
        if (fetches) {
                ready_slot(sched, plan, slot, pages);
                fetches = sched_fetch(sched, plan, slot, fetches);
                sched->pages_left -= fetches;
                pages = 0;
                used = sched->step.decode_rows ? fetches : 0;
        }
        if (slot->swapped || used == left)
                return used;

        next = next_rows(sched, request, left - used);
        set_stalled(sched, request, !next.fits && !next.count);
        if (!next.count)
                return used;

        ready_slot(sched, plan, slot, pages);
        count_rows(&sched->step, request->state, slot->planned, next.count + next.drafts);
        for (uint32_t i = 0; i < next.count; i++)
                add_row(sched, plan, slot, want_of(&next, i));
        add_draft_rows(sched, plan, slot, next.drafts);
        add_part(sched, plan, slot, &next);
        return used + next.count + next.drafts;
}

static uint32_t rows_left(const struct plan *plan)
{
        return plan->row_max - plan->row_count;
}

/* True if the request is in `state`, is not stalled, and has no rows in this plan yet. */
static bool may_get_rows(const struct sched *sched, const struct plan *plan,
                         const struct request *request, enum request_state state)
{
        return request->state == state && !request->stalled &&
               sched_slot(sched, request)->newest_plan < plan->number;
}

/*
 * The rows that decodes and prompts leave: drafts take nothing from them.  Where prompts have only
 * the time that decodes leave, a row of a draft takes time from them, too.
 */
static uint32_t spare_rows(const struct sched *sched, const struct plan *plan)
{
        uint32_t left = rows_left(plan);

        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];
                uint32_t due;

                if (!may_get_rows(sched, plan, request, request->state))
                        continue;
                due = request->state == REQUEST_PREFILL || request->state == REQUEST_DECODE
                              ? rows_due(sched, request)
                              : 0;
                if (due && request->state == REQUEST_PREFILL && sched->conf.token_gap_ns)
                        return 0;
                left -= due < left ? due : left;
        }
        return left;
}

static void add_decodes(struct sched *sched, struct plan *plan)
{
        for (uint32_t i = 0; i < sched->running.count; i++)
                if (may_get_rows(sched, plan, sched->running.at[i], REQUEST_DECODE))
                        add_request_rows(sched, plan, sched->running.at[i], rows_left(plan));
}

/*
 * Notes the ranks of all prompts.  They change with the time and with each step, so they are those
 * of this plan only.
 */
static void rank_prompts(struct sched *sched)
{
        for (uint32_t i = 0; i < sched->running.count; i++) {
                struct request *request = sched->running.at[i];

                if (request->state == REQUEST_PREFILL)
                        sched_slot(sched, request)->rank = sched_rank(sched, request);
        }
}

/* Finds the lowest rank, at least `from`, of the prompts that may get rows; or returns false. */
static bool find_rank(const struct sched *sched, const struct plan *plan, uint64_t from,
                      uint64_t *ret_rank)
{
        bool found = false;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];
                uint64_t rank = sched_slot(sched, request)->rank;

                if (!may_get_rows(sched, plan, request, REQUEST_PREFILL) || rank < from ||
                    (found && rank >= *ret_rank))
                        continue;
                *ret_rank = rank;
                found = true;
        }
        return found;
}

static bool is_prompt_of(const struct sched *sched, const struct plan *plan,
                         const struct request *request, uint64_t rank)
{
        return may_get_rows(sched, plan, request, REQUEST_PREFILL) &&
               sched_slot(sched, request)->rank == rank;
}

/*
 * The rows that a prompt takes of a plan until it is read: those to go, and beside decodes one for
 * each block that comes from the swap.
 */
static uint32_t rows_taken(const struct sched *sched, const struct request *request)
{
        uint32_t swapped = sched_slot(sched, request)->swapped, due = rows_due(sched, request);
        uint32_t come = swapped * BLOCK_POSITIONS;

        return due - (come < due ? come : due - 1) + (sched->step.decode_rows ? swapped : 0);
}

/* Adds the prompts of a rank that have at most `longest` rows to go and fit completely. */
static uint32_t add_short_prompts(struct sched *sched, struct plan *plan, uint64_t rank,
                                  uint32_t longest, uint32_t left)
{
        uint32_t added = 0;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                struct request *request = sched->running.at[i];

                if (is_prompt_of(sched, plan, request, rank) &&
                    rows_taken(sched, request) <= longest &&
                    rows_taken(sched, request) <= left - added)
                        added += add_request_rows(sched, plan, request, left - added);
        }
        return added;
}

/* Adds the prompts of a rank in order; the last one may fit only in part. */
static uint32_t add_prompts_of(struct sched *sched, struct plan *plan, uint64_t rank, uint32_t left)
{
        uint32_t added = 0;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                struct request *request = sched->running.at[i];

                if (is_prompt_of(sched, plan, request, rank))
                        added += add_request_rows(sched, plan, request, left - added);
        }
        return added;
}

/* The furthest position at which a prompt may continue in this plan. */
static uint32_t furthest(const struct sched *sched, const struct plan *plan)
{
        uint32_t position = 0;

        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];

                if (may_get_rows(sched, plan, request, REQUEST_PREFILL) &&
                    sched_slot(sched, request)->planned > position)
                        position = sched_slot(sched, request)->planned;
        }
        return position;
}

/* Adds prompts, rank by rank: short ones first, in at most half of the rows; then all in order. */
static void add_prompts(struct sched *sched, struct plan *plan)
{
        uint32_t decode_rows = sched->step.decode_rows, left = rows_left(plan), quarter, half;
        uint64_t rank = 0;

        if (decode_rows && left)
                left = prefill_budget_rows(&sched->prefill_budget, decode_rows,
                                           furthest(sched, plan), left);
        quarter = left / 4;
        half = left / 2;
        rank_prompts(sched);
        for (; left && find_rank(sched, plan, rank, &rank); rank++) {
                uint32_t count =
                        add_short_prompts(sched, plan, rank, quarter, half < left ? half : left);

                half -= count;
                left -= count;
                left -= add_prompts_of(sched, plan, rank, left);
        }
}

/*
 * Inserts the blocks that earlier plans compute for all running requests, so that requests that get
 * a slot now can find them.  Those of requests that are ending are inserted before they give back
 * window pages, because only a block of the index keeps its page.
 */
static void insert_all(struct sched *sched)
{
        for (uint32_t i = 0; i < sched->running.count; i++)
                sched_insert(sched, sched_slot(sched, sched->running.at[i]), NULL);
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                struct slot *slot = &sched->slots[i];

                if (!slot->request || slot->request->state != REQUEST_ENDING ||
                    slot->request->publish)
                        continue;
                if (slot->plans)
                        sched_insert(sched, slot, NULL);
                else
                        sched_insert_last(sched, slot);
        }
}

/* Nothing reads further back than the next row of a slot: rows in flight run before new ones. */
static void pass_all_windows(struct sched *sched)
{
        for (uint32_t i = 0; i < sched->conf.slots && sched->conf.prefix.window; i++)
                if (sched->slots[i].request)
                        sched_pass_windows(sched, &sched->slots[i], sched->slots[i].planned);
}

/* A preempted request may get a slot again when there is space for its next record. */
static bool try_stalled(struct sched *sched, struct plan *plan, struct request *request)
{
        if (request->sequence.slot != SEQUENCE_NO_SLOT)
                add_request_rows(sched, plan, request, rows_left(plan));
        else if (has_space(sched, request))
                set_stalled(sched, request, false);
        return !request->stalled;
}

static void add_stalled(struct sched *sched, struct plan *plan)
{
        for (uint32_t i = 0; i < sched->stalled.count;) {
                if (!try_stalled(sched, plan, sched->stalled.at[i])) /* else it left the list */
                        i++;
        }
}

/* Does a request wait that could have a slot? */
static bool may_begin(const struct sched *sched)
{
        for (uint32_t i = 0; i < sched->waiting.count && !sched->conf.batch_size; i++)
                if (!sched->waiting.at[i]->stalled && !sched_is_unready(sched->waiting.at[i]))
                        return true;
        return false;
}

/* Wakes when a request with a slot may be preempted because its client is awaited for so long. */
static void wake_to_preempt(const struct sched *sched, struct plan *plan)
{
        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];
                bool may_give_way = request->stalled ? !sched_is_worn(sched, request)
                                                     : sched_is_unready(request);

                if (may_give_way && sched->now_ns < sched_preempt_time(sched, request))
                        plan_wake(plan, sched_preempt_time(sched, request));
        }
}

/*
 * With no plan in flight the engine sleeps.  Then every request with a slot lacks space for its
 * record, or masks or a token, which the engine itself awaits.  A waiting request can begin only at
 * the time that slots.c has set, or when one with a slot may be preempted, or when another one
 * comes first because it counts as one class better.
 */
static void set_wake_time(struct sched *sched, struct plan *plan)
{
        assert(sched->stalled.count + sched->unready >= sched->running.count);
        assert(sched->stalled.count || sched->unready || !sched->waiting.count ||
               sched->conf.batch_size);
        if (sched->stalled.count)
                plan_wake(plan, stall_deadline(sched, sched->stalled.at[0]));
        if (!may_begin(sched))
                return;
        if (sched->conf.preemptions_max)
                wake_to_preempt(sched, plan);
        for (uint32_t i = 0; i < sched->waiting.count; i++)
                plan_wake(plan, sched_promotion_time(sched, sched->waiting.at[i]));
}

/* A draft is for one plan only: by the next one, its request may have other tokens. */
static void forget_drafts(struct sched *sched)
{
        for (uint32_t i = 0; i < sched->running.count; i++)
                sched_slot(sched, sched->running.at[i])->draft_count = 0;
}

static void record_flight(struct sched *sched, const struct plan *plan)
{
        struct flight *flight = &sched->flights[plan->number % sched->conf.depth];

        flight->step = sched->step;
        flight->move_count = plan->move_count;
        flight->begun_ns = sched->now_ns;
        sched->plans_made = plan->number;
}

void sched_next(struct sched *sched, uint64_t now_ns, struct plan *ret_plan)
{
        struct plan *plan = ret_plan;
        bool may_run = !sched->paused && sched_in_flight(sched) < sched->conf.depth;

        assert(now_ns >= sched->now_ns);
        assert(plan->row_max == sched->conf.rows && plan->page_max >= sched->conf.rows);
        sched->now_ns = now_ns;
        plan->number = sched->plans_made + 1;
        plan->wake_ns = PLAN_SLEEP;
        plan->row_count = plan->page_count = plan->copy_count = 0;
        prefix_list_moves(&sched->prefix, plan->moves, plan->move_max, sched_may_swap(sched));
        plan->end_count = plan->retired_count = 0;
        sched->pages_left = sched->table_max;
        sched->scores_left = sched->drafts_left = 0;
        sched->step = (struct prefill_step){ 0 };

        end_overdue(sched, now_ns);
        if (may_run) {
                sched_finish_preempting(sched);
                insert_all(sched);
                pass_all_windows(sched);
                add_stalled(sched, plan);
        }
        end_stalled(sched, now_ns);
        deliver_ends(sched, plan);
        if (may_run) {
                if (sched_grow(sched))
                        add_stalled(sched, plan);
                sched_fill_slots(sched, plan);
                sched->scores_left = sched->conf.slots - sched->running.count;
                sched->drafts_left = spare_rows(sched, plan);
                if (sched->drafts_left > sched->conf.drafts)
                        sched->drafts_left = sched->conf.drafts;
                add_decodes(sched, plan);
                add_prompts(sched, plan);
                forget_drafts(sched);
        }

        plan->move_count = sched->prefix.move_count;
        plan->stalled = sched->stalled.count;
        if (plan->row_count)
                record_flight(sched, plan);
        else
                plan->number = 0;
        assert(plan->row_count || !plan->move_count);
        if (!sched->paused && !sched_in_flight(sched))
                set_wake_time(sched, plan);
        if (sched->deadline_ns)
                plan_wake(plan, sched->deadline_ns);
}
