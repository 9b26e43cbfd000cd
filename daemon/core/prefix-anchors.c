#include "daemon/core/prefix-anchors.h"
#include "daemon/core/prefix-leaves.h"

#include <assert.h>

static void come(struct prefix *prefix, uint32_t number, block_t block)
{
        struct anchor *anchor = &prefix->anchors[number];
        struct named *named = &prefix->named[block];

        *anchor = (struct anchor){ .block = block, .next = named->anchor };
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
        *anchor = (struct anchor){ .block = BLOCK_NONE };
}

/* A leaf's place depends on its anchors, so it has none while they change. */
static bool take_out(struct prefix *prefix, block_t block)
{
        bool is_leaf = prefix->named[block].leaf_at != LEAF_NONE;

        if (is_leaf)
                leaves_remove(prefix, block);
        return is_leaf;
}

void prefix_anchor(struct prefix *prefix, uint32_t number, block_t block)
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

void anchors_rise(struct prefix *prefix, block_t block)
{
        block_t parent = prefix->named[block].parent;
        uint32_t number;

        assert(prefix->named[block].leaf_at == LEAF_NONE);
        assert(parent == BLOCK_NONE || prefix->named[parent].leaf_at == LEAF_NONE);
        while ((number = prefix->named[block].anchor)) {
                leave(prefix, number);
                if (parent != BLOCK_NONE)
                        come(prefix, number, parent);
        }
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
        }
        assert(listed == set);
}
