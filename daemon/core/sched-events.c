/*
 * Takes events in.
 *
 * The only decisions here are ends.  An event changes the state, and plan-build.c makes the
 * next plan from it.  A request goes through these states:
 *
 *      SUBMIT           a slot is free and    all its prompt       its END is decided: by a
 *        |              blocks reserved       has been planned     verdict, a cancel, a stall
 *        v                    v                     v                        v
 *      waiting ----------> prefill ------------> decode ----------------> ending -> retired
 *         ^                   v                     v
 *         +------------- preempting <---------------+   another request needs its slot
 *
 * It may go to `ending` from every state before.  It keeps its slot and its blocks,
 * also the reserved ones, until it retires, because rows in flight write to them.  The bytes for
 * records that were reserved for it (pending_bytes) are free at once, because an ending request
 * writes no more tokens.
 */
#include "daemon/core/sched-state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Arrays, not linked lists: a removal moves at most requests_max pointers.  Removals happen only
 * when requests end, stop stalling, or get or lose a slot.
 */
void request_list_add(struct request_list *list, struct request *request)
{
        assert(request);
        assert(list->count < list->max);

        list->at[list->count++] = request;
}

void request_list_remove(struct request_list *list, const struct request *request)
{
        uint32_t i = 0;

        while (i < list->count && list->at[i] != request)
                i++;
        assert(i < list->count);
        list->count--;
        memmove(&list->at[i], &list->at[i + 1], (list->count - i) * sizeof(struct request *));
}

static bool request_list_init(struct request_list *list, uint32_t max)
{
        *list = (struct request_list){ .at = calloc(max, sizeof(struct request *)), .max = max };
        return list->at;
}

/* Allocates the arrays; returns false if an allocation failed. */
static bool allocate(struct sched *sched)
{
        const struct sched_conf *conf = &sched->conf;
        struct check_counts *counts = &sched->check_counts;
        size_t slots = conf->slots;

        sched->slots = calloc(slots, sizeof(*sched->slots));
        sched->tables = calloc(slots * sched->table_max, sizeof(*sched->tables));
        sched->probe.blocks = calloc(sched->table_max, sizeof(*sched->probe.blocks));
        sched->free_slots.numbers = calloc(slots, sizeof(*sched->free_slots.numbers));
        sched->victims = calloc(slots, sizeof(*sched->victims));
        sched->victim_refs = calloc(conf->blocks, sizeof(*sched->victim_refs));
        sched->endings = calloc(conf->requests_max, sizeof(*sched->endings));
        sched->flights = calloc(conf->depth, sizeof(*sched->flights));
        sched->parts = calloc(slots * conf->depth, sizeof(*sched->parts));
        sched->sources = calloc(slots * conf->depth, sizeof(*sched->sources));
        sched->channels = calloc(conf->channels, sizeof(*sched->channels));
        counts->ref_counts = calloc(conf->blocks, sizeof(*counts->ref_counts));
        counts->window_refs =
                calloc(conf->prefix.window ? conf->blocks : 1, sizeof(*counts->window_refs));
        counts->pending_bytes = calloc(conf->channels, sizeof(*counts->pending_bytes));
        counts->plans = calloc(slots, sizeof(*counts->plans));
        counts->wanted = calloc(slots, sizeof(*counts->wanted));
        counts->scores = calloc(slots, sizeof(*counts->scores));

        return request_list_init(&sched->waiting, conf->requests_max) &&
               request_list_init(&sched->running, conf->slots) &&
               request_list_init(&sched->stalled, conf->requests_max) && sched->slots &&
               sched->tables && sched->probe.blocks && sched->free_slots.numbers &&
               sched->victims && sched->victim_refs && sched->endings && sched->flights &&
               sched->parts && sched->sources && sched->channels && counts->ref_counts &&
               counts->window_refs && counts->pending_bytes && counts->plans && counts->wanted &&
               counts->scores &&
               !forecast_init(&sched->forecast, conf->slots + 1,
                              conf->preempt_target * (FORECAST_ONE / 1000)) &&
               !fair_share_init(&sched->fair_share, conf->requests_max, conf->slots, conf->blocks,
                                conf->user_blocks, conf->lead_ns) &&
               !prefix_init(&sched->prefix, &conf->prefix, conf->blocks);
}

int sched_new(const struct sched_conf *conf, struct sched **ret_sched)
{
        struct sched *sched;

        assert(conf->slots > 0 && conf->rows >= conf->slots);
        assert(conf->depth == 1 || conf->depth == 2);
        assert(conf->context > 0 && conf->context <= UINT32_MAX - BLOCK_POSITIONS);
        assert(conf->blocks > 0 && conf->requests_max > 0 && conf->channels > 0);
        assert(conf->lead_ns > 0);
        assert(sched_windows_max(conf) >= sched_windows_of(conf, sched_table_max(conf)));

        sched = calloc(1, sizeof(*sched));
        if (!sched)
                return -ENOMEM;
        sched->conf = *conf;
        prefill_budget_init(&sched->prefill_budget, conf->token_gap_ns);
        sched->table_max = sched_table_max(conf);
        if (!allocate(sched)) {
                sched_free(sched);
                return -ENOMEM;
        }

        for (uint32_t i = 0; i < conf->slots; i++)
                sched->slots[i].blocks = &sched->tables[(size_t)i * sched->table_max];
        free_numbers_init(&sched->free_slots, sched->free_slots.numbers, 0, conf->slots);
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
        fair_share_deinit(&sched->fair_share);
        forecast_deinit(&sched->forecast);
        free(sched->slots);
        free(sched->tables);
        free(sched->probe.blocks);
        free(sched->free_slots.numbers);
        free(sched->victims);
        free(sched->victim_refs);
        free(sched->waiting.at);
        free(sched->running.at);
        free(sched->stalled.at);
        free(sched->endings);
        free(sched->flights);
        free(sched->parts);
        free(sched->sources);
        free(sched->channels);
        free(sched->check_counts.ref_counts);
        free(sched->check_counts.window_refs);
        free(sched->check_counts.pending_bytes);
        free(sched->check_counts.plans);
        free(sched->check_counts.wanted);
        free(sched->check_counts.scores);
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
                request_list_remove(&sched->waiting, request);
                if (!sched_is_unready(request))
                        fair_share_cancel_waiting(&sched->fair_share, request->uid);
        } else {
                struct slot *slot = sched_slot(sched, request);

                request_list_remove(&sched->running, request);
                sched->channels[request->channel_number].pending_bytes -=
                        (slot->wanted + slot->drafted) * (uint64_t)request->record_bytes_max +
                        slot->scores * (uint64_t)request->score_bytes_max;
                slot->wanted = slot->drafted = slot->scores = 0;
        }
        if (request->held)
                sched->channels[request->channel_number].pending_bytes -= sched_held_bytes(request);
        if (request->stalled)
                request_list_remove(&sched->stalled, request);
        request->stalled = false;
        sched->unready -= sched_is_unready(request);
        request->held = false;
        request->ready = true;

        request_tell_wait(request, REQUEST_WAITS_FOR_NOTHING);
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

        assert(!request->publish || (request->pin && !request->max_tokens));
        assert(request->asked_bytes_max <= request->record_bytes_max);
        request->channel_number = channel;
        request->arrival = sched->arrivals++;
        request->since_ns = sched->now_ns;
        request->skipped_in_pass = 0;
        request->preemptions = request->blocks_lost = request->promised = request->computed = 0;
        request->recomputed = request->restored = request->scored = request->unanswered = 0;
        request->held_back = request->lacks_block = request->reserves = false;
        request->stalled = request->pinned = request->ready = request->held = false;
        request->asked_ns = sched->now_ns;
        sched->unready += request->awaits;
        request->sequence.slot = SEQUENCE_NO_SLOT;
        request->sequence.cached_count = request->sequence.diverged_at = 0;
        if (request->deadline_ns &&
            (!sched->deadline_ns || request->deadline_ns < sched->deadline_ns))
                sched->deadline_ns = request->deadline_ns;
        request_tell_wait(request, REQUEST_WAITS_FOR_TURN);
        request_tell_pauses(request);
        request_list_add(&sched->waiting, request);
        fair_share_add_request(&sched->fair_share, request->uid);
        if (!request->awaits)
                fair_share_add_waiting(&sched->fair_share, request->uid);
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
 * Finds the part that this result belongs to.  Results may be missing only for requests that are
 * ending: for all others every token counts, up to the first difference of a draft.
 */
static struct part *part_of_result(struct flight *flight, uint32_t row)
{
        for (;; flight->next_part++) {
                struct part *part = &flight->parts[flight->next_part];

                /* Otherwise no result of this row is due. */
                assert(flight->next_part < flight->part_count);
                if (part->wanted_row != PART_NO_ROW &&
                    row - part->wanted_row - part->taken <= part->drafted - part->taken &&
                    row >= part->wanted_row + part->taken)
                        return part;
                assert(part->wanted_row == PART_NO_ROW || part->request->state == REQUEST_ENDING);
        }
}

/* The rest of a run means nothing: no results of it come. */
static void drop_rest(struct sched *sched, struct slot *slot)
{
        const struct request *request = slot->request;

        sched->channels[request->channel_number].pending_bytes -=
                slot->drafted * (uint64_t)request->record_bytes_max;
        slot->drafted = 0;
}

/*
 * The result is due: its bytes are free, unless its token comes later.  Of a run, the first result
 * is of the row that every decode has.  Each further one confirms a token of the draft, whose
 * position counts from now on.
 */
static void count_result(struct sched *sched, struct slot *slot, const struct part *part,
                         enum sched_verdict verdict)
{
        const struct request *request = slot->request;

        assert(part->taken ? slot->drafted > 0 : slot->wanted > 0);
        if (part->taken) {
                slot->drafted--;
                slot->planned++;
        } else {
                slot->wanted--;
        }
        if (verdict != SCHED_LATER)
                sched->channels[request->channel_number].pending_bytes -= request->record_bytes_max;
}

/* Does this result end a run, or was it the only one of its part? */
static bool is_last_result(const struct slot *slot, const struct part *part, uint32_t token,
                           enum sched_verdict verdict)
{
        return part->taken == part->drafted || verdict != SCHED_CONTINUE ||
               token != slot->draft[part->taken];
}

/* Its length says something about other answers. */
static void end_by_itself(struct sched *sched, struct request *request, enum smv_reason reason)
{
        forecast_learn(&sched->forecast, request->uid, request->priority,
                       request->sequence.token_count - request->prompt_count);
        sched_end(sched, request, reason, SMV_OK);
}

/*
 * Its next row awaits masks or a token from now on.  In the queue it does not wait for others then,
 * so they need not keep a share for its user.
 */
static void begin_awaiting(struct sched *sched, struct request *request)
{
        sched->unready++;
        request->asked_ns = sched->now_ns;
        if (request->state == REQUEST_WAITING)
                fair_share_cancel_waiting(&sched->fair_share, request->uid);
}

static void end_awaiting(struct sched *sched, struct request *request)
{
        sched->unready--;
        request->asked_ns = sched->now_ns;
        if (request->state == REQUEST_WAITING)
                fair_share_add_waiting(&sched->fair_share, request->uid);
}

static void on_ready(struct sched *sched, struct request *request)
{
        assert(request->awaits);
        if (request->state == REQUEST_ENDING || request->state == REQUEST_RETIRED)
                return;
        assert(!request->ready);
        request->ready = true;
        end_awaiting(sched, request);
}

/* The numbers of a request are not valid: its blocks must not be found. */
static void on_invalid(struct sched *sched, struct request *request)
{
        sched_invalidate(sched, sched_slot(sched, request));
        if (request->state != REQUEST_ENDING)
                sched_end(sched, request, SMV_END_ERROR, SMV_NUMERIC);
}

/* The token of its last masks is known. */
static void await_masks(struct sched *sched, struct request *request)
{
        assert(request->ready);
        request->ready = false;
        begin_awaiting(sched, request);
}

/*
 * A result that was due has come, and its bytes were given back.  The slot may be gone if the
 * request was held.
 */
static void take_result(struct sched *sched, struct request *request, uint32_t token,
                        enum sched_verdict verdict)
{
        struct sequence *sequence = &request->sequence;
        uint32_t most = request->prompt_count + request->max_tokens;

        if (verdict == SCHED_NUMERIC) {
                on_invalid(sched, request);
                return;
        }
        if (verdict == SCHED_STUCK) {
                sched_end(sched, request, SMV_END_ERROR, SMV_NO_TOKEN);
                return;
        }

        if (!request->max_tokens) {
                if (request->pin)
                        sched_pin(sched, sched_slot(sched, request));
                if (request->publish && !request->pinned)
                        sched_end(sched, request, SMV_END_ERROR, SMV_BUSY);
                else
                        sched_end(sched, request, SMV_END_LENGTH, SMV_OK);
                return;
        }

        assert(sequence->token_count < most);
        sequence->tokens[sequence->token_count++] = token;
        if (verdict == SCHED_EOS)
                end_by_itself(sched, request, SMV_END_EOS);
        else if (verdict == SCHED_STOP)
                end_by_itself(sched, request, SMV_END_STOP);
        else if (sequence->token_count == most)
                end_by_itself(sched, request, SMV_END_LENGTH);
        else if (request->awaits)
                await_masks(sched, request);
}

/* The row has run; the bytes for what is written with its token stay reserved. */
static void hold(struct sched *sched, struct request *request)
{
        assert(request->alone && request->max_tokens && !request->held);
        sched->channels[request->channel_number].pending_bytes -= request->asked_bytes_max;
        request->held = true;
        begin_awaiting(sched, request);
}

static void on_result(struct sched *sched, const struct sched_event *event)
{
        struct flight *flight = sched_flight(sched, event->plan);
        struct request *request;
        struct part *part;
        struct slot *slot;

        assert(event->plan == sched->plans_done + 1); /* of the oldest plan in flight */
        assert(event->row < sched->conf.rows);
        part = part_of_result(flight, event->row);
        request = part->request;
        if (request->state == REQUEST_ENDING) {
                part->taken = event->row - part->wanted_row;
                flight->next_part += part->taken++ == part->drafted;
                /* Otherwise the blocks that it inserted would stay in the index. */
                if (event->verdict == SCHED_NUMERIC)
                        on_invalid(sched, request);
                return;
        }

        assert(request->state == REQUEST_DECODE || request->state == REQUEST_PREEMPTING);
        assert(event->row == part->wanted_row + part->taken);
        slot = sched_slot(sched, request);
        count_result(sched, slot, part, event->verdict);
        if (is_last_result(slot, part, event->token, event->verdict)) {
                drop_rest(sched, slot);
                flight->next_part++;
        }
        part->taken++;
        if (event->verdict == SCHED_LATER)
                hold(sched, request);
        else
                take_result(sched, request, event->token, event->verdict);
}

/* No effect on a request that is preempted meanwhile, or whose last token is not known. */
static void on_draft(struct sched *sched, const struct sched_event *event)
{
        struct request *request = event->request;
        struct slot *slot;

        assert(event->draft_count <= SCHED_DRAFT_MAX);
        if (request->state != REQUEST_DECODE)
                return;
        slot = sched_slot(sched, request);
        assert(!slot->wanted && !slot->drafted && !request->held);
        slot->draft_count = event->draft_count;
        memcpy(slot->draft, event->tokens, event->draft_count * sizeof(*slot->draft));
}

static void on_token(struct sched *sched, const struct sched_event *event)
{
        struct request *request = event->request;

        if (request->state == REQUEST_ENDING || request->state == REQUEST_RETIRED)
                return;
        assert(request->held && !sched_has_no_token(event->verdict));
        request->held = false;
        sched->channels[request->channel_number].pending_bytes -= sched_held_bytes(request);
        end_awaiting(sched, request);
        take_result(sched, request, event->token, event->verdict);
}

/* The records of its scores are written. */
static void free_scores(struct sched *sched, const struct part *part)
{
        const struct request *request = part->request;

        if (request->state == REQUEST_ENDING)
                return;
        sched_slot(sched, request)->scores -= part->scores;
        sched->channels[request->channel_number].pending_bytes -=
                part->scores * (uint64_t)request->score_bytes_max;
}

static void on_done(struct sched *sched, uint64_t number)
{
        struct flight *flight = sched_flight(sched, number);
        uint64_t begun_ns = flight->begun_ns, ns, moves_ns;

        assert(number == sched->plans_done + 1);
        if (begun_ns < sched->done_ns)
                begun_ns = sched->done_ns; /* it could begin only after the plan before it */
        ns = sched->now_ns - begun_ns;
        if (ns > PREFILL_STEP_NS_MAX)
                ns = PREFILL_STEP_NS_MAX;
        sched_charge(sched, flight, ns);
        moves_ns = flight->move_count * sched->conf.swap_copy_ns;
        prefill_budget_learn(&sched->prefill_budget, &flight->step,
                             ns > moves_ns ? ns - moves_ns : 0);
        sched->done_ns = sched->now_ns;
        for (uint32_t i = 0; i < flight->part_count; i++) {
                const struct part *part = &flight->parts[i];
                struct slot *slot = sched_slot(sched, part->request);

                assert(i < flight->next_part || part->wanted_row == PART_NO_ROW ||
                       part->request->state == REQUEST_ENDING);
                assert(slot->plans > 0);
                slot->plans--;
                free_scores(sched, part);
        }
        while (flight->source_count)
                sched_unref_source(sched, flight->sources[--flight->source_count]);
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
        case SCHED_SPACE:
                assert(event->channel < sched->conf.channels);
                sched->channels[event->channel].free_bytes = event->free_bytes;
                return;
        case SCHED_RESULT:
                on_result(sched, event);
                return;
        case SCHED_DRAFT:
                on_draft(sched, event);
                return;
        case SCHED_READY:
                on_ready(sched, event->request);
                return;
        case SCHED_TOKEN:
                on_token(sched, event);
                return;
        case SCHED_INVALID:
                on_invalid(sched, event->request);
                return;
        case SCHED_DONE:
                on_done(sched, event->plan);
                return;
        case SCHED_UNPIN:
                prefix_set_pin(&sched->prefix, event->pin, BLOCK_NONE);
                return;
        case SCHED_PAUSE:
                assert(!sched->plans_made);
                sched->paused = true;
                return;
        case SCHED_RESUME:
                sched->paused = false;
                return;
        }
        assert(!"an event of no kind");
}

uint64_t sched_pending_bytes(const struct sched *sched, uint32_t channel)
{
        assert(channel < sched->conf.channels);
        return sched->channels[channel].pending_bytes;
}

/* Does any request begin by the forecast? */
static bool learns(const struct sched *sched)
{
        bool learned = false;

        for (uint32_t i = 0; i < REQUEST_PRIORITY_N; i++)
                learned |= sched->conf.learned[i] || sched->conf.reserve_max;
        return learned && !sched->conf.batch_size;
}

void sched_count(const struct sched *sched, struct sched_counts *ret_counts)
{
        assert(prefix_available(&sched->prefix) >= sched->reserved);

        *ret_counts = (struct sched_counts){
                .blocks_total = sched->prefix.pool.total,
                .blocks_free = sched->prefix.pool.free.count,
                .blocks_cached = sched->prefix.pool.cached_count,
                .blocks_in_use = kvpool_in_use(&sched->prefix.pool),
                .blocks_shared = sched->prefix.pool.shared_count,
                .blocks_reserved = sched->reserved,
                .evictions = sched->prefix.evictions,
                .copies = sched->copies,
                .waiting = sched->waiting.count,
                .running = sched->running.count,
                .stalled = sched->stalled.count,
                .ending = sched->ending_count,
                .passed_over = sched->passed_over,
                .stalls = sched->stalls,
                .preemptions = sched->preemptions,
                .blocks_lost = sched->blocks_lost,
                .recomputed = sched->recomputed,
                .restored = sched->restored,
                .windows_total = sched->prefix.window_free.max,
                .windows_free = sched->prefix.window_free.count,
                .windows_cached = prefix_windows_cached(&sched->prefix),
                .window_evictions = sched->prefix.window_evictions,
                .swap_total = sched->conf.prefix.swap_blocks,
                .swap_used = sched->conf.prefix.swap_blocks - sched->prefix.swap_free.count,
                .swapped_out = sched->prefix.swapped_out,
                .swapped_in = sched->prefix.swapped_in,
                .trust = learns(sched) ? UINT64_C(100) * sched->forecast.trust / FORECAST_ONE : 0,
                .prompt_row_ns = sched->prefill_budget.row_ns,
                .prompt_far_ns = sched->prefill_budget.far_ns,
                .plans_in_flight = sched_in_flight(sched),
                .submitted = sched->arrivals,
        };
        for (uint32_t i = 0; i < sched->waiting.count; i++)
                ret_counts->waits[request_waits_for(sched->waiting.at[i])]++;
}
