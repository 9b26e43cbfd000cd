/*
 * Status: every count of the daemon as one reply, so that a test can see that
 * nothing leaked.  docs/protocol.md names the fields.  Loop thread only.
 */
#ifndef DAEMON_EDGE_STATUS_H
#define DAEMON_EDGE_STATUS_H

#include "daemon/edge/edge.h"
#include "daemon/edge/wire.h"

/* {id, ok: true, status: {...}} */
void status_put(struct edge *edge, struct wire_writer *writer, uint32_t id);

#endif
