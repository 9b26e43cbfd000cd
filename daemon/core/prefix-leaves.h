/*
 * The leaves of what is kept: who is evicted next.  For the index alone.
 *
 * Two floors of heaps.  Each owner has his own leaves, blocks that nobody holds and
 * nothing follows; whoever was dropped first is at its top, and those that are
 * anchored come after all others.  Above are the owners, by the leaf that each would give:
 * so one who keeps too much is moved to the front at once, with all that he has.
 *
 * The leaves of an owner are a leftist heap, of links in the blocks themselves.  From any of
 * them the way down to the right is the shortest, so two heaps are made one by
 * weaving those ways together, in as many steps as the logarithm of both.
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
block_t leaves_first(const struct prefix *prefix); /* there must be one */
/* What this owner keeps has become more or less. */
void leaves_settle(struct prefix *prefix, uint32_t owner);
void leaves_check(const struct prefix *prefix);

#endif
