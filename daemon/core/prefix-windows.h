/*
 * Window pages: the keys and values of a block in the layers that have a sliding window.
 *
 * A row of such a layer sees the last `window` positions only (prefix_conf.window).  So a sequence
 * needs the window pages of its last blocks, while it needs all of its blocks.  Window pages are a
 * second pool, with numbers of their own.
 *
 *      positions       0 ......................... 1000 .......... 1512   window: 512
 *      blocks          [ ][ ][ ][ ][ ][ ][ ][ ][ ][ ][ ][ ][ ][ ][ ]
 *      window pages                               [ ][ ][ ][ ][ ][ ]
 *
 * A window page belongs to a block.  Like a block it has references, one of each sequence that
 * still needs it, and it is cached when the last one is removed: it stays with its block until
 * another block takes it.  A window page without references is kept only while its block is in the
 * index.  A request can go on from a position only if all blocks that the row there sees in its
 * window have their window pages.
 *
 *      free + cached + in use == window_pages
 *
 * If none is free, one without references is evicted: first one that a sequence has passed, then
 * one at a position from which a request went on or may go on, at last one at the end of a text
 * with a pin.  In each of these groups users above their limit come first, then the page that has
 * been without references longest (eviction.h).
 *
 * Part of the prefix index, with the same rules about threads and memory.  Without windows
 * (prefix_conf.window is 0) no block has a window page, and only the functions that say so may be
 * called.
 */
#ifndef DAEMON_CORE_PREFIX_WINDOWS_H
#define DAEMON_CORE_PREFIX_WINDOWS_H

#include "daemon/core/prefix-tree.h"

int prefix_windows_init(struct prefix *prefix); /* 0 or -ENOMEM; also without windows */
void prefix_windows_deinit(struct prefix *prefix);

/* The window page of a block in use, or WINDOW_NONE; also without windows. */
static inline uint32_t prefix_window(const struct prefix *prefix, block_t block)
{
        return prefix->windows ? prefix->windows[block].number - 1 : WINDOW_NONE;
}

/* Has it a window page with valid content? */
static inline bool prefix_has_window(const struct prefix *prefix, block_t block)
{
        return prefix->windows && prefix->windows[block].number &&
               !prefix->windows[block].is_invalid;
}

/* The index of the first block that the row before `position` sees; also without windows. */
static inline uint32_t prefix_window_begin(const struct prefix *prefix, uint32_t position)
{
        uint32_t window = prefix->conf.window;

        return window && position > window ? (position - window) / BLOCK_POSITIONS : 0;
}

/*
 * Gives a block that has references a window page, with one reference.  One must be free or
 * without references.
 */
void prefix_take_window(struct prefix *prefix, block_t block);
/* Adds a reference to the window page of a block. */
void prefix_ref_window(struct prefix *prefix, block_t block);
/*
 * Removes a reference, before the caller's reference to the block.  `useful`: a request may go on
 * from a position that sees this block in its window.
 */
void prefix_unref_window(struct prefix *prefix, block_t block, bool useful);

/*
 * `own` and `same` have the same content, and the caller uses `same` from now on.  If it needs the
 * window page (`held`: it has a reference to that of `own`), its reference moves to the window page
 * of `same`; if `same` has none, it gets the page of `own`.  `giver` is the number of the sequence,
 * not 0.  Returns false and does nothing if that is not possible: another sequence needs the page
 * of `own`, or reads an invalid page of `same`.  The caller has a reference to both blocks.  Also
 * without windows, for a block that is not held.
 */
bool prefix_hand_window(struct prefix *prefix, block_t own, block_t same, bool held,
                        uint64_t giver);
/*
 * The numbers of this sequence were not valid.  If the block has a window page of it, nobody finds
 * that page any more.
 */
void prefix_invalidate_window(struct prefix *prefix, block_t block, uint64_t giver);

/*
 * The block is not in the index any more: its window page is free, unless it has references.  Also
 * without windows.
 */
void prefix_drop_window(struct prefix *prefix, block_t block);

/* Window pages without references; also without windows. */
uint32_t prefix_windows_cached(const struct prefix *prefix);

/* Asserts the invariants above. */
void prefix_windows_check(const struct prefix *prefix);

#endif
