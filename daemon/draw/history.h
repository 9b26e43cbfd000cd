/*
 * A history: what the rules of a request make of the tokens before a draw.
 *
 * A draw is a pure function of these tokens.  A history only remembers counts of the tokens that it
 * has seen, so that a draw costs little; a new one makes the same edits.  So nothing of it is saved
 * or copied: a fork begins with a new one.  All its memory is allocated at admission.  The engine
 * uses it.
 */
#ifndef DAEMON_DRAW_HISTORY_H
#define DAEMON_DRAW_HISTORY_H

#include "daemon/draw/rules.h"

struct history;

/* Bytes of a history of at most `tokens_max` tokens, for rules that need one. */
size_t history_bytes(const struct rules *rules, uint32_t tokens_max);
/* The rules must outlive it.  0 or -ENOMEM. */
int history_new(const struct rules *rules, uint32_t tokens_max, struct history **ret_history);
struct history *history_free(struct history *history); /* takes NULL */

/* Where mask and edits are written: as many as a pick may have. */
struct pick_space {
        uint32_t *mask;
        struct pick_edit *edits;
};

/*
 * Sets mask and edits of the pick of the token behind these `count` tokens; the answer begins at
 * `answer`.  If the pick has a mask, its token must be legal by both.  The tokens are those of the
 * call before, and perhaps more.  Mask and edits are in `space`; NULL: they are the history's, and
 * valid until the next call without a space.
 */
void history_pick(struct history *history, const struct pick_space *space, const uint32_t *tokens,
                  uint32_t count, uint32_t answer, struct pick *pick);

/*
 * Forgets the tokens behind the first `count`, which were guesses: the next pick may have others
 * there.  No effect if it has not seen them.
 */
void history_return(struct history *history, const uint32_t *tokens, uint32_t count,
                    uint32_t answer);

/*
 * The same for rules that need no history.  The mask of the pick stays, as such rules have none
 * beside one.  `made`: how many tokens the answer has.
 */
void rules_pick(const struct rules *rules, uint32_t made, struct pick *pick);

#endif
