/*
 * The sampling of kernels/draw.h, computed in long double with the C library's sort: the order
 * of the candidates, how many of them the cuts keep, and which of them is drawn.  It compiles
 * as C and as C++, and shares no code with any backend.
 *
 *      line_new(&line, vocab_max);
 *      line_up(&line, logits, vocab);
 *      line_pick(&line, &pick);                  the token
 *      line_allows(&line, &pick, token, &near);  ... or one that rounding may make of it
 *      line_free(&line);
 *
 * A backend rounds.  A border of top_p or min_p, or the draw, may lie closer to the border
 * between two tokens than the error of the backend's sums.  Then either token is right; `near`
 * is that error.
 */
#ifndef TESTS_KERNELS_LINE_H
#define TESTS_KERNELS_LINE_H

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

struct line {
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

static inline void line_new(struct line *line, uint32_t vocab_max)
{
        memset(line, 0, sizeof(*line));
        line->all = (struct candidate *)calloc(vocab_max, sizeof(*line->all));
        line->chances = (long double *)calloc(vocab_max, sizeof(*line->chances));
        line->by_id = (long double *)calloc(vocab_max, sizeof(*line->by_id));
        assert_true(line->all && line->chances && line->by_id);
}

static inline void line_free(struct line *line)
{
        free(line->all);
        free(line->chances);
        free(line->by_id);
}

static inline int candidate_compare(const void *a, const void *b)
{
        const struct candidate *x = (const struct candidate *)a, *y = (const struct candidate *)b;

        if (x->logit != y->logit)
                return x->logit > y->logit ? -1 : 1;
        return x->id < y->id ? -1 : 1;
}

static inline void line_up(struct line *line, const float *logits, uint32_t vocab)
{
        bool any = false, bad = false;

        for (uint32_t i = 0; i < vocab; i++) {
                line->all[i].logit = logits[i];
                line->all[i].id = i;
                any = any || logits[i] > -INFINITY;
                bad = bad || isnan(logits[i]) || logits[i] == INFINITY;
        }
        line->vocab = vocab;
        line->finite = any && !bad;
        if (line->finite)
                qsort(line->all, vocab, sizeof(*line->all), candidate_compare);
}

/* Steps 2 and 3: returns how many candidates top_k keeps, and sets their chances. */
static inline uint32_t line_weigh(struct line *line, const struct pick *pick)
{
        uint32_t count = pick->top_k && pick->top_k < line->vocab ? pick->top_k : line->vocab;
        long double largest = line->all[0].logit, sum = 0;

        for (uint32_t i = 0; i < count; i++) {
                line->chances[i] = expl((line->all[i].logit - largest) / pick->temperature);
                sum += line->chances[i];
        }
        for (uint32_t i = 0; i < count; i++)
                line->chances[i] /= sum;
        return count;
}

/*
 * Steps 4 and 5: returns how many of the first `count` are kept if the borders are moved by
 * these amounts.
 */
static inline uint32_t line_cut(const struct line *line, const struct pick *pick, uint32_t count,
                                long double top_p_by, long double min_p_by)
{
        long double top_p = pick->top_p + top_p_by, sum = 0;
        long double least = pick->min_p * (1 + min_p_by) * line->chances[0];
        uint32_t kept = 0, likely = 0;

        while (kept < count && (pick->top_p >= 1 || !kept || sum < top_p))
                sum += line->chances[kept++];
        while (likely < kept && (pick->min_p <= 0 || !likely || line->chances[likely] >= least))
                likely++;
        return likely;
}

/* Step 6 */
static inline uint32_t line_draw(struct line *line, const struct pick *pick, uint32_t kept)
{
        long double sum = 0, mark;
        uint32_t last = 0;

        for (uint32_t i = 0; i < line->vocab; i++)
                line->by_id[i] = 0;
        for (uint32_t i = 0; i < kept; i++) {
                line->by_id[line->all[i].id] = line->chances[i];
                sum += line->chances[i];
        }
        mark = draw(pick->seed, pick->choice, pick->position) * sum;
        sum = 0;
        for (uint32_t i = 0; i < line->vocab && sum <= mark; i++) {
                sum += line->by_id[i];
                last = i;
        }
        return last;
}

static inline uint32_t line_pick(struct line *line, const struct pick *pick)
{
        if (!line->finite)
                return PICK_NOT_FINITE;
        if (pick->temperature == 0)
                return line->all[0].id;
        return line_draw(line, pick, line_cut(line, pick, line_weigh(line, pick), 0, 0));
}

/*
 * Whether the draw falls on `token` or within `by` of it, for some number of kept candidates
 * from `least` to `most`.
 */
static inline bool line_reaches(const struct line *line, const struct pick *pick, uint32_t least,
                                uint32_t most, uint32_t token, long double by)
{
        long double drawn = draw(pick->seed, pick->choice, pick->position);
        long double sum = 0, before = 0, own = 0;

        for (uint32_t i = 0; i < most; i++) {
                sum += line->chances[i];
                if (line->all[i].id < token)
                        before += line->chances[i];
                if (line->all[i].id == token)
                        own = line->chances[i];
                if (i + 1 >= least && own > 0 && before <= (drawn + by) * sum &&
                    before + own > (drawn - by) * sum)
                        return true;
        }
        return false;
}

static inline bool line_allows(struct line *line, const struct pick *pick, uint32_t token,
                               const struct near *near)
{
        long double nats = pick->min_p > 0 ? fmaxl(1, -logl(pick->min_p)) : 1;
        uint32_t count, least, most;

        if (!line->finite || pick->temperature == 0)
                return token == line_pick(line, pick);
        count = line_weigh(line, pick);
        least = line_cut(line, pick, count, -near->sum, near->chance * nats);
        most = line_cut(line, pick, count, near->sum, -near->chance * nats);
        return line_reaches(line, pick, least, most, token, near->sum);
}

#endif
