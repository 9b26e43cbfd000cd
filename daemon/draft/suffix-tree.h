/*
 * A suffix tree: which tokens followed the last time, when the end of a text occurred before.
 *
 * It has every place of a text, and grows with it (Ukkonen's algorithm, which adds a token in
 * constant time on average).  Its active point is the longest end of the text that also occurs
 * earlier.  A draft reads on from there: along an edge, and at a branch into the child that was
 * used last.
 *
 * The tree does not copy the text, which must not change once it was added.  All memory is
 * allocated by suffix_tree_new().  If the text is longer than the tree was begun for, the tree
 * begins again with its last half.
 */
#ifndef DAEMON_DRAFT_SUFFIX_TREE_H
#define DAEMON_DRAFT_SUFFIX_TREE_H

#include <stddef.h>
#include <stdint.h>

struct suffix_tree;

/* At most 70 for each token and some more. */
size_t suffix_tree_bytes(uint32_t tokens_max);
/* 0 or -ENOMEM; tokens_max is at least 1.  It is of no text before suffix_tree_begin(). */
int suffix_tree_new(uint32_t tokens_max, struct suffix_tree **ret_tree);
struct suffix_tree *suffix_tree_free(struct suffix_tree *tree); /* takes NULL */

/* Of a new text, with up to `tokens_max` tokens; no more than the tree was made for. */
void suffix_tree_begin(struct suffix_tree *tree, uint32_t tokens_max);

/*
 * The text has `count` tokens now, as many as before or more.  Adds up to `most` of those that the
 * tree does not have.  Returns how many are still missing.
 */
uint32_t suffix_tree_add(struct suffix_tree *tree, const uint32_t *text, uint32_t count,
                         uint32_t most);

/* The length of the longest end of the text that occurs earlier in it, too; they may overlap. */
uint32_t suffix_tree_match(const struct suffix_tree *tree);
/*
 * What followed it there: `most` tokens; none if the match is empty.  No token may be missing.
 * Returns how many.
 */
uint32_t suffix_tree_draft(struct suffix_tree *tree, const uint32_t *text, uint32_t most,
                           uint32_t *ret_tokens);

#endif
