/*
 * Handles: histories that clients hold by a number, and continue without sending them again.
 *
 * A handle is its tokens, and no more than that.  What it saves: a history is never rendered or
 * encoded a second time, so nobody has to make the same text come out again to be recognised;
 * it crosses the socket once; and a turn on it looks up its blocks in the pool, one look each,
 * and computes what is new.  For the pool knows by itself what it holds of any run of tokens, in
 * parts of a block, too, and while another still computes them (core/prefix.h).  So the engine
 * and the core need not know of handles, a fork is one more name for the same tokens, and the
 * same ids sent as a whole give the same stream.
 *
 * What it can not do: it pins no block.  What was evicted meanwhile is computed again, which
 * cached_tokens of the END shows; it may be asked to go after all else (anchors.h).  Nor does a
 * handle outlive its owner, or the daemon.
 *
 * Tokens are shared by forks and never written while they are: who changes his first makes them
 * his own.  All who share have the same count, so every handle is charged for all of its tokens,
 * and what it is charged covers the memory whoever goes first.
 *
 * While a request generates on a handle, or a text for it is with the scribe, it is busy: it is
 * only looked at, or closed.  It closes with its owner; that is a connection, or a shelf (shelf.h)
 * for who wants to come back for it.
 *
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_HANDLES_H
#define DAEMON_EDGE_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/edge/quota.h"
#include "daemon/edge/wire.h"
#include "daemon/served.h"

struct handle;
struct shelf;
struct peer_task;
struct request;

/* Whoever has handles: with him they go. */
struct handle_owner {
        struct handle *first;
        struct shelf *shelf; /* which it is; NULL: a connection's */
};

/* What of it is asked to stay, or shown to others: see anchors.h. */
struct anchored {
        uint32_t number; /* of its anchor; 0: nothing */
        uint32_t uid, blocks, ms;
        uint64_t until_ns;
        struct anchored *next, *prev;
};

struct handle {
        uint64_t number; /* never 0, and never that of another */
        uint32_t uid;    /* whose user may name it, from any of his connections */
        struct served *model;
        uint32_t *tokens; /* NULL: there are none */
        uint32_t count;
        uint32_t *sharers;       /* how many have the same tokens; NULL: nobody else */
        struct request *request; /* that generates on it, or NULL */
        struct peer_task *task;  /* whose text it waits for, or NULL */
        struct handle_owner *owner;
        struct handle *owner_next, *owner_prev;
        struct handle *next; /* in its bucket */

        struct anchored held, published;
};

struct handles;

/* first: numbers begin after it, so that those of a daemon before this one name nothing. */
int handles_new(struct quota *quota, uint64_t first, struct handles **ret_handles);
struct handles *handles_free(struct handles *handles); /* asserts that none is open */

/* NULL: there is none, or it is another user's, which is the same to who asks. */
struct handle *handles_find(const struct handles *handles, uint32_t uid, uint64_t number);

static inline bool handle_is_busy(const struct handle *handle)
{
        return handle->request || handle->task;
}

/* One without tokens.  0, WIRE_E_REFUSED or -ENOMEM; nothing is charged then. */
int handles_open(struct handles *handles, struct handle_owner *owner, uint32_t uid,
                 struct served *model, uint32_t id, struct wire_problem *ret_problem,
                 struct handle **ret_handle);

/* One more with the same tokens, of this owner and of the same user; the same. */
int handles_fork(struct handles *handles, struct handle *handle, struct handle_owner *owner,
                 uint32_t id, struct wire_problem *ret_problem, struct handle **ret_handle);

/* Copies these behind what is there.  0, WIRE_E_REFUSED or -ENOMEM; then it is as it was. */
int handles_append(struct handles *handles, struct handle *handle, const uint32_t *tokens,
                   uint32_t count, uint32_t id, struct wire_problem *ret_problem);

/*
 * These, from malloc(), in place of what is there; on success they are the handle's.  It allocates
 * nothing, so where as many bytes were uncharged just before, it does not fail.
 */
int handles_replace(struct handles *handles, struct handle *handle, uint32_t *tokens,
                    uint32_t count, uint32_t id, struct wire_problem *ret_problem);

/* count: as many as there are or fewer.  0 or -ENOMEM. */
int handles_truncate(struct handles *handles, struct handle *handle, uint32_t count);

/* It must not be busy. */
void handles_close(struct handles *handles, struct handle *handle);

/* For status. */
struct handles_sum {
        uint64_t open, tokens, bytes; /* charged */
};
struct handles_sum handles_sum(const struct handles *handles);

#endif
