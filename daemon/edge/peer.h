/*
 * A peer: one client's connection.
 *
 * The peer receives bytes, calls the operation of each frame, and sends replies and records.  It
 * reads with read(), so the kernel drops descriptors that a client attaches.  A reply carries the
 * id of its request, so a status does not wait behind a megabyte that is with the text worker.
 * Bytes that the socket does not take at once wait in a bounded buffer.  If a client lets that
 * buffer run full, the peer hangs up.  A frame must be whole within conf.frame_timeout_ms of its
 * first byte, and hello must come within conf.hello_timeout_ms.
 *
 * The client reads records from its ring itself, or the loop drains the ring to the socket.  The
 * loop drains only while little else waits for the socket.  So a client that does not read fills
 * its own ring, and the scheduler stalls its streams and no other client's.
 *
 * A half-closed connection goes on streaming.  When all requests have ended, a client that reads
 * its ring itself has conf.stall_timeout_ms to finish reading.  A hang-up cancels everything.
 * Streams, channel and jobs retire on their own then.  If a generate is cancelled while its prompt
 * is with the text worker, it is refused with CANCELLED when the job comes back.  It never reaches
 * the engine.
 *
 * The part of a frame beyond 64 KiB is charged while the frame comes in.  A peer that sends many
 * frames has only a few of them handled in a turn, and the other peers have their turns between.
 * The text worker decodes a frame of more than 8 KiB, and it also makes the long replies.  So
 * nothing that a client sends or asks for holds the loop for a millisecond.
 *
 * A peer is settled at the end of its own turn, and at the end of a turn of the loop in which
 * another module marked it (connection.h): it sends, watches, or is freed.  No other module frees
 * it.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_PEER_H
#define DAEMON_EDGE_PEER_H

#include "daemon/edge/context.h"

/*
 * Takes fd, whatever it returns.  Its connection is charged to uid already; peer_free() uncharges
 * it, or leaves that to its channel.
 */
int peer_new(struct edge *edge, int fd, uint32_t uid, int32_t pid, struct peer **ret_peer);
struct peer *peer_free(struct peer *peer);

/* Settles all peers that are marked: each sends what it can, then watches for more or is freed. */
void peers_settle(struct edge *edge);

/* Ends all streams of the peer with this reason and code, and cancels its jobs with this code. */
void peer_cancel_all(struct peer *peer, enum smv_reason reason, enum smv_code code);

#endif
