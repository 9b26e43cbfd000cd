/*
 * The auditor of the pool map: it must agree with the counts, in sum and for each user.  The counts
 * are audited on their own.  A map takes a walk over the pool, so one plan in MAP_EVERY is enough.
 */
#include "tests/sim/sim.h"

#include <assert.h>

#include "daemon/core/pool-map.h"

#define MAP_EVERY 32u

struct sums {
        uint32_t free, cached, in_use, shared;
};

/* With `uid`: only the blocks of this user. */
static struct sums sum_up(const struct pool_map *map, const uint64_t *uid)
{
        struct sums sums = { 0 };

        for (uint32_t i = 0; i < map->blocks; i++) {
                const struct pool_block *block = &map->at[i];

                if (uid && (block->state == POOL_FREE || block->domain != *uid))
                        continue;
                sums.free += block->state == POOL_FREE;
                sums.cached += block->state == POOL_CACHED || block->state == POOL_PINNED;
                sums.in_use += block->state == POOL_IN_USE;
                sums.shared += block->refs > 1;
        }
        return sums;
}

static void audit_users_of(struct sim *sim, const struct pool_map *map)
{
        struct sched_user users[SIM_REQUESTS];
        uint32_t count = sched_users(sim->sched, users, SIM_REQUESTS);

        for (uint32_t i = 0; i < count; i++) {
                struct sums sums = sum_up(map, &users[i].uid);

                sim_must(sim, sums.cached == users[i].cached,
                         "user %u has %u cached blocks, the map shows %u", (unsigned)users[i].uid,
                         users[i].cached, sums.cached);
        }
}

void audit_map(struct sim *sim)
{
        struct sched_counts counts;
        struct pool_map *map;
        struct sums sums;

        if (sim->plan.number % MAP_EVERY)
                return;
        sched_count(sim->sched, &counts);
        map = pool_map_new(counts.blocks_total);
        assert(map);
        pool_map_begin(map);
        while (!sched_map(sim->sched, map))
                ;
        sums = sum_up(map, NULL);
        sim_must(sim,
                 sums.free == counts.blocks_free && sums.cached == counts.blocks_cached &&
                         sums.in_use == counts.blocks_in_use && sums.shared == counts.blocks_shared,
                 "the map shows %u free, %u cached, %u used and %u shared blocks", sums.free,
                 sums.cached, sums.in_use, sums.shared);
        audit_users_of(sim, map);
        pool_map_free(map);
}
