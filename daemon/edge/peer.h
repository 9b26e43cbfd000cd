/*
 * A peer: one client's connection.
 *
 * The peer receives bytes, sends replies, and has a channel and requests.  It reads with read(), so
 * the kernel drops descriptors that a client attaches.  A reply carries the id of its request, so a
 * status does not wait behind a megabyte that is with the scribe.  Bytes that the socket does not
 * take at once wait in a bounded buffer.  If a client lets that buffer run full, the peer hangs up.
 * A frame must be whole within conf.frame_ms of its first byte, and hello must come within
 * conf.hello_ms.
 *
 * The client reads records from its ring itself, or the loop drains the ring to the socket.  The
 * loop drains only while little else waits for the socket.  So a client that does not read fills
 * its own ring, and the scheduler stalls its streams and no other client's.
 *
 * A half-closed connection goes on streaming.  When all requests have ended, a client that reads
 * its ring itself has conf.stall_ms to finish reading.  A hang-up cancels everything.  The peer is
 * freed at once then; requests, channel and jobs retire on their own.  If a generate is cancelled
 * while its prompt is with the scribe, it is refused with CANCELLED when the job comes back.  It
 * never reaches the engine.
 *
 * The part of a frame beyond 64 KiB is charged while the frame comes in.  A peer that sends many
 * frames has only a few of them handled in a turn, and the other peers have their turns between.
 * The scribe decodes a frame of more than 8 KiB, and it also makes the long replies.  So nothing
 * that a client sends or asks for holds the loop for a millisecond.
 *
 * peer.c has the bytes that come in, outgoing.c the bytes that go out, handlers.c the operations,
 * task.c the work for the scribe, streams.c the requests that are with the engine and the records
 * that come back, keeper.c and kept.c the streams that outlive the peer, and holder.c the
 * operations on handles.  None of them frees a peer while another one uses it: they mark it as
 * doomed. peer_settle() is the last call of every turn of the peer; it flushes, watches, or frees.
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
        PEER_OPEN,    /* may send requests */
        PEER_CLOSING, /* its streams are cancelled; it is hung up when its last reply is sent */
};

struct peer {
        struct edge *edge;
        struct peer *next, *prev; /* in edge->peers */
        int fd;
        uint32_t uid;
        int32_t pid; /* for the log only */
        /* No groups if the setting `publish` is off. */
        uint32_t group_count, groups[REQUEST_GROUPS_MAX];
        enum peer_state state;
        bool read_shut; /* the client has shut its sending side */
        bool more;      /* whole frames wait in `in` for the next turn */
        bool reading;   /* a frame is with the scribe; those behind it wait until it is read */
        bool doomed;    /* freed by peer_settle() */
        struct loop_watch *watch;
        struct loop_timer *again;    /* its next turn: at once, but behind all other peers */
        struct loop_timer *deadline; /* for hello, the frame under way, or the last reply */
        /* In the state PEER_OPEN: what `deadline` is set for. */
        bool frame_timed, lingers;
        uint64_t frame_charged;
        struct buffer in, out;
        /* Bytes left in `out` of a reply that the scribe made, and of all in front of it. */
        size_t long_left;
        /* From hello on; a private channel is made by the first generate. */
        struct channel *channel;
        struct request *requests; /* with the engine, or with an END that is not drained yet */
        struct peer_task *tasks;  /* jobs that are with the scribe */
        /*
         * The kept streams that it is attached to, as a circular list; points at the next one to be
         * served.
         */
        struct kept *kept;
        struct handle_owner handles;
        /* Tasks whose replies the scribe has made; the replies are sent one after another. */
        struct peer_task *made, **made_end;
};

/*
 * Takes fd, whatever it returns.  Its connection is charged to uid already; peer_free() uncharges
 * it.
 */
int peer_new(struct edge *edge, int fd, uint32_t uid, int32_t pid, struct peer **ret_peer);
struct peer *peer_free(struct peer *peer);

/* The peer gets another turn, behind all others. */
void peer_call(struct peer *peer);

/* The scribe has finished a job of this peer, or of a peer that has gone in the meantime. */
void peer_job_done(struct edge *edge, struct scribe_job *job);

/* The scribe has read the frame that the peer waits for; `r` is the result of wire_decode(). */
void peer_frame_is_read(struct peer *peer, struct wire_request *asked, int r,
                        struct wire_problem *problem);

/* Ends all its requests with this reason and code, and calls off its jobs with this code. */
void peer_cancel_all(struct peer *peer, enum smv_reason reason, enum smv_code code);

/*
 * peer_send() writes what the socket takes of the bytes that wait. peer_is_full(): if bytes wait,
 * do they wait for the client, and not only for the waker, which is ringing just now?
 */
void peer_send(struct peer *peer);
bool peer_is_full(const struct peer *peer);

/*
 * Sends all that waits, and these descriptors with its first byte: 0, or a negative errno and
 * nothing was sent.
 */
int peer_pass(struct peer *peer, const int *fds, unsigned count);

/*
 * Sends and drains what can be sent, then watches for more; or frees the peer if it is over.  The
 * caller must not use the peer afterwards.
 */
void peer_settle(struct peer *peer);

/* Ends the peer: peer_settle() will free it. */
void peer_hang_up(struct peer *peer, const char *why);

/*
 * A reply: false if the peer does not read the replies it has; the peer is doomed then.  Else the
 * caller puts one value, and peer_replied() ends the reply.
 */
bool peer_may_reply(struct peer *peer);
bool peer_reply(struct peer *peer, struct wire_writer *writer);
void peer_replied(struct peer *peer, struct wire_writer *writer);
/* A whole reply that says ok and nothing else. */
void peer_reply_ok(struct peer *peer, uint32_t id);
/*
 * A reply that was made elsewhere; no other one may be in `out`.  Takes the reply's memory.
 */
void peer_reply_made(struct peer *peer, struct buffer *reply);
/* The most bytes that may wait in front of a long reply. */
size_t peer_unsent_max(const struct peer *peer);
void peer_refuse(struct peer *peer, const struct wire_problem *problem);

/* Replies to a request that failed with `r`: `problem` if it was refused, else out of memory. */
void peer_answer_failure(struct peer *peer, uint32_t id, int r, struct wire_problem *problem);

#endif
