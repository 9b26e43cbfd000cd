#include "kernels/cpu/logit-summary.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/draw.h"
#include "kernels/memory.h"

#define ROWS_AT_ONCE 8u /* rows at a time */

void tail_fill(struct tail *tail, const float *logits, uint32_t vocab)
{
        uint32_t there = vocab % LOGITS_BLOCK;

        memcpy(tail->logits, logits + (vocab - there), there * sizeof(*logits));
        for (uint32_t i = there; i < LOGITS_BLOCK; i++)
                tail->logits[i] = -INFINITY;
}

int logit_summary_init(struct logit_summary *s, uint32_t wants_max, uint32_t vocab_max)
{
        size_t count = (size_t)wants_max * round_up(logit_blocks_of(vocab_max), LOGITS_BLOCK);

        *s = (struct logit_summary){ .largest = memory_new(count, sizeof(*s->largest)),
                                     .weights = memory_new(count, sizeof(*s->weights)) };
        if (s->largest && s->weights)
                return 0;
        logit_summary_deinit(s);
        return -ENOMEM;
}

void logit_summary_deinit(struct logit_summary *s)
{
        memory_free(s->largest);
        memory_free(s->weights);
        *s = (struct logit_summary){ 0 };
}

bool logit_summary_has_weights(const struct pick *pick, uint32_t vocab)
{
        bool few = pick->top_k && pick->top_k < vocab;

        return pick_asks_for_sum(pick) || (pick->temperature > 0 && !few && pick->top_p < 1);
}

float logit_summary_factor(const struct pick *pick)
{
        /*
         * Limited to FLT_MAX, because infinity times 0 is NaN. If nothing is drawn, the factor is
         * 1, which logprobs need.
         */
        return pick->temperature > 0 ? fminf(1 / pick->temperature, FLT_MAX) : 1;
}

void logit_summary_begin(struct logit_summary *s, const float *logits, uint32_t vocab,
                         uint32_t wants)
{
        uint32_t blocks = logit_blocks_of(vocab);

        s->logits = logits;
        s->vocab = vocab;
        s->stride = round_up(blocks, LOGITS_BLOCK);
        for (uint32_t w = 0; w < wants; w++) {
                for (size_t i = (size_t)w * s->stride + blocks; i < (size_t)(w + 1) * s->stride;
                     i++) {
                        s->largest[i] = -INFINITY;
                        s->weights[i] = 0;
                }
        }
}

static void weigh_block(struct logit_summary *s, const struct loops *loops, size_t at, float factor,
                        const float *logits)
{
        float each[LOGITS_BLOCK] __attribute__((aligned(64)));
        float base = s->largest[at] > -INFINITY ? s->largest[at] : 0; /* -inf - -inf is NaN */

        loops->weigh(each, &s->weights[at], logits, 1, base, factor);
}

void logit_summary_add_block(struct logit_summary *s, const struct loops *loops,
                             const struct pick *picks, uint32_t block, uint32_t from,
                             uint32_t count, const float *logits)
{
        for (uint32_t row = 0, n; row < count; row += n) {
                float largest[ROWS_AT_ONCE];

                n = count - row < ROWS_AT_ONCE ? count - row : ROWS_AT_ONCE;
                loops->maxima(largest, logits + (size_t)row * LOGITS_BLOCK, n);
                for (uint32_t i = 0; i < n; i++) {
                        uint32_t want = from + row + i;
                        size_t at = (size_t)want * s->stride + block;

                        s->largest[at] = largest[i];
                        if (logit_summary_has_weights(&picks[want], s->vocab))
                                weigh_block(s, loops, at, logit_summary_factor(&picks[want]),
                                            logits + (size_t)(row + i) * LOGITS_BLOCK);
                }
        }
}
