/*
 * The pool map: for people, what each block of the KV pool is used for.
 *
 * A pool has up to millions of blocks, and the engine has other work.  So the map is filled in
 * parts, between steps: first the blocks, then the pins.  What changes meanwhile may be missing in
 * it; nothing but a picture depends on it.  Blocks of the swap are not in it.
 *
 * The thread that wants the map owns it, except while the engine fills it.
 */
#ifndef DAEMON_CORE_POOL_MAP_H
#define DAEMON_CORE_POOL_MAP_H

#include <stdbool.h>
#include <stdint.h>

enum pool_block_state {
        POOL_FREE,   /* holds nothing */
        POOL_CACHED, /* no sequence uses it, but the prefix index has it */
        POOL_IN_USE,
        POOL_PINNED, /* as CACHED, and part of a pinned or published history */
        POOL_HIDDEN, /* only for viewers: of another user, or free (daemon/edge/op-pool.h) */
};

struct pool_block {
        uint64_t domain; /* that it belongs to (prefix.h); of a free block: 0 */
        uint16_t refs;   /* sequences that use it; at most UINT16_MAX */
        uint8_t state;   /* enum pool_block_state */
};

struct pool_map {
        uint32_t blocks;                /* all of the pool */
        uint32_t blocks_done, pin_next; /* how far it is filled */
        struct pool_block at[];         /* by block number */
};

struct pool_map *pool_map_new(uint32_t blocks); /* NULL: out of memory */
struct pool_map *pool_map_free(struct pool_map *map);

/* The map is to be filled anew. */
void pool_map_begin(struct pool_map *map);

struct sched;

/* Engine thread: fills the next part.  True: it was the last one. */
bool sched_map(const struct sched *sched, struct pool_map *map);

#endif
