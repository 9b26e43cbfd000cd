/*
 * The candidates of a row that a token is picked from, and the search for one of them.
 *
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
 * The code that searches takes the order and the weights as a class: by_count, by_chance; pick-more
 * has another one.
 *
 * All threads of a block call these functions together.
 */
#ifndef KERNELS_CUDA_PICK_SELECT_H
#define KERNELS_CUDA_PICK_SELECT_H

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
#define LIST_MAX       256u
#define UNIT           0x1p62  /* the weight of a chance of 1 */
#define LOG_CHANCE_MIN (-44.0) /* the logarithm of a chance that is less than half a unit */
#define TOP_P_BITS     44u     /* a float from 2^-20 up has no more bits after the point */
#define AT_A_TIME      4u

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

/* It is read seldom, so it needs no registers. */
struct drawing {
        double temperature;
        float min_p; /* candidates with less than this part of the largest chance do not win */
};

struct smem { /* shared memory */
        struct buckets first, finer;
        struct found found;
        uint64_t chosen; /* the sort key of the chosen candidate */
        uint64_t sort_keys[LIST_MAX], weights[LIST_MAX];
        unsigned listed;
        uint64_t of_warps[WARPS_MAX];
        double doubles_of_warps[WARPS_MAX];
        struct drawing drawing;
        drawn drawn_of_warps[WARPS_MAX];
};

/* The candidates of one row. */
struct candidates {
        const float *logits;
        uint32_t vocab;
        double largest, inverse_temperature; /* 1 / temperature */
        /* Kept are the keys begin .. gap_begin and gap_end .. last; others have no weight. */
        uint64_t begin, gap_begin, gap_end, last;
        double centre; /* of by_distance (pick-more.cc) */
};

/* Within one of the first buckets: the 2^bits keys from `begin` on. */
template <class Key> struct key_range {
        uint32_t first;
        unsigned bits;
        Key begin;
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

DEVICE float logit_of(uint64_t sort_key)
{
        uint32_t u = (uint32_t)(sort_key >> ID_BITS);

        return float_of(u >> 31 ? u : ~u & 0x7fffffff);
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

DEVICE uint32_t first_bucket(double nats)
{
        double at = nats * BUCKETS_PER_E;

        return at < BUCKETS - 1 ? (uint32_t)at : BUCKETS - 1;
}

DEVICE bool is_kept(const candidates *candidates, uint64_t sort_key)
{
        return sort_key >= candidates->begin && sort_key <= candidates->last &&
               (sort_key <= candidates->gap_begin || sort_key >= candidates->gap_end);
}

/* exp() is not computed for a candidate whose chance is certainly too small. */
template <bool CHANCES>
DEVICE uint64_t weigh(const candidates *candidates, float logit, uint64_t sort_key)
{
        double below;

        if (!is_kept(candidates, sort_key))
                return 0;
        if (!CHANCES)
                return 1;
        below = below_of(candidates, logit);
        return below < LOG_CHANCE_MIN ? 0 : (uint64_t)rint(exp(below) * UNIT);
}

/* An order of candidates, and their weights: by falling logit, each 1 or its chance. */
template <bool CHANCES> struct by_logit {
        typedef uint64_t key;
        static constexpr unsigned BITS = KEY_BITS;

        DEVICE key key_of(const candidates *, uint64_t sort_key)
        {
                return sort_key;
        }

        DEVICE uint32_t bucket_of(const candidates *candidates, float logit)
        {
                return first_bucket(-below_of(candidates, logit));
        }

        DEVICE uint64_t weight_of(const candidates *candidates, float logit, uint64_t sort_key)
        {
                return weigh<CHANCES>(candidates, logit, sort_key);
        }
};

typedef by_logit<false> by_count;
typedef by_logit<true> by_chance;

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
 * What warps have written for all to read must not be overwritten early. So between two calls of
 * block_least(), or of block_sum(), there is a barrier.
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
template <class Order> DEVICE void candidates_weigh(smem *smem, const candidates *candidates)
{
        buckets_clear(&smem->first);
        for_each(candidates, [&](uint32_t id, float logit) {
                uint64_t weight = Order::weight_of(candidates, logit, sort_key_of(logit, id));

                if (weight)
                        buckets_add(&smem->first, Order::bucket_of(candidates, logit), weight);
        });
        buckets_measure(&smem->first);
}

/* The weight of a candidate in that key range; 0 for other candidates. */
template <class Order>
DEVICE uint64_t weigh_there(const candidates *candidates, const key_range<typename Order::key> *at,
                            float logit, uint64_t sort_key)
{
        if (!is_kept(candidates, sort_key) ||
            (Order::key_of(candidates, sort_key) - at->begin) >> at->bits ||
            Order::bucket_of(candidates, logit) != at->first)
                return 0;
        return Order::weight_of(candidates, logit, sort_key);
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

/* Of the listed candidates, the one that reaches the target; `before` is the weight before them. */
template <class Order>
DEVICE uint64_t choose_listed(smem *smem, const candidates *candidates, sum before, sum target)
{
        for (unsigned i = threadIdx.x; i < smem->listed; i += blockDim.x) {
                typename Order::key key = Order::key_of(candidates, smem->sort_keys[i]);
                sum until = before + smem->weights[i];

                for (unsigned j = 0; j < smem->listed; j++)
                        if (Order::key_of(candidates, smem->sort_keys[j]) < key)
                                until += smem->weights[j];
                if (until >= target && until - smem->weights[i] < target)
                        smem->chosen = smem->sort_keys[i];
        }
        block_sync();
        return smem->chosen;
}

/*
 * Returns the sort key of the candidate that reaches the target. All candidates must have been
 * weighed, and the target must be at least 1 and at most the total.
 */
template <class Order> DEVICE uint64_t choose(smem *smem, const candidates *candidates, sum target)
{
        found found = buckets_find(smem, &smem->first, target, 0);
        key_range<typename Order::key> at = { found.bucket, Order::BITS, 0 };

        /*
         * With 4 bits left there are no more than 16 candidates, so this ends before the bits are
         * used up.
         */
        while (found.count > LIST_MAX) {
                unsigned bits = at.bits - BUCKET_BITS;

                buckets_clear(&smem->finer);
                for_each(candidates, [&](uint32_t id, float logit) {
                        uint64_t sort_key = sort_key_of(logit, id),
                                 weight = weigh_there<Order>(candidates, &at, logit, sort_key);

                        if (weight)
                                buckets_add(&smem->finer,
                                            (uint32_t)((Order::key_of(candidates, sort_key) -
                                                        at.begin) >>
                                                       bits),
                                            weight);
                });
                buckets_measure(&smem->finer);
                found = buckets_find(smem, &smem->finer, target, found.before);
                at.begin += (typename Order::key)found.bucket << bits;
                at.bits = bits;
        }

        list(smem, candidates, [&](float logit, uint64_t sort_key) {
                return weigh_there<Order>(candidates, &at, logit, sort_key);
        });
        return choose_listed<Order>(smem, candidates, found.before, target);
}

/* The weight at which a part of the total is reached. */
DEVICE sum target_of(smem *smem, float wanted)
{
        uint64_t part = (uint64_t)rint(wanted * (double)(1ull << TOP_P_BITS));
        sum target = (buckets_total(&smem->first) * part + (1ull << TOP_P_BITS) - 1) >> TOP_P_BITS;

        return target ? target : 1;
}

/*
 * The candidates of a row with temperature 1, and the key of the first: 0 if a logit is NaN or
 * infinite.
 */
DEVICE candidates row_of(smem *smem, const float *logits, uint32_t vocab, uint64_t *ret_first)
{
        candidates row = { logits, vocab, 0, 1, 0, LAST_KEY, LAST_KEY, LAST_KEY, 0 };
        uint64_t least = LAST_KEY;

        for_each(&row, [&](uint32_t id, float logit) {
                uint64_t sort_key = logit < INFINITY ? sort_key_of(logit, id) : 0;

                least = sort_key < least ? sort_key : least;
        });
        *ret_first = block_least(smem, least);
        if (*ret_first)
                row.largest = logit_of(*ret_first);
        return row;
}

#endif
