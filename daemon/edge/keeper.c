#include "daemon/edge/keeper.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/edge/streams.h"
#include "daemon/error.h"
#include "daemon/log.h"

#define NS_PER_MS UINT64_C(1000000)
#define RING_MAX  (UINT64_C(64) << 20)

struct keeper {
        struct edge *edge;
        uint64_t last; /* number that was given out */
        /* How many streams there are, and the bytes charged for them. */
        uint64_t open, bytes;
        struct channel *channel; /* all kept streams write there; NULL while there is none */
        struct kept **slots;     /* NULL: the slot is free */
        uint32_t slot_count;
        uint32_t *free_slots, free_count;
        /* Slots with new records, whose readers were not called yet. */
        uint32_t *news, news_count;
        bool *has_news;
        bool closing;
};

int keeper_new(struct edge *edge, uint64_t first, struct keeper **ret_keeper)
{
        struct keeper *keeper = calloc(1, sizeof(*keeper));
        uint32_t count = edge->conf.config->kept;

        if (!keeper)
                return error_raise(-ENOMEM);
        *keeper = (struct keeper){ .edge = edge, .last = first, .slot_count = count };
        keeper->slots = calloc(count + 1, sizeof(struct kept *));
        keeper->free_slots = calloc(count + 1, sizeof(*keeper->free_slots));
        keeper->news = calloc(count + 1, sizeof(*keeper->news));
        keeper->has_news = calloc(count + 1, sizeof(*keeper->has_news));
        if (!keeper->slots || !keeper->free_slots || !keeper->news || !keeper->has_news) {
                keeper_free(keeper);
                return error_raise(-ENOMEM);
        }
        while (keeper->free_count < count) {
                keeper->free_slots[keeper->free_count] = count - 1 - keeper->free_count;
                keeper->free_count++;
        }
        *ret_keeper = keeper;
        return 0;
}

struct keeper *keeper_free(struct keeper *keeper)
{
        if (!keeper)
                return NULL;
        assert(!keeper->open && !keeper->bytes && !keeper->channel);
        free(keeper->slots);
        free(keeper->free_slots);
        free(keeper->news);
        free(keeper->has_news);
        free(keeper);
        return NULL;
}

struct keeper_sum keeper_sum(const struct keeper *keeper)
{
        struct keeper_sum sum = { .open = keeper->open, .bytes = keeper->bytes };

        for (uint32_t i = 0; i < keeper->slot_count; i++) {
                sum.attached += keeper->slots[i] && keeper->slots[i]->peer;
                sum.ended += keeper->slots[i] && keeper->slots[i]->ended;
        }
        return sum;
}

struct kept *keeper_find(const struct keeper *keeper, uint32_t uid, uint64_t number)
{
        for (uint32_t i = 0; i < keeper->slot_count; i++) {
                struct kept *kept = keeper->slots[i];

                if (kept && kept->number == number && kept->uid == uid && !kept->dropped)
                        return kept;
        }
        return NULL;
}

/* ---- what is charged ---- */

static int charge(struct kept *kept, uint64_t bytes, uint32_t id, struct wire_problem *ret_problem)
{
        struct quota *quota = kept->keeper->edge->quota;
        int r;

        r = admit_charge(quota, kept->uid, QUOTA_KEPT, 1, id, ret_problem);
        if (r)
                return error_pass(r);
        r = admit_charge(quota, kept->uid, QUOTA_KEPT_BYTES, bytes, id, ret_problem);
        if (r)
                quota_uncharge(quota, kept->uid, QUOTA_KEPT, 1);
        else
                kept->charged = bytes;
        return error_pass(r);
}

static void uncharge(struct kept *kept)
{
        struct quota *quota = kept->keeper->edge->quota;

        quota_uncharge(quota, kept->uid, QUOTA_KEPT_BYTES, kept->charged);
        quota_uncharge(quota, kept->uid, QUOTA_KEPT, 1);
}

/* The stream has ended: charges what it has become, which is less than what it might have been. */
static void charge_less(struct kept *kept, uint64_t bytes)
{
        uint64_t less = kept->charged - bytes;

        assert(bytes <= kept->charged);
        quota_uncharge(kept->keeper->edge->quota, kept->uid, QUOTA_KEPT_BYTES, less);
        kept->keeper->bytes -= less;
        kept->charged = bytes;
}

/* ---- the ring of all kept streams ---- */

/*
 * Enough for the records that all slots make in some steps, because the loop empties the ring
 * between them.  Half of a ring may be reserved for ENDs.
 */
static uint64_t ring_bytes(const struct edge *edge)
{
        const struct admit_conf *admit = &edge->conf.admit;
        uint32_t piece_max = tokenizer_piece_max(edge->conf.served->tokenizer);
        uint64_t wanted =
                admit->record_bytes_max(piece_max, SMV_STOP_BYTES_MAX, 1 + SMV_LOGPROBS_MAX);
        uint64_t bytes = edge->conf.config->ring_bytes;

        wanted *= UINT64_C(4) * edge->conf.config->max_seqs * admit->sched.depth;
        while (bytes < wanted && bytes < RING_MAX)
                bytes *= 2;
        return bytes;
}

static int need_channel(struct keeper *keeper, uint32_t id, struct wire_problem *ret_problem)
{
        if (keeper->channel)
                return 0;
        return error_pass(edge_new_channel(keeper->edge, CHANNEL_LOOP, ring_bytes(keeper->edge), id,
                                           ret_problem, &keeper->channel));
}

/*
 * Called when the last stream is forgotten.  Its END was read, so no request writes there any more.
 */
static void let_channel_go(struct keeper *keeper)
{
        if (keeper->open || !keeper->channel)
                return;
        mailbox_post(keeper->edge->conf.to_engine,
                     &(struct mail){ .kind = MAIL_HANGUP, .what = keeper->channel });
        keeper->channel = NULL;
}

/* ---- life ---- */

static void release(struct kept *kept)
{
        loop_timer_free(kept->timer);
        reel_deinit(&kept->reel);
        free(kept);
}

static void forget(struct kept *kept)
{
        struct keeper *keeper = kept->keeper;

        assert(!kept->peer && !kept->request);
        keeper->slots[kept->slot] = NULL;
        keeper->free_slots[keeper->free_count++] = kept->slot;
        keeper->open--;
        keeper->bytes -= kept->charged;
        uncharge(kept);
        release(kept);
        let_channel_go(keeper);
}

static void forget_if_over(struct kept *kept)
{
        if (kept->ended && kept->dropped && !kept->peer)
                forget(kept);
}

void kept_cancel(struct kept *kept)
{
        if (kept->request)
                stream_cancel(kept->keeper->edge, kept->request, SMV_END_CANCELLED, SMV_OK);
}

void keeper_drop(struct kept *kept)
{
        kept->dropped = true;
        loop_timer_clear(kept->timer);
        kept_cancel(kept);
        forget_if_over(kept);
}

static void on_timer(void *arg)
{
        struct kept *kept = arg;
        struct edge *edge = kept->keeper->edge;

        log_debug("kept_too_long uid=%u keep_ms=%u", kept->uid, kept->keep_ms);
        keeper_drop(kept);
        edge_go_on(edge);
}

void keeper_leave_alone(struct kept *kept)
{
        if (kept->dropped)
                forget_if_over(kept);
        else if (kept->keeper->closing || loop_timer_set(kept->timer, kept->keep_ms * NS_PER_MS))
                keeper_drop(kept);
}

/* A record for each token, and one before it for its logprobs; a last text, and the END. */
static size_t records_max(const struct request *request)
{
        return (size_t)request->max_tokens * (request->sampling.logprobs ? 2 : 1) + 2;
}

/*
 * *ret_room: the bytes of records that the request may make; *ret_bytes: all memory of the stream.
 */
static int measure(const struct request *request, size_t *ret_room, size_t *ret_bytes)
{
        size_t room, bytes;
        int r;

        if (__builtin_mul_overflow(request->record_bytes_max, request->max_tokens, &room) ||
            __builtin_add_overflow(room, request->end_bytes_max, &room))
                return error_raise(-EOVERFLOW);
        r = reel_bytes(room, records_max(request), &bytes);
        if (!r && __builtin_add_overflow(bytes, sizeof(struct kept), &bytes))
                r = error_raise(-EOVERFLOW);
        *ret_room = room;
        *ret_bytes = bytes;
        return error_pass(r);
}

static int make(struct keeper *keeper, const struct request *request, size_t room,
                struct kept **ret_kept)
{
        struct kept *kept = calloc(1, sizeof(*kept));
        int r;

        if (!kept)
                return error_raise(-ENOMEM);
        kept->keeper = keeper;
        kept->uid = request->uid;
        kept->prompt_tokens = request->prompt_count;
        kept->max_tokens = request->max_tokens;
        kept->keep_ms = request->keep_ms;
        r = reel_init(&kept->reel, room, records_max(request));
        if (!r)
                r = loop_timer_new(keeper->edge->loop, on_timer, kept, &kept->timer);
        if (r) {
                release(kept);
                return error_pass(r);
        }
        *ret_kept = kept;
        return 0;
}

/* Charges the stream and gives it a slot. */
static int enter(struct kept *kept, size_t bytes, uint32_t id, struct wire_problem *ret_problem)
{
        struct keeper *keeper = kept->keeper;
        int r;

        r = charge(kept, bytes, id, ret_problem);
        if (r)
                return error_pass(r);
        r = need_channel(keeper, id, ret_problem);
        if (r) {
                uncharge(kept);
                return error_pass(r);
        }
        kept->number = ++keeper->last;
        kept->slot = keeper->free_slots[--keeper->free_count];
        keeper->slots[kept->slot] = kept;
        keeper->open++;
        keeper->bytes += kept->charged;
        return 0;
}

int keeper_begin(struct peer *peer, struct request *request, struct kept **ret_kept,
                 struct wire_problem *ret_problem)
{
        struct keeper *keeper = peer->edge->keeper;
        uint32_t id = request->stream;
        struct kept *kept = NULL;
        size_t room = 0, bytes = 0;
        int r;

        if (!keeper->free_count)
                return wire_refuse(ret_problem, SMV_BUSY, id, "keep_ms",
                                   "the daemon keeps %u streams, and takes no more at once",
                                   keeper->slot_count);
        r = measure(request, &room, &bytes);
        if (!r)
                r = make(keeper, request, room, &kept);
        if (r)
                return error_pass(r);
        r = enter(kept, bytes, id, ret_problem);
        if (r) {
                release(kept);
                return error_pass(r);
        }
        kept->request = request;
        request->kept = kept;
        request->stream = kept->slot;
        request->channel = keeper->channel;
        request->peer = NULL;
        kept_attach(kept, peer, id, 0);
        *ret_kept = kept;
        return 0;
}

void keeper_take_back(struct kept *kept)
{
        keeper_retired(kept);
        kept->ended = kept->dropped = true;
        kept_detach(kept);
}

void keeper_retired(struct kept *kept)
{
        kept->request->kept = NULL;
        kept->request = NULL;
}

void keeper_end_all(struct keeper *keeper, enum smv_reason reason, enum smv_code code)
{
        for (uint32_t i = 0; i < keeper->slot_count; i++) {
                struct kept *kept = keeper->slots[i];

                if (kept && kept->request)
                        stream_cancel(keeper->edge, kept->request, reason, code);
        }
}

void keeper_close(struct keeper *keeper)
{
        keeper->closing = true;
        for (uint32_t i = 0; i < keeper->slot_count; i++)
                if (keeper->slots[i])
                        keeper_drop(keeper->slots[i]);
}

/* ---- records that come in ---- */

/* RETIRED was posted before the END became visible; we may not have taken it yet. */
static void on_end(struct kept *kept)
{
        struct keeper *keeper = kept->keeper;

        if (kept->request)
                edge_catch_up(keeper->edge);
        assert(!kept->request && !kept->ended);
        kept->ended = true;
        charge_less(kept, reel_seal(&kept->reel) + sizeof(*kept));
        forget_if_over(kept);
}

static void take_record(struct keeper *keeper, const struct smv_record *record)
{
        struct kept *kept;

        assert(record->stream < keeper->slot_count && keeper->slots[record->stream]);
        kept = keeper->slots[record->stream];
        reel_add(&kept->reel, record);
        if (kept->peer && !keeper->has_news[kept->slot]) {
                keeper->has_news[kept->slot] = true;
                keeper->news[keeper->news_count++] = kept->slot;
        }
        if (record->type == SMV_RECORD_END)
                on_end(kept);
}

/*
 * A reader that gets its turn takes the new records of all its streams.  The turn may free the
 * reader and end streams.
 */
static void call_readers(struct keeper *keeper)
{
        while (keeper->news_count) {
                uint32_t slot = keeper->news[--keeper->news_count];
                struct kept *kept = keeper->slots[slot];

                keeper->has_news[slot] = false;
                if (kept && kept->peer && kept->at < kept->reel.used)
                        peer_settle(kept->peer);
        }
}

bool keeper_hear(struct keeper *keeper, const struct channel *channel)
{
        struct channel *ours = keeper->channel;
        const struct smv_record *record;
        int r;

        if (!ours || channel != ours)
                return false;
        while (!(r = ring_next(&ours->reader, &record)))
                take_record(keeper, record);
        assert(r == RING_E_EMPTY); /* only the engine writes there, so the ring is sound */
        if (ring_release(&ours->reader))
                streams_nudge(keeper->edge, ours);
        call_readers(keeper);
        return true;
}
