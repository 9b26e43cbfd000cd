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

#include "daemon/constraint/matcher.h"

/* All work for a stream, in the unit of `fuel`: this at once, and so much for each token. */
#define GUIDE_FUEL       UINT64_C(20000000)
#define GUIDE_FUEL_TOKEN UINT64_C(100000)

enum guide_state {
        GUIDE_GOES_ON, /* the mask is that of the next token */
        GUIDE_WHOLE,   /* the same, and no text may follow: only end tokens are legal */
        GUIDE_SPENT,   /* a budget is spent, and there is no mask; guide_why() says which */
};

struct guide {
        struct matcher *matcher;
        uint32_t *mask; /* of the next token */
        enum guide_state state;
        const char *why;
        uint64_t fuel; /* left for this stream */
        uint32_t words, end_count;
        uint32_t ends[];
};

/*
 * `ends` are the ids that end the stream.  The grammar and the trie must outlive it.  It has no
 * mask before guide_begin() or guide_copy().  NULL: out of memory.
 */
struct guide *guide_new(struct grammar *grammar, const struct token_trie *trie,
                        const uint32_t *ends, uint32_t end_count);
struct guide *guide_free(struct guide *guide); /* takes NULL */
size_t guide_bytes(const struct guide *guide);

/* Each of these makes the mask, or spends a budget. */
void guide_begin(struct guide *guide);
void guide_take(struct guide *guide, uint32_t token); /* legal by the mask */
/* Both have the same grammar and the same trie. */
void guide_copy(struct guide *to, const struct guide *from);

#endif
