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
        if (!prefix->conf.window)
                return 0;
        prefix->windows = calloc(prefix_block_count(prefix), sizeof(*prefix->windows));
        if (!prefix->windows)
                return -ENOMEM;
        return 0;
}

void prefix_windows_deinit(struct prefix *prefix)
{
        free(prefix->window_free.numbers);
        free(prefix->windows);
}

/* The page of a block, which has no references, is free. */
static void free_window(struct prefix *prefix, block_t block)
{
        struct prefix_window *window = &prefix->windows[block];

        assert(window->number && !window->refs);
        if (eviction_has_window(prefix, block))
                eviction_remove_window(prefix, block);
        free_numbers_give_back(&prefix->window_free, window->number - 1);
        window->number = 0;
        window->giver = 0;
        window->is_useful = window->is_invalid = false;
}

void prefix_take_window(struct prefix *prefix, block_t block)
{
        struct prefix_window *window = &prefix->windows[block];

        assert(!window->number && prefix->pool.ref_counts[block]);
        if (!prefix->window_free.count) {
                block_t from = eviction_next(prefix, PREFIX_WINDOWS);

                assert(from != BLOCK_NONE);
                free_window(prefix, from);
                prefix->window_evictions++;
        }
        window->number = free_numbers_take(&prefix->window_free) + 1;
        window->refs = 1;
}

void prefix_ref_window(struct prefix *prefix, block_t block)
{
        struct prefix_window *window = &prefix->windows[block];

        assert(window->number && prefix->pool.ref_counts[block]);
        if (!window->refs++)
                eviction_remove_window(prefix, block);
}

/* The page of this block has lost its last reference. */
static void keep_or_free(struct prefix *prefix, block_t block)
{
        struct prefix_window *window = &prefix->windows[block];

        window->unref_at = ++prefix->window_unref_serial;
        if (prefix->nodes[block].filled && !window->is_invalid)
                eviction_add_window(prefix, block);
        else
                free_window(prefix, block);
}

void prefix_unref_window(struct prefix *prefix, block_t block, bool useful)
{
        struct prefix_window *window = &prefix->windows[block];

        assert(window->number && window->refs);
        assert(prefix->pool.ref_counts[block]);
        window->is_useful |= useful;
        if (!--window->refs)
                keep_or_free(prefix, block);
}

/* The page of `own`, which nobody else needs, becomes that of `to`. */
static void move_window(struct prefix *prefix, block_t own, block_t to)
{
        struct prefix_window *from = &prefix->windows[own], *window = &prefix->windows[to];

        if (eviction_has_window(prefix, own))
                eviction_remove_window(prefix, own);
        window->number = from->number;
        window->refs = from->refs;
        window->is_useful = from->is_useful;
        from->number = 0;
        from->refs = 0;
        from->giver = 0;
        from->is_useful = false;
        if (!window->refs)
                keep_or_free(prefix, to);
}

bool prefix_hand_window(struct prefix *prefix, block_t own, block_t same, bool held, uint64_t giver)
{
        const struct prefix_window *from, *to;

        assert(giver);
        if (!prefix->windows)
                return true;
        from = &prefix->windows[own];
        to = &prefix->windows[same];
        if (to->is_invalid)
                return !held;
        if (!from->number || (!held && to->number))
                return true;
        if (to->number) {
                prefix_ref_window(prefix, same);
                prefix_unref_window(prefix, own, false);
                return true;
        }
        if (from->refs != held)
                return !held;
        prefix->windows[same].giver = giver;
        move_window(prefix, own, same);
        return true;
}

void prefix_invalidate_window(struct prefix *prefix, block_t block, uint64_t giver)
{
        struct prefix_window *window = &prefix->windows[block];

        if (!window->number || window->giver != giver)
                return;
        window->is_invalid = true;
        prefix_drop_window(prefix, block);
}

void prefix_drop_window(struct prefix *prefix, block_t block)
{
        if (prefix->windows && prefix->windows[block].number && !prefix->windows[block].refs)
                free_window(prefix, block);
}

uint32_t prefix_windows_cached(const struct prefix *prefix)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < prefix->owner_heaps[PREFIX_WINDOWS].count; i++)
                count += prefix->owners[prefix->owner_heaps[PREFIX_WINDOWS].owners[i]].windows;
        return count;
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

        for (block_t block = 0; prefix->windows && block < prefix->pool.total; block++) {
                const struct prefix_window *window = &prefix->windows[block];
                bool is_cached = window->number && !window->refs;

                attached += window->number > 0;
                cached += is_cached;
                assert(window->number || !window->refs);
                assert(window->number <= prefix->window_free.max);
                assert(!window->refs || prefix->pool.ref_counts[block]);
                assert(eviction_has_window(prefix, block) == is_cached);
                assert(!is_cached || (prefix->nodes[block].filled && !window->is_invalid));
                assert(window->number || (!window->giver && !window->is_invalid));
                assert(window->pins == count_pins(prefix, block));
        }
        assert(attached + prefix->window_free.count == prefix->window_free.max);
        assert(cached == prefix_windows_cached(prefix));
}
