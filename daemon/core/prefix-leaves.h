/*
 * Leaves of the cached blocks: decides which block is evicted next.  For the index only.
 *
 * A leaf is a named block that has no references and no child.  There are two levels of heaps.
 * Each owner has a heap of its own leaves.  The leaf that was dropped first is at the top; leaves
 * with an anchor come after all others.  Above, a heap of the owners is ordered by the
 * top leaf of each.  So an owner that keeps too much moves to the front in one step, with all
 * its leaves.
 *
 * The leaves of an owner form a leftist heap, with its links in the blocks themselves.  From
 * each node the path to the right is the shortest way down.  So merging two heaps
 * interleaves their right paths, in as many steps as the logarithms of both sizes.
 */
#ifndef DAEMON_CORE_PREFIX_LEAVES_H
#define DAEMON_CORE_PREFIX_LEAVES_H

#include "daemon/core/prefix.h"

static inline bool leaves_have(const struct prefix *prefix, block_t block)
{
        return prefix->named[block].leaf_rank;
}

void leaves_add(struct prefix *prefix, block_t block);
void leaves_remove(struct prefix *prefix, block_t block);
/* The leaf to evict next.  There must be at least one leaf. */
block_t leaves_first(const struct prefix *prefix);
/* To be called when the leaves of this owner or its count of kept blocks have changed. */
void leaves_settle(struct prefix *prefix, uint32_t owner);
void leaves_check(const struct prefix *prefix);

#endif
