/*
 * Computes how much of the pool a user is charged for.
 *
 * The charge of a user has three parts: the blocks promised to its sequences; each held block of
 * its own domain, once, however many sequences share it; and its part of the public blocks.
 * If a public block has n references, each sequence that holds it is charged one n-th.  So eight
 * forks of a long history are charged for it once.  The sum over all users is the number of
 * blocks that are really held and promised.
 *
 * Only the user's own sequences can hold its own blocks, so the index counts those as it goes.
 * Public blocks are at the front of a page table, and are counted when the charge is needed.
 */
#include "daemon/core/sched-state.h"

static uint64_t public_parts(const struct sched *sched, const struct slot *slot)
{
        const struct prefix *prefix = &sched->prefix;
        uint64_t parts = 0;

        for (uint32_t i = 0; i < slot->block_count; i++) {
                if (!prefix_is_public(prefix->named[slot->blocks[i]].domain))
                        break; /* the blocks that follow are not public either */
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
