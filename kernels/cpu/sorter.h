/*
 * Some of a row's logits, put in line: the largest first, of equals the one with the lowest id.
 *
 * They are sorted by radix: a float's bits are turned so that a larger logit is a smaller number, and
 * passes that are stable keep equals in order of id, which is how they start.
 */
#ifndef KERNELS_CPU_SORTER_H
#define KERNELS_CPU_SORTER_H

#include <stdint.h>

#include "kernels/cpu/gist.h"
#include "kernels/rows.h"

struct candidate {
        uint32_t key, id;
};

/* One thread's room for a vocabulary. */
struct sorter {
        struct candidate *a, *b; /* to sort from one into the other, and back */
        double *chances;         /* of candidates */
        float *each;             /* what logits weigh, by id, whole blocks of blocks ... */
        float *sums;             /* ... and their blocks */
        uint32_t *where;         /* ids of some, and ... */
        float *found;            /* ... what these weigh; a block more than there are */
        float *tops;             /* the largest of 32 blocks each */
        struct tail tail;
};

int sorter_init(struct sorter *s, uint32_t vocab_max);
void sorter_deinit(struct sorter *s);

/* Smaller for larger logits, equal for equal ones (-0 and 0 are).  Without a branch: signs are hard to guess. */
static inline uint32_t sort_key(float logit)
{
        uint32_t u = float_bits(logit + 0.0f), negative = -(u >> 31);

        return u ^ (0x7fffffff & ~negative);
}

/* The logit whose key it is, but for the sign of 0. */
static inline float key_logit(uint32_t key)
{
        return bits_float(key >> 31 ? key : key ^ 0x7fffffff);
}

/* By key, keeping the order of equals; returns where the result is, `c` or `room`. */
struct candidate *candidates_sort(struct candidate *c, struct candidate *room, uint32_t count);
/*
 * The first ones in line into s->a, in order of id; returns how many: `count` at least, or all.  `largest` are those of
 * the row's blocks, s->tops those of theirs.
 */
uint32_t sorter_first(struct sorter *s, const float *logits, uint32_t vocab, const float *largest,
                      uint32_t count);

#endif
