/*
 * The operation fork: of a stream that is alive, or of a handle.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_FORK_H
#define DAEMON_EDGE_OP_FORK_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

int op_fork(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
