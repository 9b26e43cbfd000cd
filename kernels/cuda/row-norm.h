/*
 * The functions of single numbers that kernels of several operators share: the norm of a row
 * (struct row_norm of kernels.h) after its sums are known, the clip, and scales.
 */
#ifndef KERNELS_CUDA_ROW_NORM_H
#define KERNELS_CUDA_ROW_NORM_H

#include "kernels/cuda/intrinsics.h"
#include "kernels/kernels.h"

/* NORM_NONE: 0 and 1; NORM_RMS: the mean is 0. */
struct row_moments {
        float mean, inverse;
};

/* `squares`: the sum of (x - mean)^2 over `count` numbers. */
DEVICE float inverse_of(float squares, uint32_t count, float eps)
{
        return 1 / sqrtf(squares / (float)count + eps);
}

/* x is number i of the row. */
DEVICE float normed(const row_norm &norm, const row_moments &row, float x, uint32_t i)
{
        if (norm.kind == NORM_NONE)
                return x;
        x = (x - row.mean) * row.inverse;
        if (norm.weight)
                x *= norm.weight[i];
        return norm.bias ? x + norm.bias[i] : x;
}

/* 0: nothing is clipped.  NaN stays NaN. */
DEVICE float clipped(float x, float clip)
{
        return clip > 0 && fabsf(x) > clip ? copysignf(clip, x) : x;
}

/* 0: none, like 1. */
DEVICE float scaled(float x, float scale)
{
        return scale != 0 ? x * scale : x;
}

#endif
