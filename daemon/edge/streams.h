/*
 * Streams: a peer's requests that are with the engine, and their records.
 *
 * A request is in peer->requests from its submission until RETIRED has come; where we
 * drain its ring, until its END was read, which is later.  CANCEL, and the SUBMIT of its
 * forks, may cross RETIRED (mailbox.h), so there may be more of them; then the last forgets the
 * request.  It is
 *
 *      cancel_sent  retired  crossing
 *           -          -                alive
 *          yes         -                ending
 *                     yes       n       crossed: n more RETIRED come
 *                     yes       0       over: nobody else knows it
 *
 * Who asks for many at once gets them as the siblings of one, which all functions on what is not
 * submitted yet take along.  They are submitted by one mail.
 *
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_STREAMS_H
#define DAEMON_EDGE_STREAMS_H

#include "daemon/edge/peer.h"

/* The peer has a channel then, and the request is the peer's until stream_begin() or
 * stream_drop(): 0, WIRE_E_REFUSED or -ENOMEM. */
int stream_claim(struct peer *peer, struct request *request, struct wire_problem *ret_problem);

/* Replies ok, then submits: 0.  A fork's parent is kept until the engine has taken that.  WIRE_E_REFUSED: its deadline would pass before it had begun. */
int stream_begin(struct peer *peer, struct request *request, struct wire_problem *ret_problem);

/* Never submitted: forgets it.  Its peer may be gone. */
void stream_drop(struct edge *edge, struct request *request);

struct request *stream_find(struct peer *peer, uint32_t stream); /* NULL: not alive */
void stream_cancel(struct edge *edge, struct request *request, enum smv_reason reason,
                   enum smv_code code);

/* RETIRED has come, perhaps of a peer that is gone. */
void stream_retired(struct edge *edge, struct request *request);

/* The client has read on: an engine that waits for it is told, if that is not on its way yet. */
void streams_nudge(struct edge *edge, struct channel *channel);

/* Moves about 32 KiB of records from the ring to peer->out; false if there were none,
 * or its client reads them itself. */
bool streams_take(struct peer *peer);

/* A frame of these records for the peer. */
void streams_put(struct peer *peer, const void *records, size_t bytes);

/* The peer goes: its requests and its channel retire on their own. */
void streams_leave(struct peer *peer);

#endif
