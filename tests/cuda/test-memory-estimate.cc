/*
 * The device memory that a model will need, computed in advance.  It equals, to the byte, the
 * memory that is in use after everything was made and the first step was run.  The emulated
 * device uses no memory for itself.
 */
#include "tests/cuda/fixture.h"

#include <errno.h>
#include <vector>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device-emu.h"
#include "kernels/library.h"

#define ROUNDS 12u
#define ROWS   70u
#define PAGES  600u /* of a slot: two splits of attention and more */

extern "C" library_open_fn samovar_backend_open;

static uint64_t dice;

static uint32_t below(uint32_t n)
{
        return (uint32_t)(next_random(&dice) % n);
}

static struct kernels *open_backend(void)
{
        kernels_conf conf = {};
        struct kernels *k;
        char why[160];

        conf.rows_max = ROWS;
        conf.slots_max = conf.wants_max = 2;
        conf.pages_max = PAGES;
        conf.vocab_max = 64;
        assert_int_equal(samovar_backend_open(LIBRARY_VERSION, &conf, &k, why, sizeof(why)), 0);
        return k;
}

static kernels_memory ask(struct kernels *k, const kernels_objects *objects)
{
        kernels_memory memory;

        assert_int_equal(k->memory(k, objects, &memory), 0);
        return memory;
}

static uint64_t left(struct kernels *k)
{
        const kernels_objects nothing = {};
        kernels_memory memory = ask(k, &nothing);

        assert_true(!memory.weights && !memory.floats && !memory.scratch);
        return memory.left;
}

static matrix_shape random_shape(void)
{
        static const row_type types[] = { ROW_BF16, ROW_Q8_0, ROW_Q4_0, ROW_F32, ROW_Q4_0 };
        matrix_shape shape = {};
        bool same = below(3);

        shape.columns = 32 * (1 + below(100));
        shape.parts = 1 + below(3);
        for (uint32_t p = 0; p < shape.parts; p++) {
                shape.rows[p] = p && shape.parts == 2 && same ? shape.rows[0]
                                                              : 1 + below(below(2) ? 40 : 500);
                shape.type[p] = p && same ? shape.type[0] : types[below(5)];
        }
        return shape;
}

static void the_estimate_of_matrices_and_buffers_is_exact(void **)
{
        for (uint32_t round = 0; round < ROUNDS; round++) {
                matrix_shape shapes[6];
                size_t counts[4];
                const kernels_objects objects = { shapes, counts, nullptr, 6, 4, 0 };
                struct kernels *k = open_backend();
                kernels_memory memory;
                matrix *matrices[6];
                float *floats[4];

                for (matrix_shape &shape : shapes)
                        shape = random_shape();
                for (size_t &count : counts)
                        count = 1 + below(5000);
                memory = ask(k, &objects);
                assert_true(memory.weights && memory.floats && memory.scratch);
                for (uint32_t i = 0; i < 4; i++)
                        assert_int_equal(k->floats_new(k, counts[i], &floats[i]), 0);
                assert_int_equal(left(k), memory.left - memory.floats);
                for (uint32_t i = 0; i < 6; i++)
                        assert_int_equal(k->matrix_new(k, &shapes[i], &matrices[i]), 0);
                assert_int_equal(left(k),
                                 memory.left - memory.floats - memory.weights - memory.scratch);
                for (matrix *matrix : matrices)
                        k->matrix_free(k, matrix);
                for (float *buffer : floats)
                        k->floats_free(k, buffer);
                assert_int_equal(left(k), memory.left - memory.scratch);
                k->close(k);
        }
}

/* A row of each of two layers that differ in their windows. */
static void run_step(struct kernels *k, uint64_t number, kv *kv, const struct attend *attends,
                     float *q, float *out)
{
        const step_row row = { 0, 0, 1, STEP_TOKEN, 0, 0 };
        const step_run run = { 0, 1 };
        const step_page page = { 0, 0, 0 };
        struct kv *const pools[KV_POOLS_MAX] = { kv };
        step step = {};
        buffer *queries = cuda_buffer(cuda_of(k), q);

        step.number = number;
        step.row_count = step.run_count = step.page_count = 1;
        step.rows = &row;
        step.runs = &run;
        step.pages = &page;
        assert_int_equal(k->step_begin(k, pools, &step), 0);
        queries->content = CONTENT_HALVES;
        for (uint32_t i = 0; i < 2; i++) {
                struct attend op = attends[i];

                op.kv = kv;
                op.scale = 1;
                assert_int_equal(k->attend(k, &op, out, q), 0);
        }
        assert_int_equal(k->step_end(k), 0);
        assert_int_equal(k->collect(k, number, nullptr), 0);
}

static void the_estimate_of_attention_is_exact(void **)
{
        static const uint32_t dims[] = { 32, 64, 80, 96, 128, 256, 512 };

        for (uint32_t dim : dims) {
                struct attend attends[2] = {};
                const size_t counts[2] = { ROWS * 4 * dim, ROWS * 4 * dim };
                const kernels_objects objects = { nullptr, counts, attends, 0, 2, 2 };
                const kv_shape shape = { 1, 2, dim, 3, KV_F16 };
                struct kernels *k = open_backend();
                kernels_memory memory;
                float *q, *out;
                kv *kv;

                for (struct attend &attend : attends) {
                        attend.heads = 4;
                        attend.kv_heads = 2;
                        attend.head_dim = dim;
                }
                attends[1].window = 40;
                memory = ask(k, &objects);
                assert_true(memory.scratch);
                assert_int_equal(k->floats_new(k, counts[0], &q), 0);
                assert_int_equal(k->floats_new(k, counts[1], &out), 0);
                assert_int_equal(k->kv_new(k, &shape, &kv), 0);
                run_step(k, 1, kv, attends, q, out);
                memory.left -= memory.floats + memory.scratch + 3 * kv_page_bytes(&shape);
                assert_int_equal(left(k), memory.left);
                run_step(k, 2, kv, attends, q, out);
                assert_int_equal(left(k), memory.left);
                k->kv_free(k, kv);
                k->close(k);
        }
}

/*
 * A layer whose branches are normalised before they are added, and whose gate has one part.  Its
 * matrices are such that no other operator needs as much scratch.
 */
static void the_estimate_of_a_plain_layer_is_exact(void **)
{
        const uint32_t columns = 512, ff = 900;
        const matrix_shape shapes[] = { { columns, 3, { 32, 32, 32 }, {} },
                                        { columns, 1, { ff }, {} },
                                        { ff, 1, { columns }, {} } };
        const size_t counts[] = { ROWS * columns, ROWS * ff, columns };
        const kernels_objects objects = { shapes, counts, nullptr, 3, 3, 0 };
        const kv_shape pool = { 1, 1, 32, 1, KV_F16 };
        const step_row row = { 0, 0, 1, STEP_TOKEN, 0, 0 };
        const step_run run = { 0, 1 };
        struct kernels *k = open_backend();
        const kernels_memory memory = ask(k, &objects);
        matrix *matrices[3];
        float *floats[3];
        struct kv *pools[KV_POOLS_MAX] = {};
        step step = {};
        kv *kv;

        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(k->floats_new(k, counts[i], &floats[i]), 0);
                assert_int_equal(k->matrix_new(k, &shapes[i], &matrices[i]), 0);
        }
        assert_int_equal(k->kv_new(k, &pool, &kv), 0);
        step.number = step.row_count = step.run_count = 1;
        step.rows = &row;
        step.runs = &run;
        pools[0] = kv;
        assert_int_equal(k->step_begin(k, pools, &step), 0);
        {
                const gate up = { matrices[1], {}, nullptr, ACT_GELU };
                const struct linear down = {
                        matrices[2], nullptr, { NORM_RMS, floats[2], nullptr, 1e-5f }, 0
                };

                assert_int_equal(k->gate(k, &up, floats[1], floats[0]), 0);
                assert_int_equal(k->project(k, &down, floats[0], floats[1]), 0);
        }
        assert_int_equal(k->step_end(k), 0);
        assert_int_equal(k->collect(k, 1, nullptr), 0);
        assert_int_equal(left(k), memory.left - memory.floats - memory.weights - memory.scratch -
                                          kv_page_bytes(&pool));
        k->kv_free(k, kv);
        for (matrix *matrix : matrices)
                k->matrix_free(k, matrix);
        k->close(k);
}

static void the_estimate_refuses_impossible_objects(void **)
{
        const matrix_shape shape = { 33, 1, { 4 }, { ROW_Q8_0 } };
        const size_t count = SIZE_MAX / 2;
        struct attend attend = {};
        const kernels_objects bad[] = { { &shape, nullptr, nullptr, 1, 0, 0 },
                                        { nullptr, &count, nullptr, 0, 1, 0 },
                                        { nullptr, nullptr, &attend, 0, 0, 1 } };
        static const int why[] = { -EINVAL, -ENOMEM, -ENOTSUP };
        struct kernels *k = open_backend();

        attend.heads = attend.kv_heads = 1;
        attend.head_dim = 48;
        for (uint32_t i = 0; i < 3; i++) {
                kernels_memory memory;

                assert_int_equal(k->memory(k, &bad[i], &memory), why[i]);
        }
        k->close(k);
}

/* More than there is, and more than can be counted, are numbers like others. */
static void the_estimate_of_too_much_memory_does_not_overflow(void **)
{
        const matrix_shape shape = { 1u << 20, 1, { UINT32_MAX - 64 }, { ROW_BF16 } };
        std::vector<matrix_shape> shapes(5000, shape);
        kernels_objects objects = {};
        struct kernels *k;

        device_emu_memory(100 << 20);
        k = open_backend();
        objects.matrices = shapes.data();
        objects.matrix_count = 1;
        assert_true(ask(k, &objects).weights == (uint64_t)(UINT32_MAX - 63) << 21);
        assert_true(ask(k, &objects).left < 100 << 20);
        objects.matrix_count = 5000;
        assert_true(ask(k, &objects).weights == UINT64_MAX);
        k->close(k);
        device_emu_memory((size_t)1 << 40);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_estimate_of_matrices_and_buffers_is_exact),
                cmocka_unit_test(the_estimate_of_attention_is_exact),
                cmocka_unit_test(the_estimate_of_a_plain_layer_is_exact),
                cmocka_unit_test(the_estimate_refuses_impossible_objects),
                cmocka_unit_test(the_estimate_of_too_much_memory_does_not_overflow),
        };

        return cmocka_run_group_tests(tests, nullptr, nullptr);
}
