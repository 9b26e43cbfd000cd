/*
 * Holder: a peer that asks something of handles.
 *
 * What changes a handle is done at once, or refused; nothing waits in line for it.  Two things
 * take longer and keep it busy: a text that is with the scribe, until the reply to it; and a
 * generation, until RETIRED.  That mail is posted before the END can be seen, and heard before a
 * frame is judged (ARCHITECTURE.md), so a client that has read an END finds the handle idle and
 * longer by all that it was shown, the token that ended the stream included.
 *
 * A generation on a handle is a request like any other, with a copy of the tokens.  When it has
 * retired, its array becomes the handle's: it has the prompt and what was generated, and room
 * for it is charged already, so this cannot fail.  The peer that generates need not be the one
 * that opened it, only of the same user.
 *
 * A handle that was asked to be kept is on a shelf instead of the peer's, until nobody has named it
 * for so long.
 *
 * A handle that is closed, or whose owner goes, ends what is under way on it: its stream is
 * cancelled and has its END, its text is refused.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_HOLDER_H
#define DAEMON_EDGE_HOLDER_H

#include "daemon/edge/handles.h"
#include "daemon/edge/peer.h"

struct peer_task;

/* They reply, now or when the text is read: 0, WIRE_E_REFUSED or -ENOMEM; then nothing is changed. */
int holder_open(struct peer *peer, struct served *served, struct wire_request *asked,
                struct wire_problem *ret_problem);
int holder_append(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int holder_truncate(struct peer *peer, struct wire_request *asked,
                    struct wire_problem *ret_problem);
int holder_fork(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int holder_close(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

/* It is held no longer; it is published no longer. */
int holder_let_go(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);
int holder_revoke(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

/* ---- for a generate, a hold or a publish ---- */

/* `asked` gets the handle's tokens, which it may look at: 0 or WIRE_E_REFUSED. */
int holder_lend(struct peer *peer, struct wire_request *asked, struct handle **ret_handle,
                struct wire_problem *ret_problem);
/* The request is made: from now on the handle is busy with it. */
void holder_begin(struct handle *handle, struct request *request);
/* The same of one that only reads, and whose end is anchored for so long, once it is read; with
 * request->publish, published.  0, WIRE_E_REFUSED or -ENOMEM. */
int holder_anchor(struct edge *edge, struct handle *handle, struct request *request, uint32_t ms,
                  struct wire_problem *ret_problem);
/* It was never submitted; of one without a handle, nothing. */
void holder_return(struct edge *edge, struct request *request);
/* It has retired; the same. */
void holder_take_back(struct edge *edge, struct request *request);

/* ---- for a task ---- */

/* How many more tokens fit. */
uint32_t holder_room(const struct peer *peer, const struct handle *handle);
/* The text's ids are here: as the first functions, but the handle is still the task's then. */
int holder_fill(struct peer_task *task, struct wire_problem *ret_problem);
/* They will not come: it is as it was, or it never was. */
void holder_give_up(struct edge *edge, struct peer_task *task);

/* It closes, and what is under way on it ends. */
void holder_drop(struct edge *edge, struct handle *handle);

/* The peer goes: its handles close. */
void holder_leave(struct peer *peer);
/* The daemon ends: the others do. */
void holder_close_shelves(struct edge *edge);

#endif
