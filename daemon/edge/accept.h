/*
 * Accept: makes a connected socket a peer, or tells its client why it is not let in.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_ACCEPT_H
#define DAEMON_EDGE_ACCEPT_H

#include "daemon/edge/context.h"

/* A connected socket has come in: makes it a peer or refuses it.  Takes fd. */
void accept_peer(struct edge *edge, int fd);

/* Tells a client why it is not let in, if it listens, and closes.  Takes fd. */
void accept_refuse(struct edge *edge, int fd, enum smv_code code, const char *message);

#endif
