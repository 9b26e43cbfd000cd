/*
 * KV block pool.
 *
 * A block is 16 positions of keys and values for every layer.  The pool deals in
 * block numbers, never addresses: only the backend knows where block 7 is.
 * Blocks are counted, not owned: a prefix shared by three sequences is held
 * three times, and the last drop frees it.
 *
 *      free + held == total,  and  held == blocks with count > 0
 *
 * kvpool_check() proves that sum.  Engine thread only; nothing here allocates
 * after kvpool_init().
 */
#ifndef DAEMON_CORE_KVPOOL_H
#define DAEMON_CORE_KVPOOL_H

#include <stdint.h>

#define BLOCK_POSITIONS 16u

typedef uint32_t block_t;

enum kvpool_outcome { KVPOOL_E_EMPTY = 1 };

struct kvpool {
        uint32_t total;
        uint32_t free_count;
        block_t *free_stack; /* free_count block numbers, LIFO: warm first */
        uint32_t *holds;     /* per block; 0 means it is on the free stack */
};

int kvpool_init(struct kvpool *pool, uint32_t total); /* 0 or -ENOMEM */
void kvpool_deinit(struct kvpool *pool);

int kvpool_take(struct kvpool *pool, block_t *ret_block); /* count = 1; or KVPOOL_E_EMPTY */
void kvpool_hold(struct kvpool *pool, block_t block);     /* count + 1 */
void kvpool_drop(struct kvpool *pool, block_t block);     /* count - 1 */

/* Walks everything and asserts what must hold. */
void kvpool_check(const struct kvpool *pool);

static inline uint32_t blocks_for(uint32_t positions)
{
        return (positions + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
}

#endif
