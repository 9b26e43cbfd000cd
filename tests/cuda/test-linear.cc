/*
 * Rows times weights, against sums in double.  The device is a stand-in that runs launches at
 * once, so the test can choose its number of multiprocessors.
 */
#include "tests/cuda/linear-rig.h"
#include "tests/cuda/rig.h"

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

struct world {
        linear_args a;
        row_type type;
        uint32_t columns, parts, count, y_rows;
        double *w;  /* (parts, n, columns) */
        float *was; /* the values of y before: LINEAR_ADD */
        size_t y_bytes;
};

static void pack(world *world)
{
        linear_matrix *w = &world->a.w;
        size_t bytes = linear_row_bytes(w->format, world->columns);
        size_t scales = linear_row_scales(w->format, world->columns);
        size_t file_bytes = row_bytes(world->type, world->columns);
        uint8_t *file = make<uint8_t>(file_bytes, 0), *to;
        float *floats = make<float>(world->columns, 0);
        uint16_t *scales_to;

        w->columns = linear_columns(w->format, world->columns);
        w->rows = world->parts == 2 ? (world->a.n + 7) / 8 * 16 : (world->a.n + 15) / 16 * 16;
        w->weights = to = make<uint8_t>(w->rows * bytes, 0);
        w->scales = scales_to = make<uint16_t>(w->rows * scales, 0);
        world->w = make<double>((size_t)world->parts * world->a.n * world->columns, 0);
        for (uint32_t i = 0; i < world->parts * world->a.n; i++) {
                uint32_t part = i / world->a.n, row = i % world->a.n;
                uint32_t at = world->parts == 2 ? linear_gate_row(part, row) : row;

                roll_row(world->type, world->columns, file);
                row_to_floats(world->type, file, world->columns, floats);
                for (uint32_t k = 0; k < world->columns; k++)
                        world->w[(size_t)i * world->columns + k] = floats[k];
                linear_pack_row(w->format, world->type, file, world->columns, to + at * bytes,
                                scales_to + at * scales);
        }
        free(file);
        free(floats);
}

/* A matrix, and rows of x that are numbers as far as `rows`. */
static void open_world(world *world, row_type type, linear_epilogue epilogue, uint32_t columns,
                       uint32_t n, uint32_t rows, bool bias)
{
        linear_args *a = &world->a;
        uint16_t *x;
        float *biases;

        memset((void *)world, 0, sizeof(*world));
        world->type = type;
        world->columns = columns;
        world->parts = epilogue == LINEAR_GATE ? 2 : 1;
        world->y_rows = rows;
        a->epilogue = epilogue;
        a->w.format = linear_format_of(type);
        a->n = n;
        a->y_columns = n + 3; /* others are beside them */
        a->out_columns = (n + 63) / 64 * 64;
        pack(world);
        a->x_columns = (columns + 63) / 64 * 64;
        a->x = x = make<uint16_t>((size_t)rows * a->x_columns, 0);
        for (uint32_t r = 0; r < rows; r++)
                for (uint32_t k = 0; k < columns; k++)
                        x[r * a->x_columns + k] = exact_bfloat(real());
        a->bias = biases = bias ? make<float>(world->parts * n, 0) : nullptr;
        for (uint32_t i = 0; bias && i < world->parts * n; i++)
                biases[i] = real() * (i % 5 ? 4 : 150);
        world->was = make<float>((size_t)rows * n, 0);
        for (size_t i = 0; i < (size_t)rows * n; i++)
                world->was[i] = real() * 16;
}

static void close_world(world *world)
{
        free((void *)world->a.w.weights);
        free((void *)world->a.w.scales);
        free((void *)world->a.x);
        free((void *)world->a.bias);
        free(world->w);
        free(world->was);
}

static void *new_y(const world *world, uint32_t count)
{
        const linear_args *a = &world->a;

        if (a->epilogue == LINEAR_GATE)
                return make<uint16_t>((size_t)a->rows_max * a->out_columns, 0xff);

        float *y = make<float>((size_t)a->rows_max * a->y_columns, 0xff);

        for (uint32_t r = 0; r < count && a->epilogue == LINEAR_ADD; r++)
                memcpy(y + (size_t)r * a->y_columns, world->was + (size_t)r * a->n,
                       a->n * sizeof(*y));
        return y;
}

/*
 * Multiplies the first `count` rows in a bucket of `rows_max`, under all schedules with the same
 * result: y, or out.  x ends behind these rows, so AddressSanitizer sees a kernel that reads more.
 */
static void *run(world *world, uint32_t rows_max, uint32_t count)
{
        linear_args a = world->a;
        size_t sums, arrived, bytes;
        uint16_t *x = make<uint16_t>((size_t)count * a.x_columns, 0xff);
        void *first = nullptr;

        world->a.rows_max = a.rows_max = rows_max;
        bytes = a.epilogue == LINEAR_GATE ? (size_t)rows_max * a.out_columns * 2
                                          : (size_t)rows_max * a.y_columns * 4;
        memcpy(x, a.x, (size_t)count * a.x_columns * sizeof(*x));
        a.x = x;
        a.count = &count;
        linear_room(nullptr, &a.w, rows_max, &sums, &arrived);
        a.sums = make<float>(sums, 0xff);
        a.arrived = make<unsigned>(arrived, 0);
        for (unsigned schedule = 0; schedule < EMU_SCHEDULES; schedule += SCHEDULES_STEP) {
                void *y = new_y(world, count);

                a.y = a.epilogue == LINEAR_GATE ? nullptr : (float *)y;
                a.out = a.epilogue == LINEAR_GATE ? (uint16_t *)y : nullptr;
                emu_use(schedule);
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
static double sum_of(const world *world, uint32_t part, uint32_t row, uint32_t n, double *ret_size)
{
        const linear_args *a = &world->a;
        const double *w = world->w + ((size_t)part * a->n + n) * world->columns;
        double sum = a->bias ? a->bias[part * a->n + n] : 0;

        *ret_size = fabs(sum);
        for (uint32_t k = 0; k < world->columns; k++) {
                double one = w[k] * bfloat_to_float(a->x[(size_t)row * a->x_columns + k]);

                sum += one;
                *ret_size += fabs(one);
        }
        return sum;
}

static double act(activation which, double g)
{
        if (which == ACT_SILU)
                return g / (1 + exp(-g));
        return 0.5 * g * (1 + tanh(sqrt(2 / M_PI) * (g + 0.044715 * g * g * g)));
}

static void check_number(const world *world, const void *y, uint32_t row, uint32_t n)
{
        const linear_args *a = &world->a;
        const double tiny = 2e-6;
        double size, sum = sum_of(world, 0, row, n, &size), want = sum, got, allowed;

        if (a->epilogue == LINEAR_GATE) {
                double up_size, up = sum_of(world, 1, row, n, &up_size), at = act(a->act, sum);

                want = at * up;
                got = bfloat_to_float(((const uint16_t *)y)[(size_t)row * a->out_columns + n]);
                /* No activation is steeper than 1.13. */
                allowed = fabs(want) / 256 + tiny * (1.13 * size * fabs(up) + fabs(at) * up_size) +
                          1e-30;
        } else {
                if (a->epilogue == LINEAR_ADD)
                        want += world->was[(size_t)row * a->n + n];
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
static void check(const world *world, const void *y, uint32_t count)
{
        const linear_args *a = &world->a;
        bool gate = a->epilogue == LINEAR_GATE;
        size_t width = gate ? a->out_columns : a->y_columns, bytes = gate ? 2 : 4;

        for (uint32_t r = 0; r < a->rows_max; r++)
                for (uint32_t n = 0; n < width; n++)
                        if (r < count && n < a->n)
                                check_number(world, y, r, n);
                        else
                                for (size_t i = 0; i < bytes; i++)
                                        assert_int_equal(
                                                ((const uint8_t *)y)[(r * width + n) * bytes + i],
                                                0xff);
}

static void try_one(row_type type, linear_epilogue epilogue, activation activation,
                    uint32_t columns, uint32_t n, uint32_t rows_max, uint32_t count, bool bias)
{
        world world;
        void *y;

        open_world(&world, type, epilogue, columns, n, count, bias);
        world.a.act = activation;
        y = run(&world, rows_max, count);
        check(&world, y, count);
        free(y);
        close_world(&world);
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

static void all_epilogues_of_all_formats_are_what_they_should_be(void **)
{
        for (row_type type : kinds) {
                try_one(type, LINEAR_STORE, ACT_SILU, whole(type, 192), 24, 9, 9, true);
                try_one(type, LINEAR_ADD, ACT_SILU, whole(type, 96), 17, 16, 3, true);
                try_one(type, LINEAR_ADD, ACT_SILU, whole(type, 32), 16, 8, 8, false);
                try_one(type, LINEAR_GATE, ACT_SILU, whole(type, 192), 12, 12, 9, true);
                try_one(type, LINEAR_GATE, ACT_GELU_TANH, whole(type, 64), 67, 4, 2, true);
                try_one(type, LINEAR_GATE, ACT_GELU_TANH, whole(type, 160), 8, 30, 21, false);
        }
}

static void parts_of_other_types_are_multiplied_as_bfloats(void **)
{
        try_one(ROW_F32, LINEAR_STORE, ACT_SILU, 77, 5, 3, 3, true);
        try_one(ROW_F16, LINEAR_STORE, ACT_SILU, 65, 5, 3, 3, true);
}

/* The ring of a warp has 2 to 4 steps; there are 8 warps. */
static void rings_that_wrap_twice_are_read_in_order(void **)
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

static void k_of_any_length_is_summed(void **)
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
        world world;
        uint8_t *all;
        size_t row_bytes;

        open_world(&world, type, epilogue, columns, n, 130, true);
        row_bytes = epilogue == LINEAR_GATE ? (size_t)world.a.out_columns * 2
                                            : (size_t)world.a.y_columns * 4;
        all = (uint8_t *)run(&world, 130, 130);
        check(&world, all, 130);
        for (const uint32_t *bucket : buckets) {
                uint8_t *y = (uint8_t *)run(&world, bucket[0], bucket[1]);

                assert_memory_equal(y, all, bucket[1] * row_bytes);
                for (size_t i = bucket[1] * row_bytes; i < bucket[0] * row_bytes; i++)
                        assert_int_equal(y[i], 0xff);
                free(y);
        }
        free(all);
        close_world(&world);
}

static void a_row_is_the_same_bits_among_any_number_of_rows(void **)
{
        compare_counts(ROW_BF16, LINEAR_STORE, 1152, 13);
        compare_counts(ROW_Q8_0, LINEAR_ADD, 224, 16);
        compare_counts(ROW_Q4_0, LINEAR_GATE, 224, 16);
        compare_counts(ROW_F8_E4M3, LINEAR_STORE, 384, 16);
        compare_counts(ROW_Q4_K, LINEAR_ADD, 512, 16);
        compare_counts(ROW_Q5_K, LINEAR_STORE, 256, 13);
        compare_counts(ROW_Q6_K, LINEAR_GATE, 256, 16);
}

/* ... and of no other row */
static void a_code_that_is_no_number_makes_its_rows_sums_none(void **)
{
        const uint32_t columns = 256, bad = 5;
        uint8_t file[2 * 132] = {};
        float *before, *after;
        world world;

        open_world(&world, ROW_F8_E4M3, LINEAR_STORE, columns, 16, 3, true);
        before = (float *)run(&world, 8, 3);
        file[132 + 4 + roll() % 128] = roll() % 2 ? 0x7f : 0xff;
        linear_pack_row(LINEAR_E4M3, ROW_F8_E4M3, file, columns,
                        (uint8_t *)world.a.w.weights + bad * linear_row_bytes(LINEAR_E4M3, columns),
                        (uint16_t *)world.a.w.scales +
                                bad * linear_row_scales(LINEAR_E4M3, columns));
        after = (float *)run(&world, 8, 3);
        for (uint32_t r = 0; r < 3; r++)
                for (uint32_t n = 0; n < 16; n++)
                        if (n == bad)
                                assert_true(isnan(after[r * world.a.y_columns + n]));
                        else
                                assert_memory_equal(&after[r * world.a.y_columns + n],
                                                    &before[r * world.a.y_columns + n], 4);
        free(before);
        free(after);
        close_world(&world);
}

static void where_there_are_no_rows_nothing_is_written(void **)
{
        world world;
        void *y;

        open_world(&world, ROW_BF16, LINEAR_STORE, 128, 16, 4, false);
        y = run(&world, 8, 0);
        check(&world, y, 0);
        free(y);
        close_world(&world);
}

/* A step of `rows` rows, whose sums have `parts` parts; then steps of fewer rows. */
static void try_parts(row_type type, uint32_t steps, uint32_t parts, uint32_t rows)
{
        uint32_t tiles = rows > 32 ? 8 : 2, chunks = rows > 64 ? 2 : 1;
        size_t sums, arrived;
        world world;
        uint8_t *all;

        open_world(&world, type, LINEAR_ADD, steps * step_of(type), 16, rows, true);
        linear_room(nullptr, &world.a.w, rows, &sums, &arrived);
        assert_int_equal(arrived, chunks);
        assert_int_equal(sums, chunks * parts * tiles * 8 * 20);
        all = (uint8_t *)run(&world, rows, rows);
        check(&world, all, rows);
        for (uint32_t count = 1; count < rows; count += 8) {
                uint8_t *y = (uint8_t *)run(&world, count, count);

                assert_memory_equal(y, all, count * world.a.y_columns * sizeof(float));
                free(y);
                count += count > 8 ? 40 : 0;
        }
        free(all);
        close_world(&world);
}

static void k_in_parts_is_summed_in_order_whoever_comes_last(void **)
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

static void a_matrix_that_fills_the_device_is_not_split(void **)
{
        linear_matrix w = { LINEAR_BFLOAT, 132 * 2 * 16, 4096, nullptr, nullptr };
        size_t sums, arrived;

        processors = 132;
        linear_room(nullptr, &w, 64, &sums, &arrived);
        assert_int_equal(sums, 0);
        assert_int_equal(arrived, 0);
        w.rows = 132 * 16;
        linear_room(nullptr, &w, 8, &sums, &arrived);
        assert_int_equal(arrived, 132);
        assert_int_equal(sums, 132 * 2 * 8 * 20);
        w.columns = 64 * 16; /* one step for each warp would be left */
        w.rows = 16;
        linear_room(nullptr, &w, 8, &sums, &arrived);
        assert_int_equal(arrived, 1);
        w.columns = 64 * 15;
        linear_room(nullptr, &w, 8, &sums, &arrived);
        assert_int_equal(arrived, 0);
        processors = 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_epilogues_of_all_formats_are_what_they_should_be),
                cmocka_unit_test(parts_of_other_types_are_multiplied_as_bfloats),
                cmocka_unit_test(k_of_any_length_is_summed),
                cmocka_unit_test(rings_that_wrap_twice_are_read_in_order),
                cmocka_unit_test(a_row_is_the_same_bits_among_any_number_of_rows),
                cmocka_unit_test(a_code_that_is_no_number_makes_its_rows_sums_none),
                cmocka_unit_test(where_there_are_no_rows_nothing_is_written),
                cmocka_unit_test(k_in_parts_is_summed_in_order_whoever_comes_last),
                cmocka_unit_test(a_matrix_that_fills_the_device_is_not_split),
        };

        roll_from_seed();
        processors = 0;
        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
