/*
 * What only some families of models use, in the reference backend: LayerNorm, norms of other spans
 * and places, feed-forward layers without a gate, learned positions, clips, scales.  Expected
 * numbers are literals, or the formulas of kernels.h in long double.
 */
#include "tests/kernels/ref-fixture.h"

#define Q_COUNT (HEADS * DIM)
#define K_COUNT (KV_HEADS * DIM)
#define COUNT   (Q_COUNT + 2 * K_COUNT)

/* The mean is 3 and the variance 3.5, so with an eps of 0.5 the root is 2. */
static const float four[] = { 1, 2, 3, 6 }, weight[] = { 1, 2, 3, 4 };
static const float bias[] = { 10, 20, 30, 40 };
static const float layer_normed[] = { -1 + 10, -1 + 20, 0 + 30, 6 + 40 };
static const float layer_bare[] = { -1, -0.5f, 0, 1.5f };

static struct row_norm layer_norm(struct fixture *b)
{
        return (struct row_norm){ NORM_LAYER, given(b, weight, 4), given(b, bias, 4), 0.5f };
}

static void assert_row(struct fixture *b, const float *row, const float *expected, uint32_t count)
{
        float host[COUNT];

        b->k->get(b->k, host, row, count);
        for (uint32_t i = 0; i < count; i++)
                assert_near(host[i], expected[i]);
}

static struct matrix *identity(struct fixture *b)
{
        const float w[] = { 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1 };

        return matrix_of(b, 4, 1, (uint32_t[]){ 4 }, w);
}

static void a_layer_norm_subtracts_the_mean_and_adds_its_bias(void **state)
{
        struct head op = { 0 };
        const uint32_t want = 0;
        struct fixture b;
        float *logits;

        (void)state;
        fixture_open(&b);
        op.w = identity(&b);
        op.norm = layer_norm(&b);
        logits = floats_new(&b, 4);
        begin(&b, &(struct span){ 0, 0, 1 }, 1, true, &want, 1);
        assert_int_equal(b.k->head(b.k, &op, logits, given(&b, four, 4)), 0);
        assert_row(&b, logits, layer_normed, 4);
        op.norm.weight = op.norm.bias = NULL;
        assert_int_equal(b.k->head(b.k, &op, logits, given(&b, four, 4)), 0);
        assert_row(&b, logits, layer_bare, 4);
        fixture_close(&b);
}

static void a_norm_without_weights_multiplies_by_ones(void **state)
{
        /* mean square 12.5 */
        const float expected[] = { 1 / sqrtf(14), 2 / sqrtf(14), 3 / sqrtf(14), 6 / sqrtf(14) };
        struct head op = { .norm = { NORM_RMS, NULL, NULL, 1.5f } };
        const uint32_t want = 0;
        struct fixture b;
        float *logits;

        (void)state;
        fixture_open(&b);
        op.w = identity(&b);
        logits = floats_new(&b, 4);
        begin(&b, &(struct span){ 0, 0, 1 }, 1, true, &want, 1);
        assert_int_equal(b.k->head(b.k, &op, logits, given(&b, four, 4)), 0);
        assert_row(&b, logits, expected, 4);
        fixture_close(&b);
}

static void embed_adds_the_row_of_the_position_and_norms_the_sum(void **state)
{
        /* token 0 at position 3: 2 * (0, 1, 1, 2) + (1, 0, 1, 2) is `four` */
        const float table[] = { 0, 1, 1, 2, 9, 9, 9, 9 };
        const float places[6][4] = { [5] = { 1, 0, 1, 2 }, [3] = { 7, 7, 7, 7 } };
        struct embed op = { .scale = 2, .first_position = 2 };
        struct fixture b;
        float *x;

        (void)state;
        fixture_open(&b);
        op.table = matrix_of(&b, 4, 1, (uint32_t[]){ 2 }, table);
        op.positions = matrix_of(&b, 4, 1, (uint32_t[]){ 6 }, places[0]);
        x = floats_new(&b, 4);
        begin_one(&b, 0, 3, 1);
        assert_int_equal(b.k->embed(b.k, &op, x), 0);
        assert_row(&b, x, four, 4);
        op.norm = layer_norm(&b);
        assert_int_equal(b.k->embed(b.k, &op, x), 0);
        assert_row(&b, x, layer_normed, 4);
        fixture_close(&b);
}

static void renorm_replaces_each_row_by_its_norm(void **state)
{
        struct renorm op = { .columns = 4 };
        float two[8], expected[8], *x;
        struct fixture b;

        (void)state;
        fixture_open(&b);
        (void)identity(&b);
        op.norm = layer_norm(&b);
        for (uint32_t i = 0; i < 8; i++) {
                two[i] = four[i % 4];
                expected[i] = layer_normed[i % 4];
        }
        begin_one(&b, 0, 0, 2);
        x = given(&b, two, 8);
        assert_int_equal(b.k->renorm(b.k, &op, x), 0);
        assert_row(&b, x, expected, 8);
        fixture_close(&b);
}

static void project_norms_its_result_before_it_scales_and_adds_it(void **state)
{
        const float y[] = { 0, 2, 2, 5 }, ones[] = { 1, 0, 1, 1 }, x[] = { 100, 200, 300, 400 };
        struct linear op = { .scale = -2 };
        float expected[4], *bx;
        struct fixture b;

        (void)state;
        fixture_open(&b);
        op.w = identity(&b);
        op.bias = given(&b, ones, 4); /* y and this are `four` */
        begin_one(&b, 0, 0, 1);
        bx = given(&b, x, 4);
        assert_int_equal(b.k->project(b.k, &op, bx, given(&b, y, 4)), 0);
        for (uint32_t i = 0; i < 4; i++)
                expected[i] = x[i] - 2 * four[i];
        assert_row(&b, bx, expected, 4);

        op.norm = layer_norm(&b);
        op.scale = 0.5f;
        b.k->put(b.k, bx, x, 4);
        assert_int_equal(b.k->project(b.k, &op, bx, given(&b, y, 4)), 0);
        for (uint32_t i = 0; i < 4; i++)
                expected[i] = x[i] + layer_normed[i] / 2;
        assert_row(&b, bx, expected, 4);

        op.scale = 0; /* like 1 */
        b.k->put(b.k, bx, x, 4);
        assert_int_equal(b.k->project(b.k, &op, bx, given(&b, y, 4)), 0);
        for (uint32_t i = 0; i < 4; i++)
                expected[i] = x[i] + layer_normed[i];
        assert_row(&b, bx, expected, 4);
        fixture_close(&b);
}

static void gate_of_one_part_is_the_activation(void **state)
{
        const float x[] = { 1, -1, 3, -3 };
        static const struct {
                enum activation act;
                float expected[4];
        } cases[] = {
                { ACT_SILU, { 0.7310585786f, -0.2689414214f, 2.8577223804f, -0.1422776196f } },
                { ACT_GELU_TANH, { 0.8411919906f, -0.1588080094f, 2.9963627f, -0.0036373f } },
                { ACT_GELU, { 0.8413447461f, -0.1586552539f, 2.9959503059f, -0.0040496941f } },
                { ACT_RELU, { 1, 0, 3, 0 } },
                { ACT_RELU_SQUARE, { 1, 0, 9, 0 } },
        };
        struct fixture b;
        struct gate op = { 0 };
        float *out, nan = NAN, host[4];

        (void)state;
        fixture_open(&b);
        op.w = identity(&b);
        out = floats_new(&b, 4);
        begin_one(&b, 0, 0, 1);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                float *bx = given(&b, x, 4);

                op.act = cases[i].act;
                assert_int_equal(b.k->gate(b.k, &op, out, bx), 0);
                assert_row(&b, out, cases[i].expected, 4);
                b.k->put(b.k, bx, &nan, 1);
                assert_int_equal(b.k->gate(b.k, &op, out, bx), 0);
                b.k->get(b.k, host, out, 4);
                assert_true(isnan(host[0]));
        }
        fixture_close(&b);
}

static void head_adds_its_bias_then_scales_then_caps(void **state)
{
        const float add[] = { 1, 0, -1, 0.5f };
        const float expected[] = { 2 * 0.25f, 2 * 0.25f, 2 * 0.25f, 6.5f * 0.25f };
        const uint32_t want = 0;
        struct head op = { .scale = 0.25f };
        float *logits, capped[4];
        struct fixture b;

        (void)state;
        fixture_open(&b);
        op.w = identity(&b);
        op.bias = given(&b, add, 4);
        logits = floats_new(&b, 4);
        begin(&b, &(struct span){ 0, 0, 1 }, 1, true, &want, 1);
        assert_int_equal(b.k->head(b.k, &op, logits, given(&b, four, 4)), 0);
        assert_row(&b, logits, expected, 4);
        op.softcap = 3;
        assert_int_equal(b.k->head(b.k, &op, logits, given(&b, four, 4)), 0);
        for (uint32_t i = 0; i < 4; i++)
                capped[i] = 3 * tanhf(expected[i] / 3);
        assert_row(&b, logits, capped, 4);
        fixture_close(&b);
}

/* ---- qkv: its matrix is zero, so that the numbers before norms are its bias ---- */

struct heads {
        float is[COUNT], q_weight[Q_COUNT], q_bias[Q_COUNT], k_weight[K_COUNT], k_bias[K_COUNT];
};

static struct qkv qkv_make(struct fixture *b, struct heads *h)
{
        static const float zeros[COUNT * DIM];
        uint32_t rows[] = { Q_COUNT, K_COUNT, K_COUNT };

        noise(h->is, COUNT, 1);
        noise(h->q_weight, Q_COUNT, 2);
        noise(h->q_bias, Q_COUNT, 3);
        noise(h->k_weight, K_COUNT, 4);
        noise(h->k_bias, K_COUNT, 5);
        return (struct qkv){
                .w = matrix_of(b, DIM, 3, rows, zeros),
                .bias = given(b, h->is, COUNT),
                .kv = b->kv,
                .heads = HEADS,
                .kv_heads = KV_HEADS,
                .head_dim = DIM,
        };
}

/* Runs it for a row at this position, and returns all numbers: of q, k and v. */
static void qkv_run(struct fixture *b, const struct qkv *op, uint32_t position, float ret_is[COUNT])
{
        const float x[DIM] = { 1, 2, 3, 4, 5, 6 };
        float *q = floats_new(b, Q_COUNT);

        begin_one(b, 0, position, 1);
        assert_int_equal(b->k->qkv(b->k, op, q, given(b, x, DIM)), 0);
        b->k->get(b->k, ret_is, q, Q_COUNT);
        for (uint32_t i = 0; i < 2 * K_COUNT; i++)
                ret_is[Q_COUNT + i] = kv_number(
                        b, number_at(0, position, 0, i / DIM % KV_HEADS, i / K_COUNT, i % DIM));
        b->k->step_end(b->k);
}

/* Number i of `count` that are normed together. */
static long double norm_expect(enum norm_kind kind, const float *x, uint32_t count, uint32_t i,
                               float w, float add)
{
        long double mean = 0, square = 0;

        for (uint32_t j = 0; kind == NORM_LAYER && j < count; j++)
                mean += (long double)x[j] / count;
        for (uint32_t j = 0; j < count; j++)
                square += (x[j] - mean) * (x[j] - mean) / count;
        return (x[i] - mean) / sqrtl(square + 0.125L) * w + add;
}

static void spans_check(struct fixture *b, struct qkv *op, const struct heads *h,
                        enum norm_kind kind, enum head_norm_span span)
{
        bool has_bias = kind == NORM_LAYER;
        float is[COUNT];

        op->span = span;
        op->q_norm.kind = op->k_norm.kind = kind;
        qkv_run(b, op, 7, is);
        for (uint32_t i = 0; i < Q_COUNT + K_COUNT; i++) {
                bool is_q = i < Q_COUNT;
                uint32_t first = is_q ? 0 : Q_COUNT, at = i - first;
                uint32_t count = span != SPAN_WHOLE ? DIM : is_q ? Q_COUNT : K_COUNT;
                uint32_t start = at / count * count, own = span == SPAN_HEAD ? at % DIM : at;
                float w = is_q ? h->q_weight[own] : h->k_weight[own];
                float add = is_q ? h->q_bias[own] : h->k_bias[own];

                assert_near(is[i], norm_expect(kind, h->is + first + start, count, at - start, w,
                                               has_bias ? add : 0));
        }
        for (uint32_t i = Q_COUNT + K_COUNT; i < COUNT; i++)
                assert_true(is[i] == h->is[i]);
}

static void q_and_k_are_normed_by_head_or_as_a_whole(void **state)
{
        static struct heads h;

        (void)state;
        for (int kind = NORM_RMS; kind <= NORM_LAYER; kind++)
                for (int span = SPAN_HEAD; span <= SPAN_WHOLE; span++) {
                        struct fixture b;
                        struct qkv op;

                        fixture_open(&b);
                        op = qkv_make(&b, &h);
                        op.q_norm = (struct row_norm){ NORM_NONE, given(&b, h.q_weight, Q_COUNT),
                                                       given(&b, h.q_bias, Q_COUNT), 0.125f };
                        op.k_norm = (struct row_norm){ NORM_NONE, given(&b, h.k_weight, K_COUNT),
                                                       given(&b, h.k_bias, K_COUNT), 0.125f };
                        if (kind == NORM_RMS)
                                op.q_norm.bias = op.k_norm.bias = NULL;
                        spans_check(&b, &op, &h, (enum norm_kind)kind, (enum head_norm_span)span);
                        fixture_close(&b);
                }
}

static void qkv_clips_all_numbers_but_nan_before_norms(void **state)
{
        static struct heads h;
        struct fixture b;
        struct qkv op;
        float is[COUNT], *changed;

        (void)state;
        fixture_open(&b);
        op = qkv_make(&b, &h);
        h.is[0] = NAN;
        h.is[1] = INFINITY;
        h.is[2] = -INFINITY;
        h.is[3] = 0.25f;
        changed = given(&b, h.is, COUNT);
        op.bias = changed;
        op.clip = 0.25f;
        qkv_run(&b, &op, 0, is);
        assert_true(isnan(is[0]) && is[1] == 0.25f && is[2] == -0.25f && is[3] == 0.25f);
        for (uint32_t i = 3; i < COUNT; i++)
                assert_true(is[i] == fmaxf(-0.25f, fminf(h.is[i], 0.25f)));
        op.k_norm = (struct row_norm){ NORM_RMS, NULL, NULL, 0.125f };
        qkv_run(&b, &op, 0, is);
        for (uint32_t i = Q_COUNT; i < Q_COUNT + DIM; i++)
                h.is[i] = fmaxf(-0.25f, fminf(h.is[i], 0.25f));
        for (uint32_t i = 0; i < DIM; i++)
                assert_near(is[Q_COUNT + i], norm_expect(NORM_RMS, h.is + Q_COUNT, DIM, i, 1, 0));
        fixture_close(&b);
}

static void q_grows_with_the_logarithm_of_its_position(void **state)
{
        static const struct {
                uint32_t position, steps; /* the position divided by the length */
        } cases[] = { { 0, 0 }, { 9, 0 }, { 10, 1 }, { 19, 1 }, { 20, 2 }, { 47, 4 } };
        static struct heads h;

        (void)state;
        for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
                long double factor = 1 + 0.5L * logl(1 + cases[c].steps);
                struct fixture b;
                struct qkv op;
                float is[COUNT];

                fixture_open(&b);
                op = qkv_make(&b, &h);
                op.query_beta = 0.5f;
                op.query_length = 10;
                qkv_run(&b, &op, cases[c].position, is);
                for (uint32_t i = 0; i < Q_COUNT; i++)
                        assert_near(is[i], h.is[i] * factor);
                for (uint32_t i = Q_COUNT; i < COUNT; i++)
                        assert_true(is[i] == h.is[i]);
                fixture_close(&b);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_layer_norm_subtracts_the_mean_and_adds_its_bias),
                cmocka_unit_test(a_norm_without_weights_multiplies_by_ones),
                cmocka_unit_test(embed_adds_the_row_of_the_position_and_norms_the_sum),
                cmocka_unit_test(renorm_replaces_each_row_by_its_norm),
                cmocka_unit_test(project_norms_its_result_before_it_scales_and_adds_it),
                cmocka_unit_test(gate_of_one_part_is_the_activation),
                cmocka_unit_test(head_adds_its_bias_then_scales_then_caps),
                cmocka_unit_test(q_and_k_are_normed_by_head_or_as_a_whole),
                cmocka_unit_test(qkv_clips_all_numbers_but_nan_before_norms),
                cmocka_unit_test(q_grows_with_the_logarithm_of_its_position),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
