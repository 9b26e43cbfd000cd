/*
 * Pins, and the publication of texts (prefix.h).  eviction.h keeps the lists of the pins at each
 * block; this file knows what a publication means for the index.
 */
#include "daemon/core/eviction.h"
#include "daemon/core/prefix.h"

#include <assert.h>

/*
 * Ends one publication of this block and the blocks before it.  Those that no pin publishes any
 * more leave the index, with all blocks below them.
 */
static void unpublish(struct prefix *prefix, block_t block)
{
        block_t last = BLOCK_NONE;

        for (; block != BLOCK_NONE; block = prefix->nodes[block].parent) {
                assert(prefix->nodes[block].published);
                if (!--prefix->nodes[block].published)
                        last = block;
        }
        if (last != BLOCK_NONE)
                prefix_invalidate(prefix, last);
}

void prefix_set_pin(struct prefix *prefix, uint32_t number, block_t block)
{
        block_t from = prefix->pins[number].block;
        bool published = prefix->pins[number].publishes;

        prefix->pins[number].publishes = false;
        eviction_move_pin(prefix, number, block);
        if (published)
                unpublish(prefix, from);
}

void prefix_publish(struct prefix *prefix, uint32_t number, block_t block)
{
        assert(!prefix->pins[number].publishes);
        assert(prefix_is_public(prefix->nodes[block].domain));
        eviction_move_pin(prefix, number, block);
        prefix->pins[number].publishes = true;
        for (; block != BLOCK_NONE; block = prefix->nodes[block].parent)
                prefix->nodes[block].published++;
}
