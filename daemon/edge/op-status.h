/*
 * The operation status: every count of the daemon in one reply, so that a test can see that nothing
 * leaked.
 *
 * The counts of users in the pool come from the usage snapshot, as the engine last wrote it, at
 * most a few steps ago.  Root and the daemon's own user see all of the reply.  Other users see what
 * they are charged for, and what explains why they wait: the pool and the queue.
 * docs/reference/status.md lists the keys.  Loop thread only.
 */
#ifndef DAEMON_EDGE_OP_STATUS_H
#define DAEMON_EDGE_OP_STATUS_H

#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

int op_status(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

/* A key of the reply, for a page of reference; but not of `limits`: see settings_limit(). */
struct status_row {
        const char *section; /* the map that has the key; "": the reply itself */
        const char *about;   /* what the section is about */
        const char *name, *meaning;
        bool owner_only; /* only root and the daemon's own user see it */
};

/* Row `index`, in the order of the reply; false after the last one.  Any thread. */
bool status_describe(size_t index, struct status_row *ret_row);

#endif
