/*
 * The sampling of kernels/draw.h, computed in long double with the C library's sort: the order
 * of the candidates, how many of them the cuts keep, and which of them is drawn.  It compiles
 * as C and as C++, and shares no code with any backend.
 *
 *      ref_sampler_new(&sampler, vocab_max);
 *      ref_sampler_load(&sampler, logits, vocab);
 *      ref_sampler_pick(&sampler, &pick);                  the token
 *      ref_sampler_allows(&sampler, &pick, token, &near);  ... or one that rounding may make of it
 *      ref_sampler_aim(&sampler, &pick, token);            draws the token, if no cut drops it
 *      ref_sampler_free(&sampler);
 *
 * A backend rounds.  A border of top_p or min_p may lie closer to the border between two tokens
 * than the error of the backend's sums.  Then either number of kept tokens is right; `near` is that
 * error.
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

/* More than the rounding of a backend's scores. */
#define NEAR_SCORE 1e-10L

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
        assert_true(ref_sampler->all && ref_sampler->chances);
}

static inline void ref_sampler_free(struct ref_sampler *ref_sampler)
{
        free(ref_sampler->all);
        free(ref_sampler->chances);
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

static inline uint32_t ref_sampler_word(const struct pick *pick, uint32_t purpose, uint32_t n)
{
        uint32_t c[4];

        c[0] = (uint32_t)pick->position;
        c[1] = (uint32_t)(pick->position >> 32);
        c[2] = pick->sample_index;
        c[3] = purpose * 0x10000000 + n / 64 * 16 + n % 16;
        philox(c, pick->seed);
        return c[n / 16 % 4];
}

static inline long double ref_sampler_wait(uint32_t word)
{
        return -logl((word + 0.5L) / 4294967296.0L);
}

static inline long double ref_sampler_time(const struct pick *pick, uint32_t id)
{
        long double least = ref_sampler_wait(ref_sampler_word(pick, 1, id / 32)) / 32;

        if (ref_sampler_word(pick, 2, id / 32) / 0x8000000 == id % 32)
                return least;
        return least + ref_sampler_wait(ref_sampler_word(pick, 3, id));
}

/* Of all[at]. */
static inline long double ref_sampler_score(const struct ref_sampler *ref_sampler,
                                            const struct pick *pick, uint32_t at)
{
        const struct candidate *c = &ref_sampler->all[at];

        return ((long double)c->logit - ref_sampler->all[0].logit) / pick->temperature -
               logl(ref_sampler_time(pick, c->id));
}

/* Step 6: the index of the best score among the first `kept`. */
static inline uint32_t ref_sampler_best(const struct ref_sampler *ref_sampler,
                                        const struct pick *pick, uint32_t kept)
{
        long double best = -INFINITY;
        uint32_t at = 0;

        for (uint32_t i = 0; i < kept; i++) {
                long double score;

                if (ref_sampler->chances[i] < 1e-30L * ref_sampler->chances[0])
                        continue; /* as -log(time) is between -3.2 and 26.4 */
                score = ref_sampler_score(ref_sampler, pick, i);
                if (score > best ||
                    (score == best && ref_sampler->all[i].id < ref_sampler->all[at].id)) {
                        best = score;
                        at = i;
                }
        }
        return at;
}

static inline uint32_t ref_sampler_pick(struct ref_sampler *ref_sampler, const struct pick *pick)
{
        uint32_t kept;

        if (!ref_sampler->finite)
                return PICK_NOT_FINITE;
        if (pick->given)
                return pick->given - 1;
        if (pick->temperature == 0)
                return ref_sampler->all[0].id;
        kept = ref_sampler_cut(ref_sampler, pick, ref_sampler_weigh(ref_sampler, pick), 0, 0);
        return ref_sampler->all[ref_sampler_best(ref_sampler, pick, kept)].id;
}

/* Whether `token` has the best score of the kept, for some number of these from least to most. */
static inline bool ref_sampler_reaches(const struct ref_sampler *ref_sampler,
                                       const struct pick *pick, uint32_t least, uint32_t most,
                                       uint32_t token)
{
        uint32_t at = 0, best;

        while (at < most && ref_sampler->all[at].id != token)
                at++;
        if (at == most)
                return false;
        best = ref_sampler_best(ref_sampler, pick, at < least ? least : at + 1);
        return ref_sampler_score(ref_sampler, pick, at) >=
               ref_sampler_score(ref_sampler, pick, best) - NEAR_SCORE;
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
        return ref_sampler_reaches(ref_sampler, pick, least, most, token);
}

/* Sets the position so that this token is drawn if no cut drops it. */
static inline void ref_sampler_aim(struct ref_sampler *ref_sampler, struct pick *pick,
                                   uint32_t token)
{
        struct pick uncut = *pick;
        uint32_t at = 0, count;

        uncut.top_k = 0;
        count = ref_sampler_weigh(ref_sampler, &uncut);
        while (ref_sampler->all[at].id != token)
                at++;
        do
                do
                        uncut.position++;
                while (ref_sampler_word(&uncut, 1, token / 32) <
                               (1 - 40 * ref_sampler->chances[at]) * 4294967296.0L ||
                       ref_sampler_time(&uncut, token) > ref_sampler->chances[at]);
        while (ref_sampler_best(ref_sampler, &uncut, count) != at);
        pick->position = uncut.position;
}

#endif
