/*
 * Picks with a mask, edits, or the cuts that kernels/cuts.h has beyond top_k, top_p and min_p.
 *
 * They work on a copy of the row, in which illegal tokens have the logit -inf.  Each cut leaves an
 * interval of sort keys.  Only `typical` may leave a gap in it: it keeps candidates by their
 * distance from the entropy, and of those on the left that are equally far, the first ones.
 *
 * Entropy.  With w = exp(below) for each kept candidate, p = w / S and -log(p) = log(S) - below.
 * So H = log(S) - sum(w below) / S, and |-log(p) - H| is the distance between `below` and its
 * weighted mean.
 */
#include "kernels/cuda/pick.h"

#include <errno.h>

#include "kernels/cuda/pick-draw.h"

#define SMALL_VOCAB     4096u
#define ALL_IDS         ((1u << ID_BITS) - 1)
#define TEMPERATURE_MIN 1e-300 /* above 0; no smaller one changes a chance */
#define LOG2_E          1.44269504088896340736
#define DISTANCE_BITS   62u
#define DISTANCE_UNIT   0x1p56
#define DISTANCE_MOST   63.0 /* no candidate with a weight is as far */

/* In order of the distance between `below` and the centre, and then of the sort keys. */
struct by_distance {
        typedef unsigned __int128 key;
        static constexpr unsigned BITS = DISTANCE_BITS + KEY_BITS;

        DEVICE double distance_of(const candidates *candidates, float logit)
        {
                return fmin(fabs(below_of(candidates, logit) - candidates->centre), DISTANCE_MOST);
        }

        DEVICE key key_of(const candidates *candidates, uint64_t sort_key)
        {
                double distance = distance_of(candidates, logit_of(sort_key));

                return (key)(uint64_t)(distance * DISTANCE_UNIT) << KEY_BITS | sort_key;
        }

        DEVICE uint32_t bucket_of(const candidates *candidates, float logit)
        {
                return first_bucket(distance_of(candidates, logit));
        }

        DEVICE uint64_t weight_of(const candidates *candidates, float logit, uint64_t sort_key)
        {
                return weigh<true>(candidates, logit, sort_key);
        }
};

/* ---- the block ---- */

DEVICE double sum_again(smem *smem, double mine)
{
        block_sync();
        return block_sum(smem, mine);
}

DEVICE uint64_t least_again(smem *smem, uint64_t mine)
{
        block_sync();
        return block_least(smem, mine);
}

/* Calls `what` for all kept candidates. */
template <class Do> DEVICE void for_kept(const candidates *candidates, Do what)
{
        for_each(candidates, [&](uint32_t id, float logit) {
                uint64_t sort_key = sort_key_of(logit, id);

                if (is_kept(candidates, sort_key))
                        what(logit, sort_key);
        });
}

/* ---- edits ---- */

DEVICE bool is_legal(const pick *pick, uint32_t id)
{
        return !pick->mask || pick->mask[id / 32] >> id % 32 & 1;
}

DEVICE void edit_row(const candidates *row, const pick *pick, float *ret_edited)
{
        for_each(row, [&](uint32_t id, float logit) {
                ret_edited[id] = is_legal(pick, id) ? logit : -INFINITY;
        });
        block_sync();
        for (uint32_t i = threadIdx.x; i < pick->edit_count; i += blockDim.x) {
                const pick_edit *edit = &pick->edits[i];

                if (is_legal(pick, edit->token))
                        ret_edited[edit->token] = logit_edited(edit, row->logits[edit->token]);
        }
        block_sync();
}

/* ---- cuts ---- */

DEVICE void set_first(candidates *candidates, uint64_t first)
{
        candidates->begin = first;
        candidates->largest = logit_of(first);
}

DEVICE void set_temperature(candidates *candidates, double temperature)
{
        candidates->inverse_temperature = 1 / fmax(temperature, TEMPERATURE_MIN);
}

/* The smallest float that is not below this. */
DEVICE float float_from(double least)
{
        float f = (float)least;

        return f < least ? nextafterf(f, INFINITY) : f;
}

DEVICE void cut_n_sigma(smem *smem, candidates *candidates, float n_sigma)
{
        double count = 0, whole = 0, squares = 0, mean;
        uint64_t last;

        for_kept(candidates, [&](float logit, uint64_t) {
                count++;
                whole += logit;
        });
        count = sum_again(smem, count);
        mean = sum_again(smem, whole) / count;
        for_kept(candidates, [&](float logit, uint64_t) {
                double off = logit - mean;

                squares += off * off;
        });
        squares = sum_again(smem, squares);
        last = sort_key_of(float_from(candidates->largest - n_sigma * sqrt(squares / count)),
                           ALL_IDS);
        candidates->last = last < candidates->last ? last : candidates->last;
}

/* The mean of all `below`, each weighted by its chance; and the sum of weights. */
DEVICE double mean_below(smem *smem, const candidates *candidates, double *ret_whole)
{
        double whole = 0, products = 0;

        for_kept(candidates, [&](float logit, uint64_t) {
                double below = below_of(candidates, logit), weight = exp(below);

                whole += weight;
                products += weight > 0 ? weight * below : 0;
        });
        *ret_whole = sum_again(smem, whole);
        return sum_again(smem, products) / *ret_whole;
}

/* The temperature of the draw; until then, that of the candidates is 1. */
DEVICE double find_temperature(smem *smem, candidates *candidates, const pick *pick)
{
        double range = pick->temperature_range, count = 0, lo, mean, whole;

        if (range <= 0)
                return pick->temperature;
        for_kept(candidates, [&](float, uint64_t) { count++; });
        count = sum_again(smem, count);
        if (count == 1)
                return pick->temperature;
        mean = mean_below(smem, candidates, &whole);
        lo = fmax(0.0, pick->temperature - range);
        return lo + (pick->temperature + range - lo) * pow((log(whole) - mean) / log(count),
                                                           (double)pick->temperature_exponent);
}

DEVICE void cut_top_k(smem *smem, candidates *candidates, uint32_t top_k)
{
        candidates_weigh<by_count>(smem, candidates);
        if (top_k < buckets_total(&smem->first))
                candidates->last = choose<by_count>(smem, candidates, top_k);
}

DEVICE void cut_top_p(smem *smem, candidates *candidates, float top_p)
{
        candidates_weigh<by_chance>(smem, candidates);
        candidates->last = choose<by_chance>(smem, candidates, target_of(smem, top_p));
}

DEVICE void cut_typical(smem *smem, candidates *candidates, float typical)
{
        uint64_t chosen, first = LAST_KEY, last = LAST_KEY, next = LAST_KEY;
        by_distance::key farthest;
        double whole;

        candidates->centre = mean_below(smem, candidates, &whole);
        candidates_weigh<by_distance>(smem, candidates);
        chosen = choose<by_distance>(smem, candidates, target_of(smem, typical));
        farthest = by_distance::key_of(candidates, chosen);
        for_kept(candidates, [&](float logit, uint64_t sort_key) {
                if (by_distance::key_of(candidates, sort_key) > farthest ||
                    !weigh<true>(candidates, logit, sort_key))
                        return;
                first = sort_key < first ? sort_key : first;
                last = ~sort_key < last ? ~sort_key : last;
                next = sort_key > chosen && sort_key < next ? sort_key : next;
        });
        candidates->last = ~least_again(smem, last);
        candidates->gap_begin = chosen;
        candidates->gap_end = least_again(smem, next);
        set_first(candidates, least_again(smem, first));
}

DEVICE void cut_min_p(smem *smem, candidates *candidates, float min_p)
{
        uint64_t last = ~candidates->begin;

        for_kept(candidates, [&](float logit, uint64_t sort_key) {
                if (~sort_key < last && exp(below_of(candidates, logit)) >= min_p)
                        last = ~sort_key;
        });
        candidates->last = ~least_again(smem, last);
}

DEVICE void cut_surprising(smem *smem, candidates *candidates, double mu)
{
        double whole, most;
        uint64_t last = ~candidates->begin;

        mean_below(smem, candidates, &whole);
        most = log2(whole) - mu;
        for_kept(candidates, [&](float logit, uint64_t sort_key) {
                if (~sort_key < last && below_of(candidates, logit) * LOG2_E >= most)
                        last = ~sort_key;
        });
        candidates->last = ~least_again(smem, last);
}

DEVICE void cut_top(smem *smem, candidates *candidates, float least)
{
        double whole, count = 0;
        uint64_t last = ~candidates->begin;

        mean_below(smem, candidates, &whole);
        for_kept(candidates, [&](float logit, uint64_t sort_key) {
                if (exp(below_of(candidates, logit)) / whole < least)
                        return;
                count++;
                last = ~sort_key < last ? ~sort_key : last;
        });
        last = ~least_again(smem, last);
        if (sum_again(smem, count) >= 2)
                set_first(candidates, last);
}

/* All cuts, in the order of kernels/cuts.h.  Returns the temperature of the draw. */
DEVICE double cut(smem *smem, candidates *candidates, const pick *pick)
{
        const bool is_first = pick->order == TEMPERATURE_FIRST;
        double temperature = 1;

        if (pick->n_sigma > 0)
                cut_n_sigma(smem, candidates, pick->n_sigma);
        if (is_first)
                temperature = find_temperature(smem, candidates, pick);
        if (temperature <= 0)
                return 0;
        set_temperature(candidates, temperature);
        if (pick->top_k && pick->top_k < candidates->vocab)
                cut_top_k(smem, candidates, pick->top_k);
        if (pick->typical > 0 && pick->typical < 1)
                cut_typical(smem, candidates, pick->typical);
        if (pick->top_p < 1)
                cut_top_p(smem, candidates, pick->top_p);
        if (pick->min_p > 0)
                cut_min_p(smem, candidates, pick->min_p);
        if (pick->mirostat)
                cut_surprising(smem, candidates, pick->mu);
        if (pick->xtc_chance > 0 &&
            draw(pick->seed, pick->sample_index, pick->position) < pick->xtc_chance)
                cut_top(smem, candidates, pick->xtc_least);
        return is_first ? temperature : find_temperature(smem, candidates, pick);
}

/* ---- picking ---- */

/* The surprise of a token of those that are left, at the temperature of the candidates. */
DEVICE float surprise_of(smem *smem, const candidates *candidates, uint32_t id)
{
        double whole;

        mean_below(smem, candidates, &whole);
        return (float)(log2(whole) - below_of(candidates, candidates->logits[id]) * LOG2_E);
}

/* `edited` has space for the row.  *ret_surprise: 0 without mirostat. */
DEVICE uint32_t pick_edited(smem *smem, const candidates *row, const pick *pick, float *edited,
                            float *ret_surprise)
{
        candidates candidates;
        double temperature;
        uint64_t first;
        uint32_t picked;

        *ret_surprise = 0;

        edit_row(row, pick, edited);
        candidates = row_of(smem, edited, row->vocab, &first);
        if (candidates.largest == -INFINITY)
                return PICK_NONE_LEGAL;
        if (pick->temperature == 0)
                return id_of(first);
        set_first(&candidates, first);
        candidates.last = sort_key_of(-INFINITY, 0) - 1;
        temperature = cut(smem, &candidates, pick);
        if (temperature <= 0)
                return id_of(candidates.begin);
        set_temperature(&candidates, temperature);
        picked = draw_kept(smem, &candidates, pick, { fmax(temperature, TEMPERATURE_MIN), 0 },
                           id_of(candidates.begin));
        if (pick->mirostat)
                *ret_surprise = surprise_of(smem, &candidates, picked);
        return picked;
}

template <unsigned THREADS> KERNEL(THREADS) pick_more_rows(pick_args a)
{
        uint32_t want = blockIdx.x, picked = PICK_NOT_FINITE;
        const pick *pick = &a.step.picks[want];
        smem *smem = (struct smem *)shared();
        logprob *entries;
        candidates row;
        uint64_t first;
        float surprise = 0;

        wait_for_predecessor();
        if (want >= a.step.counts->wants || !pick_has_more(pick))
                return;

        entries = a.entries + pick->first_entry;
        row = row_of(smem, a.logits + (size_t)want * a.stride, a.vocab, &first);
        if (first && row.largest != -INFINITY)
                picked = pick->given ? pick->given - 1
                                     : pick_edited(smem, &row, pick,
                                                   a.edited + (size_t)want * a.vocab, &surprise);
        if (!threadIdx.x)
                a.tokens[want] = picked;
        if (!threadIdx.x && picked < PICK_NONE_LEGAL && pick->mirostat)
                entries[pick->logprobs] = { picked, surprise };
        block_sync();
        if (picked < PICK_NONE_LEGAL && pick_asks_for_sum(pick))
                write_logprobs(smem, &row, pick, picked, entries);
}

int pick_more_tokens(struct device *device, const struct pick_args *args)
{
        bool small = args->vocab <= SMALL_VOCAB;
        const launch launch = { args->wants_max, 1, 1, small ? 64u : 512u, sizeof(smem), false };

        if (!args->vocab || args->vocab > PICK_VOCAB_MAX || args->stride < args->vocab)
                return -EINVAL;
        return device_launch(device, STREAM_STEPS, launch,
                             small ? pick_more_rows<64> : pick_more_rows<512>, *args);
}
