/*
 * What is known of rows of logits without reading them: of each block of 32, what is the largest and what all
 * weigh.
 *
 * A block is a panel of the head that makes them, which notes both while it still has the logits in the first cache.
 * Logits that came otherwise are read for it.  Both ways give the same bits.
 */
#ifndef KERNELS_CPU_GIST_H
#define KERNELS_CPU_GIST_H

#include "kernels/cpu/isa.h"

struct gist {
        /* That this is about.  NULL: none, for any operator but head() may have written to them. */
        const float *logits;
        uint32_t vocab;
        /* From a row's blocks to the next one's: a whole number of blocks of blocks. */
        uint32_t stride;
        /* (wants_max, stride).  -inf past the last block; INFINITY: one of its logits is that, or NaN. */
        float *largest;
        /* ... of rows that gist_weighs(): sums of e^((logit - the block's largest) * factor); 0 past the last. */
        float *weights;
};

/* The last block of logits, filled up with -inf where the vocabulary ends within it. */
struct tail {
        float logits[LOGITS_BLOCK];
};

static inline uint32_t blocks_of(uint32_t count)
{
        return (count + LOGITS_BLOCK - 1) / LOGITS_BLOCK;
}

/* Where all of a block may be read, be it in the row or in its tail. */
static inline const float *block_at(const float *logits, uint32_t vocab, const struct tail *tail,
                                    uint32_t block)
{
        return block < vocab / LOGITS_BLOCK ? logits + (size_t)block * LOGITS_BLOCK : tail->logits;
}

void tail_fill(struct tail *tail, const float *logits, uint32_t vocab);

int gist_init(struct gist *g, uint32_t wants_max, uint32_t vocab_max);
void gist_deinit(struct gist *g);

/* Whether anybody will want to know what blocks of that pick's row weigh, ... */
bool gist_weighs(const struct pick *pick, uint32_t vocab);
/* ... and what logits are multiplied by, as a float allows. */
float gist_factor(const struct pick *pick);

/* Somebody may have written to what it was about. */
static inline void gist_forget(struct gist *g)
{
        g->logits = NULL;
}
/* It is about these rows from now on; each of their blocks is to be noted. */
void gist_begin(struct gist *g, const float *logits, uint32_t vocab, uint32_t wants);
/* Block `block` of rows [from, from + count), `logits` being (count, LOGITS_BLOCK), filled up with -inf; any thread. */
void gist_note(struct gist *g, const struct loops *loops, const struct pick *picks, uint32_t block,
               uint32_t from, uint32_t count, const float *logits);

#endif
