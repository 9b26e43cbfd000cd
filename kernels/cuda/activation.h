/*
 * The activation of a gate, for every kernel that finishes one.
 */
#ifndef KERNELS_CUDA_ACTIVATION_H
#define KERNELS_CUDA_ACTIVATION_H

#include "kernels/cuda/intrinsics.h"
#include "kernels/kernels.h"

/* g / (1 + e^-z).  For silu, z = g; for gelu, by way of tanh, z is a polynomial in g. */
DEVICE float sigmoid_times(activation which, float g)
{
        const float log2_e = 1.44269504f, root = 1.59576912f /* 2 sqrt(2 / pi) */;
        float z = which == ACT_SILU ? g : root * fmaf(0.044715f * g * g, g, g);

        return g / (1 + exp2_fast(-log2_e * z));
}

/* NaN stays NaN. */
DEVICE float activate(activation which, float g)
{
        const float root = 0.70710678f; /* 1 / sqrt(2) */

        switch (which) {
        case ACT_GELU:
                return 0.5f * g * (1 + erff(g * root));
        case ACT_RELU:
                return g < 0 ? 0 : g;
        case ACT_RELU_SQUARE:
                return g < 0 ? 0 : g * g;
        default:
                return sigmoid_times(which, g);
        }
}

#endif
