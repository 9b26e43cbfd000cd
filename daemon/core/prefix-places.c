/*
 * The places of blocks: which block of the pool is given out next, and which blocks move between
 * the pool and the swap.
 */
#include "daemon/core/prefix.h"
#include "daemon/core/eviction.h"
#include "daemon/core/prefix-links.h"

#include <assert.h>

/* Makes a block free that is not in the index and has no references. */
static void free_block(struct prefix *prefix, block_t block)
{
        prefix_drop_window(prefix, block);
        assert(prefix_window(prefix, block) == WINDOW_NONE);
        if (prefix_place(prefix, block) == PREFIX_SWAP) {
                eviction_note_left_swap(prefix, block);
                free_numbers_give_back(&prefix->swap_free, block);
        } else {
                eviction_note_freed(prefix, block);
                kvpool_free_cached(&prefix->pool, block);
        }
}

/* Removes a block without children from the index; it is free if it has no references. */
static void forget(struct prefix *prefix, block_t block)
{
        prefix_remove_node(prefix, block);
        if (prefix_place(prefix, block) == PREFIX_SWAP || !prefix->pool.ref_counts[block])
                free_block(prefix, block);
}

/*
 * Forgets all blocks below this one: goes down to a block without children, forgets it, and goes up
 * again.  This needs no recursion and no stack.
 */
static void forget_below(struct prefix *prefix, block_t root)
{
        block_t at = root;

        while (prefix->nodes[root].child != BLOCK_NONE) {
                block_t parent = prefix->nodes[at].parent;

                if (prefix->nodes[at].child != BLOCK_NONE) {
                        at = prefix->nodes[at].child;
                        continue;
                }
                forget(prefix, at);
                at = parent;
        }
}

void prefix_invalidate(struct prefix *prefix, block_t root)
{
        if (!prefix->nodes[root].filled)
                return;
        forget_below(prefix, root);
        forget(prefix, root);
}

static void list_move(struct prefix *prefix, block_t from, block_t to)
{
        assert(prefix->move_count < prefix->move_max);
        prefix->moves[prefix->move_count++] = (struct block_move){ .from = from, .to = to };
}

void prefix_list_moves(struct prefix *prefix, struct block_move *moves, uint32_t max, bool may_swap)
{
        prefix->moves = moves;
        prefix->move_max = max;
        prefix->move_count = 0;
        prefix->may_swap = may_swap && prefix->conf.swap_blocks;
}

/*
 * Takes a block of the swap; if there is none, another text loses its last one there.  Returns
 * BLOCK_NONE if that is not possible: all others have to stay.
 */
static block_t take_swap_block(struct prefix *prefix)
{
        if (!prefix->swap_free.count) {
                block_t leaf = eviction_next(prefix, PREFIX_SWAP);

                if (leaf == BLOCK_NONE)
                        return BLOCK_NONE;
                forget(prefix, leaf);
        }
        return free_numbers_take(&prefix->swap_free);
}

/* Moves a leaf of the pool to the swap, if that is allowed.  Returns whether it was. */
static bool swap_out(struct prefix *prefix, block_t block)
{
        block_t to;

        if (!prefix->may_swap || prefix->nodes[block].filled < BLOCK_POSITIONS)
                return false;
        to = take_swap_block(prefix);
        if (to == BLOCK_NONE)
                return false;
        eviction_note_swapped(prefix, to, prefix->nodes[block].domain);
        prefix_move_node(prefix, block, to);
        list_move(prefix, block, to);
        prefix->swapped_out++;
        return true;
}

/* Makes the leaf free that is evicted next. */
static void evict(struct prefix *prefix)
{
        block_t block = eviction_next(prefix, PREFIX_POOL);

        assert(block != BLOCK_NONE);
        if (!swap_out(prefix, block)) {
                forget_below(prefix, block);
                prefix_remove_node(prefix, block);
        }
        free_block(prefix, block);
        prefix->evictions++;
}

block_t prefix_allocate(struct prefix *prefix, uint64_t domain)
{
        block_t block;

        if (!prefix->pool.free.count)
                evict(prefix);
        block = kvpool_allocate(&prefix->pool);
        eviction_note_allocated(prefix, block, domain);
        return block;
}

void prefix_leave_swap(struct prefix *prefix, block_t block)
{
        assert(prefix_place(prefix, block) == PREFIX_SWAP && !prefix->nodes[block].filled);
        free_block(prefix, block);
}

block_t prefix_fetch(struct prefix *prefix, block_t block)
{
        block_t to;

        assert(prefix_place(prefix, block) == PREFIX_SWAP && prefix->nodes[block].filled);
        /* It must not be dropped for the block that is evicted now. */
        prefix_leave_heap(prefix, block);
        to = prefix_allocate(prefix, prefix->nodes[block].domain);
        assert(prefix->nodes[block].filled);
        prefix_move_node(prefix, block, to);
        prefix_leave_swap(prefix, block);
        list_move(prefix, block, to);
        prefix->swapped_in++;
        return to;
}

void prefix_ref(struct prefix *prefix, block_t block)
{
        prefix_leave_heap(prefix, block);
        if (!prefix->pool.ref_counts[block])
                eviction_note_in_use(prefix, block);
        kvpool_ref(&prefix->pool, block);
}

void prefix_unref(struct prefix *prefix, block_t block)
{
        if (!kvpool_unref(&prefix->pool, block))
                return;
        eviction_note_cached(prefix, block);
        prefix->nodes[block].unref_at = ++prefix->unref_serial;
        if (prefix->nodes[block].filled)
                prefix_consider_leaf(prefix, block);
        else
                free_block(prefix, block);
}

uint32_t prefix_in_use_by(const struct prefix *prefix, uint64_t domain)
{
        const struct prefix_owner *owner = eviction_owner(prefix, domain);

        return owner ? owner->in_use : 0;
}

uint32_t prefix_cached_by(const struct prefix *prefix, uint64_t domain)
{
        const struct prefix_owner *owner = eviction_owner(prefix, domain);

        return owner ? owner->cached : 0;
}
