/*
 * Stored responses: what GET /v1/responses/{id} returns, and what previous_response_id continues.
 *
 * A response belongs to the principal whose key made it; for every other one it is not there.
 * Each lives for response_keep_ms, and of each principal at most response_max of response_bytes
 * together are kept: the oldest go first.  Besides the response itself, the store has all items
 * of its conversation, and perhaps its history in the daemon: one of both the next one continues.
 *
 * Loop thread only.
 */
#ifndef BRIDGE_OPENAI_RESPONSE_STORE_H
#define BRIDGE_OPENAI_RESPONSE_STORE_H

#include <stdint.h>

#include "bridge/core/call.h"

struct stored {
        struct list_head of_store;
        char id[48];
        uint32_t principal;
        uint64_t until_ns;
        struct bytes body;       /* the response */
        struct bytes input;      /* the items that its request has added, a JSON array */
        struct bytes items;      /* all items up to its output, a JSON array */
        struct history *history; /* NULL: there is none, or no longer */
};

/* The responses of this process, made when first used.  NULL: out of memory. */
struct response_store;
struct response_store *response_store_new(void);
struct response_store *response_store_free(struct response_store *store); /* takes NULL */

/*
 * Adds a response without a history.  Takes over the three texts, and empties them.  It is not
 * stored if there is no memory (-ENOMEM), or if it alone is larger than response_bytes (-EFBIG).
 */
int response_store_add(struct response_store *store, const struct call *call, const char *id,
                       struct bytes *body, struct bytes *input, struct bytes *items,
                       struct stored **ret_stored);
/* NULL: there is none for this principal. */
struct stored *response_store_find(struct response_store *store, const struct call *call,
                                   struct text id);
void response_store_remove(struct stored *stored);

#endif
