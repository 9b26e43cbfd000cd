/*
 * The product itself, a template over the format of weights, the epilogue, and the number of
 * tiles of eight rows of x.  linear.h describes it.
 */
#ifndef KERNELS_CUDA_LINEAR_MULTIPLY_H
#define KERNELS_CUDA_LINEAR_MULTIPLY_H

#include "kernels/cuda/activation.h"
#include "kernels/cuda/linear-formats.h"
#include "kernels/cuda/linear-launch.h"
#include "kernels/cuda/row-norm.h"

/* ---- the sums of a tile ---- */

/*
 * Reads the lane's eight columns of x, of one group, for row g of a tile of eight rows: those at
 * 8t ..; or at 4t .. and 16 + 4t .., where one product must have all 16 columns that share a
 * scale (LINEAR_K6).  `left` is the number of the step's rows, from the first tile's row g on.
 * Other rows are zeros: a step of one row reads one row, not the eight of a tile.
 */
template <linear_format FORMAT>
DEVICE uint4 load_x(const linear_args &a, int left, unsigned row, unsigned tile, unsigned step,
                    unsigned group)
{
        unsigned column = (step * GROUPS_OF(FORMAT) + group) * GROUP;
        uint4 zeros = { 0, 0, 0, 0 };

        row += lane_number() / 4 + tile * 8;
        if (left <= (int)(tile * 8) || (FORMAT == LINEAR_INT4 && column >= a.x_columns))
                return zeros;
        if (FORMAT == LINEAR_K6) {
                const uint16_t *from =
                        a.x + (size_t)row * a.x_columns + column + lane_number() % 4 * 4;
                uint2 first = *(const uint2 *)from, second = *(const uint2 *)(from + 16);

                return { first.x, first.y, second.x, second.y };
        }
        return *(const uint4 *)(a.x + (size_t)row * a.x_columns + column + lane_number() % 4 * 8);
}

DEVICE void add_times(float sums[4], const float by[2], const float group[4])
{
        UNROLL
        for (unsigned i = 0; i < 4; i++)
                sums[i] = fmaf(by[i / 2], group[i], sums[i]);
}

template <linear_format FORMAT>
DEVICE void multiply_group(float sums[4], const uint32_t w[2][4], const uint4 &x, const factors &by)
{
        const uint32_t first[2] = { x.x, x.y }, second[2] = { x.z, x.w };
        const uint32_t ones[4] = { 0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80 };
        float group[4] = {}, rest[4] = {};

        if (FORMAT == LINEAR_BFLOAT) {
                multiply_bfloats(sums, w[0], first);
                multiply_bfloats(sums, w[1], second);
        } else if (FORMAT == LINEAR_K6) {
                multiply_bfloats(group, w[0], first);
                multiply_bfloats(rest, w[1], second);
                add_times(sums, by.scales, group);
                add_times(sums, by.second, rest);
        } else {
                multiply_bfloats(group, w[0], first);
                if (HAS_MINS(FORMAT))
                        multiply_bfloats(rest, ones, first);
                multiply_bfloats(group, w[1], second);
                if (HAS_MINS(FORMAT))
                        multiply_bfloats(rest, ones, second);
                add_times(sums, by.scales, group);
                if (HAS_MINS(FORMAT))
                        add_times(sums, by.mins, rest);
        }
}

/*
 * Multiplies a step's groups, each with all tiles of x.  x is fetched as many tiles ahead as a
 * step has groups.  A tile that was multiplied makes room for a later one, which may belong to
 * the next step.
 */
template <linear_format FORMAT, unsigned TILES>
DEVICE void multiply_step(float sums[TILES][4], uint4 x[GROUPS_OF(FORMAT)],
                          const lane_weights<FORMAT> &w, const linear_args &a, int left,
                          unsigned row, unsigned step, unsigned next)
{
        constexpr unsigned GROUPS = GROUPS_OF(FORMAT);
        shared_scales<FORMAT> shared_scales;

        share_scales(&shared_scales, w, step);
        UNROLL_BY(FORMAT >= LINEAR_K4 && TILES == 8 ? 1 : GROUPS)
        for (unsigned group = 0; group < GROUPS; group++) {
                const factors by = factors_of(w, shared_scales, group);
                uint32_t wide[2][4];

                widen(wide, w, group);
                UNROLL
                for (unsigned tile = 0; tile < TILES; tile++) {
                        unsigned here = group * TILES + tile, then = here + GROUPS;
                        uint4 mine = x[here % GROUPS];

                        if (then < GROUPS * TILES)
                                x[here % GROUPS] = load_x<FORMAT>(a, left, row, then % TILES, step,
                                                                  then / TILES);
                        else if (next * GROUPS * GROUP < a.w.columns)
                                x[here % GROUPS] = load_x<FORMAT>(a, left, row, then % TILES, next,
                                                                  then / TILES - GROUPS);
                        multiply_group<FORMAT>(sums[tile], wide, mine, by);
                }
        }
}

/* ---- adding up ---- */

struct addends {
        const float *from;
        unsigned count, apart;
};

DEVICE float total(const addends &of, unsigned row, unsigned n)
{
        float sum = 0;

        for (unsigned i = 0; i < of.count; i++)
                sum += of.from[i * of.apart + row * SUMS_WIDTH + n];
        return sum;
}

template <unsigned TILES> DEVICE void put_sums(float *to, const float sums[TILES][4])
{
        unsigned g = lane_number() / 4, t = lane_number() % 4;

        UNROLL
        for (unsigned i = 0; i < TILES * 4; i++) {
                unsigned row = i / 4 * 8 + t * 2 + i % 2;

                to[row * SUMS_WIDTH + g + i % 4 / 2 * 8] = sums[i / 4][i % 4];
        }
}

/*
 * Where k is divided into parts, each block stores its sums and increments the counter.  The last
 * block then knows that all sums are there, and goes on with them.  It resets the counter to
 * zero.
 */
template <unsigned TILES> DEVICE bool last_of_parts(const linear_args &a, addends *of)
{
        size_t tile = (size_t)blockIdx.x * gridDim.y + blockIdx.y;
        float *all = a.sums + tile * gridDim.z * SUMS_OF(TILES);
        unsigned *last = (unsigned *)shared();

        for (unsigned i = threadIdx.x; i < TILES * 8 * TILE_ROWS; i += blockDim.x) {
                unsigned row = i / TILE_ROWS, n = i % TILE_ROWS;

                all[blockIdx.z * SUMS_OF(TILES) + row * SUMS_WIDTH + n] = total(*of, row, n);
        }
        memory_fence();
        block_sync(); /* all sums are written, and the shared ones read */
        if (threadIdx.x == 0) {
                *last = atomic_add(&a.arrived[tile], 1) == gridDim.z - 1;
                if (*last)
                        a.arrived[tile] = 0;
                /* From here on this block sees what the others wrote before they counted. */
                memory_fence();
        }
        block_sync();
        of->from = all;
        of->count = gridDim.z;
        of->apart = SUMS_OF(TILES);
        return *last;
}

template <linear_epilogue EPILOGUE, unsigned WIDTH>
DEVICE void finish(const linear_args &a, const addends &of, unsigned first, unsigned r, unsigned at)
{
        unsigned row = first + r, n = blockIdx.y * WIDTH + at;
        float sum;

        if (row >= *a.count || n >= a.n)
                return;
        sum = total(of, r, at) + (a.bias ? a.bias[n] : 0);
        if (EPILOGUE == LINEAR_STORE)
                a.y[(size_t)row * a.y_columns + n] = sum;
        if (EPILOGUE == LINEAR_ADD)
                a.y[(size_t)row * a.y_columns + n] += scaled(sum, a.scale);
        if (EPILOGUE == LINEAR_ACT) {
                float factor = a.factor ? a.factor[(size_t)row * a.factor_columns + n] : 1;

                a.out[(size_t)row * a.out_columns + n] =
                        (uint16_t)two_bfloats(activate(a.act, sum) * factor, 0);
        }
        if (EPILOGUE == LINEAR_GATE) {
                float up = total(of, r, at + WIDTH) + (a.bias ? a.bias[a.n + n] : 0);

                a.out[(size_t)row * a.out_columns + n] =
                        (uint16_t)two_bfloats(activate(a.act, sum) * up, 0);
        }
}

/* ---- the kernel ---- */

/*
 * Steps that a warp reads ahead.  Formats with blocks of 256 need more registers, so they have
 * fewer.
 */
#define RING_OF(format, tiles)                                                                     \
        ((format) < LINEAR_K4 ? ((tiles) <= 2 ? 4 : 2) : ((tiles) == 1 ? 3 : 2))

/*
 * Two blocks run on a multiprocessor if there are enough registers.  With two tiles LINEAR_K5
 * needs a few too many, and so does LINEAR_K4 as compiled for GPUs before Hopper.
 */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define IS_FULL(format) ((format) == LINEAR_K4 || (format) == LINEAR_K5)
#else
#define IS_FULL(format) ((format) == LINEAR_K5)
#endif
#define BLOCKS_OF(format, tiles)                                                                   \
        ((format) == LINEAR_BFLOAT || GROUPS_OF(format) * (tiles) <= (IS_FULL(format) ? 4 : 8)     \
                 ? 2                                                                               \
                 : 1)

template <linear_format FORMAT, linear_epilogue EPILOGUE, unsigned TILES>
KERNEL(WARPS_MAX *LANES, BLOCKS_OF(FORMAT, TILES))
multiply(linear_args a)
{
        constexpr unsigned GROUPS = GROUPS_OF(FORMAT), RING = RING_OF(FORMAT, TILES);
        constexpr unsigned WIDTH = EPILOGUE == LINEAR_GATE ? TILE_ROWS / 2 : TILE_ROWS;
        const unsigned warp = threadIdx.x / LANES, row = blockIdx.x * CHUNK;
        const unsigned stride = blockDim.x / LANES * gridDim.z;
        const unsigned first = blockIdx.z * (blockDim.x / LANES) + warp;
        const unsigned steps = a.w.columns / (GROUPS * GROUP);
        const lane_rows rows = find_rows<FORMAT>(&a.w, blockIdx.y);
        lane_weights<FORMAT> ring[RING];
        float sums[TILES][4] = {};
        uint4 x[GROUPS] = {};
        addends of = { (const float *)shared(), blockDim.x / LANES, SUMS_OF(TILES) };
        int left;

        UNROLL
        for (unsigned i = 0; i < RING; i++)
                if (first + i * stride < steps)
                        load_weights(&ring[i], rows, first + i * stride);
        wait_for_predecessor();
        left = (int)(*a.count - row);
        if (left <= 0)
                return;
        left -= (int)(lane_number() / 4);
        UNROLL
        for (unsigned i = 0; i < GROUPS; i++)
                if (first < steps)
                        x[i] = load_x<FORMAT>(a, left, row, i % TILES, first, i / TILES);
        for (unsigned at = first; at < steps; at += RING * stride) {
                UNROLL
                for (unsigned i = 0; i < RING; i++) {
                        unsigned step = at + i * stride;

                        if (step >= steps)
                                break;
                        multiply_step<FORMAT, TILES>(sums, x, ring[i], a, left, row, step,
                                                     step + stride);
                        if (step + RING * stride < steps)
                                load_weights(&ring[i], rows, step + RING * stride);
                }
        }
        put_sums<TILES>((float *)shared() + warp * SUMS_OF(TILES), sums);
        block_sync();
        if (gridDim.z > 1 && !last_of_parts<TILES>(a, &of))
                return;
        for (unsigned i = threadIdx.x; i < TILES * 8 * WIDTH; i += blockDim.x)
                finish<EPILOGUE, WIDTH>(a, of, row, i / WIDTH, i % WIDTH);
}

/* ---- launching ---- */

template <linear_format FORMAT, linear_epilogue EPILOGUE>
static int launch_tiles(device *device, const launch &launch, const linear_args *args)
{
        unsigned tiles = tiles_of(args->rows_max);
        void (*kernel)(linear_args) = tiles == 1   ? multiply<FORMAT, EPILOGUE, 1>
                                      : tiles == 2 ? multiply<FORMAT, EPILOGUE, 2>
                                      : tiles == 4 ? multiply<FORMAT, EPILOGUE, 4>
                                                   : multiply<FORMAT, EPILOGUE, 8>;

        return device_launch(device, STREAM_STEPS, launch, kernel, *args);
}

template <linear_format FORMAT>
static int launch_epilogue(device *device, const launch &launch, const linear_args *args)
{
        switch (args->epilogue) {
        case LINEAR_STORE:
                return launch_tiles<FORMAT, LINEAR_STORE>(device, launch, args);
        case LINEAR_ADD:
                return launch_tiles<FORMAT, LINEAR_ADD>(device, launch, args);
        case LINEAR_ACT:
                return launch_tiles<FORMAT, LINEAR_ACT>(device, launch, args);
        case LINEAR_GATE:
                break;
        }
        return launch_tiles<FORMAT, LINEAR_GATE>(device, launch, args);
}

#endif
