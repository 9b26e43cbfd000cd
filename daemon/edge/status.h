/*
 * Status: every count of the daemon as one reply, so that a test can see that
 * nothing leaked.  What users have of the pool is as the engine last wrote it up (board.h), a few
 * steps ago at most.  Root and the daemon's own user see all of it.  Others see what they
 * are charged for, and of the rest what explains why they wait: the pool and the line.
 * docs/protocol.md names the fields.  Loop thread only.
 */
#ifndef DAEMON_EDGE_STATUS_H
#define DAEMON_EDGE_STATUS_H

#include "daemon/edge/edge.h"
#include "daemon/edge/wire.h"

/* {id, ok: true, status: {...}}, as this user may see it */
void status_put(struct edge *edge, uint32_t viewer, struct wire_writer *writer, uint32_t id);

#endif
