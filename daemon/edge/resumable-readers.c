/* The readers of resumable streams: one peer at a time, each from the record it asked for. */
#include "daemon/edge/connection.h"
#include "daemon/edge/record-frames.h"
#include "daemon/edge/resumable.h"
#include "base/error.h"

static struct resumable *resumable_of(struct list_head *link)
{
        return LIST_ENTRY(link, struct resumable, peer_link);
}

struct resumable *resumable_attached(const struct peer *peer, uint32_t id)
{
        list_each(at, &peer->resumables)
                if (resumable_of(at)->id == id)
                        return resumable_of(at);
        return NULL;
}

static void part(struct resumable *resumable)
{
        list_remove(&resumable->peer_link);
        resumable->peer = NULL;
}

/* Tells the reader that the stream is read elsewhere, and nothing about the stream itself. */
static void say_moved(struct resumable *resumable)
{
        const struct {
                struct smv_record head;
                struct smv_record_end end;
        } moved = { .head = { .size = sizeof(moved),
                              .stream = resumable->id,
                              .type = SMV_RECORD_END,
                              .head_bytes = sizeof(moved.head),
                              .sequence = resumable->sequence },
                    .end = { .reason = SMV_END_ERROR, .code = SMV_MOVED } };
        struct peer *loser = resumable->peer;

        if (loser->state == PEER_OPEN && connection_may_reply(loser))
                record_frame_put(loser, &moved, sizeof(moved));
        /* It sends that; or it is freed, if the client does not read at all. */
        connection_mark(loser);
}

void resumable_attach(struct resumable *resumable, struct peer *peer, uint32_t id, uint32_t from)
{
        if (resumable->peer) {
                say_moved(resumable);
                part(resumable);
        }
        loop_timer_clear(resumable->timer);
        resumable->id = id;
        resumable->sequence = from;
        resumable->at = record_log_find(&resumable->log, from);
        resumable->peer = peer;
        list_push_back(&peer->resumables, &resumable->peer_link);
}

void resumable_detach(struct resumable *resumable)
{
        part(resumable);
        resumable_leave_alone(resumable);
}

/* 0 or -ENOMEM. */
static int copy_records(struct resumable *resumable, struct buffer *frame)
{
        const struct record_log *log = &resumable->log;
        bool more = false;

        while (resumable->at < log->used && (more || !record_frame_is_full(frame))) {
                const struct smv_record *record = record_log_at(log, resumable->at);
                int r = record_frame_add(frame, record, resumable->id);

                if (r)
                        return error_pass(r);
                more = record_frame_needs_next(record);
                resumable->at += record_log_step(record);
                resumable->sequence++;
        }
        return 0;
}

/*
 * Serves each stream once, and begins with the next one next time: a long log does not delay
 * others.
 */
static int copy_all(struct peer *peer, struct buffer *frame)
{
        const struct list_head *last = peer->resumables.prev;
        bool more = true;
        int r = 0;

        while (!r && more && !record_frame_is_full(frame)) {
                struct list_head *link = peer->resumables.next;
                struct resumable *resumable = resumable_of(link);

                more = link != last;
                list_rotate(&peer->resumables);
                r = copy_records(resumable, frame);
                if (!r && resumable->ended && resumable->at == resumable->log.used)
                        resumable_detach(resumable);
        }
        return error_pass(r);
}

bool resumables_take(struct peer *peer)
{
        struct buffer frame;
        bool some;

        if (list_is_empty(&peer->resumables))
                return false;
        buffer_init(&frame, peer->out.max);
        if (copy_all(peer, &frame))
                connection_hang_up(peer, "no memory for its records");
        some = buffer_count(&frame) && !peer->doomed;
        if (some)
                record_frame_put(peer, frame.bytes + frame.start, buffer_count(&frame));
        buffer_deinit(&frame);
        return some;
}

void resumables_leave(struct peer *peer)
{
        while (!list_is_empty(&peer->resumables))
                resumable_detach(resumable_of(peer->resumables.next));
}
