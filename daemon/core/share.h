/*
 * Shares: what each user (uid) has of the slots and the blocks, and what he has had.
 *
 * Nobody takes more than half of either while somebody else waits, nor ever more blocks
 * than one user may have.  Who has no slot may always begin, however large his request: else it
 * never could.  What blocks he has, shared ones in parts, charge.c says.
 * Behind one who was passed over his user's others wait, else they could keep a
 * large one of his own waiting for ever.
 *
 * The next slot is for who has been served least: a user has an account in each
 * class, which is charged with the rows that are computed for him, one that makes
 * a token for two.  (A virtual token counter: Sheng and others, 2024.)  So a user of
 * a hundred requests and a user of one get the same.  Who comes begins with no less
 * than the least of those who are there: nobody saves up by staying away.
 *
 * A user is in the table as long as he has a request alive; they are few, so it
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
        uint32_t alive, waiting; /* requests; the others have a slot or are ending */
        uint32_t alive_in[REQUEST_CLASS_N];
        uint64_t served[REQUEST_CLASS_N];
        uint32_t slots;
        uint32_t promised; /* blocks, to all of them */
        uint64_t passed;   /* the look in which one of his was passed over, last */
};

struct shares {
        struct share *at;
        uint32_t count, max;
        uint32_t waiting_users;
        uint64_t look;          /* at the line: so many */
        uint32_t slots, blocks; /* there are in all */
        uint32_t user_blocks;   /* ... and for one user, at most; 0: all */
};

/* Blocks that are shared are reckoned in parts of one. */
#define SHARE_PARTS UINT64_C(65536)

int shares_init(struct shares *shares, uint32_t users_max, uint32_t slots, uint32_t blocks,
                uint32_t user_blocks);
void shares_deinit(struct shares *shares);

/* One more is alive, and waits. */
void share_come(struct shares *shares, uint32_t uid, enum request_class class);
void share_give_up(struct shares *shares, uint32_t uid); /* one waits no longer, and gets nothing */
void share_forget(struct shares *shares, uint32_t uid, enum request_class class); /* ... is gone */

/* May one who waits have a slot, if so many parts of blocks are his user's then? */
bool share_may_take(const struct shares *shares, uint32_t uid, uint64_t parts);
/* ... also if somebody else waited? */
bool share_is_within(const struct shares *shares, uint32_t uid, uint64_t parts);
void share_take(struct shares *shares, uint32_t uid);
void share_give_back(struct shares *shares, uint32_t uid);
void share_promise(struct shares *shares, uint32_t uid, uint32_t blocks);
void share_redeem(struct shares *shares, uint32_t uid, uint32_t blocks); /* or give up */
uint32_t share_promised(const struct shares *shares, uint32_t uid);
bool share_is_there(const struct shares *shares, uint32_t uid); /* has a request alive */
void share_wait_again(struct shares *shares, uint32_t uid);     /* one who has given all back */

void share_charge(struct shares *shares, uint32_t uid, enum request_class class, uint32_t amount);
uint64_t share_served(const struct shares *shares, uint32_t uid, enum request_class class);

void share_look(struct shares *shares);                    /* at the line, from its front */
void share_pass_over(struct shares *shares, uint32_t uid); /* nothing for him until the next look */
bool share_is_passed_over(const struct shares *shares, uint32_t uid);

/* Asserts the sums over everybody. */
void shares_check(const struct shares *shares, uint32_t waiting, uint32_t slots, uint32_t promised);

#endif
