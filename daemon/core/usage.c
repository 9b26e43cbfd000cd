/*
 * Computes how much of the pool each user uses, and is charged for.
 *
 * The usage of a user has three parts: the blocks reserved for its sequences; each block in use of
 * its own domain, once, however many sequences share it; and its part of the public blocks.
 * If a public block has n references, each sequence that references it is charged one n-th.  So
 * eight forks of a long history are charged for it once.  The sum over all users is the number of
 * blocks that are really in use and reserved.
 *
 * Only the user's own sequences can reference its own blocks, so the index counts those as it
 * goes.  Public blocks are at the front of a page table, and are counted when the usage is needed.
 */
#include "daemon/core/sched-state.h"

static uint64_t public_parts(const struct sched *sched, const struct slot *slot)
{
        const struct prefix *prefix = &sched->prefix;
        uint64_t parts = 0;

        for (uint32_t i = 0; i < slot->block_count; i++) {
                if (!prefix_is_public(prefix->nodes[slot->blocks[i]].domain))
                        break; /* the blocks that follow are not public either */
                parts += BLOCK_PARTS / prefix->pool.ref_counts[slot->blocks[i]];
        }
        if (slot->tail != BLOCK_NONE && prefix_is_public(prefix->nodes[slot->tail].domain))
                parts += BLOCK_PARTS / prefix->pool.ref_counts[slot->tail];
        return parts;
}

uint64_t sched_usage(const struct sched *sched, uint64_t uid)
{
        uint64_t blocks = fair_share_reserved(&sched->fair_share, uid), parts = 0;

        blocks += prefix_in_use_by(&sched->prefix, uid);
        for (uint32_t i = 0; i < sched->conf.slots; i++)
                if (sched->slots[i].request && sched->slots[i].request->uid == uid)
                        parts += public_parts(sched, &sched->slots[i]);
        return blocks * BLOCK_PARTS + parts;
}

uint64_t sched_usage_with(const struct sched *sched, const struct slot *slot)
{
        uint64_t parts = sched_usage(sched, slot->request->uid);

        if (slot == &sched->probe)
                parts += public_parts(sched, slot);
        return parts + (uint64_t)slot->reserved * BLOCK_PARTS;
}

uint32_t sched_users(const struct sched *sched, struct sched_user *users, uint32_t max)
{
        const struct fair_share *fair_share = &sched->fair_share;
        const struct prefix *prefix = &sched->prefix;
        uint32_t count = 0;

        for (uint32_t i = 0; i < fair_share->count && count < max; i++) {
                uint64_t uid = fair_share->at[i].uid;

                if (!fair_share->at[i].alive)
                        continue;
                users[count++] = (struct sched_user){
                        .uid = uid,
                        .blocks = (uint32_t)((sched_usage(sched, uid) + BLOCK_PARTS - 1) /
                                             BLOCK_PARTS),
                        .cached = prefix_cached_by(prefix, uid),
                        .running = fair_share->at[i].slots,
                        .waiting = fair_share->at[i].waiting,
                        .served_ns = fair_share->at[i].served_ns,
                };
        }
        for (uint32_t i = 0; i < prefix->owner_heaps[PREFIX_POOL].count && count < max; i++) {
                uint32_t number = prefix->owner_heaps[PREFIX_POOL].owners[i];
                const struct prefix_owner *owner = &prefix->owners[number];

                if (!prefix_is_public(owner->domain) &&
                    !fair_share_has_user(fair_share, owner->domain))
                        users[count++] = (struct sched_user){
                                .uid = owner->domain,
                                .cached = owner->cached,
                        };
        }
        return count;
}
