/*
 * A summary of rows of logits, so that they need not be read again: the maximum and the weight of
 * each block of 32.
 *
 * A block is the output of one panel of the head. head() notes both values while the block's
 * logits are still in the L1 cache. Logits that come from elsewhere are read to make the summary.
 * Both ways give the same bits.
 */
#ifndef KERNELS_CPU_LOGIT_SUMMARY_H
#define KERNELS_CPU_LOGIT_SUMMARY_H

#include "kernels/cpu/isa.h"

struct logit_summary {
        /*
         * The logits that the summary describes. NULL: none, because an operator other than
         * head() may have written to them.
         */
        const float *logits;
        uint32_t vocab;
        /*
         * From a row's blocks to those of the next row: a whole number of groups of LOGITS_BLOCK
         * blocks.
         */
        uint32_t stride;
        /*
         * (wants_max, stride): each block's largest logit. -inf past the last block; INFINITY if
         * one of its logits is INFINITY or NaN.
         */
        float *largest;
        /*
         * (wants_max, stride), only for rows for which logit_summary_has_weights() is true: each
         * block's sum of e^((logit - the block's largest) * factor); 0 past the last block.
         */
        float *weights;
};

/* The last block of logits, padded with -inf if the vocabulary ends within it. */
struct tail {
        float logits[LOGITS_BLOCK];
};

static inline uint32_t logit_blocks_of(uint32_t count)
{
        return (count + LOGITS_BLOCK - 1) / LOGITS_BLOCK;
}

/* Where a whole block can be read: in the row, or in its tail. */
static inline const float *logit_block_at(const float *logits, uint32_t vocab,
                                          const struct tail *tail, uint32_t block)
{
        return block < vocab / LOGITS_BLOCK ? logits + (size_t)block * LOGITS_BLOCK : tail->logits;
}

void tail_fill(struct tail *tail, const float *logits, uint32_t vocab);

int logit_summary_init(struct logit_summary *s, uint32_t wants_max, uint32_t vocab_max);
void logit_summary_deinit(struct logit_summary *s);

/* True if the pick needs the weights of its row's blocks. */
bool logit_summary_has_weights(const struct pick *pick, uint32_t vocab);
/* The factor by which logits are multiplied for the weights, limited to what a float can hold. */
float logit_summary_factor(const struct pick *pick);

/* Call this if the logits that the summary describes may have been overwritten. */
static inline void logit_summary_invalidate(struct logit_summary *s)
{
        s->logits = NULL;
}
/* The summary describes these rows from now on; the caller must note each of their blocks. */
void logit_summary_begin(struct logit_summary *s, const float *logits, uint32_t vocab,
                         uint32_t wants);
/*
 * Notes block `block` of rows [from, from + count). `logits` is (count, LOGITS_BLOCK), padded
 * with -inf. Any thread may call it.
 */
void logit_summary_add_block(struct logit_summary *s, const struct loops *loops,
                             const struct pick *picks, uint32_t block, uint32_t from,
                             uint32_t count, const float *logits);

#endif
