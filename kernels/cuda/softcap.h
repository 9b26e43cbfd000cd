/*
 * Scales logits, and caps them between -cap and cap:
 *
 *      x = cap(scale * x), cap(x) = softcap * tanh(x / softcap)
 *
 *      grid    blocks of 256 over a row, for each row of the bucket
 *      moves   4 bytes a number in and out
 */
#ifndef KERNELS_CUDA_SOFTCAP_H
#define KERNELS_CUDA_SOFTCAP_H

#include "kernels/cuda/device.h"

struct softcap_args {
        float *x;      /* (rows, columns) */
        float scale;   /* 0: none, like 1 */
        float softcap; /* 0: none */
        uint32_t columns, rows_max;
        const uint32_t *count; /* number of rows, on the device */
};

int softcap(device *device, const softcap_args *args);

#endif
