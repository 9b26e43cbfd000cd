/*
 * Picking, sequence by sequence over the crew, token for token what ref picks.
 *
 * First the largest logit of each block of 64 is found, all that a greedy pick needs.  If so many blocks
 * have a maximum that is not below some border, there are as many logits that are not: so the likeliest few
 * are found without sorting all.  top_k says how many; else it is tried with 32 and with 256, whether
 * they hold what decides.
 *
 * If they do not, there are many that are much alike, and nobody has to know the order of all: they are put on
 * shelves, 128 for each factor of e that they are less likely than the first, and of a shelf it is known what it weighs.
 * Only that on which top_p ends is sorted, and then that on which the drawn one is.
 *
 * Weights are floats, 1e-7 off at most, where ref has doubles: a token that stands so near a border may be
 * another one.
 *
 * Candidates are sorted by radix: a float's bits are turned so that a larger
 * logit is a smaller number, and three stable passes of 11 bits keep equals in
 * order of id, which is how they start.
 */
#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/draw.h"
#include "kernels/memory.h"
#include "kernels/rows.h"

#define DIGIT_BITS 11u
#define DIGITS     (1u << DIGIT_BITS)
#define FEW        64u  /* candidates */
#define SPARE      1e-6 /* more than a sum of floats may be off */
#define SHELVES    4096u
#define NO_TOKENS  SHELVES       /* the shelf of what fills up the last block */
#define SHELVES_E  128u          /* on which weights differ by a factor of e */
#define SHELF_SIDE (SHELVES + 8) /* sides of shelves do not lie a multiple of 4096 bytes apart */
#define SIDES      4u  /* each with its own sums, as one that was just written is slow to read */
#define LOOK       16u /* that are looked at together */

typedef uint16_t looks __attribute__((vector_size(LOOK * sizeof(uint16_t))));

struct candidate {
        uint32_t key, id;
};

struct picking {
        struct cpu *cpu;
        const float *logits;
        uint32_t vocab;
        uint32_t *picked;
};

static uint32_t blocks_of(uint32_t count)
{
        return (count + MAXIMA_BLOCK - 1) / MAXIMA_BLOCK;
}

int cpu_sorter_init(struct sorter *s, uint32_t vocab_max)
{
        *s = (struct sorter){
                .a = memory_new(vocab_max, sizeof(*s->a)),
                .b = memory_new(vocab_max, sizeof(*s->b)),
                .chances = memory_new(vocab_max, sizeof(*s->chances)),
                .maxima = memory_new(blocks_of(vocab_max), sizeof(*s->maxima)),
                .weights = memory_new(blocks_of(vocab_max), MAXIMA_BLOCK * sizeof(*s->weights)),
                .shelf = memory_new(blocks_of(vocab_max), MAXIMA_BLOCK * sizeof(*s->shelf)),
                .together = memory_new((size_t)SIDES * SHELF_SIDE, sizeof(*s->together)),
        };
        if (s->a && s->b && s->chances && s->maxima && s->weights && s->shelf && s->together)
                return 0;
        cpu_sorter_deinit(s);
        return -ENOMEM;
}

void cpu_sorter_deinit(struct sorter *s)
{
        memory_free(s->a);
        memory_free(s->b);
        memory_free(s->chances);
        memory_free(s->maxima);
        memory_free(s->weights);
        memory_free(s->shelf);
        memory_free(s->together);
        *s = (struct sorter){ 0 };
}

/* The id of the largest logit, or PICK_NOT_FINITE; s->maxima from here on. */
static uint32_t find_largest(const struct isa *isa, struct sorter *s, const float *logits,
                             uint32_t vocab)
{
        uint32_t best = 0, i;

        if (!isa->loops->maxima(s->maxima, logits, vocab))
                return PICK_NOT_FINITE;
        for (i = 1; i < blocks_of(vocab); i++)
                if (s->maxima[i] > s->maxima[best])
                        best = i;
        if (s->maxima[best] == -INFINITY)
                return PICK_NOT_FINITE;
        for (i = best * MAXIMA_BLOCK; logits[i] != s->maxima[best]; i++)
                ;
        return i;
}

/* Smaller for larger logits, equal for equal ones (-0 and 0 are). */
static uint32_t sort_key(float logit)
{
        uint32_t u = float_bits(logit == 0 ? 0 : logit);

        return u >> 31 ? u : ~u & 0x7fffffff;
}

static void sort_few(struct candidate *c, uint32_t count)
{
        for (uint32_t i = 1; i < count; i++) {
                struct candidate one = c[i];
                uint32_t at = i;

                for (; at && one.key < c[at - 1].key; at--)
                        c[at] = c[at - 1];
                c[at] = one;
        }
}

/* Sorts s->a by key, keeping the order of equals; returns where the result is. */
static const struct candidate *sort(struct sorter *s, uint32_t count)
{
        struct candidate *from = s->a, *to = s->b, *swap;
        uint32_t starts[DIGITS];

        if (count <= FEW) {
                sort_few(from, count);
                return from;
        }
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

/* Two digits of the key of the count-th largest of these. */
static uint32_t border(const float *logits, uint32_t n, uint32_t count)
{
        uint32_t counts[DIGITS], digits[2] = { 0, 0 };

        for (uint32_t d = 0; d < 2; d++) {
                uint32_t digit = 0;

                memset(counts, 0, sizeof(counts));
                for (uint32_t i = 0; i < n; i++) {
                        uint32_t key = sort_key(logits[i]);

                        if (d == 0)
                                counts[key >> (32 - DIGIT_BITS)]++;
                        else if (key >> (32 - DIGIT_BITS) == digits[0])
                                counts[key >> (32 - 2 * DIGIT_BITS) & (DIGITS - 1)]++;
                }
                while (counts[digit] < count)
                        count -= counts[digit++];
                digits[d] = digit;
        }
        return digits[0] << DIGIT_BITS | digits[1];
}

/* The likeliest ones into s->a, in order of id; how many: `count` at least, or all. */
static uint32_t candidates(struct sorter *s, const float *logits, uint32_t vocab, uint32_t count)
{
        const uint32_t blocks = blocks_of(vocab), shift = 32 - 2 * DIGIT_BITS;
        uint32_t last = UINT32_MAX, n = 0;

        if (count <= blocks)
                last = border(s->maxima, blocks, count);
        else if (count < vocab)
                last = border(logits, vocab, count);

        for (uint32_t at = 0; at < vocab; at += MAXIMA_BLOCK) {
                uint32_t end = vocab - at < MAXIMA_BLOCK ? vocab : at + MAXIMA_BLOCK;

                if (sort_key(s->maxima[at / MAXIMA_BLOCK]) >> shift > last)
                        continue;
                for (uint32_t i = at; i < end; i++) {
                        uint32_t key = sort_key(logits[i]);

                        s->a[n] = (struct candidate){ key, i };
                        n += key >> shift <= last;
                }
        }
        return n;
}

/* Of sorted candidates, as parts of `whole`; returns the sum of them. */
static double chances_make(struct sorter *s, const struct candidate *sorted, uint32_t count,
                           const float *logits, float temperature, double whole)
{
        double sum = 0;

        for (uint32_t i = 0; i < count; i++) {
                double below = (double)logits[sorted[i].id] - logits[sorted[0].id];

                s->chances[i] = exp(below / temperature) / whole;
                sum += s->chances[i];
        }
        return sum;
}

/*
 * As many of the likeliest as decide: those that top_p keeps, or min_p, or if neither is set, as many
 * as the draw has to pass over.  NULL: more than a few.
 */
static const struct candidate *deciding(struct sorter *s, const struct pick *pick,
                                        const float *logits, uint32_t vocab, double whole,
                                        double drawn, uint32_t *ret_count)
{
        double need = pick->top_p < 1 ? pick->top_p : pick->min_p > 0 ? 1 : drawn;

        for (uint32_t few = FEW / 2; few <= FEW * 4 && few <= blocks_of(vocab); few *= 8) {
                const struct candidate *sorted;
                double sum;
                uint32_t n;

                if (few < need * whole && pick->min_p == 0)
                        continue; /* none weighs more than 1, so as many as that do not decide */
                n = candidates(s, logits, vocab, few);
                sorted = sort(s, n);
                sum = chances_make(s, sorted, n, logits, pick->temperature, whole);
                *ret_count = n;
                if (n == vocab || sum > need + SPARE ||
                    (pick->min_p > 0 && s->chances[n - 1] < pick->min_p * s->chances[0]))
                        return sorted;
        }
        return NULL;
}

/* ---- many ---- */

/* By `nats`, what is between the largest logit and this one, over the temperature; what lies below all shelves, or
 * is no number, is on the last one. */
static uint16_t shelf_of(float nats)
{
        float at = nats * SHELVES_E;

        /* First cut and then made whole: many at a time, and no conversion is out of range. */
        at = at < SHELVES - 1 ? at : SHELVES - 1;
        return (uint16_t)(int32_t)at;
}

/* All of them, by s->weights. */
static void shelve(struct sorter *s, const float *logits, uint32_t vocab, float largest,
                   float factor)
{
        const uint32_t all = blocks_of(vocab) * MAXIMA_BLOCK;
        const float *restrict weights = s->weights;
        uint16_t *restrict shelf = s->shelf;
        double *restrict together = s->together;

        for (uint32_t i = 0; i < vocab; i++)
                shelf[i] = shelf_of((largest - logits[i]) * factor);
        for (uint32_t i = vocab; i < all; i++)
                shelf[i] = NO_TOKENS; /* and weighs nothing */
        memset(together, 0, SIDES * SHELF_SIDE * sizeof(*together));
        for (uint32_t i = 0; i < all; i += SIDES)
                for (uint32_t side = 0; side < SIDES; side++)
                        together[side * SHELF_SIDE + shelf[i + side]] += weights[i + side];
        for (uint32_t i = 0; i < SHELVES; i++)
                for (uint32_t side = 1; side < SIDES; side++)
                        together[i] += together[side * SHELF_SIDE + i];
}

static bool any_here(const uint16_t *shelves, uint16_t here)
{
        looks found;
        uint64_t parts[sizeof(found) / sizeof(uint64_t)], any = 0;

        memcpy(&found, shelves, sizeof(found));
        found = (looks)(found == here);
        memcpy(parts, &found, sizeof(parts));
        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
                any |= parts[i];
        return any;
}

/* Those on one shelf, sorted. */
static const struct candidate *take_down(struct sorter *s, const float *logits, uint32_t vocab,
                                         uint32_t shelf, uint32_t *ret_count)
{
        const uint16_t *restrict shelves = s->shelf, here = (uint16_t)shelf;
        struct candidate *restrict to = s->a;
        uint32_t n = 0;

        for (uint32_t at = 0; at < vocab; at += LOOK) {
                if (!any_here(shelves + at, here))
                        continue;
                for (uint32_t i = at; i < at + LOOK; i++)
                        if (shelves[i] == here)
                                to[n++] = (struct candidate){ sort_key(logits[i]), i };
        }
        *ret_count = n;
        return sort(s, n);
}

/* Where the running sum of weights, best first, is above `mark`; or reaches it, for top_p.  The sum is
 * that of all up to this one. */
static uint32_t pass_over(struct sorter *s, const float *logits, uint32_t vocab, double mark,
                          bool reach, double *ret_sum)
{
        const struct candidate *sorted;
        uint32_t shelf, last = 0, count, i;
        double sum = 0, next;

        for (shelf = 0; shelf < SHELVES; shelf++) {
                if (s->together[shelf] == 0)
                        continue;
                last = shelf;
                next = sum + s->together[shelf];
                if (reach ? next >= mark : next > mark)
                        break;
                sum = next;
        }
        if (shelf == SHELVES) /* by rounding; it is the last of all */
                sum -= s->together[last];
        sorted = take_down(s, logits, vocab, last, &count);
        for (i = 0; i + 1 < count; i++) {
                next = sum + s->weights[sorted[i].id];
                if (reach ? next >= mark : next > mark)
                        break;
                sum = next;
        }
        *ret_sum = sum + s->weights[sorted[i].id];
        return sorted[i].id;
}

/* What all that min_p keeps weigh; the first one weighs 1.  Which they are is looked at on the shelf where
 * it ends and on those beside it. */
static double weight_of_near(struct sorter *s, const struct pick *pick, const float *logits,
                             uint32_t vocab, float largest)
{
        uint32_t end = shelf_of(fmaxf(0, -logf(pick->min_p))), count;
        uint32_t first = end ? end - 1 : 0, past = end + 2 < SHELVES ? end + 2 : SHELVES;
        double sum = 0;

        for (uint32_t shelf = 0; shelf < first; shelf++)
                sum += s->together[shelf];
        for (uint32_t shelf = first; shelf < past; shelf++) {
                const struct candidate *near = take_down(s, logits, vocab, shelf, &count);

                for (uint32_t i = 0; i < count; i++) {
                        double below = (double)logits[near[i].id] - largest;

                        if (exp(below / pick->temperature) >= pick->min_p)
                                sum += s->weights[near[i].id];
                }
        }
        return sum;
}

static uint32_t pick_of_many(struct sorter *s, const struct pick *pick, const float *logits,
                             uint32_t vocab, float largest, float factor, double drawn)
{
        double kept = 0, near;

        shelve(s, logits, vocab, largest, factor);
        for (uint32_t i = 0; i < SHELVES; i++)
                kept += s->together[i];
        if (pick->top_p < 1)
                (void)pass_over(s, logits, vocab, pick->top_p * kept, true, &kept);
        if (pick->min_p > 0) {
                near = weight_of_near(s, pick, logits, vocab, largest);
                kept = near < kept ? near : kept;
        }
        return pass_over(s, logits, vocab, drawn * kept, false, &kept);
}

/* ---- one row ---- */

/* The likeliest top_k. */
static const struct candidate *top(struct sorter *s, const struct pick *pick, const float *logits,
                                   uint32_t vocab, uint32_t *ret_count)
{
        uint32_t n = candidates(s, logits, vocab, pick->top_k);
        const struct candidate *sorted = sort(s, n);
        double sum;

        n = pick->top_k < n ? pick->top_k : n;
        sum = chances_make(s, sorted, n, logits, pick->temperature, 1);
        for (uint32_t i = 0; i < n; i++)
                s->chances[i] /= sum;
        *ret_count = n;
        return sorted;
}

static uint32_t pick_row(const struct isa *isa, struct sorter *s, const struct pick *pick,
                         const float *logits, uint32_t vocab)
{
        uint32_t largest = find_largest(isa, s, logits, vocab), count, keep, i;
        double drawn = draw(pick->seed, pick->choice, pick->position), sum = 0, mark;
        bool is_cut = pick->top_p < 1 || pick->min_p > 0, few;
        const struct candidate *sorted;

        assert(pick->temperature >= 0);
        if (largest == PICK_NOT_FINITE || pick->temperature == 0)
                return largest;

        few = pick->top_k && pick->top_k < vocab;
        if (few) {
                sorted = top(s, pick, logits, vocab, &count);
        } else {
                float factor = fminf(1 / pick->temperature, FLT_MAX); /* times 0 it is to be 0 */
                double whole =
                        isa->loops->exp_sum(s->weights, logits, vocab, logits[largest], factor);

                sorted = deciding(s, pick, logits, vocab, whole, drawn, &count);
                if (!sorted)
                        return pick_of_many(s, pick, logits, vocab, logits[largest], factor, drawn);
        }
        keep = cut(pick, s->chances, count);
        for (i = 0; i < keep; i++)
                sum += s->chances[i];
        mark = drawn * (is_cut || few ? sum : 1);
        for (i = 0, sum = 0; i + 1 < keep; i++) {
                sum += s->chances[i];
                if (sum > mark)
                        break;
        }
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

/* By s->maxima: most blocks have none of the likeliest. */
static void tell_row(const struct isa *isa, struct sorter *s, const float *logits, uint32_t vocab,
                     float largest, uint32_t picked, uint32_t count, struct logprob *ret_logprobs)
{
        struct logprob *best = ret_logprobs + 1;
        uint32_t max = count - 1;
        double sum;

        assert(max <= vocab);
        *ret_logprobs = (struct logprob){ picked, logits[picked] };
        for (uint32_t at = 0; max && at < vocab; at += MAXIMA_BLOCK) {
                uint32_t end = vocab - at < MAXIMA_BLOCK ? vocab : at + MAXIMA_BLOCK;

                if (at >= max && !(s->maxima[at / MAXIMA_BLOCK] > best[max - 1].logprob))
                        continue;
                for (uint32_t i = at; i < end; i++)
                        put_among(best, i < max ? i : max, max, i, logits[i]);
        }
        sum = isa->loops->exp_sum(s->weights, logits, vocab, largest, 1);
        for (uint32_t i = 0; i < count; i++)
                ret_logprobs[i].logprob =
                        (float)((double)ret_logprobs[i].logprob - largest - log(sum));
}

static void pick_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct picking *p = arg;
        const struct pick *pick = &p->cpu->steps.step.picks[item];
        const float *row = p->logits + (size_t)item * p->vocab;
        struct sorter *s = &p->cpu->sorters[thread];

        p->picked[item] = pick_row(p->cpu->isa, s, pick, row, p->vocab);
        if (pick->logprobs && p->picked[item] != PICK_NOT_FINITE)
                tell_row(p->cpu->isa, s, row, p->vocab,
                         row[find_largest(p->cpu->isa, s, row, p->vocab)], p->picked[item],
                         pick->logprobs, steps_told(&p->cpu->steps, item));
}

int cpu_pick(struct kernels *k, const float *logits, uint32_t vocab)
{
        struct cpu *cpu = cpu_of(k);
        struct picking p = { cpu, logits, vocab, steps_picked(&cpu->steps) };

        assert(vocab && vocab <= cpu->vocab_max);
        crew_run(cpu->crew, pick_work, &p, cpu->steps.step.want_count);
        return 0;
}
