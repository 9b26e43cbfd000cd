/*
 * Nothing is sorted.  All candidates have an order, the likeliest first. Each has a sort key, a
 * number of 64 bits: the upper bits are smaller for a larger logit, and the lower bits are its id,
 * so no two keys are equal.  Each candidate also has a weight: 1 for top_k, its chance for top_p.
 * Then both ask the same question:
 *
 *      which candidate's weight, added to those of all candidates before it, first reaches the
 *      target?
 *
 * The search uses buckets, each a range of keys.  Every candidate adds its weight to its bucket.
 * Then it searches again within the bucket in which the target is reached.  Finer buckets follow
 * until a bucket has no more candidates than a list holds, and in a list each is compared with
 * each.  The first buckets divide (largest - logit) / temperature evenly, since logits are spread
 * evenly there.  So nearly always the list comes next, and threads seldom use the same bucket at
 * the same time.  The finer buckets divide keys bit by bit, which ends for any logits.
 *
 * A draw looks for the best score.  A warp takes 32 spans at a time: each lane makes the least time
 * of one of them, and then all lanes look at the tokens of one span after the other.  Only a token
 * that could have a better score than the best one of this lane so far gets a time of its own.
 */
#include "kernels/cuda/pick.h"

#include <errno.h>
#include <math.h>

#include "kernels/cuda/intrinsics.h"
#include "kernels/draw.h"

#define WARPS_MAX   32u
#define ID_BITS     20u
#define KEY_BITS    (32u + ID_BITS)
#define LAST_KEY    UINT64_MAX
#define BUCKET_BITS 10u
#define BUCKETS     (1u << BUCKET_BITS)
#define GROUP       32u /* buckets */
#define GROUPS      (BUCKETS / GROUP)
/* First buckets for a factor of e in chance. */
#define BUCKETS_PER_E  32
#define WORDS          3u
#define LIST_MAX       128u
#define UNIT           0x1p62  /* the weight of a chance of 1 */
#define LOG_CHANCE_MIN (-44.0) /* the logarithm of a chance that is less than half a unit */
#define TOP_P_BITS     44u     /* a float from 2^-20 up has no more bits after the point */
#define SCORE_NEAR     1e-5    /* more than the rounding of a score with 1 / temperature */
#define AT_A_TIME      4u
#define SMALL_VOCAB    4096u

static_assert(PICK_VOCAB_MAX <= 1u << ID_BITS, "an id fits into a sort key");
static_assert(DRAW_SPAN == LANES, "a lane for each token of a span");
static_assert(GROUPS <= 64, "a group has a thread, however small the block");

/* The weight of many candidates: 2^20 times 2^62 at most. */
typedef unsigned __int128 sum;

/* A sum has three words, so that the atomics of shared memory can add to it. */
struct buckets {
        uint32_t words[WORDS][BUCKETS];
        uint32_t count[BUCKETS]; /* candidates with a weight above 0 */
        sum groups[GROUPS];      /* set by buckets_measure() */
};

struct found {
        sum before; /* the weight of all candidates before this bucket */
        uint32_t bucket, count;
};

/* A token and its score. */
struct drawn {
        double score;
        uint32_t id;
};

struct smem { /* shared memory */
        struct buckets first, finer;
        struct found found;
        uint64_t chosen; /* the sort key of the chosen candidate */
        uint64_t sort_keys[LIST_MAX], weights[LIST_MAX];
        unsigned listed;
        uint64_t of_warps[WARPS_MAX];
        double doubles_of_warps[WARPS_MAX];
        drawn drawn_of_warps[WARPS_MAX];
};

/* The candidates of one row. */
struct candidates {
        const float *logits;
        uint32_t vocab;
        double largest, inverse_temperature; /* 1 / temperature */
        /* Candidates after this key have no weight. */
        uint64_t last;
};

/* Within one of the first buckets: the 2^bits keys from `begin` on. */
struct key_range {
        uint32_t first;
        unsigned bits;
        uint64_t begin;
};

/* ---- candidates ---- */

/*
 * Smaller for larger logits, equal for equal ones (-0 and 0 are equal).  No number has the key 0,
 * which stands for NaN and infinity.
 */
DEVICE uint64_t sort_key_of(float logit, uint32_t id)
{
        uint32_t u = bits_of(logit == 0 ? 0 : logit);

        return (uint64_t)(u >> 31 ? u : ~u & 0x7fffffff) << ID_BITS | id;
}

DEVICE uint32_t id_of(uint64_t sort_key)
{
        return (uint32_t)sort_key & ((1u << ID_BITS) - 1);
}

/* How far a logit is below the largest, as the logarithm of its chance. */
DEVICE double below_of(const candidates *candidates, float logit)
{
        return (logit - candidates->largest) * candidates->inverse_temperature;
}

DEVICE uint32_t first_bucket(const candidates *candidates, float logit)
{
        double at = -below_of(candidates, logit) * BUCKETS_PER_E;

        return at < BUCKETS - 1 ? (uint32_t)at : BUCKETS - 1;
}

/* exp() is not computed for a candidate whose chance is certainly too small. */
template <bool CHANCES>
DEVICE uint64_t weigh(const candidates *candidates, float logit, uint64_t sort_key)
{
        double below;

        if (sort_key > candidates->last)
                return 0;
        if (!CHANCES)
                return 1;
        below = below_of(candidates, logit);
        return below < LOG_CHANCE_MIN ? 0 : (uint64_t)rint(exp(below) * UNIT);
}

/*
 * Calls `what` for the whole row: each thread takes its ids in ascending order.  Several loads are
 * in progress at a time.
 */
template <class Do> DEVICE void for_each(const candidates *candidates, Do what)
{
        const uint32_t end = candidates->vocab, step = blockDim.x;

        for (uint32_t id = threadIdx.x; id < end; id += AT_A_TIME * step) {
                float logits[AT_A_TIME];

                for (uint32_t i = 0; i < AT_A_TIME; i++)
                        logits[i] = id + i * step < end ? candidates->logits[id + i * step] : 0;
                for (uint32_t i = 0; i < AT_A_TIME; i++)
                        if (id + i * step < end)
                                what(id + i * step, logits[i]);
        }
}

/* ---- the block ---- */

/*
 * block_least() and block_sum() are called at most once for a row each, so what warps have
 * written for all to read is never overwritten.
 */
DEVICE uint64_t block_least(smem *smem, uint64_t mine)
{
        for (unsigned bits = LANES / 2; bits; bits /= 2) {
                uint64_t theirs = shuffle_xor(mine, bits);

                mine = theirs < mine ? theirs : mine;
        }
        if (!lane_number())
                smem->of_warps[threadIdx.x / LANES] = mine;
        block_sync();
        for (unsigned i = 0; i < blockDim.x / LANES; i++)
                mine = smem->of_warps[i] < mine ? smem->of_warps[i] : mine;
        return mine;
}

/* Lanes pairwise, then warps in ascending order. */
DEVICE double block_sum(smem *smem, double mine)
{
        double all = 0;

        mine = warp_sum(mine);
        if (!lane_number())
                smem->doubles_of_warps[threadIdx.x / LANES] = mine;
        block_sync();
        for (unsigned i = 0; i < blockDim.x / LANES; i++)
                all += smem->doubles_of_warps[i];
        return all;
}

/* ---- buckets ---- */

/* No thread may still read the buckets.  When this returns, all threads may add to them. */
DEVICE void buckets_clear(buckets *b)
{
        for (uint32_t i = threadIdx.x; i < BUCKETS; i += blockDim.x) {
                for (unsigned w = 0; w < WORDS; w++)
                        b->words[w][i] = 0;
                b->count[i] = 0;
        }
        block_sync();
}

/*
 * The old value of a word tells whether this very addition overflowed, even if others add at the
 * same time.
 */
DEVICE void buckets_add(buckets *b, uint32_t bucket, uint64_t weight)
{
        uint32_t low = (uint32_t)weight, high = (uint32_t)(weight >> 32);

        if (atomic_add(&b->words[0][bucket], low) > UINT32_MAX - low)
                high++;
        if (high && atomic_add(&b->words[1][bucket], high) > UINT32_MAX - high)
                atomic_add(&b->words[2][bucket], 1);
        atomic_add(&b->count[bucket], 1);
}

DEVICE sum bucket_sum(const buckets *b, uint32_t bucket)
{
        return (sum)b->words[2][bucket] << 64 | (uint64_t)b->words[1][bucket] << 32 |
               b->words[0][bucket];
}

/*
 * Computes the sums of groups, after all weights were added.  Each thread begins at
 * another offset, so that they use different banks.
 */
DEVICE void buckets_measure(buckets *b)
{
        uint32_t g = threadIdx.x;
        sum all = 0;

        block_sync();
        for (uint32_t i = 0; g < GROUPS && i < GROUP; i++)
                all += bucket_sum(b, g * GROUP + (g + i) % GROUP);
        if (g < GROUPS)
                b->groups[g] = all;
        block_sync();
}

DEVICE sum buckets_total(const buckets *b)
{
        sum all = 0;

        for (uint32_t g = 0; g < GROUPS; g++)
                all += b->groups[g];
        return all;
}

/* The bucket in which `before` and the sum of all buckets up to it first reach the target. */
DEVICE found buckets_find(smem *smem, const buckets *b, sum target, sum before)
{
        if (!threadIdx.x) {
                uint32_t g = 0, i;

                for (; before + b->groups[g] < target; g++)
                        before += b->groups[g];
                for (i = g * GROUP; before + bucket_sum(b, i) < target; i++)
                        before += bucket_sum(b, i);
                smem->found = { before, i, b->count[i] };
        }
        block_sync();
        return smem->found;
}

/* ---- choosing ---- */

/* Adds all candidates to the first buckets. */
template <bool CHANCES> DEVICE void candidates_weigh(smem *smem, const candidates *candidates)
{
        buckets_clear(&smem->first);
        for_each(candidates, [&](uint32_t id, float logit) {
                uint64_t weight = weigh<CHANCES>(candidates, logit, sort_key_of(logit, id));

                if (weight)
                        buckets_add(&smem->first, first_bucket(candidates, logit), weight);
        });
        buckets_measure(&smem->first);
}

/* The weight of a candidate in that key range; 0 for other candidates. */
template <bool CHANCES>
DEVICE uint64_t weigh_there(const candidates *candidates, const key_range *at, float logit,
                            uint64_t sort_key)
{
        if ((sort_key - at->begin) >> at->bits || first_bucket(candidates, logit) != at->first)
                return 0;
        return weigh<CHANCES>(candidates, logit, sort_key);
}

/* Lists the candidates that have a weight, in any order. */
template <class Weigh> DEVICE void list(smem *smem, const candidates *candidates, Weigh weigh_one)
{
        if (!threadIdx.x)
                smem->listed = 0;
        block_sync();
        for_each(candidates, [&](uint32_t id, float logit) {
                uint64_t sort_key = sort_key_of(logit, id), weight = weigh_one(logit, sort_key);

                if (weight) {
                        unsigned at = atomic_add(&smem->listed, 1);

                        smem->sort_keys[at] = sort_key;
                        smem->weights[at] = weight;
                }
        });
        block_sync();
}

/*
 * Returns the sort key of the candidate that reaches the target. All candidates must have been
 * weighed, and the target must be at least 1 and at most the total.
 */
template <bool CHANCES> DEVICE uint64_t choose(smem *smem, const candidates *candidates, sum target)
{
        found found = buckets_find(smem, &smem->first, target, 0);
        key_range at = { found.bucket, KEY_BITS, 0 };

        /*
         * With 2 bits left there are no more than 4 candidates, so this ends before the bits are
         * used up.
         */
        while (found.count > LIST_MAX) {
                unsigned bits = at.bits - BUCKET_BITS;

                buckets_clear(&smem->finer);
                for_each(candidates, [&](uint32_t id, float logit) {
                        uint64_t sort_key = sort_key_of(logit, id),
                                 weight = weigh_there<CHANCES>(candidates, &at, logit, sort_key);

                        if (weight)
                                buckets_add(&smem->finer, (uint32_t)((sort_key - at.begin) >> bits),
                                            weight);
                });
                buckets_measure(&smem->finer);
                found = buckets_find(smem, &smem->finer, target, found.before);
                at.begin += (uint64_t)found.bucket << bits;
                at.bits = bits;
        }

        list(smem, candidates, [&](float logit, uint64_t sort_key) {
                return weigh_there<CHANCES>(candidates, &at, logit, sort_key);
        });
        for (unsigned i = threadIdx.x; i < smem->listed; i += blockDim.x) {
                sum until = found.before + smem->weights[i];

                for (unsigned j = 0; j < smem->listed; j++)
                        if (smem->sort_keys[j] < smem->sort_keys[i])
                                until += smem->weights[j];
                if (until >= target && until - smem->weights[i] < target)
                        smem->chosen = smem->sort_keys[i];
        }
        block_sync();
        return smem->chosen;
}

/* ---- drawing ---- */

DEVICE bool is_kept(const candidates *candidates, const pick *pick, float logit, uint32_t id)
{
        return sort_key_of(logit, id) <= candidates->last &&
               (pick->min_p <= 0 || exp(below_of(candidates, logit)) >= pick->min_p);
}

DEVICE bool is_better(drawn a, drawn b)
{
        return a.score > b.score || (a.score == b.score && a.id < b.id);
}

/*
 * The tokens of a warp's 32 spans; lane i has the least time of span `first` + i.  The loop is not
 * unrolled, because registers are scarce.
 */
DEVICE void draw_spans(const candidates *candidates, const pick *pick, uint32_t first, drawn *best)
{
        const draw_key key = draw_key_of(pick);
        double least = draw_least(&key, first + lane_number());
        float bound = (float)(SCORE_NEAR - draw_log(least));

#ifdef __CUDACC__
#pragma unroll 1
#endif
        for (unsigned i = 0; i < LANES; i++) {
                uint32_t id = (first + i) * DRAW_SPAN + lane_number();
                double span_least = shuffle_from(least, i);
                float span_bound = shuffle_from(bound, i);
                float logit = id < candidates->vocab ? candidates->logits[id] : -INFINITY;
                drawn drawn = { 0, id };

                if (!(below_of(candidates, logit) + span_bound >= best->score) ||
                    !is_kept(candidates, pick, logit, id))
                        continue;
                drawn.score = draw_score(logit, (float)candidates->largest, pick->temperature,
                                         draw_time(&key, id, span_least));
                if (is_better(drawn, *best))
                        *best = drawn;
        }
}

/* The best of all threads. */
DEVICE uint32_t block_best(smem *smem, drawn mine)
{
        for (unsigned bits = LANES / 2; bits; bits /= 2) {
                drawn theirs = { shuffle_xor(mine.score, bits), shuffle_xor(mine.id, bits) };

                mine = is_better(theirs, mine) ? theirs : mine;
        }
        if (!lane_number())
                smem->drawn_of_warps[threadIdx.x / LANES] = mine;
        block_sync();
        for (unsigned i = 0; i < blockDim.x / LANES; i++)
                if (is_better(smem->drawn_of_warps[i], mine))
                        mine = smem->drawn_of_warps[i];
        return mine.id;
}

/*
 * All warps begin with the spans around the likeliest token, `first`, which is always kept.  Then
 * they know a score that few tokens can exceed.
 */
DEVICE uint32_t draw_kept(smem *smem, const candidates *candidates, const pick *pick,
                          uint32_t first)
{
        const uint32_t step = blockDim.x / LANES * LANES;
        uint32_t span = first / (DRAW_SPAN * LANES) * LANES, next = threadIdx.x / LANES * LANES;
        drawn best = { -INFINITY, UINT32_MAX };

        for (; span * DRAW_SPAN < candidates->vocab; span = next, next += step)
                draw_spans(candidates, pick, span, &best);
        return block_best(smem, best);
}

/*
 * The cuts of top_k and top_p are made before min_p applies: top_p also counts candidates that
 * min_p drops.
 */
DEVICE uint32_t draw_from(smem *smem, candidates *candidates, const pick *pick, uint32_t first)
{
        candidates->inverse_temperature = 1 / (double)pick->temperature;
        if (pick->top_k && pick->top_k < candidates->vocab) {
                candidates_weigh<false>(smem, candidates);
                candidates->last = choose<false>(smem, candidates, pick->top_k);
        }
        if (pick->top_p < 1) {
                uint64_t part = (uint64_t)rint(pick->top_p * (double)(1ull << TOP_P_BITS));
                sum target;

                candidates_weigh<true>(smem, candidates);
                target = (buckets_total(&smem->first) * part + (1ull << TOP_P_BITS) - 1) >>
                         TOP_P_BITS;
                candidates->last = choose<true>(smem, candidates, target ? target : 1);
        }
        return draw_kept(smem, candidates, pick, first);
}

/* ---- picking ---- */

/* Reports log-probabilities over all candidates, including those that were cut. */
DEVICE void write_logprobs(smem *smem, candidates *candidates, uint32_t picked, uint32_t count,
                           logprob *ret_logprobs)
{
        double all = 0, less;

        candidates->last = LAST_KEY;
        for_each(candidates,
                 [&](uint32_t, float logit) { all += exp(logit - candidates->largest); });
        less = log(block_sum(smem, all));
        if (!threadIdx.x)
                ret_logprobs[0] = { picked, (float)(candidates->logits[picked] -
                                                    candidates->largest - less) };
        if (count == 1)
                return;

        candidates_weigh<false>(smem, candidates);
        candidates->last = choose<false>(smem, candidates, count - 1);
        list(smem, candidates,
             [&](float, uint64_t sort_key) { return (uint64_t)(sort_key <= candidates->last); });
        for (unsigned i = threadIdx.x; i < count - 1; i += blockDim.x) {
                uint32_t id = id_of(smem->sort_keys[i]), at = 1;

                for (unsigned j = 0; j < count - 1; j++)
                        at += smem->sort_keys[j] < smem->sort_keys[i];
                ret_logprobs[at] = { id,
                                     (float)(candidates->logits[id] - candidates->largest - less) };
        }
}

template <unsigned THREADS> KERNEL(THREADS) pick_rows(pick_args a)
{
        uint32_t want = blockIdx.x, picked = PICK_NOT_FINITE;
        const pick *pick = &a.step.picks[want];
        smem *smem = (struct smem *)shared();
        candidates candidates = { a.logits + (size_t)want * a.stride, a.vocab, 0, 1, LAST_KEY };
        uint64_t least = LAST_KEY;

        wait_for_predecessor();
        if (want >= a.step.counts->wants)
                return;

        for_each(&candidates, [&](uint32_t id, float logit) {
                uint64_t sort_key = logit < INFINITY ? sort_key_of(logit, id) : 0;

                least = sort_key < least ? sort_key : least;
        });
        least = block_least(smem, least);
        if (least && candidates.logits[id_of(least)] != -INFINITY) {
                candidates.largest = candidates.logits[id_of(least)];
                picked = id_of(least);
                /* min_p above 1 keeps no candidate. */
                if (pick->given)
                        picked = pick->given - 1;
                else if (pick->temperature > 0 && pick->min_p <= 1)
                        picked = draw_from(smem, &candidates, pick, picked);
        }
        if (!threadIdx.x)
                a.tokens[want] = picked;
        if (picked != PICK_NOT_FINITE && pick->logprobs)
                write_logprobs(smem, &candidates, picked, pick->logprobs,
                               a.logprobs + (size_t)want * PICK_LOGPROBS_MAX);
}

int pick_tokens(struct device *device, const struct pick_args *args)
{
        bool small = args->vocab <= SMALL_VOCAB;
        const launch launch = { args->wants_max, 1, 1, small ? 64u : 1024u, sizeof(smem), true };

        if (!args->vocab || args->vocab > PICK_VOCAB_MAX || args->stride < args->vocab)
                return -EINVAL;
        return device_launch(device, STREAM_STEPS, launch, small ? pick_rows<64> : pick_rows<1024>,
                             *args);
}
