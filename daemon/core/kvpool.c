#include "daemon/core/kvpool.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Set by kvpool_check() while it runs: this block is free. */
#define MARK UINT32_MAX

int kvpool_init(struct kvpool *pool, uint32_t total)
{
        block_t *memory;

        assert(pool);
        assert(total > 0 && total < BLOCK_NONE);

        memory = calloc(total, sizeof(*memory));
        *pool = (struct kvpool){ .ref_counts = calloc(total, sizeof(*pool->ref_counts)) };
        free_numbers_init(&pool->free, memory, 0, memory ? total : 0);
        if (!memory || !pool->ref_counts) {
                kvpool_deinit(pool);
                return -ENOMEM;
        }
        pool->total = total;
        return 0;
}

void kvpool_deinit(struct kvpool *pool)
{
        if (!pool)
                return;
        free(pool->free.numbers);
        free(pool->ref_counts);
        *pool = (struct kvpool){ 0 };
}

block_t kvpool_allocate(struct kvpool *pool)
{
        block_t block = free_numbers_take(&pool->free);

        assert(pool->ref_counts[block] == 0);
        pool->ref_counts[block] = 1;
        return block;
}

void kvpool_ref(struct kvpool *pool, block_t block)
{
        assert(block < pool->total);
        assert(pool->ref_counts[block] < MARK - 1);

        if (pool->ref_counts[block]++ == 0) {
                assert(pool->cached_count > 0);
                pool->cached_count--;
        }
        pool->shared_count += pool->ref_counts[block] == 2;
}

bool kvpool_unref(struct kvpool *pool, block_t block)
{
        assert(block < pool->total);
        assert(pool->ref_counts[block] > 0);

        pool->shared_count -= pool->ref_counts[block] == 2;
        if (--pool->ref_counts[block])
                return false;
        pool->cached_count++;
        return true;
}

void kvpool_free_cached(struct kvpool *pool, block_t block)
{
        assert(block < pool->total);
        assert(pool->ref_counts[block] == 0 && pool->cached_count > 0);

        pool->cached_count--;
        free_numbers_give_back(&pool->free, block);
}

/*
 * Counting alone would not notice a block that is listed as free twice while another is
 * lost.  So each free block is marked when it is found, and unmarked at the end:
 * the counts have their old values before any other code reads them.
 */
void kvpool_check(const struct kvpool *pool)
{
        uint32_t in_use = 0, cached = 0, shared = 0;

        assert(pool->free.count <= pool->total);
        for (uint32_t i = 0; i < pool->free.count; i++) {
                assert(pool->free.numbers[i] < pool->total);
                assert(pool->ref_counts[pool->free.numbers[i]] == 0);
                pool->ref_counts[pool->free.numbers[i]] = MARK;
        }
        for (block_t block = 0; block < pool->total; block++) {
                cached += pool->ref_counts[block] == 0;
                in_use += pool->ref_counts[block] != 0 && pool->ref_counts[block] != MARK;
                shared += pool->ref_counts[block] > 1 && pool->ref_counts[block] != MARK;
        }
        for (uint32_t i = 0; i < pool->free.count; i++)
                pool->ref_counts[pool->free.numbers[i]] = 0;
        assert(cached == pool->cached_count && shared == pool->shared_count);
        assert(pool->free.count + cached + in_use == pool->total);
}
