/*
 * Finishes and stores the heads of q, k and v, which a product with weights has computed:
 *
 *      q = scaled(rope(q_norm(clip(q)))) becomes halves, or bfloats where pages have bfloats.
 *      k = rope(k_norm(clip(k))) and v = v_norm(clip(v)) are written to the pages of rows that
 *      write, in the type of the pages (page.h).  kernels.h describes scaled(): it has a factor
 *      for the row's position.
 *
 *      y       (rows, (heads + 2 kv_heads) * head_dim) floats, biases added.  The heads of q are
 *              first; k_at and v_at tell where those of k and v are, which may be the same ones
 *      q       (rows, heads * head_dim) halves, or bfloats
 *      grid    a warp for each head of each row of the bucket, four in a block
 *      moves   4 bytes a number in; out 2 bytes a number, or 1 byte and 4 bytes a head.  Where
 *              pages have bytes, a head is in shared memory until its largest number is known
 *      order   for the sum of a head and then for that of its squares, lane i adds those at i,
 *              i + 32, ...; then lanes are added
 *
 * A norm of all heads together needs the sums of a row, which no warp has.  With SPAN_WHOLE, q and
 * k were clipped and normalised before (norm.h), and only v is clipped here; v_norm is always of
 * each head.
 *
 * An angle is position * frequency, in double.  It is reduced to less than half a turn before it
 * becomes a float: at position 100,000 a float would be off by a hundredth.
 */
#ifndef KERNELS_CUDA_QKV_FINISH_H
#define KERNELS_CUDA_QKV_FINISH_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/step-view.h"

struct qkv_finish_args {
        step_view view;
        const float *y;
        uint16_t *q;
        uint32_t heads, kv_heads, head_dim; /* kv_heads 0: there is q alone */
        uint32_t k_at, v_at;                /* the first heads of k and v in a row of y */
        float clip;                         /* 0: none */
        head_norm_span span;
        row_norm q_norm, k_norm, v_norm;
        rope rotation;
        float query_beta;
        uint32_t query_length;
        uint8_t *pages; /* in the pool, where this layer's tiles begin in page 0 */
        size_t page_bytes, tile_bytes;
        kv_type type; /* not KV_F32 */
};

int qkv_finish(device *device, const qkv_finish_args *args);

#endif
