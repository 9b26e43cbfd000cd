#include "daemon/core/pool-map.h"

#include <stdlib.h>

#include "daemon/core/sched-state.h"

/* Blocks looked at in one part: the next step waits for it.  Each costs a read from memory. */
#define BLOCKS_A_PART 4096u

struct pool_map *pool_map_new(uint32_t blocks)
{
        struct pool_map *map = calloc(1, sizeof(*map) + blocks * sizeof(map->at[0]));

        if (map)
                map->blocks = blocks;
        return map;
}

struct pool_map *pool_map_free(struct pool_map *map)
{
        free(map);
        return NULL;
}

void pool_map_begin(struct pool_map *map)
{
        map->blocks_done = 0;
        map->pin_next = 1;
}

static struct pool_block describe(const struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block];
        uint32_t refs = prefix->pool.ref_counts[block];

        if (!refs && !node->filled)
                return (struct pool_block){ .state = POOL_FREE };
        return (struct pool_block){
                .domain = node->domain,
                .refs = (uint16_t)(refs < UINT16_MAX ? refs : UINT16_MAX),
                .state = refs ? POOL_IN_USE : POOL_CACHED,
        };
}

/*
 * A pin protects all blocks before it, too.  Those before a marked one are marked already.  Returns
 * how many blocks were looked at.
 */
static uint32_t mark_pin(const struct prefix *prefix, struct pool_map *map, block_t block)
{
        uint32_t looked = 1;

        for (; block != BLOCK_NONE; block = prefix->nodes[block].parent, looked++) {
                if (block >= map->blocks)
                        continue; /* it is in the swap; what is before it may be in the pool */
                if (map->at[block].state == POOL_PINNED)
                        break;
                if (map->at[block].state == POOL_CACHED)
                        map->at[block].state = POOL_PINNED;
        }
        return looked;
}

bool sched_map(const struct sched *sched, struct pool_map *map)
{
        const struct prefix *prefix = &sched->prefix;
        uint32_t looked = 0;

        assert(map->blocks == prefix->pool.total);
        for (; map->blocks_done < map->blocks && looked < BLOCKS_A_PART; looked++) {
                map->at[map->blocks_done] = describe(prefix, map->blocks_done);
                map->blocks_done++;
        }
        while (map->pin_next <= prefix->conf.pins && looked < BLOCKS_A_PART)
                looked += mark_pin(prefix, map, prefix->pins[map->pin_next++].block);
        return map->blocks_done == map->blocks && map->pin_next > prefix->conf.pins;
}
