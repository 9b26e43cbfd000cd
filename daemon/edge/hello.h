/*
 * Hello: the first request of a peer, and what it is told: the version, the models, and where it
 * asked for one and there is one, its ring.  Loop thread only.
 */
#ifndef DAEMON_EDGE_HELLO_H
#define DAEMON_EDGE_HELLO_H

struct peer;
struct wire_request;
struct wire_problem;

/* As the other handlers (handlers.c).  Whose version we do not speak is told so, and has to go. */
int hello_handle(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
