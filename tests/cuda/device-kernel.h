/* The kernel of test-device.cc.  It is in a header for the same reason as intrinsic-kernels.h. */
#ifndef TESTS_CUDA_DEVICE_KERNEL_H
#define TESTS_CUDA_DEVICE_KERNEL_H

#include "kernels/cuda/intrinsics.h"

#define NUMBERS 33u

struct step_args {
        uint32_t *numbers;
        uint32_t times, plus;
};

/* numbers = numbers * times + plus, by way of shared memory. */
KERNEL(64) step(step_args a);

#if defined(__CUDACC__) || !defined(ON_GPU)
KERNEL(64) step(step_args a)
{
        uint32_t *board = (uint32_t *)shared(), i = threadIdx.x;

        if (i < NUMBERS)
                board[i] = a.numbers[i];
        block_sync();
        if (i < NUMBERS)
                a.numbers[i] = board[i] * a.times + a.plus;
}
#endif

#endif
