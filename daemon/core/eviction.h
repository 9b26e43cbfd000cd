/*
 * Eviction: decides which cached block is evicted next.  For prefix.c and prefix-pins.c only.
 *
 * The candidates are the leaves of the pool: blocks of the index without references and without a
 * child in the pool.  The swap has leaves of its own: its blocks without a child.  All that follows
 * holds for each of the two places.
 * There are two levels of heaps.  Each owner has a heap of its own leaves.  The leaf that has been
 * without references longest is at the top; leaves with a pin come after all others.  Above, a
 * heap of the owners is ordered by the top leaf of each.  So an owner with too many cached blocks
 * moves to the front in one step, with all its leaves.
 *
 * The leaves of an owner form a leftist heap, with its links in the nodes themselves.  From each
 * node the path to the right is the shortest way down.  So merging two heaps interleaves their
 * right paths, in as many steps as the logarithms of both sizes.
 *
 * An owner is a domain with blocks.  A block belongs to the domain for which prefix_allocate()
 * took it, in the index or not, until it is free again.  An owner is in the table as long as at
 * least one block belongs to it, in the pool or in the swap, so there are never more owners than
 * blocks.
 *
 * Window pages (prefix-windows.h) without references are a third place, with heaps of their own.
 * Their blocks may be anywhere in the tree.  Those without use come first, then those at the end of
 * a text that was asked for, at last those at the end of a text with a pin.
 *
 * The lists of the pins at each block are here too, because a pin changes a leaf's place.
 */
#ifndef DAEMON_CORE_EVICTION_H
#define DAEMON_CORE_EVICTION_H

#include "daemon/core/prefix-tree.h"

/* Returns 0 or -ENOMEM; the caller must call eviction_deinit() in both cases. */
int eviction_init(struct prefix *prefix, uint32_t blocks);
void eviction_deinit(struct prefix *prefix);

/* Is this block a leaf? */
static inline bool eviction_has(const struct prefix *prefix, block_t block)
{
        return prefix->nodes[block].leaf.rank;
}

/* Has this block a window page that may be evicted? */
static inline bool eviction_has_window(const struct prefix *prefix, block_t block)
{
        return prefix->windows && prefix->windows[block].leaf.rank;
}

void eviction_add(struct prefix *prefix, block_t block);
void eviction_remove(struct prefix *prefix, block_t block);
/* The same for the window page of a block. */
void eviction_add_window(struct prefix *prefix, block_t block);
void eviction_remove_window(struct prefix *prefix, block_t block);
/* The leaf of this place to evict next, or BLOCK_NONE if there is no leaf. */
block_t eviction_next(const struct prefix *prefix, enum prefix_place place);

/* To be called when the state of a block changes; they keep the counts of its owner. */
void eviction_note_allocated(struct prefix *prefix, block_t block, uint64_t domain);
void eviction_note_in_use(struct prefix *prefix, block_t block); /* it was cached */
void eviction_note_cached(struct prefix *prefix, block_t block); /* it was in use */
void eviction_note_freed(struct prefix *prefix, block_t block);  /* it was cached */
/* A block of the swap is used for a block of this domain, which has other blocks; or no more. */
void eviction_note_swapped(struct prefix *prefix, block_t block, uint64_t domain);
void eviction_note_left_swap(struct prefix *prefix, block_t block);

/* NULL: no block belongs to this domain. */
const struct prefix_owner *eviction_owner(const struct prefix *prefix, uint64_t domain);

/* Moves a pin to this block, which must be in the index; BLOCK_NONE: to no block. */
void eviction_move_pin(struct prefix *prefix, uint32_t number, block_t block);
/* To be called when a block gets another number: its pins stay.  Neither may be a leaf. */
void eviction_keep_pins(struct prefix *prefix, block_t from, block_t to);
/*
 * To be called when `block` leaves the index; neither it nor its parent may be a leaf.  Its pins
 * move to its parent; without a parent they are at no block any more.
 */
void eviction_raise_pins(struct prefix *prefix, block_t block);

void eviction_check(const struct prefix *prefix);

#endif
