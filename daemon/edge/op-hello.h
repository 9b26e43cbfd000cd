/*
 * The operation hello: the first request of a peer.  Its reply has the version, the models, and the
 * ring if the client asked for one and there is one.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_HELLO_H
#define DAEMON_EDGE_OP_HELLO_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

/* If the client's versions are too new, the refusal is fatal. */
int op_hello(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
