/*
 * Takes events in.
 *
 * The only decisions here are ends.  An event changes the state, and deal.c makes the
 * next plan from it.  A request goes through these states:
 *
 *      SUBMIT           a slot is free and    all its prompt       its END is decided: by a
 *        |              blocks promised       has been planned     verdict, a cancel, a stall
 *        v                    v                     v                        v
 *      waiting ----------> prefill ------------> decode ----------------> ending -> retired
 *         ^                   v                     v
 *         +--------------- parking <----------------+   another request needs its slot
 *
 * It may go to `ending` from every state before.  It keeps its slot, its blocks and its
 * promise until it retires, because rows in flight write to them.  The room for records that
 * was reserved for it (owed) is free at once, because an ending request writes no more tokens.
 */
#include "daemon/core/sched-state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Arrays, not linked lists: a removal moves at most requests_max pointers.  Removals happen only
 * when requests end, stop stalling, or get or lose a slot.
 */
void roster_add(struct roster *roster, struct request *request)
{
        assert(request);
        assert(roster->count < roster->max);

        roster->at[roster->count++] = request;
}

void roster_remove(struct roster *roster, const struct request *request)
{
        uint32_t i = 0;

        while (i < roster->count && roster->at[i] != request)
                i++;
        assert(i < roster->count);
        roster->count--;
        memmove(&roster->at[i], &roster->at[i + 1], (roster->count - i) * sizeof(struct request *));
}

static bool roster_init(struct roster *roster, uint32_t max)
{
        *roster = (struct roster){ .at = calloc(max, sizeof(struct request *)), .max = max };
        return roster->at;
}

/* Allocates the arrays; returns false if an allocation failed. */
static bool allocate(struct sched *sched)
{
        const struct sched_conf *conf = &sched->conf;
        struct tally *tally = &sched->tally;
        size_t slots = conf->slots;

        sched->slots = calloc(slots, sizeof(*sched->slots));
        sched->tables = calloc(slots * sched->table_max, sizeof(*sched->tables));
        sched->probe.blocks = calloc(sched->table_max, sizeof(*sched->probe.blocks));
        sched->free_slots = calloc(slots, sizeof(*sched->free_slots));
        sched->chosen = calloc(slots, sizeof(*sched->chosen));
        sched->drops = calloc(conf->blocks, sizeof(*sched->drops));
        sched->endings = calloc(conf->requests_max, sizeof(*sched->endings));
        sched->flights = calloc(conf->depth, sizeof(*sched->flights));
        sched->parts = calloc(slots * conf->depth, sizeof(*sched->parts));
        sched->sources = calloc(slots * conf->depth, sizeof(*sched->sources));
        sched->rooms = calloc(conf->channels, sizeof(*sched->rooms));
        tally->holds = calloc(conf->blocks, sizeof(*tally->holds));
        tally->owed = calloc(conf->channels, sizeof(*tally->owed));
        tally->plans = calloc(slots, sizeof(*tally->plans));
        tally->wanted = calloc(slots, sizeof(*tally->wanted));

        return roster_init(&sched->waiting, conf->requests_max) &&
               roster_init(&sched->running, conf->slots) &&
               roster_init(&sched->stalled, conf->requests_max) && sched->slots && sched->tables &&
               sched->probe.blocks && sched->free_slots && sched->chosen && sched->drops &&
               sched->endings && sched->flights && sched->parts && sched->sources && sched->rooms &&
               tally->holds && tally->owed && tally->plans && tally->wanted &&
               !shares_init(&sched->shares, conf->requests_max, conf->slots, conf->blocks,
                            conf->user_blocks) &&
               !prefix_init(&sched->prefix, &conf->prefix, conf->blocks);
}

int sched_new(const struct sched_conf *conf, struct sched **ret_sched)
{
        struct sched *sched;

        assert(conf->slots > 0 && conf->rows >= conf->slots);
        assert(conf->depth == 1 || conf->depth == 2);
        assert(conf->context > 0 && conf->context <= UINT32_MAX - BLOCK_POSITIONS);
        assert(conf->blocks > 0 && conf->requests_max > 0 && conf->channels > 0);

        sched = calloc(1, sizeof(*sched));
        if (!sched)
                return -ENOMEM;
        sched->conf = *conf;
        pace_init(&sched->pace, conf->gap_ns);
        sched->table_max = sched_table_max(conf);
        if (!allocate(sched)) {
                sched_free(sched);
                return -ENOMEM;
        }

        for (uint32_t i = 0; i < conf->slots; i++) {
                sched->slots[i].blocks = &sched->tables[(size_t)i * sched->table_max];
                sched->free_slots[i] = conf->slots - 1 - i; /* slot 0 is given first */
        }
        sched->free_slot_count = conf->slots;
        for (uint32_t i = 0; i < conf->depth; i++) {
                sched->flights[i].parts = &sched->parts[(size_t)i * conf->slots];
                sched->flights[i].sources = &sched->sources[(size_t)i * conf->slots];
        }

        *ret_sched = sched;
        return 0;
}

struct sched *sched_free(struct sched *sched)
{
        if (!sched)
                return NULL;
        prefix_deinit(&sched->prefix);
        shares_deinit(&sched->shares);
        free(sched->slots);
        free(sched->tables);
        free(sched->probe.blocks);
        free(sched->free_slots);
        free(sched->chosen);
        free(sched->drops);
        free(sched->waiting.at);
        free(sched->running.at);
        free(sched->stalled.at);
        free(sched->endings);
        free(sched->flights);
        free(sched->parts);
        free(sched->sources);
        free(sched->rooms);
        free(sched->tally.holds);
        free(sched->tally.owed);
        free(sched->tally.plans);
        free(sched->tally.wanted);
        free(sched);
        return NULL;
}

enum smv_code sched_fits(const struct sched_conf *conf, uint32_t prompt_count, uint32_t max_tokens)
{
        uint64_t positions = (uint64_t)prompt_count + max_tokens;
        uint32_t blocks;

        assert(prompt_count > 0);

        if (positions > conf->context)
                return SMV_TOO_LONG;
        blocks = blocks_for((uint32_t)positions - (max_tokens > 0));
        if (blocks > conf->blocks)
                return SMV_TOO_LARGE;
        return conf->user_blocks && blocks > conf->user_blocks ? SMV_QUOTA : SMV_OK;
}

void sched_end(struct sched *sched, struct request *request, enum smv_reason reason,
               enum smv_code code)
{
        assert(reason >= SMV_END_EOS && reason <= SMV_END_ERROR);
        assert(sched->ending_count < sched->conf.requests_max);

        if (request->state == REQUEST_WAITING) {
                roster_remove(&sched->waiting, request);
                share_give_up(&sched->shares, request->uid);
        } else {
                struct slot *slot = sched_slot(sched, request);

                roster_remove(&sched->running, request);
                sched->rooms[request->room_channel].owed -=
                        slot->wanted * (uint64_t)request->record_bytes_max;
                slot->wanted = 0;
        }
        if (request->stalled)
                roster_remove(&sched->stalled, request);
        request->stalled = false;

        request_move(request, REQUEST_ENDING);
        sched->endings[sched->ending_count++] = (struct plan_end){
                .request = request,
                .reason = reason,
                .code = code,
        };
}

static void on_submit(struct sched *sched, struct request *request, uint32_t channel)
{
        assert(channel < sched->conf.channels);
        assert(request->state == REQUEST_WAITING);
        assert(request->sequence.request == request);
        assert(request->sequence.token_count == request->prompt_count);
        assert(sched_fits(&sched->conf, request->prompt_count, request->max_tokens) == SMV_OK);
        assert(sched->waiting.count + sched->running.count + sched->ending_count <
               sched->conf.requests_max);

        assert(!request->publish || (request->anchor && !request->max_tokens));
        request->room_channel = channel;
        request->arrival = sched->arrivals++;
        request->waiting_ns = sched->now_ns;
        request->skipped = 0;
        request->parks = request->charged = 0;
        request->stalled = request->anchored = false;
        request->sequence.slot = SEQUENCE_NO_SLOT;
        request->sequence.cached_count = request->sequence.diverged_at = 0;
        if (request->deadline_ns &&
            (!sched->deadline_ns || request->deadline_ns < sched->deadline_ns))
                sched->deadline_ns = request->deadline_ns;
        roster_add(&sched->waiting, request);
        share_come(&sched->shares, request->uid, request->class);
}

static void on_cancel(struct sched *sched, const struct sched_event *event)
{
        enum request_state state = event->request->state;

        /* A cancel and an end may cross on the way; that is no error. */
        if (state == REQUEST_ENDING || state == REQUEST_RETIRED)
                return;
        sched_end(sched, event->request, event->reason, event->code);
}

/*
 * Finds the request that this result belongs to.  Results may be missing only for
 * requests that are ending: for all others every token counts.
 */
static struct request *claim(struct sched *sched, uint64_t number, uint32_t row)
{
        struct flight *flight = sched_flight(sched, number);

        assert(number == sched->plans_done + 1); /* results come for the oldest plan in flight */
        assert(row < sched->conf.rows);
        for (;;) {
                const struct part *part = &flight->parts[flight->next_part];

                /* Otherwise no result of this row is due. */
                assert(flight->next_part < flight->part_count);
                flight->next_part++;
                if (part->wanted_row == row)
                        return part->request;
                assert(part->wanted_row == PART_NO_ROW || part->request->state == REQUEST_ENDING);
        }
}

static void on_result(struct sched *sched, const struct sched_event *event)
{
        struct request *request = claim(sched, event->plan, event->row);
        struct sequence *sequence = &request->sequence;
        struct slot *slot;
        uint32_t most = request->prompt_count + request->max_tokens;

        slot = sched_slot(sched, request);
        if (request->state == REQUEST_ENDING) {
                if (event->verdict == SCHED_NUMERIC)
                        sched_spoil(sched, slot); /* the blocks that it named stay in the index */
                return;
        }

        assert(request->state == REQUEST_DECODE || request->state == REQUEST_PARKING);
        assert(slot->wanted > 0);
        slot->wanted--;
        sched->rooms[request->room_channel].owed -= request->record_bytes_max;

        if (event->verdict == SCHED_NUMERIC) {
                sched_spoil(sched, slot);
                sched_end(sched, request, SMV_END_ERROR, SMV_NUMERIC);
                return;
        }

        if (!request->max_tokens) {
                if (request->anchor)
                        sched_anchor(sched, slot);
                if (request->publish && !request->anchored)
                        sched_end(sched, request, SMV_END_ERROR, SMV_BUSY);
                else
                        sched_end(sched, request, SMV_END_LENGTH, SMV_OK);
                return;
        }

        assert(sequence->token_count < most);
        sequence->tokens[sequence->token_count++] = event->token;
        if (event->verdict == SCHED_EOS)
                sched_end(sched, request, SMV_END_EOS, SMV_OK);
        else if (event->verdict == SCHED_STOP)
                sched_end(sched, request, SMV_END_STOP, SMV_OK);
        else if (sequence->token_count == most)
                sched_end(sched, request, SMV_END_LENGTH, SMV_OK);
}

static void on_done(struct sched *sched, uint64_t number)
{
        struct flight *flight = sched_flight(sched, number);
        uint64_t begun_ns = flight->begun_ns;

        assert(number == sched->plans_done + 1);
        if (begun_ns < sched->done_ns)
                begun_ns = sched->done_ns; /* it could begin only after the plan before it */
        pace_note(&sched->pace, &flight->step, sched->now_ns - begun_ns);
        sched->done_ns = sched->now_ns;
        for (uint32_t i = 0; i < flight->part_count; i++) {
                const struct part *part = &flight->parts[i];
                struct slot *slot = sched_slot(sched, part->request);

                assert(i < flight->next_part || part->wanted_row == PART_NO_ROW ||
                       part->request->state == REQUEST_ENDING);
                assert(slot->plans > 0);
                slot->plans--;
        }
        while (flight->source_count)
                prefix_drop(&sched->prefix, flight->sources[--flight->source_count]);
        flight->part_count = flight->next_part = 0;
        sched->plans_done = number;
}

void sched_note(struct sched *sched, const struct sched_event *event, uint64_t now_ns)
{
        assert(now_ns >= sched->now_ns);
        sched->now_ns = now_ns;

        switch (event->kind) {
        case SCHED_SUBMIT:
                on_submit(sched, event->request, event->channel);
                return;
        case SCHED_CANCEL:
                on_cancel(sched, event);
                return;
        case SCHED_ROOM:
                assert(event->channel < sched->conf.channels);
                sched->rooms[event->channel].told = event->room;
                return;
        case SCHED_RESULT:
                on_result(sched, event);
                return;
        case SCHED_DONE:
                on_done(sched, event->plan);
                return;
        case SCHED_LIFT:
                prefix_anchor(&sched->prefix, event->anchor, BLOCK_NONE);
                return;
        case SCHED_HOLD:
                assert(!sched->plans_made);
                sched->held = true;
                return;
        case SCHED_GO:
                sched->held = false;
                return;
        }
        assert(!"an event of no kind");
}

uint64_t sched_owed(const struct sched *sched, uint32_t channel)
{
        assert(channel < sched->conf.channels);
        return sched->rooms[channel].owed;
}

void sched_count(const struct sched *sched, struct sched_counts *ret_counts)
{
        assert(prefix_left(&sched->prefix) >= sched->promised);

        *ret_counts = (struct sched_counts){
                .blocks_total = sched->prefix.pool.total,
                .blocks_free = sched->prefix.pool.free_count,
                .blocks_kept = sched->prefix.pool.kept_count,
                .blocks_held = kvpool_held(&sched->prefix.pool),
                .blocks_promised = sched->promised,
                .evictions = sched->prefix.evictions,
                .copies = sched->copies,
                .waiting = sched->waiting.count,
                .running = sched->running.count,
                .stalled = sched->stalled.count,
                .ending = sched->ending_count,
                .passed_over = sched->passed_over,
                .parks = sched->parks,
                .prompt_row_ns = sched->pace.row,
                .prompt_far_ns = sched->pace.far,
                .plans_in_flight = sched_in_flight(sched),
        };
}

static void see_once(uint32_t *seen, uint32_t slot)
{
        assert(!seen[slot]);
        seen[slot] = 1;
}

/* Every request is in its list, every slot in use or free. */
static void check_lists(const struct sched *sched)
{
        uint32_t used = sched->running.count, *seen = sched->tally.plans;

        for (uint32_t i = 0; i < sched->waiting.count; i++) {
                assert(sched->waiting.at[i]->state == REQUEST_WAITING);
                assert(sched->waiting.at[i]->sequence.slot == SEQUENCE_NO_SLOT);
        }

        memset(seen, 0, sched->conf.slots * sizeof(*seen));
        for (uint32_t i = 0; i < sched->running.count; i++) {
                const struct request *request = sched->running.at[i];

                assert(request->state == REQUEST_PREFILL || request->state == REQUEST_DECODE ||
                       request->state == REQUEST_PARKING);
                assert(sched_slot(sched, request)->plans <= sched->conf.depth);
                see_once(seen, request->sequence.slot);
        }
        assert(sched->told_count <= sched->ending_count);
        for (uint32_t i = 0; i < sched->ending_count; i++) {
                const struct request *request = sched->endings[i].request;

                assert(request->state == REQUEST_ENDING);
                if (request->sequence.slot == SEQUENCE_NO_SLOT)
                        continue;
                assert(sched_slot(sched, request)->plans <= sched->conf.depth);
                see_once(seen, request->sequence.slot);
                used++;
        }
        for (uint32_t i = 0; i < sched->free_slot_count; i++) {
                assert(!sched->slots[sched->free_slots[i]].request);
                see_once(seen, sched->free_slots[i]);
        }
        assert(used + sched->free_slot_count == sched->conf.slots);

        for (uint32_t i = 0; i < sched->stalled.count; i++) {
                const struct request *request = sched->stalled.at[i];

                assert(request->stalled && request->state != REQUEST_ENDING);
                assert(request->state != REQUEST_WAITING || request->parks);
                assert(!i || request->stalled_ns >= sched->stalled.at[i - 1]->stalled_ns);
        }
}

/* Counts again the plans, the results due and the room reserved for them. */
static void check_flights(const struct sched *sched)
{
        const struct tally *tally = &sched->tally;

        memset(tally->plans, 0, sched->conf.slots * sizeof(*tally->plans));
        memset(tally->wanted, 0, sched->conf.slots * sizeof(*tally->wanted));
        memset(tally->owed, 0, sched->conf.channels * sizeof(*tally->owed));

        assert(sched->plans_made - sched->plans_done <= sched->conf.depth);
        for (uint64_t n = sched->plans_done + 1; n <= sched->plans_made; n++) {
                const struct flight *flight = sched_flight(sched, n);

                assert(flight->part_count && flight->next_part <= flight->part_count);
                for (uint32_t i = 0; i < flight->part_count; i++) {
                        const struct request *request = flight->parts[i].request;

                        assert(sched_slot(sched, request));
                        tally->plans[request->sequence.slot]++;
                        if (i < flight->next_part || request->state == REQUEST_ENDING ||
                            flight->parts[i].wanted_row == PART_NO_ROW)
                                continue;
                        tally->wanted[request->sequence.slot]++;
                        tally->owed[request->room_channel] += request->record_bytes_max;
                }
        }
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                assert(sched->slots[i].plans == tally->plans[i]);
                assert(sched->slots[i].wanted == tally->wanted[i]);
        }
        for (uint32_t i = 0; i < sched->conf.channels; i++)
                assert(sched->rooms[i].owed == tally->owed[i]);
}

static void check_slot(const struct slot *slot)
{
        const struct request *request = slot->request;

        if (!request) {
                assert(!slot->block_count && !slot->promised && !slot->plans);
                return;
        }
        assert(slot->tail == BLOCK_NONE || (!slot->moved && slot->cached % BLOCK_POSITIONS));
        if (slot->moved)
                assert(slot->block_count == blocks_for(slot->planned));
        else
                assert(slot->block_count == slot->cached / BLOCK_POSITIONS);
        assert(slot->named <= slot->block_count);
        assert(slot->block_count + slot->promised == blocks_for(request_positions(request)));
        assert(request->state != REQUEST_PREFILL ||
               (slot->planned < request->sequence.token_count && !slot->wanted));
        assert(request->state != REQUEST_DECODE ||
               slot->planned == request->sequence.token_count - 1 + slot->wanted);
}

/* Counts the references of each block again. */
static void check_holds(const struct sched *sched)
{
        uint32_t *holds = sched->tally.holds;

        memset(holds, 0, sched->conf.blocks * sizeof(*holds));
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                const struct slot *slot = &sched->slots[i];

                for (uint32_t j = 0; j < slot->block_count; j++)
                        holds[slot->blocks[j]]++;
                if (slot->request && slot->tail != BLOCK_NONE)
                        holds[slot->tail]++;
        }
        for (uint32_t i = 0; i < sched->conf.depth; i++)
                for (uint32_t j = 0; j < sched->flights[i].source_count; j++)
                        holds[sched->flights[i].sources[j]]++;
        for (block_t block = 0; block < sched->conf.blocks; block++)
                assert(sched->prefix.pool.holds[block] == holds[block]);
}

void sched_check(const struct sched *sched)
{
        uint32_t promised = 0;

        prefix_check(&sched->prefix);
        check_lists(sched);
        check_flights(sched);
        for (uint32_t i = 0; i < sched->conf.slots; i++) {
                const struct slot *slot = &sched->slots[i];

                check_slot(slot);
                promised += slot->promised;
        }
        check_holds(sched);
        assert(promised == sched->promised && promised <= prefix_left(&sched->prefix));
        shares_check(&sched->shares, sched->waiting.count,
                     sched->conf.slots - sched->free_slot_count, promised);
}
