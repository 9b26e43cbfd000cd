#include "kernels/cuda/embed.h"

#include "kernels/cuda/intrinsics.h"
#include "kernels/cuda/linear-formats.h"

#define THREADS 256u

/* Byte k of a row of LINEAR_INT8 or LINEAR_E4M3. */
DEVICE uint8_t byte(const uint8_t *row, uint32_t k)
{
        const uint8_t *eight = row + k / 64 * 64 + k % 32 / 8 * 16 + k / 32 % 2 * 8;
        uint32_t i = k % 8, swapped = i % 4 == 1 ? i + 1 : i % 4 == 2 ? i - 1 : i;

        return eight[swapped];
}

/*
 * Integer k, not negative, of a format with four or more bits.  The integer is in one of four
 * groups, in one of four lanes.
 */
template <linear_format FORMAT> DEVICE uint32_t integer(const uint8_t *row, uint32_t k)
{
        const uint8_t *step = row + k / 128 * STEP_BYTES(FORMAT);
        uint32_t group = k / 32 % 4, in_lanes = FORMAT == LINEAR_K6 ? k % 16 / 4 : k % 32 / 8;
        uint32_t i = FORMAT == LINEAR_K6 ? k % 32 / 16 * 4 + k % 4 : k % 8;
        uint32_t low = bits_at(((const uint32_t *)step)[in_lanes * 4 + group], i, 4);
        const uint32_t *upper = (const uint32_t *)(step + 64);

        if (FORMAT == LINEAR_K5)
                low |= bits_at(upper[in_lanes] >> group * 4, i, 1) << 4;
        if (FORMAT == LINEAR_K6)
                low |= bits_at(upper[in_lanes * 2 + group / 2] >> group % 2 * 8, i, 2) << 4;
        return low;
}

/* A 6-bit integer of a block.  Each half of a block has four scales, then four least values. */
DEVICE float six_bits(const uint16_t *block, uint32_t number)
{
        uint32_t at = number * 6, two = block[2 + at / 16];

        if (at % 16 > 10)
                two |= (uint32_t)block[3 + at / 16] << 16;
        return (float)(two >> at % 16 & 63);
}

template <linear_format FORMAT>
DEVICE float run_number(const uint8_t *row, const uint16_t *scales, uint32_t k)
{
        const uint16_t *block = scales + k / 256 * 8;
        uint32_t first = k / 128 % 2 * 8 + k / 32 % 4;
        float scale = six_bits(block, first) * from_half(block[0]);
        float min = six_bits(block, first + 4) * from_half(block[1]);

        return (float)integer<FORMAT>(row, k) * scale - min;
}

/* Number k of a packed row; linear.h describes where it lies. */
template <linear_format FORMAT>
DEVICE float number(const uint8_t *row, const uint16_t *scales, uint32_t k, uint32_t columns)
{
        if (FORMAT == LINEAR_BFLOAT)
                return from_bfloat(((const uint16_t *)row)[k]);
        if (FORMAT == LINEAR_INT8)
                return (float)(int8_t)byte(row, k) * from_half(scales[k / 32]);
        if (FORMAT == LINEAR_E4M3)
                return from_e4m3(byte(row, k)) * ((const float *)scales)[k / 128];
        if (FORMAT == LINEAR_K6) {
                float scale = (float)(((const uint8_t *)scales)[k / 16] - 128);

                return ((float)integer<FORMAT>(row, k) - 32) *
                       (scale * from_half(scales[columns / 256 * 8 + k / 256]));
        }
        if (FORMAT == LINEAR_INT4)
                return ((float)integer<FORMAT>(row, k) - 8) * from_half(scales[k / 32]);
        return run_number<FORMAT>(row, scales, k);
}

template <linear_format FORMAT> KERNEL(THREADS) embed_row(embed_args a)
{
        uint32_t row = blockIdx.x, entry;
        size_t bytes = (size_t)a.table.columns / (GROUP * GROUPS_OF(FORMAT)) * STEP_BYTES(FORMAT);
        const uint8_t *weights;
        const uint16_t *scales;

        wait_for_predecessor();
        if (row >= a.view.counts->rows)
                return;
        entry = a.view.rows[row].token;
        if (a.by_position)
                entry = a.view.rows[row].position + a.first_position;
        weights = (const uint8_t *)a.table.weights + entry * bytes;
        scales = a.table.scales + (size_t)entry * ROW_SCALES(FORMAT, a.table.columns);
        for (uint32_t k = threadIdx.x; k < a.columns; k += THREADS) {
                float *x = &a.x[(size_t)row * a.columns + k];
                float one = number<FORMAT>(weights, scales, k, a.table.columns);

                *x = a.by_position ? *x + one : one * a.scale;
        }
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
        case LINEAR_E4M3:
                return device_launch(device, STREAM_STEPS, launch, embed_row<LINEAR_E4M3>, *args);
        case LINEAR_K4:
                return device_launch(device, STREAM_STEPS, launch, embed_row<LINEAR_K4>, *args);
        case LINEAR_K5:
                return device_launch(device, STREAM_STEPS, launch, embed_row<LINEAR_K5>, *args);
        case LINEAR_K6:
                return device_launch(device, STREAM_STEPS, launch, embed_row<LINEAR_K6>, *args);
        }
        return 0;
}
