/*
 * Random numbers of one token, the same on every backend, and how they pick it.
 *
 * Numbers are keyed, not sequential: (seed, sample_index, position) and a purpose determine them.
 * So the result of a request does not depend on other requests, on steps that were repeated, or on
 * where it runs. The generator is Philox4x32-10 with key = seed and counter = {position low,
 * position high, sample_index, purpose << 28 | index}.
 *
 * Picking works in this order (ref/pick.c is the definition):
 *     0. A token that is given (pick.given) is the result. Done.
 *     1. The edits change logits, and tokens that the mask leaves out get -inf. Candidates are the
 *        tokens with a logit above -inf; if there are none, the result is PICK_NONE_LEGAL. Done.
 *     2. temperature 0: the largest logit, the lowest id among equals. Done.
 *     3. Candidates are ordered by (logit descending, id ascending), and the cuts keep some of them
 *        (kernels/cuts.h).
 *     4. Each token has a random time. Of the kept candidates, the result is the one with the
 *        largest score, the lowest id among equals:
 *              score = (logit - largest logit) / temperature - log(time)
 *
 * The law. Times are independent, and exponential with mean 1. So time / p is exponential with
 * rate p, and the first of several such times belongs to each candidate with its chance. This is
 * the Gumbel-max method: -log(time) is a Gumbel number. A time depends on the id of its token, and
 * not on the logits or on other tokens. So a cut that spares the winner does not change it.
 *
 * Spans. Few tokens can win, and the others should not cost a time each. So times are made from
 * above. A span is DRAW_SPAN neighbouring ids. The least of its times is exponential with
 * mean 1 / DRAW_SPAN, each of its tokens is equally likely to have it, and the other times exceed
 * it by independent exponential times of mean 1, as such times have no memory:
 *
 *     least(span) = -log(u) / DRAW_SPAN     u from the word of DRAW_LEASTS for the span
 *     first(span) = the upper 5 bits of the word of DRAW_FIRSTS for the span
 *     time(id)    = least(span), if id % DRAW_SPAN is first(span)
 *     time(id)    = least(span) - log(u)    u from the word of DRAW_OTHERS for the id
 *
 * The word for n is word n / 16 % 4 of index n / 64 * 16 + n % 16. So 16 lanes that count the
 * index make the words of 64 neighbours, in order.
 *
 * So no token of a span has a score above (largest logit of the span - largest logit) /
 * temperature - log(least(span)), and a backend skips the span if it knows a better score.
 *
 * Range. u is the middle of one of 2^32 equal pieces of (0, 1), so -log(u) is between 2^-33
 * and 33 log(2) < 22.88. A time is at least 2^-38 and at most 22.88 * (1 + 1/32) < 23.6. So
 * -log(time) is above -3.17 and below 26.35, and a candidate more than 29.52 temperatures below
 * the largest logit never wins. A candidate with the chance 2^-33 wins nearly always with the
 * least time of its span. The pieces are then at most 1/16 of the times that decide, and their
 * middles change its chance by less than 1/4000 of itself. Likelier candidates are closer.
 *
 * Exactness. All of this is double arithmetic that rounds every operation, and draw_log() has no
 * other operation than + - * /. So every backend has the same bits, and picks the same token of
 * the same candidates. draw_log() is within 2^-50 of its result: with s = (m - 1) / (m + 1) and
 * |s| < 0.1716 the omitted terms of log(m) = 2 (s + s^3/3 + ...) are below 2^-60 of the sum, and
 * the sum has less than four roundings of 2^-53 at the size of the result. For other exponents the
 * product with log(2) adds two more, and the sum with it is never below half of that product. So
 * -log(time) is within 2^-44 of its true value.
 */
#ifndef KERNELS_DRAW_H
#define KERNELS_DRAW_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

#ifdef __CUDACC__
#define DRAW_INLINE static inline __host__ __device__
#else
#define DRAW_INLINE static inline
#endif

#define DRAW_SPAN  32u
#define DRAW_RANGE 29.52 /* temperatures below the largest logit */

/* The purpose of a number. Numbers of different purposes are independent. */
enum draw_purpose { DRAW_NUMBER, DRAW_LEASTS, DRAW_FIRSTS, DRAW_OTHERS };

/*
 * Whether a pick has a mask, edits or other cuts than top_k, top_p and min_p: backends pick without
 * these in a faster way.
 */
DRAW_INLINE bool pick_has_more(const struct pick *pick)
{
        return pick->n_sigma > 0 || pick->typical > 0 || pick->xtc_chance > 0 ||
               pick->temperature_range > 0 || pick->order != TEMPERATURE_FIRST || pick->mirostat ||
               pick->mask || pick->edit_count;
}

/* Whether the entries of a pick need the sum over its row. */
DRAW_INLINE bool pick_asks_for_sum(const struct pick *pick)
{
        return pick->logprobs || pick->log_sum;
}

/* The place of the log-sum among the entries of a pick that asks for it. */
DRAW_INLINE uint32_t pick_log_sum_entry(const struct pick *pick)
{
        return pick->logprobs + (pick->mirostat ? 1 : 0);
}

/* A logit that is not -inf may become -inf, and otherwise is finite. */
DRAW_INLINE float logit_edited(const struct pick_edit *edit, float logit)
{
        double l = (double)logit + edit->bias;

        l = l > 0 ? l / edit->theta : l * edit->theta;
        l -= edit->after;
        return l > FLT_MAX ? FLT_MAX : (float)l;
}

struct draw_key {
        uint64_t seed, position;
        uint32_t sample_index;
};

DRAW_INLINE struct draw_key draw_key_of(const struct pick *pick)
{
        struct draw_key key;

        key.seed = pick->seed;
        key.position = pick->position;
        key.sample_index = pick->sample_index;
        return key;
}

DRAW_INLINE void philox_round(uint32_t c[4], const uint32_t k[2])
{
        uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t c1 = c[1], c3 = c[3];

        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k[0];
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3 ^ k[1];
        c[3] = (uint32_t)a;
}

DRAW_INLINE void philox(uint32_t c[4], uint64_t seed)
{
        uint32_t k[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };

        for (int i = 0; i < 10; i++) {
                philox_round(c, k);
                k[0] += 0x9E3779B9u;
                k[1] += 0xBB67AE85u;
        }
}

/* Four words; index is below 2^28. */
DRAW_INLINE void draw_words(const struct draw_key *key, enum draw_purpose purpose, uint32_t index,
                            uint32_t ret_words[4])
{
        ret_words[0] = (uint32_t)key->position;
        ret_words[1] = (uint32_t)(key->position >> 32);
        ret_words[2] = key->sample_index;
        ret_words[3] = (uint32_t)purpose << 28 | index;
        philox(ret_words, key->seed);
}

DRAW_INLINE uint32_t draw_word(const struct draw_key *key, enum draw_purpose purpose, uint32_t n)
{
        uint32_t words[4], low, high;

        draw_words(key, purpose, n / 64 * 16 + n % 16, words);
        /* no index, because a GPU has arrays without one in registers */
        low = n & 16 ? words[1] : words[0];
        high = n & 16 ? words[3] : words[2];
        return n & 32 ? high : low;
}

/* The natural logarithm of a normal number above 0. */
DRAW_INLINE double draw_log(double x)
{
        uint64_t bits;
        double m, s, z, sum;
        int64_t exponent;

        memcpy(&bits, &x, sizeof(bits));
        /* m is between sqrt(1/2) and sqrt(2); 0x3fe6a09e667f3bcd is the former */
        exponent = (int64_t)(bits - 0x3fe6a09e667f3bcdu) >> 52;
        bits -= (uint64_t)exponent << 52;
        memcpy(&m, &bits, sizeof(m));
        s = (m - 1) / (m + 1);
        z = s * s;
        sum = 1.0 / 23;
        for (int odd = 21; odd > 1; odd -= 2)
                sum = sum * z + 1.0 / odd;
        return (double)exponent * 0.69314718055994530942 + (2 * s + 2 * s * (z * sum));
}

/* Exponential with mean 1. */
DRAW_INLINE double draw_exponential(uint32_t word)
{
        return -draw_log(((double)word + 0.5) * 0x1p-32);
}

DRAW_INLINE double draw_least(const struct draw_key *key, uint32_t span)
{
        return draw_exponential(draw_word(key, DRAW_LEASTS, span)) / DRAW_SPAN;
}

/* `least` is draw_least() of the span that has the id. */
DRAW_INLINE double draw_time(const struct draw_key *key, uint32_t id, double least)
{
        if (draw_word(key, DRAW_FIRSTS, id / DRAW_SPAN) >> 27 == id % DRAW_SPAN)
                return least;
        return least + draw_exponential(draw_word(key, DRAW_OTHERS, id));
}

DRAW_INLINE double draw_score(float logit, float largest, double temperature, double time)
{
        return ((double)logit - (double)largest) / temperature - draw_log(time);
}

/* A number from (0, 1): the middle of one of 2^40 equal pieces. */
DRAW_INLINE double draw(uint64_t seed, uint32_t sample_index, uint64_t position)
{
        const struct draw_key key = { seed, position, sample_index };
        uint32_t words[4];

        draw_words(&key, DRAW_NUMBER, 0, words);
        return ((double)((uint64_t)words[0] << 8 | words[1] >> 24) + 0.5) * 0x1p-40;
}

#endif
