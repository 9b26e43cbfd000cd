#include "kernels/cpu/draw-token.h"

#include <math.h>

#include "kernels/draw.h"

/* More than the relative error of a weight that can win. */
#define MARGIN 1.0001

/* The best token so far, at least one. */
struct draw {
        const struct candidates *candidates;
        double temperature;
        struct draw_key key;
        uint32_t best;
        double score;
        double reach; /* MARGIN * e^-score */
};

/* The tokens of a block, of which one has the least time. */
struct span {
        uint32_t block, first;
        double least; /* a lower bound */
};

/* A lower bound of draw_exponential(). */
static double exponential_least(uint32_t word)
{
        return ((double)~word + 0.5) * 0x1p-32;
}

static struct span span_of(const struct draw *d, uint32_t block)
{
        return (struct span){ block, UINT32_MAX,
                              exponential_least(draw_word(&d->key, DRAW_LEASTS, block)) /
                                      DRAW_SPAN };
}

static void draw_score_of(struct draw *d, uint32_t id)
{
        const struct candidates *candidates = d->candidates;
        double time = draw_time(&d->key, id, draw_least(&d->key, id / DRAW_SPAN));
        double score =
                draw_score(candidates->logits[id], candidates->largest, d->temperature, time);

        if (score > d->score || (score == d->score && id < d->best)) {
                d->score = score;
                d->best = id;
                d->reach = MARGIN * exp(-score);
        }
}

static struct draw draw_begin(const struct candidates *candidates, const struct pick *pick,
                              double temperature, uint32_t id)
{
        struct draw d = { candidates, temperature, draw_key_of(pick), id, -INFINITY, 0 };

        draw_score_of(&d, id);
        return d;
}

static void draw_try(struct draw *d, struct span *span, uint32_t id, double weight)
{
        const double reach = d->reach * weight;
        double least = span->least;

        if (least > reach)
                return;
        if (span->first == UINT32_MAX)
                span->first = draw_word(&d->key, DRAW_FIRSTS, span->block) >> 27;
        if (span->first != id % DRAW_SPAN)
                least += exponential_least(draw_word(&d->key, DRAW_OTHERS, id));
        if (least <= reach)
                draw_score_of(d, id);
}

static void draw_try_block(struct draw *d, struct cutoff cutoff, uint32_t block)
{
        const struct candidates *candidates = d->candidates;
        const float *logits =
                logit_block_at(candidates->logits, candidates->vocab, &candidates->s->tail, block);
        float weights[LOGITS_BLOCK] __attribute__((aligned(64))), sum;
        struct span span = span_of(d, block);

        candidates->loops->weigh(weights, &sum, logits, 1, candidates->largest, candidates->factor);
        for (uint32_t i = 0; i < LOGITS_BLOCK; i++)
                if (span.least <= d->reach * weights[i] &&
                    cutoff_keeps(cutoff, logits[i], block * LOGITS_BLOCK + i))
                        draw_try(d, &span, block * LOGITS_BLOCK + i, weights[i]);
}

static uint32_t index_of_largest(const float *numbers, uint32_t count)
{
        uint32_t at = 0;

        for (uint32_t i = 1; i < count; i++)
                if (numbers[i] > numbers[at])
                        at = i;
        return at;
}

/* The block with the largest bound comes first, so few others have to follow. */
uint32_t draw_from_all(const struct candidates *candidates, const struct pick *pick, uint32_t best,
                       const float *largest_of, struct cutoff cutoff)
{
        const uint32_t groups = logit_blocks_of(logit_blocks_of(candidates->vocab));
        struct draw d = draw_begin(candidates, pick, pick->temperature, best);
        const struct bounding of = { d.key, candidates->largest, candidates->factor };
        const float *bounds = candidates->s->bounds, *group_bounds = candidates->s->group_bounds;
        uint32_t first;

        candidates->loops->bound(&of, candidates->s->bounds, largest_of, groups * LOGITS_BLOCK);
        candidates->loops->maxima(candidates->s->group_bounds, bounds, groups);
        first = index_of_largest(group_bounds, groups) * LOGITS_BLOCK;
        first += index_of_largest(bounds + first, LOGITS_BLOCK);
        draw_try_block(&d, cutoff, first);
        for (uint32_t g = 0; g < groups; g++) {
                if (group_bounds[g] < d.score)
                        continue;
                for (uint32_t b = g * LOGITS_BLOCK; b < (g + 1) * LOGITS_BLOCK; b++)
                        if (bounds[b] >= d.score && largest_of[b] >= cutoff.least)
                                draw_try_block(&d, cutoff, b);
        }
        return d.best;
}

uint32_t draw_from_few(const struct candidates *candidates, const struct pick *pick,
                       double temperature, const struct candidate *list, const double *chances,
                       uint32_t count)
{
        struct draw d = draw_begin(candidates, pick, temperature, list[0].id);

        for (uint32_t i = 1; i < count; i++) {
                struct span span = span_of(&d, list[i].id / DRAW_SPAN);

                draw_try(&d, &span, list[i].id, chances[i] / chances[0]);
        }
        return d.best;
}
