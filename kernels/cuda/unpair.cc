#include "kernels/cuda/unpair.h"

#include <assert.h>

#include "kernels/cuda/intrinsics.h"

#define THREADS 256u

KERNEL(THREADS) unpair_row(unpair_args a)
{
        const float *x = a.x + (size_t)blockIdx.x * 2 * a.n;
        float *to = a.to + (size_t)blockIdx.x * a.to_columns;

        wait_for_predecessor();
        if (blockIdx.x >= *a.count)
                return;
        for (uint32_t i = threadIdx.x; i < 2 * a.n; i += THREADS) {
                uint32_t at = i / 16 * 8 + i % 8 + (i % 16 < 8 ? 0 : a.n);

                to[at] = x[i] + (a.bias ? a.bias[at] : 0);
        }
}

int unpair(device *device, const unpair_args *args)
{
        assert(args->n % 8 == 0 && args->to_columns >= 2 * args->n);
        return device_launch(device, STREAM_STEPS, { args->rows_max, 1, 1, THREADS, 0, true },
                             unpair_row, *args);
}
