/*
 * Draws a token of the candidates that the cuts keep, as kernels/draw.h says, without logarithms
 * for each.
 *
 * A candidate's score is larger than that of another if its time is less than weight * e^-score,
 * where its weight is e^((logit - largest) / temperature). As -log(u) >= 1 - u, a lower bound of
 * its time follows from the words alone. Candidates whose lower bound is too large are skipped, and
 * before them whole blocks by a bound of their scores (score-bound.h). The candidates that are left
 * are compared by their exact scores.
 */
#ifndef KERNELS_CPU_DRAW_TOKEN_H
#define KERNELS_CPU_DRAW_TOKEN_H

#include "kernels/cpu/top-p.h"

/*
 * From all that the cutoff keeps. `best` is the first candidate. `largest_of` has the largest logit
 * of each block, padded to whole groups of LOGITS_BLOCK blocks.
 */
uint32_t draw_from_all(const struct candidates *candidates, const struct pick *pick, uint32_t best,
                       const float *largest_of, struct cutoff cutoff);
/*
 * From the first `count` candidates of a list, best first. Their chances are multiples of their
 * weights. The temperature may be another than the pick's.
 */
uint32_t draw_from_few(const struct candidates *candidates, const struct pick *pick,
                       double temperature, const struct candidate *list, const double *chances,
                       uint32_t count);

#endif
