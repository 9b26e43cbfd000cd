/*
 * A peer: one client's connection.
 *
 * Bytes in, replies out, its channel, its requests.  It reads with read(), so
 * descriptors a client attaches are dropped by the kernel.  Replies carry their
 * request's id, so a status does not wait behind a megabyte that is with the
 * scribe.  What cannot be written at once waits in a bounded buffer, and a
 * client that lets that run full is hung up.  A frame must be whole within
 * conf.frame_ms of its first byte, hello must come within conf.hello_ms.
 *
 * Records are read by the client itself out of its ring, or drained from the ring
 * to the socket, and that only while little else waits there; a client that does
 * not read thus fills its own ring, and the scheduler stalls its streams and
 * nobody else's.
 *
 * A half-closed connection goes on streaming; when all has ended, a client that
 * reads its ring itself has conf.stall_ms to finish.  A hang-up cancels everything.
 * The peer is freed at once then; requests, channel and jobs retire on their own.
 * A generate that is cancelled while its prompt is with the scribe is refused
 * with CANCELLED when the job comes back; it never reaches the engine.
 *
 * What a frame is more than 64 KiB is charged while it comes in.  A peer that sends
 * many is heard a few at a time: the others have their turns between.  A frame of more
 * than 8 KiB is read by the scribe, and a long reply is made there: nothing that a client
 * sends or asks for holds the loop for a millisecond.
 *
 * peer.c has the bytes that come, outgoing.c those that go, handlers.c the operations, task.c the work for the scribe,
 * streams.c what the engine has and what comes back, keeper.c and kept.c what outlives it, holder.c its handles.  None of them frees a peer
 * under another's feet: they doom it, and peer_settle(), last in every turn of it,
 * flushes, watches, or frees.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_PEER_H
#define DAEMON_EDGE_PEER_H

#include <stdbool.h>

#include "daemon/channel.h"
#include "daemon/core/request.h"
#include "daemon/edge/buffer.h"
#include "daemon/edge/edge.h"
#include "daemon/edge/loop.h"
#include "daemon/edge/wire.h"
#include "daemon/text/scribe.h"

enum peer_state {
        PEER_NEW,     /* has not said hello */
        PEER_OPEN,    /* may ask */
        PEER_CLOSING, /* its streams are cancelled, its last reply is on its way, then hung up */
};

struct peer {
        struct edge *edge;
        struct peer *next, *prev; /* in edge->peers */
        int fd;
        uint32_t uid;
        int32_t pid;                                      /* for the log only */
        uint32_t group_count, groups[REQUEST_GROUPS_MAX]; /* none where nobody may publish */
        enum peer_state state;
        bool read_shut; /* the client has said all it will */
        bool more;      /* whole frames wait in `in` for the next turn */
        bool reading;   /* ... or until the scribe has read the one before them */
        bool doomed;    /* freed by peer_settle() */
        struct loop_watch *watch;
        struct loop_timer *again;    /* the next turn, at once but behind all others */
        struct loop_timer *deadline; /* hello, the frame under way, or the last reply */
        bool frame_timed, lingers;   /* which of them, in the open state */
        uint64_t frame_charged;
        struct buffer in, out;
        size_t long_left;         /* of a long reply in `out`, and what is in front of it */
        struct channel *channel;  /* from hello, or of the socket kind from its first generate */
        struct request *requests; /* with the engine, or with an END to be drained */
        struct peer_task *tasks;  /* with the scribe */
        struct kept *kept;        /* which it is attached to, in a round: who comes next */
        struct handle_owner handles;
        struct peer_task *made, **made_end; /* whose long replies wait for one another */
};

/* Takes fd, whatever it returns; its connection is charged to uid already, and uncharged by
 * peer_free(). */
int peer_new(struct edge *edge, int fd, uint32_t uid, int32_t pid, struct peer **ret_peer);
struct peer *peer_free(struct peer *peer);

/* It will have a turn, behind all others. */
void peer_call(struct peer *peer);

/* What the scribe did for it, or for a peer that is gone meanwhile. */
void peer_job_done(struct edge *edge, struct scribe_job *job);

/* The scribe has read the frame that the peer waits for: as wire_decode() returned. */
void peer_frame_is_read(struct peer *peer, struct wire_request *asked, int r,
                        struct wire_problem *problem);

/* Ends all its requests so, and jobs with this code. */
void peer_cancel_all(struct peer *peer, enum smv_reason reason, enum smv_code code);

/* What the socket takes of what waits; and does something wait, for the client and not only for
 * the waker who is ringing just now? */
void peer_send(struct peer *peer);
bool peer_is_full(const struct peer *peer);

/* All that waits goes out now, and these descriptors with its first byte: 0, or a negative errno
 * and nothing has gone. */
int peer_pass(struct peer *peer, const int *fds, unsigned count);

/* Sends and drains what can be, then waits for more; or it is over and freed.  Nobody uses the
 * peer afterwards. */
void peer_settle(struct peer *peer);

/* No more of it: peer_settle() will free it. */
void peer_hang_up(struct peer *peer, const char *why);

/*
 * A reply: false if the peer does not read those it has, and is doomed.  Else the
 * caller puts one value, and peer_replied() ends it.
 */
bool peer_may_reply(struct peer *peer);
bool peer_reply(struct peer *peer, struct wire_writer *writer);
void peer_replied(struct peer *peer, struct wire_writer *writer);
/* The whole of one that says yes and nothing else. */
void peer_reply_ok(struct peer *peer, uint32_t id);
/* One that was made elsewhere, while no other such one waits: its memory is taken. */
void peer_reply_made(struct peer *peer, struct buffer *reply);
/* What may wait in front of it, at most. */
size_t peer_unsent_max(const struct peer *peer);
void peer_refuse(struct peer *peer, const struct wire_problem *problem);

/* A reply that answers `r` of what filled the problem: refused, or out of memory. */
void peer_answer_failure(struct peer *peer, uint32_t id, int r, struct wire_problem *problem);

#endif
