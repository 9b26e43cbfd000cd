#include "daemon/edge/resumable.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/free-numbers.h"
#include "daemon/edge/channels.h"
#include "daemon/edge/connection.h"
#include "daemon/edge/principals.h"
#include "daemon/edge/quota.h"
#include "base/error.h"
#include "base/log.h"
#include "base/sys.h"
#include "daemon/text/parts/dialect.h"
#include "daemon/text/tokenizer.h"

#define NS_PER_MS UINT64_C(1000000)
#define RING_MAX  (UINT64_C(64) << 20)

/* Records are charged in steps of this size, so that not each of them changes an account. */
#define CHARGE_STEP UINT64_C(4096)

struct resumables {
        struct edge *edge;
        /* How many streams there are, and the bytes charged for them. */
        uint64_t open, bytes;
        struct channel *channel;  /* all of them write there; NULL while there is none */
        struct resumable **slots; /* NULL: the slot is free */
        uint32_t slot_count;
        struct free_numbers numbers; /* of slots */
        bool closing;
        uint32_t memory[]; /* of `numbers` */
};

int resumables_new(struct edge *edge, struct resumables **ret_all)
{
        uint32_t count = edge->conf.config->resumable;
        struct resumables *all = calloc(1, sizeof(*all) + count * sizeof(uint32_t));

        if (!all)
                return error_raise(-ENOMEM);
        all->edge = edge;
        all->slot_count = count;
        free_numbers_init(&all->numbers, all->memory, 0, count);
        all->slots = calloc(count + 1, sizeof(struct resumable *));
        if (!all->slots) {
                resumables_free(all);
                return error_raise(-ENOMEM);
        }
        *ret_all = all;
        return 0;
}

struct resumables *resumables_free(struct resumables *all)
{
        if (!all)
                return NULL;
        assert(!all->open && !all->bytes && !all->channel);
        free(all->slots);
        free(all);
        return NULL;
}

struct resumables_sum resumables_sum(const struct resumables *all)
{
        struct resumables_sum sum = { .open = all->open, .bytes = all->bytes };

        for (uint32_t i = 0; i < all->slot_count; i++) {
                sum.attached += all->slots[i] && all->slots[i]->peer;
                sum.ended += all->slots[i] && all->slots[i]->ended;
        }
        return sum;
}

static struct resumable *find_any(const struct resumables *all, uint64_t number)
{
        for (uint32_t i = 0; i < all->slot_count; i++)
                if (all->slots[i] && all->slots[i]->number == number)
                        return all->slots[i];
        return NULL;
}

static int choose_number(const struct resumables *all, uint64_t *ret_number)
{
        int r;

        do
                r = sys_random_number(ret_number);
        while (!r && find_any(all, *ret_number));
        return r ? error_raise(r) : 0;
}

struct resumable *resumables_find(const struct resumables *all, uint64_t uid, uint64_t number)
{
        struct resumable *resumable = find_any(all, number);

        return resumable && resumable->uid == uid && !resumable->dropped ? resumable : NULL;
}

struct resumable *resumables_next(const struct resumables *all, uint32_t *index)
{
        while (*index < all->slot_count) {
                struct resumable *resumable = all->slots[(*index)++];

                if (resumable)
                        return resumable;
        }
        return NULL;
}

/* ---- what is charged ---- */

/* The memory that the stream has used so far. */
static uint64_t bytes_used(const struct resumable *resumable)
{
        return record_log_used(&resumable->log) + sizeof(*resumable);
}

/* The stream itself, and its first records. */
static int charge(struct resumable *resumable, uint32_t id, struct wire_problem *ret_problem)
{
        struct quota *quota = resumable->all->edge->quota;
        uint64_t bytes = sizeof(*resumable) + CHARGE_STEP;
        int r;

        r = quota_ask(quota, resumable->uid, QUOTA_RESUMABLE, 1, id, ret_problem);
        if (r)
                return error_pass(r);
        r = quota_ask(quota, resumable->uid, QUOTA_RESUMABLE_BYTES, bytes, id, ret_problem);
        if (r)
                quota_uncharge(quota, resumable->uid, QUOTA_RESUMABLE, 1);
        else
                resumable->charged = bytes;
        return error_pass(r);
}

static void uncharge(struct resumable *resumable)
{
        struct quota *quota = resumable->all->edge->quota;

        quota_uncharge(quota, resumable->uid, QUOTA_RESUMABLE_BYTES, resumable->charged);
        quota_uncharge(quota, resumable->uid, QUOTA_RESUMABLE, 1);
}

/*
 * The log has grown.  If its user may have no more, the stream ends.  Until its END comes, the
 * engine may write a few more records; they are stored, and charged without asking.
 */
static void charge_more(struct resumable *resumable)
{
        struct resumables *all = resumable->all;
        uint64_t used = bytes_used(resumable), more;

        if (used <= resumable->charged)
                return;
        more = used - resumable->charged;
        more = more > CHARGE_STEP ? more : CHARGE_STEP;
        if (quota_charge(all->edge->quota, resumable->uid, QUOTA_RESUMABLE_BYTES, more)) {
                quota_recharge(all->edge->quota, resumable->uid, QUOTA_RESUMABLE_BYTES, more);
                if (resumable->stream)
                        stream_cancel(all->edge, resumable->stream, SMV_END_ERROR, SMV_QUOTA);
        }
        resumable->charged += more;
        all->bytes += more;
}

/* The stream has ended: charges exactly what it has become. */
static void charge_exactly(struct resumable *resumable, uint64_t bytes)
{
        struct quota *quota = resumable->all->edge->quota;

        quota_uncharge(quota, resumable->uid, QUOTA_RESUMABLE_BYTES, resumable->charged);
        quota_recharge(quota, resumable->uid, QUOTA_RESUMABLE_BYTES, bytes);
        resumable->all->bytes += bytes - resumable->charged;
        resumable->charged = bytes;
}

/* ---- the ring of all resumable streams ---- */

/*
 * Enough for the records that all slots make in some steps, because the loop empties the ring
 * between them.  Half of a ring may be reserved for ENDs.
 */
static uint64_t ring_bytes(const struct edge *edge)
{
        const struct admission_conf *conf = &edge->conf.admission;
        uint32_t piece_max = tokenizer_piece_max(edge->conf.served->tokenizer);
        uint64_t wanted =
                conf->record_bytes_max(piece_max, SMV_STOP_BYTES_MAX, 1 + SMV_LOGPROBS_MAX);
        const struct dialect *dialect = edge->conf.served->dialect;
        uint64_t bytes = edge->conf.config->ring_bytes, parts = 0;
        size_t held;

        if (dialect)
                parts = conf->parts_bytes_max(dialect, SMV_STOP_BYTES_MAX, &held);
        /* Parts are seldom as long as they may be: space for one step of those is enough. */
        wanted = (4 * wanted + parts) * edge->conf.config->max_seqs * conf->sched.depth;
        while (bytes < wanted && bytes < RING_MAX)
                bytes *= 2;
        return bytes;
}

static int need_channel(struct resumables *all, uint32_t id, struct wire_problem *ret_problem)
{
        if (all->channel)
                return 0;
        return error_pass(channels_make(all->edge, CHANNEL_LOOP, ring_bytes(all->edge), id,
                                        ret_problem, &all->channel));
}

/*
 * Called when the last stream is forgotten.  Its END was read, so no request writes there any more.
 */
static void let_channel_go(struct resumables *all)
{
        if (all->open || !all->channel)
                return;
        mailbox_post(all->edge->conf.to_engine,
                     &(struct mail){ .kind = MAIL_HANGUP, .what = all->channel });
        all->channel = NULL;
}

/* ---- life ---- */

static void release(struct resumable *resumable)
{
        loop_timer_free(resumable->timer);
        record_log_deinit(&resumable->log);
        free(resumable);
}

static void forget(struct resumable *resumable)
{
        struct resumables *all = resumable->all;

        assert(!resumable->peer && !resumable->stream);
        all->slots[resumable->slot] = NULL;
        free_numbers_give_back(&all->numbers, resumable->slot);
        all->open--;
        all->bytes -= resumable->charged;
        uncharge(resumable);
        release(resumable);
        let_channel_go(all);
}

static void forget_if_over(struct resumable *resumable)
{
        if (resumable->ended && resumable->dropped && !resumable->peer && !resumable->stream)
                forget(resumable);
}

void resumable_cancel(struct resumable *resumable)
{
        if (resumable->stream)
                stream_cancel(resumable->all->edge, resumable->stream, SMV_END_CANCELLED, SMV_OK);
}

void resumable_drop(struct resumable *resumable)
{
        resumable->dropped = true;
        loop_timer_clear(resumable->timer);
        resumable_cancel(resumable);
        forget_if_over(resumable);
}

static void on_timer(void *arg)
{
        struct resumable *resumable = arg;
        struct user_shown user;

        (void)principals_show(resumable->all->edge->principals, resumable->uid, &user);
        log_limited(LOG_DEBUG, "resumable_expired uid=%u principal=%s keep_ms=%u", user.uid,
                    user.principal, resumable->keep_ms);
        resumable_drop(resumable);
}

void resumable_leave_alone(struct resumable *resumable)
{
        if (resumable->dropped)
                forget_if_over(resumable);
        else if (resumable->all->closing ||
                 loop_timer_set(resumable->timer, resumable->keep_ms * NS_PER_MS))
                resumable_drop(resumable);
}

/* The tokens of its prompt that have a record. */
static size_t scores_of(const struct request *request)
{
        return request->prompt_logprobs ? request->prompt_count - 1 : 0;
}

/*
 * A record for each token, and one before it for its logprobs, and for its row; those of the
 * prompt; a last text, and the END.  With parts there are more, each with at least 8 bytes behind
 * its head.
 */
static size_t records_max(const struct request *request, size_t room)
{
        if (request->parts)
                return room / (sizeof(struct smv_record) + 8);
        return (size_t)request->max_tokens * (1 + (request->sampling.logprobs > 0) +
                                              (request->sampling.row_entries > 0)) +
               scores_of(request) + 2;
}

/* The bytes of records that the request may make. */
static int measure(const struct request *request, size_t *ret_room)
{
        size_t room, scores;

        /* Text that is held back comes once, and the bytes of the END have space for it. */
        if (__builtin_mul_overflow(request->record_bytes_max - request->held_bytes_max,
                                   request->max_tokens, &room) ||
            __builtin_add_overflow(room, request->end_bytes_max, &room) ||
            __builtin_mul_overflow(request->score_bytes_max, scores_of(request), &scores) ||
            __builtin_add_overflow(room, scores, &room))
                return error_raise(-EOVERFLOW);
        *ret_room = room;
        return 0;
}

static int make(struct resumables *all, const struct stream *stream, size_t room,
                struct resumable **ret_resumable)
{
        struct resumable *resumable = calloc(1, sizeof(*resumable));
        const struct request *request = &stream->request;
        int r;

        if (!resumable)
                return error_raise(-ENOMEM);
        resumable->all = all;
        resumable->uid = request->uid;
        resumable->prompt_tokens = request->prompt_count;
        resumable->max_tokens = request->max_tokens;
        resumable->keep_ms = stream->keep_ms;
        resumable->priority = request->priority;
        resumable->begun_ns = sys_clock_ns();
        r = choose_number(all, &resumable->number);
        if (!r)
                r = record_log_init(&resumable->log, room, records_max(request, room));
        if (!r)
                r = loop_timer_new(all->edge->loop, on_timer, resumable, &resumable->timer);
        if (r) {
                release(resumable);
                return error_pass(r);
        }
        *ret_resumable = resumable;
        return 0;
}

/* Charges the stream and gives it a slot. */
static int enter(struct resumable *resumable, uint32_t id, struct wire_problem *ret_problem)
{
        struct resumables *all = resumable->all;
        int r;

        r = charge(resumable, id, ret_problem);
        if (r)
                return error_pass(r);
        r = need_channel(all, id, ret_problem);
        if (r) {
                uncharge(resumable);
                return error_pass(r);
        }
        resumable->slot = free_numbers_take(&all->numbers);
        all->slots[resumable->slot] = resumable;
        all->open++;
        all->bytes += resumable->charged;
        return 0;
}

int resumable_begin(struct peer *peer, struct stream *stream, struct resumable **ret_resumable,
                    struct wire_problem *ret_problem)
{
        struct resumables *all = peer->edge->resumables;
        struct resumable *resumable = NULL;
        uint32_t id = stream->request.stream;
        size_t room = 0;
        int r;

        if (!all->numbers.count)
                return wire_refuse(ret_problem, SMV_BUSY, id, "keep_ms",
                                   "the daemon keeps %u resumable streams, which is the limit of "
                                   "the setting resumable",
                                   all->slot_count);
        r = measure(&stream->request, &room);
        if (!r)
                r = make(all, stream, room, &resumable);
        if (r)
                return error_pass(r);
        r = enter(resumable, id, ret_problem);
        if (r) {
                release(resumable);
                return error_pass(r);
        }
        resumable->stream = stream;
        stream->is_resumable = true;
        stream->peer = NULL;
        stream->request.stream = resumable->slot;
        stream->request.channel = all->channel;
        resumable_attach(resumable, peer, id, 0);
        *ret_resumable = resumable;
        return 0;
}

void resumable_take_back(struct resumable *resumable)
{
        resumable->stream->is_resumable = false;
        resumable->stream = NULL;
        resumable->ended = resumable->dropped = true;
        resumable_detach(resumable);
}

void resumables_retired(struct resumables *all, const struct stream *stream)
{
        struct resumable *resumable = all->slots[stream->request.stream];

        assert(resumable->stream == stream);
        resumable->tokens_made = request_tokens_made(&stream->request);
        resumable->pauses = request_pauses(&stream->request);
        resumable->found = request_fact(&stream->request, REQUEST_FOUND);
        resumable->stream = NULL;
        forget_if_over(resumable);
}

void resumables_end_all(struct resumables *all, enum smv_reason reason, enum smv_code code)
{
        for (uint32_t i = 0; i < all->slot_count; i++) {
                struct resumable *resumable = all->slots[i];

                if (resumable && resumable->stream)
                        stream_cancel(all->edge, resumable->stream, reason, code);
        }
}

void resumables_close(struct resumables *all)
{
        all->closing = true;
        for (uint32_t i = 0; i < all->slot_count; i++)
                if (all->slots[i])
                        resumable_drop(all->slots[i]);
}

/* ---- records that come in ---- */

/* RETIRED was posted before the END became visible, but we may not have taken it yet. */
static void on_end(struct resumable *resumable)
{
        assert(!resumable->ended);
        resumable->ended = true;
        record_log_seal(&resumable->log);
        charge_exactly(resumable, bytes_used(resumable));
        forget_if_over(resumable);
}

/* A reader that is settled takes the new records of all its streams. */
static void take_record(struct resumables *all, const struct smv_record *record)
{
        struct resumable *resumable;

        assert(record->stream < all->slot_count && all->slots[record->stream]);
        resumable = all->slots[record->stream];
        record_log_add(&resumable->log, record);
        charge_more(resumable);
        if (resumable->peer)
                connection_mark(resumable->peer);
        if (record->type == SMV_RECORD_END)
                on_end(resumable);
}

bool resumables_hear(struct resumables *all, const struct channel *channel)
{
        struct channel *ours = all->channel;
        const struct smv_record *record;
        int r;

        if (!ours || channel != ours)
                return false;
        while (!(r = ring_next(&ours->reader, &record)))
                take_record(all, record);
        assert(r == RING_E_EMPTY); /* only the engine writes there, so the ring is sound */
        /* If the last stream was forgotten, HANGUP is posted: nothing may follow it. */
        if (ring_release(&ours->reader) && all->channel == ours)
                channels_resume(all->edge, ours);
        return true;
}
