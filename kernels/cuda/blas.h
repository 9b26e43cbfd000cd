/*
 * Products of large matrices by somebody else: the one door to cuBLASLt.
 *
 *      y[r][n] = (add ? y[r][n] : 0) + sum over k of x[r][k] * w[n][k] + bias[n]
 *
 *      x       (rows, k) bfloats, its rows x_columns apart
 *      w       (n, k) bfloats, its rows w_columns apart
 *      y       (rows, n) floats, its rows y_columns apart; bias (n) floats, or NULL
 *      order   the library's own, the same for every product of one shape
 *
 * Sums are floats.  A row of y depends on its row of x alone, but its bits may be others where the
 * shape is another: with other rows, that is.  All rows are multiplied, whatever is in them, and all of
 * y is written.
 *
 * There are two behind it.  blas-cuda.cc opens the library where there is one, by dlopen(): nothing
 * links it.  blas-emu.cc is a kernel for the emulated device, which is as late as all others.
 */
#ifndef KERNELS_CUDA_BLAS_H
#define KERNELS_CUDA_BLAS_H

#include "kernels/cuda/device.h"

struct blas;

/*
 * Looks for the library where the loader does, then where CUDA and PyTorch usually put it; or, if the
 * environment names a file in SMV_CUBLASLT, only there.  -ENOENT: not found, and blas_why() says it.
 */
int blas_open(device *device, blas **ret_blas);
void blas_close(blas *blas);              /* NULL is fine */
const char *blas_about(const blas *blas); /* its version and its file */
/* In a sentence, why this host thread's last blas_open() did not find it. */
const char *blas_why(void);

/* x, w, y and bias lie at multiples of 16 bytes. */
struct blas_shape {
        uint32_t rows, n, k;
        uint32_t x_columns, w_columns, y_columns; /* of x and w: multiples of 8 */
        uint32_t add, biased; /* 0 or 1: a shape has no padding, and is compared as bytes */
};

/*
 * 1: it can multiply matrices of that shape, and has chosen how, for good; 0: it can not.  It
 * is asked at least once before the shape is multiplied, and where it has not been asked before
 * there is no recording.
 */
int blas_serves(blas *blas, const blas_shape *shape);

/* Puts one on STREAM_STEPS, and makes nothing: it can be recorded. */
int blas_multiply(blas *blas, const blas_shape *shape, float *y, const uint16_t *x,
                  const uint16_t *w, const float *bias);

#endif
