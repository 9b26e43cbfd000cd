/*
 * KV block pool.
 *
 * A block is 16 positions of keys and values for every layer.  The pool deals in block numbers,
 * never addresses: only the backend knows where block 7 is.  Blocks have a reference count, not
 * an owner: a prefix that three sequences share has three references.  A block without references
 * is cached: its content stays valid until the block is referenced again or made free.  The caller
 * that removes the last reference decides which of these happens.
 *
 *      free + cached + in use == total,  and  in use == blocks with references
 *
 * kvpool_check() proves that sum.  Engine thread only; nothing here allocates memory after
 * kvpool_init().
 */
#ifndef DAEMON_CORE_KVPOOL_H
#define DAEMON_CORE_KVPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/free-numbers.h"

#define BLOCK_POSITIONS 16u

typedef uint32_t block_t;

#define BLOCK_NONE UINT32_MAX

/* No window page (prefix-windows.h). */
#define WINDOW_NONE UINT32_MAX

/*
 * The content of a block goes to another place: from the pool to the swap, or back.  Numbers below
 * the pool's total are blocks of the pool; those from there on are blocks of the swap (prefix.h).
 * Moves are carried out in order.  So one may read a block that an earlier one wrote, or write a
 * block that an earlier one read.
 */
struct block_move {
        block_t from, to;
};

struct kvpool {
        uint32_t total;
        uint32_t cached_count;
        uint32_t shared_count; /* blocks with more than one reference */
        struct free_numbers free;
        uint32_t *ref_counts; /* per block; 0: the block is cached or free */
};

int kvpool_init(struct kvpool *pool, uint32_t total); /* 0 or -ENOMEM */
void kvpool_deinit(struct kvpool *pool);

/* Takes a free block; its count becomes 1.  At least one block must be free. */
block_t kvpool_allocate(struct kvpool *pool);
/* Adds a reference to a block that is in use or cached. */
void kvpool_ref(struct kvpool *pool, block_t block);
/* Removes a reference.  Returns true if it was the last: the block is cached now. */
bool kvpool_unref(struct kvpool *pool, block_t block);
/* Makes a cached block free. */
void kvpool_free_cached(struct kvpool *pool, block_t block);

static inline uint32_t kvpool_in_use(const struct kvpool *pool)
{
        return pool->total - pool->free.count - pool->cached_count;
}

/* Checks every block and asserts the invariants above. */
void kvpool_check(const struct kvpool *pool);

static inline uint32_t blocks_for(uint32_t positions)
{
        return (positions + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
}

#endif
