/*
 * The operations on resumable streams: attach, detach, drop.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_ATTACH_H
#define DAEMON_EDGE_OP_ATTACH_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

int op_attach(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_detach(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_drop(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
