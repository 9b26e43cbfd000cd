#include "kernels/cuda/linear.h"

#include <assert.h>
#include <string.h>

#include "kernels/cuda/lane.h"
#include "kernels/rows.h"

#define GROUP     32u /* columns that share a scale */
#define TILE_ROWS 16u /* of w */
#define WARPS_MAX 8u
#define CHUNK     64u /* rows of x that a block multiplies, at most */

/* Of a step: its groups, and a row's bytes. */
#define GROUPS_OF(format)  ((format) == LINEAR_INT4 ? 4u : 2u)
#define STEP_BYTES(format) ((format) == LINEAR_BFLOAT ? 128u : 64u)

/* ---- what a lane holds of one step: of rows g and g + 8 of the tile ---- */

template <linear_format FORMAT> struct held;

template <> struct held<LINEAR_BFLOAT> {
        uint4 weights[2][2]; /* of each group */
};

template <> struct held<LINEAR_INT8> {
        uint4 weights[2];
        uint32_t scales[2]; /* of two groups */
};

template <> struct held<LINEAR_INT4> {
        uint4 weights[2];
        uint2 scales[2]; /* of four */
};

DEVICE uint32_t word(const uint4 &of, unsigned i)
{
        return i == 0 ? of.x : i == 1 ? of.y : i == 2 ? of.z : of.w;
}

/* Where the lane begins to read in row g of the tile, or g + 8, and where that row's scales are. */
struct lane_rows {
        const uint8_t *weights[2], *scales[2];
};

template <linear_format FORMAT> DEVICE lane_rows find_rows(const linear_matrix *w, unsigned tile)
{
        unsigned lane = lane_number();
        size_t groups = w->columns / GROUP;
        size_t bytes = groups / GROUPS_OF(FORMAT) * STEP_BYTES(FORMAT);
        lane_rows rows;

        UNROLL
        for (unsigned i = 0; i < 2; i++) {
                size_t row = tile * TILE_ROWS + lane / 4 + i * 8;

                rows.weights[i] = (const uint8_t *)w->weights + row * bytes + lane % 4 * 16;
                rows.scales[i] = (const uint8_t *)(w->scales + row * groups);
        }
        return rows;
}

DEVICE void hold(held<LINEAR_BFLOAT> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 4; i++)
                ret->weights[i / 2][i % 2] =
                        load_once(rows.weights[i / 2] + (size_t)step * 128 + i % 2 * 64);
}

DEVICE void hold(held<LINEAR_INT8> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 2; i++) {
                ret->weights[i] = load_once(rows.weights[i] + (size_t)step * 64);
                ret->scales[i] = ((const uint32_t *)rows.scales[i])[step];
        }
}

DEVICE void hold(held<LINEAR_INT4> *ret, const lane_rows &rows, unsigned step)
{
        for (unsigned i = 0; i < 2; i++) {
                ret->weights[i] = load_once(rows.weights[i] + (size_t)step * 64);
                ret->scales[i] = ((const uint2 *)rows.scales[i])[step];
        }
}

/*
 * A group's weights as bfloats, for two products.  Of the lane's eight columns, the first takes 0, 1 as
 * its columns 2t, 2t+1 and 2, 3 as its columns 2t+8, 2t+9; the second 4, 5 and 6, 7.
 */
DEVICE void widen(uint32_t a[2][4], const held<LINEAR_BFLOAT> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;

                a[two / 2][two % 2 * 2 + row] = word(w.weights[row][group], two);
        }
}

/*
 * 128 .. 255 are the bfloats 0x4300 .. 0x437f, and 256 is 0x4380.  So the seven lower bits of a
 * byte are there with 128 too much; and 128, or 256 if its sign is set, is what has to go.
 */
DEVICE void widen(uint32_t a[2][4], const held<LINEAR_INT8> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;
                uint32_t bytes = word(w.weights[row], group * 2 + two / 2) >> two % 2 * 8;

                a[two / 2][two % 2 * 2 + row] = subtract_bfloats((bytes & 0x007f007f) | 0x43004300,
                                                                 (bytes & 0x00800080) | 0x43004300);
        }
}

DEVICE void widen(uint32_t a[2][4], const held<LINEAR_INT4> &w, unsigned group)
{
        for (unsigned i = 0; i < 8; i++) {
                unsigned row = i / 4, two = i % 4;
                uint32_t bits = word(w.weights[row], group) >> two * 4;

                a[two / 2][two % 2 * 2 + row] =
                        subtract_bfloats((bits & 0x000f000f) | 0x43004300, 0x43084308);
        }
}

DEVICE float scale_of(const held<LINEAR_BFLOAT> &, unsigned, unsigned)
{
        return 1;
}

DEVICE float scale_of(const held<LINEAR_INT8> &w, unsigned row, unsigned group)
{
        return from_half(w.scales[row] >> group * 16 & 0xffff);
}

DEVICE float scale_of(const held<LINEAR_INT4> &w, unsigned row, unsigned group)
{
        return from_half((group < 2 ? w.scales[row].x : w.scales[row].y) >> group % 2 * 16 &
                         0xffff);
}

/* ---- the sums of a tile ---- */

/* The lane's eight columns of x, of one group, and of row g of a tile of eight rows. */
template <linear_format FORMAT>
DEVICE uint4 see(const linear_args &a, unsigned row, unsigned step, unsigned group)
{
        unsigned column = (step * GROUPS_OF(FORMAT) + group) * GROUP;
        uint4 zeros = { 0, 0, 0, 0 };

        row += lane_number() / 4;
        if (row >= a.rows_max || (FORMAT == LINEAR_INT4 && column >= a.x_columns))
                return zeros;
        return *(const uint4 *)(a.x + (size_t)row * a.x_columns + column + lane_number() % 4 * 8);
}

template <linear_format FORMAT>
DEVICE void multiply_group(float sums[4], const uint32_t w[2][4], const uint4 &x,
                           const float scales[2])
{
        const uint32_t first[2] = { x.x, x.y }, second[2] = { x.z, x.w };
        float group[4] = {};

        if (FORMAT == LINEAR_BFLOAT) {
                multiply_bfloats(sums, w[0], first);
                multiply_bfloats(sums, w[1], second);
                return;
        }
        multiply_bfloats(group, w[0], first);
        multiply_bfloats(group, w[1], second);
        UNROLL
        for (unsigned i = 0; i < 4; i++)
                sums[i] = fmaf(scales[i / 2], group[i], sums[i]);
}

/*
 * A step's groups, each with all tiles of x.  x is fetched as many tiles ahead as a step has groups:
 * what is multiplied makes room for one that comes later, which may be the next step's.
 */
template <linear_format FORMAT, unsigned TILES>
DEVICE void multiply_step(float sums[TILES][4], uint4 x[GROUPS_OF(FORMAT)], const held<FORMAT> &w,
                          const linear_args &a, unsigned row, unsigned step, unsigned next)
{
        constexpr unsigned GROUPS = GROUPS_OF(FORMAT);

        UNROLL
        for (unsigned group = 0; group < GROUPS; group++) {
                const float scales[2] = { scale_of(w, 0, group), scale_of(w, 1, group) };
                uint32_t wide[2][4];

                widen(wide, w, group);
                UNROLL
                for (unsigned tile = 0; tile < TILES; tile++) {
                        unsigned here = group * TILES + tile, then = here + GROUPS;
                        uint4 mine = x[here % GROUPS];

                        if (then < GROUPS * TILES)
                                x[here % GROUPS] =
                                        see<FORMAT>(a, row + then % TILES * 8, step, then / TILES);
                        else if (next * GROUPS * GROUP < a.w.columns)
                                x[here % GROUPS] = see<FORMAT>(a, row + then % TILES * 8, next,
                                                               then / TILES - GROUPS);
                        multiply_group<FORMAT>(sums[tile], wide, mine, scales);
                }
        }
}

/* ---- adding up ---- */

/* Sums of a tile in memory: [row of x][row of w], with room so that lanes write side by side. */
#define SUMS_WIDTH     20u
#define SUMS_OF(tiles) ((tiles)*8 * SUMS_WIDTH)

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
 * Where k is in parts, each block leaves its sums, and counts itself in.  Who is last knows that
 * all are there, and goes on with them; it leaves the counter as it was found.
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
        order_writes();
        block_meets(); /* all are written, and the shared ones read */
        if (threadIdx.x == 0) {
                *last = add_atomically(&a.arrived[tile], 1) == gridDim.z - 1;
                if (*last)
                        a.arrived[tile] = 0;
                order_writes(); /* what others wrote before they counted is seen from here on */
        }
        block_meets();
        of->from = all;
        of->count = gridDim.z;
        of->apart = SUMS_OF(TILES);
        return *last;
}

/* g / (1 + e^-z): silu is that with z = g, and gelu, by way of tanh, with a polynomial. */
DEVICE float act(activation which, float g)
{
        const float log2_e = 1.44269504f, root = 1.59576912f /* 2 sqrt(2 / pi) */;
        float z = which == ACT_SILU ? g : root * fmaf(0.044715f * g * g, g, g);

        return g / (1 + power_of_two(-log2_e * z));
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
                a.y[(size_t)row * a.n + n] = sum;
        if (EPILOGUE == LINEAR_ADD)
                a.y[(size_t)row * a.n + n] += sum;
        if (EPILOGUE == LINEAR_GATE) {
                float up = total(of, r, at + WIDTH) + (a.bias ? a.bias[a.n + n] : 0);

                a.out[(size_t)row * a.out_columns + n] =
                        (uint16_t)two_bfloats(act(a.act, sum) * up, 0);
        }
}

/* ---- the kernel ---- */

/* Two blocks on a multiprocessor, wherever their registers suffice. */
template <linear_format FORMAT, linear_epilogue EPILOGUE, unsigned TILES>
KERNEL(256, FORMAT == LINEAR_BFLOAT || GROUPS_OF(FORMAT) * TILES <= 8 ? 2 : 1)
multiply(linear_args a)
{
        constexpr unsigned GROUPS = GROUPS_OF(FORMAT), RING = TILES <= 2 ? 4 : 2;
        constexpr unsigned WIDTH = EPILOGUE == LINEAR_GATE ? TILE_ROWS / 2 : TILE_ROWS;
        const unsigned warp = threadIdx.x / LANES, row = blockIdx.x * CHUNK;
        const unsigned stride = blockDim.x / LANES * gridDim.z;
        const unsigned first = blockIdx.z * (blockDim.x / LANES) + warp;
        const unsigned steps = a.w.columns / (GROUPS * GROUP);
        const lane_rows rows = find_rows<FORMAT>(&a.w, blockIdx.y);
        held<FORMAT> ring[RING];
        float sums[TILES][4] = {};
        uint4 x[GROUPS] = {};
        addends of = { (const float *)shared(), blockDim.x / LANES, SUMS_OF(TILES) };

        UNROLL
        for (unsigned i = 0; i < RING; i++)
                if (first + i * stride < steps)
                        hold(&ring[i], rows, first + i * stride);
        wait_for_predecessor();
        let_successor_begin(); /* it writes nothing before all of this has ended */
        UNROLL
        for (unsigned i = 0; i < GROUPS; i++)
                if (first < steps)
                        x[i] = see<FORMAT>(a, row + i % TILES * 8, first, i / TILES);
        if (row >= *a.count)
                return;
        for (unsigned at = first; at < steps; at += RING * stride) {
                UNROLL
                for (unsigned i = 0; i < RING; i++) {
                        unsigned step = at + i * stride;

                        if (step >= steps)
                                break;
                        multiply_step<FORMAT, TILES>(sums, x, ring[i], a, row, step, step + stride);
                        if (step + RING * stride < steps)
                                hold(&ring[i], rows, step + RING * stride);
                }
        }
        put_sums<TILES>((float *)shared() + warp * SUMS_OF(TILES), sums);
        block_meets();
        if (gridDim.z > 1 && !last_of_parts<TILES>(a, &of))
                return;
        for (unsigned i = threadIdx.x; i < TILES * 8 * WIDTH; i += blockDim.x)
                finish<EPILOGUE, WIDTH>(a, of, row, i / WIDTH, i % WIDTH);
}

/* ---- launching ---- */

static unsigned steps_of(const linear_matrix *w)
{
        return w->columns / (GROUP * GROUPS_OF(w->format));
}

static unsigned warps_of(const linear_matrix *w)
{
        return steps_of(w) <= 16 ? 4 : WARPS_MAX;
}

/* Enough blocks for two on each processor, as long as each warp has two steps left. */
static unsigned parts_of(const device *device, const linear_matrix *w)
{
        unsigned tiles = w->rows / TILE_ROWS;
        unsigned wanted = tiles ? 2 * device_processors(device) / tiles : 1;
        unsigned most = steps_of(w) / (2 * warps_of(w));
        unsigned parts = wanted < most ? wanted : most;

        return parts ? parts : 1;
}

/* Tiles of eight rows of x: 1, 2, 4 or 8. */
static unsigned tiles_of(uint32_t rows_max)
{
        return rows_max <= 8 ? 1 : rows_max <= 16 ? 2 : rows_max <= 32 ? 4 : 8;
}

static unsigned chunks_of(uint32_t rows_max)
{
        return rows_max / CHUNK + (rows_max % CHUNK != 0);
}

void linear_room(const device *device, const linear_matrix *w, uint32_t rows_max, size_t *ret_sums,
                 size_t *ret_arrived)
{
        unsigned parts = parts_of(device, w);
        size_t tiles = (size_t)w->rows / TILE_ROWS * chunks_of(rows_max);

        *ret_arrived = parts > 1 ? tiles : 0;
        *ret_sums = *ret_arrived * parts * SUMS_OF(tiles_of(rows_max));
}

template <linear_format FORMAT, linear_epilogue EPILOGUE>
static int launch_tiles(device *device, const linear_args *args)
{
        unsigned tiles = tiles_of(args->rows_max), warps = warps_of(&args->w);
        const launch launch = { chunks_of(args->rows_max),
                                args->w.rows / TILE_ROWS,
                                parts_of(device, &args->w),
                                warps * LANES,
                                warps * SUMS_OF(tiles) * sizeof(float),
                                true };
        void (*kernel)(linear_args) = tiles == 1   ? multiply<FORMAT, EPILOGUE, 1>
                                      : tiles == 2 ? multiply<FORMAT, EPILOGUE, 2>
                                      : tiles == 4 ? multiply<FORMAT, EPILOGUE, 4>
                                                   : multiply<FORMAT, EPILOGUE, 8>;

        return device_launch(device, STREAM_STEPS, launch, kernel, *args);
}

template <linear_format FORMAT> static int launch_epilogue(device *device, const linear_args *args)
{
        switch (args->epilogue) {
        case LINEAR_STORE:
                return launch_tiles<FORMAT, LINEAR_STORE>(device, args);
        case LINEAR_ADD:
                return launch_tiles<FORMAT, LINEAR_ADD>(device, args);
        case LINEAR_GATE:
                break;
        }
        return launch_tiles<FORMAT, LINEAR_GATE>(device, args);
}

int linear(device *device, const linear_args *args)
{
        const linear_matrix *w = &args->w;

        assert(w->rows % TILE_ROWS == 0 && w->columns % (GROUP * GROUPS_OF(w->format)) == 0);
        assert(args->x_columns % 64 == 0 && args->x_columns <= w->columns);
        assert(w->columns - args->x_columns < GROUP * GROUPS_OF(w->format));
        assert(args->n <= (args->epilogue == LINEAR_GATE ? w->rows / 2 : w->rows));
        assert(args->epilogue != LINEAR_GATE || args->n <= args->out_columns);
        switch (w->format) {
        case LINEAR_BFLOAT:
                return launch_epilogue<LINEAR_BFLOAT>(device, args);
        case LINEAR_INT8:
                return launch_epilogue<LINEAR_INT8>(device, args);
        case LINEAR_INT4:
                break;
        }
        return launch_epilogue<LINEAR_INT4>(device, args);
}

/* ---- packing ---- */

linear_format linear_format_of(row_type type)
{
        return type == ROW_Q8_0 ? LINEAR_INT8 : type == ROW_Q4_0 ? LINEAR_INT4 : LINEAR_BFLOAT;
}

uint32_t linear_columns(linear_format format, uint32_t columns)
{
        uint32_t step = GROUP * GROUPS_OF(format);

        assert(columns <= UINT32_MAX - step);
        return (columns + step - 1) / step * step;
}

size_t linear_row_bytes(linear_format format, uint32_t columns)
{
        return (size_t)linear_columns(format, columns) / (GROUP * GROUPS_OF(format)) *
               STEP_BYTES(format);
}

size_t linear_row_scales(linear_format format, uint32_t columns)
{
        return format == LINEAR_BFLOAT ? 0 : linear_columns(format, columns) / GROUP;
}

/* To nearest, ties to even. */
static uint16_t bfloat_of(float f)
{
        uint32_t bits = float_bits(f);

        if (f != f)
                return (uint16_t)(bits >> 16 | 0x40);
        return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void pack_bfloats(row_type type, const uint8_t *row, uint32_t columns, uint16_t *to)
{
        float piece[256]; /* whole blocks of any type */
        const uint32_t most = sizeof(piece) / sizeof(*piece);

        for (uint32_t at = 0; at < columns; at += most) {
                uint32_t count = columns - at < most ? columns - at : most;

                row_to_floats(type, row, count, piece);
                for (uint32_t i = 0; i < count; i++)
                        to[at + i] = bfloat_of(piece[i]);
                row += row_bytes(type, count);
        }
}

/* A block's columns 8t .. 8t+7 go to lane t: byte i of a word has column 0 2 1 3. */
static void pack_q8_0(const uint8_t *block, uint8_t *step, uint32_t group)
{
        static const uint8_t order[4] = { 0, 2, 1, 3 };

        for (uint32_t i = 0; i < GROUP; i++)
                step[i / 8 * 16 + group * 8 + i % 8 / 4 * 4 + i % 4] =
                        block[2 + i / 4 * 4 + order[i % 4]];
}

static void pack_q4_0(const uint8_t *block, uint8_t *step, uint32_t group)
{
        for (uint32_t lane = 0; lane < 4; lane++) {
                uint32_t word = 0;

                for (uint32_t i = 0; i < 8; i++) {
                        uint32_t column = lane * 8 + i;
                        uint32_t byte = block[2 + column % 16];

                        word |= (byte >> column / 16 * 4 & 15) << (i / 2 * 4 + i % 2 * 16);
                }
                memcpy(step + lane * 16 + group * 4, &word, sizeof(word));
        }
}

void linear_pack_row(linear_format format, row_type type, const void *file_row, uint32_t columns,
                     void *ret_weights, uint16_t *ret_scales)
{
        const uint8_t *row = (const uint8_t *)file_row;
        uint8_t *to = (uint8_t *)ret_weights;
        uint32_t groups = GROUPS_OF(format);
        size_t bytes = row_bytes(type, GROUP); /* of a block, unless LINEAR_BFLOAT */

        memset(to, 0, linear_row_bytes(format, columns)); /* any number is zero at scale 0 */
        if (format == LINEAR_BFLOAT) {
                pack_bfloats(type, row, columns, (uint16_t *)ret_weights);
                return;
        }
        assert(linear_format_of(type) == format && columns % GROUP == 0);
        memset(ret_scales, 0, linear_row_scales(format, columns) * sizeof(*ret_scales));
        for (uint32_t i = 0; i < columns / GROUP; i++, row += bytes) {
                uint8_t *step = to + (size_t)(i / groups) * STEP_BYTES(format);

                memcpy(&ret_scales[i], row, sizeof(*ret_scales));
                if (format == LINEAR_INT8)
                        pack_q8_0(row, step, i % groups);
                else
                        pack_q4_0(row, step, i % groups);
        }
}
