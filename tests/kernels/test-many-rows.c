/*
 * Products of steps with many rows, in the whole cpu backend: rows and panels are cut into pieces,
 * which tiles make as large as 512 rows and 8 panels, and threads share them.
 *
 * A row's bits must not depend on the rows beside it, on the threads, or, for quantised weights, on
 * the instruction set. So each result is compared with that of steps of one row, made with one
 * thread by the first backend of its kind (small-model.h).
 */
#include "tests/kernels/small-model.h"

#include <errno.h>

#define ROWS    542u /* more than a piece has */
#define COLUMNS 256u
#define WIDE    1024u /* 32 panels: with one thread an item has 8 */

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

struct backend {
        struct kernels *k;
        struct matrix *gate, *down;
        float *bias, *x, *y, *out;
        uint64_t step;
};

/* Returns false if this machine has no such instruction set. */
static bool backend_open(struct backend *b, const struct host *h, const char *isa, uint32_t threads)
{
        const struct kernels_conf conf = { .threads = threads,
                                           .isa = isa,
                                           .rows_max = ROWS,
                                           .slots_max = 1,
                                           .pages_max = ROWS / PAGE_POSITIONS + 1,
                                           .vocab_max = 16,
                                           .wants_max = 1 };
        int r = kernels_open("cpu", &conf, &b->k);

        if (r == -ENOTSUP)
                return false;
        assert_int_equal(r, 0);
        b->gate = host_matrix_load(b->k, &h->gate);
        b->down = host_matrix_load(b->k, &h->down);
        b->step = 0;
        assert_int_equal(b->k->floats_new(b->k, 2 * WIDE, &b->bias), 0);
        assert_int_equal(b->k->floats_new(b->k, ROWS * COLUMNS, &b->x), 0);
        assert_int_equal(b->k->floats_new(b->k, ROWS * COLUMNS, &b->y), 0);
        assert_int_equal(b->k->floats_new(b->k, ROWS * WIDE, &b->out), 0);
        b->k->put(b->k, b->bias, h->gate_bias, 2 * WIDE);
        return true;
}

static void backend_close(struct backend *b)
{
        b->k->matrix_free(b->k, b->gate);
        b->k->matrix_free(b->k, b->down);
        b->k->floats_free(b->k, b->bias);
        b->k->floats_free(b->k, b->x);
        b->k->floats_free(b->k, b->y);
        b->k->floats_free(b->k, b->out);
        b->k->close(b->k);
}

/* Of each row: gate's results, and then what is added to a row of zeros. */
struct results {
        float wide[ROWS * WIDE], narrow[ROWS * COLUMNS];
};

/* A step with rows [from, from + count) of x; their results go to the same rows. */
static void step_run(struct backend *b, const float *x, uint32_t from, uint32_t count,
                     struct results *ret)
{
        static const float zeros[ROWS * COLUMNS];
        const struct gate gate = { .w = b->gate, .bias = b->bias, .act = ACT_SILU };
        const struct linear down = { .w = b->down };
        const struct step_run run = { 0, count };
        struct step_row rows[ROWS];
        const struct step step = {
                .number = ++b->step, .row_count = count, .run_count = 1, .rows = rows, .runs = &run
        };

        for (uint32_t i = 0; i < count; i++)
                rows[i] = (struct step_row){ .position = i, .from_row = STEP_TOKEN };
        b->k->put(b->k, b->x, x + (size_t)from * COLUMNS, (size_t)count * COLUMNS);
        b->k->put(b->k, b->y, zeros, (size_t)count * COLUMNS);
        assert_true(b->k->step_begin(b->k, KV_ALONE(NULL), &step) >= 0);
        assert_int_equal(b->k->gate(b->k, &gate, b->out, b->x), 0);
        assert_int_equal(b->k->project(b->k, &down, b->y, b->out), 0);
        assert_int_equal(b->k->step_end(b->k), 0);
        b->k->get(b->k, ret->wide + (size_t)from * WIDE, b->out, (size_t)count * WIDE);
        b->k->get(b->k, ret->narrow + (size_t)from * COLUMNS, b->y, (size_t)count * COLUMNS);
}

static void rows_are(const struct backend *b, uint32_t threads, const struct results *are,
                     const struct results *should, uint32_t from, uint32_t count)
{
        for (uint32_t t = from; t < from + count; t++)
                if (memcmp(are->wide + (size_t)t * WIDE, should->wide + (size_t)t * WIDE,
                           WIDE * sizeof(float)) ||
                    memcmp(are->narrow + (size_t)t * COLUMNS, should->narrow + (size_t)t * COLUMNS,
                           COLUMNS * sizeof(float)))
                        fail_msg("%s, %u threads: row %u of %u from %u on has other bits",
                                 b->k->name, threads, t, count, from);
}

/* `alone`: of each kind, with steps of one row; NULL until there is one. */
static void backend_check(const struct host *h, const float *x, const char *isa, uint32_t threads,
                          struct results *alone[VARIANT_KINDS])
{
        const uint32_t counts[] = { 1 + random_below(67),   1 + random_below(67),
                                    1 + random_below(67),   1 + random_below(67),
                                    190 + random_below(30), ROWS };
        struct results *are = calloc(1, sizeof(*are)), **should;
        struct backend b;

        assert_non_null(are);
        if (!backend_open(&b, h, isa, threads)) {
                free(are);
                return;
        }
        should = &alone[has_bfloats(&h->gate) ? kind_of(b.k) : 0];
        if (!*should) {
                *should = calloc(1, sizeof(**should));
                assert_non_null(*should);
                for (uint32_t t = 0; t < ROWS; t++)
                        step_run(&b, x, t, 1, *should);
        }
        for (uint32_t i = 0; i < COUNT(counts); i++) {
                uint32_t from = random_below(ROWS - counts[i] + 1);

                step_run(&b, x, from, counts[i], are);
                rows_are(&b, threads, are, *should, from, counts[i]);
        }
        backend_close(&b);
        free(are);
}

static void check(enum row_type gate, enum row_type up, enum row_type down)
{
        const enum row_type types[8] = { [4] = gate, [5] = up, [6] = down };
        const struct shape shape = { .columns = COLUMNS,
                                     .heads = 1,
                                     .kv_heads = 1,
                                     .head_dim = 1,
                                     .ff = WIDE,
                                     .vocab = 1,
                                     .bias = true,
                                     .types = types };
        struct results *alone[VARIANT_KINDS] = { NULL };
        float *x = random_floats(ROWS * COLUMNS);
        struct host h;

        host_make(&h, &shape);
        for (size_t i = 0; isa_names[i]; i++)
                for (uint32_t threads = 1; threads <= 3; threads += 2)
                        backend_check(&h, x, isa_names[i], threads, alone);
        for (uint32_t kind = 0; kind < VARIANT_KINDS; kind++)
                free(alone[kind]);
        host_free(&h);
        free(x);
}

static void bfloats_have_the_bits_of_their_rows_alone(void **state)
{
        (void)state;
        check(ROW_BF16, ROW_BF16, ROW_BF16);
}

/* Tiles take Q4_0 from other numbers of rows on than Q6_K. */
static void parts_of_two_types_have_the_bits_of_their_rows_alone(void **state)
{
        (void)state;
        check(ROW_Q4_0, ROW_Q6_K, ROW_Q8_0);
}

static void a_part_with_tiles_beside_one_without_has_the_bits_of_its_rows_alone(void **state)
{
        (void)state;
        check(ROW_Q5_K, ROW_Q4_K, ROW_Q4_K);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(bfloats_have_the_bits_of_their_rows_alone),
                cmocka_unit_test(parts_of_two_types_have_the_bits_of_their_rows_alone),
                cmocka_unit_test(
                        a_part_with_tiles_beside_one_without_has_the_bits_of_its_rows_alone),
        };

        random_seed();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
