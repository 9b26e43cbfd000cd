/*
 * Nobody sorts.  All candidates stand in line, the likeliest first, and each has a place:
 * 64 bits, of which the upper ones are smaller for a larger logit and the lower ones are its id, so
 * that no two are equal.  Each candidate weighs something: 1, where top_k counts, or its
 * chance, for top_p and the draw.  Then all three ask the same question:
 *
 *      whose weight, added to that of all before him, first reaches the target?
 *
 * That is found by buckets, each of them a few neighbours, and the one in which the target is
 * reached is looked into again.
 *
 * For top_k and top_p, "before him" is in the line, and a bucket is a stretch of it.  Every candidate
 * adds his weight to his bucket, and finer buckets follow until there are no more in
 * one than a list holds, where each is compared with each.  The first buckets are even in
 * (largest - logit) / temperature, since logits are spread evenly there: nearly always the list comes
 * next, and threads seldom want the same bucket at the same time.  The finer ones cut places bit
 * by bit, which ends whatever the logits are.
 *
 * For the draw it is by id, and neighbours lie side by side in memory.  So a bucket is a span of
 * ids, summed up by one warp that shares it with nobody, and after that each id of the one span.
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
#define UNIT        0x1p62  /* what a chance of 1 weighs */
#define FAINT       (-44.0) /* the logarithm of a chance that is less than half a unit */
#define TOP_P_BITS  44u     /* a float from 2^-20 up has no more after the point */
#define DRAW_BITS   41u     /* ... and a draw these */
#define WARP_SPANS  8u      /* of more, adding lanes up would be what takes time */
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

struct room { /* shared memory */
        struct buckets first, finer;
        struct found found;
        uint64_t chosen; /* his place */
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
        uint64_t last;            /* who stands behind this place takes no part ... */
        double min_p, faint;      /* ... nor who has less chance than that; surely: its logarithm */
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

/* Nobody asks for the exp() of who surely has too little. */
template <bool CHANCES> DEVICE uint64_t weigh(const line *line, float logit, uint64_t place)
{
        double below, chance;

        if (place > line->last)
                return 0;
        if (!CHANCES)
                return 1;
        below = below_of(line, logit);
        if (below < line->faint)
                return 0;
        chance = exp(below);
        return chance < line->min_p ? 0 : (uint64_t)rint(chance * UNIT);
}

/* Ids from this one up to the end, if the row goes that far, a step apart; some loads at a time. */
template <class Do>
DEVICE void for_each_from(const line *line, uint32_t id, uint32_t end, uint32_t step, Do what)
{
        if (end > line->vocab)
                end = line->vocab;
        for (; id < end; id += AT_A_TIME * step) {
                float logits[AT_A_TIME];

                for (uint32_t i = 0; i < AT_A_TIME; i++)
                        logits[i] = id + i * step < end ? line->logits[id + i * step] : 0;
                for (uint32_t i = 0; i < AT_A_TIME; i++)
                        if (id + i * step < end)
                                what(id + i * step, logits[i]);
        }
}

/* The whole row: each thread its ids in ascending order. */
template <class Do> DEVICE void for_each(const line *line, Do what)
{
        for_each_from(line, threadIdx.x, line->vocab, blockDim.x, what);
}

/* ---- the block ---- */

/* These two are asked once for a row: what warps have left for all to read is never overwritten. */
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
        return mine;
}

/* Lanes pairwise, then warps in ascending order. */
DEVICE double block_sum(room *room, double mine)
{
        double all = 0;

        mine = lanes_sum(mine);
        if (!lane_number())
                room->doubles_of_warps[threadIdx.x / LANES] = mine;
        block_meets();
        for (unsigned i = 0; i < blockDim.x / LANES; i++)
                all += room->doubles_of_warps[i];
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

/* For a bucket to which nobody adds, and of which nobody wants to know who are in it. */
DEVICE void bucket_set(buckets *b, uint32_t bucket, sum weight)
{
        for (unsigned w = 0; w < WORDS; w++)
                b->words[w][bucket] = (uint32_t)(weight >> 32 * w);
}

DEVICE sum bucket_sum(const buckets *b, uint32_t bucket)
{
        return (sum)b->words[2][bucket] << 64 | (uint64_t)b->words[1][bucket] << 32 |
               b->words[0][bucket];
}

/* After all were added or set: sums of groups.  Each begins elsewhere, in a bank of its own. */
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
                uint64_t weight = weigh<CHANCES>(line, logit, place_of(logit, id));

                if (weight)
                        buckets_add(&room->first, first_bucket(line, logit), weight);
        });
        buckets_measure(&room->first);
}

/* What one weighs who stands in that stretch; 0 for those who do not. */
template <bool CHANCES>
DEVICE uint64_t weigh_there(const line *line, const stretch *at, float logit, uint64_t place)
{
        if ((place - at->begin) >> at->bits || first_bucket(line, logit) != at->first)
                return 0;
        return weigh<CHANCES>(line, logit, place);
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

/* His place.  The line was weighed, and the target is at least 1 and at most the total. */
template <bool CHANCES> DEVICE uint64_t choose(room *room, const line *line, sum target)
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
                        room->chosen = room->places[i];
        }
        block_meets();
        return room->chosen;
}

/* ---- drawing ---- */

/* The whole row into the first buckets, to each a span of so many ids. */
DEVICE void spans_weigh(room *room, const line *line, uint32_t ids)
{
        uint32_t warp = threadIdx.x / LANES, warps = blockDim.x / LANES;

        buckets_clear(&room->first);
        for (uint32_t span = warp; span * ids < line->vocab; span += warps) {
                uint32_t begin = span * ids;
                uint64_t low = 0, high = 0;
                auto add = [&](uint32_t id, float logit) {
                        uint64_t weight = weigh<true>(line, logit, place_of(logit, id));

                        low += (uint32_t)weight;
                        high += weight >> 32;
                };

                for_each_from(line, begin + lane_number(), begin + ids, LANES, add);
                low = lanes_sum(low);
                high = lanes_sum(high);
                if (!lane_number())
                        bucket_set(&room->first, span, ((sum)high << 32) + low);
        }
        buckets_measure(&room->first);
}

/* One of the spans, to each bucket an id. */
DEVICE void span_weigh(room *room, const line *line, uint32_t begin, uint32_t ids)
{
        auto set = [&](uint32_t id, float logit) {
                bucket_set(&room->first, id - begin, weigh<true>(line, logit, place_of(logit, id)));
        };

        buckets_clear(&room->first);
        for_each_from(line, begin + threadIdx.x, begin + ids, blockDim.x, set);
        buckets_measure(&room->first);
}

/* The draw is kept * (2 * piece + 1) / 2^41; who exceeds it, of whole numbers, reaches one more. */
DEVICE uint32_t draw_kept(room *room, const line *line, uint64_t piece)
{
        uint32_t lanes = blockDim.x * WARP_SPANS, begin,
                 ids = (line->vocab + lanes - 1) / lanes * LANES;
        sum target;
        found found;

        if (ids > BUCKETS)
                ids = BUCKETS;
        spans_weigh(room, line, ids);
        target = (buckets_total(&room->first) * (2 * piece + 1) >> DRAW_BITS) + 1;
        found = buckets_find(room, &room->first, target, 0);
        begin = found.bucket * ids;

        span_weigh(room, line, begin, ids);
        return begin + buckets_find(room, &room->first, target, found.before).bucket;
}

/* The cuts are made in the line, where top_p counts those, too, whom min_p does not keep. */
DEVICE uint32_t draw_from(room *room, line *line, const pick *pick)
{
        line->coldness = 1 / (double)pick->temperature;
        if (pick->top_k && pick->top_k < line->vocab) {
                line_weigh<false>(room, line);
                line->last = choose<false>(room, line, pick->top_k);
        }
        if (pick->top_p < 1) {
                uint64_t part = (uint64_t)rint(pick->top_p * (double)(1ull << TOP_P_BITS));
                sum target;

                line_weigh<true>(room, line);
                target = (buckets_total(&room->first) * part + (1ull << TOP_P_BITS) - 1) >>
                         TOP_P_BITS;
                line->last = choose<true>(room, line, target ? target : 1);
        }
        line->min_p = pick->min_p;
        line->faint = fmax(FAINT, log(line->min_p) - 1e-3);
        return draw_kept(room, line, draw_piece(pick->seed, pick->choice, pick->position));
}

/* ---- picking ---- */

/* Of all, whatever was cut. */
DEVICE void tell(room *room, line *line, uint32_t picked, uint32_t count, logprob *told)
{
        double all = 0, less;

        line->last = LAST_PLACE;
        for_each(line, [&](uint32_t, float logit) { all += exp(logit - line->largest); });
        less = log(block_sum(room, all));
        if (!threadIdx.x)
                told[0] = { picked, (float)(line->logits[picked] - line->largest - less) };
        if (count == 1)
                return;

        line_weigh<false>(room, line);
        line->last = choose<false>(room, line, count - 1);
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
        line line = { a.logits + (size_t)want * a.stride, a.vocab, 0, 1, LAST_PLACE, 0, FAINT };
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
                picked = id_of(least);
                if (pick->temperature > 0 && pick->min_p <= 1) /* more than 1 keeps nobody */
                        picked = draw_from(room, &line, pick);
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
