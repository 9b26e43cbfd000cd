/*
 * The rows of a step begin as the embeddings of their tokens, and of their positions:
 *
 *      x[r] = table[token of r] * scale
 *      x[r] += table[position of r + first_position], if by_position
 *
 *      table   a matrix as linear.h packs it, a row for each token, or for each position
 *      x       (rows, columns) floats
 *      grid    a block of 256 for each row of the bucket
 *      moves   a row of the table in, 4 bytes a number out; by_position: and in
 *      order   no sums of more than two numbers
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
        bool by_position;
        uint32_t first_position;
};

/* This is not `struct embed`, an operator of kernels.h, which therefore needs its full name. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
int embed(device *device, const embed_args *args);
#pragma GCC diagnostic pop

#endif
