/*
 * The cuts of a pick: which of its candidates are kept. They compute in doubles, in a fixed order,
 * for the backends "ref" and "cpu".
 *
 * The candidates are in line: logit descending, then id ascending. A cut shortens the line. The
 * cuts are made in this order, each on what the one before it has left:
 *
 *     n_sigma     keeps logits >= largest - n_sigma * s; s is the deviation of the logits of all
 *                 candidates (of the population, not of a sample)
 *     temperature if order is TEMPERATURE_FIRST
 *     top_k       keeps the first top_k
 *     typical     in order of |-log(p) - H|, and then of the line, keeps the shortest run whose sum
 *                 of p reaches `typical`; H is the entropy
 *     top_p       keeps the shortest run from the front whose sum of p reaches top_p
 *     min_p       keeps p >= min_p * p of the first; at least the first
 *     mirostat    keeps -log2(p) <= mu; at least the first
 *     XTC         if draw() < xtc_chance: of those with p >= xtc_least, drops all but the last
 *     temperature if order is TEMPERATURE_LAST; until then, p are those of temperature 1
 *
 * p = softmax(logit / temperature) of the candidates that are left where typical, top_p, mirostat
 * or XTC begins; min_p compares p that top_p had. H = -sum of p log(p).
 *
 * Dynamic temperature. With a temperature_range r, the temperature t becomes
 *     lo + (t + r - lo) * (H / log(n))^temperature_exponent, lo = max(0, t - r)
 * where n candidates are left, and H is their entropy at temperature 1; n = 1 leaves t as it is. If
 * the result is 0, only the first candidate is kept.
 *
 * A sum of 2^20 chances has an error below 1e-9 of itself. Where a border lies closer to a sum, the
 * number of kept candidates is a matter of rounding.
 */
#ifndef KERNELS_CUTS_H
#define KERNELS_CUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

struct line {
        const float *logits; /* by id, after edits and mask */
        uint32_t *ids;       /* the candidates, in line */
        uint32_t count;
        double *chances;    /* scratch memory: as many */
        double temperature; /* of the draw: set by cuts_make() */
};

/* Writes the logits after edits and mask to `ret_logits`. */
void logits_edit(const struct pick *pick, const float *logits, uint32_t vocab, float *ret_logits);
/* The smallest logit that n_sigma keeps, of all that are above -inf; at least one is. */
double n_sigma_least(const struct pick *pick, const float *logits, uint32_t vocab);
/*
 * Makes the cuts after n_sigma. The line has at least one candidate before and after. The line may
 * lack candidates that top_k drops, unless cuts_need_all().
 */
void cuts_make(const struct pick *pick, struct line *line);
bool cuts_need_all(const struct pick *pick);

/*
 * The surprise of a token of the line, after the cuts: -log2(p), where p = softmax(logit /
 * temperature) of the candidates that are left.
 */
double surprise_of(const struct line *line, uint32_t id);

#endif
