/*
 * The operations on work that is under way, whichever connection asked for it: `list` shows the
 * streams and handles of a user, `end` ends one of them.  Root and the user of the daemon see all
 * users' and may end them.
 */
#ifndef DAEMON_EDGE_OP_LIST_H
#define DAEMON_EDGE_OP_LIST_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

int op_list(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_end(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
