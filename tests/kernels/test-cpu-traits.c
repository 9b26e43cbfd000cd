/*
 * What random shapes of test-cpu-operators do not reach: many ropes in a step, projections without
 * scratch memory for all rows, norms of numbers far from zero, and numbers that are not finite in
 * the norms, activations and clips that only some families of models use.
 */
#include "tests/kernels/small-model.h"

#include "tests/scale.h"

static const struct shape small = {
        .columns = 33,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 16,
        .ff = 37,
        .vocab = 50,
        .kv = KV_F32,
        .rope_dims = 16,
        .norm = true,
        .types = (const enum row_type[]){ ROW_F32, ROW_F32, ROW_F32, ROW_F32, ROW_F32, ROW_F32,
                                          ROW_F32, ROW_F32 },
};

static struct kernels *backend(uint32_t i) /* ref is the last of variant_count + 1 */
{
        return i < variant_count ? variants[i] : ref;
}

/* ---- ropes ---- */

#define ROPES      7u /* more than a step keeps tables for */
#define ROPE_ROWS  11u
#define ROPE_CALLS 40u

static void rope_set(struct model *m, struct rope *ret_ropes)
{
        for (uint32_t i = 0; i < ROPES; i++)
                ret_ropes[i] = (struct rope){
                        .dims = i == 5  ? 0
                                : i % 2 ? 16
                                        : 10,
                        .pairing = i / 2 % 2 ? ROPE_HALVES : ROPE_ADJACENT,
                        .frequency = i % 3 ? m->frequency : m->frequency_2,
                        .factor = i == 6 ? 0.5f : 1,
                };
}

/* One step with these ropes in turn; q of each call goes to *ret_q. */
static void run_ropes(struct model *m, const struct rope *ropes, const uint32_t *which,
                      uint32_t count, float *ret_q)
{
        static const struct chunk chunk = { 0, 3, ROPE_ROWS };
        const struct shape *s = &m->host->s;
        const uint32_t width = s->heads * s->head_dim;
        struct qkv op = {
                .w = m->qkv,
                .kv = m->kv,
                .heads = s->heads,
                .kv_heads = s->kv_heads,
                .head_dim = s->head_dim,
        };

        model_begin(m, &chunk, 1);
        for (uint32_t i = 0; i < count; i++, ret_q += ROPE_ROWS * width) {
                op.rope = ropes[which[i]];
                assert_int_equal(m->k->qkv(m->k, &op, m->q, m->x), 0);
                m->k->get(m->k, ret_q, m->q, ROPE_ROWS * width);
        }
        model_end(m);
}

static void ropes_check(struct kernels *k, const struct host *h, const float *x,
                        const uint32_t *which, const float *should)
{
        const uint32_t size = ROPE_ROWS * h->s.heads * h->s.head_dim;
        float *q = malloc(ROPE_CALLS * size * sizeof(*q)), *alone = malloc(size * sizeof(*alone));
        struct rope ropes[ROPES];
        struct model m;

        model_open(&m, k, h);
        rope_set(&m, ropes);
        k->put(k, m.x, x, ROPE_ROWS * h->s.columns);
        run_ropes(&m, ropes, which, ROPE_CALLS, q);
        for (uint32_t i = 0; i < ROPE_CALLS; i++) {
                run_ropes(&m, ropes, &which[i], 1, alone);
                if (memcmp(alone, q + i * size, size * sizeof(*q)))
                        fail_msg("%s: call %u, rope %u: other bits than alone", k->name, i,
                                 which[i]);
                for (uint32_t n = 0; n < size; n++)
                        if (!(fabsf(alone[n] - should[i * size + n]) < 1e-4f))
                                fail_msg("%s: rope %u, number %u is %g, not %g", k->name, which[i],
                                         n, alone[n], should[i * size + n]);
        }
        model_close(&m);
        free(q);
        free(alone);
}

static void each_call_of_a_step_rotates_by_its_own_rope(void **state)
{
        const uint32_t size = ROPE_ROWS * small.heads * small.head_dim;
        float *x = random_floats(ROPE_ROWS * small.columns);
        float *should = malloc(ROPE_CALLS * size * sizeof(*should));
        uint32_t which[ROPE_CALLS];
        struct rope ropes[ROPES];
        struct model m;
        struct host h;

        (void)state;
        for (uint32_t i = 0; i < ROPE_CALLS; i++) /* first two that alternate, then all */
                which[i] = i < 10 ? i % 2 : random_below(ROPES);
        host_make(&h, &small);
        model_open(&m, ref, &h);
        rope_set(&m, ropes);
        ref->put(ref, m.x, x, ROPE_ROWS * small.columns);
        run_ropes(&m, ropes, which, ROPE_CALLS, should);
        model_close(&m);
        for (uint32_t i = 0; i < variant_count; i++)
                ropes_check(variants[i], &h, x, which, should);
        host_free(&h);
        free(x);
        free(should);
}

static void new_frequencies_count_from_the_next_step_on(void **state)
{
        const uint32_t size = ROPE_ROWS * small.heads * small.head_dim, first = 0;
        float *before = malloc(size * sizeof(*before)), *after = malloc(size * sizeof(*after));
        float *x = random_floats(ROPE_ROWS * small.columns);
        struct host h;

        (void)state;
        host_make(&h, &small);
        for (uint32_t i = 0; i <= variant_count; i++) {
                struct kernels *k = backend(i);
                struct rope ropes[ROPES];
                struct model m;

                model_open(&m, k, &h);
                rope_set(&m, ropes);
                k->put(k, m.x, x, ROPE_ROWS * small.columns);
                run_ropes(&m, ropes, &first, 1, before);
                k->put(k, m.frequency_2, h.frequency, small.rope_dims / 2);
                run_ropes(&m, ropes, &first, 1, after);
                assert_memory_not_equal(before, after, size * sizeof(*after));
                ropes[0].frequency = m.frequency;
                run_ropes(&m, ropes, &first, 1, before);
                assert_memory_equal(before, after, size * sizeof(*after));
                model_close(&m);
        }
        host_free(&h);
        free(before);
        free(after);
        free(x);
}

/* ---- projections ---- */

#define PROJECT_ROWS 23u

/*
 * x += norm(W y), with or without another matrix that needs scratch memory for all rows; and then
 * x = norm(x).
 */
static void run_project(struct kernels *k, bool is_roomy, const float *x, const float *y,
                        float *ret_x, float *ret_sum)
{
        const struct renorm sum = { { .kind = NORM_LAYER, .eps = 0.02f }, 41 };
        const struct matrix_shape shape = { 10, 1, { 41 }, { ROW_F32 } };
        const struct matrix_shape tall = { 41, 3, { 10, 10, 10 }, { ROW_F32, ROW_F32, ROW_F32 } };
        const struct kv_shape pool = { 1, 1, 4, 1, KV_F32 };
        static const struct chunk chunk = { 0, 0, PROJECT_ROWS };
        struct model m = { .k = k };
        struct linear op = { .norm = { .kind = NORM_LAYER, .eps = 0.01f }, .scale = 0.5f };
        struct host h = { .s = small };
        struct matrix *w, *other = NULL;
        float row[10], *by;

        m.host = &h;
        assert_int_equal(k->matrix_new(k, &shape, &w), 0);
        if (is_roomy)
                assert_int_equal(k->matrix_new(k, &tall, &other), 0);
        for (uint32_t i = 0; i < 41; i++) {
                for (uint32_t j = 0; j < 10; j++)
                        row[j] = sinf((float)(i * 10 + j));
                assert_int_equal(k->weights_put(k, w, 0, i, 1, row), 0);
        }
        assert_int_equal(k->kv_new(k, &pool, &m.kv), 0);
        assert_int_equal(k->floats_new(k, PROJECT_ROWS * 41, &m.x), 0);
        assert_int_equal(k->floats_new(k, PROJECT_ROWS * 10, &by), 0);
        assert_int_equal(k->floats_new(k, PROJECT_ROWS * small.vocab, &m.logits), 0);
        k->put(k, m.x, x, PROJECT_ROWS * 41);
        k->put(k, by, y, PROJECT_ROWS * 10);
        op.w = w;
        model_begin(&m, &chunk, 1);
        assert_int_equal(k->project(k, &op, m.x, by), 0);
        k->get(k, ret_x, m.x, PROJECT_ROWS * 41);
        assert_int_equal(k->renorm(k, &sum, m.x), 0);
        k->get(k, ret_sum, m.x, PROJECT_ROWS * 41);
        model_end(&m);
        k->floats_free(k, m.x);
        k->floats_free(k, by);
        k->floats_free(k, m.logits);
        k->matrix_free(k, w);
        if (other)
                k->matrix_free(k, other);
        k->kv_free(k, m.kv);
}

static void results_are_normed_in_pieces_if_there_is_little_scratch_memory(void **state)
{
        const struct kernels_conf conf = { .threads = 2,
                                           .isa = "auto",
                                           .rows_max = PROJECT_ROWS,
                                           .slots_max = SLOTS,
                                           .pages_max = SLOT_PAGES,
                                           .vocab_max = VOCAB_MAX,
                                           .wants_max = PROJECT_ROWS };
        float *x = random_floats(PROJECT_ROWS * 41), *y = random_floats(PROJECT_ROWS * 10);
        float little[PROJECT_ROWS * 41], roomy[PROJECT_ROWS * 41], should[PROJECT_ROWS * 41];
        float sums[2][PROJECT_ROWS * 41];
        struct kernels *k;

        (void)state;
        assert_int_equal(kernels_open("cpu", &conf, &k), 0);
        run_project(k, false, x, y, little, sums[0]);
        run_project(k, true, x, y, roomy, sums[1]);
        k->close(k);
        assert_memory_equal(little, roomy, sizeof(little));
        assert_memory_equal(sums[0], sums[1], sizeof(sums[0]));
        run_project(ref, false, x, y, should, sums[1]);
        for (uint32_t i = 0; i < PROJECT_ROWS * 41; i++) {
                assert_true(fabsf(little[i] - should[i]) < 1e-5f);
                assert_true(fabsf(sums[0][i] - sums[1][i]) < 1e-5f);
        }
        free(x);
        free(y);
}

/* ---- norms ---- */

#define WIDE 40000u

/* A row of `count` numbers around `middle`, normed by embed(). */
static void norm_by_embed(struct kernels *k, const float *row, uint32_t count, struct row_norm norm,
                          float *ret_normed)
{
        const struct matrix_shape shape = { count, 1, { 1 }, { ROW_F32 } };
        const struct kv_shape pool = { 1, 1, 4, 1, KV_F32 };
        static const struct chunk chunk = { 0, 0, 1 };
        struct host h = { .s = { .vocab = 1 } };
        struct model m = { .k = k, .host = &h };
        struct embed op = { .scale = 1, .norm = norm };
        struct matrix *table;

        assert_int_equal(k->matrix_new(k, &shape, &table), 0);
        assert_int_equal(k->weights_put(k, table, 0, 0, 1, row), 0);
        assert_int_equal(k->kv_new(k, &pool, &m.kv), 0);
        assert_int_equal(k->floats_new(k, count, &m.x), 0);
        assert_int_equal(k->floats_new(k, 1, &m.logits), 0);
        op.table = table;
        model_begin(&m, &chunk, 1);
        assert_int_equal(k->embed(k, &op, m.x), 0);
        k->get(k, ret_normed, m.x, count);
        model_end(&m);
        k->floats_free(k, m.x);
        k->floats_free(k, m.logits);
        k->matrix_free(k, table);
        k->kv_free(k, m.kv);
}

static void a_layer_norm_is_as_accurate_far_from_zero(void **state)
{
        static const uint32_t counts[] = { 2, 5, 15, 16, 17, 31, 100, 1000 };
        static const float middles[] = { 0, 1, -50, 4096, -100000 };
        const struct row_norm norm = { .kind = NORM_LAYER, .eps = 1e-6f };

        (void)state;
        for (uint32_t c = 0; c < 8 * 5 * 2; c++) {
                bool are_equal = c >= 8 * 5;
                float middle = middles[c / 8 % 5];
                uint32_t count = counts[c % 8];
                float *row = random_floats(count), *is = malloc(count * sizeof(*is));
                double mean = 0, square = 0;

                for (uint32_t i = 0; i < count; i++)
                        row[i] = middle + (are_equal ? 0 : row[i]);
                row[0] += are_equal ? 0 : 1;
                for (uint32_t i = 0; i < count; i++)
                        mean += (double)row[i] / count;
                for (uint32_t i = 0; i < count; i++)
                        square += (row[i] - mean) * (row[i] - mean) / count;
                for (uint32_t v = 0; v <= variant_count; v++) {
                        norm_by_embed(backend(v), row, count, norm, is);
                        for (uint32_t i = 0; i < count; i++) {
                                double should = (row[i] - mean) / sqrt(square + 1e-6);

                                if (!(fabs(is[i] - should) <= (1 + fabs(should)) * 2e-5))
                                        fail_msg("%s: of %u around %g, number %u is %g, not %g",
                                                 backend(v)->name, count, middle, i, is[i], should);
                        }
                }
                free(row);
                free(is);
        }
}

/* The variance is nearly 0, and rounding may give less. */
static void a_layer_norm_of_nearly_equal_numbers_is_finite(void **state)
{
        const struct row_norm norm = { .kind = NORM_LAYER, .eps = 1e-5f };
        float *row = random_floats(WIDE), *is = malloc(WIDE * sizeof(*is));

        (void)state;
        for (uint32_t round = 0; round < 10; round++) {
                uint32_t count = WIDE / 2 + random_below(WIDE / 2);
                float number = 1e6f * (1 + fabsf(random_float()));

                for (uint32_t i = 0; i < count; i++)
                        row[i] = number;
                row[random_below(count)] = nextafterf(number, INFINITY);
                for (uint32_t v = 0; v <= variant_count; v++) {
                        norm_by_embed(backend(v), row, count, norm, is);
                        for (uint32_t i = 0; i < count; i++)
                                assert_true(isfinite(is[i]));
                }
        }
        free(row);
        free(is);
}

static void a_norm_of_a_number_that_is_not_finite_is_not_finite(void **state)
{
        static const float bad[] = { NAN, INFINITY, -INFINITY };
        float row[21], is[21];

        (void)state;
        for (uint32_t v = 0; v <= variant_count; v++)
                for (uint32_t i = 0; i < 21 * 3; i++)
                        for (int kind = NORM_RMS; kind <= NORM_LAYER; kind++) {
                                bool any = false;

                                for (uint32_t n = 0; n < 21; n++)
                                        row[n] = (float)n;
                                row[i % 21] = bad[i / 21];
                                norm_by_embed(backend(v), row, 21,
                                              (struct row_norm){ .kind = (enum norm_kind)kind },
                                              is);
                                for (uint32_t n = 0; n < 21; n++)
                                        any |= isnan(is[n]);
                                assert_true(any && isnan(is[i % 21]));
                        }
}

/* ---- numbers that are not finite ---- */

/* The other rows have the bits that they have without it. */
static void a_bad_row_of_a_projection_stays_alone(void **state)
{
        static const struct chunk chunk = { 0, 0, 9 };
        const uint32_t width = small.heads * small.head_dim, columns = small.columns;
        float *y = random_floats(9 * width), *is = malloc(9 * columns * sizeof(*is));
        float *good = malloc(9 * columns * sizeof(*good)), *zeros = calloc(9, columns * 4);
        struct shape s = small;
        struct host h;

        (void)state;
        s.add_norm = s.layer_norm = true;
        s.add_scale = 0.5f;
        host_make(&h, &s);
        for (uint32_t v = 0; v <= variant_count; v++) {
                struct kernels *k = backend(v);
                struct model m;

                model_open(&m, k, &h);
                for (uint32_t is_bad = 0; is_bad < 2; is_bad++) {
                        float before = y[5 * width + 7];

                        if (is_bad)
                                y[5 * width + 7] = INFINITY;
                        model_begin(&m, &chunk, 1);
                        k->put(k, m.x, zeros, 9 * columns);
                        k->put(k, m.a, y, 9 * width);
                        model_project(&m, m.o, m.a);
                        k->get(k, is_bad ? is : good, m.x, 9 * columns);
                        model_end(&m);
                        y[5 * width + 7] = before;
                }
                for (uint32_t i = 0; i < 9 * columns; i++)
                        assert_true(i / columns == 5 ? isnan(is[i]) : is[i] == good[i]);
                model_close(&m);
        }
        host_free(&h);
        free(y);
        free(is);
        free(good);
        free(zeros);
}

static void activations_are_finite_where_those_of_ref_are(void **state)
{
        static const float in[] = { NAN, INFINITY, -INFINITY, -0.0f, 1e30f, -1e30f, 3e38f, -3e38f };
        static const struct chunk chunk = { 0, 0, 8 };
        struct shape s = small;

        (void)state;
        s.columns = s.ff = 1;
        s.norm = false;
        s.plain = true;
        for (int act = 0; act < ACT_N; act++) {
                float is[8], should[8];
                struct host h;

                s.act = (enum activation)act;
                host_make(&h, &s);
                h.gate.w[0] = 1;
                memcpy(h.gate.file[0], &h.gate.w[0], sizeof(float));
                for (uint32_t v = variant_count + 1; v-- > 0;) { /* ref first */
                        struct kernels *k = backend(v);
                        struct model m;

                        model_open(&m, k, &h);
                        model_begin(&m, &chunk, 1);
                        k->put(k, m.x, in, 8);
                        model_gate(&m);
                        k->get(k, is, m.g, 8);
                        model_end(&m);
                        model_close(&m);
                        if (v == variant_count)
                                memcpy(should, is, sizeof(is));
                        assert_true(isnan(is[0]) && is[1] == INFINITY);
                        for (uint32_t i = 0; i < 8; i++)
                                if (isfinite(is[i]) != isfinite(should[i]))
                                        fail_msg("%s: activation %d of %g is %g, not %g", k->name,
                                                 act, in[i], is[i], should[i]);
                }
                host_free(&h);
        }
}

static void a_clip_leaves_nan_and_no_infinity(void **state)
{
        static const struct chunk chunk = { 0, 0, 3 };
        const uint32_t width = small.heads * small.head_dim;
        float is[3 * 64], zeros[3 * 33] = { 0 };
        struct shape s = small;
        struct host h;

        (void)state;
        s.bias = true;
        s.clip = 0.5f;
        s.rope_dims = 0;
        s.norm = false;
        host_make(&h, &s);
        h.qkv_bias[5] = NAN;
        h.qkv_bias[40] = INFINITY;
        h.qkv_bias[63] = -INFINITY;
        for (uint32_t v = 0; v <= variant_count; v++) {
                struct kernels *k = backend(v);
                struct model m;

                model_open(&m, k, &h);
                model_begin(&m, &chunk, 1);
                k->put(k, m.x, zeros, 3 * small.columns);
                model_qkv(&m, 0);
                k->get(k, is, m.q, 3 * width);
                model_end(&m);
                model_close(&m);
                for (uint32_t i = 0; i < 3 * width; i++) {
                        float should = fmaxf(-0.5f, fminf(h.qkv_bias[i % width], 0.5f));

                        assert_true(i % width == 5 ? isnan(is[i]) : is[i] == should);
                }
        }
        host_free(&h);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_call_of_a_step_rotates_by_its_own_rope),
                cmocka_unit_test(new_frequencies_count_from_the_next_step_on),
                cmocka_unit_test(results_are_normed_in_pieces_if_there_is_little_scratch_memory),
                cmocka_unit_test(a_layer_norm_is_as_accurate_far_from_zero),
                cmocka_unit_test(a_layer_norm_of_nearly_equal_numbers_is_finite),
                cmocka_unit_test(a_norm_of_a_number_that_is_not_finite_is_not_finite),
                cmocka_unit_test(a_bad_row_of_a_projection_stays_alone),
                cmocka_unit_test(activations_are_finite_where_those_of_ref_are),
                cmocka_unit_test(a_clip_leaves_nan_and_no_infinity),
        };

        random_seed();
        return cmocka_run_group_tests(tests, variants_open, variants_close);
}
