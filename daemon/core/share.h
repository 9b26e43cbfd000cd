/*
 * Fair share: the slots and blocks that each user (uid) has, and the service that each has had.
 *
 * While another user waits, no user gets more than half of the slots or of the blocks.  No
 * user ever gets more blocks than user_blocks.  A user without a slot may exceed the half,
 * however large the request is: otherwise that request could never begin.  charge.c computes
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
 * shares_init().
 */
#ifndef DAEMON_CORE_SHARE_H
#define DAEMON_CORE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/request.h"

struct share {
        uint32_t uid;
        uint32_t alive, waiting; /* its requests; those not waiting have a slot or are ending */
        uint32_t alive_in[REQUEST_CLASS_N];
        uint64_t served[REQUEST_CLASS_N];
        uint32_t slots;
        uint32_t promised; /* blocks promised to all its requests */
        uint64_t passed;   /* shares.look of the last pass in which it was passed over */
};

struct shares {
        struct share *at;
        uint32_t count, max;
        uint32_t waiting_users;
        uint64_t look;          /* number of the current pass over the queue */
        uint32_t slots, blocks; /* totals */
        uint32_t user_blocks;   /* limit of blocks for one user; 0: all */
};

/* A block has this many parts; a shared block counts in parts. */
#define SHARE_PARTS UINT64_C(65536)

int shares_init(struct shares *shares, uint32_t users_max, uint32_t slots, uint32_t blocks,
                uint32_t user_blocks);
void shares_deinit(struct shares *shares);

/* A request of this user arrives and waits.  Adds the user if it is new. */
void share_come(struct shares *shares, uint32_t uid, enum request_class class);
/* A waiting request ends without having got a slot. */
void share_give_up(struct shares *shares, uint32_t uid);
/* A request has retired.  Removes the user if it was the last one. */
void share_forget(struct shares *shares, uint32_t uid, enum request_class class);

/* May a waiting request have a slot, if its user is then charged with `parts`? */
bool share_may_take(const struct shares *shares, uint32_t uid, uint64_t parts);
/* Would it be within the half that applies while another user waits? */
bool share_is_within(const struct shares *shares, uint32_t uid, uint64_t parts);
/* A waiting request gets a slot. */
void share_take(struct shares *shares, uint32_t uid);
void share_give_back(struct shares *shares, uint32_t uid);
void share_promise(struct shares *shares, uint32_t uid, uint32_t blocks);
/* Promised blocks were taken, or the promise is given up. */
void share_redeem(struct shares *shares, uint32_t uid, uint32_t blocks);
uint32_t share_promised(const struct shares *shares, uint32_t uid);
/* Does this user have a request alive? */
bool share_is_there(const struct shares *shares, uint32_t uid);
/* A preempted request, which has given everything back, waits again. */
void share_wait_again(struct shares *shares, uint32_t uid);

void share_charge(struct shares *shares, uint32_t uid, enum request_class class, uint32_t amount);
uint64_t share_served(const struct shares *shares, uint32_t uid, enum request_class class);

/* Begins a new pass over the queue, from its front. */
void share_look(struct shares *shares);
/* This user gets no slot until the next pass. */
void share_pass_over(struct shares *shares, uint32_t uid);
bool share_is_passed_over(const struct shares *shares, uint32_t uid);

/* Asserts that the sums over all users are these. */
void shares_check(const struct shares *shares, uint32_t waiting, uint32_t slots, uint32_t promised);

#endif
