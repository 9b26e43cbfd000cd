/*
 * Nobody sorts.  All candidates stand in line, the likeliest first, and each has a place:
 * 64 bits, of which the upper ones are smaller for a larger logit and the lower ones are its id, so
 * that no two are equal.  Each candidate weighs something: 1, where top_k counts, or its
 * chance, for top_p and the draw.  Then all three ask the same question:
 *
 *      whose weight, added to that of all before him, first reaches the target?
 *
 * That is found by buckets, stretches of the line.  Every candidate adds his weight to
 * his bucket, and the one in which the target is reached is looked into again, with finer
 * buckets, until there are no more in it than a list holds, where each is compared with each.
 *
 * The first buckets are even in (largest - logit) / temperature, since logits are
 * spread evenly there: nearly always the list comes next, and threads seldom want the same bucket at
 * the same time.  The finer ones cut places bit by bit, which ends whatever the logits are.
 */
#include "kernels/cuda/pick.h"

#include <errno.h>
#include <math.h>

#include "kernels/cuda/lane.h"
#include "kernels/draw.h"

#define WARPS_MAX   32u
#define ID_BITS     20u
#define PLACE_BITS  (32u + ID_BITS)
#define LAST_PLACE  UINT64_MAX
#define BUCKET_BITS 10u
#define BUCKETS     (1u << BUCKET_BITS)
#define GROUP       32u /* buckets */
#define GROUPS      (BUCKETS / GROUP)
#define FINENESS    32 /* first buckets for a factor of e in chance */
#define WORDS       3u
#define LIST_MAX    128u
#define UNIT        0x1p62 /* what a chance of 1 weighs */
#define TOP_P_BITS  44u    /* a float from 2^-20 up has no more after the point */
#define AT_A_TIME   4u
#define SMALL_VOCAB 4096u

static_assert(PICK_VOCAB_MAX <= 1u << ID_BITS, "an id fits into a place");
static_assert(GROUPS <= 64, "a group has a thread, however small the block");

/* What many weigh: 2^20 times 2^62 at most. */
typedef unsigned __int128 sum;

/* A sum is three words, so that it is added to with the atomics that shared memory has. */
struct buckets {
        uint32_t words[WORDS][BUCKETS];
        uint32_t count[BUCKETS]; /* who weigh anything */
        sum groups[GROUPS];      /* once they are measured */
};

struct found {
        sum before; /* what all weigh that stand before this bucket */
        uint32_t bucket, count;
};

struct chosen {
        sum until; /* what all weigh until there, he included */
        uint64_t place;
};

struct room { /* shared memory */
        struct buckets first, finer;
        struct found found;
        struct chosen chosen;
        uint64_t places[LIST_MAX], weights[LIST_MAX];
        unsigned listed;
        uint64_t of_warps[WARPS_MAX];
        double doubles_of_warps[WARPS_MAX];
};

/* The candidates of one row. */
struct line {
        const float *logits;
        uint32_t vocab;
        double largest, coldness; /* 1 / temperature */
        uint64_t last;            /* who stands behind this place takes no part */
};

/* In that one of the first buckets, those from place `begin` on, 2^bits places. */
struct stretch {
        uint32_t first;
        unsigned bits;
        uint64_t begin;
};

/* ---- the line ---- */

/* Smaller for larger logits, equal for equal ones (-0 and 0 are); 0 is nobody's but a NaN's. */
DEVICE uint64_t place_of(float logit, uint32_t id)
{
        uint32_t u = bits_of(logit == 0 ? 0 : logit);

        return (uint64_t)(u >> 31 ? u : ~u & 0x7fffffff) << ID_BITS | id;
}

DEVICE uint32_t id_of(uint64_t place)
{
        return (uint32_t)place & ((1u << ID_BITS) - 1);
}

/* How far a logit is below the largest: the logarithm of its chance. */
DEVICE double below_of(const line *line, float logit)
{
        return (logit - line->largest) * line->coldness;
}

DEVICE uint32_t first_bucket(const line *line, float logit)
{
        double at = -below_of(line, logit) * FINENESS;

        return at < BUCKETS - 1 ? (uint32_t)at : BUCKETS - 1;
}

template <bool CHANCES> DEVICE uint64_t weigh(const line *line, float logit)
{
        return CHANCES ? (uint64_t)rint(exp(below_of(line, logit)) * UNIT) : 1;
}

/* Each thread its ids in ascending order, some loads at a time. */
template <class Do> DEVICE void for_each(const line *line, Do what)
{
        uint32_t step = blockDim.x;

        for (uint32_t id = threadIdx.x; id < line->vocab; id += AT_A_TIME * step) {
                float logits[AT_A_TIME];

                for (uint32_t i = 0; i < AT_A_TIME; i++)
                        logits[i] = id + i * step < line->vocab ? line->logits[id + i * step] : 0;
                for (uint32_t i = 0; i < AT_A_TIME; i++)
                        if (id + i * step < line->vocab)
                                what(id + i * step, logits[i]);
        }
}

/* ---- the block ---- */

DEVICE uint64_t block_least(room *room, uint64_t mine)
{
        for (unsigned bits = LANES / 2; bits; bits /= 2) {
                uint64_t theirs = lane_across(mine, bits);

                mine = theirs < mine ? theirs : mine;
        }
        if (!lane_number())
                room->of_warps[threadIdx.x / LANES] = mine;
        block_meets();
        for (unsigned i = 0; i < blockDim.x / LANES; i++)
                mine = room->of_warps[i] < mine ? room->of_warps[i] : mine;
        block_meets(); /* all have read */
        return mine;
}

/* Lanes pairwise, then warps in ascending order. */
template <class T> DEVICE T block_sum(T *of_warps, T mine)
{
        T all = 0;

        mine = lanes_sum(mine);
        if (!lane_number())
                of_warps[threadIdx.x / LANES] = mine;
        block_meets();
        for (unsigned i = 0; i < blockDim.x / LANES; i++)
                all += of_warps[i];
        block_meets(); /* all have read */
        return all;
}

/* ---- buckets ---- */

/* Nobody reads them any more; when this returns, all may add. */
DEVICE void buckets_clear(buckets *b)
{
        for (uint32_t i = threadIdx.x; i < BUCKETS; i += blockDim.x) {
                for (unsigned w = 0; w < WORDS; w++)
                        b->words[w][i] = 0;
                b->count[i] = 0;
        }
        block_meets();
}

/* What a word returns tells whether this very sum ran over, whoever else adds meanwhile. */
DEVICE void buckets_add(buckets *b, uint32_t bucket, uint64_t weight)
{
        uint32_t low = (uint32_t)weight, high = (uint32_t)(weight >> 32);

        if (add_atomically(&b->words[0][bucket], low) > UINT32_MAX - low)
                high++;
        if (high && add_atomically(&b->words[1][bucket], high) > UINT32_MAX - high)
                add_atomically(&b->words[2][bucket], 1);
        add_atomically(&b->count[bucket], 1);
}

DEVICE sum bucket_sum(const buckets *b, uint32_t bucket)
{
        return (sum)b->words[2][bucket] << 64 | (uint64_t)b->words[1][bucket] << 32 |
               b->words[0][bucket];
}

/* After all were added: sums of groups.  Each begins elsewhere, in a bank of its own. */
DEVICE void buckets_measure(buckets *b)
{
        uint32_t g = threadIdx.x;
        sum all = 0;

        block_meets();
        for (uint32_t i = 0; g < GROUPS && i < GROUP; i++)
                all += bucket_sum(b, g * GROUP + (g + i) % GROUP);
        if (g < GROUPS)
                b->groups[g] = all;
        block_meets();
}

DEVICE sum buckets_total(const buckets *b)
{
        sum all = 0;

        for (uint32_t g = 0; g < GROUPS; g++)
                all += b->groups[g];
        return all;
}

/* The bucket in which `before` and the sum of all buckets up to it first reach the target. */
DEVICE found buckets_find(room *room, const buckets *b, sum target, sum before)
{
        if (!threadIdx.x) {
                uint32_t g = 0, i;

                for (; before + b->groups[g] < target; g++)
                        before += b->groups[g];
                for (i = g * GROUP; before + bucket_sum(b, i) < target; i++)
                        before += bucket_sum(b, i);
                room->found = { before, i, b->count[i] };
        }
        block_meets();
        return room->found;
}

/* ---- choosing ---- */

/* The whole line into the first buckets. */
template <bool CHANCES> DEVICE void line_weigh(room *room, const line *line)
{
        buckets_clear(&room->first);
        for_each(line, [&](uint32_t id, float logit) {
                uint64_t weight;

                if (place_of(logit, id) > line->last)
                        return;
                weight = weigh<CHANCES>(line, logit);
                if (weight)
                        buckets_add(&room->first, first_bucket(line, logit), weight);
        });
        buckets_measure(&room->first);
}

/* What one weighs who stands in that stretch; 0 for those who do not. */
template <bool CHANCES>
DEVICE uint64_t weigh_there(const line *line, const stretch *at, float logit, uint64_t place)
{
        if (place > line->last || (place - at->begin) >> at->bits ||
            first_bucket(line, logit) != at->first)
                return 0;
        return weigh<CHANCES>(line, logit);
}

/* Lists whoever has a weight, in any order. */
template <class Weigh> DEVICE void list(room *room, const line *line, Weigh weigh_one)
{
        if (!threadIdx.x)
                room->listed = 0;
        block_meets();
        for_each(line, [&](uint32_t id, float logit) {
                uint64_t place = place_of(logit, id), weight = weigh_one(logit, place);

                if (weight) {
                        unsigned at = add_atomically(&room->listed, 1);

                        room->places[at] = place;
                        room->weights[at] = weight;
                }
        });
        block_meets();
}

/* The line was weighed, and the target is at least 1 and at most the total. */
template <bool CHANCES> DEVICE chosen choose(room *room, const line *line, sum target)
{
        found found = buckets_find(room, &room->first, target, 0);
        stretch at = { found.bucket, PLACE_BITS, 0 };

        /* With 2 bits left there are no more than 4, so this ends in time. */
        while (found.count > LIST_MAX) {
                unsigned bits = at.bits - BUCKET_BITS;

                buckets_clear(&room->finer);
                for_each(line, [&](uint32_t id, float logit) {
                        uint64_t place = place_of(logit, id),
                                 weight = weigh_there<CHANCES>(line, &at, logit, place);

                        if (weight)
                                buckets_add(&room->finer, (uint32_t)((place - at.begin) >> bits),
                                            weight);
                });
                buckets_measure(&room->finer);
                found = buckets_find(room, &room->finer, target, found.before);
                at.begin += (uint64_t)found.bucket << bits;
                at.bits = bits;
        }

        list(room, line, [&](float logit, uint64_t place) {
                return weigh_there<CHANCES>(line, &at, logit, place);
        });
        for (unsigned i = threadIdx.x; i < room->listed; i += blockDim.x) {
                sum until = found.before + room->weights[i];

                for (unsigned j = 0; j < room->listed; j++)
                        if (room->places[j] < room->places[i])
                                until += room->weights[j];
                if (until >= target && until - room->weights[i] < target)
                        room->chosen = { until, room->places[i] };
        }
        block_meets();
        return room->chosen;
}

/* ---- picking ---- */

/* What those weigh together whom min_p keeps, up to that place. */
DEVICE sum weigh_likely(room *room, const line *line, double min_p, uint64_t last)
{
        double surely_less = log(min_p) - 1e-3; /* their exp() need not be known */
        uint64_t low = 0, high = 0;

        for_each(line, [&](uint32_t id, float logit) {
                uint64_t weight;

                if (place_of(logit, id) > last || below_of(line, logit) < surely_less ||
                    exp(below_of(line, logit)) < min_p)
                        return;
                weight = weigh<true>(line, logit);
                low += (uint32_t)weight;
                high += weight >> 32;
        });
        low = block_sum(room->of_warps, low);
        high = block_sum(room->of_warps, high);
        return ((sum)high << 32) + low;
}

/* min_p of more than 1 keeps nobody, and then the draw goes to the first. */
DEVICE uint32_t draw_from(room *room, line *line, const pick *pick)
{
        uint64_t number = (uint64_t)(draw(pick->seed, pick->choice, pick->position) * 16777216.0);
        uint64_t last;
        sum kept;

        if (pick->top_k && pick->top_k < line->vocab) {
                line_weigh<false>(room, line);
                line->last = choose<false>(room, line, pick->top_k).place;
        }
        line_weigh<true>(room, line);
        kept = buckets_total(&room->first);
        last = line->last;
        if (pick->top_p < 1) {
                sum top = kept * (uint64_t)rint(pick->top_p * (double)(1ull << TOP_P_BITS));
                sum target = (top + (1ull << TOP_P_BITS) - 1) >> TOP_P_BITS;
                chosen chosen = choose<true>(room, line, target ? target : 1);

                last = chosen.place;
                kept = chosen.until;
        }
        if (pick->min_p > 0)
                kept = weigh_likely(room, line, pick->min_p, last);

        /* "Exceeds the draw": of whole numbers, reaches one more.  The kept are the first of the line. */
        return id_of(choose<true>(room, line, (kept * number >> 24) + 1).place);
}

/* Of all, whatever was cut. */
DEVICE void tell(room *room, line *line, uint32_t picked, uint32_t count, logprob *told)
{
        double all = 0, less;

        line->last = LAST_PLACE;
        for_each(line, [&](uint32_t, float logit) { all += exp(logit - line->largest); });
        less = log(block_sum(room->doubles_of_warps, all));
        if (!threadIdx.x)
                told[0] = { picked, (float)(line->logits[picked] - line->largest - less) };
        if (count == 1)
                return;

        line_weigh<false>(room, line);
        line->last = choose<false>(room, line, count - 1).place;
        list(room, line, [&](float, uint64_t place) { return (uint64_t)(place <= line->last); });
        for (unsigned i = threadIdx.x; i < count - 1; i += blockDim.x) {
                uint32_t id = id_of(room->places[i]), at = 1;

                for (unsigned j = 0; j < count - 1; j++)
                        at += room->places[j] < room->places[i];
                told[at] = { id, (float)(line->logits[id] - line->largest - less) };
        }
}

template <unsigned THREADS> KERNEL(THREADS) pick_rows(pick_args a)
{
        uint32_t want = blockIdx.x, picked = PICK_NOT_FINITE;
        const pick *pick = &a.step.picks[want];
        room *room = (struct room *)shared();
        line line = { a.logits + (size_t)want * a.stride, a.vocab, 0, 1, LAST_PLACE };
        uint64_t least = LAST_PLACE;

        wait_for_predecessor();
        if (want >= a.step.counts->wants)
                return;

        for_each(&line, [&](uint32_t id, float logit) {
                uint64_t place = logit < INFINITY ? place_of(logit, id) : 0;

                least = place < least ? place : least;
        });
        least = block_least(room, least);
        if (least && line.logits[id_of(least)] != -INFINITY) {
                line.largest = line.logits[id_of(least)];
                if (pick->temperature > 0)
                        line.coldness = 1 / (double)pick->temperature;
                picked = pick->temperature > 0 ? draw_from(room, &line, pick) : id_of(least);
        }
        if (!threadIdx.x)
                a.tokens[want] = picked;
        if (picked != PICK_NOT_FINITE && pick->logprobs)
                tell(room, &line, picked, pick->logprobs,
                     a.logprobs + (size_t)want * PICK_LOGPROBS_MAX);
}

int pick_tokens(struct device *device, const struct pick_args *args)
{
        bool small = args->vocab <= SMALL_VOCAB;
        const launch launch = { args->wants_max, 1, 1, small ? 64u : 1024u, sizeof(room), true };

        if (!args->vocab || args->vocab > PICK_VOCAB_MAX || args->stride < args->vocab)
                return -EINVAL;
        return device_launch(device, STREAM_STEPS, launch, small ? pick_rows<64> : pick_rows<1024>,
                             *args);
}
