/*
 * Puts the parts of a product with a paired matrix (linear.h) one after the other:
 *
 *      to[r][part * n + i] = x[r][linear_gate_row(part, i)] + bias[part * n + i]
 *
 *      x       (rows, 2 n) floats; to (rows, to_columns) floats
 *      grid    a block of 256 for each row of the bucket
 *      moves   4 bytes a number in, 4 bytes out
 *
 * A matrix of two parts of the same height is stored as gate and up.  It may also be q and k, if a
 * model has as many KV heads as heads.
 */
#ifndef KERNELS_CUDA_UNPAIR_H
#define KERNELS_CUDA_UNPAIR_H

#include "kernels/cuda/device.h"

struct unpair_args {
        const float *x;
        float *to;
        uint32_t n; /* a multiple of 8 */
        uint32_t to_columns;
        const float *bias;     /* (2 n) or NULL */
        const uint32_t *count; /* number of rows, on the device */
        uint32_t rows_max;
};

int unpair(device *device, const unpair_args *args);

#endif
