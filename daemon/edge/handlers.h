/* Handlers: one frame of a peer, to what it asks for.  Loop thread only. */
#ifndef DAEMON_EDGE_HANDLERS_H
#define DAEMON_EDGE_HANDLERS_H

#include <stddef.h>
#include <stdint.h>

struct peer;

struct wire_request;
struct wire_problem;

/* A whole frame's body.  Replies, now or later; the peer may be closing or doomed then. */
void handle_frame(struct peer *peer, const uint8_t *body, size_t count);

/* The same from where wire_decode() has returned r.  What is kept of `asked` is taken. */
void handle_request(struct peer *peer, struct wire_request *asked, int r,
                    struct wire_problem *problem);

#endif
