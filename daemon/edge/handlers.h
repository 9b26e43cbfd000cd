/* Handlers: one frame of a peer, to what it asks for.  Loop thread only. */
#ifndef DAEMON_EDGE_HANDLERS_H
#define DAEMON_EDGE_HANDLERS_H

#include <stddef.h>
#include <stdint.h>

struct peer;

/* A whole frame's body.  Replies, now or later; the peer may be closing or doomed then. */
void handle_frame(struct peer *peer, const uint8_t *body, size_t count);

#endif
