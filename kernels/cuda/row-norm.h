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

/*
 * x is number i of the row.  There is no branch, and what is read is asked for before x is used: so
 * a thread waits for memory once.  A NORM_NONE must have neither a weight nor a bias here, although
 * kernels.h permits them; its moments change nothing.
 */
DEVICE float normed(const row_norm &norm, const row_moments &row, float x, uint32_t i)
{
        float weight = norm.weight ? norm.weight[i] : 1;
        float bias = norm.bias ? norm.bias[i] : 0;

        x = (x - row.mean) * row.inverse * weight;
        return norm.bias ? x + bias : x;
}

/* The largest absolute value that a clip permits; 0 clips nothing. */
DEVICE float limit_of(float clip)
{
        return clip > 0 ? clip : INFINITY;
}

/* NaN stays NaN.  There is no branch, so that a loop may read several numbers at once. */
DEVICE float clipped(float x, float limit)
{
        return fabsf(x) > limit ? copysignf(limit, x) : x;
}

/* 0: none, like 1. */
DEVICE float scaled(float x, float scale)
{
        return scale != 0 ? x * scale : x;
}

#endif
