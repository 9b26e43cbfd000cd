/*
 * Picking, sequence by sequence over the crew, token for token what ref picks.
 *
 * Candidates are sorted by radix: a float's bits are turned so that a larger
 * logit is a smaller number, and three stable passes of 11 bits keep equals in
 * order of id, which is how they start.
 */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "kernels/draw.h"
#include "kernels/memory.h"
#include "kernels/rows.h"

#define DIGIT_BITS 11u
#define DIGITS     (1u << DIGIT_BITS)

struct candidate {
        uint32_t key, id;
};

struct picking {
        struct cpu *cpu;
        const float *logits;
        uint32_t vocab;
        uint32_t *picked;
};

int cpu_sorter_init(struct sorter *s, uint32_t vocab_max)
{
        *s = (struct sorter){
                .a = memory_new(vocab_max, sizeof(*s->a)),
                .b = memory_new(vocab_max, sizeof(*s->b)),
                .chances = memory_new(vocab_max, sizeof(*s->chances)),
        };
        if (s->a && s->b && s->chances)
                return 0;
        cpu_sorter_deinit(s);
        return -ENOMEM;
}

void cpu_sorter_deinit(struct sorter *s)
{
        memory_free(s->a);
        memory_free(s->b);
        memory_free(s->chances);
        *s = (struct sorter){ 0 };
}

/* The id of the largest logit, or PICK_NOT_FINITE. */
static uint32_t find_largest(const float *logits, uint32_t vocab)
{
        uint32_t best = 0;

        for (uint32_t i = 0; i < vocab; i++) {
                if (!(logits[i] < INFINITY))
                        return PICK_NOT_FINITE;
                if (logits[i] > logits[best])
                        best = i;
        }
        return logits[best] == -INFINITY ? PICK_NOT_FINITE : best;
}

/* Smaller for larger logits, equal for equal ones (-0 and 0 are). */
static uint32_t sort_key(float logit)
{
        uint32_t u = float_bits(logit == 0 ? 0 : logit);

        return u >> 31 ? u : ~u & 0x7fffffff;
}

/* Sorts s->a by key, keeping the order of equals; returns where the result is. */
static const struct candidate *sort(struct sorter *s, uint32_t count)
{
        struct candidate *from = s->a, *to = s->b, *swap;
        uint32_t starts[DIGITS];

        for (uint32_t shift = 0; shift < 32; shift += DIGIT_BITS) {
                uint32_t start = 0;

                memset(starts, 0, sizeof(starts));
                for (uint32_t i = 0; i < count; i++)
                        starts[from[i].key >> shift & (DIGITS - 1)]++;
                for (uint32_t d = 0; d < DIGITS; d++) {
                        uint32_t n = starts[d];

                        starts[d] = start;
                        start += n;
                }
                for (uint32_t i = 0; i < count; i++)
                        to[starts[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
                swap = from;
                from = to;
                to = swap;
        }
        return from;
}

/* Of `count` candidates in falling order of chance, how many top_p and min_p keep. */
static uint32_t cut(const struct pick *pick, const double *chances, uint32_t count)
{
        double sum = 0;
        uint32_t keep = count;

        if (pick->top_p < 1) {
                for (keep = 0; keep < count;) {
                        sum += chances[keep++];
                        if (sum >= pick->top_p)
                                break;
                }
        }
        if (pick->min_p > 0) {
                while (keep > 1 && chances[keep - 1] < pick->min_p * chances[0])
                        keep--;
        }
        return keep;
}

static uint32_t pick_row(struct sorter *s, const struct pick *pick, const float *logits,
                         uint32_t vocab)
{
        uint32_t largest = find_largest(logits, vocab), keep = vocab, i;
        const struct candidate *sorted;
        double sum = 0, mark;

        assert(pick->temperature >= 0);
        if (largest == PICK_NOT_FINITE || pick->temperature == 0)
                return largest;

        for (i = 0; i < vocab; i++)
                s->a[i] = (struct candidate){ sort_key(logits[i]), i };
        sorted = sort(s, vocab);
        if (pick->top_k && pick->top_k < vocab)
                keep = pick->top_k;

        for (i = 0; i < keep; i++) {
                double below = (double)logits[sorted[i].id] - logits[largest];

                s->chances[i] = exp(below / pick->temperature);
                sum += s->chances[i];
        }
        for (i = 0; i < keep; i++)
                s->chances[i] /= sum;

        keep = cut(pick, s->chances, keep);
        for (i = 0, sum = 0; i < keep; i++)
                sum += s->chances[i];
        mark = draw(pick->seed, pick->choice, pick->position) * sum;
        for (i = 0, sum = 0; i < keep; i++) {
                sum += s->chances[i];
                if (sum > mark)
                        break;
        }
        assert(i < keep); /* the last sum is the whole, and a draw is less than 1 */
        return sorted[i].id;
}

/* Among the likeliest, best first, of whom `count` are there: one more, whose id is above theirs. */
static void put_among(struct logprob *best, uint32_t count, uint32_t max, uint32_t id, float logit)
{
        uint32_t at = count;

        if (count == max && !(logit > best[--at].logprob))
                return;
        for (; at && logit > best[at - 1].logprob; at--)
                best[at] = best[at - 1];
        best[at] = (struct logprob){ id, logit };
}

/* In one walk over the logits, most of which are not among the likeliest. */
static void tell_row(const float *logits, uint32_t vocab, uint32_t picked, uint32_t count,
                     struct logprob *ret_logprobs)
{
        double largest = logits[find_largest(logits, vocab)], sum = 0;
        uint32_t max = count - 1;

        assert(max <= vocab);
        *ret_logprobs = (struct logprob){ picked, logits[picked] };
        for (uint32_t i = 0; i < vocab; i++) {
                sum += exp(logits[i] - largest);
                if (max)
                        put_among(ret_logprobs + 1, i < max ? i : max, max, i, logits[i]);
        }
        for (uint32_t i = 0; i < count; i++)
                ret_logprobs[i].logprob = (float)(ret_logprobs[i].logprob - largest - log(sum));
}

static void pick_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct picking *p = arg;
        const struct pick *pick = &p->cpu->steps.step.picks[item];
        const float *row = p->logits + (size_t)item * p->vocab;

        p->picked[item] = pick_row(&p->cpu->sorters[thread], pick, row, p->vocab);
        if (pick->logprobs && p->picked[item] != PICK_NOT_FINITE)
                tell_row(row, p->vocab, p->picked[item], pick->logprobs,
                         steps_told(&p->cpu->steps, item));
}

int cpu_pick(struct kernels *k, const float *logits, uint32_t vocab)
{
        struct cpu *cpu = cpu_of(k);
        struct picking p = { cpu, logits, vocab, steps_picked(&cpu->steps) };

        assert(vocab && vocab <= cpu->vocab_max);
        crew_run(cpu->crew, pick_work, &p, cpu->steps.step.want_count);
        return 0;
}
