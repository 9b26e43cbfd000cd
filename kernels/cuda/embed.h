/*
 * The rows of a step begin as the embeddings of their tokens:
 *
 *      x[r] = table[token of r] * scale
 *
 *      table   a matrix as linear.h packs it, a row for each token
 *      x       (rows, columns) floats
 *      grid    a block of 256 for each row of the bucket
 *      moves   a row of the table in, 4 bytes a number out
 *      order   no sums
 */
#ifndef KERNELS_CUDA_EMBED_H
#define KERNELS_CUDA_EMBED_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/linear.h"
#include "kernels/cuda/step-view.h"

struct embed_args {
        step_view view;
        linear_matrix table;
        uint32_t columns; /* not padded */
        float scale;
        float *x;
};

int embed(device *device, const embed_args *args);

#endif
