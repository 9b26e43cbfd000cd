/* Handlers: run what one frame of a peer asks for.  Loop thread only. */
#ifndef DAEMON_EDGE_HANDLERS_H
#define DAEMON_EDGE_HANDLERS_H

#include <stddef.h>
#include <stdint.h>

struct peer;

struct wire_request;
struct wire_problem;

/*
 * Handles the body of a whole frame.  Replies, now or later; the peer may be closing or doomed
 * then.
 */
void handle_frame(struct peer *peer, const uint8_t *body, size_t count);

/* The same when wire_decode() has already returned `r`.  Takes what it keeps of `asked`. */
void handle_request(struct peer *peer, struct wire_request *asked, int r,
                    struct wire_problem *problem);

#endif
