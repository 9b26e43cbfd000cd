#include "daemon/core/fair-share.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int fair_share_init(struct fair_share *share, uint32_t users_max, uint32_t slots, uint32_t blocks,
                    uint32_t user_blocks)
{
        *share = (struct fair_share){
                .at = calloc(users_max, sizeof(*share->at)),
                .max = users_max,
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

static struct share_user *find_user(const struct fair_share *share, uint32_t uid)
{
        for (uint32_t i = 0; i < share->count; i++)
                if (share->at[i].uid == uid)
                        return &share->at[i];
        return NULL;
}

static struct share_user *user_of(const struct fair_share *share, uint32_t uid)
{
        struct share_user *user = find_user(share, uid);

        assert(user);
        return user;
}

static void add_waiting(struct fair_share *share, struct share_user *user)
{
        if (user->waiting++ == 0)
                share->waiting_users++;
}

/* The smallest account of the users with a request in this class, or 0 if there are none. */
static uint64_t least_served(const struct fair_share *share, enum request_priority priority)
{
        uint64_t least = UINT64_MAX;

        for (uint32_t i = 0; i < share->count; i++)
                if (share->at[i].alive_by_priority[priority] &&
                    share->at[i].served[priority] < least)
                        least = share->at[i].served[priority];
        return least == UINT64_MAX ? 0 : least;
}

void fair_share_add_request(struct fair_share *share, uint32_t uid, enum request_priority priority)
{
        struct share_user *user = find_user(share, uid);

        if (!user) {
                assert(share->count < share->max);
                user = &share->at[share->count++];
                *user = (struct share_user){ .uid = uid };
        }
        if (!user->alive_by_priority[priority]) {
                uint64_t least = least_served(share, priority);

                if (user->served[priority] < least)
                        user->served[priority] = least;
        }
        user->alive_by_priority[priority]++;
        user->alive++;
        add_waiting(share, user);
}

static void remove_waiting(struct fair_share *share, struct share_user *user)
{
        assert(user->waiting);
        if (--user->waiting == 0)
                share->waiting_users--;
}

void fair_share_cancel_waiting(struct fair_share *share, uint32_t uid)
{
        remove_waiting(share, user_of(share, uid));
}

void fair_share_remove_request(struct fair_share *share, uint32_t uid,
                               enum request_priority priority)
{
        struct share_user *user = user_of(share, uid);

        assert(user->alive && user->alive_by_priority[priority]);
        user->alive_by_priority[priority]--;
        if (--user->alive)
                return;
        assert(!user->waiting && !user->slots && !user->reserved);
        *user = share->at[--share->count];
}

bool fair_share_is_within_half(const struct fair_share *share, uint32_t uid, uint64_t parts)
{
        const struct share_user *user = user_of(share, uid);

        if (!user->slots)
                return true;
        return (user->slots + 1) * 2ull <= share->slots && parts * 2 <= share->blocks * BLOCK_PARTS;
}

bool fair_share_may_take_slot(const struct fair_share *share, uint32_t uid, uint64_t parts)
{
        const struct share_user *user = user_of(share, uid);

        assert(user->waiting);
        if (user->passed_in == share->pass)
                return false;
        if (share->user_blocks && parts > share->user_blocks * BLOCK_PARTS)
                return false;
        return share->waiting_users == 1 || fair_share_is_within_half(share, uid, parts);
}

void fair_share_requeue(struct fair_share *share, uint32_t uid)
{
        add_waiting(share, user_of(share, uid));
}

void fair_share_charge(struct fair_share *share, uint32_t uid, enum request_priority priority,
                       uint32_t amount)
{
        user_of(share, uid)->served[priority] += amount;
}

uint64_t fair_share_served(const struct fair_share *share, uint32_t uid,
                           enum request_priority priority)
{
        return user_of(share, uid)->served[priority];
}

bool fair_share_is_passed_over(const struct fair_share *share, uint32_t uid)
{
        return user_of(share, uid)->passed_in == share->pass;
}

void fair_share_begin_pass(struct fair_share *share)
{
        share->pass++;
}

void fair_share_pass_over(struct fair_share *share, uint32_t uid)
{
        user_of(share, uid)->passed_in = share->pass;
}

void fair_share_take_slot(struct fair_share *share, uint32_t uid)
{
        struct share_user *user = user_of(share, uid);

        remove_waiting(share, user);
        user->slots++;
}

void fair_share_return_slot(struct fair_share *share, uint32_t uid)
{
        struct share_user *user = user_of(share, uid);

        assert(user->slots);
        user->slots--;
}

void fair_share_reserve(struct fair_share *share, uint32_t uid, uint32_t blocks)
{
        user_of(share, uid)->reserved += blocks;
}

void fair_share_release(struct fair_share *share, uint32_t uid, uint32_t blocks)
{
        struct share_user *user = user_of(share, uid);

        assert(user->reserved >= blocks);
        user->reserved -= blocks;
}

uint32_t fair_share_reserved(const struct fair_share *share, uint32_t uid)
{
        return user_of(share, uid)->reserved;
}

bool fair_share_has_user(const struct fair_share *share, uint32_t uid)
{
        return find_user(share, uid);
}

void fair_share_check(const struct fair_share *share, uint32_t waiting, uint32_t slots,
                      uint32_t reserved)
{
        uint32_t users = 0;

        for (uint32_t i = 0; i < share->count; i++) {
                const struct share_user *user = &share->at[i];

                uint32_t alive = 0;

                for (int priority = 0; priority < REQUEST_PRIORITY_N; priority++)
                        alive += user->alive_by_priority[priority];
                assert(alive == user->alive);
                assert(user->alive >= user->waiting + user->slots);
                assert(find_user(share, user->uid) == user);
                users += user->waiting > 0;
                waiting -= user->waiting;
                slots -= user->slots;
                reserved -= user->reserved;
        }
        assert(users == share->waiting_users && !waiting && !slots && !reserved);
}
