/*
 * The products of linear.h for many rows, by a library (blas.h):
 *
 *      widen   not LINEAR_BFLOAT:  b[n][k] = bfloat(float(weight)), each rounded once
 *      blas    s[r][n] = sum over k of x[r][k] * b[n][k]
 *      finish  LINEAR_GATE:  out[r][n] = bfloat(act(gate's s + its bias) * (up's s + its bias))
 *
 * LINEAR_STORE and LINEAR_ADD are what the library makes of y, bias and all; for LINEAR_GATE, s are
 * floats in scratch.  The matrix goes in pieces of its rows, as many as scratch has room for.
 *
 *      grid    widen: (rows of the piece, 2048 columns); finish: (rows of x, 512 columns of out); 256
 *              threads, 8 columns or 2 each
 *      moves   widen: the packed piece in, 2 bytes a weight out, which the library reads; finish: 4
 *              bytes of each s in, 2 of each out
 *      order   the library's: a row's bits depend on the bucket that it is in.  Where linear.h's are
 *              as exact as their file, packed weights are off by 2^-9 of themselves here
 *
 * From how many rows on it is quicker than linear(), as measured on an H200 (docs/gpu-results.md):
 *
 *      LINEAR_BFLOAT   large matrices: always.  Steps of Llama-3.1-8B are 1.03 times as fast with one row,
 *                      1.3 times with 32, 1.8 times with 64.  Others from the bucket of 16 rows on; with
 *                      8, steps of Qwen3-0.6B are 1.12 times as fast by kernels that begin early
 *      packed          from the bucket of 64 rows on: 1.09 times (Q4_0), 1.41 (Q4_K), 1.08 (F8_E4M3).
 *                      With 32 rows, widening costs more than it gains: 0.75 times (Q4_0)
 *
 * Rows of x at or past *count are multiplied, too, and disturb nobody; in y, up to rows_max, there is
 * anything afterwards, but out is only written for those that there are.
 */
#ifndef KERNELS_CUDA_WIDE_H
#define KERNELS_CUDA_WIDE_H

#include "kernels/cuda/blas.h"
#include "kernels/cuda/linear.h"

/* From how many rows of x on it is quicker than linear(). */
static inline uint32_t wide_rows(const linear_matrix *w)
{
        if (w->format != LINEAR_BFLOAT)
                return 33;
        return linear_is_large(w) ? 1 : 9;
}

struct wide_scratch {
        size_t bytes;      /* of each kind, at most, if 16 rows of the matrix do not need more */
        uint16_t *weights; /* at multiples of 256 bytes; may be NULL where wide_room() says 0 */
        float *sums;
};

/* How many numbers of each kind a matrix takes, for so many rows of x or fewer. */
void wide_room(const linear_matrix *w, linear_epilogue epilogue, uint32_t rows_max, size_t bytes,
               size_t *ret_weights, size_t *ret_sums);

/*
 * 1: the library can multiply these rows, and has chosen how (blas_serves(), and what it says of
 * recordings).  0: only linear() can.  It also serves a y or a bias that does not lie at a multiple of
 * 16 bytes, as rows of a matrix may whose parts have several formats.
 */
int wide_serves(blas *blas, const linear_args *args, const wide_scratch *scratch);
/* Of arguments that are served; sums and arrived are not needed. */
int wide(device *device, blas *blas, const linear_args *args, const wide_scratch *scratch);

#endif
