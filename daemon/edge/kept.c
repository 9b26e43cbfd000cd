/* The readers of kept streams: one peer at a time, each from the record it asked for. */
#include <errno.h>

#include "daemon/edge/keeper.h"
#include "daemon/edge/streams.h"
#include "daemon/error.h"

#define FRAME_RECORDS (32u << 10) /* bytes of records in one frame, about */

struct kept *kept_find(const struct peer *peer, uint32_t stream)
{
        struct kept *kept = peer->kept;

        if (!kept)
                return NULL;
        do {
                if (kept->stream == stream)
                        return kept;
                kept = kept->peer_next;
        } while (kept != peer->kept);
        return NULL;
}

static void unlink_peer(struct kept *kept)
{
        struct peer *peer = kept->peer;

        kept->peer_next->peer_prev = kept->peer_prev;
        kept->peer_prev->peer_next = kept->peer_next;
        if (peer->kept == kept)
                peer->kept = kept->peer_next == kept ? NULL : kept->peer_next;
        kept->peer = NULL;
}

/* Adds the stream as the last one of the peer's circular list. */
static void link_peer(struct kept *kept, struct peer *peer)
{
        struct kept *first = peer->kept ? peer->kept : kept;

        kept->peer_next = kept->peer_prev = kept;
        if (first != kept) {
                kept->peer_next = first;
                kept->peer_prev = first->peer_prev;
                first->peer_prev->peer_next = kept;
                first->peer_prev = kept;
        }
        peer->kept = first;
        kept->peer = peer;
}

/* Tells the reader that the stream is read elsewhere, and nothing about the stream itself. */
static void say_moved(struct kept *kept)
{
        const struct {
                struct smv_record head;
                struct smv_record_end end;
        } moved = { .head = { .size = sizeof(moved),
                              .stream = kept->stream,
                              .type = SMV_RECORD_END,
                              .head_bytes = sizeof(moved.head),
                              .sequence = kept->sequence },
                    .end = { .reason = SMV_END_ERROR, .code = SMV_MOVED } };
        struct peer *loser = kept->peer;

        if (loser->state == PEER_OPEN && peer_may_reply(loser))
                streams_put(loser, &moved, sizeof(moved));
        /* It sends that; or frees the peer, if it does not read at all. */
        peer_call(loser);
}

void kept_attach(struct kept *kept, struct peer *peer, uint32_t stream, uint32_t from)
{
        if (kept->peer) {
                say_moved(kept);
                unlink_peer(kept);
        }
        loop_timer_clear(kept->timer);
        kept->stream = stream;
        kept->sequence = from;
        kept->at = reel_find(&kept->reel, from);
        link_peer(kept, peer);
}

void kept_detach(struct kept *kept)
{
        unlink_peer(kept);
        keeper_leave_alone(kept);
}

/* 0 or -ENOMEM. */
static int copy_records(struct kept *kept, struct buffer *to)
{
        const struct reel *reel = &kept->reel;

        while (kept->at < reel->used && buffer_count(to) < FRAME_RECORDS) {
                const struct smv_record *record = reel_at(reel, kept->at);
                size_t step = reel_step(record);
                struct smv_record *copy;
                int r;

                r = buffer_append(to, record, step);
                if (r)
                        return error_pass(r);
                copy = (struct smv_record *)(void *)(to->bytes + to->end - step);
                copy->stream = kept->stream;
                kept->at += step;
                kept->sequence++;
        }
        return 0;
}

/*
 * Serves each stream once, and begins with the next one next time: a long reel does not delay
 * others.
 */
static int copy_all(struct peer *peer, struct buffer *to)
{
        const struct kept *last = peer->kept->peer_prev;
        bool more = true;
        int r = 0;

        while (!r && more && buffer_count(to) < FRAME_RECORDS) {
                struct kept *kept = peer->kept;

                more = kept != last;
                peer->kept = kept->peer_next;
                r = copy_records(kept, to);
                if (!r && kept->ended && kept->at == kept->reel.used)
                        kept_detach(kept);
        }
        return error_pass(r);
}

bool kept_take(struct peer *peer)
{
        struct buffer records;
        bool some;

        if (!peer->kept)
                return false;
        buffer_init(&records, peer->out.max);
        if (copy_all(peer, &records))
                peer_hang_up(peer, "no memory for its records");
        some = buffer_count(&records) && !peer->doomed;
        if (some)
                streams_put(peer, records.bytes + records.start, buffer_count(&records));
        buffer_deinit(&records);
        return some;
}

void kept_leave(struct peer *peer)
{
        while (peer->kept)
                kept_detach(peer->kept);
}
