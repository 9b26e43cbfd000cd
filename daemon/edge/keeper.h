/*
 * Keeper: resumable streams, which outlive the connection that asked for them.
 *
 * To the engine a generate with keep_ms is a request like any other.  But its records do not go to
 * a client's ring: they go to a ring of the keeper.  As soon as they can be read there, the loop
 * copies them into the stream's reel (a log of records).  From the reel they are sent, in frames,
 * to the reader that is attached.  At first that is the connection that asked.  When that
 * connection has closed, crashed or detached, any connection of the same user can attach by the
 * stream's number, from any record on.  So no stream has to wait for a reader that is slow or
 * missing.  All readers get the same bytes, except for the id that each of them knows the stream
 * by.
 *
 * That works because nothing can run out while the stream runs.  All that the stream may become is
 * charged to its user, and its memory is allocated, before it begins.  The keeper's ring serves all
 * kept streams, only the loop reads it, and it is large enough for what all slots make in some
 * steps.
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
 * keeper.c has the streams and the records that come in, kept.c has the readers.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_KEEPER_H
#define DAEMON_EDGE_KEEPER_H

#include "daemon/edge/peer.h"
#include "daemon/edge/reel.h"

struct keeper;

struct kept {
        struct keeper *keeper;
        uint64_t number; /* its user names it by this; never used for another stream */
        uint32_t uid;
        uint32_t slot;           /* the stream number that the engine uses */
        struct request *request; /* NULL: the request has retired */
        uint32_t prompt_tokens, max_tokens, keep_ms;
        uint64_t charged;
        struct reel reel;
        struct loop_timer *timer; /* runs while no reader is attached */
        bool ended;               /* its END is in the reel */
        bool dropped;             /* can not be named any more */

        struct peer *peer;                  /* the reader that is attached, or NULL */
        uint32_t stream;                    /* the reader's id for it */
        uint32_t sequence;                  /* of the record that the reader gets next ... */
        size_t at;                          /* ... and where that record begins in the reel */
        struct kept *peer_next, *peer_prev; /* the circular list of the peer */
};

/* Numbers begin after `first`, so that numbers of an earlier daemon name nothing. */
int keeper_new(struct edge *edge, uint64_t first, struct keeper **ret_keeper);
struct keeper *keeper_free(struct keeper *keeper); /* asserts that it has no streams */

/*
 * Keeps this request, which is about to be submitted, and attaches the asking peer under its id.
 * The request is no longer in the peer's list.  0; or WIRE_E_REFUSED or -ENOMEM, and nothing is
 * changed.
 */
int keeper_begin(struct peer *peer, struct request *request, struct kept **ret_kept,
                 struct wire_problem *ret_problem);
/* Undoes keeper_begin(): the request was not submitted after all. */
void keeper_take_back(struct kept *kept);

/* The request has retired, and its memory is about to be freed. */
void keeper_retired(struct kept *kept);

/* The channel's ring has new records.  False: it is not the keeper's channel. */
bool keeper_hear(struct keeper *keeper, const struct channel *channel);

/* NULL: there is none, or it belongs to another user.  The caller can not tell the two apart. */
struct kept *keeper_find(const struct keeper *keeper, uint32_t uid, uint64_t number);

/*
 * The stream can not be named any more, and ends if it runs.  A reader that is attached still gets
 * all of it.
 */
void keeper_drop(struct kept *kept);
void kept_cancel(struct kept *kept);

/*
 * No reader is attached any more: starts the stream's time.  If the daemon ends, the stream has
 * none.
 */
void keeper_leave_alone(struct kept *kept);

/* The daemon ends: ends every stream with this reason and code ... */
void keeper_end_all(struct keeper *keeper, enum smv_reason reason, enum smv_code code);
/* ... and forgets each one when its reader has all of it. */
void keeper_close(struct keeper *keeper);

/* ---- the readers: streams of a peer ---- */

/* NULL: no such stream is attached. */
struct kept *kept_find(const struct peer *peer, uint32_t stream);

/*
 * Attaches the peer from record `from` on, which exists or is the next one.  Detaches the reader
 * before.
 */
void kept_attach(struct kept *kept, struct peer *peer, uint32_t stream, uint32_t from);
void kept_detach(struct kept *kept);

/* Moves about 32 KiB of records to peer->out; false if there were none. */
bool kept_take(struct peer *peer);

/* The peer goes: detaches all its streams. */
void kept_leave(struct peer *peer);

/* For status. */
struct keeper_sum {
        uint64_t open, attached, ended, bytes; /* bytes: charged */
};
struct keeper_sum keeper_sum(const struct keeper *keeper);

#endif
