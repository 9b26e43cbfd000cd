/*
 * Slots for questions: where the clients of streams that ask them give their answers, and see whole
 * rows (include/samovar/ring.h).
 *
 * A connection with a ring has as many slots as its hello asked for.  A stream has its slot from
 * the reply to its request until it has retired.  If it shows whole rows, it also has one of the
 * backend's copies of rows, of which the daemon has `whole_row_streams`.  Loop thread only.
 */
#ifndef DAEMON_EDGE_ASK_SLOTS_H
#define DAEMON_EDGE_ASK_SLOTS_H

#include "daemon/edge/stream.h"
#include "daemon/edge/wire-request.h"

struct asking;

/* The questions of a request; *ret_asking is NULL if it has none.  0 or -ENOMEM. */
int ask_make(const struct served *served, const struct wire_request *asked,
             struct asking **ret_asking);

/*
 * Gives the stream a slot of its channel, if it asks its client, before its reply is made.  0 or
 * WIRE_E_REFUSED.
 */
int ask_slot_take(struct edge *edge, struct stream *stream, struct wire_problem *ret_problem);
/* Takes the slot back.  The engine has let go of the stream, and its channel still exists. */
void ask_slot_give_back(struct edge *edge, struct stream *stream);

#endif
