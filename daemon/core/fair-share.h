/*
 * Fair share: the slots and blocks that each user has, and the time that each was served.  A user
 * is a uid, or a principal of a gateway, which has a number above all uids.
 *
 * The account of a user is the time of steps that was spent on its requests, whatever their class
 * (charge.c).  The next slot goes to the user that was served least.  (A virtual token counter,
 * with time instead of tokens: Sheng and others, 2024.)  So a user with a hundred requests and a
 * user with one request get the same.  Users are *present* while they have a request alive:
 *
 *      A user that arrives begins with no less than the smallest account of the users present:
 *      staying away saves nothing.
 *      A user that leaves keeps its account: being away for a moment pays no debt.  All accounts
 *      are forgotten when no user is present.
 *      The account of a user that is content is never more than SHARE_CREDIT leads behind the
 *      largest.  So a user that asks for little cannot save up time, and then keep others waiting
 *      for as long.  A user is content if no request of it waits, or if those that wait could not
 *      begin although no other user were there.
 *
 * `lead_ns` is the unit in which accounts are compared.  Users whose accounts differ by less count
 * as nearly equal.
 *
 * A request in the queue that awaits its own masks or token does not wait here, as no other request
 * keeps it waiting.
 *
 * While another user waits, no user gets more than half of the slots or of the blocks.  Users that
 * were served at least lead_ns more do not count here: a user that they are ahead of may take more
 * than half, until it has caught up.  This is not for a user that has a stalled request in a slot:
 * slots that stand still would cost it nothing.  No user ever gets more blocks than user_blocks.  A
 * user without a slot may exceed the half, however large the request is: otherwise that request
 * could never begin.  usage.c computes the blocks of a user; shared blocks count in parts.  When a
 * request was passed over, all later requests of the same user wait behind it.  Otherwise they
 * could keep a large request of that user waiting for ever.
 *
 * There are few users, so the table is searched from the front.  It has users_max users that are
 * present, and SHARE_AWAY_MAX others; of those, the one with the smallest account is forgotten
 * first.  Engine thread only; nothing here allocates after fair_share_init().
 */
#ifndef DAEMON_CORE_FAIR_SHARE_H
#define DAEMON_CORE_FAIR_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/request.h"

struct share_user {
        uint64_t uid;
        uint32_t alive;   /* its requests */
        uint32_t waiting; /* ... that wait for a slot, and not for their own client's answer */
        uint64_t served_ns;
        uint64_t turn_ns[REQUEST_PRIORITY_N]; /* when one of the class got a slot last */
        uint32_t slots;
        bool holds_stalled; /* one of its slots has a stalled request; noted before it is asked */
        uint32_t reserved;  /* blocks reserved for all its requests */
        uint64_t passed_in; /* fair_share.pass of the last pass that passed it over */
        bool limited;       /* ... because of user_blocks */
        uint32_t stalled;   /* its waiting requests that are stalled; counted for each step */
};

struct fair_share {
        struct share_user *at;
        uint32_t count, max;
        uint32_t present; /* users with a request alive */
        uint64_t lead_ns;
        uint64_t pass;          /* number of the current pass over the queue */
        uint32_t slots, blocks; /* totals */
        uint32_t user_blocks;   /* limit of blocks for one user; 0: all */
};

/* A block has this many parts; a shared block counts in parts. */
#define BLOCK_PARTS UINT64_C(65536)

#define SHARE_CREDIT   UINT64_C(10) /* leads */
#define SHARE_AWAY_MAX 64u

int fair_share_init(struct fair_share *share, uint32_t users_max, uint32_t slots, uint32_t blocks,
                    uint32_t user_blocks, uint64_t lead_ns);
void fair_share_deinit(struct fair_share *share);

/* A request of this user arrives.  If it is the only one, the user arrives. */
void fair_share_add_request(struct fair_share *share, uint64_t uid);
/* A request of it waits for a slot from now on: it has come, or was preempted, or is answered. */
void fair_share_add_waiting(struct fair_share *share, uint64_t uid);
/* A waiting request ends without having got a slot. */
void fair_share_cancel_waiting(struct fair_share *share, uint64_t uid);
/* A request has retired.  If it was the last one, the user leaves. */
void fair_share_remove_request(struct fair_share *share, uint64_t uid);

/* Has one of this user's slots a stalled request?  Called before the next one. */
void fair_share_note_stalled_slots(struct fair_share *share, uint64_t uid, bool holds);
/* May a waiting request have a slot, if its user is then charged with `parts`? */
bool fair_share_may_take_slot(const struct fair_share *share, uint64_t uid, uint64_t parts);
/* The slots or blocks that a user would have with one more request, and the most it may have. */
struct fair_share_excess {
        uint32_t slots, slots_max;   /* 0: not these are exceeded, ... */
        uint32_t blocks, blocks_max; /* ... or not these; rounded up */
};
/* Why such a request may have no slot, although its user is not passed over yet. */
struct fair_share_excess fair_share_excess(const struct fair_share *share, uint64_t uid,
                                           uint64_t parts);
/* Would it be within the half that applies while another user waits? */
bool fair_share_is_within_half(const struct fair_share *share, uint64_t uid, uint64_t parts);
/* A waiting request gets a slot. */
void fair_share_take_slot(struct fair_share *share, uint64_t uid, enum request_priority priority,
                          uint64_t now_ns);
/* When a request of this user and class got a slot last; 0: never. */
uint64_t fair_share_turn(const struct fair_share *share, uint64_t uid,
                         enum request_priority priority);
void fair_share_return_slot(struct fair_share *share, uint64_t uid);
void fair_share_reserve(struct fair_share *share, uint64_t uid, uint32_t blocks);
/* Reserved blocks were allocated, or are not needed any more. */
void fair_share_release(struct fair_share *share, uint64_t uid, uint32_t blocks);
uint32_t fair_share_reserved(const struct fair_share *share, uint64_t uid);
uint32_t fair_share_slots(const struct fair_share *share, uint64_t uid);
/* Does this user have a request alive? */
bool fair_share_has_user(const struct fair_share *share, uint64_t uid);
bool fair_share_is_waiting(const struct fair_share *share, uint64_t uid);

void fair_share_charge(struct fair_share *share, uint64_t uid, uint64_t ns);
/* Counts a stalled request that waits, for the next call of fair_share_limit_credit(). */
void fair_share_count_stalled(struct fair_share *share, uint64_t uid);
/* All users of a step are charged: raises the accounts of content users that are too far behind. */
void fair_share_limit_credit(struct fair_share *share);
uint64_t fair_share_served(const struct fair_share *share, uint64_t uid);

/* Begins a new pass over the queue, from its front. */
void fair_share_begin_pass(struct fair_share *share);
/* This user, who would be charged with `parts`, gets no slot until the next pass. */
void fair_share_pass_over(struct fair_share *share, uint64_t uid, uint64_t parts);
bool fair_share_is_passed_over(const struct fair_share *share, uint64_t uid);

/* Asserts that the sums over all users are these. */
void fair_share_check(const struct fair_share *share, uint32_t waiting, uint32_t slots,
                      uint32_t reserved);

#endif
