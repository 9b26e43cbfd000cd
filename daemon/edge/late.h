/*
 * What clients are told that come too late: the daemon is stopping, or its engine has failed.
 *
 * While the daemon drains, a client is let in only if its hello says `while_stopping`.  Such a
 * client can look at the work that the daemon still does, and end it; new work is refused.
 */
#ifndef DAEMON_EDGE_LATE_H
#define DAEMON_EDGE_LATE_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

/*
 * Returns WIRE_E_REFUSED.  A client may try again after retry_ms: the next daemon may be there
 * then.  If the engine has failed there is no retry_ms, because the next one may fail as well.
 */
int late_refuse(const struct edge *edge, uint32_t id, struct wire_problem *ret_problem);

/* While the daemon drains: the seconds after which it ends the streams that still run.  Else 0. */
uint64_t late_left_s(const struct edge *edge);

#endif
