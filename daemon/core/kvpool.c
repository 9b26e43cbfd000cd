#include "daemon/core/kvpool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Set by kvpool_check() while it runs: this block is on the free stack. */
#define MARK UINT32_MAX

int kvpool_init(struct kvpool *pool, uint32_t total)
{
        assert(pool);
        assert(total > 0 && total < BLOCK_NONE);

        *pool = (struct kvpool){
                .free_stack = calloc(total, sizeof(*pool->free_stack)),
                .holds = calloc(total, sizeof(*pool->holds)),
        };
        if (!pool->free_stack || !pool->holds) {
                kvpool_deinit(pool);
                return -ENOMEM;
        }

        pool->total = pool->free_count = total;
        for (uint32_t i = 0; i < total; i++)
                pool->free_stack[i] = total - 1 - i; /* so that block 0 is taken first */
        return 0;
}

void kvpool_deinit(struct kvpool *pool)
{
        if (!pool)
                return;
        free(pool->free_stack);
        free(pool->holds);
        *pool = (struct kvpool){ 0 };
}

block_t kvpool_take(struct kvpool *pool)
{
        block_t block;

        assert(pool->free_count > 0 && pool->free_count <= pool->total);

        block = pool->free_stack[--pool->free_count];
        assert(pool->holds[block] == 0);
        pool->holds[block] = 1;
        return block;
}

void kvpool_hold(struct kvpool *pool, block_t block)
{
        assert(block < pool->total);
        assert(pool->holds[block] < MARK - 1);

        if (pool->holds[block]++ == 0) {
                assert(pool->kept_count > 0);
                pool->kept_count--;
        }
}

bool kvpool_drop(struct kvpool *pool, block_t block)
{
        assert(block < pool->total);
        assert(pool->holds[block] > 0);

        if (--pool->holds[block])
                return false;
        pool->kept_count++;
        return true;
}

void kvpool_give_up(struct kvpool *pool, block_t block)
{
        assert(block < pool->total);
        assert(pool->holds[block] == 0 && pool->kept_count > 0);
        assert(pool->free_count < pool->total);

        pool->kept_count--;
        pool->free_stack[pool->free_count++] = block;
}

/*
 * Counting alone would not notice a block that is on the stack twice while another is
 * lost.  So each block on the stack is marked when it is found, and unmarked at the end:
 * the counts have their old values before any other code reads them.
 */
void kvpool_check(const struct kvpool *pool)
{
        uint32_t held = 0, kept = 0;

        assert(pool->free_count <= pool->total);
        for (uint32_t i = 0; i < pool->free_count; i++) {
                assert(pool->free_stack[i] < pool->total);
                assert(pool->holds[pool->free_stack[i]] == 0);
                pool->holds[pool->free_stack[i]] = MARK;
        }
        for (block_t block = 0; block < pool->total; block++) {
                kept += pool->holds[block] == 0;
                held += pool->holds[block] != 0 && pool->holds[block] != MARK;
        }
        for (uint32_t i = 0; i < pool->free_count; i++)
                pool->holds[pool->free_stack[i]] = 0;
        assert(kept == pool->kept_count);
        assert(pool->free_count + kept + held == pool->total);
}
