/*
 * The operations generate and cancel.
 *
 * A generate has three parts: op_generate() makes the stream; if the prompt is text or messages, an
 * encode job makes its ids; then the stream begins.  To a client that cancels, a stream that has
 * ended is the same as one that never was.  Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_GENERATE_H
#define DAEMON_EDGE_OP_GENERATE_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

int op_generate(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_cancel(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
