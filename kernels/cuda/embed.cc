#include "kernels/cuda/embed.h"

#include "kernels/cuda/lane.h"

#define THREADS 256u
#define GROUP   32u /* columns that share a scale */

/* Number k of a packed row, wherever linear.h has put it. */
template <linear_format FORMAT>
DEVICE float number(const uint8_t *row, const uint16_t *scales, uint32_t k)
{
        uint32_t group = k / GROUP, lane = k % GROUP / 8, i = k % 8;

        if (FORMAT == LINEAR_BFLOAT)
                return from_bfloat(((const uint16_t *)row)[k]);
        if (FORMAT == LINEAR_INT8) {
                const uint8_t *eight = row + k / 64 * 64 + lane * 16 + group % 2 * 8;
                uint32_t swapped = i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i;

                return (float)(int8_t)eight[swapped] * from_half(scales[group]);
        }
        const uint32_t *words = (const uint32_t *)(row + k / 128 * 64 + lane * 16);
        uint32_t bits = words[group % 4] >> (i % 2 ? 2 * i + 14 : 2 * i);

        return (float)((int)(bits & 15) - 8) * from_half(scales[group]);
}

template <linear_format FORMAT> KERNEL(THREADS) embed_row(embed_args a)
{
        uint32_t row = blockIdx.x, token;
        uint32_t row_bytes = FORMAT == LINEAR_BFLOAT ? 2 * a.table.columns
                             : FORMAT == LINEAR_INT8 ? a.table.columns
                                                     : a.table.columns / 2;
        const uint8_t *weights;
        const uint16_t *scales;

        wait_for_predecessor();
        if (row >= a.view.counts->rows)
                return;
        token = a.view.rows[row].token;
        weights = (const uint8_t *)a.table.weights + (size_t)token * row_bytes;
        scales = a.table.scales + (size_t)token * (a.table.columns / GROUP);
        for (uint32_t k = threadIdx.x; k < a.columns; k += THREADS)
                a.x[(size_t)row * a.columns + k] = number<FORMAT>(weights, scales, k) * a.scale;
}

int embed(device *device, const embed_args *args)
{
        const launch launch = { args->view.rows_max, 1, 1, THREADS, 0, true };

        switch (args->table.format) {
        case LINEAR_BFLOAT:
                return device_launch(device, STREAM_STEPS, launch, embed_row<LINEAR_BFLOAT>, *args);
        case LINEAR_INT8:
                return device_launch(device, STREAM_STEPS, launch, embed_row<LINEAR_INT8>, *args);
        case LINEAR_INT4:
                return device_launch(device, STREAM_STEPS, launch, embed_row<LINEAR_INT4>, *args);
        }
        return 0;
}
