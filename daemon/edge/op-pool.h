/*
 * The operation `pool`: what each block of the KV pool is used for, for people.
 *
 * The engine fills a map between its steps (daemon/core/pool-map.h); those that asked meanwhile get
 * their replies when it is filled.  A map that is less than POOL_MAP_FRESH_NS old is not made anew,
 * so that clients that ask often do not cost the engine more.
 *
 * Root and the user of the daemon see the blocks of all users.  Others see their own blocks; all
 * others, free or not, look alike.  Their sums are in `status`.  The work for a reply is bounded,
 * and so are the requests of one user that wait: it cannot keep the loop busy, or others out.  Loop
 * thread only.
 */
#ifndef DAEMON_EDGE_OP_POOL_H
#define DAEMON_EDGE_OP_POOL_H

#include "daemon/core/pool-map.h"
#include "daemon/edge/context.h"
#include "daemon/edge/wire-request.h"

#define POOL_MAP_FRESH_NS UINT64_C(200000000)
/* Requests that wait for a map: of all users, and of one. */
#define POOL_ASKS_MAX      256u
#define POOL_USER_ASKS_MAX 32u
/* In a reply: the most blocks, runs of equal ones, and users. */
#define POOL_BLOCKS_MAX 65536u
#define POOL_RUNS_MAX   8192u
#define POOL_USERS_MAX  256u

struct pool_view;

int pool_view_new(struct edge *edge, struct pool_view **ret_view);
struct pool_view *pool_view_free(struct pool_view *view); /* takes NULL */

int op_pool(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem);

/* The engine has filled the map: replies to those that wait. */
void pool_view_mapped(struct pool_view *view);
/* The peer goes: it waits no more. */
void pool_view_leave(struct peer *peer);

#endif
