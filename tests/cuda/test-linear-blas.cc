/*
 * Products of many rows, by the library's stand-in and the kernels around it, against sums in
 * double.  The device is a stand-in that runs launches at once.
 *
 * Scratch is as large as linear_blas_scratch_size() says, with guard bytes behind it that must stay
 * unchanged. Rows of x past the valid ones hold garbage of various kinds, which is multiplied and
 * must not show in any result.
 */
#include "tests/cuda/fixture.h"

#include <math.h>
#include <time.h>
#include <initializer_list>

#include "kernels/convert.h"
#include "kernels/cuda/linear-blas.h"

#define PLENTY ((size_t)1 << 20) /* of scratch: nothing here needs pieces */
#define BEHIND 64u               /* bytes */

static uint64_t dice;
static unsigned launches;

int device_launch_raw(device *, stream stream, const launch *launch, const void *kernel,
                      device_run *run, const void *args, size_t)
{
        assert_int_equal(stream, STREAM_STEPS);
        run(launch, kernel, args);
        launches++;
        return 0;
}

unsigned device_processors(const device *)
{
        return 1;
}

bool device_is_capturing(const device *, stream)
{
        return false;
}

static uint32_t roll(uint32_t below)
{
        return (uint32_t)(next_random(&dice) >> 33) % below;
}

static float real(void) /* -1 .. 1, exact as a bfloat */
{
        return (float)((int)roll(255) - 127) / 128;
}

/* To nearest, ties to even, by asking both neighbours. */
static uint16_t nearest_bfloat(double number)
{
        uint16_t low = (uint16_t)(float_bits((float)fabs(number)) >> 16), high;
        double below, above;

        if (bfloat_to_float(low) > fabs(number))
                low--;
        high = (uint16_t)(low + 1);
        below = fabs(number) - bfloat_to_float(low);
        above = bfloat_to_float(high) - fabs(number);
        if (above < below || (above <= below && low % 2))
                low = high;
        return (uint16_t)(low | (signbit(number) ? 0x8000 : 0));
}

static uint16_t exact_bfloat(float f)
{
        assert_int_equal(float_bits(f) & 0xffff, 0);
        return (uint16_t)(float_bits(f) >> 16);
}

/* With something behind that is not to be written. */
template <class T> static T *make(size_t count, int byte)
{
        void *made;

        if (posix_memalign(&made, 256, count * sizeof(T) + BEHIND))
                abort();
        memset(made, byte, count * sizeof(T));
        memset((uint8_t *)made + count * sizeof(T), 0xa5, BEHIND);
        return (T *)made;
}

template <class T> static void unmake(T *made, size_t count)
{
        for (unsigned i = 0; i < BEHIND; i++)
                assert_int_equal(((const uint8_t *)(made + count))[i], 0xa5);
        free((void *)made);
}

/* ---- a product ---- */

struct fixture {
        linear_args a;
        uint32_t columns, parts;
        size_t w_bytes, w_scales, x_count;
        double *w; /* (parts, n, columns): the numbers that the library is to multiply */
        float *was;
        size_t scratch; /* bytes of each kind */
};

/* A small number, of either sign. */
static void roll_half(uint8_t *to)
{
        uint16_t half = float_to_half((float)((int)roll(2047) - 1023) / 65536);

        memcpy(to, &half, 2);
}

/* Any codes that are numbers, and a small scale that no half could hold. */
static void roll_e4m3(uint32_t columns, uint8_t *row)
{
        for (uint32_t k = 0; k < columns; k += 128, row += 132) {
                float scale = (float)((int)roll(2047) - 1023) / 100000;

                memcpy(row, &scale, 4);
                for (uint32_t i = 4; i < 132; i++)
                        row[i] = (uint8_t)(roll(127) | roll(2) << 7);
        }
}

/* Blocks of random bytes, except for the halves that multiply them. */
static void roll_row(row_type type, uint32_t columns, uint8_t *row)
{
        size_t block = type == ROW_Q8_0 ? 34 : type == ROW_Q4_0 ? 18 : row_bytes(type, 256);

        for (uint32_t k = 0; type == ROW_BF16 && k < columns; k++) {
                uint16_t bits = exact_bfloat(real());

                memcpy(row + k * 2, &bits, 2);
        }
        if (type == ROW_F8_E4M3)
                roll_e4m3(columns, row);
        if (type == ROW_BF16 || type == ROW_F8_E4M3)
                return;
        for (size_t i = 0; i < row_bytes(type, columns); i++)
                row[i] = (uint8_t)roll(256);
        for (size_t at = 0; at < row_bytes(type, columns); at += block) {
                roll_half(row + at + (type == ROW_Q6_K ? 208 : 0));
                if (type == ROW_Q4_K || type == ROW_Q5_K)
                        roll_half(row + at + 2);
        }
}

static void pack(fixture *fixture, row_type type)
{
        linear_matrix *w = &fixture->a.w;
        uint32_t n = fixture->a.n, columns = fixture->columns;
        size_t bytes, scales;
        uint8_t *file = make<uint8_t>(row_bytes(type, columns), 0), *to;
        float *floats = make<float>(columns, 0);
        uint16_t *scales_to;

        w->format = linear_format_of(type);
        w->columns = linear_columns(w->format, columns);
        w->rows = fixture->parts == 2 ? (n + 7) / 8 * 16 : (n + 15) / 16 * 16;
        bytes = linear_row_bytes(w->format, columns);
        scales = linear_row_scales(w->format, columns);
        fixture->w_bytes = w->rows * bytes;
        fixture->w_scales = w->rows * scales;
        w->weights = to = make<uint8_t>(fixture->w_bytes, 0);
        w->scales = scales_to = make<uint16_t>(fixture->w_scales, 0);
        fixture->w = make<double>((size_t)fixture->parts * n * columns, 0);
        for (uint32_t i = 0; i < fixture->parts * n; i++) {
                uint32_t at = fixture->parts == 2 ? linear_gate_row(i / n, i % n) : i;

                roll_row(type, columns, file);
                row_to_floats(type, file, columns, floats);
                for (uint32_t k = 0; k < columns; k++)
                        fixture->w[(size_t)i * columns + k] =
                                bfloat_to_float(nearest_bfloat(floats[k]));
                linear_pack_row(w->format, type, file, columns, to + at * bytes,
                                scales_to + at * scales);
        }
        free(file);
        free(floats);
}

/* A matrix, and `n` rows of numbers. */
static fixture new_world(row_type type, linear_epilogue epilogue, uint32_t columns, uint32_t n,
                         uint32_t rows, bool bias)
{
        fixture fixture = {};
        linear_args *a = &fixture.a;
        uint16_t *x;
        float *biases;

        fixture.scratch = PLENTY;
        fixture.columns = columns;
        fixture.parts = epilogue == LINEAR_GATE ? 2 : 1;
        a->epilogue = epilogue;
        a->n = n;
        a->y_columns = n + 3; /* others are beside them */
        a->out_columns = (n + 63) / 64 * 64;
        pack(&fixture, type);
        a->x_columns = (columns + 63) / 64 * 64;
        fixture.x_count = (size_t)rows * a->x_columns;
        a->x = x = make<uint16_t>(fixture.x_count, 0);
        for (uint32_t r = 0; r < rows; r++)
                for (uint32_t k = 0; k < columns; k++)
                        x[r * a->x_columns + k] = exact_bfloat(real());
        a->bias = biases = bias ? make<float>(fixture.parts * n, 0) : nullptr;
        for (uint32_t i = 0; bias && i < fixture.parts * n; i++)
                biases[i] = real() * (i % 5 ? 4 : 150);
        fixture.was = make<float>((size_t)rows * n, 0);
        for (size_t i = 0; i < (size_t)rows * n; i++)
                fixture.was[i] = real() * 16;
        return fixture;
}

static void free_world(fixture *fixture)
{
        unmake((uint8_t *)fixture->a.w.weights, fixture->w_bytes);
        unmake((uint16_t *)fixture->a.w.scales, fixture->w_scales);
        unmake((uint16_t *)fixture->a.x, fixture->x_count);
        if (fixture->a.bias)
                unmake((float *)fixture->a.bias, fixture->parts * fixture->a.n);
        free(fixture->w);
        free(fixture->was);
}

static bool is_activated(const fixture *fixture)
{
        return linear_is_activated(fixture->a.epilogue);
}

/* Bytes of a row that comes out. */
static size_t width_of(const fixture *fixture)
{
        return is_activated(fixture) ? (size_t)fixture->a.out_columns * 2
                                     : (size_t)fixture->a.y_columns * 4;
}

static void run_once(const linear_args *a, const linear_blas_scratch *scratch)
{
        blas *blas;

        assert_int_equal(blas_open(nullptr, &blas), 0);
        assert_int_equal(linear_blas_serves(blas, a, scratch), 1);
        assert_int_equal(linear_blas(nullptr, blas, a, scratch), 0);
        blas_close(blas);
}

/*
 * The result for the first `count` rows in a bucket of `rows_max`: y, or out.  It must be the
 * same under all schedules.  All of x past count is `garbage`.
 */
static uint8_t *run(fixture *fixture, uint32_t rows_max, uint32_t count, uint16_t garbage)
{
        linear_args a = fixture->a;
        size_t weights, sums, bytes = rows_max * width_of(fixture);
        size_t x_count = (size_t)rows_max * a.x_columns;
        uint16_t *x = make<uint16_t>(x_count, 0);
        uint8_t *first = nullptr;
        linear_blas_scratch scratch;

        fixture->a.rows_max = a.rows_max = rows_max;
        for (size_t i = 0; i < x_count; i++)
                x[i] = garbage;
        memcpy(x, a.x, (size_t)count * a.x_columns * sizeof(*x));
        a.x = x;
        a.count = &count;
        linear_blas_scratch_size(&a.w, a.epilogue, rows_max, fixture->scratch, &weights, &sums);
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule += SCHEDULES_STEP) {
                uint8_t *y = make<uint8_t>(bytes, 0xff);

                for (uint32_t r = 0; r < count && a.epilogue == LINEAR_ADD; r++)
                        memcpy(y + r * width_of(fixture), fixture->was + (size_t)r * a.n,
                               a.n * sizeof(float));
                a.y = is_activated(fixture) ? nullptr : (float *)y;
                a.out = is_activated(fixture) ? (uint16_t *)y : nullptr;
                scratch = { fixture->scratch, make<uint16_t>(weights, 0xff),
                            make<float>(sums, 0xff) };
                emu_set_schedule(schedule);
                run_once(&a, &scratch);
                unmake(scratch.weights, weights);
                unmake(scratch.sums, sums);
                if (first) {
                        assert_memory_equal(y, first, count * width_of(fixture));
                        unmake(y, bytes);
                } else {
                        first = y;
                }
        }
        unmake(x, x_count);
        return first;
}

/* ---- expected results ---- */

/* ... and the sum of absolute terms, to which rounding is relative. */
static double sum_of(const fixture *fixture, uint32_t part, uint32_t row, uint32_t n,
                     double *ret_size)
{
        const linear_args *a = &fixture->a;
        const double *w = fixture->w + ((size_t)part * a->n + n) * fixture->columns;
        double sum = a->bias ? a->bias[part * a->n + n] : 0;

        *ret_size = fabs(sum);
        for (uint32_t k = 0; k < fixture->columns; k++) {
                double one = w[k] * bfloat_to_float(a->x[(size_t)row * a->x_columns + k]);

                sum += one;
                *ret_size += fabs(one);
        }
        return sum;
}

static double act(activation which, double g)
{
        switch (which) {
        case ACT_GELU:
                return 0.5 * g * (1 + erf(g / sqrt(2)));
        case ACT_RELU:
                return g < 0 ? 0 : g;
        case ACT_RELU_SQUARE:
                return g < 0 ? 0 : g * g;
        case ACT_SILU:
                return g / (1 + exp(-g));
        default:
                return 0.5 * g * (1 + tanh(sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
        }
}

/* By how much more than its argument an activation may be off, near g. */
static double steepness(activation which, double g, double off)
{
        return which == ACT_RELU_SQUARE ? 2 * (fabs(g) + off) : 1.13;
}

static void check_number(const fixture *fixture, const uint8_t *y, uint32_t row, uint32_t n)
{
        const linear_args *a = &fixture->a;
        const double tiny = 2e-6;
        double size, sum = sum_of(fixture, 0, row, n, &size), want = sum, got, allowed;

        if (is_activated(fixture)) {
                double up_size = 0, up = 1, at = act(a->act, sum);

                if (a->epilogue == LINEAR_GATE)
                        up = sum_of(fixture, 1, row, n, &up_size);
                want = at * up;
                got = bfloat_to_float(((const uint16_t *)y)[(size_t)row * a->out_columns + n]);
                size *= steepness(a->act, sum, tiny * size);
                allowed = fabs(want) / 256 + tiny * (size * fabs(up) + fabs(at) * up_size) + 1e-30;
        } else {
                if (a->epilogue == LINEAR_ADD)
                        want = want * (a->scale != 0 ? (double)a->scale : 1) +
                               fixture->was[(size_t)row * a->n + n];
                got = ((const float *)y)[(size_t)row * a->y_columns + n];
                allowed = tiny * (size + fabs(want));
        }
        if (!(fabs(got - want) <= allowed)) {
                print_message("row %u, n %u: %g, not %g, which is more than %g off\n", row, n, got,
                              want, allowed);
                fail();
        }
}

/* ... and nothing beside them; of out nothing elsewhere. */
static void check(const fixture *fixture, const uint8_t *y, uint32_t count)
{
        const linear_args *a = &fixture->a;
        size_t number = is_activated(fixture) ? 2 : 4;

        for (uint32_t r = 0; r < count; r++)
                for (uint32_t n = 0; n < a->n; n++)
                        check_number(fixture, y, r, n);
        for (uint32_t r = 0; r < a->rows_max; r++)
                for (size_t i = is_activated(fixture) && r >= count ? 0 : a->n * number;
                     i < width_of(fixture); i++)
                        assert_int_equal(y[r * width_of(fixture) + i], 0xff);
}

static const row_type kinds[] = { ROW_BF16, ROW_Q8_0, ROW_Q4_0, ROW_F8_E4M3,
                                  ROW_Q4_K, ROW_Q5_K, ROW_Q6_K };

/* This many columns, rounded up to whole blocks. */
static uint32_t whole(row_type type, uint32_t columns)
{
        bool is_blocks = type == ROW_Q4_K || type == ROW_Q5_K || type == ROW_Q6_K;
        uint32_t block = is_blocks ? 256 : type == ROW_F8_E4M3 ? 128 : 1;

        return (columns + block - 1) / block * block;
}

static const float scales[] = { 0, -0.22f, 1 }; /* of LINEAR_ADD without a bias */

static void try_one(row_type type, linear_epilogue epilogue, activation activation,
                    uint32_t columns, uint32_t n, uint32_t rows_max, uint32_t count, bool bias)
{
        fixture fixture = new_world(type, epilogue, whole(type, columns), n, count, bias);
        uint8_t *y;

        fixture.a.act = activation;
        fixture.a.scale = bias ? 1 : scales[n % 3];
        y = run(&fixture, rows_max, count, 0xffff);
        check(&fixture, y, count);
        unmake(y, rows_max * width_of(&fixture));
        free_world(&fixture);
}

static void every_epilogue_of_every_format_is_correct(void **)
{
        for (row_type type : kinds) {
                try_one(type, LINEAR_STORE, ACT_SILU, 192, 24, 65, 65, true);
                try_one(type, LINEAR_STORE, ACT_SILU, 96, 17, 96, 70, false);
                try_one(type, LINEAR_ADD, ACT_SILU, 288, 33, 80, 66, true);
                try_one(type, LINEAR_ADD, ACT_SILU, 32, 16, 66, 66, false);
                try_one(type, LINEAR_GATE, ACT_SILU, 192, 12, 72, 65, true);
                try_one(type, LINEAR_GATE, ACT_GELU_TANH, 64, 67, 65, 2, true);
                try_one(type, LINEAR_GATE, ACT_GELU_TANH, 160, 8, 65, 65, false);
                try_one(type, LINEAR_GATE, ACT_SILU, 32, 1, 65, 65, true);
                try_one(type, LINEAR_ACT, ACT_GELU, 96, 37, 66, 65, true);
                try_one(type, LINEAR_ACT, ACT_RELU, 64, 1, 65, 65, false);
        }
}

/* More columns than a block widens, and more of out than one finishes. */
static void covers_wide_matrices_with_several_blocks(void **)
{
        try_one(ROW_Q8_0, LINEAR_STORE, ACT_SILU, 2048 + 32, 3, 65, 2, false);
        try_one(ROW_Q4_0, LINEAR_STORE, ACT_SILU, 2 * 2048 + 32, 3, 65, 2, false);
        for (row_type type : { ROW_F8_E4M3, ROW_Q4_K, ROW_Q5_K, ROW_Q6_K })
                try_one(type, LINEAR_STORE, ACT_SILU, 2048 + 256, 3, 65, 2, false);
        try_one(ROW_BF16, LINEAR_GATE, ACT_SILU, 64, 512 + 3, 65, 2, true);
        try_one(ROW_BF16, LINEAR_ACT, ACT_SILU, 64, 512 + 3, 65, 2, true);
}

static void every_activation_is_correct(void **)
{
        for (unsigned i = 0; i < ACT_N; i++)
                for (linear_epilogue epilogue : { LINEAR_GATE, LINEAR_ACT })
                        try_one(ROW_BF16, epilogue, (activation)i, 64, 33, 65, 64, i % 2);
}

/* Of rows that have a single 1, in each place: each weight by itself. */
static void rounds_each_weight_once_to_the_nearest_bfloat(void **)
{
        for (row_type type : { ROW_Q8_0, ROW_Q4_0, ROW_F8_E4M3, ROW_Q4_K, ROW_Q5_K, ROW_Q6_K }) {
                const uint32_t columns = whole(type, 160);
                fixture fixture = new_world(type, LINEAR_STORE, columns, 19, columns, false);
                uint16_t *x = (uint16_t *)fixture.a.x;
                uint8_t *y;

                for (uint32_t r = 0; r < columns; r++)
                        for (uint32_t k = 0; k < columns; k++)
                                x[r * fixture.a.x_columns + k] = r == k ? 0x3f80 : 0;
                y = run(&fixture, columns, columns, 0xffff);
                for (uint32_t r = 0; r < columns; r++)
                        for (uint32_t n = 0; n < 19; n++)
                                assert_true(((const float *)y)[r * fixture.a.y_columns + n] ==
                                            (float)fixture.w[(size_t)n * columns + r]);
                unmake(y, columns * width_of(&fixture));
                free_world(&fixture);
        }
}

static void rows_past_the_count_affect_no_result(void **)
{
        for (linear_epilogue epilogue : { LINEAR_STORE, LINEAR_ADD, LINEAR_GATE, LINEAR_ACT }) {
                fixture fixture = new_world(ROW_Q4_0, epilogue, 96, 20, 66, true);
                uint8_t *nans = run(&fixture, 90, 66, 0xffff),
                        *huge = run(&fixture, 90, 66, 0x7f7f);

                check(&fixture, nans, 66);
                check(&fixture, huge, 66);
                assert_memory_equal(nans, huge, 66 * width_of(&fixture));
                unmake(nans, 90 * width_of(&fixture));
                unmake(huge, 90 * width_of(&fixture));
                free_world(&fixture);
        }
}

/* Of `bytes` scratch: as many pieces, and the same as in one. */
static void try_pieces(row_type type, linear_epilogue epilogue, uint32_t columns, uint32_t n,
                       size_t bytes, unsigned pieces)
{
        fixture fixture = new_world(type, epilogue, columns, n, 68, true);
        unsigned each = 1 + (type != ROW_BF16) + linear_is_activated(epilogue);
        uint8_t *whole, *cut;
        size_t weights, sums;

        whole = run(&fixture, 70, 68, 0xffff);
        launches = 0;
        fixture.scratch = bytes;
        cut = run(&fixture, 70, 68, 0xffff);
        assert_int_equal(launches, EMU_SCHEDULES / SCHEDULES_STEP * pieces * each);
        check(&fixture, cut, 68);
        assert_memory_equal(cut, whole, 68 * width_of(&fixture));
        linear_blas_scratch_size(&fixture.a.w, epilogue, 70, bytes, &weights, &sums);
        assert_true(weights <= bytes / 2 || weights == 16 * fixture.a.w.columns);
        assert_true(sums <= bytes / 4 || sums == 16 * 70);
        unmake(whole, 70 * width_of(&fixture));
        unmake(cut, 70 * width_of(&fixture));
        free_world(&fixture);
}

static void multiplies_in_pieces_if_scratch_is_small(void **)
{
        try_pieces(ROW_Q8_0, LINEAR_STORE, 128, 83, 32 * 128 * 2, 3);
        try_pieces(ROW_Q8_0, LINEAR_ADD, 128, 83, 47 * 128 * 2, 3); /* 32 of 47 are whole */
        try_pieces(ROW_Q4_0, LINEAR_ADD, 64, 65, 16 * 128 * 2, 5);
        try_pieces(ROW_Q4_0, LINEAR_STORE, 64, 40, 1, 3);             /* 16 at least */
        try_pieces(ROW_Q8_0, LINEAR_STORE, 64, 300, 150 * 64 * 2, 3); /* whole tiles: 128 */
        try_pieces(ROW_BF16, LINEAR_GATE, 64, 37, 32 * 70 * 4, 3);
        try_pieces(ROW_BF16, LINEAR_GATE, 64, 37, 1, 5);
        try_pieces(ROW_BF16, LINEAR_ACT, 64, 37, 32 * 70 * 4, 2);
        try_pieces(ROW_Q4_0, LINEAR_ACT, 64, 33, 1, 3);
        /* room for weights is the limit */
        try_pieces(ROW_Q4_0, LINEAR_GATE, 128, 37, 16 * 128 * 2, 5);
        try_pieces(ROW_Q8_0, LINEAR_GATE, 64, 37, 48 * 70 * 4, 2);
        for (row_type type : { ROW_F8_E4M3, ROW_Q4_K, ROW_Q5_K, ROW_Q6_K })
                try_pieces(type, LINEAR_ADD, 256, 37, 16 * 256 * 2, 3);
        try_pieces(ROW_BF16, LINEAR_STORE, 64, 300, 1, 1); /* needs none */
}

static void leaves_few_rows_to_linear_without_scratch(void **)
{
        linear_matrix w = { LINEAR_BFLOAT, 16, 64, nullptr, nullptr };
        size_t weights, sums;

        for (linear_format format : { LINEAR_BFLOAT, LINEAR_INT8, LINEAR_INT4, LINEAR_E4M3,
                                      LINEAR_K4, LINEAR_K5, LINEAR_K6 }) {
                const bool packed = format != LINEAR_BFLOAT;
                const uint32_t from = packed ? 33 : 9;

                w.format = format;
                assert_int_equal(linear_blas_rows_min(&w), from);
                for (uint32_t rows = 1; rows < from; rows++) {
                        linear_blas_scratch_size(&w, LINEAR_GATE, rows, PLENTY, &weights, &sums);
                        assert_int_equal(weights, 0);
                        assert_int_equal(sums, 0);
                }
                linear_blas_scratch_size(&w, LINEAR_GATE, from, PLENTY, &weights, &sums);
                assert_int_equal(weights, packed ? 16 * 64 : 0);
                assert_int_equal(sums, 16 * from);
        }
}

static void does_not_leave_one_row_of_a_large_bf16_matrix_to_linear(void **)
{
        linear_matrix w = { LINEAR_BFLOAT, 4096, 4096, nullptr, nullptr };

        assert_int_equal(linear_blas_rows_min(&w), 1);
        w.rows -= 16;
        assert_int_equal(linear_blas_rows_min(&w), 9);
        w = { LINEAR_INT8, 1u << 20, 4096, nullptr, nullptr };
        assert_int_equal(linear_blas_rows_min(&w), 33);
}

static void leaves_a_bias_that_is_scaled_to_linear(void **)
{
        fixture fixture = new_world(ROW_BF16, LINEAR_ADD, 64, 16, 65, true);
        const linear_blas_scratch none = { PLENTY, nullptr, nullptr };
        alignas(16) float y[4];
        blas *blas;

        assert_int_equal(blas_open(nullptr, &blas), 0);
        fixture.a.rows_max = 65;
        fixture.a.y = y;
        for (float scale : { 0.f, 1.f, 2.f }) {
                fixture.a.scale = scale;
                assert_int_equal(linear_blas_serves(blas, &fixture.a, &none), scale < 2);
        }
        blas_close(blas);
        free_world(&fixture);
}

/* A matrix's rows may begin anywhere, where its parts are of different formats. */
static void leaves_unaligned_operands_to_linear(void **)
{
        fixture fixture = new_world(ROW_BF16, LINEAR_STORE, 64, 16, 65, true);
        const linear_blas_scratch none = { PLENTY, nullptr, nullptr };
        const float *bias = fixture.a.bias;
        alignas(16) float y[8];
        blas *blas;

        assert_int_equal(blas_open(nullptr, &blas), 0);
        fixture.a.rows_max = 65;
        for (linear_epilogue epilogue : { LINEAR_STORE, LINEAR_ADD })
                for (unsigned at : { 0u, 1u, 2u, 3u, 4u }) {
                        fixture.a.epilogue = epilogue;
                        fixture.a.y = y + at;
                        assert_int_equal(linear_blas_serves(blas, &fixture.a, &none), at % 4 == 0);
                        fixture.a.y = y;
                        fixture.a.bias = bias + at;
                        assert_int_equal(linear_blas_serves(blas, &fixture.a, &none), at % 4 == 0);
                        fixture.a.bias = bias;
                }
        blas_close(blas);
        free_world(&fixture);
}

static void asks_for_scratch_only_where_it_is_needed(void **)
{
        linear_matrix w = { LINEAR_BFLOAT, 4096, 1024, nullptr, nullptr };
        const size_t room = (size_t)64 << 20;
        size_t weights, sums;

        linear_blas_scratch_size(&w, LINEAR_STORE, 256, room, &weights, &sums);
        assert_int_equal(weights, 0);
        assert_int_equal(sums, 0);
        linear_blas_scratch_size(&w, LINEAR_GATE, 256, room, &weights, &sums);
        assert_int_equal(weights, 0);
        assert_int_equal(sums, 256 * 4096);
        linear_blas_scratch_size(&w, LINEAR_ACT, 256, room, &weights, &sums);
        assert_int_equal(sums, 256 * 4096);
        w.format = LINEAR_INT4;
        linear_blas_scratch_size(&w, LINEAR_ADD, 256, room, &weights, &sums);
        assert_int_equal(weights, 4096 * 1024);
        assert_int_equal(sums, 0);
        w.rows = 1u << 20;
        linear_blas_scratch_size(&w, LINEAR_GATE, 2048, room, &weights, &sums);
        assert_int_equal(weights, room / 2);
        assert_int_equal(sums, room / 4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_epilogue_of_every_format_is_correct),
                cmocka_unit_test(covers_wide_matrices_with_several_blocks),
                cmocka_unit_test(every_activation_is_correct),
                cmocka_unit_test(rounds_each_weight_once_to_the_nearest_bfloat),
                cmocka_unit_test(rows_past_the_count_affect_no_result),
                cmocka_unit_test(multiplies_in_pieces_if_scratch_is_small),
                cmocka_unit_test(leaves_few_rows_to_linear_without_scratch),
                cmocka_unit_test(does_not_leave_one_row_of_a_large_bf16_matrix_to_linear),
                cmocka_unit_test(leaves_a_bias_that_is_scaled_to_linear),
                cmocka_unit_test(leaves_unaligned_operands_to_linear),
                cmocka_unit_test(asks_for_scratch_only_where_it_is_needed),
        };
        const char *seed = getenv("SEED");

        dice = seed ? strtoull(seed, nullptr, 0) : (uint64_t)time(nullptr);
        print_message("SEED=%llu\n", (unsigned long long)dice);
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
