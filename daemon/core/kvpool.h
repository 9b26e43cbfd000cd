/*
 * KV block pool.
 *
 * A block is 16 positions of keys and values for every layer.  The pool deals in
 * block numbers, never addresses: only the backend knows where block 7 is.
 * Blocks are counted, not owned: a prefix shared by three sequences is held
 * three times.  After the last drop a block is kept, with what is in it, until it
 * is held again or given up to be dealt anew; who drops it says which.
 *
 *      free + kept + held == total,  and  held == blocks with count > 0
 *
 * kvpool_check() proves that sum.  Engine thread only; nothing here allocates
 * after kvpool_init().
 */
#ifndef DAEMON_CORE_KVPOOL_H
#define DAEMON_CORE_KVPOOL_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_POSITIONS 16u

typedef uint32_t block_t;

#define BLOCK_NONE UINT32_MAX

struct kvpool {
        uint32_t total;
        uint32_t free_count, kept_count;
        block_t *free_stack; /* free_count block numbers, LIFO: warm first */
        uint32_t *holds;     /* per block; 0: it is kept, or on the free stack */
};

int kvpool_init(struct kvpool *pool, uint32_t total); /* 0 or -ENOMEM */
void kvpool_deinit(struct kvpool *pool);

block_t kvpool_take(struct kvpool *pool);                /* count = 1; there must be one free */
void kvpool_hold(struct kvpool *pool, block_t block);    /* count + 1; of one held or kept */
bool kvpool_drop(struct kvpool *pool, block_t block);    /* count - 1; true: it is kept now */
void kvpool_give_up(struct kvpool *pool, block_t block); /* one that is kept is free */

static inline uint32_t kvpool_held(const struct kvpool *pool)
{
        return pool->total - pool->free_count - pool->kept_count;
}

/* Walks everything and asserts what must hold. */
void kvpool_check(const struct kvpool *pool);

static inline uint32_t blocks_for(uint32_t positions)
{
        return (positions + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
}

#endif
