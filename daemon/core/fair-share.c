#include "daemon/core/fair-share.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int fair_share_init(struct fair_share *share, uint32_t users_max, uint32_t slots, uint32_t blocks,
                    uint32_t user_blocks, uint64_t lead_ns)
{
        *share = (struct fair_share){
                .at = calloc((size_t)users_max + SHARE_AWAY_MAX, sizeof(*share->at)),
                .max = users_max + SHARE_AWAY_MAX,
                .lead_ns = lead_ns,
                .slots = slots,
                .blocks = blocks,
                .user_blocks = user_blocks,
                .pass = 1, /* with 0, all users would count as passed over */
        };
        return share->at ? 0 : -ENOMEM;
}

void fair_share_deinit(struct fair_share *share)
{
        free(share->at);
        share->at = NULL;
}

static struct share_user *find_user(const struct fair_share *share, uint64_t uid)
{
        for (uint32_t i = 0; i < share->count; i++)
                if (share->at[i].uid == uid)
                        return &share->at[i];
        return NULL;
}

/* A user that is present. */
static struct share_user *user_of(const struct fair_share *share, uint64_t uid)
{
        struct share_user *user = find_user(share, uid);

        assert(user && user->alive);
        return user;
}

/* The smallest account of the users present, or 0 if there are none. */
static uint64_t least_served(const struct fair_share *share)
{
        uint64_t least = UINT64_MAX;

        for (uint32_t i = 0; i < share->count; i++)
                if (share->at[i].alive && share->at[i].served_ns < least)
                        least = share->at[i].served_ns;
        return least == UINT64_MAX ? 0 : least;
}

/* The entry to be used again for a new user: the table is full of users that may have debts. */
static struct share_user *least_away(struct fair_share *share)
{
        struct share_user *least = NULL;

        for (uint32_t i = 0; i < share->count; i++) {
                struct share_user *user = &share->at[i];

                if (!user->alive && (!least || user->served_ns < least->served_ns))
                        least = user;
        }
        assert(least);
        return least;
}

static struct share_user *add_user(struct fair_share *share, uint64_t uid)
{
        struct share_user *user =
                share->count < share->max ? &share->at[share->count++] : least_away(share);

        *user = (struct share_user){ .uid = uid };
        return user;
}

void fair_share_add_request(struct fair_share *share, uint64_t uid)
{
        struct share_user *user = find_user(share, uid);

        if (!user)
                user = add_user(share, uid);
        if (!user->alive) {
                uint64_t least = least_served(share);

                if (user->served_ns < least)
                        user->served_ns = least;
                share->present++;
        }
        user->alive++;
}

void fair_share_add_waiting(struct fair_share *share, uint64_t uid)
{
        user_of(share, uid)->waiting++;
}

static void remove_waiting(struct share_user *user)
{
        assert(user->waiting);
        user->waiting--;
}

void fair_share_cancel_waiting(struct fair_share *share, uint64_t uid)
{
        remove_waiting(user_of(share, uid));
}

void fair_share_remove_request(struct fair_share *share, uint64_t uid)
{
        struct share_user *user = user_of(share, uid);

        if (--user->alive)
                return;
        assert(!user->waiting && !user->slots && !user->reserved);
        if (--share->present == 0)
                share->count = 0;
}

/*
 * Does another user wait that was not served clearly more?  A user whose clients do not read, so
 * that its slots stand still, is served nothing, and so it would always come first: for such a
 * user every other one counts.
 */
static bool another_waits(const struct fair_share *share, const struct share_user *user)
{
        for (uint32_t i = 0; i < share->count; i++) {
                const struct share_user *other = &share->at[i];

                if (other != user && other->waiting &&
                    (user->holds_stalled || other->served_ns < user->served_ns + share->lead_ns))
                        return true;
        }
        return false;
}

bool fair_share_is_within_half(const struct fair_share *share, uint64_t uid, uint64_t parts)
{
        const struct share_user *user = user_of(share, uid);

        if (!user->slots)
                return true;
        return (user->slots + 1) * 2ull <= share->slots && parts * 2 <= share->blocks * BLOCK_PARTS;
}

static bool is_over_limit(const struct fair_share *share, uint64_t parts)
{
        return share->user_blocks && parts > share->user_blocks * BLOCK_PARTS;
}

bool fair_share_may_take_slot(const struct fair_share *share, uint64_t uid, uint64_t parts)
{
        const struct share_user *user = user_of(share, uid);

        assert(user->waiting);
        if (user->passed_in == share->pass)
                return false;
        if (is_over_limit(share, parts))
                return false;
        return !another_waits(share, user) || fair_share_is_within_half(share, uid, parts);
}

struct fair_share_excess fair_share_excess(const struct fair_share *share, uint64_t uid,
                                           uint64_t parts)
{
        uint64_t whole = parts / BLOCK_PARTS + (parts % BLOCK_PARTS > 0);
        uint32_t blocks = whole < UINT32_MAX ? (uint32_t)whole : UINT32_MAX;
        uint32_t slots = user_of(share, uid)->slots + 1;

        if (is_over_limit(share, parts))
                return (struct fair_share_excess){ .blocks = blocks,
                                                   .blocks_max = share->user_blocks };
        if (slots * 2ull > share->slots)
                return (struct fair_share_excess){ .slots = slots, .slots_max = share->slots / 2 };
        return (struct fair_share_excess){ .blocks = blocks, .blocks_max = share->blocks / 2 };
}

void fair_share_note_stalled_slots(struct fair_share *share, uint64_t uid, bool holds)
{
        user_of(share, uid)->holds_stalled = holds;
}

void fair_share_charge(struct fair_share *share, uint64_t uid, uint64_t ns)
{
        user_of(share, uid)->served_ns += ns;
}

void fair_share_count_stalled(struct fair_share *share, uint64_t uid)
{
        user_of(share, uid)->stalled++;
}

static bool is_content(const struct share_user *user)
{
        return user->waiting == user->stalled || user->limited;
}

void fair_share_limit_credit(struct fair_share *share)
{
        uint64_t most = 0, credit = SHARE_CREDIT * share->lead_ns;

        for (uint32_t i = 0; i < share->count; i++)
                if (share->at[i].alive && share->at[i].served_ns > most)
                        most = share->at[i].served_ns;
        for (uint32_t i = 0; i < share->count; i++) {
                struct share_user *user = &share->at[i];

                if (user->alive && is_content(user) && user->served_ns + credit < most)
                        user->served_ns = most - credit;
                user->stalled = 0;
        }
}

uint64_t fair_share_served(const struct fair_share *share, uint64_t uid)
{
        return user_of(share, uid)->served_ns;
}

bool fair_share_is_passed_over(const struct fair_share *share, uint64_t uid)
{
        return user_of(share, uid)->passed_in == share->pass;
}

void fair_share_begin_pass(struct fair_share *share)
{
        share->pass++;
}

void fair_share_pass_over(struct fair_share *share, uint64_t uid, uint64_t parts)
{
        struct share_user *user = user_of(share, uid);

        user->passed_in = share->pass;
        user->limited = is_over_limit(share, parts);
}

void fair_share_take_slot(struct fair_share *share, uint64_t uid, enum request_priority priority,
                          uint64_t now_ns)
{
        struct share_user *user = user_of(share, uid);

        remove_waiting(user);
        user->slots++;
        user->turn_ns[priority] = now_ns;
        user->limited = false;
}

uint64_t fair_share_turn(const struct fair_share *share, uint64_t uid,
                         enum request_priority priority)
{
        return user_of(share, uid)->turn_ns[priority];
}

void fair_share_return_slot(struct fair_share *share, uint64_t uid)
{
        struct share_user *user = user_of(share, uid);

        assert(user->slots);
        user->slots--;
        user->limited = false;
}

void fair_share_reserve(struct fair_share *share, uint64_t uid, uint32_t blocks)
{
        user_of(share, uid)->reserved += blocks;
}

void fair_share_release(struct fair_share *share, uint64_t uid, uint32_t blocks)
{
        struct share_user *user = user_of(share, uid);

        assert(user->reserved >= blocks);
        user->reserved -= blocks;
}

uint32_t fair_share_reserved(const struct fair_share *share, uint64_t uid)
{
        return user_of(share, uid)->reserved;
}

uint32_t fair_share_slots(const struct fair_share *share, uint64_t uid)
{
        return user_of(share, uid)->slots;
}

bool fair_share_has_user(const struct fair_share *share, uint64_t uid)
{
        const struct share_user *user = find_user(share, uid);

        return user && user->alive;
}

bool fair_share_is_waiting(const struct fair_share *share, uint64_t uid)
{
        return user_of(share, uid)->waiting;
}

void fair_share_check(const struct fair_share *share, uint32_t waiting, uint32_t slots,
                      uint32_t reserved)
{
        uint32_t present = 0;

        for (uint32_t i = 0; i < share->count; i++) {
                const struct share_user *user = &share->at[i];

                assert(user->alive >= user->waiting + user->slots);
                assert(find_user(share, user->uid) == user);
                present += user->alive > 0;
                waiting -= user->waiting;
                slots -= user->slots;
                reserved -= user->reserved;
        }
        assert(present == share->present && !waiting && !slots && !reserved);
}
