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
 * cached_tokens of the END shows.  A client may ask that they be evicted after all others (pins.h).
 * No handle outlives the daemon.
 *
 * Forks share tokens, and shared tokens are never written: the handle that changes first gets its
 * own copy.  All sharers have the same count, so every handle is charged for all of its tokens.
 * The charge covers the memory whichever handle closes first.
 *
 * While a stream generates on a handle, or a text for it is with the text worker, it is busy: it
 * can only be looked at, or closed.  A generation on a handle is a stream like any other, with a
 * copy of the tokens.  When it has retired, its array becomes the handle's: it has the prompt and
 * what was generated, and it is charged already, so this cannot fail.
 *
 * A handle closes with the connection that made it.  If the client gave keep_ms, it closes when it
 * was not named for that long, and was not busy.  When a handle closes, the work on it ends: its
 * stream is cancelled and has its END, and its text is refused.  Streams and jobs know a handle by
 * its number, so they find out when it has closed.
 *
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_HANDLES_H
#define DAEMON_EDGE_HANDLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/edge/pins.h"
#include "daemon/edge/stream.h"
#include "daemon/edge/wire-request.h"
#include "daemon/text/worker.h"

struct handle {
        /* Random, so that it names nothing after the handle or the daemon has ended.  Not 0. */
        uint64_t number;
        uint64_t uid; /* this user may name it, from any connection */
        struct served *model;
        uint32_t *tokens; /* NULL: there are none */
        uint32_t count;
        bool has_tools;                        /* messages of its history came with tools ... */
        struct argument_types *argument_types; /* ... the last of which had these; or NULL */
        /* How many handles have the same tokens; NULL: only this one. */
        uint32_t *sharers;
        struct stream *stream; /* generates on it, or NULL */
        struct text_job *job;  /* its text is with the text worker, or NULL */
        /* In the list of its peer; or, if it outlives the connection, in the one of `handles`. */
        struct list_head owner_link;
        struct loop_timer *timer; /* NULL: it closes with its peer */
        uint64_t keep_ns, used_ns, made_ns;
        struct handles *handles;
        struct handle *next; /* in its hash bucket */

        struct pin pinned, published;
};

int handles_new(struct edge *edge, struct handles **ret_handles);
struct handles *handles_free(struct handles *handles); /* asserts that none is open */

/* NULL: there is none, or it belongs to another user.  The caller can not tell the two apart. */
struct handle *handles_find(const struct handles *handles, uint64_t uid, uint64_t number);

/* The handles that outlive their connections; others are in the lists of their peers. */
struct list_head *handles_kept(struct handles *handles);

/* A client has named the handle: its time begins anew. */
void handle_renew(struct handle *handle);

static inline bool handle_is_busy(const struct handle *handle)
{
        return handle->stream || handle->job;
}

/*
 * Makes a handle without tokens for this peer; with keep_ms it outlives the connection.  0,
 * WIRE_E_REFUSED or a negative errno; nothing is charged then.
 */
int handles_open(struct peer *peer, struct served *model, uint32_t keep_ms, uint32_t id,
                 struct wire_problem *ret_problem, struct handle **ret_handle);

/* Makes another handle with the same tokens and user, for this peer.  Returns as handles_open(). */
int handles_fork(struct peer *peer, struct handle *handle, uint32_t keep_ms, uint32_t id,
                 struct wire_problem *ret_problem, struct handle **ret_handle);

/* Appends a copy of these tokens.  0, WIRE_E_REFUSED or -ENOMEM; the handle is unchanged then. */
int handles_append(struct handles *handles, struct handle *handle, const uint32_t *tokens,
                   uint32_t count, uint32_t id, struct wire_problem *ret_problem);

/*
 * Replaces the tokens by these, which come from malloc(); on success they are the handle's.  No
 * memory is needed, so the call does not fail if as many bytes were uncharged just before.
 */
int handles_replace(struct handles *handles, struct handle *handle, uint32_t *tokens,
                    uint32_t count, uint32_t id, struct wire_problem *ret_problem);

/* From now on it has tools with these types.  0 or WIRE_E_REFUSED. */
int handles_give_types(struct handles *handles, struct handle *handle, struct argument_types *types,
                       uint32_t id, struct wire_problem *ret_problem);

/* count: at most the number of tokens.  0 or -ENOMEM. */
int handles_truncate(struct handles *handles, struct handle *handle, uint32_t count);

/* Closes the handle, and ends the work on it. */
void handle_close(struct handle *handle);
/* Closes all handles of a peer that goes. */
void handles_leave(struct peer *peer);
/* The daemon ends: closes the handles that no peer has. */
void handles_close_all(struct handles *handles);

/* ---- streams on a handle ---- */

/* From now on the handle is busy with this stream, which has a copy of its tokens. */
void handle_lend(struct handle *handle, struct stream *stream);
/* A stream was never submitted: its handle is idle again, if it has one that is still open. */
void handles_return(struct handles *handles, struct stream *stream);
/* A stream has retired: the same, and its tokens become the handle's. */
void handles_take_back(struct handles *handles, struct stream *stream);

/* The pin that a stream which only reads the handle is for: it pins, or it publishes. */
static inline struct pin *handle_pin_for(struct handle *handle, const struct stream *stream)
{
        return stream->request.publish ? &handle->published : &handle->pinned;
}

/* For status. */
struct handles_sum {
        uint64_t open, tokens, bytes; /* bytes: charged */
        uint64_t kept;                /* of those open: they outlive their connections */
};
struct handles_sum handles_sum(const struct handles *handles);

#endif
