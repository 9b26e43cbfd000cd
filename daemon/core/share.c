#include "daemon/core/share.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int shares_init(struct shares *shares, uint32_t users_max, uint32_t slots, uint32_t blocks,
                uint32_t user_blocks)
{
        *shares = (struct shares){
                .at = calloc(users_max, sizeof(*shares->at)),
                .max = users_max,
                .slots = slots,
                .blocks = blocks,
                .user_blocks = user_blocks,
                .look = 1, /* with 0, all users would count as passed over */
        };
        return shares->at ? 0 : -ENOMEM;
}

void shares_deinit(struct shares *shares)
{
        free(shares->at);
        shares->at = NULL;
}

static struct share *find(const struct shares *shares, uint32_t uid)
{
        for (uint32_t i = 0; i < shares->count; i++)
                if (shares->at[i].uid == uid)
                        return &shares->at[i];
        return NULL;
}

static struct share *known(const struct shares *shares, uint32_t uid)
{
        struct share *share = find(shares, uid);

        assert(share);
        return share;
}

static void wait_more(struct shares *shares, struct share *share)
{
        if (share->waiting++ == 0)
                shares->waiting_users++;
}

/* The smallest account of the users with a request in this class, or 0 if there are none. */
static uint64_t least_served(const struct shares *shares, enum request_class class)
{
        uint64_t least = UINT64_MAX;

        for (uint32_t i = 0; i < shares->count; i++)
                if (shares->at[i].alive_in[class] && shares->at[i].served[class] < least)
                        least = shares->at[i].served[class];
        return least == UINT64_MAX ? 0 : least;
}

void share_come(struct shares *shares, uint32_t uid, enum request_class class)
{
        struct share *share = find(shares, uid);

        if (!share) {
                assert(shares->count < shares->max);
                share = &shares->at[shares->count++];
                *share = (struct share){ .uid = uid };
        }
        if (!share->alive_in[class]) {
                uint64_t least = least_served(shares, class);

                if (share->served[class] < least)
                        share->served[class] = least;
        }
        share->alive_in[class]++;
        share->alive++;
        wait_more(shares, share);
}

static void wait_no_more(struct shares *shares, struct share *share)
{
        assert(share->waiting);
        if (--share->waiting == 0)
                shares->waiting_users--;
}

void share_give_up(struct shares *shares, uint32_t uid)
{
        wait_no_more(shares, known(shares, uid));
}

void share_forget(struct shares *shares, uint32_t uid, enum request_class class)
{
        struct share *share = known(shares, uid);

        assert(share->alive && share->alive_in[class]);
        share->alive_in[class]--;
        if (--share->alive)
                return;
        assert(!share->waiting && !share->slots && !share->promised);
        *share = shares->at[--shares->count];
}

bool share_is_within(const struct shares *shares, uint32_t uid, uint64_t parts)
{
        const struct share *share = known(shares, uid);

        if (!share->slots)
                return true;
        return (share->slots + 1) * 2ull <= shares->slots &&
               parts * 2 <= shares->blocks * SHARE_PARTS;
}

bool share_may_take(const struct shares *shares, uint32_t uid, uint64_t parts)
{
        const struct share *share = known(shares, uid);

        assert(share->waiting);
        if (share->passed == shares->look)
                return false;
        if (shares->user_blocks && parts > shares->user_blocks * SHARE_PARTS)
                return false;
        return shares->waiting_users == 1 || share_is_within(shares, uid, parts);
}

void share_wait_again(struct shares *shares, uint32_t uid)
{
        wait_more(shares, known(shares, uid));
}

void share_charge(struct shares *shares, uint32_t uid, enum request_class class, uint32_t amount)
{
        known(shares, uid)->served[class] += amount;
}

uint64_t share_served(const struct shares *shares, uint32_t uid, enum request_class class)
{
        return known(shares, uid)->served[class];
}

bool share_is_passed_over(const struct shares *shares, uint32_t uid)
{
        return known(shares, uid)->passed == shares->look;
}

void share_look(struct shares *shares)
{
        shares->look++;
}

void share_pass_over(struct shares *shares, uint32_t uid)
{
        known(shares, uid)->passed = shares->look;
}

void share_take(struct shares *shares, uint32_t uid)
{
        struct share *share = known(shares, uid);

        wait_no_more(shares, share);
        share->slots++;
}

void share_give_back(struct shares *shares, uint32_t uid)
{
        struct share *share = known(shares, uid);

        assert(share->slots);
        share->slots--;
}

void share_promise(struct shares *shares, uint32_t uid, uint32_t blocks)
{
        known(shares, uid)->promised += blocks;
}

void share_redeem(struct shares *shares, uint32_t uid, uint32_t blocks)
{
        struct share *share = known(shares, uid);

        assert(share->promised >= blocks);
        share->promised -= blocks;
}

uint32_t share_promised(const struct shares *shares, uint32_t uid)
{
        return known(shares, uid)->promised;
}

bool share_is_there(const struct shares *shares, uint32_t uid)
{
        return find(shares, uid);
}

void shares_check(const struct shares *shares, uint32_t waiting, uint32_t slots, uint32_t promised)
{
        uint32_t users = 0;

        for (uint32_t i = 0; i < shares->count; i++) {
                const struct share *share = &shares->at[i];

                uint32_t alive = 0;

                for (int class = 0; class < REQUEST_CLASS_N; class ++)
                        alive += share->alive_in[class];
                assert(alive == share->alive);
                assert(share->alive >= share->waiting + share->slots);
                assert(find(shares, share->uid) == share);
                users += share->waiting > 0;
                waiting -= share->waiting;
                slots -= share->slots;
                promised -= share->promised;
        }
        assert(users == shares->waiting_users && !waiting && !slots && !promised);
}
