/*
 * The operations that keep the history of a handle in the pool: pin keeps it, publish shows it to
 * others, revoke ends that.
 *
 * To pin or publish a history, a stream reads it: a generate without tokens.  The pin is set where
 * it ends (pins.h).  Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_PIN_H
#define DAEMON_EDGE_OP_PIN_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

int op_pin(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_publish(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_revoke(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
