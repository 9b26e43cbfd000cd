/*
 * Rotary positions: how fast each pair of a head's numbers turns.
 *
 * Pair i of a token at position p is turned by the angle p * f(i).  Plainly,
 * f(i) = base^(-2i / dims): the first pairs turn once in a few tokens, the last
 * once in many thousands.  A model trained on `trained` positions has seen a
 * slow pair turn only part of the way, and at later positions would meet angles
 * that it does not know.  Scaling slows pairs down so that `factor` times as many
 * positions stay within what was seen:
 *
 *      linear   every pair by `factor`
 *      llama3   by parts: a pair that turns more than `high` times in the trained
 *               positions keeps its speed, less than `low` times is slowed fully,
 *               and between them the share runs with the number of turns
 *      yarn     by parts too, but between them the share runs with i, and the two
 *               borders may be rounded to whole pairs; cos and sin are multiplied
 *               by `attention`, which sharpens the softmax of a long text
 *
 * Dynamic scaling, whose speeds depend on how long the text has become, and
 * LongRoPE with its two tables are not here.  Pure; doubles throughout.
 */
#ifndef DAEMON_ROPE_H
#define DAEMON_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

enum rope_scaling { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_YARN };

struct rope_shape {
        uint32_t dims; /* numbers of a head that turn, even; 0: none */
        enum rope_pairing pairing;
        enum rope_scaling scaling;
        bool whole;       /* yarn: borders at whole pairs */
        double base;      /* over 1 */
        double factor;    /* at least 1 */
        double trained;   /* positions */
        double low, high; /* turns within them, low < high; yarn: beta_slow, beta_fast */
        double attention; /* 1 but for yarn */
};

/*
 * ret_frequency[0 .. dims / 2).  `slower`: a table out of the model file by which each speed is
 * divided once more, or NULL; it may be ret_frequency itself.
 */
void rope_frequencies(const struct rope_shape *shape, const float *slower, float *ret_frequency);

/* YaRN's 0.1 m ln(factor) + 1; 1 where nothing is stretched. */
double rope_attention(double factor, double m);

#endif
