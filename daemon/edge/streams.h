/*
 * Streams of a peer: those that are with the engine, and their records.
 *
 * A stream is in peer->streams from its submission until RETIRED has come.  If we drain its ring,
 * it stays until its END was read, which is later.  A resumable stream is not there (resumable.h).
 * stream.h has the states of a stream.  Loop thread only.
 */
#ifndef DAEMON_EDGE_STREAMS_H
#define DAEMON_EDGE_STREAMS_H

#include "daemon/edge/stream.h"
#include "daemon/edge/wire-request.h"

/*
 * Gives the peer a channel if it needs one, and the stream to the peer until stream_begin() or
 * stream_drop(): 0, WIRE_E_REFUSED or -ENOMEM.
 */
int stream_claim(struct peer *peer, struct stream *stream, struct wire_problem *ret_problem);

/*
 * Replies ok, then submits: 0.  The parent of a fork is kept until the engine has taken that mail.
 * WIRE_E_REFUSED: its deadline would pass before its first token.
 */
int stream_begin(struct peer *peer, struct stream *stream, struct wire_problem *ret_problem);

/* The stream was never submitted: frees it.  Its peer may be gone. */
void stream_drop(struct edge *edge, struct stream *stream);

struct stream *streams_find(struct peer *peer, uint32_t id); /* NULL: not alive */
/* Cancels all streams of the peer. */
void streams_cancel(struct peer *peer, enum smv_reason reason, enum smv_code code);

/*
 * Takes all RETIRED mails.  A client may have seen an END before we took its RETIRED.  So this is
 * called before any decision that depends on which streams are alive.  It frees only streams that
 * no other thread holds.
 */
void streams_catch_up(struct edge *edge);

/*
 * Moves about 32 KiB of records from the ring to peer->out.  False if there were none, or the
 * client reads them itself.
 */
bool streams_take(struct peer *peer);

/* The peer goes: its streams and its channel retire on their own. */
void streams_leave(struct peer *peer);

#endif
