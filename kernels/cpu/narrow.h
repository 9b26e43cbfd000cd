/*
 * Where top_p ends in a line of very many: found without sorting them.
 *
 * A sample says about where the last one stands.  Two of the sample, one a little before and one a little behind,
 * cut the line in three; what each part weighs tells which one he is in, and only those are listed.  So
 * it goes on with the list, until few are left.  A sample may mislead, which costs another turn and no more.
 */
#ifndef KERNELS_CPU_NARROW_H
#define KERNELS_CPU_NARROW_H

#include <float.h>
#include <stdbool.h>

#include "kernels/cpu/sorter.h"

/* What a cut keeps: logits above `least`, and those equal to it with an id up to `last`. */
struct kept {
        float least;
        uint32_t last;
};
#define KEPT_ALL ((struct kept){ -FLT_MAX, UINT32_MAX }) /* -inf is never drawn */

static inline bool kept_has(struct kept kept, float logit, uint32_t id)
{
        return logit > kept.least || (logit == kept.least && id <= kept.last);
}

/* A row of logits, what they weigh, e^((logit - largest) * factor), and where there is room to look. */
struct line {
        const struct loops *loops;
        struct sorter *s; /* its tail is this row's */
        const float *logits;
        uint32_t vocab;
        float largest, factor;
};

/* The shortest run from the front of the line that weighs `target`, of `whole`; in s->sums what of each block is on it. */
struct kept narrow(const struct line *line, double target, double whole);

#endif
