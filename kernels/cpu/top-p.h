/*
 * Finds where top_p ends among very many candidates, without sorting them.
 *
 * Candidates are in order: logit descending, then id ascending. A sample estimates the position at
 * which the cut ends. Two members of the sample, one slightly before that position and one slightly
 * behind it, divide the candidates into three parts. The weight of each part shows which part
 * contains the cut, and only that part is listed. The same is repeated with the list until few
 * candidates are left. If a sample misleads, that costs one more round and nothing else.
 */
#ifndef KERNELS_CPU_TOP_P_H
#define KERNELS_CPU_TOP_P_H

#include <float.h>
#include <stdbool.h>

#include "kernels/cpu/radix-sort.h"

/*
 * The candidates that a cut keeps: logits above `least`, and those equal to it with an id up to
 * `last`.
 */
struct cutoff {
        float least;
        uint32_t last;
};
#define CUTOFF_NONE ((struct cutoff){ -FLT_MAX, UINT32_MAX }) /* -inf is never drawn */

static inline bool cutoff_keeps(struct cutoff cutoff, float logit, uint32_t id)
{
        return logit > cutoff.least || (logit == cutoff.least && id <= cutoff.last);
}

/*
 * A row of logits, their weights e^((logit - largest) * factor), and scratch memory for the
 * search.
 */
struct candidates {
        const struct loops *loops;
        struct pick_scratch *s; /* its tail is this row's */
        const float *logits;
        uint32_t vocab;
        float largest, factor;
};

/*
 * Finds the shortest run of first candidates whose weight reaches `target`; `whole` is the weight
 * of all. Overwrites s->block_weights.
 */
struct cutoff find_top_p(const struct candidates *candidates, double target, double whole);

#endif
