/*
 * Fair share: the slots and blocks that each user (uid) has, and the service that each has had.
 *
 * While another user waits, no user gets more than half of the slots or of the blocks.  No
 * user ever gets more blocks than user_blocks.  A user without a slot may exceed the half,
 * however large the request is: otherwise that request could never begin.  usage.c computes
 * the blocks of a user; shared blocks count in parts.  When a request was passed over, all later
 * requests of the same user wait behind it.  Otherwise they could keep a large request of
 * that user waiting for ever.
 *
 * The next slot goes to the user that has been served least.  A user has an account in each
 * class.  It is charged with the rows that are computed for the user; a row that makes
 * a token counts as two.  (A virtual token counter: Sheng and others, 2024.)  So a user with
 * a hundred requests and a user with one request get the same.  A user that arrives begins
 * with no less than the smallest account of the users present: staying away saves nothing.
 *
 * A user is in the table as long as it has a request alive.  There are few users, so the table
 * is searched from the front.  Engine thread only; nothing here allocates after
 * fair_share_init().
 */
#ifndef DAEMON_CORE_FAIR_SHARE_H
#define DAEMON_CORE_FAIR_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/request.h"

struct share_user {
        uint32_t uid;
        uint32_t alive, waiting; /* its requests; those not waiting have a slot or are ending */
        uint32_t alive_by_priority[REQUEST_PRIORITY_N];
        uint64_t served[REQUEST_PRIORITY_N];
        uint32_t slots;
        uint32_t reserved;  /* blocks reserved for all its requests */
        uint64_t passed_in; /* fair_share.pass of the last pass that passed it over */
};

struct fair_share {
        struct share_user *at;
        uint32_t count, max;
        uint32_t waiting_users;
        uint64_t pass;          /* number of the current pass over the queue */
        uint32_t slots, blocks; /* totals */
        uint32_t user_blocks;   /* limit of blocks for one user; 0: all */
};

/* A block has this many parts; a shared block counts in parts. */
#define BLOCK_PARTS UINT64_C(65536)

int fair_share_init(struct fair_share *share, uint32_t users_max, uint32_t slots, uint32_t blocks,
                    uint32_t user_blocks);
void fair_share_deinit(struct fair_share *share);

/* A request of this user arrives and waits.  Adds the user if it is new. */
void fair_share_add_request(struct fair_share *share, uint32_t uid, enum request_priority priority);
/* A waiting request ends without having got a slot. */
void fair_share_cancel_waiting(struct fair_share *share, uint32_t uid);
/* A request has retired.  Removes the user if it was the last one. */
void fair_share_remove_request(struct fair_share *share, uint32_t uid,
                               enum request_priority priority);

/* May a waiting request have a slot, if its user is then charged with `parts`? */
bool fair_share_may_take_slot(const struct fair_share *share, uint32_t uid, uint64_t parts);
/* Would it be within the half that applies while another user waits? */
bool fair_share_is_within_half(const struct fair_share *share, uint32_t uid, uint64_t parts);
/* A waiting request gets a slot. */
void fair_share_take_slot(struct fair_share *share, uint32_t uid);
void fair_share_return_slot(struct fair_share *share, uint32_t uid);
void fair_share_reserve(struct fair_share *share, uint32_t uid, uint32_t blocks);
/* Reserved blocks were allocated, or are not needed any more. */
void fair_share_release(struct fair_share *share, uint32_t uid, uint32_t blocks);
uint32_t fair_share_reserved(const struct fair_share *share, uint32_t uid);
/* Does this user have a request alive? */
bool fair_share_has_user(const struct fair_share *share, uint32_t uid);
/* A preempted request, which has given everything back, waits again. */
void fair_share_requeue(struct fair_share *share, uint32_t uid);

void fair_share_charge(struct fair_share *share, uint32_t uid, enum request_priority priority,
                       uint32_t amount);
uint64_t fair_share_served(const struct fair_share *share, uint32_t uid,
                           enum request_priority priority);

/* Begins a new pass over the queue, from its front. */
void fair_share_begin_pass(struct fair_share *share);
/* This user gets no slot until the next pass. */
void fair_share_pass_over(struct fair_share *share, uint32_t uid);
bool fair_share_is_passed_over(const struct fair_share *share, uint32_t uid);

/* Asserts that the sums over all users are these. */
void fair_share_check(const struct fair_share *share, uint32_t waiting, uint32_t slots,
                      uint32_t reserved);

#endif
