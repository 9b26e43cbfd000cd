/*
 * Accept: makes a connected socket a peer, or tells its client why it is not let in.
 *
 * The kernel says which user is at the other end.  It has one number, the overflow uid, for all
 * users without a uid in the daemon's user namespace, as those of a rootless container.  They
 * would read each other's streams, so none of them is let in.
 *
 * A refusal that time may mend says when to try again (retry_ms): exactly, if the client connects
 * too often; a guess, if all connections are taken.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_ACCEPT_H
#define DAEMON_EDGE_ACCEPT_H

#include <stddef.h>

#include "daemon/edge/context.h"

/* A connected socket has come in: makes it a peer or refuses it.  Takes fd. */
void accept_peer(struct edge *edge, int fd);

/* Refuses a client for which the process has no descriptor left.  Takes fd. */
void accept_refuse_for_descriptors(struct edge *edge, int fd);

/* For --fd: 0; or a negative errno and the reason, if this is no connected Unix stream socket. */
int accept_check(int fd, char *ret_why, size_t why_bytes);

#endif
