/*
 * Rows of floats as rows of bfloats, for a product with weights:
 *
 *      out[r] = bfloat(x[r] / rms(x[r]) * norm),  rms(x) = sqrt(mean(x^2) + eps)
 *
 * or, without a norm, bfloat(x[r]).  Of the padding, out is zero.
 *
 *      x       (rows, columns) floats; out (rows, width) bfloats
 *      grid    a block of 256 for each row that there may be
 *      moves   twice 4 bytes a number in, the second time out of the cache, and 2 out
 *      order   of a row's squares, thread i has those at i, i + 256, ...; then lanes, then warps
 */
#ifndef KERNELS_CUDA_NORM_H
#define KERNELS_CUDA_NORM_H

#include "kernels/cuda/device.h"

struct norm_args {
        const float *x;
        const float *norm; /* (columns), or NULL */
        float eps;
        uint32_t columns, width;
        uint16_t *out;
        const uint32_t *count; /* rows of out that there are ... */
        const uint32_t *rows;  /* ... which rows of x they are of; NULL: those of the same number */
        uint32_t rows_max;
};

int norm(device *device, const norm_args *args);

#endif
