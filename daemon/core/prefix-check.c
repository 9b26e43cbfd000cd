/*
 * Proves the invariants of the index (prefix.h, prefix-links.h): looks at every block.
 */
#include "daemon/core/prefix.h"
#include "daemon/core/eviction.h"
#include "daemon/core/prefix-links.h"

#include <assert.h>

static void check_links(const struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block], *parent;
        block_t at = *prefix_start_bucket(prefix, node->domain, node->parent, node->tokens[0]);

        while (at != block) {
                assert(at != BLOCK_NONE);
                at = prefix->nodes[at].start_next;
        }
        if (node->filled == BLOCK_POSITIONS) {
                uint64_t hash[2];

                assert(prefix_find_block(prefix, node->domain, node->parent, node->tokens, hash) ==
                       block);
        } else {
                assert(node->child == BLOCK_NONE);
        }
        if (node->parent == BLOCK_NONE)
                return;
        parent = &prefix->nodes[node->parent];
        assert(parent->filled == BLOCK_POSITIONS);
        assert(prefix_place(prefix, block) == PREFIX_SWAP ||
               prefix_place(prefix, node->parent) == PREFIX_POOL);
        assert(prefix_may_follow(prefix, node->domain, node->parent));
        assert(parent->generation == node->parent_generation);
        assert(prefix_place(prefix, block) == PREFIX_SWAP || !prefix->pool.ref_counts[block] ||
               prefix->pool.ref_counts[node->parent]);
        if (node->sibling_prev == BLOCK_NONE)
                assert(parent->child == block);
        else
                assert(prefix->nodes[node->sibling_prev].sibling_next == block);
}

/* `published` must count the publishing pins at this block and at all blocks below it. */
static void check_published(const struct prefix *prefix, block_t block)
{
        uint32_t published = 0;

        for (uint32_t at = prefix->nodes[block].pin; at; at = prefix->pins[at].next)
                published += prefix->pins[at].publishes;
        if (prefix->nodes[block].filled == BLOCK_POSITIONS)
                for (block_t at = prefix->nodes[block].child; at != BLOCK_NONE;
                     at = prefix->nodes[at].sibling_next)
                        published += prefix->nodes[at].published;
        assert(prefix->nodes[block].published == published);
        assert(!published || prefix_is_public(prefix->nodes[block].domain));
}

static void check_children(const struct prefix *prefix, block_t block)
{
        uint32_t pool_children = 0;
        block_t at = prefix->nodes[block].child;

        for (; at != BLOCK_NONE; at = prefix->nodes[at].sibling_next)
                pool_children += prefix_place(prefix, at) == PREFIX_POOL;
        assert(prefix->nodes[block].pool_children == pool_children);
}

/* A block of the swap is either in the index, and whole, or free. */
static void check_swap(const struct prefix *prefix)
{
        uint32_t used = 0;

        for (block_t block = prefix->pool.total; block < prefix_block_count(prefix); block++) {
                const struct prefix_node *node = &prefix->nodes[block];

                assert(!node->filled || node->filled == BLOCK_POSITIONS);
                assert(eviction_has(prefix, block) == (node->filled && node->child == BLOCK_NONE));
                used += node->filled > 0;
        }
        for (uint32_t i = 0; i < prefix->swap_free.count; i++)
                assert(!prefix->nodes[prefix->swap_free.numbers[i]].filled);
        assert(used + prefix->swap_free.count == prefix->conf.swap_blocks);
}

void prefix_check(const struct prefix *prefix)
{
        uint32_t cached = 0;

        kvpool_check(&prefix->pool);
        eviction_check(prefix);
        prefix_windows_check(prefix);
        for (block_t block = 0; block < prefix_block_count(prefix); block++) {
                check_published(prefix, block);
                if (!prefix->nodes[block].filled)
                        continue;
                check_links(prefix, block);
                check_children(prefix, block);
        }
        for (block_t block = 0; block < prefix->pool.total; block++) {
                const struct prefix_node *node = &prefix->nodes[block];
                bool is_cached = node->filled && !prefix->pool.ref_counts[block];

                cached += is_cached;
                assert(eviction_has(prefix, block) == (is_cached && !node->pool_children));
        }
        /* Each cached block is in the index, otherwise it could be neither found nor evicted. */
        assert(cached == prefix->pool.cached_count);
        check_swap(prefix);
}
