/*
 * Streams: the requests of a peer that are with the engine, and their records.
 *
 * A request is in peer->requests from its submission until RETIRED has come.  If we drain its ring,
 * it stays until its END was read, which is later.  CANCEL, and the SUBMIT of its forks, may cross
 * RETIRED (mailbox.h).  Then RETIRED comes again for each crossing mail, and the last one frees the
 * request.  Its states are
 *
 *     cancel_sent  retired  crossing
 *          -          -                alive
 *         yes         -                ending
 *                    yes       n       crossed: n more RETIRED come
 *                    yes       0       over: no other thread has it
 *
 * If a client asks for many streams, the first request has the others as its siblings.  All
 * functions on requests that are not submitted yet include the siblings.  One mail submits them
 * all.
 *
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_STREAMS_H
#define DAEMON_EDGE_STREAMS_H

#include "daemon/edge/peer.h"

/*
 * Gives the peer a channel if it needs one, and the request to the peer until stream_begin() or
 * stream_drop(): 0, WIRE_E_REFUSED or -ENOMEM.
 */
int stream_claim(struct peer *peer, struct request *request, struct wire_problem *ret_problem);

/*
 * Replies ok, then submits: 0.  The parent of a fork is kept until the engine has taken that mail.
 * WIRE_E_REFUSED: its deadline would pass before its first token.
 */
int stream_begin(struct peer *peer, struct request *request, struct wire_problem *ret_problem);

/* The request was never submitted: frees it.  Its peer may be gone. */
void stream_drop(struct edge *edge, struct request *request);

struct request *stream_find(struct peer *peer, uint32_t stream); /* NULL: not alive */
void stream_cancel(struct edge *edge, struct request *request, enum smv_reason reason,
                   enum smv_code code);

/* RETIRED has come, perhaps for a peer that is gone. */
void stream_retired(struct edge *edge, struct request *request);

/* The client has read on: tells the engine if it waits for that and was not told yet. */
void streams_nudge(struct edge *edge, struct channel *channel);

/*
 * Moves about 32 KiB of records from the ring to peer->out.  False if there were none, or the
 * client reads them itself.
 */
bool streams_take(struct peer *peer);

/* Puts a frame of these records for the peer. */
void streams_put(struct peer *peer, const void *records, size_t bytes);

/* The peer goes: its requests and its channel retire on their own. */
void streams_leave(struct peer *peer);

#endif
