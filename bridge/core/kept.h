/*
 * Kept streams: answers that go on when their client is lost, and can be read again.
 *
 * A request with `stream_keep_ms` makes a resumable stream in the daemon.  The bridge keeps the
 * request and what its answer was made of besides: ids and time.  So GET /v1/streams/{id} writes
 * the same events again, from any one on, in the dialect of the request.
 *
 * A kept stream belongs to the principal whose key made it; for every other one it is not there.
 * Of each principal, KEPT_STREAMS_MAX are known, with KEPT_BYTES_MAX of requests: the oldest go
 * first.  Loop thread only.
 */
#ifndef BRIDGE_CORE_KEPT_H
#define BRIDGE_CORE_KEPT_H

#include <samovar/client.h>

#include "bridge/core/arena.h"
#include "bridge/core/context.h"

#define KEPT_STREAMS_MAX 64u
#define KEPT_BYTES_MAX   (UINT64_C(32) << 20) /* of their requests */

/* The parts of an answer that do not come from the daemon. */
struct kept_facts {
        uint64_t identity[2]; /* of all its ids */
        uint64_t created_s;
        struct smv_accepted accepted;
};

struct kept_stream {
        struct list_head of_store;
        char id[48]; /* "stream_..." */
        uint32_t principal;
        char *path;
        struct text body;
        uint64_t resume_id;
        struct kept_facts facts;
};

struct kept_store;
struct kept_store *kept_store_new(void);                      /* NULL: out of memory */
struct kept_store *kept_store_free(struct kept_store *store); /* takes NULL */

/* NULL: out of memory. */
struct kept_stream *kept_add(struct kept_store *store, uint32_t principal, const char *path,
                             struct text body, uint64_t resume_id, const struct kept_facts *facts);
/* NULL: there is none for this principal. */
struct kept_stream *kept_find(const struct kept_store *store, uint32_t principal, struct text id);
/* The same by its number in the daemon. */
struct kept_stream *kept_find_resumable(const struct kept_store *store, uint32_t principal,
                                        uint64_t resume_id);
void kept_remove(struct kept_stream *stream);

#endif
