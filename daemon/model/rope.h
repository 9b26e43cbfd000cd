/*
 * Rotary position embedding: how fast each pair of numbers of a head rotates.
 *
 * Pair i of a token at position p is rotated by the angle p * f(i).  Without scaling, f(i) =
 * base^(-2i / dims): the first pairs rotate once in a few tokens, the last once in many thousands.
 * A model trained on `trained` positions has seen a slow pair rotate only part of a circle.  At
 * later positions it would meet angles that it was not trained on.  Scaling slows pairs down, so
 * that `factor` times as many positions stay within the trained angles:
 *
 *      linear   slows every pair by `factor`
 *      llama3   by parts: a pair that makes more than `high` turns in the trained positions keeps
 *               its speed; with fewer than `low` turns it is slowed fully; in between, the share
 *               is interpolated by the number of turns
 *      yarn     by parts too, but in between the share is interpolated by i, and the two borders
 *               may be rounded to whole pairs; cos and sin are multiplied by `attention`, which
 *               sharpens the softmax of a long text
 *      longrope divides the speed of each pair by a number of its own.  There are two tables of
 *               them: one for texts within the trained positions, one for longer texts.  K of both
 *               do not fit together, so one table serves all texts: the second, if the daemon
 *               serves more positions than the trained ones.  cos and sin are multiplied, too
 *
 * Not supported: dynamic scaling, whose speeds depend on the current length of the text.  Pure; all
 * arithmetic is in double.
 */
#ifndef DAEMON_MODEL_ROPE_H
#define DAEMON_MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN, ROPE_LONG };

#define ROPE_PAIRS_MAX 256u

struct rope_shape {
        uint32_t dims; /* how many numbers of a head rotate, even; 0: none */
        enum rope_pairing pairing;
        enum rope_scaling scaling;
        bool whole;     /* yarn: round the borders to whole pairs */
        uint32_t still; /* the last pairs, which do not rotate */
        double base;    /* greater than 1 */
        double factor;  /* at least 1 */
        double trained; /* positions */
        /* number of turns in the trained positions, low < high; yarn: beta_slow, beta_fast */
        double low, high;
        double attention; /* 1 except for yarn and longrope */
        /* longrope: for texts within the trained positions, and for longer ones */
        float slower[2][ROPE_PAIRS_MAX];
};

/*
 * Fills ret_frequency[0 .. dims / 2) for a daemon that serves `context` positions.  `slower` is a
 * table from the model file that divides each speed once more, or NULL.  It may be ret_frequency
 * itself.
 */
void rope_frequencies(const struct rope_shape *shape, uint32_t context, const float *slower,
                      float *ret_frequency);

/* YaRN's 0.1 m ln(factor) + 1; 1 without stretching. */
double rope_attention(double factor, double m);
/* LongRoPE's sqrt(1 + ln(factor) / ln(trained)); 1 without stretching. */
double rope_long_attention(double factor, double trained);

#endif
