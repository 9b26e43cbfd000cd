/*
 * Picking, divided over the thread pool by sequence. The tokens are the same as those of ref.
 *
 * Candidates are sorted only if necessary. The block summaries (logit-summary.h) give the largest
 * logit, which is all that a greedy pick needs, and the largest of each block, which tell a draw
 * from all (draw-token.h) the few blocks to read. min_p is converted to a logit, and all logits
 * from it up are kept. top_k finds its few candidates by the maxima of blocks, and so does top_p
 * if few candidates decide. If many do, top-p.h finds the last one.
 *
 * Weights are floats with an error of at most 1e-7, where ref has doubles. So a token that is
 * this close to a border of top_p may be kept here and not by ref.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/draw-token.h"
#include "kernels/cpu/pick-more.h"
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

/* ---- weights ---- */

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

/* ---- cuts of many ---- */

/* Sets s->block_weights to weights without temperature. Returns their total. */
static double weigh_untempered(const struct row *row)
{
        const struct candidates *candidates = &row->candidates;
        const uint32_t whole = candidates->vocab / LOGITS_BLOCK;
        struct pick_scratch *s = candidates->s;

        candidates->loops->weigh(s->weights, s->block_weights, candidates->logits, whole,
                                 candidates->largest, 1);
        if (whole < row->blocks)
                candidates->loops->weigh(s->weights + (size_t)whole * LOGITS_BLOCK,
                                         s->block_weights + whole, s->tail.logits, 1,
                                         candidates->largest, 1);
        for (uint32_t b = row->blocks; b < row->groups * LOGITS_BLOCK; b++)
                s->block_weights[b] = 0;
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

/* Draws from all that the cutoff and min_p keep. */
static uint32_t pick_of_many(const struct row *row, struct cutoff cutoff)
{
        if (row->pick->min_p > 0) {
                float least = least_likely(row);

                if (least > cutoff.least)
                        cutoff = (struct cutoff){ least, UINT32_MAX };
        }
        return draw_from_all(&row->candidates, row->pick, row->best, row->largest_of, cutoff);
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

/* ---- one row ---- */

/* *ret_surprise: 0 without mirostat */
static uint32_t pick_row(const struct row *row, float *ret_surprise)
{
        const struct pick *pick = row->pick;
        struct candidate *sorted;
        const double *chances;
        uint32_t count;
        double whole;

        *ret_surprise = 0;
        if (pick->given)
                return pick->given - 1;
        if (pick_has_more(pick))
                return pick_more(&row->candidates, pick, ret_surprise);
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
                        return pick_of_many(
                                row, find_top_p(&row->candidates, pick->top_p * whole, whole));
        } else {
                return pick_of_many(row, CUTOFF_NONE);
        }
        chances = row->candidates.s->chances;
        return draw_from_few(&row->candidates, pick, pick->temperature, sorted, chances,
                             cut(pick, chances, count));
}

/* The picked token, then the likeliest. */
static void list_tokens(const struct row *row, uint32_t picked, struct logprob *ret_entries)
{
        uint32_t count = row->pick->logprobs, n;
        const struct candidate *sorted;

        assert(count <= row->candidates.vocab + 1);
        ret_entries[0].token = picked;
        if (count == 1)
                return;
        sorted = top_candidates(row, count - 1, &n);
        for (uint32_t i = 1; i < count; i++)
                ret_entries[i].token = sorted[i - 1].id;
}

/*
 * Writes logprobs and log-sum. They are without temperature, but the summary's weights include it.
 */
static void write_logprobs(const struct row *row, uint32_t picked, struct logprob *ret_entries)
{
        double sum = row->candidates.factor == 1 ? weigh_blocks(row) : weigh_untempered(row);
        const struct pick *pick = row->pick;

        if (pick->logprobs)
                list_tokens(row, picked, ret_entries);
        for (uint32_t i = 0; i < pick->logprobs; i++)
                ret_entries[i].logprob =
                        (float)((double)row->candidates.logits[ret_entries[i].token] -
                                row->candidates.largest - log(sum));
        if (pick->log_sum)
                ret_entries[pick_log_sum_entry(pick)] =
                        (struct logprob){ picked, (float)(row->candidates.largest + log(sum)) };
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
        struct logprob *entries = steps_entries_out(&cpu->steps, item);
        float surprise;

        assert(row.pick->temperature >= 0);
        tail_fill(&candidates->s->tail, candidates->logits, candidates->vocab);
        for (uint32_t b = 0; !p->is_summarised && b < blocks; b++)
                logit_summary_add_block(g, candidates->loops, picks, b, item, 1,
                                        logit_block_at(candidates->logits, candidates->vocab,
                                                       &candidates->s->tail, b));
        p->picked[item] = PICK_NOT_FINITE;
        if (!find_largest(&row))
                return;
        p->picked[item] = pick_row(&row, &surprise);
        if (pick_failed(p->picked[item]))
                return;
        steps_copy_row(&cpu->steps, item, candidates->logits, candidates->vocab);
        if (row.pick->mirostat)
                entries[row.pick->logprobs] = (struct logprob){ p->picked[item], surprise };
        if (!pick_asks_for_sum(row.pick))
                return;
        if (pick_has_more(row.pick))
                candidates->loops->maxima(candidates->s->group_maxima, row.largest_of, row.groups);
        write_logprobs(&row, p->picked[item], entries);
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
