/*
 * Random rows of logits and random picks from them, in C and in C++.  Their kinds are cases
 * that a fast way of picking may get wrong: ties, crowded values, whole blocks without
 * candidates, the largest logit in the last block.
 */
#ifndef TESTS_KERNELS_PICK_ROWS_H
#define TESTS_KERNELS_PICK_ROWS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "kernels/kernels.h"

/* Logits per block, as backends divide rows.  The test masks whole blocks. */
#define BLOCK 32u
#define SPAN  1024u

static uint64_t random_state;

static inline uint32_t random_next(void)
{
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(random_state >> 32);
}

static inline uint32_t random_below(uint32_t n)
{
        return (uint32_t)((uint64_t)random_next() * n >> 32);
}

static inline float random_normal(void)
{
        float sum = -6;

        for (int i = 0; i < 12; i++)
                sum += (float)random_next() * 0x1p-32f;
        return sum;
}

enum row_kind {
        PLAIN,
        FLAT,
        STEEP,
        PEAKED,
        STEPS,
        TWO,
        EQUAL,
        CROWD,
        WILD,
        ZEROS,
        MASKED,
        BLOCKS,
        BAD,
        ROW_KINDS
};

static inline float random_finite(void)
{
        uint32_t u;
        float f;

        do {
                u = random_next();
                memcpy(&f, &u, sizeof(f));
        } while (!isfinite(f));
        return f;
}

static inline float random_logit(enum row_kind kind)
{
        float f;

        switch (kind) {
        case FLAT: /* nearly all differ, but only slightly */
                return random_normal() * 0.05f;
        case STEEP: /* as a model has them: few are likely */
                return -3 * logf((float)(random_next() >> 8 | 1) * 0x1p-24f);
        case STEPS: /* many equal logits */
                return (float)random_below(40) / 8;
        case TWO:
                return random_below(3) ? -1 : 0.5f;
        case EQUAL:
                return -1.5f;
        case CROWD: /* close together: all in one first bucket, whatever the temperature */
                return 20 + (float)random_below(3000) * 0x1p-19f;
        case WILD:
                return random_finite();
        case ZEROS: /* on both sides of 0, and both zeros */
                f = (float)((int)random_below(9) - 4) * 0x1p-149f;
                return f == 0 && random_below(2) ? -0.0f : f;
        default:
                return random_normal() * 3;
        }
}

static inline void mask_some(float *row, uint32_t vocab)
{
        uint32_t masked = 1 + random_below(20);

        for (uint32_t i = 0; i < vocab; i++)
                if (random_below(20) < masked)
                        row[i] = -INFINITY;
}

static inline void mask_blocks(float *row, uint32_t vocab)
{
        uint32_t masked = 1 + random_below(20), block = random_below(2) ? BLOCK : SPAN;

        for (uint32_t at = 0; at < vocab; at += block)
                if (random_below(20) < masked)
                        for (uint32_t i = at; i < vocab && i < at + block; i++)
                                row[i] = -INFINITY;
}

static inline void random_row(float *row, uint32_t vocab, enum row_kind kind)
{
        const float bad[] = { NAN, -NAN, INFINITY };
        uint32_t last = vocab - (vocab - 1) % BLOCK - 1; /* where the last block begins */

        for (uint32_t i = 0; i < vocab; i++)
                row[i] = random_logit(kind);
        if (kind == MASKED)
                mask_some(row, vocab);
        if (kind == BLOCKS)
                mask_blocks(row, vocab);
        if (kind == BAD && random_below(2))
                row[random_below(vocab)] = bad[random_below(3)];
        if (kind == PEAKED)
                row[random_below(vocab)] += 15;
        if (random_below(4) == 0) /* a single outlier */
                row[random_below(vocab)] += 5;
        if (random_below(4) == 0)
                row[last + random_below(vocab - last)] += 6;
}

/* The most logprobs that a pick may ask for. */
static inline uint32_t logprobs_most(uint32_t vocab)
{
        return vocab < PICK_LOGPROBS_MAX ? vocab + 1 : PICK_LOGPROBS_MAX;
}

/* Short lists are the usual ones; some have as many as possible. */
static inline uint32_t random_logprobs(uint32_t vocab)
{
        uint32_t most = logprobs_most(vocab), few = most < 40 ? most : 40;

        if (random_below(8) == 0)
                return most;
        return random_below((random_below(2) ? few : most) + 1);
}

static inline struct pick random_pick(uint32_t vocab)
{
        const float temperatures[] = { 0,     1,   1,     0.7f,   0.25f,  1.7f,
                                       1e-3f, 100, 3e38f, 1e-38f, 1e-45f, 1 };
        const float top_ps[] = { 1, 1, 1, 0.9f, 0.95f, 0.5f, 0.25f, 0.3f, 0.999f, 1e-6f, 0 };
        const float min_ps[] = { 0, 0, 0, 0.05f, 0.5f, 1, 1e-6f, 0.3f, 1.5f };
        const uint32_t top_ks[] = { 0,  0,   0,    0,    1,         2,     7,
                                    40, 129, 1024, 5000, vocab - 1, vocab, UINT32_MAX };
        struct pick pick;

        memset(&pick, 0, sizeof(pick));
        pick.temperature = temperatures[random_below(12)];
        pick.top_p = random_below(4) ? top_ps[random_below(11)] : (float)random_next() * 0x1p-32f;
        pick.min_p = min_ps[random_below(9)];
        pick.top_k = top_ks[random_below(14)];
        pick.sample_index = random_below(3);
        pick.seed = (uint64_t)random_next() << 32 | random_next();
        pick.position = random_below(2) ? random_below(1000) : (uint64_t)random_next() << 20;
        pick.logprobs = random_below(3) ? 0 : random_logprobs(vocab);
        pick.log_sum = random_below(4) == 0;
        if (!random_below(4))
                pick.given = 1 + random_below(vocab);
        return pick;
}

#endif
