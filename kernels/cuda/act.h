/*
 * The activation of a gate, for every kernel that finishes one.
 */
#ifndef KERNELS_CUDA_ACT_H
#define KERNELS_CUDA_ACT_H

#include "kernels/cuda/lane.h"
#include "kernels/kernels.h"

/* g / (1 + e^-z).  For silu, z = g; for gelu, by way of tanh, z is a polynomial in g. */
DEVICE float act(activation which, float g)
{
        const float log2_e = 1.44269504f, root = 1.59576912f /* 2 sqrt(2 / pi) */;
        float z = which == ACT_SILU ? g : root * fmaf(0.044715f * g * g, g, g);

        return g / (1 + power_of_two(-log2_e * z));
}

#endif
