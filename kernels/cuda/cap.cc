#include "kernels/cuda/cap.h"

#include "kernels/cuda/lane.h"

#define THREADS 256u

KERNEL(THREADS) cap_row(cap_args a)
{
        uint32_t column = blockIdx.x * THREADS + threadIdx.x;
        float *x = a.x + (size_t)blockIdx.y * a.columns + column;

        wait_for_predecessor();
        if (blockIdx.y < *a.count && column < a.columns)
                *x = a.cap * tanhf(*x / a.cap);
}

int cap(device *device, const cap_args *args)
{
        const launch launch = {
                (args->columns + THREADS - 1) / THREADS, args->rows_max, 1, THREADS, 0, true
        };

        return device_launch(device, STREAM_STEPS, launch, cap_row, *args);
}
