#include "kernels/cuda/linear.h"

#include <assert.h>

#include "kernels/cuda/linear-formats.h"
#include "kernels/cuda/linear-launch.h"

static unsigned steps_of(const linear_matrix *w)
{
        return w->columns / (GROUP * GROUPS_OF(w->format));
}

static unsigned warps_of(const linear_matrix *w)
{
        return steps_of(w) <= 16 ? 4 : WARPS_MAX;
}

/*
 * Enough parts to make two blocks for each multiprocessor, as long as each warp keeps at least
 * two steps.
 */
static unsigned parts_of(const device *device, const linear_matrix *w)
{
        unsigned tiles = w->rows / TILE_ROWS;
        unsigned wanted = tiles ? 2 * device_processors(device) / tiles : 1;
        unsigned most = steps_of(w) / (2 * warps_of(w));
        unsigned parts = wanted < most ? wanted : most;

        return parts ? parts : 1;
}

static unsigned chunks_of(uint32_t rows_max)
{
        return rows_max / CHUNK + (rows_max % CHUNK != 0);
}

void linear_scratch_size(const device *device, const linear_matrix *w, uint32_t rows_max,
                         size_t *ret_sums, size_t *ret_arrived)
{
        unsigned parts = parts_of(device, w);
        size_t tiles = (size_t)w->rows / TILE_ROWS * chunks_of(rows_max);

        *ret_arrived = parts > 1 ? tiles : 0;
        *ret_sums = *ret_arrived * parts * SUMS_OF(tiles_of(rows_max));
}

/*
 * Whether the kernel begins before its predecessor has ended.  Early blocks go to the
 * multiprocessors that become free first, so some multiprocessors get more blocks than others.
 * On an H200, this slowed down whole steps of Llama-3.1-8B with formats that wait for memory: by
 * 4 to 14 % with bf16, and by 6 % with F8_E4M3 at 32 rows.  It sped up steps by 3 to 4 % with
 * Q4_0 and Q4_K, and by 1 % with F8_E4M3 at one row.  Steps of Qwen3-0.6B, whose matrices are
 * small, became 11 % faster with one row.
 */
static bool begins_early(const linear_matrix *w, uint32_t rows_max)
{
        switch (w->format) {
        case LINEAR_BFLOAT:
                return !linear_is_large(w);
        case LINEAR_INT8:
        case LINEAR_E4M3:
                return !linear_is_large(w) || rows_max <= 8;
        case LINEAR_INT4:
        case LINEAR_K4:
        case LINEAR_K5:
        case LINEAR_K6:
                break;
        }
        return true;
}

int linear(device *device, const linear_args *args)
{
        const linear_matrix *w = &args->w;
        unsigned step = GROUP * GROUPS_OF(w->format), warps = warps_of(w);
        const launch launch = { chunks_of(args->rows_max),
                                w->rows / TILE_ROWS,
                                parts_of(device, w),
                                warps * LANES,
                                warps * SUMS_OF(tiles_of(args->rows_max)) * sizeof(float),
                                begins_early(w, args->rows_max) };

        assert(w->rows % TILE_ROWS == 0 && w->columns % step == 0);
        assert(args->x_columns % 64 == 0 && args->x_columns <= w->columns);
        assert(w->columns - args->x_columns < step);
        assert(args->n <= (args->epilogue == LINEAR_GATE ? w->rows / 2 : w->rows));
        assert(args->n <=
               (linear_is_activated(args->epilogue) ? args->out_columns : args->y_columns));
        return w->format >= LINEAR_K4 ? linear_k_quants(device, launch, args)
                                      : linear_basic(device, launch, args);
}
