/*
 * KV block pool.
 *
 * A block is 16 positions of keys and values for every layer.  The pool deals in
 * block numbers, never addresses: only the backend knows where block 7 is.
 * Blocks have a reference count, not an owner: a prefix that three sequences share
 * has three references.  A block without references is kept (cached): its content
 * stays valid until the block is referenced again or given up.  Giving it up puts it
 * on the free stack.  The caller that drops the last reference decides which happens.
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
        block_t *free_stack; /* free_count block numbers, LIFO: the last freed is still warm */
        uint32_t *holds;     /* references of each block; 0: kept, or on the free stack */
};

int kvpool_init(struct kvpool *pool, uint32_t total); /* 0 or -ENOMEM */
void kvpool_deinit(struct kvpool *pool);

/* Takes a free block; its count becomes 1.  At least one block must be free. */
block_t kvpool_take(struct kvpool *pool);
/* Adds a reference to a block that is held or kept. */
void kvpool_hold(struct kvpool *pool, block_t block);
/* Removes a reference.  Returns true if it was the last: the block is kept now. */
bool kvpool_drop(struct kvpool *pool, block_t block);
/* Makes a kept block free. */
void kvpool_give_up(struct kvpool *pool, block_t block);

static inline uint32_t kvpool_held(const struct kvpool *pool)
{
        return pool->total - pool->free_count - pool->kept_count;
}

/* Checks every block and asserts the invariants above. */
void kvpool_check(const struct kvpool *pool);

static inline uint32_t blocks_for(uint32_t positions)
{
        return (positions + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
}

#endif
