/*
 * Finds where top_p ends among very many candidates, without sorting them.
 *
 * A line is the row's candidates in order: logit descending, then id ascending. A sample
 * estimates the position at which the cut ends. Two members of the sample, one slightly before
 * that position and one slightly behind it, divide the line into three parts. The weight of each
 * part shows which part contains the cut, and only that part is listed. The same is repeated with
 * the list until few candidates are left. If a sample misleads, that costs one more round and
 * nothing else.
 */
#ifndef KERNELS_CPU_NARROW_H
#define KERNELS_CPU_NARROW_H

#include <float.h>
#include <stdbool.h>

#include "kernels/cpu/sorter.h"

/*
 * The candidates that a cut keeps: logits above `least`, and those equal to it with an id up to
 * `last`.
 */
struct kept {
        float least;
        uint32_t last;
};
#define KEPT_ALL ((struct kept){ -FLT_MAX, UINT32_MAX }) /* -inf is never drawn */

static inline bool kept_has(struct kept kept, float logit, uint32_t id)
{
        return logit > kept.least || (logit == kept.least && id <= kept.last);
}

/*
 * A row of logits, their weights e^((logit - largest) * factor), and scratch memory for the
 * search.
 */
struct line {
        const struct loops *loops;
        struct sorter *s; /* its tail is this row's */
        const float *logits;
        uint32_t vocab;
        float largest, factor;
};

/*
 * Finds the shortest run from the front of the line whose weight reaches `target`; `whole` is the
 * weight of all. s->sums gets, for each block, the weight of its members in that run.
 */
struct kept narrow(const struct line *line, double target, double whole);

#endif
