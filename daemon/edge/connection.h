/*
 * Connection: what is sent to a peer, and how the peer ends.
 *
 * A turn sends a limited number of bytes, and a limited number of bytes may wait.  If a client lets
 * its replies pile up beyond that, the peer is hung up.  With the doorbell `kick`, the socket is
 * shared with the waker (send-lock.h).
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_CONNECTION_H
#define DAEMON_EDGE_CONNECTION_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire.h"

/* The peer will be settled at the end of this turn of the loop: see peer.h. */
void connection_mark(struct peer *peer);

/* Ends the peer: it is freed when it is settled. */
void connection_hang_up(struct peer *peer, const char *why);

/*
 * connection_send() writes what the socket takes of the bytes that wait.  connection_is_full(): if
 * bytes wait, do they wait for the client, and not only for the waker, which is ringing just now?
 */
void connection_send(struct peer *peer);
bool connection_is_full(const struct peer *peer);

/*
 * Sends all that waits, and these descriptors with its first byte: 0, or a negative errno and
 * nothing was sent.
 */
int connection_pass(struct peer *peer, const int *fds, unsigned count);

/*
 * A reply: false if the client does not read the replies it has; the peer is doomed then.  Else the
 * caller puts one value, and connection_replied() ends the reply.
 */
bool connection_may_reply(struct peer *peer);
bool connection_reply(struct peer *peer, struct wire_writer *writer);
void connection_replied(struct peer *peer, struct wire_writer *writer);
/* A whole reply that says ok and nothing else. */
void connection_reply_ok(struct peer *peer, uint32_t id);
/* A reply that was made elsewhere; no other one may be in `out`.  Takes the reply's memory. */
void connection_reply_made(struct peer *peer, struct buffer *reply);
/* The most bytes that may wait in front of a long reply. */
size_t connection_unsent_max(const struct peer *peer);

/* Replies with the problem.  If it is fatal, the peer closes when that is sent, or in a second. */
void connection_refuse(struct peer *peer, const struct wire_problem *problem);
/* A request for a stream failed with `r`; the problem says why if it was refused. */
void connection_count_refusal(struct edge *edge, int r, const struct wire_problem *problem);
/* Replies to a request that failed with `r`: `problem` if it was refused, else out of memory. */
void connection_answer_failure(struct peer *peer, uint32_t id, int r, struct wire_problem *problem);

#endif
