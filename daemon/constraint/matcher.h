/*
 * Follows a grammar through a text, token by token, and says which tokens may come next.
 *
 * It is an Earley parser whose terminals are the lexemes of the grammar, read side by side with the
 * rules.  Rows are made where a lexeme may end.  Rows, and what is being read between them, lie on
 * stacks.  Going back to an earlier token cuts the stacks, and takes constant time.
 *
 * Memory is taken once, by matcher_new().  Rows that no longer matter are removed when the stacks
 * are nearly full.  The matcher remembers the last `back_max` tokens, so that it can go back.
 *
 * Threads: see grammar.h.  A matcher, its grammar and other matchers of the grammar are used by one
 * thread at a time.  No call allocates except matcher_new(); no call waits.
 */
#ifndef CONSTRAINT_MATCHER_H
#define CONSTRAINT_MATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/constraint/grammar.h"
#include "daemon/constraint/token-trie.h"

struct matcher;

struct matcher_limits {
        uint32_t items;     /* of all rows */
        uint32_t row_items; /* of one row */
        uint32_t back_max;  /* tokens */
        uint32_t depth;     /* rules that are open at one place; deeper texts are illegal */
        uint64_t fuel;      /* for a mask, or for one token: nodes, items, terms */
};

extern const struct matcher_limits matcher_limits_default;

enum matcher_outcome {
        MATCHER_FINE,
        MATCHER_ILLEGAL, /* the grammar does not allow this token here; nothing has changed */
        MATCHER_SPENT,   /* a budget is spent; matcher_why() says which.  Only going back helps */
};

/*
 * Only reads what never changes of the grammar.  Begin with matcher_reset() or matcher_copy().  The
 * grammar and the trie must outlive it.  NULL: out of memory.
 */
struct matcher *matcher_new(struct grammar *grammar, const struct token_trie *trie,
                            const struct matcher_limits *limits);
struct matcher *matcher_free(struct matcher *matcher); /* takes NULL */
/* Back to the beginning of the text. */
void matcher_reset(struct matcher *matcher);
size_t matcher_bytes(const struct matcher *matcher);

enum matcher_outcome matcher_take(struct matcher *matcher, uint32_t token);
/* The same for text that is no token of the trie.  It counts as one token for matcher_back(). */
enum matcher_outcome matcher_take_bytes(struct matcher *matcher, const char *bytes, size_t count);

/* How many tokens matcher_back() may take back now. */
uint32_t matcher_back_most(const struct matcher *matcher);
/* Takes back the last `count` tokens, and behind them the work that has spent a budget. */
void matcher_back(struct matcher *matcher, uint32_t count);

/* Makes `to` equal to `from`.  Both have the same grammar, trie and limits. */
void matcher_copy(struct matcher *to, const struct matcher *from);

bool matcher_can_end(const struct matcher *matcher);  /* the text is complete */
bool matcher_must_end(const struct matcher *matcher); /* and nothing may follow */

/*
 * Sets the bit of each token that may come next, and clears all others: bit i & 31 of
 * ret_bits[i >> 5].  Tokens that end a generation are not known here: they are legal if and only if
 * matcher_can_end().
 */
enum matcher_outcome matcher_mask(struct matcher *matcher, uint32_t *ret_bits);

/*
 * The bytes that must come next, at most `size`.  They stop where the text may end, or where more
 * than one byte may follow.
 */
enum matcher_outcome matcher_forced(struct matcher *matcher, uint8_t *ret_bytes, size_t size,
                                    size_t *ret_count);

/* The fuel that the last call of matcher_take() or matcher_mask() has used. */
uint64_t matcher_used(const struct matcher *matcher);

/* After MATCHER_SPENT: which budget, in words. */
const char *matcher_why(const struct matcher *matcher);

#endif
