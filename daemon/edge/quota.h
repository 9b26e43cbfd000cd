/*
 * Quota: what each user (a uid from the kernel, or a principal) holds, and the limits of that.
 *
 * Everything is charged to the user, not to a connection, so a client gains nothing when it
 * reconnects.  A charge is made before the work and is taken back exactly once.  There are two
 * limits for each kind: that of one user (max), and that of the whole daemon (total).
 *
 * Accounts.  A uid that lies in a range of /etc/subuid is a process in a container of the user that
 * owns the range.  Its charges go to the account of that user (subuid.h); other uids have accounts
 * of their own.  All this is about limits: who may name a handle or a stream is decided by the uid
 * itself.  A principal (principals.h) has a number in place of a uid, and an account of its own.
 *
 * Shares of a total.  An eighth of each total, and at least one of two, is a reserve for root and
 * for the user that runs the daemon.  They may take all that is free.  Let C be the total without
 * the reserve, or without what these two hold, if that is more.  For every other account:
 *
 *      A charge is allowed if n * h <= f afterwards, where n accounts hold something of this kind,
 *      the account holds h, and f is what is left of C.  An account that held nothing may also take
 *      one without that, if one is left.
 *
 * So the first account may hold half of C, the second a third of what that one left, and so on:
 * how much an account may take depends on what is left and on how many share it.  What this gives:
 *
 *      Any k accounts that were charged by the first rule hold at most C * k / (k + 1) together.
 *      Proof by induction: without the one that was charged last, k - 1 hold at most
 *      C * (k - 1) / k and leave g >= C / k.  The rule gives k * h <= n * h <= f <= g - h, so
 *      h <= g / (k + 1), and g - h >= C / (k + 1) is left.  Giving back only helps.
 *
 * A newcomer is refused only if nothing is left.  Then the accounts that took their one without
 * the rule have taken C / (k + 1) or more.  So there are k + C / (k + 1) >= 2 * sqrt(C) - 1
 * accounts: with fewer, a user that holds nothing always gets in, however much others want.
 * An account alone may hold half of C, which is more than its own limit by default.
 *
 * An account lives while it holds anything or has lately connected.
 * Loop thread only.
 */
#ifndef DAEMON_EDGE_QUOTA_H
#define DAEMON_EDGE_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/edge/subuid.h"
#include "daemon/edge/wire-request.h"

enum quota_kind {
        QUOTA_CONNECTIONS, /* until their rings are freed, too */
        QUOTA_REQUESTS,    /* also jobs of the text worker, until they are done */
        QUOTA_PROMPT_BYTES,
        QUOTA_RING_BYTES,       /* of shared rings */
        QUOTA_PINS,             /* histories that are pinned or published ... */
        QUOTA_PINNED_BLOCKS,    /* ... and their blocks */
        QUOTA_HANDLES,          /* their tokens are prompt bytes */
        QUOTA_RESUMABLE,        /* resumable streams ... */
        QUOTA_RESUMABLE_BYTES,  /* ... and the bytes that their records take */
        QUOTA_CONSTRAINT_BYTES, /* of grammars, and of streams that follow them */
        QUOTA_KIND_N,
};

struct quota_conf {
        uint64_t max[QUOTA_KIND_N];
        uint64_t total[QUOTA_KIND_N]; /* of the whole daemon; 0: no limit */
        uint32_t connects_burst, connects_per_s;
        uint32_t owner; /* the user that runs the daemon */
        /* Or NULL: each uid has its own account.  It outlives the quota. */
        const struct subuid *subuid;
};

/* One uid, and how much of each kind it holds. */
struct quota_user {
        uint64_t uid;
        uint64_t account; /* the uid whose account is charged */
        uint64_t held[QUOTA_KIND_N];
        uint64_t tokens; /* of its streams that have ended */
        /* If this is the uid of an account: what all uids of the account hold together ... */
        uint64_t all[QUOTA_KIND_N];
        double connects; /* ... and the tokens left in its token bucket for connections */
        uint64_t connects_at_ns;
};

enum quota_outcome {
        QUOTA_E_OVER = 1,  /* the account has reached its own limit */
        QUOTA_E_TOTAL = 2, /* the daemon has reached its limit, or the account its share of it */
};

struct quota;

int quota_new(const struct quota_conf *conf, struct quota **ret_quota);
/* The limits change.  A user that holds more than that keeps it, and gets no more. */
void quota_reload(struct quota *quota, const struct quota_conf *conf);
struct quota *quota_free(struct quota *quota); /* asserts that nothing is held */

/*
 * The ranges of `subuid` have changed: charges move to the accounts that they belong to now.  Then
 * an account may hold more than its limit.  0; or -ENOMEM, and all charges stay where they are.
 */
int quota_remap(struct quota *quota);

/* Counts tokens of a stream that has ended, for status.  The user still holds something. */
void quota_note_tokens(struct quota *quota, uint64_t uid, uint64_t tokens);

/* Is it root, or the user that runs the daemon? */
bool quota_is_privileged(const struct quota *quota, uint64_t uid);

/* 0, an outcome or -ENOMEM. */
int quota_charge(struct quota *quota, uint64_t uid, enum quota_kind kind, uint64_t amount);
/* The same for a request of a client: WIRE_E_REFUSED and the problem if it is over a limit. */
int quota_ask(struct quota *quota, uint64_t uid, enum quota_kind kind, uint64_t amount, uint32_t id,
              struct wire_problem *ret_problem);
/*
 * Charges what cannot be refused any more: what was just taken back, as it goes from one thing of
 * the user to another, or what was on its way when a limit was reached.  The limits are not asked.
 * The user holds something of this kind already, or did a moment ago.
 */
void quota_recharge(struct quota *quota, uint64_t uid, enum quota_kind kind, uint64_t amount);
void quota_uncharge(struct quota *quota, uint64_t uid, enum quota_kind kind, uint64_t amount);

/*
 * Counts one more connection attempt of this uid.  0; or WIRE_E_REFUSED if it is over the rate, and
 * the problem says when to try again; or -ENOMEM.  Root and the user that runs the daemon have no
 * such limit.
 */
int quota_connect(struct quota *quota, uint64_t uid, uint64_t now_ns,
                  struct wire_problem *ret_problem);

/* An attempt of this uid turned out to be that of another user: it does not count. */
void quota_connect_back(struct quota *quota, uint64_t uid);

const char *quota_name(enum quota_kind kind);
uint64_t quota_used(const struct quota *quota, enum quota_kind kind); /* by all users */

bool quota_holds(const struct quota *quota, uint64_t uid); /* true if it holds anything */

/* For status: users that hold something, from *index on; NULL after the last. */
const struct quota_user *quota_next(const struct quota *quota, uint32_t *index);

#endif
