/*
 * Keeper: streams that outlive the connection that asked for them.
 *
 * To the engine a generate with keep_ms is a request like any other.  But its records go to no
 * client's ring: they go to one of the keeper's, and as soon as they can be read there the loop
 * lays them into the stream's reel.  From that they are sent, in frames, to the reader who is
 * attached: at first the connection that asked; when that went, whether it closed, crashed or let
 * go, any of the same user that names the number, and from whichever record it wants.  So a
 * reader that reads slowly, or nobody at all, holds up no stream, and what one reader has got is
 * byte for byte what another gets, but for the id that he knows the stream by.
 *
 * That holds because nothing can run out under way.  All that the stream may become is charged
 * to its user, and its memory taken, before it begins; the keeper's ring is for all kept streams,
 * nobody's to read but ours, and large enough for what all slots make in some steps.
 *
 * With nobody attached a stream has keep_ms: then it is dropped, which is to say cancelled if it
 * runs, and forgotten.  An END that was sent leaves its stream with nobody attached: whether it
 * was read only its reader knows, who says `drop` then, or comes back for it.
 *
 * One reader at a time, and the last one who comes is right: of a client that crashed we may not
 * have heard yet.  The one before has an END(moved), which is not the stream's.
 *
 * What it can not do: nothing of it outlives the daemon, and a stream on a handle that closes
 * ends with that.
 *
 * keeper.c has the streams and the records that come, kept.c who reads them.  Loop thread only.
 */
#ifndef DAEMON_EDGE_KEEPER_H
#define DAEMON_EDGE_KEEPER_H

#include "daemon/edge/peer.h"
#include "daemon/edge/reel.h"

struct keeper;

struct kept {
        struct keeper *keeper;
        uint64_t number; /* by which its user names it; never that of another */
        uint32_t uid;
        uint32_t slot;           /* which the engine knows it by */
        struct request *request; /* NULL: it has retired */
        uint32_t prompt_tokens, max_tokens, keep_ms;
        uint64_t charged;
        struct reel reel;
        struct loop_timer *timer; /* runs while nobody is attached */
        bool ended;               /* its END is in the reel */
        bool dropped;             /* nobody can name it any more */

        struct peer *peer;                  /* who is attached, or NULL */
        uint32_t stream;                    /* how he calls it */
        uint32_t sequence;                  /* of the record that he gets next ... */
        size_t at;                          /* ... and where that begins */
        struct kept *peer_next, *peer_prev; /* in a round */
};

/* first: numbers begin after it, so that those of a daemon before this one name nothing. */
int keeper_new(struct edge *edge, uint64_t first, struct keeper **ret_keeper);
struct keeper *keeper_free(struct keeper *keeper); /* asserts that it has none */

/*
 * This request, which is about to be submitted, is kept, and the peer that asks attached under its
 * id.  It is the peer's no longer.  0; or WIRE_E_REFUSED or -ENOMEM, and nothing is changed.
 */
int keeper_begin(struct peer *peer, struct request *request, struct kept **ret_kept,
                 struct wire_problem *ret_problem);
/* It was not submitted after all. */
void keeper_take_back(struct kept *kept);

/* The request has retired, and its memory goes. */
void keeper_retired(struct kept *kept);

/* The channel's ring has news.  False: it is not the keeper's. */
bool keeper_hear(struct keeper *keeper, const struct channel *channel);

/* NULL: there is none, or it is another user's, which is the same to who asks. */
struct kept *keeper_find(const struct keeper *keeper, uint32_t uid, uint64_t number);

/* Nobody can name it any more: it ends, if it runs.  Who is attached still gets all of it. */
void keeper_drop(struct kept *kept);
void kept_cancel(struct kept *kept);

/* Nobody is attached any more: from now on it has its time; or, of a daemon that ends, none. */
void keeper_leave_alone(struct kept *kept);

/* The daemon ends: every stream ends so ... */
void keeper_end_all(struct keeper *keeper, enum smv_reason reason, enum smv_code code);
/* ... and is forgotten when its reader has it. */
void keeper_close(struct keeper *keeper);

/* ---- a peer's ---- */

struct kept *kept_find(const struct peer *peer, uint32_t stream); /* NULL: none that is attached */

/* From this record on, which there is, or will be; whoever was attached is not any more. */
void kept_attach(struct kept *kept, struct peer *peer, uint32_t stream, uint32_t from);
void kept_detach(struct kept *kept);

/* Moves about 32 KiB of records to peer->out; false if there were none. */
bool kept_take(struct peer *peer);

/* The peer goes: those that are attached are so no longer. */
void kept_leave(struct peer *peer);

/* For status. */
struct keeper_sum {
        uint64_t open, attached, ended, bytes; /* charged */
};
struct keeper_sum keeper_sum(const struct keeper *keeper);

#endif
