/*
 * Checks that several operations make before they begin.
 *
 * All return 0 or WIRE_E_REFUSED with the problem; nothing has changed then.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_CHECKS_H
#define DAEMON_EDGE_OP_CHECKS_H

#include "daemon/edge/context.h"
#include "daemon/edge/handles.h"
#include "daemon/edge/wire-request.h"

/*
 * For a request that leads to work: its ids are free, the daemon still takes it (it does so before
 * the phase `until`), and the model is served.
 */
int op_check_new(struct peer *peer, const struct wire_request *asked, enum edge_phase until,
                 struct served **ret_served, struct wire_problem *ret_problem);

/* Messages need a model that has a chat template. */
int op_check_chat(const struct served *served, const struct wire_request *asked,
                  struct wire_problem *ret_problem);

/* The handle that the request names; to name it renews its time. */
int op_find_handle(struct peer *peer, const struct wire_request *asked, struct handle **ret_handle,
                   struct wire_problem *ret_problem);
/* The same; and it is not busy. */
int op_find_idle_handle(struct peer *peer, const struct wire_request *asked,
                        struct handle **ret_handle, struct wire_problem *ret_problem);
/* The same; its tokens become those of the request, which may only read them. */
int op_borrow_tokens(struct peer *peer, struct wire_request *asked, struct handle **ret_handle,
                     struct wire_problem *ret_problem);

#endif
