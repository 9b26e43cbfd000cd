/*
 * Holder: the operations of a peer on handles.
 *
 * A change of a handle is done at once, or refused; nothing is queued for a handle.  Two things
 * take longer and keep it busy: a text that is with the scribe, until the reply to it; and a
 * generation, until RETIRED.  RETIRED is posted before the END can be seen, and the loop takes it
 * before it judges a frame (ARCHITECTURE.md).  So a client that has read an END finds the handle
 * idle, and longer by all tokens that it was shown, including the token that ended the stream.
 *
 * A generation on a handle is a request like any other, with a copy of the tokens.  When the
 * request has retired, its array becomes the handle's.  It has the prompt and what was generated,
 * and it is charged already, so this cannot fail.  The peer that generates need not be the one that
 * opened the handle; it only must be of the same user.
 *
 * If a client asked to keep a handle, its owner is a shelf and not the peer.  It closes when it was
 * not named for that long.
 *
 * When a handle closes, or its owner goes, the work on it ends: its stream is cancelled and has its
 * END, and its text is refused.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_HOLDER_H
#define DAEMON_EDGE_HOLDER_H

#include "daemon/edge/handles.h"
#include "daemon/edge/peer.h"

struct peer_task;

/*
 * They reply, now or when the text is read: 0, WIRE_E_REFUSED or -ENOMEM; on failure nothing is
 * changed.
 */
int holder_open(struct peer *peer, struct served *served, struct wire_request *asked,
                struct wire_problem *ret_problem);
int holder_append(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int holder_truncate(struct peer *peer, struct wire_request *asked,
                    struct wire_problem *ret_problem);
int holder_fork(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int holder_close(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

/* End the pin of a handle, and its publication. */
int holder_let_go(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int holder_revoke(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

/* ---- for a generate, a hold or a publish ---- */

/* Lends the handle's tokens to `asked`, which may only read them: 0 or WIRE_E_REFUSED. */
int holder_lend(struct peer *peer, struct wire_request *asked, struct handle **ret_handle,
                struct wire_problem *ret_problem);
/* The request was made: from now on the handle is busy with it. */
void holder_begin(struct handle *handle, struct request *request);
/*
 * The same for a request that only reads.  Its end is anchored for `ms` milliseconds when it is
 * read; if request->publish is set, it is published.  0, WIRE_E_REFUSED or -ENOMEM.
 */
int holder_anchor(struct edge *edge, struct handle *handle, struct request *request, uint32_t ms,
                  struct wire_problem *ret_problem);
/* The request was never submitted: returns its handle, if it has one. */
void holder_return(struct edge *edge, struct request *request);
/* The request has retired: the same. */
void holder_take_back(struct edge *edge, struct request *request);

/* ---- for a task ---- */

/* How many more tokens the handle may have. */
uint32_t holder_room(const struct peer *peer, const struct handle *handle);
/*
 * The scribe has made the ids of the text.  Returns as holder_open(), but on failure the handle
 * still waits for the task.
 */
int holder_fill(struct peer_task *task, struct wire_problem *ret_problem);
/* The ids will not come: an append leaves the handle as it was, and an open closes it. */
void holder_give_up(struct edge *edge, struct peer_task *task);

/* Closes the handle, and ends the work on it. */
void holder_drop(struct edge *edge, struct handle *handle);

/* The peer goes: its handles close. */
void holder_leave(struct peer *peer);
/* The daemon ends: the handles on shelves close. */
void holder_close_shelves(struct edge *edge);

#endif
