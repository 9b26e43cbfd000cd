#include "daemon/core/share.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int shares_init(struct shares *shares, uint32_t users_max, uint32_t slots, uint32_t blocks)
{
        *shares = (struct shares){
                .at = calloc(users_max, sizeof(*shares->at)),
                .max = users_max,
                .slots = slots,
                .blocks = blocks,
                .look = 1, /* else everybody has been passed over */
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

void share_wait(struct shares *shares, uint32_t uid)
{
        struct share *share = find(shares, uid);

        if (!share) {
                assert(shares->count < shares->max);
                share = &shares->at[shares->count++];
                *share = (struct share){ .uid = uid };
        }
        share->alive++;
        if (share->waiting++ == 0)
                shares->waiting_users++;
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

void share_forget(struct shares *shares, uint32_t uid)
{
        struct share *share = known(shares, uid);

        assert(share->alive);
        if (--share->alive)
                return;
        assert(!share->waiting && !share->slots && !share->blocks);
        *share = shares->at[--shares->count];
}

bool share_may_take(const struct shares *shares, uint32_t uid, uint32_t blocks)
{
        const struct share *share = known(shares, uid);

        assert(share->waiting);
        if (share->passed == shares->look)
                return false;
        if (shares->waiting_users == 1 || !share->slots)
                return true;
        return (share->slots + 1) * 2ull <= shares->slots &&
               (share->blocks + blocks) * 2 <= shares->blocks;
}

void share_look(struct shares *shares)
{
        shares->look++;
}

void share_pass_over(struct shares *shares, uint32_t uid)
{
        known(shares, uid)->passed = shares->look;
}

void share_take(struct shares *shares, uint32_t uid, uint32_t blocks)
{
        struct share *share = known(shares, uid);

        wait_no_more(shares, share);
        share->slots++;
        share->blocks += blocks;
}

void share_give_back(struct shares *shares, uint32_t uid, uint32_t blocks)
{
        struct share *share = known(shares, uid);

        assert(share->slots && share->blocks >= blocks);
        share->slots--;
        share->blocks -= blocks;
}

void shares_check(const struct shares *shares, uint32_t waiting, uint32_t slots, uint64_t blocks)
{
        uint32_t users = 0;

        for (uint32_t i = 0; i < shares->count; i++) {
                const struct share *share = &shares->at[i];

                assert(share->alive >= share->waiting + share->slots);
                assert(find(shares, share->uid) == share);
                users += share->waiting > 0;
                waiting -= share->waiting;
                slots -= share->slots;
                blocks -= share->blocks;
        }
        assert(users == shares->waiting_users && !waiting && !slots && !blocks);
}
