#include "kernels/cpu/gist.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/memory.h"

#define NOTED 8u /* rows at a time */

void tail_fill(struct tail *tail, const float *logits, uint32_t vocab)
{
        uint32_t there = vocab % LOGITS_BLOCK;

        memcpy(tail->logits, logits + (vocab - there), there * sizeof(*logits));
        for (uint32_t i = there; i < LOGITS_BLOCK; i++)
                tail->logits[i] = -INFINITY;
}

int gist_init(struct gist *g, uint32_t wants_max, uint32_t vocab_max)
{
        size_t count = (size_t)wants_max * round_up(blocks_of(vocab_max), LOGITS_BLOCK);

        *g = (struct gist){ .largest = memory_new(count, sizeof(*g->largest)),
                            .weights = memory_new(count, sizeof(*g->weights)) };
        if (g->largest && g->weights)
                return 0;
        gist_deinit(g);
        return -ENOMEM;
}

void gist_deinit(struct gist *g)
{
        memory_free(g->largest);
        memory_free(g->weights);
        *g = (struct gist){ 0 };
}

bool gist_weighs(const struct pick *pick, uint32_t vocab)
{
        bool few = pick->top_k && pick->top_k < vocab;

        return pick->logprobs || (pick->temperature > 0 && !few);
}

float gist_factor(const struct pick *pick)
{
        /*
         * Limited to FLT_MAX, because infinity times 0 is NaN. If nothing is drawn, the factor is
         * 1, which logprobs need.
         */
        return pick->temperature > 0 ? fminf(1 / pick->temperature, FLT_MAX) : 1;
}

void gist_begin(struct gist *g, const float *logits, uint32_t vocab, uint32_t wants)
{
        uint32_t blocks = blocks_of(vocab);

        g->logits = logits;
        g->vocab = vocab;
        g->stride = round_up(blocks, LOGITS_BLOCK);
        for (uint32_t w = 0; w < wants; w++) {
                for (size_t i = (size_t)w * g->stride + blocks; i < (size_t)(w + 1) * g->stride;
                     i++) {
                        g->largest[i] = -INFINITY;
                        g->weights[i] = 0;
                }
        }
}

static void weigh_block(struct gist *g, const struct loops *loops, size_t at, float factor,
                        const float *logits)
{
        float each[LOGITS_BLOCK] __attribute__((aligned(64)));
        float base = g->largest[at] > -INFINITY ? g->largest[at] : 0; /* -inf - -inf is NaN */

        loops->weigh(each, &g->weights[at], logits, 1, base, factor);
}

void gist_note(struct gist *g, const struct loops *loops, const struct pick *picks, uint32_t block,
               uint32_t from, uint32_t count, const float *logits)
{
        for (uint32_t row = 0, n; row < count; row += n) {
                float largest[NOTED];

                n = count - row < NOTED ? count - row : NOTED;
                loops->maxima(largest, logits + (size_t)row * LOGITS_BLOCK, n);
                for (uint32_t i = 0; i < n; i++) {
                        uint32_t want = from + row + i;
                        size_t at = (size_t)want * g->stride + block;

                        g->largest[at] = largest[i];
                        if (gist_weighs(&picks[want], g->vocab))
                                weigh_block(g, loops, at, gist_factor(&picks[want]),
                                            logits + (size_t)(row + i) * LOGITS_BLOCK);
                }
        }
}
