/*
 * The heads of q, k and v as they come out of a product with weights, finished and put away:
 *
 *      q = rope(qnorm(q)) becomes halves, or bfloats where pages are; k = rope(knorm(k)) and v go into the
 *      pages of rows that write, as page.h has their type
 *
 *      y       (rows, (heads + 2 kv_heads) * head_dim) floats, biases added
 *      q       (rows, heads * head_dim) halves, or bfloats
 *      grid    a warp for each head of each row that there may be, four in a block
 *      moves   4 bytes a number in, 2 out, or 1 and 4 a head; of bytes: a head is in shared memory until its
 *              largest number is known
 *      order   of a head's squares, lane i has those at i, i + 32, ...; then lanes
 *
 * An angle is position * frequency, in double, and turned back to less than half a turn before
 * it becomes a float: at position 100,000 a float would be off by a hundredth.
 */
#ifndef KERNELS_CUDA_HEADS_H
#define KERNELS_CUDA_HEADS_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/step.h"

struct heads_args {
        step_view view;
        const float *y;
        uint16_t *q;
        uint32_t heads, kv_heads, head_dim;
        const float *q_norm, *k_norm; /* (head_dim), or NULL */
        float eps;
        rope turns;
        uint8_t *pages; /* of the pool, where this layer's tiles begin in page 0 */
        size_t page_bytes, tile_bytes;
        kv_type type; /* not KV_F32 */
};

int heads(device *device, const heads_args *args);

#endif
