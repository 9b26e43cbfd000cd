/*
 * The prefix index: knows the content of the blocks, so that nothing is computed twice.
 *
 * Keys and values of a position depend on its token and on all tokens before it.  So the
 * content of a block is identified by its tokens and by the block before it (its parent).
 * The blocks of the index form trees, below one root for each domain.  A domain says
 * which users may share a block.
 *
 *      domain 1000  -> [You are a ki] -> [ndly urn. Wh] -> [at is tea? ..]
 *                                     -> [ndly pot, an]           <- a tail: 13 of 16
 *      everyone's   -> [You are a ta] -> [ble of units,]
 *                                     -> [ble of kings,]          <- this one is 1000's own
 *
 * A user's domain is its number, and no other user can find anything in it.  There are also
 * public domains: one for everyone and one for each group.  A block gets into a public domain
 * only by being published.  Below a public block users have their own blocks, each user
 * separately.  Below a user's own block there are no public blocks.
 *
 * A whole block is found by its hash.  This is a keyed hash (../base/siphash.h) of the parent's
 * hash and of the block's tokens.  A block found by hash is then compared: token by token, the
 * parent by number and generation, and the domain.  A part of a block is found among the blocks
 * that have the same parent and the same first token.  The caller copies such a block, because only
 * one sequence may write to a block.
 *
 * A block stays in the index when its last reference is removed: it is cached.  The pool can
 * supply a block as long as one is free or cached.  If none is free, the index evicts the
 * leaf that has been without references longest.  A sequence that references a block also
 * references all blocks before it.  So if blocks are cached, some of them are leaves, and a
 * block in use is never evicted.
 *
 * The swap is a second place for blocks, in memory that no row can read (prefix_conf.swap_blocks).
 * A whole block that is evicted moves there and stays in the index.  Its number changes: blocks of
 * the swap have the numbers from the pool's total on.  They have no references.  All blocks below a
 * block of the swap are in the swap, too.  So what can be evicted from the pool are its leaves:
 * blocks without references that no block of the pool follows.  If the swap is full, a leaf of the
 * swap is dropped, by the same rules as in the pool; `swap_max` takes the place of `cached_max`.
 * The block that comes does not count yet.  A block that is not whole leaves the index when it is
 * evicted, and all blocks of the swap below it are dropped.  So does a block if nothing may move
 * (`may_swap`), and if the only block of the swap is about to be fetched.
 *
 * A block belongs to a domain from the moment it is allocated, in the index or not: to the
 * domain that it was allocated for.  There may be a limit (`cached_max`) to the cached blocks
 * of one user.  A user above that limit gives way first: of the leaves without a pin, those of
 * this user are evicted before those of any other.  So a user cannot evict the blocks of others
 * by sending many requests, and while there is space nothing is evicted.
 *
 * A pin makes a text stay longer than others.  It is set at the last block of the text.  That
 * protects all blocks before it, because leaves are evicted first.  A pin guarantees nothing:
 * if there are no other leaves, leaves with a pin are evicted as well, and the pin moves to the
 * parent.  So all promises about the pool hold as if there were no pins.
 *
 * A published text has a pin, too.  Before it is published, its blocks are inserted in a
 * public domain, and only requests that publish there themselves find them.  Then it is public
 * until the pins of all publications of it, or of a text that begins with it, are removed.
 * At that point its blocks leave the index, and all blocks below them, including the users'
 * own.  A sequence that references such blocks goes on reading them.
 *
 * A block must be inserted only with the tokens that it really contains, by its owner.
 * Otherwise a user could insert a block with other tokens, and other users would read arbitrary
 * content.  Engine thread only; nothing here allocates memory after prefix_init().
 */
#ifndef DAEMON_CORE_PREFIX_H
#define DAEMON_CORE_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/core/kvpool.h"
#include "daemon/core/prefix-tree.h"
#include "daemon/core/prefix-windows.h"

/* The domains in which a request may look: its own first, then the public ones. */
#define PREFIX_DOMAINS_MAX 18u

struct prefix_reader {
        uint64_t domains[PREFIX_DOMAINS_MAX];
        uint32_t count;
        bool needs_no_windows; /* it wants to know what is there, and will not go on from there */
};

/* The result of looking a text up. */
struct prefix_hit {
        uint32_t whole_count; /* whole blocks found in the pool, written to the caller's array */
        uint32_t swap_count;  /* whole blocks found after these, in the swap; written after them */
        block_t tail;         /* block that begins like the rest of the text, or BLOCK_NONE */
        uint32_t tail_count;  /* number of its positions that are equal: 1 to 15 */
        /* Whole blocks of the longest known text, with those whose window pages are missing. */
        uint32_t known_count;
        uint32_t diverged_at; /* first position not found, if a known text differs there; or 0 */
        uint32_t diverged_cached_token; /* the token of that known text at diverged_at */
};

static inline uint32_t prefix_hit_positions(const struct prefix_hit *hit)
{
        return (hit->whole_count + hit->swap_count) * BLOCK_POSITIONS + hit->tail_count;
}

int prefix_init(struct prefix *prefix, const struct prefix_conf *conf, uint32_t blocks);
void prefix_deinit(struct prefix *prefix);

/*
 * Allocates a block to write to, with one reference; it belongs to `domain`.  At least one block
 * must be free or cached; if none is free, one is evicted.
 */
block_t prefix_allocate(struct prefix *prefix, uint64_t domain);
/* Adds a reference. */
void prefix_ref(struct prefix *prefix, block_t block);
/*
 * Removes a reference.  A caller that releases the blocks of a sequence starts with the last one,
 * so that the end of the sequence is evicted first.
 */
void prefix_unref(struct prefix *prefix, block_t block);

/*
 * Moves a block of the swap, whose parent is in the pool, to a block of the pool, with one
 * reference, as prefix_allocate() does.  Returns its new number.
 */
block_t prefix_fetch(struct prefix *prefix, block_t block);
/*
 * Is this a block of the swap that a reader with the domain `own` may see, and that contains these
 * tokens after those of `parent`?
 */
bool prefix_is_swapped(const struct prefix *prefix, uint64_t own, block_t block, block_t parent,
                       const uint32_t *tokens);

/*
 * Where the moves that prefix_allocate() and prefix_fetch() decide on are listed, from the start.
 * Each call lists at most one (a fetch: two).  The list must be carried out before any block that
 * they returned is written or read.  `may_swap` false: evicted blocks are forgotten.
 */
void prefix_list_moves(struct prefix *prefix, struct block_move *moves, uint32_t max,
                       bool may_swap);

/* The number of blocks that prefix_allocate() can supply. */
static inline uint32_t prefix_available(const struct prefix *prefix)
{
        return prefix->pool.free.count + prefix->pool.cached_count;
}

/* The number of a domain's own blocks with references (in use), and without (cached). */
uint32_t prefix_in_use_by(const struct prefix *prefix, uint64_t domain);
uint32_t prefix_cached_by(const struct prefix *prefix, uint64_t domain);

/*
 * Finds the longest prefix of these tokens, or of none, that blocks contain.  If more than 64
 * blocks with the same parent begin with the same token, the tail is only the longest among the
 * newest.
 * No references are taken: reference the blocks of the pool before allocating any other block.
 * `blocks` has space for count / BLOCK_POSITIONS.  After blocks of the swap no tail is found.
 *
 * The search follows one path for each of the reader's domains: as far as the blocks of that
 * domain go, and from a public domain on in the reader's own.  A path ends at the last whole block
 * after which a row finds all window pages that it needs (prefix-windows.h), or at a tail behind
 * that block with a window page of its own.  If a path from a public domain ends because window
 * pages are missing, the reader's own blocks from there on are looked up, too.  The longest path is
 * used; of equal ones the first.
 *
 * `diverged_at` tells why the path is no longer.  It is the first position that was not found, if
 * a block of this path has another token there than the text.  If there are several such blocks,
 * a public one is used, or else the one inserted last; of more than 64 only the newest are looked
 * at.  diverged_at is 0 in these cases:
 *      - the whole text was found, or the path ends because window pages are missing;
 *      - nothing was ever inserted after the part that was found, or all of it was evicted;
 *      - the difference is at position 0: different first tokens tell the client nothing;
 *      - the position comes right after a whole public block, as many users' blocks follow it.
 * The content of other domains has no influence: the answer would reveal it token by token.
 */
void prefix_find(const struct prefix *prefix, const struct prefix_reader *reader,
                 const uint32_t *tokens, uint32_t count, block_t *blocks,
                 struct prefix_hit *ret_hit);

/*
 * Records that the first `count` positions of `block` contain these tokens, after those of `parent`
 * (BLOCK_NONE: after nothing).  The block belongs to `domain`.  The caller references both blocks.
 * A later call may add tokens to the same block, never change them.  If the parent is not in the
 * index as a whole block, nothing is recorded.  Returns the block of the index with this content:
 * normally `block`, or another block that was inserted before.  If that one is in the swap, `block`
 * takes its place in the index.
 */
block_t prefix_insert(struct prefix *prefix, uint64_t domain, block_t parent, block_t block,
                      const uint32_t *tokens, uint32_t count);

/*
 * Moves a pin to this block, which must be in the index.  With BLOCK_NONE the pin is removed.  If
 * the pin published a text, that publication ends.
 */
void prefix_set_pin(struct prefix *prefix, uint32_t number, block_t block);
/*
 * The same, and publishes the text that ends with this block, which is in a public domain.  The
 * pin must not publish anything yet.
 */
void prefix_publish(struct prefix *prefix, uint32_t number, block_t block);

/* Removes this block and all blocks below it from the index: their content is not valid. */
void prefix_invalidate(struct prefix *prefix, block_t block);

/* Checks every block and asserts all invariants. */
void prefix_check(const struct prefix *prefix);

#endif
