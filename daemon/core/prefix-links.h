/*
 * The links between the blocks of the index.  For prefix.c, prefix-places.c and prefix-check.c
 * only.
 *
 * Each block of the index is in three lists: the children of its parent, a bucket of
 * `start_buckets`, and once it is whole a bucket of `hash_buckets`.  If it has no references
 * and no child in its place, it is also a leaf, which may be evicted (eviction.h).
 *
 * The buckets depend on the hash of the parent, not on its number.  So a block that moves between
 * pool and swap gets another number, and all blocks below it stay where they are.
 */
#ifndef DAEMON_CORE_PREFIX_LINKS_H
#define DAEMON_CORE_PREFIX_LINKS_H

#include "daemon/core/prefix-tree.h"

/* The bucket of the blocks that follow `parent` and begin with this token. */
block_t *prefix_start_bucket(const struct prefix *prefix, uint64_t domain, block_t parent,
                             uint32_t token);
/* Does this block of the index follow `parent`, in this domain? */
bool prefix_follows(const struct prefix *prefix, const struct prefix_node *block, uint64_t domain,
                    block_t parent);
/* A block may follow one of its own domain; a user's own block may also follow a public one. */
bool prefix_may_follow(const struct prefix *prefix, uint64_t domain, block_t parent);
/*
 * Finds the whole block that follows `parent` with these tokens, or BLOCK_NONE.  *ret_hash is its
 * hash in either case.
 */
block_t prefix_find_block(const struct prefix *prefix, uint64_t domain, block_t parent,
                          const uint32_t *tokens, uint64_t ret_hash[2]);

/* Adds a block of the pool to its bucket of `start_buckets` and to the children of its parent. */
void prefix_link_start(struct prefix *prefix, block_t block);
/* Adds a block that is whole now to its bucket of `hash_buckets`. */
void prefix_link_hash(struct prefix *prefix, block_t block);

/*
 * To be called when a block has lost its last child or its last reference, or has come to the swap:
 * makes it a leaf, if it is in the index, without references, and without a child in its place.
 */
void prefix_consider_leaf(struct prefix *prefix, block_t block);
/* The block is no leaf for now: its number, its pins or its children are going to change. */
void prefix_leave_heap(struct prefix *prefix, block_t block);

/* Removes a block, which must not have children, from the index. */
void prefix_remove_node(struct prefix *prefix, block_t block);
/*
 * A whole block gets another number, which is in use for the same domain and not in the index.
 * The new number takes over tokens, parent, children and pins.
 */
void prefix_move_node(struct prefix *prefix, block_t from, block_t to);

/* prefix-places.c: a block of the swap that has left the index is not used any more. */
void prefix_leave_swap(struct prefix *prefix, block_t block);

#endif
