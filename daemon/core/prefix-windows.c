#include "daemon/core/prefix-windows.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/core/eviction.h"

int prefix_windows_init(struct prefix *prefix)
{
        uint32_t count = prefix->conf.window ? prefix->conf.window_pages : 0;
        uint32_t *memory = calloc((size_t)count + 1, sizeof(*memory));

        assert(!prefix->conf.window || (count && !prefix->conf.swap_blocks));
        if (!memory)
                return -ENOMEM;
        free_numbers_init(&prefix->window_free, memory, 0, count);
        for (block_t block = 0; block < prefix_block_count(prefix); block++)
                prefix->nodes[block].window = WINDOW_NONE;
        return 0;
}

void prefix_windows_deinit(struct prefix *prefix)
{
        free(prefix->window_free.numbers);
}

/* The page of a block, which has no references, is free. */
static void free_window(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];

        assert(node->window != WINDOW_NONE && !node->window_refs);
        if (eviction_has_window(prefix, block))
                eviction_remove_window(prefix, block);
        free_numbers_give_back(&prefix->window_free, node->window);
        node->window = WINDOW_NONE;
        node->window_giver = 0;
        node->window_is_useful = node->window_is_invalid = false;
}

void prefix_take_window(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];

        assert(node->window == WINDOW_NONE && prefix->pool.ref_counts[block]);
        if (!prefix->window_free.count) {
                block_t from = eviction_next(prefix, PREFIX_WINDOWS);

                assert(from != BLOCK_NONE);
                free_window(prefix, from);
                prefix->window_evictions++;
        }
        node->window = free_numbers_take(&prefix->window_free);
        node->window_refs = 1;
}

void prefix_ref_window(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];

        assert(node->window != WINDOW_NONE && prefix->pool.ref_counts[block]);
        if (!node->window_refs++)
                eviction_remove_window(prefix, block);
}

/* The page of this block has lost its last reference. */
static void keep_or_free(struct prefix *prefix, block_t block)
{
        struct prefix_node *node = &prefix->nodes[block];

        node->window_unref_at = ++prefix->window_unref_serial;
        if (node->filled && !node->window_is_invalid)
                eviction_add_window(prefix, block);
        else
                free_window(prefix, block);
}

void prefix_unref_window(struct prefix *prefix, block_t block, bool useful)
{
        struct prefix_node *node = &prefix->nodes[block];

        assert(node->window != WINDOW_NONE && node->window_refs);
        assert(prefix->pool.ref_counts[block]);
        node->window_is_useful |= useful;
        if (!--node->window_refs)
                keep_or_free(prefix, block);
}

/* The page of `own`, which nobody else needs, becomes that of `to`. */
static void move_window(struct prefix *prefix, block_t own, block_t to)
{
        struct prefix_node *from = &prefix->nodes[own], *node = &prefix->nodes[to];

        if (eviction_has_window(prefix, own))
                eviction_remove_window(prefix, own);
        node->window = from->window;
        node->window_refs = from->window_refs;
        node->window_is_useful = from->window_is_useful;
        from->window = WINDOW_NONE;
        from->window_refs = 0;
        from->window_giver = 0;
        from->window_is_useful = false;
        if (!node->window_refs)
                keep_or_free(prefix, to);
}

bool prefix_hand_window(struct prefix *prefix, block_t own, block_t same, bool held, uint64_t giver)
{
        const struct prefix_node *from = &prefix->nodes[own], *to = &prefix->nodes[same];

        assert(giver);
        if (to->window_is_invalid)
                return !held;

        if (from->window == WINDOW_NONE || (!held && to->window != WINDOW_NONE))
                return true;
        if (to->window != WINDOW_NONE) {
                prefix_ref_window(prefix, same);
                prefix_unref_window(prefix, own, false);
                return true;
        }
        if (from->window_refs != held)
                return !held;
        prefix->nodes[same].window_giver = giver;
        move_window(prefix, own, same);
        return true;
}

void prefix_invalidate_window(struct prefix *prefix, block_t block, uint64_t giver)
{
        struct prefix_node *node = &prefix->nodes[block];

        if (node->window == WINDOW_NONE || node->window_giver != giver)
                return;
        node->window_is_invalid = true;
        prefix_drop_window(prefix, block);
}

void prefix_drop_window(struct prefix *prefix, block_t block)
{
        const struct prefix_node *node = &prefix->nodes[block];

        if (node->window != WINDOW_NONE && !node->window_refs)
                free_window(prefix, block);
}

uint32_t prefix_windows_cached(const struct prefix *prefix)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < prefix->owner_heaps[PREFIX_WINDOWS].count; i++)
                count += prefix->owners[prefix->owner_heaps[PREFIX_WINDOWS].owners[i]].windows;
        return count;
}

uint32_t prefix_windows_in_use(const struct prefix *prefix)
{
        return prefix->window_free.max - prefix->window_free.count - prefix_windows_cached(prefix);
}

/* Counts the pins of texts for which this block's window page is kept. */
static uint32_t count_pins(const struct prefix *prefix, block_t wanted)
{
        uint32_t count = 0;

        for (uint32_t number = 1; number <= prefix->conf.pins; number++) {
                block_t block = prefix->pins[number].block;
                uint32_t left = blocks_for(prefix->conf.window) + 1;

                for (; left && block != BLOCK_NONE; left--, block = prefix->nodes[block].parent)
                        count += block == wanted;
        }
        return count;
}

void prefix_windows_check(const struct prefix *prefix)
{
        uint32_t attached = 0, cached = 0;

        for (block_t block = 0; block < prefix->pool.total; block++) {
                const struct prefix_node *node = &prefix->nodes[block];
                bool is_cached = node->window != WINDOW_NONE && !node->window_refs;

                attached += node->window != WINDOW_NONE;
                cached += is_cached;
                assert(node->window != WINDOW_NONE || !node->window_refs);
                assert(node->window == WINDOW_NONE || node->window < prefix->window_free.max);
                assert(!node->window_refs || prefix->pool.ref_counts[block]);
                assert(eviction_has_window(prefix, block) == is_cached);
                assert(!is_cached || (node->filled && !node->window_is_invalid));
                assert(node->window != WINDOW_NONE ||
                       (!node->window_giver && !node->window_is_invalid));
                assert(!prefix->conf.window || node->window_pins == count_pins(prefix, block));
        }
        assert(attached + prefix->window_free.count == prefix->window_free.max);
        assert(cached == prefix_windows_cached(prefix));
}
