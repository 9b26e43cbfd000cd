/*
 * A stand-in for the library on the emulated device: a plain product, in another order than
 * linear-launch.cc's.  It also keeps a list of chosen shapes, so it detects callers that choose
 * during a graph capture, or multiply before choosing.
 */
#include "kernels/cuda/blas.h"
#include "kernels/cuda/device-emu.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "kernels/cuda/intrinsics.h"

#define THREADS 64u

struct blas {
        struct device *device;
        std::vector<blas_shape> chosen;
};

struct blas_args {
        blas_shape shape;
        float scale;
        float *y;
        const uint16_t *x, *w;
        const float *bias;
};

static bool is_there = true;

void device_emu_blas(bool there)
{
        is_there = there;
}

int blas_open(device *device, blas **ret_blas)
{
        const char *wish = getenv("SMV_DEVICE_BLAS");

        if (!is_there || (wish && !strcmp(wish, "none")))
                return -ENOENT;
        *ret_blas = new blas();
        (*ret_blas)->device = device;
        return 0;
}

const char *blas_about(const blas *)
{
        return "a stand-in for cuBLASLt";
}

const char *blas_errtext(void)
{
        return "cuBLASLt was not found: a test disabled it";
}

void blas_close(blas *blas)
{
        delete blas;
}

static bool is_chosen(const blas *blas, const blas_shape *shape)
{
        for (const blas_shape &one : blas->chosen)
                if (!memcmp(&one, shape, sizeof(one)))
                        return true;
        return false;
}

int blas_serves(blas *blas, const blas_shape *shape)
{
        if (is_chosen(blas, shape))
                return 1;
        assert(!device_is_capturing(blas->device, STREAM_STEPS));
        assert(shape->rows && shape->n && shape->k);
        assert(shape->k <= shape->x_columns && shape->k <= shape->w_columns &&
               shape->n <= shape->y_columns);
        assert(shape->x_columns % 8 == 0 && shape->w_columns % 8 == 0);
        blas->chosen.push_back(*shape);
        return 1;
}

/* Adds from the last k to the first, with separate sums for even and odd k. */
KERNEL(THREADS) blas_product(blas_args a)
{
        const blas_shape &s = a.shape;
        uint32_t r = blockIdx.x, n = blockIdx.y * THREADS + threadIdx.x;
        const uint16_t *x = a.x + (size_t)r * s.x_columns, *w = a.w + (size_t)n * s.w_columns;
        float sums[2] = {}, *y = a.y + (size_t)r * s.y_columns + n;

        if (n >= s.n)
                return;
        for (uint32_t k = s.k; k--;)
                sums[k % 2] += from_bfloat(x[k]) * from_bfloat(w[k]);
        *y = (s.add ? *y : 0) + a.scale * (sums[0] + sums[1]) + (s.biased ? a.bias[n] : 0);
}

static bool is_aligned(const void *at)
{
        return (uintptr_t)at % 16 == 0;
}

int blas_multiply(blas *blas, const blas_shape *shape, float scale, float *y, const uint16_t *x,
                  const uint16_t *w, const float *bias)
{
        const blas_args args = { *shape, scale, y, x, w, bias };
        const launch launch = { shape->rows, (shape->n + THREADS - 1) / THREADS, 1, THREADS, 0,
                                false };

        assert(is_chosen(blas, shape) && !shape->biased == !bias);
        assert(is_aligned(y) && is_aligned(x) && is_aligned(w) && is_aligned(bias));
        return device_launch(blas->device, STREAM_STEPS, launch, blas_product, args);
}
