/*
 * Picking, divided over the thread pool by sequence. The tokens are the same as those of ref.
 *
 * Candidates are sorted only if necessary. The block summaries (logit-summary.h) give the largest
 * logit, which is all that a greedy pick needs. If nothing is cut, they also show where a draw
 * falls, so only that block is read. min_p is converted to a logit, and all logits from it up are
 * kept. top_k finds its few candidates by the maxima of blocks, and so does top_p if few candidates
 * decide. If many do, top-p.h finds the last one.
 *
 * Weights are floats with an error of at most 1e-7, where ref has doubles. So a token that is
 * this close to a border may differ from ref's.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/top-p.h"
#include "kernels/draw.h"

/* Numbers of candidates that are tried first and last to decide top_p. */
#define FEW_FIRST 32u
#define FEW_MOST  256u
#define SPARE     1e-6 /* more than the error of a sum of floats */

/* A row on its way to a token. */
struct row {
        struct candidates candidates;
        const struct pick *pick;
        uint32_t blocks, groups; /* of LOGITS_BLOCK blocks */
        const float *largest_of; /* of blocks, padded to whole groups: logit-summary.h */
        const float *weights_of;
        uint32_t best; /* the id of the largest */
};

/* The index of the first number that equals `wanted`, which must be among them. */
static uint32_t first_at_least(const float *numbers, float wanted)
{
        uint32_t i = 0;

        while (numbers[i] != wanted)
                i++;
        return i;
}

/*
 * Finds the largest logit and its id; false: no token may be picked. s->group_maxima is valid from
 * here on.
 */
static bool find_largest(struct row *row)
{
        struct pick_scratch *s = row->candidates.s;
        uint32_t group = 0, block;

        row->candidates.loops->maxima(s->group_maxima, row->largest_of, row->groups);
        for (uint32_t g = 1; g < row->groups; g++)
                if (s->group_maxima[g] > s->group_maxima[group])
                        group = g;
        row->candidates.largest = s->group_maxima[group];
        if (row->candidates.largest == INFINITY || row->candidates.largest == -INFINITY)
                return false;
        block = group * LOGITS_BLOCK;
        block += first_at_least(row->largest_of + block, row->candidates.largest);
        row->best = block * LOGITS_BLOCK;
        row->best += first_at_least(row->candidates.logits + row->best, row->candidates.largest);
        return true;
}

/* ---- the draw ---- */

/* Sums in four independent chains, because each addition waits for the one before it. */
static double sum_of_group(const float *block_weights)
{
        double chains[4] = { 0 };

        for (uint32_t i = 0; i < LOGITS_BLOCK; i += 4)
                for (uint32_t c = 0; c < 4; c++)
                        chains[c] += block_weights[i + c];
        return chains[0] + chains[1] + (chains[2] + chains[3]);
}

/* The weight of all blocks by s->block_weights. */
static double sum_of_blocks(const struct row *row)
{
        double sum = 0;

        for (uint32_t g = 0; g < row->groups; g++)
                sum += sum_of_group(row->candidates.s->block_weights + (size_t)g * LOGITS_BLOCK);
        return sum;
}

/*
 * Makes s->block_weights from the weights that the summary has, which are relative to each block's
 * largest logit. Returns their total.
 */
static double weigh_blocks(const struct row *row)
{
        struct pick_scratch *s = row->candidates.s;

        row->candidates.loops->weigh(s->block_weights, s->weights, row->largest_of, row->groups,
                                     row->candidates.largest, row->candidates.factor);
        for (uint32_t b = 0; b < row->groups * LOGITS_BLOCK; b++)
                s->block_weights[b] *= row->weights_of[b];
        return sum_of_blocks(row);
}

/*
 * Draws a token from a block: the one at which the running weight exceeds `share` of the block's
 * kept weight. If rounding prevents that, returns the largest logit's token.
 */
static uint32_t draw_in_block(const struct row *row, struct cutoff cutoff, uint32_t block,
                              double share)
{
        const float *logits = logit_block_at(row->candidates.logits, row->candidates.vocab,
                                             &row->candidates.s->tail, block);
        float weights[LOGITS_BLOCK] __attribute__((aligned(64))), together;
        double all = 0, sum = 0;

        row->candidates.loops->weigh(weights, &together, logits, 1, row->candidates.largest,
                                     row->candidates.factor);
        for (uint32_t i = 0; i < LOGITS_BLOCK; i++) {
                if (!cutoff_keeps(cutoff, logits[i], block * LOGITS_BLOCK + i))
                        weights[i] = 0;
                all += weights[i];
        }
        for (uint32_t i = 0; i < LOGITS_BLOCK; i++) {
                sum += weights[i];
                if (sum > share * all)
                        return block * LOGITS_BLOCK + i;
        }
        return row->best;
}

/* Draws a token by id. s->block_weights has the weights of the kept candidates. */
static uint32_t draw_by_id(const struct row *row, struct cutoff cutoff, double drawn)
{
        const float *block_weights = row->candidates.s->block_weights;
        double mark = drawn * sum_of_blocks(row);
        uint32_t group, block;

        for (group = 0; group < row->groups; group++) {
                double next = sum_of_group(block_weights + (size_t)group * LOGITS_BLOCK);

                if (next > mark)
                        break;
                mark -= next;
        }
        for (block = group * LOGITS_BLOCK; block < row->blocks; block++) {
                if (block_weights[block] > mark)
                        return draw_in_block(row, cutoff, block, mark / block_weights[block]);
                mark -= block_weights[block];
        }
        return row->best;
}

/* ---- cuts of many ---- */

/* Sets s->block_weights of blocks [from, to) to the weight of logits from `least` up. */
static void weigh_run(const struct row *row, uint32_t from, uint32_t to, float least, float factor)
{
        const struct candidates *candidates = &row->candidates;
        const struct split at = { candidates->largest, factor, INFINITY, least };
        struct pick_scratch *s = candidates->s;

        for (uint32_t whole = candidates->vocab / LOGITS_BLOCK, n; from < to; from += n) {
                n = from < whole ? (to < whole ? to : whole) - from : 1;
                candidates->loops->split(
                        &at, s->block_weights + from, s->listed_ids, s->listed_weights,
                        logit_block_at(candidates->logits, candidates->vocab, &s->tail, from), n,
                        0);
        }
}

/* Does the same for all blocks; returns their total. */
static double weigh_from(const struct row *row, float least, float factor)
{
        float *block_weights = row->candidates.s->block_weights;
        uint32_t from, to;

        for (from = 0; from < row->blocks; from = to + 1) {
                for (to = from; to < row->blocks && row->largest_of[to] >= least;)
                        to++;
                weigh_run(row, from, to, least, factor);
                if (to < row->blocks)
                        block_weights[to] = 0;
        }
        for (uint32_t b = row->blocks; b < row->groups * LOGITS_BLOCK; b++)
                block_weights[b] = 0;
        return sum_of_blocks(row);
}

static bool is_likely(const struct row *row, float logit)
{
        return exp(((double)logit - row->candidates.largest) / row->pick->temperature) >=
               row->pick->min_p;
}

/*
 * The smallest logit that min_p keeps. It is found by binary search over the keys, because a
 * logarithm would be slightly off.
 */
static float least_likely(const struct row *row)
{
        uint32_t key = sort_key(row->candidates.largest), past = sort_key(-INFINITY);

        while (past - key > 1) {
                uint32_t middle = key + (past - key) / 2;

                if (is_likely(row, key_logit(middle)))
                        key = middle;
                else
                        past = middle;
        }
        return key_logit(key);
}

static uint32_t pick_of_likely(const struct row *row, float least, double drawn)
{
        (void)weigh_from(row, least, row->candidates.factor);
        return draw_by_id(row, (struct cutoff){ least, UINT32_MAX }, drawn);
}

static uint32_t pick_of_many(const struct row *row, double whole, double drawn)
{
        struct cutoff cutoff = find_top_p(&row->candidates, row->pick->top_p * whole, whole);

        if (row->pick->min_p > 0) {
                float least = least_likely(row);

                if (least > cutoff.least)
                        return pick_of_likely(row, least, drawn);
        }
        return draw_by_id(row, cutoff, drawn);
}

/* ---- few ---- */

/* How many of `count` candidates, in falling order of probability, top_p and min_p keep. */
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

/* Sets s->chances to the sorted candidates' weights divided by `whole`; returns their sum. */
static double chances_make(const struct row *row, const struct candidate *c, uint32_t count,
                           double whole)
{
        double *chances = row->candidates.s->chances, sum = 0;

        for (uint32_t i = 0; i < count; i++) {
                double below = (double)row->candidates.logits[c[i].id] - row->candidates.largest;

                chances[i] = exp(below / row->pick->temperature) / whole;
                sum += chances[i];
        }
        return sum;
}

/* Returns the first `count` candidates or more, best first. */
static struct candidate *top_candidates(const struct row *row, uint32_t count, uint32_t *ret_count)
{
        struct pick_scratch *s = row->candidates.s;

        *ret_count = candidates_select(s, row->candidates.logits, row->candidates.vocab,
                                       row->largest_of, count);
        return candidates_sort(s->a, s->b, *ret_count);
}

/* The most likely top_k candidates. */
static struct candidate *top_k_candidates(const struct row *row, uint32_t *ret_count)
{
        uint32_t n;
        struct candidate *sorted = top_candidates(row, row->pick->top_k, &n);
        double sum;

        n = row->pick->top_k < n ? row->pick->top_k : n;
        sum = chances_make(row, sorted, n, 1);
        for (uint32_t i = 0; i < n; i++)
                row->candidates.s->chances[i] /= sum;
        *ret_count = n;
        return sorted;
}

/*
 * Returns the most likely candidates, at least as many as top_p keeps. NULL: more than a few are
 * needed.
 */
static struct candidate *top_p_candidates(const struct row *row, double whole, uint32_t *ret_count)
{
        const double need = row->pick->top_p;

        for (uint32_t few = FEW_FIRST; few <= FEW_MOST; few *= 8) {
                struct candidate *sorted;
                double sum;

                if (few < need * whole)
                        continue; /* no weight exceeds 1: so few cannot reach the sum */
                sorted = top_candidates(row, few, ret_count);
                sum = chances_make(row, sorted, *ret_count, whole);
                if (*ret_count == row->candidates.vocab || sum > need + SPARE)
                        return sorted;
        }
        return NULL;
}

static uint32_t draw_of_few(const struct row *row, struct candidate *c, uint32_t count,
                            double drawn)
{
        struct pick_scratch *s = row->candidates.s;
        double sum = 0, mark;

        for (uint32_t i = 0; i < count; i++)
                c[i].key = c[i].id;
        c = candidates_sort(c, c == s->a ? s->b : s->a, count);
        mark = drawn * chances_make(row, c, count, 1);
        for (uint32_t i = 0; i < count; i++) {
                sum += s->chances[i];
                if (sum > mark)
                        return c[i].id;
        }
        return row->best;
}

/* ---- one row ---- */

static uint32_t pick_row(const struct row *row)
{
        const struct pick *pick = row->pick;
        const double drawn = draw(pick->seed, pick->sample_index, pick->position);
        struct candidate *sorted;
        uint32_t count;
        double whole;

        if (pick->given)
                return pick->given - 1;
        if (pick->temperature == 0)
                return row->best;
        if (!is_likely(row, row->candidates.largest))
                return row->best; /* min_p is above 1 */
        if (pick->top_k && pick->top_k < row->candidates.vocab) {
                sorted = top_k_candidates(row, &count);
        } else if (pick->top_p < 1) {
                whole = weigh_blocks(row);
                sorted = top_p_candidates(row, whole, &count);
                if (!sorted)
                        return pick_of_many(row, whole, drawn);
        } else if (pick->min_p > 0) {
                return pick_of_likely(row, least_likely(row), drawn);
        } else {
                (void)weigh_blocks(row);
                return draw_by_id(row, CUTOFF_NONE, drawn);
        }
        return draw_of_few(row, sorted, cut(pick, row->candidates.s->chances, count), drawn);
}

/* Writes the logprobs. They are without temperature, but the summary's weights include it. */
static void write_logprobs(const struct row *row, uint32_t picked, struct logprob *ret_logprobs)
{
        double sum =
                row->candidates.factor == 1 ? weigh_blocks(row) : weigh_from(row, -INFINITY, 1);
        uint32_t count = row->pick->logprobs, n;

        assert(count - 1 <= row->candidates.vocab);
        ret_logprobs[0].token = picked;
        if (count > 1) {
                const struct candidate *sorted = top_candidates(row, count - 1, &n);

                for (uint32_t i = 1; i < count; i++)
                        ret_logprobs[i].token = sorted[i - 1].id;
        }
        for (uint32_t i = 0; i < count; i++)
                ret_logprobs[i].logprob =
                        (float)((double)row->candidates.logits[ret_logprobs[i].token] -
                                row->candidates.largest - log(sum));
}

struct pick_job {
        struct cpu *cpu;
        const float *logits;
        uint32_t vocab;
        bool is_summarised; /* head() made the summary */
        uint32_t *picked;
};

static void pick_work(void *arg, uint32_t thread, uint32_t item)
{
        const struct pick_job *p = arg;
        struct cpu *cpu = p->cpu;
        struct logit_summary *g = &cpu->logit_summary;
        const struct pick *picks = cpu->steps.step.picks;
        const uint32_t blocks = logit_blocks_of(p->vocab);
        struct row row = {
                .candidates = { cpu->isa->loops, &cpu->pick_scratch[thread],
                                p->logits + (size_t)item * p->vocab, p->vocab, 0,
                                logit_summary_factor(&picks[item]) },
                .pick = &picks[item],
                .blocks = blocks,
                .groups = logit_blocks_of(blocks),
                .largest_of = g->largest + (size_t)item * g->stride,
                .weights_of = g->weights + (size_t)item * g->stride,
        };
        struct candidates *candidates = &row.candidates;

        assert(row.pick->temperature >= 0);
        tail_fill(&candidates->s->tail, candidates->logits, candidates->vocab);
        for (uint32_t b = 0; !p->is_summarised && b < blocks; b++)
                logit_summary_add_block(g, candidates->loops, picks, b, item, 1,
                                        logit_block_at(candidates->logits, candidates->vocab,
                                                       &candidates->s->tail, b));
        p->picked[item] = PICK_NOT_FINITE;
        if (!find_largest(&row))
                return;
        p->picked[item] = pick_row(&row);
        if (row.pick->logprobs)
                write_logprobs(&row, p->picked[item], steps_logprobs_out(&cpu->steps, item));
}

int cpu_pick(struct kernels *k, const float *logits, uint32_t vocab)
{
        struct cpu *cpu = cpu_of(k);
        const uint32_t count = cpu->steps.step.want_count;
        bool is_summarised =
                cpu->logit_summary.logits == logits && cpu->logit_summary.vocab == vocab;
        struct pick_job p = { cpu, logits, vocab, is_summarised, steps_tokens_out(&cpu->steps) };

        assert(vocab && vocab <= cpu->vocab_max);
        if (!is_summarised)
                logit_summary_begin(&cpu->logit_summary, logits, vocab, count);
        thread_pool_run(cpu->thread_pool, pick_work, &p, count);
        return 0;
}
