#include "kernels/cuda/norm.h"

#include "kernels/cuda/intrinsics.h"

#define THREADS 256u

/* The sum over the block, in every thread. */
DEVICE float block_sum(float mine)
{
        float *warps = (float *)shared();
        float sum = 0;

        mine = warp_sum(mine);
        if (lane_number() == 0)
                warps[threadIdx.x / LANES] = mine;
        block_sync();
        for (unsigned i = 0; i < THREADS / LANES; i++)
                sum += warps[i];
        return sum;
}

KERNEL(THREADS) norm_row(norm_args a)
{
        uint32_t row = blockIdx.x;
        const float *x;
        uint16_t *out = a.out + (size_t)row * a.width;
        float inverse = 1;

        wait_for_predecessor();
        if (row >= *a.count)
                return;
        x = a.x + (size_t)(a.rows ? a.rows[row] : row) * a.columns;
        if (a.norm) {
                float squares = 0;

                for (uint32_t i = threadIdx.x; i < a.columns; i += THREADS)
                        squares += x[i] * x[i];
                inverse = 1 / sqrtf(block_sum(squares) / (float)a.columns + a.eps);
        }
        for (uint32_t i = 2 * threadIdx.x; i < a.width; i += 2 * THREADS) {
                float two[2];

                for (uint32_t j = 0; j < 2; j++) {
                        two[j] = i + j < a.columns ? x[i + j] * inverse : 0;
                        if (a.norm && i + j < a.columns)
                                two[j] *= a.norm[i + j];
                }
                *(uint32_t *)(out + i) = two_bfloats(two[0], two[1]);
        }
}

int norm(device *device, const norm_args *args)
{
        const launch launch = {
                args->rows_max, 1, 1, THREADS, THREADS / LANES * sizeof(float), true
        };

        return device_launch(device, STREAM_STEPS, launch, norm_row, *args);
}
