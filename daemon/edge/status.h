/*
 * Status: every count of the daemon in one reply, so that a test can see that nothing leaked.  What
 * users have of the pool comes from the board, as the engine last wrote it (board.h), at most a few
 * steps ago.  Root and the daemon's own user see all of it.  Others see what they are charged for,
 * and what explains why they wait: the pool and the queue. docs/protocol.md names the fields.  Loop
 * thread only.
 */
#ifndef DAEMON_EDGE_STATUS_H
#define DAEMON_EDGE_STATUS_H

#include "daemon/edge/edge.h"
#include "daemon/edge/wire.h"

/* Puts {id, ok: true, status: {...}}, as this user may see it. */
void status_put(struct edge *edge, uint32_t viewer, struct wire_writer *writer, uint32_t id);

#endif
