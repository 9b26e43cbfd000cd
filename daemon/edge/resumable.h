/*
 * Resumable streams, which outlive the connection that asked for them.
 *
 * To the engine a generate with keep_ms is a request like any other.  But its records do not go to
 * a client's ring: they go to a ring of this module.  As soon as they can be read there, the loop
 * copies them into the log of the stream (record-log.h).  From the log they are sent, in frames, to
 * the reader that is attached.  At first that is the connection that asked.  When that connection
 * has closed, crashed or detached, any connection of the same user can attach by the stream's
 * number, from any record on.  So no stream has to wait for a reader that is slow or missing.  All
 * readers get the same bytes, except for the id that each of them knows the stream by.
 *
 * That works because the memory for all that the stream may become is allocated before it begins.
 * Its user is charged as records come; at the limit the stream ends with the code SMV_QUOTA.  One
 * ring serves all resumable streams, only the loop reads it, and it is large enough for what all
 * slots make in some steps.
 *
 * A stream without a reader lives for keep_ms.  Then it is dropped: cancelled if it runs, and
 * forgotten.  After an END was sent, the stream has no reader.  Only the reader knows whether it
 * read the END: it then sends `drop`, or comes back for the stream.
 *
 * A stream has one reader at a time, and the last one to attach wins, because we may not have heard
 * yet that a client crashed.  The reader before gets an END(moved), which is not the stream's own.
 *
 * Limits: no stream outlives the daemon, and a stream on a handle ends when that handle closes.
 *
 * resumable.c has the streams and the records that come in, resumable-readers.c has the readers.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_RESUMABLE_H
#define DAEMON_EDGE_RESUMABLE_H

#include "daemon/edge/record-log.h"
#include "daemon/edge/stream.h"
#include "daemon/edge/wire-request.h"

struct resumable {
        struct resumables *all;
        uint64_t number; /* its user names it by this; random, as that of a handle */
        uint64_t uid;
        uint32_t slot;         /* the stream number that the engine uses */
        struct stream *stream; /* NULL: RETIRED was taken; that may be after its END was read */
        uint32_t prompt_tokens, max_tokens, keep_ms;
        enum request_priority priority;
        uint64_t begun_ns;
        uint32_t tokens_made, pauses, found; /* once RETIRED was taken */
        uint64_t charged;
        struct record_log log;
        struct loop_timer *timer; /* runs while no reader is attached */
        bool ended;               /* its END is in the log */
        bool dropped;             /* can not be named any more */

        struct peer *peer;          /* the reader that is attached, or NULL */
        struct list_head peer_link; /* in peer->resumables */
        uint32_t id;                /* the reader's id for it */
        uint32_t sequence;          /* of the record that the reader gets next ... */
        size_t at;                  /* ... and where that record begins in the log */
};

int resumables_new(struct edge *edge, struct resumables **ret_all);
struct resumables *resumables_free(struct resumables *all); /* asserts that it has no streams */

/*
 * Makes this stream resumable, which is about to be submitted, and attaches the asking peer under
 * its id.  0; or WIRE_E_REFUSED or a negative errno, and nothing is changed.
 */
int resumable_begin(struct peer *peer, struct stream *stream, struct resumable **ret_resumable,
                    struct wire_problem *ret_problem);
/* Undoes resumable_begin(): the stream was not submitted after all. */
void resumable_take_back(struct resumable *resumable);

/* A resumable stream has retired, and its memory is about to be freed. */
void resumables_retired(struct resumables *all, const struct stream *stream);

/* The channel's ring has new records.  False: it is not the ring of this module. */
bool resumables_hear(struct resumables *all, const struct channel *channel);

/* NULL: there is none, or it belongs to another user.  The caller can not tell the two apart. */
struct resumable *resumables_find(const struct resumables *all, uint64_t uid, uint64_t number);

/*
 * The stream can not be named any more, and ends if it runs.  A reader that is attached still gets
 * all of it.
 */
void resumable_drop(struct resumable *resumable);
void resumable_cancel(struct resumable *resumable);

/*
 * No reader is attached any more: starts the stream's time.  If the daemon ends, the stream has
 * none.
 */
void resumable_leave_alone(struct resumable *resumable);

/* The daemon ends: ends every stream with this reason and code ... */
void resumables_end_all(struct resumables *all, enum smv_reason reason, enum smv_code code);
/* ... and forgets each one when its reader has all of it. */
void resumables_close(struct resumables *all);

/* ---- the readers: streams of a peer ---- */

/* NULL: no such stream is attached. */
struct resumable *resumable_attached(const struct peer *peer, uint32_t id);

/*
 * Attaches the peer from record `from` on, which exists or is the next one.  Detaches the reader
 * before.
 */
void resumable_attach(struct resumable *resumable, struct peer *peer, uint32_t id, uint32_t from);
void resumable_detach(struct resumable *resumable);

/* Moves about 32 KiB of records to peer->out; false if there were none. */
bool resumables_take(struct peer *peer);

/* The peer goes: detaches all its streams. */
void resumables_leave(struct peer *peer);

/* For list: from *index on; NULL after the last. */
struct resumable *resumables_next(const struct resumables *all, uint32_t *index);

/* For status. */
struct resumables_sum {
        uint64_t open, attached, ended, bytes; /* bytes: charged */
};
struct resumables_sum resumables_sum(const struct resumables *all);

#endif
