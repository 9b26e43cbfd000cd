/*
 * A guide: the way of one stream through its grammar, with the mask of its next token.
 *
 * The mask is over the ids of the model's logits.  It has the tokens that continue the text, and
 * those that end the stream where the text may end.  An id without a text is never legal.
 *
 * Threads: as a matcher's, see grammar.h.  guide_new() only reads what never changes of the
 * grammar, so it may be called while another thread uses the grammar; so may guide_free(), for a
 * guide that no thread uses.
 */
#ifndef CONSTRAINT_GUIDE_H
#define CONSTRAINT_GUIDE_H

#include <assert.h>

#include "daemon/constraint/matcher.h"

/* All work for a stream, in the unit of `fuel`: this at once, and so much for each token. */
#define GUIDE_FUEL       UINT64_C(20000000)
#define GUIDE_FUEL_TOKEN UINT64_C(100000)

#define GUIDE_AHEAD_MAX 32u

enum guide_state {
        GUIDE_GOES_ON, /* the mask is that of the next token */
        GUIDE_WHOLE,   /* the same, and no text may follow: only end tokens are legal */
        GUIDE_SPENT,   /* a budget is spent, and there is no mask; guide_why() says which */
};

/* Tokens that may come, and the mask behind each of them. */
struct guide_ahead {
        uint32_t count, max;
        uint32_t forced; /* the last so many were not asked for: no other text is legal */
        uint32_t sure;   /* bit i: no other token is legal in place of token i */
        uint32_t *tokens;
        uint32_t *masks; /* [max][words] */
        uint64_t *used;  /* fuel */
};

struct guide {
        struct matcher *matcher;
        const struct grammar *grammar;
        const struct token_trie *trie;
        uint32_t *mask; /* of the next token */
        enum guide_state state;
        const char *why;
        uint64_t fuel; /* left for this stream */
        struct guide_ahead ahead;
        uint32_t words, end_count;
        uint32_t ends[];
};

/*
 * `ends` are the ids that end the stream.  The grammar and the trie must outlive it.  It has no
 * mask before guide_begin() or guide_copy().  It looks ahead over up to `ahead_max` tokens, which
 * are at most GUIDE_AHEAD_MAX.  NULL: out of memory.
 */
struct guide *guide_new(struct grammar *grammar, const struct token_trie *trie,
                        const uint32_t *ends, uint32_t end_count, uint32_t ahead_max);
struct guide *guide_free(struct guide *guide); /* takes NULL */
size_t guide_bytes(const struct guide *guide);

/* Each of these makes the mask, or spends a budget.  Nothing is ahead then. */
void guide_begin(struct guide *guide);
void guide_take(struct guide *guide, uint32_t token); /* legal by the mask */
/* Both have the same grammar and the same trie. */
void guide_copy(struct guide *to, const struct guide *from);

/*
 * Looks ahead along these guesses, as long as they are legal and the text goes on behind them.
 * Where a guess is missing or illegal, the token of a forced text takes its place, if there is one.
 * The guide itself stays where it is.  It does not look where the stream's budget would be spent,
 * nor if the grammar is crowded: guesses leave these to what is sure to be needed.
 */
void guide_look_ahead(struct guide *guide, const uint32_t *guesses, uint32_t count, uint32_t most);
/* The first `count` tokens that are ahead have come; guide_take() follows. */
void guide_confirm(struct guide *guide, uint32_t count);

/* The mask behind the first `count` tokens that are ahead; 0: the guide's own. */
static inline const uint32_t *guide_mask(const struct guide *guide, uint32_t count)
{
        assert(count <= guide->ahead.count);
        return count ? guide->ahead.masks + (size_t)(count - 1) * guide->words : guide->mask;
}

#endif
