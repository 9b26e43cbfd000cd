/*
 * Caps logits between -cap and cap:
 *
 *      x = cap * tanh(x / cap)
 *
 *      grid    blocks of 256 over a row, for each row of the bucket
 *      moves   4 bytes a number in and out
 */
#ifndef KERNELS_CUDA_CAP_H
#define KERNELS_CUDA_CAP_H

#include "kernels/cuda/device.h"

struct cap_args {
        float *x; /* (rows, columns) */
        float cap;
        uint32_t columns, rows_max;
        const uint32_t *count; /* number of rows, on the device */
};

int cap(device *device, const cap_args *args);

#endif
