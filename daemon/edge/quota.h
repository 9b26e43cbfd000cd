/*
 * Quota: what each user (uid, from the kernel) holds, and the limits of that.
 *
 * There is one level: everything is charged to the uid, not to a connection, so a client gains
 * nothing when it reconnects.  A charge is made before the work and is taken back exactly once.  An
 * account lives while it holds anything or has lately connected.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_QUOTA_H
#define DAEMON_EDGE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/edge/wire-request.h"

enum quota_kind {
        QUOTA_CONNECTIONS,
        QUOTA_REQUESTS, /* also jobs of the text worker, until they are done */
        QUOTA_PROMPT_BYTES,
        QUOTA_RING_BYTES,
        QUOTA_PINNED_BLOCKS,
        QUOTA_HANDLES,         /* their tokens are prompt bytes */
        QUOTA_RESUMABLE,       /* resumable streams ... */
        QUOTA_RESUMABLE_BYTES, /* ... and the bytes that their records may take */
        QUOTA_KIND_N,
};

struct quota_conf {
        uint64_t max[QUOTA_KIND_N];
        uint32_t connects_burst, connects_per_s;
};

struct quota_account {
        uint32_t uid;
        uint64_t held[QUOTA_KIND_N];
        double connects; /* tokens left in its token bucket for connections */
        uint64_t connects_at_ns;
};

enum quota_outcome { QUOTA_E_OVER = 1 };

struct quota;

int quota_new(const struct quota_conf *conf, struct quota **ret_quota);
/* The limits change.  A user that holds more than that keeps it, and gets no more. */
void quota_reload(struct quota *quota, const struct quota_conf *conf);
struct quota *quota_free(struct quota *quota); /* asserts that nothing is held */

/* 0, QUOTA_E_OVER or -ENOMEM. */
int quota_charge(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount);
/* The same for a request of a client: WIRE_E_REFUSED and the problem if it is over the limit. */
int quota_ask(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount, uint32_t id,
              struct wire_problem *ret_problem);
void quota_uncharge(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount);

/*
 * Counts one more connection attempt of this uid: 0, QUOTA_E_OVER if it is over the rate, or
 * -ENOMEM.
 */
int quota_connect(struct quota *quota, uint32_t uid, uint64_t now_ns);

uint64_t quota_max(const struct quota *quota, enum quota_kind kind);
const char *quota_name(enum quota_kind kind);

bool quota_holds(const struct quota *quota, uint32_t uid); /* true if it holds anything */

/* For status: accounts that hold something, from *index on; NULL after the last. */
const struct quota_account *quota_next(const struct quota *quota, uint32_t *index);

#endif
