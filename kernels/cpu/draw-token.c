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

/* The index of the first number that equals `wanted`, which must be among them. */
static uint32_t index_of(const float *numbers, float wanted)
{
        uint32_t i = 0;

        while (numbers[i] != wanted)
                i++;
        return i;
}

/* The bounds of a row's blocks, and the largest of each group of them. */
struct bounds {
        const struct loops *loops;
        float *of_blocks, *of_groups;
        uint32_t groups, rounds; /* of LOGITS_BLOCK groups */
};

static struct bounds bounds_make(const struct draw *d, const float *largest_of)
{
        const struct candidates *candidates = d->candidates;
        const struct bounding of = { d->key, candidates->largest, candidates->factor };
        struct pick_scratch *s = candidates->s;
        struct bounds b = { .loops = candidates->loops,
                            .of_blocks = s->bounds,
                            .of_groups = s->group_bounds };

        b.groups = logit_blocks_of(logit_blocks_of(candidates->vocab));
        b.rounds = logit_blocks_of(b.groups);
        b.loops->bound(&of, b.of_blocks, largest_of, b.groups * LOGITS_BLOCK);
        b.loops->maxima(b.of_groups, b.of_blocks, b.groups);
        for (uint32_t g = b.groups; g < b.rounds * LOGITS_BLOCK; g++)
                b.of_groups[g] = -INFINITY;
        return b;
}

/* Takes the block with the largest bound. Returns false if this is below the score. */
static bool bounds_take(const struct bounds *b, double score, uint32_t *ret_block)
{
        float largest = -INFINITY, of_round;
        uint32_t group = 0, block;

        for (uint32_t r = 0; r < b->rounds; r++) {
                b->loops->maxima(&of_round, b->of_groups + (size_t)r * LOGITS_BLOCK, 1);
                if (of_round > largest) {
                        largest = of_round;
                        group = r * LOGITS_BLOCK;
                }
        }
        if (largest < score || largest == -INFINITY)
                return false;
        group += index_of(b->of_groups + group, largest);
        block = group * LOGITS_BLOCK;
        block += index_of(b->of_blocks + block, largest);
        b->of_blocks[block] = -INFINITY;
        b->loops->maxima(b->of_groups + group, b->of_blocks + (size_t)group * LOGITS_BLOCK, 1);
        *ret_block = block;
        return true;
}

uint32_t draw_from_all(const struct candidates *candidates, const struct pick *pick, uint32_t best,
                       const float *largest_of, struct cutoff cutoff)
{
        struct draw d = draw_begin(candidates, pick, pick->temperature, best);
        struct bounds bounds = bounds_make(&d, largest_of);
        uint32_t block;

        while (bounds_take(&bounds, d.score, &block))
                if (largest_of[block] >= cutoff.least)
                        draw_try_block(&d, cutoff, block);
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
