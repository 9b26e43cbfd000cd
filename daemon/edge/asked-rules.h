/*
 * Makes the rules of a request's draws (daemon/draw/rules.h), and refuses those that the model or
 * its backend cannot follow.  Loop thread only.
 */
#ifndef DAEMON_EDGE_ASKED_RULES_H
#define DAEMON_EDGE_ASKED_RULES_H

#include "daemon/draw/reasoning-limit.h"
#include "daemon/draw/rules.h"
#include "daemon/edge/wire-request.h"
#include "daemon/model/served.h"

/*
 * Refuses what the model does not have, ids or reasoning: 0 or WIRE_E_REFUSED.
 */
int asked_rules_check(const struct served *served, const struct wire_request *asked,
                      struct wire_problem *ret_problem);

/*
 * The rules of a request that was checked, with copies of what the frame held; NULL if it asks for
 * none.  0, WIRE_E_REFUSED or -ENOMEM.
 */
int asked_rules_make(const struct served *served, const struct wire_request *asked,
                     struct rules **ret_rules, struct wire_problem *ret_problem);

/* The same for the limit of its reasoning.  0 or -ENOMEM. */
int asked_limit_make(const struct served *served, const struct wire_request *asked,
                     struct reasoning_limit **ret_limit);

#endif
