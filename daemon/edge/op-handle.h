/*
 * The operations on handles: open, append, truncate, close; and forks of a handle.
 *
 * A change of a handle is done at once, or refused; nothing is queued for a handle.  Two things
 * take longer and keep it busy: a text that is with the text worker, until the reply to it; and a
 * generation, until RETIRED.  RETIRED is posted before the END can be seen, and the loop takes it
 * before it judges a frame (ARCHITECTURE.md).  So a client that has read an END finds the handle
 * idle, and longer by all tokens that it was shown, including the token that ended the stream.
 *
 * The peer that generates on a handle need not be the one that opened it; it only must be of the
 * same user.  Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_HANDLE_H
#define DAEMON_EDGE_OP_HANDLE_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

int op_open(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_append(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_truncate(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int op_close(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

/* The part of op_fork() for a handle. */
int op_fork_handle(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
