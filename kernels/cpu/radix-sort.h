/*
 * Sorts some of a row's logits: the largest first, and of equals the lowest id first.
 *
 * It is a radix sort. A float's bits are converted so that a larger logit has a smaller key. The
 * passes are stable, so equals keep their initial order, which is by id.
 */
#ifndef KERNELS_CPU_RADIX_SORT_H
#define KERNELS_CPU_RADIX_SORT_H

#include <stdint.h>

#include "kernels/convert.h"
#include "kernels/cpu/logit-summary.h"

struct candidate {
        uint32_t key, id;
};

/* Scratch memory of one thread, with room for a vocabulary. */
struct pick_scratch {
        struct candidate *a, *b; /* sorting goes from one to the other, and back */
        double *chances;         /* probabilities of candidates */
        /* Weights of logits, by id, padded to whole groups of LOGITS_BLOCK blocks. */
        float *weights;
        float *block_weights; /* weights of blocks, padded in the same way */
        /*
         * Ids of some logits, and their weights; with room for one block more than the vocabulary
         * has.
         */
        uint32_t *listed_ids;
        float *listed_weights;
        float *group_maxima; /* the largest logit of each group of 32 blocks */
        float *bounds;       /* of the scores of each block, padded like block_weights */
        float *group_bounds; /* the largest of each group, padded to whole groups of groups */
        float *edited;       /* a row after edits and mask */
        struct tail tail;
};

int pick_scratch_init(struct pick_scratch *s, uint32_t vocab_max);
void pick_scratch_deinit(struct pick_scratch *s);

/*
 * Smaller for larger logits, equal for equal ones (-0 and 0 are equal). It has no branch, because
 * the processor cannot predict signs well.
 */
static inline uint32_t sort_key(float logit)
{
        uint32_t u = float_bits(logit + 0.0f), negative = -(u >> 31);

        return u ^ (0x7fffffff & ~negative);
}

/* The logit that has this key, except for the sign of 0. */
static inline float key_logit(uint32_t key)
{
        return bits_float(key >> 31 ? key : key ^ 0x7fffffff);
}

/* Sorts by key and keeps the order of equals. Returns where the result is, `c` or `spare`. */
struct candidate *candidates_sort(struct candidate *c, struct candidate *spare, uint32_t count);
/*
 * Writes the first candidates of the sorted order into s->a, in order of id. Returns how many: at
 * least `count`, or all. `largest` has the maxima of the row's blocks, s->group_maxima those of
 * groups of 32 blocks.
 */
uint32_t candidates_select(struct pick_scratch *s, const float *logits, uint32_t vocab,
                           const float *largest, uint32_t count);

#endif
