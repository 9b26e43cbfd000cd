/*
 * Streams: a peer's requests that are with the engine, and their records.
 *
 * A request is in peer->requests from its submission until its END was read, which
 * is not before RETIRED has come.  CANCEL may cross RETIRED (mailbox.h), so there
 * may be two of them; then the second forgets the request.  By its two flags it is
 *
 *      cancel_sent  retired
 *           -          -      alive
 *          yes         -      ending
 *          yes        yes     crossed: one more RETIRED comes
 *           -         yes     over: nobody else knows it
 *
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_STREAMS_H
#define DAEMON_EDGE_STREAMS_H

#include "daemon/edge/peer.h"

/* A place in the peer's channel for its END: 0, WIRE_E_REFUSED or -ENOMEM.  The request is the
 * peer's from then on, and ends in stream_begin() or stream_drop(). */
int stream_reserve(struct peer *peer, struct request *request, struct wire_problem *ret_problem);

/* Replies ok, then submits. */
void stream_begin(struct peer *peer, struct request *request);

/* Never submitted: forgets it.  Its peer may be gone. */
void stream_drop(struct edge *edge, struct request *request);

struct request *stream_find(struct peer *peer, uint32_t stream); /* NULL: not alive */
void stream_cancel(struct edge *edge, struct request *request, enum smv_reason reason,
                   enum smv_code code);

/* Moves about 32 KiB of records from the ring to peer->out; false if there were none. */
bool streams_take(struct peer *peer);

/* The peer goes: its requests and its channel retire on their own. */
void streams_leave(struct peer *peer);

#endif
