/*
 * Hello: the first request of a peer, and its reply: the version, the models, and the ring if the
 * client asked for one and there is one.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_HELLO_H
#define DAEMON_EDGE_HELLO_H

struct peer;
struct wire_request;
struct wire_problem;

/* A handler as those of handlers.c.  If the client's versions are too new, the refusal is fatal. */
int hello_handle(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

#endif
