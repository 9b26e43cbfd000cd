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
 * From how many rows on.  Up to 64, linear.cc reads each weight once.  Beyond, each chunk of 64 rows
 * reads all of w again, and x once for each 16 rows of w, that is 8 bytes a weight out of the
 * cache.  An H200's gives about 5.5 TB/s: 1.5 ps a weight and chunk, so 2.9 ps for 65 rows.  The
 * library reads 2 bytes a weight out of memory at 4.2 TB/s, and multiplies at some 700 TFLOP/s: 0.5 ps
 * up to 175 rows, then 0.29 ps for each 100.  To widen four bits before is 2.6 bytes more, 0.6 ps: so
 * 1.1 ps at 65 rows, which is still less.  Those are predictions, nobody has measured them.
 *
 * Rows of x at or past *count are multiplied, too, and disturb nobody; in y, up to rows_max, there is
 * anything afterwards, but out is only written for those that there are.
 */
#ifndef KERNELS_CUDA_WIDE_H
#define KERNELS_CUDA_WIDE_H

#include "kernels/cuda/blas.h"
#include "kernels/cuda/linear.h"

#define WIDE_ROWS 65u /* of x: the fewest for which it pays, whatever the format */

/* From how many rows of x on it is quicker than linear(). */
uint32_t wide_rows(linear_format format);

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
