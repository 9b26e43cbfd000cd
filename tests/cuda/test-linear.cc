/*
 * Rows times weights, against sums in double.  The device is a stand-in that runs launches at
 * once, so the test can choose its number of multiprocessors.
 */
#include "tests/cuda/fixture.h"
#include "tests/cuda/linear-fixture.h"

static unsigned processors; /* 0: nothing is split */

unsigned device_processors(const device *)
{
        return processors;
}

int device_launch_raw(device *, stream stream, const launch *launch, const void *kernel,
                      device_run *run, const void *args, size_t)
{
        assert_int_equal(stream, STREAM_STEPS);
        run(launch, kernel, args);
        return 0;
}

/* ---- a product ---- */

struct fixture {
        linear_args a;
        row_type type;
        uint32_t columns, parts, count, y_rows;
        double *w;  /* (parts, n, columns) */
        float *was; /* the values of y before: LINEAR_ADD */
        size_t y_bytes;
};

static void pack(fixture *fixture)
{
        linear_matrix *w = &fixture->a.w;
        size_t bytes = linear_row_bytes(w->format, fixture->columns);
        size_t scales = linear_row_scales(w->format, fixture->columns);
        size_t file_bytes = row_bytes(fixture->type, fixture->columns);
        uint8_t *file = make<uint8_t>(file_bytes, 0), *to;
        float *floats = make<float>(fixture->columns, 0);
        uint16_t *scales_to;

        w->columns = linear_columns(w->format, fixture->columns);
        w->rows = fixture->parts == 2 ? (fixture->a.n + 7) / 8 * 16 : (fixture->a.n + 15) / 16 * 16;
        w->weights = to = make<uint8_t>(w->rows * bytes, 0);
        w->scales = scales_to = make<uint16_t>(w->rows * scales, 0);
        fixture->w = make<double>((size_t)fixture->parts * fixture->a.n * fixture->columns, 0);
        for (uint32_t i = 0; i < fixture->parts * fixture->a.n; i++) {
                uint32_t part = i / fixture->a.n, row = i % fixture->a.n;
                uint32_t at = fixture->parts == 2 ? linear_gate_row(part, row) : row;

                roll_row(fixture->type, fixture->columns, file);
                row_to_floats(fixture->type, file, fixture->columns, floats);
                for (uint32_t k = 0; k < fixture->columns; k++)
                        fixture->w[(size_t)i * fixture->columns + k] = floats[k];
                linear_pack_row(w->format, fixture->type, file, fixture->columns, to + at * bytes,
                                scales_to + at * scales);
        }
        free(file);
        free(floats);
}

/* A matrix, and rows of x that are numbers as far as `rows`. */
static void open_world(fixture *fixture, row_type type, linear_epilogue epilogue, uint32_t columns,
                       uint32_t n, uint32_t rows, bool bias)
{
        linear_args *a = &fixture->a;
        uint16_t *x;
        float *biases;

        memset((void *)fixture, 0, sizeof(*fixture));
        fixture->type = type;
        fixture->columns = columns;
        fixture->parts = epilogue == LINEAR_GATE ? 2 : 1;
        fixture->y_rows = rows;
        a->epilogue = epilogue;
        a->w.format = linear_format_of(type);
        a->n = n;
        a->y_columns = n + 3; /* others are beside them */
        a->out_columns = (n + 63) / 64 * 64;
        pack(fixture);
        a->x_columns = (columns + 63) / 64 * 64;
        a->x = x = make<uint16_t>((size_t)rows * a->x_columns, 0);
        for (uint32_t r = 0; r < rows; r++)
                for (uint32_t k = 0; k < columns; k++)
                        x[r * a->x_columns + k] = exact_bfloat(real());
        a->bias = biases = bias ? make<float>(fixture->parts * n, 0) : nullptr;
        for (uint32_t i = 0; bias && i < fixture->parts * n; i++)
                biases[i] = real() * (i % 5 ? 4 : 150);
        fixture->was = make<float>((size_t)rows * n, 0);
        for (size_t i = 0; i < (size_t)rows * n; i++)
                fixture->was[i] = real() * 16;
}

static void close_world(fixture *fixture)
{
        free((void *)fixture->a.w.weights);
        free((void *)fixture->a.w.scales);
        free((void *)fixture->a.x);
        free((void *)fixture->a.bias);
        free(fixture->w);
        free(fixture->was);
}

static void *new_y(const fixture *fixture, uint32_t count)
{
        const linear_args *a = &fixture->a;

        if (linear_is_activated(a->epilogue))
                return make<uint16_t>((size_t)a->rows_max * a->out_columns, 0xff);

        float *y = make<float>((size_t)a->rows_max * a->y_columns, 0xff);

        for (uint32_t r = 0; r < count && a->epilogue == LINEAR_ADD; r++)
                memcpy(y + (size_t)r * a->y_columns, fixture->was + (size_t)r * a->n,
                       a->n * sizeof(*y));
        return y;
}

/*
 * Multiplies the first `count` rows in a bucket of `rows_max`, under all schedules with the same
 * result: y, or out.  x ends behind these rows, so AddressSanitizer sees a kernel that reads more.
 */
static void *run(fixture *fixture, uint32_t rows_max, uint32_t count)
{
        linear_args a = fixture->a;
        bool activated = linear_is_activated(a.epilogue);
        size_t sums, arrived, bytes;
        uint16_t *x = make<uint16_t>((size_t)count * a.x_columns, 0xff);
        void *first = nullptr;

        fixture->a.rows_max = a.rows_max = rows_max;
        bytes = activated ? (size_t)rows_max * a.out_columns * 2
                          : (size_t)rows_max * a.y_columns * 4;
        memcpy(x, a.x, (size_t)count * a.x_columns * sizeof(*x));
        a.x = x;
        a.count = &count;
        linear_scratch_size(nullptr, &a.w, rows_max, &sums, &arrived);
        a.sums = make<float>(sums, 0xff);
        a.arrived = make<unsigned>(arrived, 0);
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule += SCHEDULES_STEP) {
                void *y = new_y(fixture, count);

                a.y = activated ? nullptr : (float *)y;
                a.out = activated ? (uint16_t *)y : nullptr;
                emu_set_schedule(schedule);
                assert_int_equal(linear(nullptr, &a), 0);
                for (size_t i = 0; i < arrived; i++)
                        assert_int_equal(a.arrived[i], 0);
                if (schedule) {
                        assert_memory_equal(y, first, bytes);
                        free(y);
                } else {
                        first = y;
                }
        }
        free(a.sums);
        free(a.arrived);
        free(x);
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

static void check_number(const fixture *fixture, const void *y, uint32_t row, uint32_t n)
{
        const linear_args *a = &fixture->a;
        const double tiny = 2e-6;
        double size, sum = sum_of(fixture, 0, row, n, &size), want = sum, got, allowed;

        if (linear_is_activated(a->epilogue)) {
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

/* ... and nothing elsewhere. */
static void check(const fixture *fixture, const void *y, uint32_t count)
{
        const linear_args *a = &fixture->a;
        bool activated = linear_is_activated(a->epilogue);
        size_t width = activated ? a->out_columns : a->y_columns, bytes = activated ? 2 : 4;

        for (uint32_t r = 0; r < a->rows_max; r++)
                for (uint32_t n = 0; n < width; n++)
                        if (r < count && n < a->n)
                                check_number(fixture, y, r, n);
                        else
                                for (size_t i = 0; i < bytes; i++)
                                        assert_int_equal(
                                                ((const uint8_t *)y)[(r * width + n) * bytes + i],
                                                0xff);
}

static const float scales[] = { 0, 1, -0.22f }; /* of LINEAR_ADD */

static void try_one(row_type type, linear_epilogue epilogue, activation activation,
                    uint32_t columns, uint32_t n, uint32_t rows_max, uint32_t count, bool bias)
{
        fixture fixture;
        void *y;

        open_world(&fixture, type, epilogue, columns, n, count, bias);
        fixture.a.act = activation;
        fixture.a.scale = scales[n % 3];
        y = run(&fixture, rows_max, count);
        check(&fixture, y, count);
        free(y);
        close_world(&fixture);
}

static const row_type kinds[] = { ROW_BF16, ROW_Q8_0, ROW_Q4_0, ROW_F8_E4M3,
                                  ROW_Q4_K, ROW_Q5_K, ROW_Q6_K };

static bool is_blocks(row_type type)
{
        return type == ROW_Q4_K || type == ROW_Q5_K || type == ROW_Q6_K;
}

static uint32_t step_of(row_type type)
{
        return type == ROW_Q4_0 || is_blocks(type) ? 128 : 64;
}

/* This many columns, rounded up to whole blocks. */
static uint32_t whole(row_type type, uint32_t columns)
{
        uint32_t block = is_blocks(type) ? 256 : type == ROW_F8_E4M3 ? 128 : 1;

        return (columns + block - 1) / block * block;
}

static void every_epilogue_of_every_format_is_correct(void **)
{
        for (row_type type : kinds) {
                try_one(type, LINEAR_STORE, ACT_SILU, whole(type, 192), 24, 9, 9, true);
                try_one(type, LINEAR_ADD, ACT_SILU, whole(type, 96), 17, 16, 3, true);
                try_one(type, LINEAR_ADD, ACT_SILU, whole(type, 32), 16, 8, 8, false);
                try_one(type, LINEAR_ADD, ACT_SILU, whole(type, 32), 18, 8, 5, true);
                try_one(type, LINEAR_ACT, ACT_GELU, whole(type, 96), 37, 16, 9, true);
                try_one(type, LINEAR_ACT, ACT_SILU, whole(type, 64), 1, 8, 8, false);
                try_one(type, LINEAR_GATE, ACT_SILU, whole(type, 192), 12, 12, 9, true);
                try_one(type, LINEAR_GATE, ACT_GELU_TANH, whole(type, 64), 67, 4, 2, true);
                try_one(type, LINEAR_GATE, ACT_GELU_TANH, whole(type, 160), 8, 30, 21, false);
        }
}

static void every_activation_is_correct(void **)
{
        for (unsigned i = 0; i < ACT_N; i++)
                for (linear_epilogue epilogue : { LINEAR_GATE, LINEAR_ACT })
                        try_one(ROW_BF16, epilogue, (activation)i, 64, 33, 8, 7, i % 2);
}

/* Rows of x that are NaN, beside one that is a number. */
static void every_activation_of_nan_is_nan(void **)
{
        for (unsigned i = 0; i < ACT_N; i++)
                for (linear_epilogue epilogue : { LINEAR_GATE, LINEAR_ACT }) {
                        fixture fixture;
                        uint16_t *out;

                        open_world(&fixture, ROW_BF16, epilogue, 64, 5, 3, false);
                        fixture.a.act = (activation)i;
                        ((uint16_t *)fixture.a.x)[7] = 0x7fc0;
                        ((uint16_t *)fixture.a.x)[2 * fixture.a.x_columns] = 0xffc0;
                        out = (uint16_t *)run(&fixture, 8, 3);
                        for (uint32_t n = 0; n < 3 * 5; n++) {
                                uint16_t bits = out[n / 5 * fixture.a.out_columns + n % 5];

                                assert_int_equal(isnan(bfloat_to_float(bits)), n / 5 != 1);
                        }
                        free(out);
                        close_world(&fixture);
                }
}

static void multiplies_unpacked_types_as_bfloats(void **)
{
        try_one(ROW_F32, LINEAR_STORE, ACT_SILU, 77, 5, 3, 3, true);
        try_one(ROW_F16, LINEAR_STORE, ACT_SILU, 65, 5, 3, 3, true);
}

/* The ring of a warp has 2 to 4 steps; there are 8 warps. */
static void reads_rings_that_wrap_twice_in_order(void **)
{
        for (row_type type : kinds) {
                uint32_t step = step_of(type);

                try_one(type, LINEAR_STORE, ACT_SILU, whole(type, (9 * 8 + 3) * step), 16, 8, 7,
                        false);
                try_one(type, LINEAR_STORE, ACT_SILU, whole(type, 9 * 8 * step), 16, 16, 16, false);
                try_one(type, LINEAR_STORE, ACT_SILU, whole(type, (5 * 8 - 1) * step), 16, 32, 31,
                        false);
                try_one(type, LINEAR_STORE, ACT_SILU, whole(type, (5 * 8 + 1) * step), 16, 40, 39,
                        false);
        }
}

static void sums_any_number_of_columns(void **)
{
        for (row_type type : kinds)
                for (uint32_t columns : { 32u, 64u, 128u, 320u, 416u, 1024u, 1056u, 2048u, 2080u })
                        try_one(type, LINEAR_STORE, ACT_SILU, whole(type, columns), 16, 2, 1,
                                false);
}

/* However many rows, in whatever bucket: all rows of a step of `most` come first, then fewer. */
static void compare_counts(row_type type, linear_epilogue epilogue, uint32_t columns, uint32_t n)
{
        static const uint32_t buckets[][2] = { { 1, 1 },   { 8, 7 },   { 64, 8 },  { 9, 9 },
                                               { 32, 17 }, { 64, 63 }, { 65, 65 }, { 130, 64 } };
        fixture fixture;
        uint8_t *all;
        size_t row_bytes;

        open_world(&fixture, type, epilogue, columns, n, 130, true);
        row_bytes = linear_is_activated(epilogue) ? (size_t)fixture.a.out_columns * 2
                                                  : (size_t)fixture.a.y_columns * 4;
        all = (uint8_t *)run(&fixture, 130, 130);
        check(&fixture, all, 130);
        for (const uint32_t *bucket : buckets) {
                uint8_t *y = (uint8_t *)run(&fixture, bucket[0], bucket[1]);

                assert_memory_equal(y, all, bucket[1] * row_bytes);
                for (size_t i = bucket[1] * row_bytes; i < bucket[0] * row_bytes; i++)
                        assert_int_equal(y[i], 0xff);
                free(y);
        }
        free(all);
        close_world(&fixture);
}

static void a_row_has_the_same_bits_among_any_number_of_rows(void **)
{
        compare_counts(ROW_BF16, LINEAR_STORE, 1152, 13);
        compare_counts(ROW_Q8_0, LINEAR_ADD, 224, 16);
        compare_counts(ROW_Q4_0, LINEAR_GATE, 224, 16);
        compare_counts(ROW_F8_E4M3, LINEAR_STORE, 384, 16);
        compare_counts(ROW_Q4_K, LINEAR_ADD, 512, 16);
        compare_counts(ROW_Q5_K, LINEAR_STORE, 256, 13);
        compare_counts(ROW_Q6_K, LINEAR_GATE, 256, 16);
        compare_counts(ROW_Q4_0, LINEAR_ACT, 128, 19);
}

/* ... and of no other row */
static void a_nan_weight_affects_only_its_own_output(void **)
{
        const uint32_t columns = 256, bad = 5;
        uint8_t file[2 * 132] = {};
        float *before, *after;
        fixture fixture;

        open_world(&fixture, ROW_F8_E4M3, LINEAR_STORE, columns, 16, 3, true);
        before = (float *)run(&fixture, 8, 3);
        file[132 + 4 + roll() % 128] = roll() % 2 ? 0x7f : 0xff;
        linear_pack_row(
                LINEAR_E4M3, ROW_F8_E4M3, file, columns,
                (uint8_t *)fixture.a.w.weights + bad * linear_row_bytes(LINEAR_E4M3, columns),
                (uint16_t *)fixture.a.w.scales + bad * linear_row_scales(LINEAR_E4M3, columns));
        after = (float *)run(&fixture, 8, 3);
        for (uint32_t r = 0; r < 3; r++)
                for (uint32_t n = 0; n < 16; n++)
                        if (n == bad)
                                assert_true(isnan(after[r * fixture.a.y_columns + n]));
                        else
                                assert_memory_equal(&after[r * fixture.a.y_columns + n],
                                                    &before[r * fixture.a.y_columns + n], 4);
        free(before);
        free(after);
        close_world(&fixture);
}

static void writes_nothing_if_there_are_no_rows(void **)
{
        fixture fixture;
        void *y;

        open_world(&fixture, ROW_BF16, LINEAR_STORE, 128, 16, 4, false);
        y = run(&fixture, 8, 0);
        check(&fixture, y, 0);
        free(y);
        close_world(&fixture);
}

/* A step of `rows` rows, whose sums have `parts` parts; then steps of fewer rows. */
static void try_parts(row_type type, uint32_t steps, uint32_t parts, uint32_t rows)
{
        uint32_t tiles = rows > 32 ? 8 : 2, chunks = rows > 64 ? 2 : 1;
        size_t sums, arrived;
        fixture fixture;
        uint8_t *all;

        open_world(&fixture, type, LINEAR_ADD, steps * step_of(type), 16, rows, true);
        linear_scratch_size(nullptr, &fixture.a.w, rows, &sums, &arrived);
        assert_int_equal(arrived, chunks);
        assert_int_equal(sums, chunks * parts * tiles * 8 * 20);
        all = (uint8_t *)run(&fixture, rows, rows);
        check(&fixture, all, rows);
        for (uint32_t count = 1; count < rows; count += 8) {
                uint8_t *y = (uint8_t *)run(&fixture, count, count);

                assert_memory_equal(y, all, count * fixture.a.y_columns * sizeof(float));
                free(y);
                count += count > 8 ? 40 : 0;
        }
        free(all);
        close_world(&fixture);
}

static void sums_the_parts_of_k_in_order_whichever_ends_last(void **)
{
        processors = 132;
        for (row_type type : kinds) {
                try_parts(type, 16, 2, 65); /* two for each of 4 warps */
                try_parts(type, 52, 3, 9);  /* of the 8 warps of three parts, four have a third */
                try_one(type, LINEAR_GATE, ACT_SILU, whole(type, 33 * step_of(type)), 20, 12, 9,
                        true);
        }
        processors = 0;
}

static void does_not_split_k_of_a_matrix_that_fills_the_device(void **)
{
        linear_matrix w = { LINEAR_BFLOAT, 132 * 2 * 16, 4096, nullptr, nullptr };
        size_t sums, arrived;

        processors = 132;
        linear_scratch_size(nullptr, &w, 64, &sums, &arrived);
        assert_int_equal(sums, 0);
        assert_int_equal(arrived, 0);
        w.rows = 132 * 16;
        linear_scratch_size(nullptr, &w, 8, &sums, &arrived);
        assert_int_equal(arrived, 132);
        assert_int_equal(sums, 132 * 2 * 8 * 20);
        w.columns = 64 * 16; /* one step for each warp would be left */
        w.rows = 16;
        linear_scratch_size(nullptr, &w, 8, &sums, &arrived);
        assert_int_equal(arrived, 1);
        w.columns = 64 * 15;
        linear_scratch_size(nullptr, &w, 8, &sums, &arrived);
        assert_int_equal(arrived, 0);
        processors = 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_epilogue_of_every_format_is_correct),
                cmocka_unit_test(every_activation_is_correct),
                cmocka_unit_test(every_activation_of_nan_is_nan),
                cmocka_unit_test(multiplies_unpacked_types_as_bfloats),
                cmocka_unit_test(sums_any_number_of_columns),
                cmocka_unit_test(reads_rings_that_wrap_twice_in_order),
                cmocka_unit_test(a_row_has_the_same_bits_among_any_number_of_rows),
                cmocka_unit_test(a_nan_weight_affects_only_its_own_output),
                cmocka_unit_test(writes_nothing_if_there_are_no_rows),
                cmocka_unit_test(sums_the_parts_of_k_in_order_whichever_ends_last),
                cmocka_unit_test(does_not_split_k_of_a_matrix_that_fills_the_device),
        };

        roll_from_seed();
        processors = 0;
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
