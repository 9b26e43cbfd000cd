/*
 * What a user is charged of the pool.
 *
 * What is promised to his sequences; each of his own blocks that anybody holds, once,
 * however many sequences share it; and his part of what is public, which is one of as many
 * as hold it.  So eight forks of a long history have it once, and the sum over everybody
 * is what is really held and promised.
 *
 * Nobody but he can hold what is his own, so the index counts that as it goes.  What is
 * public stands at the front of a page table, and is counted when somebody asks.
 */
#include "daemon/core/sched-state.h"

static uint64_t public_parts(const struct sched *sched, const struct slot *slot)
{
        const struct prefix *prefix = &sched->prefix;
        uint64_t parts = 0;

        for (uint32_t i = 0; i < slot->block_count; i++) {
                if (!prefix_is_public(prefix->named[slot->blocks[i]].domain))
                        break; /* and so are all that follow */
                parts += SHARE_PARTS / prefix->pool.holds[slot->blocks[i]];
        }
        if (slot->tail != BLOCK_NONE && prefix_is_public(prefix->named[slot->tail].domain))
                parts += SHARE_PARTS / prefix->pool.holds[slot->tail];
        return parts;
}

uint64_t sched_charge(const struct sched *sched, uint32_t uid)
{
        uint64_t blocks = share_promised(&sched->shares, uid), parts = 0;

        blocks += prefix_held_by(&sched->prefix, uid);
        for (uint32_t i = 0; i < sched->conf.slots; i++)
                if (sched->slots[i].request && sched->slots[i].request->uid == uid)
                        parts += public_parts(sched, &sched->slots[i]);
        return blocks * SHARE_PARTS + parts;
}

uint64_t sched_charge_with(const struct sched *sched, const struct slot *slot)
{
        uint64_t parts = sched_charge(sched, slot->request->uid);

        if (slot == &sched->probe)
                parts += public_parts(sched, slot);
        return parts + (uint64_t)slot->promised * SHARE_PARTS;
}

uint32_t sched_users(const struct sched *sched, struct sched_user *users, uint32_t max)
{
        const struct shares *shares = &sched->shares;
        const struct prefix *prefix = &sched->prefix;
        uint32_t count = 0;

        for (uint32_t i = 0; i < shares->count && count < max; i++) {
                uint32_t uid = shares->at[i].uid;

                users[count++] = (struct sched_user){
                        .uid = uid,
                        .blocks = (uint32_t)((sched_charge(sched, uid) + SHARE_PARTS - 1) /
                                             SHARE_PARTS),
                        .cached = prefix_kept_by(prefix, uid),
                };
        }
        for (uint32_t i = 0; i < prefix->giver_count && count < max; i++) {
                const struct owner *owner = &prefix->owners[prefix->givers[i]];

                if (!prefix_is_public(owner->domain) &&
                    !share_is_there(shares, (uint32_t)owner->domain))
                        users[count++] = (struct sched_user){
                                .uid = (uint32_t)owner->domain,
                                .cached = owner->kept,
                        };
        }
        return count;
}
