/*
 * A shelf: where a handle is that outlives its connection.
 *
 * It is an owner like a connection is one (handles.h), of one handle, and has a time instead of a
 * socket: when nobody has named the handle for so long, it closes.  While something is generated
 * on it or a text for it is read, it is in use.  To name it is to renew it.
 * Loop thread only.
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

/* For a handle that will be made with this owner, at once, and shelf_free()d if it was not: 0 or -ENOMEM. */
int shelf_new(struct edge *edge, uint32_t keep_ms, struct shelf **ret_shelf);
/* Its handle has closed, or never was. */
void shelf_free(struct shelf *shelf);

/* Somebody has named a handle of this owner; of one that is no shelf, nothing. */
void shelf_renew(struct handle_owner *owner);

#endif
