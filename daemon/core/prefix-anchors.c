#include "daemon/core/prefix-anchors.h"
#include "daemon/core/prefix-leaves.h"

#include <assert.h>

static void come(struct prefix *prefix, uint32_t number, block_t block)
{
        struct anchor *anchor = &prefix->anchors[number];
        struct named *named = &prefix->named[block];

        anchor->block = block;
        anchor->next = named->anchor;
        if (named->anchor)
                prefix->anchors[named->anchor].prev = number;
        named->anchor = number;
}

static void leave(struct prefix *prefix, uint32_t number)
{
        struct anchor *anchor = &prefix->anchors[number];

        if (anchor->prev)
                prefix->anchors[anchor->prev].next = anchor->next;
        else
                prefix->named[anchor->block].anchor = anchor->next;
        if (anchor->next)
                prefix->anchors[anchor->next].prev = anchor->prev;
        anchor->block = BLOCK_NONE;
        anchor->next = anchor->prev = 0;
}

/*
 * The place of a leaf in its heap depends on its anchors, so it is taken out while they change.
 * Returns whether the block was a leaf.
 */
static bool take_out(struct prefix *prefix, block_t block)
{
        bool is_leaf = leaves_have(prefix, block);

        if (is_leaf)
                leaves_remove(prefix, block);
        return is_leaf;
}

static void move(struct prefix *prefix, uint32_t number, block_t block)
{
        block_t from;
        bool is_leaf;

        assert(number && number <= prefix->conf.anchors);
        from = prefix->anchors[number].block;
        if (from != BLOCK_NONE) {
                is_leaf = take_out(prefix, from);
                leave(prefix, number);
                if (is_leaf)
                        leaves_add(prefix, from);
        }
        if (block != BLOCK_NONE) {
                assert(prefix->named[block].filled);
                is_leaf = take_out(prefix, block);
                come(prefix, number, block);
                if (is_leaf)
                        leaves_add(prefix, block);
        }
}

/*
 * Ends one publication of this block and the blocks before it.  Removes the names of those that no
 * anchor publishes any more, and of all blocks below them.
 */
static void unpublish(struct prefix *prefix, block_t block)
{
        block_t last = BLOCK_NONE;

        for (; block != BLOCK_NONE; block = prefix->named[block].parent) {
                assert(prefix->named[block].published);
                if (!--prefix->named[block].published)
                        last = block;
        }
        if (last != BLOCK_NONE)
                prefix_spoil(prefix, last);
}

void prefix_anchor(struct prefix *prefix, uint32_t number, block_t block)
{
        block_t from = prefix->anchors[number].block;
        bool published = prefix->anchors[number].publishes;

        prefix->anchors[number].publishes = false;
        move(prefix, number, block);
        if (published)
                unpublish(prefix, from);
}

void prefix_publish(struct prefix *prefix, uint32_t number, block_t block)
{
        assert(!prefix->anchors[number].publishes);
        assert(prefix_is_public(prefix->named[block].domain));
        move(prefix, number, block);
        prefix->anchors[number].publishes = true;
        for (; block != BLOCK_NONE; block = prefix->named[block].parent)
                prefix->named[block].published++;
}

void anchors_rise(struct prefix *prefix, block_t block)
{
        block_t parent = prefix->named[block].parent;
        uint32_t number;

        assert(!leaves_have(prefix, block));
        assert(parent == BLOCK_NONE || !leaves_have(prefix, parent));
        while ((number = prefix->named[block].anchor)) {
                leave(prefix, number);
                if (parent != BLOCK_NONE)
                        come(prefix, number, parent);
        }
}

/* `published` must count the publishing anchors at this block and at all blocks below it. */
static void check_published(const struct prefix *prefix, block_t block)
{
        uint32_t published = 0;

        for (uint32_t at = prefix->named[block].anchor; at; at = prefix->anchors[at].next)
                published += prefix->anchors[at].publishes;
        if (prefix->named[block].filled == BLOCK_POSITIONS)
                for (block_t at = prefix->named[block].child; at != BLOCK_NONE;
                     at = prefix->named[at].sister_next)
                        published += prefix->named[at].published;
        assert(prefix->named[block].published == published);
        assert(!published || prefix_is_public(prefix->named[block].domain));
}

void anchors_check(const struct prefix *prefix)
{
        uint32_t set = 0, listed = 0;

        for (uint32_t number = 1; number <= prefix->conf.anchors; number++)
                set += prefix->anchors[number].block != BLOCK_NONE;
        for (block_t block = 0; block < prefix->pool.total; block++) {
                uint32_t before = 0;

                for (uint32_t at = prefix->named[block].anchor; at; at = prefix->anchors[at].next) {
                        assert(prefix->named[block].filled);
                        assert(prefix->anchors[at].block == block &&
                               prefix->anchors[at].prev == before);
                        before = at;
                        listed++;
                }
                check_published(prefix, block);
        }
        assert(listed == set);
}
