#include "kernels/cuda/norm.h"

#include "kernels/cuda/row-norm.h"

#define THREADS 256u
#define WARPS   (THREADS / LANES)
#define SHARED  (2 * WARPS * sizeof(float)) /* for two sums */

/* The sum over the block, in every thread; `warps` is shared and used for this sum alone. */
DEVICE float block_sum(float mine, float *warps)
{
        float sum = 0;

        mine = warp_sum(mine);
        if (lane_number() == 0)
                warps[threadIdx.x / LANES] = mine;
        block_sync();
        for (unsigned i = 0; i < WARPS; i++)
                sum += warps[i];
        return sum;
}

/* All threads of the block call this. */
DEVICE row_moments moments_of(const row_norm &norm, const float *x, uint32_t columns, float limit)
{
        float *warps = (float *)shared(), sum = 0, squares = 0;
        row_moments row = { 0, 1 };

        if (norm.kind == NORM_NONE)
                return row;
        if (norm.kind == NORM_LAYER) {
                for (uint32_t i = threadIdx.x; i < columns; i += THREADS)
                        sum += clipped(x[i], limit);
                row.mean = block_sum(sum, warps) / (float)columns;
        }
        for (uint32_t i = threadIdx.x; i < columns; i += THREADS) {
                float off = clipped(x[i], limit) - row.mean;

                squares += off * off;
        }
        row.inverse = inverse_of(block_sum(squares, warps + WARPS), columns, norm.eps);
        return row;
}

KERNEL(THREADS) norm_row(norm_args a)
{
        uint32_t row = blockIdx.x;
        const float *x;
        uint16_t *out = a.out + (size_t)row * a.width;
        row_moments moments;

        wait_for_predecessor();
        if (row >= *a.count)
                return;
        x = a.x + (size_t)(a.rows ? a.rows[row] : row) * a.columns;
        moments = moments_of(a.norm, x, a.columns, INFINITY);
        for (uint32_t i = 2 * threadIdx.x; i < a.width; i += 2 * THREADS) {
                float two[2];

                for (uint32_t j = 0; j < 2; j++)
                        two[j] = i + j < a.columns ? normed(a.norm, moments, x[i + j], i + j) : 0;
                *(uint32_t *)(out + i) = two_bfloats(two[0], two[1]);
        }
}

/* Without the weight and the bias that NORM_NONE ignores: normed() would not. */
static row_norm used_norm(const row_norm &norm)
{
        return norm.kind == NORM_NONE ? row_norm() : norm;
}

int norm(device *device, const norm_args *args)
{
        const launch launch = { args->rows_max, 1, 1, THREADS, SHARED, true };
        norm_args used = *args;

        used.norm = used_norm(args->norm);
        return device_launch(device, STREAM_STEPS, launch, norm_row, used);
}

/* A thread writes only numbers that no other thread reads after the sums: `to` may be x. */
KERNEL(THREADS) norm_floats_row(norm_floats_args a)
{
        const norm_piece &piece = a.pieces[a.repeats ? 0 : blockIdx.y];
        uint32_t skipped = a.repeats ? blockIdx.y * piece.columns : 0;
        const float *x = a.x + (size_t)blockIdx.x * a.x_columns + piece.first + skipped;
        float *to = a.to + (size_t)blockIdx.x * a.to_columns + piece.to + skipped;
        const float limit = limit_of(a.clip);
        row_moments moments;

        wait_for_predecessor();
        if (blockIdx.x >= *a.count)
                return;
        moments = moments_of(piece.norm, x, piece.columns, limit);
        for (uint32_t i = threadIdx.x; i < piece.columns; i += THREADS) {
                float y = normed(piece.norm, moments, clipped(x[i], limit), i);

                y = scaled(y, a.scale);
                to[i] = a.add ? scaled(to[i] + y, a.after) : y;
        }
}

int norm_floats(device *device, const norm_floats_args *args)
{
        const uint32_t pieces = args->repeats ? args->repeats : args->piece_count;
        const launch launch = { args->rows_max, pieces, 1, THREADS, SHARED, true };
        norm_floats_args used = *args;

        for (norm_piece &piece : used.pieces)
                piece.norm = used_norm(piece.norm);
        return device_launch(device, STREAM_STEPS, launch, norm_floats_row, used);
}
