/*
 * A shelf: the owner of a handle that outlives its connection.
 *
 * It is an owner as a connection is one (handles.h), but of a single handle, and it has a time
 * instead of a socket: if the handle is not named for that long, it closes.  While a request
 * generates on the handle or a text for it is read, it is in use.  To name it is to renew it.  Loop
 * thread only.
 */
#ifndef DAEMON_EDGE_SHELF_H
#define DAEMON_EDGE_SHELF_H

#include "daemon/edge/edge.h"
#include "daemon/edge/handles.h"

struct shelf {
        struct handle_owner owner;
        struct edge *edge;
        struct shelf *next, *prev; /* in edge->shelves */
        struct loop_timer *timer;
        uint64_t keep_ns, used_ns;
};

/*
 * Makes a shelf for one handle.  The caller makes the handle at once with this owner, or calls
 * shelf_free().  0 or -ENOMEM.
 */
int shelf_new(struct edge *edge, uint32_t keep_ms, struct shelf **ret_shelf);
/* The handle has closed, or was never made. */
void shelf_free(struct shelf *shelf);

/* A client has named a handle of this owner.  Does nothing if the owner is no shelf. */
void shelf_renew(struct handle_owner *owner);

#endif
