/*
 * The sampling of kernels/draw.h, computed in long double with the C library's sort: the order
 * of the candidates, how many of them the cuts keep, and which of them is drawn.  It compiles
 * as C and as C++, and shares no code with any backend.
 *
 *      ref_sampler_new(&sampler, vocab_max);
 *      ref_sampler_load(&sampler, logits, vocab);
 *      ref_sampler_pick(&sampler, &pick);                  the token
 *      ref_sampler_allows(&sampler, &pick, token, &near);  ... or one that rounding may make of it
 *      ref_sampler_free(&sampler);
 *
 * A backend rounds.  A border of top_p or min_p, or the draw, may lie closer to the border
 * between two tokens than the error of the backend's sums.  Then either token is right; `near`
 * is that error.
 */
#ifndef TESTS_KERNELS_REF_SAMPLER_H
#define TESTS_KERNELS_REF_SAMPLER_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

#include "kernels/draw.h"
#include "kernels/kernels.h"

/* Draws too rare to be found by trying, for seed 0; each is a choice and a position. */
#define DRAW_LEAST      0xadcbd2c4u, UINT64_C(0xf783ed5a01eea480) /* piece 0 */
#define DRAW_BELOW_HALF 0x44dcd110u, UINT64_C(0xc65c820e3a69d08e) /* piece 2^39 - 1 */
#define DRAW_ABOVE_HALF 0x9eded076u, UINT64_C(0xfbea6cd0b264b5c4) /* piece 2^39 */
#define DRAW_MOST       0x0b47663eu, UINT64_C(0x5388d48ac2b5232f) /* piece 2^40 - 1 */

struct candidate {
        float logit;
        uint32_t id;
};

struct ref_sampler {
        uint32_t vocab;
        /* no NaN or +infinity, and not all -infinity: the row can be picked from */
        bool finite;
        struct candidate *all; /* best first */
        long double *chances;  /* of all[i], as parts of the whole that top_k keeps */
        long double *by_id;    /* chances by token id, of kept candidates */
};

struct near {
        long double sum; /* the error of a sum of chances, as part of the whole */
        /*
         * the relative error of a chance, for each factor of e by which it is below the largest
         * chance
         */
        long double chance;
};

static inline void ref_sampler_new(struct ref_sampler *ref_sampler, uint32_t vocab_max)
{
        memset(ref_sampler, 0, sizeof(*ref_sampler));
        ref_sampler->all = (struct candidate *)calloc(vocab_max, sizeof(*ref_sampler->all));
        ref_sampler->chances = (long double *)calloc(vocab_max, sizeof(*ref_sampler->chances));
        ref_sampler->by_id = (long double *)calloc(vocab_max, sizeof(*ref_sampler->by_id));
        assert_true(ref_sampler->all && ref_sampler->chances && ref_sampler->by_id);
}

static inline void ref_sampler_free(struct ref_sampler *ref_sampler)
{
        free(ref_sampler->all);
        free(ref_sampler->chances);
        free(ref_sampler->by_id);
}

static inline int candidate_compare(const void *a, const void *b)
{
        const struct candidate *x = (const struct candidate *)a, *y = (const struct candidate *)b;

        if (x->logit != y->logit)
                return x->logit > y->logit ? -1 : 1;
        return x->id < y->id ? -1 : 1;
}

static inline void ref_sampler_load(struct ref_sampler *ref_sampler, const float *logits,
                                    uint32_t vocab)
{
        bool any = false, bad = false;

        for (uint32_t i = 0; i < vocab; i++) {
                ref_sampler->all[i].logit = logits[i];
                ref_sampler->all[i].id = i;
                any = any || logits[i] > -INFINITY;
                bad = bad || isnan(logits[i]) || logits[i] == INFINITY;
        }
        ref_sampler->vocab = vocab;
        ref_sampler->finite = any && !bad;
        if (ref_sampler->finite)
                qsort(ref_sampler->all, vocab, sizeof(*ref_sampler->all), candidate_compare);
}

/* Steps 2 and 3: returns how many candidates top_k keeps, and sets their chances. */
static inline uint32_t ref_sampler_weigh(struct ref_sampler *ref_sampler, const struct pick *pick)
{
        uint32_t count =
                pick->top_k && pick->top_k < ref_sampler->vocab ? pick->top_k : ref_sampler->vocab;
        long double largest = ref_sampler->all[0].logit, sum = 0;

        for (uint32_t i = 0; i < count; i++) {
                ref_sampler->chances[i] =
                        expl((ref_sampler->all[i].logit - largest) / pick->temperature);
                sum += ref_sampler->chances[i];
        }
        for (uint32_t i = 0; i < count; i++)
                ref_sampler->chances[i] /= sum;
        return count;
}

/*
 * Steps 4 and 5: returns how many of the first `count` are kept if the borders are moved by
 * these amounts.
 */
static inline uint32_t ref_sampler_cut(const struct ref_sampler *ref_sampler,
                                       const struct pick *pick, uint32_t count,
                                       long double top_p_by, long double min_p_by)
{
        long double top_p = pick->top_p + top_p_by, sum = 0;
        long double least = pick->min_p * (1 + min_p_by) * ref_sampler->chances[0];
        uint32_t kept = 0, likely = 0;

        while (kept < count && (pick->top_p >= 1 || !kept || sum < top_p))
                sum += ref_sampler->chances[kept++];
        while (likely < kept &&
               (pick->min_p <= 0 || !likely || ref_sampler->chances[likely] >= least))
                likely++;
        return likely;
}

/* Step 6 */
static inline uint32_t ref_sampler_draw(struct ref_sampler *ref_sampler, const struct pick *pick,
                                        uint32_t kept)
{
        long double sum = 0, mark;
        uint32_t last = 0;

        for (uint32_t i = 0; i < ref_sampler->vocab; i++)
                ref_sampler->by_id[i] = 0;
        for (uint32_t i = 0; i < kept; i++) {
                ref_sampler->by_id[ref_sampler->all[i].id] = ref_sampler->chances[i];
                sum += ref_sampler->chances[i];
        }
        mark = draw(pick->seed, pick->sample_index, pick->position) * sum;
        sum = 0;
        for (uint32_t i = 0; i < ref_sampler->vocab && sum <= mark; i++) {
                sum += ref_sampler->by_id[i];
                last = i;
        }
        return last;
}

static inline uint32_t ref_sampler_pick(struct ref_sampler *ref_sampler, const struct pick *pick)
{
        if (!ref_sampler->finite)
                return PICK_NOT_FINITE;
        if (pick->given)
                return pick->given - 1;
        if (pick->temperature == 0)
                return ref_sampler->all[0].id;
        return ref_sampler_draw(
                ref_sampler, pick,
                ref_sampler_cut(ref_sampler, pick, ref_sampler_weigh(ref_sampler, pick), 0, 0));
}

/*
 * Whether the draw falls on `token` or within `by` of it, for some number of kept candidates
 * from `least` to `most`.
 */
static inline bool ref_sampler_reaches(const struct ref_sampler *ref_sampler,
                                       const struct pick *pick, uint32_t least, uint32_t most,
                                       uint32_t token, long double by)
{
        long double drawn = draw(pick->seed, pick->sample_index, pick->position);
        long double sum = 0, before = 0, own = 0;

        for (uint32_t i = 0; i < most; i++) {
                sum += ref_sampler->chances[i];
                if (ref_sampler->all[i].id < token)
                        before += ref_sampler->chances[i];
                if (ref_sampler->all[i].id == token)
                        own = ref_sampler->chances[i];
                if (i + 1 >= least && own > 0 && before <= (drawn + by) * sum &&
                    before + own > (drawn - by) * sum)
                        return true;
        }
        return false;
}

static inline bool ref_sampler_allows(struct ref_sampler *ref_sampler, const struct pick *pick,
                                      uint32_t token, const struct near *near)
{
        long double nats = pick->min_p > 0 ? fmaxl(1, -logl(pick->min_p)) : 1;
        uint32_t count, least, most;

        if (!ref_sampler->finite || pick->given || pick->temperature == 0)
                return token == ref_sampler_pick(ref_sampler, pick);
        count = ref_sampler_weigh(ref_sampler, pick);
        least = ref_sampler_cut(ref_sampler, pick, count, -near->sum, near->chance * nats);
        most = ref_sampler_cut(ref_sampler, pick, count, near->sum, -near->chance * nats);
        return ref_sampler_reaches(ref_sampler, pick, least, most, token, near->sum);
}

#endif
