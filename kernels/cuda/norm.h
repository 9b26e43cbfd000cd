/*
 * Converts rows of floats to rows of bfloats, for a product with weights:
 *
 *      out[r] = bfloat(x[r] / rms(x[r]) * norm),  rms(x) = sqrt(mean(x^2) + eps)
 *
 * or, without a norm, bfloat(x[r]).  The padding of out is zero.
 *
 *      x       (rows, columns) floats; out (rows, width) bfloats
 *      grid    a block of 256 for each row of the bucket
 *      moves   4 bytes a number in, twice, the second time out of the cache; 2 bytes a number out
 *      order   for the sum of a row's squares, thread i adds those at i, i + 256, ...; then lanes
 *              are added, then warps
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
        /* Number of rows of out. */
        const uint32_t *count;
        /*
         * For each row of out, the row of x that it is computed from; NULL: the row of the same
         * number.
         */
        const uint32_t *rows;
        uint32_t rows_max;
};

int norm(device *device, const norm_args *args);

#endif
