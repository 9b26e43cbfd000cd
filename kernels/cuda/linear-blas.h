/*
 * The products of linear.h for many rows, by a library (blas.h):
 *
 *      widen   unless LINEAR_BFLOAT:  b[n][k] = bfloat(float(weight)), each rounded once
 *      blas    s[r][n] = sum over k of x[r][k] * b[n][k]
 *      finish  LINEAR_GATE:  out[r][n] = bfloat(act(gate's s + its bias) * (up's s + its bias))
 *              LINEAR_ACT:   out[r][n] = bfloat(act(s + bias)), or times a factor
 *
 * For LINEAR_STORE and LINEAR_ADD the library writes y itself, with the bias or with the scale.
 * For the others, s are floats in scratch.  The matrix is multiplied in pieces of its rows, each as
 * large as scratch allows.
 *
 *      grid    widen: (rows of the piece, 2048 columns); finish: (rows of x, 512 columns of out);
 *              256 threads with 8 columns each (widen) or 2 (finish)
 *      moves   widen: reads the packed piece, writes 2 bytes a weight, which the library reads;
 *              finish: reads 4 bytes of each s (and of its factor), writes 2 bytes of each out
 *      order   the library's: a row's bits depend on its bucket.  In linear.h packed weights are as
 *              exact as their file; here they are off by up to 2^-9 of their value
 *
 * From this number of rows on it is quicker than linear(), as measured on an H200
 * (docs/internals/gpu-results.md):
 *
 *      LINEAR_BFLOAT   large matrices: always.  Steps of Llama-3.1-8B are 1.03 times as fast with
 *                      one row, 1.3 times with 32, 1.8 times with 64.  Other matrices: from the
 *                      bucket of 16 rows on; with 8 rows, the kernels of linear(), which begin
 *                      early, make steps of Qwen3-0.6B 1.12 times as fast
 *      packed          from the bucket of 64 rows on: 1.09 times (Q4_0), 1.41 (Q4_K), 1.08
 *                      (F8_E4M3).  With 32 rows, widening costs more than it gains: 0.75 times
 *                      (Q4_0)
 *
 * Rows of x at or past *count are multiplied, too, and do not affect the others.  Afterwards
 * these rows of y, up to rows_max, may hold anything.  But out is written only for the *count
 * rows.
 */
#ifndef KERNELS_CUDA_LINEAR_BLAS_H
#define KERNELS_CUDA_LINEAR_BLAS_H

#include "kernels/cuda/blas.h"
#include "kernels/cuda/linear.h"

/* The number of rows of x from which on it is quicker than linear(). */
static inline uint32_t linear_blas_rows_min(const linear_matrix *w)
{
        if (w->format != LINEAR_BFLOAT)
                return 33;
        return linear_is_large(w) ? 1 : 9;
}

struct linear_blas_scratch {
        /* The most bytes of each kind of scratch, unless 16 rows of the matrix need more. */
        size_t bytes;
        /* Aligned to 256 bytes; may be NULL where linear_blas_scratch_size() returns 0. */
        uint16_t *weights;
        float *sums;
};

/* How many numbers of each kind a matrix needs, for up to `rows_max` rows of x. */
void linear_blas_scratch_size(const linear_matrix *w, linear_epilogue epilogue, uint32_t rows_max,
                              size_t bytes, size_t *ret_weights, size_t *ret_sums);

/*
 * 1: the library can multiply these rows, and its algorithm is fixed; the rule of blas_serves()
 * about captures applies.  0: only linear() can.  linear() also serves a y or a bias that is not
 * aligned to 16 bytes.  Such rows occur in a matrix whose parts have several formats.  It also
 * serves a LINEAR_ADD that has both a bias and a scale.
 */
int linear_blas_serves(blas *blas, const linear_args *args, const linear_blas_scratch *scratch);
/*
 * The arguments must be served (linear_blas_serves()).  args->sums and args->arrived are not
 * needed.
 */
int linear_blas(device *device, blas *blas, const linear_args *args,
                const linear_blas_scratch *scratch);

#endif
