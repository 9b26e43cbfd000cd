/*
 * Handles: histories that clients hold by a number, and continue without sending them again.
 *
 * A handle is its tokens, and nothing more.  Its benefits: a history is never rendered or encoded a
 * second time, so it need not come out as the same text again to be recognised.  It crosses the
 * socket once.  A turn on it looks up its blocks in the pool, once for each block, and computes
 * only what is new.  The pool itself finds the blocks that it has for any run of tokens, including
 * parts of a block and blocks that another request still computes (core/prefix.h).  So the engine
 * and the core need not know of handles, a fork is one more name for the same tokens, and the same
 * ids sent as a whole give the same stream.
 *
 * Its limits: a handle pins no block.  Blocks that were evicted meanwhile are computed again, which
 * cached_tokens of the END shows.  A client may ask that they be evicted after all others
 * (anchors.h).  A handle does not outlive its owner, or the daemon.
 *
 * Forks share tokens, and shared tokens are never written: the handle that changes first gets its
 * own copy.  All sharers have the same count, so every handle is charged for all of its tokens.
 * The charge covers the memory whichever handle closes first.
 *
 * While a request generates on a handle, or a text for it is with the scribe, it is busy: it can
 * only be looked at, or closed.  It closes with its owner.  The owner is a connection, or a shelf
 * (shelf.h) if the client wants to come back for it.
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

/* An owner of handles: they close with it. */
struct handle_owner {
        struct handle *first;
        struct shelf *shelf; /* the shelf that this is part of; NULL: a connection */
};

/* An anchor of a handle, which pins or publishes its history: see anchors.h. */
struct anchored {
        uint32_t number; /* of its anchor; 0: none */
        uint32_t uid, blocks, ms;
        uint64_t until_ns;
        struct anchored *next, *prev;
};

struct handle {
        uint64_t number; /* never 0, and never used for another handle */
        uint32_t uid;    /* this user may name it, from any connection */
        struct served *model;
        uint32_t *tokens; /* NULL: there are none */
        uint32_t count;
        /* How many handles have the same tokens; NULL: only this one. */
        uint32_t *sharers;
        struct request *request; /* generates on it, or NULL */
        struct peer_task *task;  /* its text is with the scribe, or NULL */
        struct handle_owner *owner;
        struct handle *owner_next, *owner_prev;
        struct handle *next; /* in its hash bucket */

        struct anchored held, published;
};

struct handles;

/* Numbers begin after `first`, so that numbers of an earlier daemon name nothing. */
int handles_new(struct quota *quota, uint64_t first, struct handles **ret_handles);
struct handles *handles_free(struct handles *handles); /* asserts that none is open */

/* NULL: there is none, or it belongs to another user.  The caller can not tell the two apart. */
struct handle *handles_find(const struct handles *handles, uint32_t uid, uint64_t number);

static inline bool handle_is_busy(const struct handle *handle)
{
        return handle->request || handle->task;
}

/* Makes a handle without tokens.  0, WIRE_E_REFUSED or -ENOMEM; nothing is charged then. */
int handles_open(struct handles *handles, struct handle_owner *owner, uint32_t uid,
                 struct served *model, uint32_t id, struct wire_problem *ret_problem,
                 struct handle **ret_handle);

/*
 * Makes another handle with the same tokens and user, for this owner.  Returns as handles_open().
 */
int handles_fork(struct handles *handles, struct handle *handle, struct handle_owner *owner,
                 uint32_t id, struct wire_problem *ret_problem, struct handle **ret_handle);

/* Appends a copy of these tokens.  0, WIRE_E_REFUSED or -ENOMEM; the handle is unchanged then. */
int handles_append(struct handles *handles, struct handle *handle, const uint32_t *tokens,
                   uint32_t count, uint32_t id, struct wire_problem *ret_problem);

/*
 * Replaces the tokens by these, which come from malloc(); on success they are the handle's.  No
 * memory is needed, so the call does not fail if as many bytes were uncharged just before.
 */
int handles_replace(struct handles *handles, struct handle *handle, uint32_t *tokens,
                    uint32_t count, uint32_t id, struct wire_problem *ret_problem);

/* count: at most the number of tokens.  0 or -ENOMEM. */
int handles_truncate(struct handles *handles, struct handle *handle, uint32_t count);

/* The handle must not be busy. */
void handles_close(struct handles *handles, struct handle *handle);

/* For status. */
struct handles_sum {
        uint64_t open, tokens, bytes; /* bytes: charged */
};
struct handles_sum handles_sum(const struct handles *handles);

#endif
