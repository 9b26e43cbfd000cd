/*
 * Proves the invariants of sched.h, the pool and the index: counts everything again, and compares.
 */
#include "daemon/core/sched-state.h"

#include <string.h>

static void mark_seen(uint32_t *seen, uint32_t slot)
{
        assert(!seen[slot]);
        seen[slot] = 1;
}

/* Every request is in its list, every slot in use or free. */
static void check_lists(const struct sched *sched)
{
        uint32_t used = sched->running.count, *seen = sched->check_counts.plans;

        for (uint32_t i = 0; i < sched->waiting.count; i++) {
                assert(sched->waiting.at[i]->state == REQUEST_WAITING);
                assert(sched->waiting.at[i]->sequence.slot == SEQUENCE_NO_SLOT);
        }

        memset(seen, 0, sched->conf.slots * sizeof(*seen));
        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];

                assert(request->blocks_lost + request->unanswered <= request->preemptions);
                assert(request->state == REQUEST_PREFILL || request->state == REQUEST_DECODE ||
                       request->state == REQUEST_PREEMPTING);
                assert(sched_slot(sched, request)->plans <= sched->conf.depth);
                mark_seen(seen, request->sequence.slot);
        }
        assert(sched->sent_count <= sched->ending_count);
        for (uint32_t i = 0; i < sched->ending_count; i++) {
                const struct request *request = sched->endings[i].request;

                assert(request->state == REQUEST_ENDING);
                if (request->sequence.slot == SEQUENCE_NO_SLOT)
                        continue;
                assert(sched_slot(sched, request)->plans <= sched->conf.depth);
                mark_seen(seen, request->sequence.slot);
                used++;
        }
        for (uint32_t i = 0; i < sched->free_slots.count; i++) {
                assert(!sched->slots[sched->free_slots.numbers[i]].request);
                mark_seen(seen, sched->free_slots.numbers[i]);
        }
        assert(used + sched->free_slots.count == sched->conf.slots);

        for (uint32_t i = 0; i < sched->stalled.count; i++) {
                const struct request *request = sched->stalled.at[i];

                assert(request->stalled && request->state != REQUEST_ENDING);
                assert(request->state != REQUEST_WAITING || request->preemptions);
                assert(!i || request->stalled_ns >= sched->stalled.at[i - 1]->stalled_ns);
        }
}

/* The bytes that are reserved for the tokens of held requests. */
static void count_held(const struct sched *sched, const struct request_list *list)
{
        for (uint32_t i = 0; i < list->count; i++) {
                const struct request *request = list->at[i];

                if (request->held)
                        sched->check_counts.pending_bytes[request->channel_number] +=
                                sched_held_bytes(request);
        }
}

/* Counts again the plans, the results due and the bytes reserved for them. */
static void check_flights(const struct sched *sched)
{
        const struct check_counts *counts = &sched->check_counts;

        memset(counts->plans, 0, sched->conf.slots * sizeof(*counts->plans));
        memset(counts->wanted, 0, sched->conf.slots * sizeof(*counts->wanted));
        memset(counts->scores, 0, sched->conf.slots * sizeof(*counts->scores));
        memset(counts->pending_bytes, 0, sched->conf.channels * sizeof(*counts->pending_bytes));

        assert(sched->plans_made - sched->plans_done <= sched->conf.depth);
        for (uint64_t n = sched->plans_done + 1; n <= sched->plans_made; n++) {
                const struct flight *flight = sched_flight(sched, n);

                assert(flight->part_count && flight->next_part <= flight->part_count);
                for (uint32_t i = 0; i < flight->part_count; i++) {
                        const struct request *request = flight->parts[i].request;
                        uint32_t due;

                        assert(sched_slot(sched, request));
                        counts->plans[request->sequence.slot]++;
                        if (request->state != REQUEST_ENDING) {
                                counts->scores[request->sequence.slot] += flight->parts[i].scores;
                                counts->pending_bytes[request->channel_number] +=
                                        flight->parts[i].scores *
                                        (uint64_t)request->score_bytes_max;
                        }
                        if (i < flight->next_part || request->state == REQUEST_ENDING ||
                            flight->parts[i].wanted_row == PART_NO_ROW)
                                continue;
                        due = 1 + flight->parts[i].drafted - flight->parts[i].taken;
                        counts->wanted[request->sequence.slot] += due;
                        counts->pending_bytes[request->channel_number] +=
                                due * (uint64_t)request->record_bytes_max;
                }
        }
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                assert(sched->slots[i].plans == counts->plans[i]);
                assert(sched->slots[i].wanted + sched->slots[i].drafted == counts->wanted[i]);
                assert(sched->slots[i].scores == counts->scores[i]);
        }
        count_held(sched, &sched->waiting);
        count_held(sched, &sched->running);
        for (uint32_t i = 0; i < sched->conf.channels; i++)
                assert(sched->channels[i].pending_bytes == counts->pending_bytes[i]);
}

static void check_slot(const struct slot *slot)
{
        const struct request *request = slot->request;

        if (!request) {
                assert(!slot->block_count && !slot->reserved && !slot->plans);
                return;
        }
        assert(slot->tail == BLOCK_NONE || (!slot->mapped && slot->cached % BLOCK_POSITIONS));
        assert(!slot->swapped || (slot->inserted == slot->block_count &&
                                  slot->planned == slot->block_count * BLOCK_POSITIONS &&
                                  request->state != REQUEST_DECODE));
        if (slot->mapped)
                assert(slot->block_count >= blocks_for(slot->planned) &&
                       slot->block_count <= blocks_for(slot->planned + SCHED_DRAFT_MAX));
        else
                assert(slot->block_count == slot->cached / BLOCK_POSITIONS);
        assert(slot->inserted <= slot->block_count);
        assert(slot->block_count + slot->reserved == request->promised);
        assert(request->promised <= request_worst(request));
        assert(request->promised >= blocks_for(slot->planned));
        assert(request->state != REQUEST_PREFILL ||
               (slot->planned < request->sequence.token_count && !slot->wanted));
        assert(request->state != REQUEST_DECODE ||
               slot->planned == request->sequence.token_count - 1 + slot->wanted + request->held);
}

/* Counts the references of each block again. */
static void check_ref_counts(const struct sched *sched)
{
        uint32_t *ref_counts = sched->check_counts.ref_counts;

        memset(ref_counts, 0, sched->conf.blocks * sizeof(*ref_counts));
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                const struct slot *slot = &sched->slots[i];

                for (uint32_t j = 0; j < slot->block_count; j++)
                        ref_counts[slot->blocks[j]]++;
                if (slot->request && slot->tail != BLOCK_NONE)
                        ref_counts[slot->tail]++;
        }
        for (uint32_t i = 0; i < sched->conf.depth; i++)
                for (uint32_t j = 0; j < sched->flights[i].source_count; j++)
                        ref_counts[sched->flights[i].sources[j]]++;
        for (block_t block = 0; block < sched->conf.blocks; block++)
                assert(sched->prefix.pool.ref_counts[block] == ref_counts[block]);
}

/* The same for window pages. */
static void check_window_refs(const struct sched *sched)
{
        uint32_t *refs = sched->check_counts.window_refs;

        if (!sched->conf.prefix.window)
                return;
        memset(refs, 0, sched->conf.blocks * sizeof(*refs));
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                const struct slot *slot = &sched->slots[i];

                for (uint32_t j = slot->window_begin; j < slot->block_count; j++)
                        refs[slot->blocks[j]]++;
                if (slot->request && slot->tail != BLOCK_NONE)
                        refs[slot->tail]++;
                /* Rows at `planned`, or the one before that, may follow. */
                assert(!slot->request ||
                       slot->window_begin <=
                               prefix_window_begin(&sched->prefix, slot->planned + 1));
        }
        for (uint32_t i = 0; i < sched->conf.depth; i++)
                for (uint32_t j = 0; j < sched->flights[i].source_count; j++)
                        refs[sched->flights[i].sources[j]]++;
        for (block_t block = 0; block < sched->conf.blocks; block++)
                assert(sched->prefix.windows[block].refs == refs[block]);
}

/* No more window pages are promised than there are; a cleared slot has none. */
static void check_windows(const struct sched *sched)
{
        uint32_t promised = 0;

        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                const struct slot *slot = &sched->slots[i];

                assert(slot->request || !slot->windows);
                assert(!slot->request ||
                       slot->windows ==
                               sched_windows_of(&sched->conf, request_worst(slot->request)));
                promised += slot->windows;
        }
        assert(promised == sched->windows && promised <= sched_windows_max(&sched->conf));
}

/* The requests of reserving classes do not get more than their part. */
static void check_reserving(const struct sched *sched)
{
        uint32_t reserving = 0;

        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                const struct request *request = sched->slots[i].request;

                if (request && request->reserves)
                        reserving += request_worst(request);
        }
        assert(reserving == sched->reserving);
        assert(!sched->conf.reserve_max || reserving <= sched->conf.reserve_max);
}

static uint32_t count_unready(const struct request_list *list)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < list->count; i++)
                count += sched_is_unready(list->at[i]);
        return count;
}

void sched_check(const struct sched *sched)
{
        uint32_t reserved = 0;

        prefix_check(&sched->prefix);
        check_lists(sched);
        check_flights(sched);
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                const struct slot *slot = &sched->slots[i];

                check_slot(slot);
                reserved += slot->reserved;
        }
        check_ref_counts(sched);
        check_window_refs(sched);
        check_windows(sched);
        check_reserving(sched);
        assert(reserved == sched->reserved && reserved <= prefix_available(&sched->prefix));
        assert(count_unready(&sched->waiting) + count_unready(&sched->running) == sched->unready);
        fair_share_check(&sched->fair_share, sched->waiting.count - count_unready(&sched->waiting),
                         sched->conf.slots - sched->free_slots.count, reserved);
}
