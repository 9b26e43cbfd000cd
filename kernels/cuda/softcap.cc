#include "kernels/cuda/softcap.h"

#include "kernels/cuda/row-norm.h"

#define THREADS 256u

KERNEL(THREADS) softcap_row(softcap_args a)
{
        uint32_t column = blockIdx.x * THREADS + threadIdx.x;
        float *x = a.x + (size_t)blockIdx.y * a.columns + column;
        float logit;

        wait_for_predecessor();
        if (blockIdx.y >= *a.count || column >= a.columns)
                return;
        logit = scaled(*x, a.scale);
        *x = a.softcap > 0 ? a.softcap * tanhf(logit / a.softcap) : logit;
}

int softcap(device *device, const softcap_args *args)
{
        const launch launch = {
                (args->columns + THREADS - 1) / THREADS, args->rows_max, 1, THREADS, 0, true
        };

        return device_launch(device, STREAM_STEPS, launch, softcap_row, *args);
}
