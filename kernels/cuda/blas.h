/*
 * Products of large matrices by a library: all calls to cuBLASLt go through this interface.
 *
 *      y[r][n] = (add ? y[r][n] : 0) + scale * (sum over k of x[r][k] * w[n][k]) + bias[n]
 *
 *      x       (rows, k) bfloats, its rows x_columns apart
 *      w       (n, k) bfloats, its rows w_columns apart
 *      y       (rows, n) floats, its rows y_columns apart; bias (n) floats, or NULL
 *      order   the library's own, the same for every product of one shape
 *
 * Sums are floats.  A row of y depends on its row of x alone.  But its bits may change with the
 * shape, that is, with the number of other rows.  All rows are multiplied, whatever they hold,
 * and all of y is written.
 *
 * There are two implementations.  blas-cuda.cc opens the library with dlopen() if it is
 * installed: the program is not linked with it.  blas-emu.cc is a kernel for the emulated device,
 * which delays it like all other work.
 */
#ifndef KERNELS_CUDA_BLAS_H
#define KERNELS_CUDA_BLAS_H

#include "kernels/cuda/device.h"

struct blas;

/*
 * Looks for the library where the loader does, then where CUDA and PyTorch usually put it; or, if
 * the environment names a file in SMV_CUBLASLT, only there.  -ENOENT: not found, and blas_errtext()
 * says why.
 */
int blas_open(device *device, blas **ret_blas);
void blas_close(blas *blas);              /* NULL is fine */
const char *blas_about(const blas *blas); /* the library's version and file */
/* A sentence: why this host thread's last blas_open() did not find the library. */
const char *blas_errtext(void);

/* x, w, y and bias are aligned to 16 bytes. */
struct blas_shape {
        uint32_t rows, n, k;
        uint32_t x_columns, w_columns, y_columns; /* of x and w: multiples of 8 */
        /*
         * 0 or 1.  They are integers so that the struct has no padding, because shapes are
         * compared as bytes.
         */
        uint32_t add, biased;
};

/*
 * 1: the library can multiply matrices of that shape, and its algorithm for the shape is now fixed.
 * 0: it cannot.  Call this at least once before multiplying a shape; the first call for a shape
 * must not happen while a graph is captured.
 */
int blas_serves(blas *blas, const blas_shape *shape);

/* Puts a product on STREAM_STEPS.  It allocates nothing, so it can be captured. */
int blas_multiply(blas *blas, const blas_shape *shape, float scale, float *y, const uint16_t *x,
                  const uint16_t *w, const float *bias);

#endif
