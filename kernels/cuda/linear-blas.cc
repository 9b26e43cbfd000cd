#include "kernels/cuda/linear-blas.h"

#include <assert.h>

#include "kernels/cuda/activation.h"
#include "kernels/cuda/intrinsics.h"
#include "kernels/cuda/linear-formats.h"

#define THREADS 256u
/*
 * Rows of a piece: with this, gate and up are whole in a piece, and the addresses where it begins
 * are aligned.
 */
#define ALIGN 16u
/* If possible, whole tiles of the library's kernels. */
#define PIECE          128u
#define WIDEN_COLUMNS  8u /* columns for each thread */
#define FINISH_COLUMNS 2u

/* ---- widen ---- */

struct widen_args {
        linear_matrix w;
        uint32_t first;   /* the first row */
        uint32_t columns; /* of b: a multiple of 64, no more than w's */
        uint16_t *b;      /* (rows of the grid, columns) */
};

/*
 * Columns k .. k + 7 of a row, times their scale; k is a multiple of 8.  LINEAR_INT8,
 * LINEAR_E4M3.
 */
template <linear_format FORMAT>
DEVICE void unpack8_bytes(float numbers[WIDEN_COLUMNS], const linear_matrix &w, size_t row,
                          uint32_t k)
{
        const uint8_t *at = (const uint8_t *)w.weights + row * w.columns + k / 64 * 64 +
                            k / 8 % 4 * 16 + k / GROUP % 2 * 8;
        const uint2 words = *(const uint2 *)at;
        const uint16_t *scales = w.scales + row * ROW_SCALES(FORMAT, w.columns);
        float scale = FORMAT == LINEAR_INT8 ? from_half(scales[k / GROUP])
                                            : ((const float *)scales)[k / 128];

        UNROLL
        for (unsigned i = 0; i < WIDEN_COLUMNS; i++) {
                uint32_t four = i < 4 ? words.x : words.y;
                unsigned byte = i % 4 == 1 ? 2 : i % 4 == 2 ? 1 : i % 4;

                four >>= byte * 8;
                numbers[i] =
                        (FORMAT == LINEAR_INT8 ? (float)(int8_t)four : from_e4m3(four)) * scale;
        }
}

DEVICE void unpack8_int4(float numbers[WIDEN_COLUMNS], const linear_matrix &w, size_t row,
                         uint32_t k)
{
        const uint8_t *at = (const uint8_t *)w.weights + row * (w.columns / 2) + k / 128 * 64 +
                            k / 8 % 4 * 16 + k / GROUP % 4 * 4;
        const uint32_t word = *(const uint32_t *)at;
        float scale = from_half(w.scales[row * (w.columns / GROUP) + k / GROUP]);

        UNROLL
        for (unsigned i = 0; i < WIDEN_COLUMNS; i++)
                numbers[i] = (float)((int)bits_at(word, i, 4) - 8) * scale;
}

/* LINEAR_K4; or, with the fifth bits of the eight columns, LINEAR_K5. */
DEVICE void unpack8_runs(float numbers[WIDEN_COLUMNS], const linear_matrix &w, size_t row,
                         uint32_t k, uint32_t word, uint32_t fifths)
{
        const uint4 block = ((const uint4 *)(w.scales + row * (w.columns / GROUP)))[k / 256];
        uint64_t low = (uint64_t)block.z << 32 | block.y;
        uint64_t high = (uint64_t)block.w << 32 | block.z;
        uint64_t six = k / 128 % 2 ? high >> 16 : low;
        unsigned group = k / GROUP % 4;
        float scale = (float)(six >> group * 6 & 63) * from_half(block.x & 0xffff);
        float min = (float)(six >> (4 + group) * 6 & 63) * from_half(block.x >> 16);

        UNROLL
        for (unsigned i = 0; i < WIDEN_COLUMNS; i++) {
                uint32_t number = bits_at(word, i, 4) | bits_at(fifths, i, 1) << 4;

                numbers[i] = (float)number * scale - min;
        }
}

DEVICE void unpack8_k4(float numbers[WIDEN_COLUMNS], const linear_matrix &w, size_t row, uint32_t k)
{
        const uint8_t *step = (const uint8_t *)w.weights +
                              (row * (w.columns / 128) + k / 128) * STEP_BYTES(LINEAR_K4);
        const uint32_t *words = (const uint32_t *)step + k / 8 % 4 * 4;

        unpack8_runs(numbers, w, row, k, words[k / GROUP % 4], 0);
}

DEVICE void unpack8_k5(float numbers[WIDEN_COLUMNS], const linear_matrix &w, size_t row, uint32_t k)
{
        const uint8_t *step = (const uint8_t *)w.weights +
                              (row * (w.columns / 128) + k / 128) * STEP_BYTES(LINEAR_K5);
        const uint32_t *words = (const uint32_t *)step + k / 8 % 4 * 4;
        uint32_t fifths = ((const uint32_t *)(step + 64))[k / 8 % 4];

        unpack8_runs(numbers, w, row, k, words[k / GROUP % 4], fifths >> k / GROUP % 4 * 4);
}

/* The eight columns belong to two lanes, four to each. */
DEVICE void unpack8_k6(float numbers[WIDEN_COLUMNS], const linear_matrix &w, size_t row, uint32_t k)
{
        const uint8_t *step = (const uint8_t *)w.weights +
                              (row * (w.columns / 128) + k / 128) * STEP_BYTES(LINEAR_K6);
        const uint32_t *words = (const uint32_t *)step, *uppers = (const uint32_t *)(step + 64);
        const uint16_t *scales = w.scales + row * ROW_SCALES(LINEAR_K6, w.columns);
        unsigned group = k / GROUP % 4;
        float scale = (float)((int)((const uint8_t *)scales)[k / 16] - 128) *
                      from_half(scales[w.columns / 256 * 8 + k / 256]);

        UNROLL
        for (unsigned i = 0; i < WIDEN_COLUMNS; i++) {
                unsigned lane = k % 16 / 4 + i / 4, at = k % GROUP / 16 * 4 + i % 4;
                uint32_t upper = uppers[lane * 2 + group / 2] >> group % 2 * 8;
                uint32_t low = bits_at(words[lane * 4 + group], at, 4);
                uint32_t number = low | bits_at(upper, at, 2) << 4;

                numbers[i] = (float)((int)number - 32) * scale;
        }
}

template <linear_format FORMAT>
DEVICE void unpack8(float numbers[WIDEN_COLUMNS], const linear_matrix &w, size_t row, uint32_t k)
{
        if (FORMAT == LINEAR_INT8 || FORMAT == LINEAR_E4M3)
                unpack8_bytes<FORMAT>(numbers, w, row, k);
        if (FORMAT == LINEAR_INT4)
                unpack8_int4(numbers, w, row, k);
        if (FORMAT == LINEAR_K4)
                unpack8_k4(numbers, w, row, k);
        if (FORMAT == LINEAR_K5)
                unpack8_k5(numbers, w, row, k);
        if (FORMAT == LINEAR_K6)
                unpack8_k6(numbers, w, row, k);
}

template <linear_format FORMAT> KERNEL(THREADS) widen_row(widen_args a)
{
        uint32_t k = (blockIdx.y * THREADS + threadIdx.x) * WIDEN_COLUMNS;
        float numbers[WIDEN_COLUMNS];

        wait_for_predecessor(); /* the predecessor may still read b for its product */
        if (k >= a.columns)
                return;
        unpack8<FORMAT>(numbers, a.w, a.first + blockIdx.x, k);
        *(uint4 *)(a.b + (size_t)blockIdx.x * a.columns +
                   k) = { two_bfloats(numbers[0], numbers[1]), two_bfloats(numbers[2], numbers[3]),
                          two_bfloats(numbers[4], numbers[5]),
                          two_bfloats(numbers[6], numbers[7]) };
}

/* ---- finish ---- */

struct finish_args {
        const float *sums; /* (rows_max, width); gate and up alternate, 8 columns each */
        uint32_t width;
        uint32_t first, count; /* the columns of out that sums are for */
        uint32_t n, out_columns;
        const float *bias;
        activation act;
        uint16_t *out;
        const uint32_t *rows;
        const float *factor; /* LINEAR_ACT; or NULL */
        uint32_t factor_columns;
};

/* Column n of row r of out from its sums; `up` is that of LINEAR_GATE. */
template <linear_epilogue EPILOGUE>
DEVICE float finished(const finish_args &a, float sum, float up, uint32_t r, uint32_t n)
{
        bool biased = a.bias && n < a.n;
        float gate = activate(a.act, sum + (biased ? a.bias[n] : 0));

        if (EPILOGUE == LINEAR_ACT)
                return a.factor && n < a.n ? gate * a.factor[(size_t)r * a.factor_columns + n]
                                           : gate;
        return gate * (up + (biased ? a.bias[a.n + n] : 0));
}

/*
 * Columns j and j + 1 of the piece.  All sums are asked for before one is used, so that a thread
 * waits for memory once.
 */
template <linear_epilogue EPILOGUE> KERNEL(THREADS) finish_piece(finish_args a)
{
        uint32_t row = blockIdx.x, j = (blockIdx.y * THREADS + threadIdx.x) * FINISH_COLUMNS;
        uint32_t at = EPILOGUE == LINEAR_GATE ? j / 8 * 16 + j % 8 : j;
        const float *sums = a.sums + (size_t)row * a.width + at;
        uint16_t *out = a.out + (size_t)row * a.out_columns + a.first + j;
        float sum[FINISH_COLUMNS], up[FINISH_COLUMNS] = {}, made[FINISH_COLUMNS];

        wait_for_predecessor();
        if (row >= *a.rows || j >= a.count)
                return;
        UNROLL
        for (unsigned i = 0; i < FINISH_COLUMNS; i++) {
                sum[i] = sums[i];
                if (EPILOGUE == LINEAR_GATE)
                        up[i] = sums[8 + i];
        }
        UNROLL
        for (unsigned i = 0; i < FINISH_COLUMNS; i++)
                made[i] = finished<EPILOGUE>(a, sum[i], up[i], row, a.first + j + i);
        if (j + 1 < a.count)
                *(uint32_t *)out = two_bfloats(made[0], made[1]);
        else
                *out = (uint16_t)two_bfloats(made[0], 0);
}

/* ---- pieces ---- */

static uint32_t round_up(uint32_t rows, uint32_t to)
{
        return (rows + to - 1) / to * to;
}

/* The number of rows of w, of `bytes` bytes each, for which scratch of one kind has room. */
static uint32_t fitting(size_t room, size_t bytes)
{
        uint32_t rows = (uint32_t)(room / bytes);

        return rows < ALIGN ? ALIGN : rows < PIECE ? rows / ALIGN * ALIGN : rows / PIECE * PIECE;
}

/* Rows of w for one column of out. */
static uint32_t parts_of(const linear_args *args)
{
        return args->epilogue == LINEAR_GATE ? 2 : 1;
}

/* Rows of w that are multiplied; where sums are scratch, all rows in memory with padding. */
static uint32_t rows_of(const linear_args *args)
{
        return linear_is_activated(args->epilogue) ? round_up(parts_of(args) * args->n, ALIGN)
                                                   : args->n;
}

static uint32_t piece_of(const linear_args *args, size_t room)
{
        uint32_t piece = rows_of(args), most;

        if (args->w.format != LINEAR_BFLOAT) {
                most = fitting(room, (size_t)args->w.columns * sizeof(uint16_t));
                piece = piece < most ? piece : most;
        }
        if (linear_is_activated(args->epilogue)) {
                most = fitting(room, (size_t)args->rows_max * sizeof(float));
                piece = piece < most ? piece : most;
        }
        return piece;
}

static size_t smaller(size_t a, size_t b)
{
        return a < b ? a : b;
}

static size_t larger(size_t a, size_t b)
{
        return a > b ? a : b;
}

void linear_blas_scratch_size(const linear_matrix *w, linear_epilogue epilogue, uint32_t rows_max,
                              size_t bytes, size_t *ret_weights, size_t *ret_sums)
{
        size_t weights = larger(bytes / sizeof(uint16_t), (size_t)ALIGN * w->columns);
        size_t sums = larger(bytes / sizeof(float), (size_t)ALIGN * rows_max);

        *ret_weights = *ret_sums = 0;
        if (rows_max < linear_blas_rows_min(w))
                return;
        if (w->format != LINEAR_BFLOAT)
                *ret_weights = smaller(weights, (size_t)w->rows * w->columns);
        if (linear_is_activated(epilogue))
                *ret_sums = smaller(sums, (size_t)w->rows * rows_max);
}

static blas_shape shape_of(const linear_args *args, uint32_t n, uint32_t piece)
{
        bool activated = linear_is_activated(args->epilogue);

        return { args->rows_max,
                 n,
                 args->x_columns,
                 args->x_columns,
                 args->w.format == LINEAR_BFLOAT ? args->w.columns : args->x_columns,
                 activated ? piece : args->y_columns,
                 args->epilogue == LINEAR_ADD,
                 args->bias && !activated };
}

static bool is_aligned(const void *at)
{
        return (uintptr_t)at % 16 == 0;
}

/* The library does not scale a bias. */
static bool is_scaled(const linear_args *args)
{
        return args->epilogue == LINEAR_ADD && args->scale != 0 && args->scale != 1;
}

/* The last piece may be smaller, so its shape is asked for, too. */
int linear_blas_serves(blas *blas, const linear_args *args, const linear_blas_scratch *scratch)
{
        uint32_t piece = piece_of(args, scratch->bytes), rest = rows_of(args) % piece;
        blas_shape shape = shape_of(args, piece, piece);
        int r;

        if (!linear_is_activated(args->epilogue) &&
            (!is_aligned(args->y) || !is_aligned(args->bias) || (args->bias && is_scaled(args))))
                return 0;
        r = blas_serves(blas, &shape);
        if (r <= 0 || !rest)
                return r;
        shape = shape_of(args, rest, piece);
        return blas_serves(blas, &shape);
}

/* ---- launching ---- */

static int widen(device *device, const linear_args *args, uint32_t first, uint32_t count,
                 uint16_t *to)
{
        const widen_args widened = { args->w, first, args->x_columns, to };
        const launch launch = { count, (args->x_columns / WIDEN_COLUMNS + THREADS - 1) / THREADS,
                                1,     THREADS,
                                0,     true };

        switch (args->w.format) {
        case LINEAR_INT8:
                return device_launch(device, STREAM_STEPS, launch, widen_row<LINEAR_INT8>, widened);
        case LINEAR_INT4:
                return device_launch(device, STREAM_STEPS, launch, widen_row<LINEAR_INT4>, widened);
        case LINEAR_E4M3:
                return device_launch(device, STREAM_STEPS, launch, widen_row<LINEAR_E4M3>, widened);
        case LINEAR_K4:
                return device_launch(device, STREAM_STEPS, launch, widen_row<LINEAR_K4>, widened);
        case LINEAR_K5:
                return device_launch(device, STREAM_STEPS, launch, widen_row<LINEAR_K5>, widened);
        case LINEAR_K6:
                return device_launch(device, STREAM_STEPS, launch, widen_row<LINEAR_K6>, widened);
        case LINEAR_BFLOAT:
                break;
        }
        assert(!"only packed formats are widened");
        return 0;
}

static int finish(device *device, const linear_args *args, uint32_t first, uint32_t piece,
                  const float *sums)
{
        uint32_t begin = first / parts_of(args), left = args->n - begin;
        uint32_t most = piece / parts_of(args), count = left < most ? left : most;
        const finish_args finished = { sums,        piece,        begin,
                                       count,       args->n,      args->out_columns,
                                       args->bias,  args->act,    args->out,
                                       args->count, args->factor, args->factor_columns };
        const launch launch = { args->rows_max,
                                (count + FINISH_COLUMNS * THREADS - 1) / (FINISH_COLUMNS * THREADS),
                                1,
                                THREADS,
                                0,
                                true };

        return device_launch(device, STREAM_STEPS, launch,
                             args->epilogue == LINEAR_ACT ? finish_piece<LINEAR_ACT>
                                                          : finish_piece<LINEAR_GATE>,
                             finished);
}

int linear_blas(device *device, blas *blas, const linear_args *args,
                const linear_blas_scratch *scratch)
{
        bool packed = args->w.format != LINEAR_BFLOAT;
        bool activated = linear_is_activated(args->epilogue);
        uint32_t rows = rows_of(args), piece = piece_of(args, scratch->bytes);
        int r = 0;

        assert(args->x_columns % 64 == 0 && args->x_columns <= args->w.columns);
        assert(rows <= args->w.rows && (piece == rows || piece % ALIGN == 0));
        assert(!activated || args->n <= args->out_columns);
        for (uint32_t first = 0; first < rows && !r; first += piece) {
                uint32_t count = rows - first < piece ? rows - first : piece;
                const blas_shape shape = shape_of(args, count, piece);
                const uint16_t *w = packed ? scratch->weights
                                           : (const uint16_t *)args->w.weights +
                                                     (size_t)first * args->w.columns;

                if (packed)
                        r = widen(device, args, first, count, scratch->weights);
                if (!r)
                        r = blas_multiply(blas, &shape, is_scaled(args) ? args->scale : 1,
                                          activated ? scratch->sums : args->y + first, args->x, w,
                                          shape.biased ? args->bias + first : nullptr);
                if (!r && activated)
                        r = finish(device, args, first, piece, scratch->sums);
        }
        return r;
}
