/*
 * The reference operators against numbers computed in another way: literals where they can be
 * worked out by hand, else the formula of kernels.h in long double.
 */
#include "tests/kernels/ref-fixture.h"

static void refuses_an_unknown_backend_name(void **state)
{
        struct kernels *k = NULL;

        (void)state;
        assert_int_equal(kernels_open("abacus", &(struct kernels_conf){ .rows_max = 1 }, &k),
                         -ENOENT);
        assert_null(k);
}

static void refuses_invalid_matrix_shapes(void **state)
{
        const struct matrix_shape bad[] = {
                { .columns = 0, .parts = 1, .rows = { 1 } },
                { .columns = 4, .parts = 0 },
                { .columns = 4, .parts = MATRIX_PARTS_MAX + 1, .rows = { 1, 1, 1 } },
                { .columns = 4, .parts = 2, .rows = { 1, 0 } },
                { .columns = 4, .parts = 1, .rows = { 1 }, .type = { ROW_TYPE_N } },
                { .columns = 4, .parts = 2, .rows = { UINT32_MAX, 1 } },
        };
        struct matrix *matrix = NULL;
        struct fixture b;

        (void)state;
        fixture_open(&b);
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(b.k->matrix_new(b.k, &bad[i], &matrix), -EINVAL);
        assert_null(matrix);
        fixture_close(&b);
}

static void embed_returns_the_rows_of_the_tokens_times_scale(void **state)
{
        const uint16_t halves[] = { 0x3c00, 0xc000, 0x4200, 0x0001, 0x7bff, 0x8000 };
        const float expected[] = { 3, -6, 9, 3 * 0x1p-24f, 3 * 65504.0f, 0 };
        struct matrix_shape shape = {
                .columns = 3, .parts = 1, .rows = { 2 }, .type = { ROW_F16 }
        };
        struct fixture b;
        float *x, host[6];

        (void)state;
        fixture_open(&b);
        assert_int_equal(b.k->matrix_new(b.k, &shape, &b.matrices[b.matrix_count++]), 0);
        b.k->weights_put(b.k, b.matrices[0], 0, 0, 2, halves);
        x = floats_new(&b, 6);
        begin_one(&b, 0, 0, 2);
        assert_int_equal(b.k->embed(b.k, &(struct embed){ b.matrices[0], 3 }, x), 0);
        b.k->get(b.k, host, x, 6);
        for (int i = 0; i < 6; i++)
                assert_true(host[i] == expected[i]);
        fixture_close(&b);
}

static void project_adds_to_the_residual(void **state)
{
        const float w[] = { 1, 2, 3, 4, 5, 6 }, bias[] = { 0.5f, -0.5f };
        const float y[] = { 1, 0, -1, 2, 2, 2 }, x[] = { 10, 20, 30, 40 };
        const float expected[] = { 10 - 2 + 0.5f, 20 - 2 - 0.5f, 30 + 12 + 0.5f, 40 + 30 - 0.5f };
        struct linear op = { 0 };
        struct fixture b;
        float host[4], *bx;

        (void)state;
        fixture_open(&b);
        op.w = matrix_of(&b, 3, 1, (uint32_t[]){ 2 }, w);
        op.bias = given(&b, bias, 2);
        bx = given(&b, x, 4);
        begin_one(&b, 0, 0, 2);
        assert_int_equal(b.k->project(b.k, &op, bx, given(&b, y, 6)), 0);
        b.k->get(b.k, host, bx, 4);
        assert_memory_equal(host, expected, sizeof(expected));
        fixture_close(&b);
}

static void gate_multiplies_the_activation_by_the_up_rows(void **state)
{
        /* gate rows, then up rows; x is (1, 2), rms sqrt(2.5) */
        const float w[] = { 1, 0, -1, 0.5f, 3, 0, 0, 1 }, x[] = { 1, 2 };
        const float bias[] = { 0, 1, 0, -1 }, norm[] = { 2, 4 };
        const long double n[] = { 2 / sqrtl(2.75L), 8 / sqrtl(2.75L) }; /* eps 0.25 */
        const long double g = -n[0] + n[1] / 2 + 1;
        struct gate op = { .act = ACT_SILU };
        struct fixture b;
        float host[2], *out, *bx;

        (void)state;
        fixture_open(&b);
        op.w = matrix_of(&b, 2, 2, (uint32_t[]){ 2, 2 }, w);
        bx = given(&b, x, 2);
        out = floats_new(&b, 2);
        begin_one(&b, 0, 0, 1);
        assert_int_equal(b.k->gate(b.k, &op, out, bx), 0);
        b.k->get(b.k, host, out, 2);
        assert_near(host[0], 0.731058578630004879251159944832L * 3); /* silu(1) */
        assert_near(host[1], 0);

        op.act = ACT_GELU_TANH;
        assert_int_equal(b.k->gate(b.k, &op, out, bx), 0);
        b.k->get(b.k, host, out, 2);
        assert_near(host[0], 0.841191990608276L * 3);

        op.norm = (struct row_norm){ NORM_RMS, given(&b, norm, 2), NULL, 0.25f };
        op.bias = given(&b, bias, 4);
        op.act = ACT_SILU;
        assert_int_equal(b.k->gate(b.k, &op, out, bx), 0);
        b.k->get(b.k, host, out, 2);
        assert_near(host[0], n[0] / (1 + expl(-n[0])) * 3 * n[0]);
        assert_near(host[1], g / (1 + expl(-g)) * (n[1] - 1));
        fixture_close(&b);
}

static void head_computes_capped_logits_of_wanted_rows_only(void **state)
{
        const float w[] = { 1, 0, 0, 1, 3, 4 }, norm[] = { 1, 1 };
        const float x[] = { NAN, NAN, 3, 4, NAN, NAN, 30, 40 };
        const uint32_t want[] = { 1, 3 };
        const long double rms = sqrtl(12.5L);
        const long double n[] = { 3 / rms, 4 / rms, 25 / rms };
        struct head op = { 0 };
        struct fixture b;
        float host[6], *logits, *bx;

        (void)state;
        fixture_open(&b);
        op.w = matrix_of(&b, 2, 1, (uint32_t[]){ 3 }, w);
        op.norm = (struct row_norm){ NORM_RMS, given(&b, norm, 2), NULL, 0 };
        bx = given(&b, x, 8);
        logits = floats_new(&b, 6);
        begin(&b, &(struct span){ 0, 0, 4 }, 1, true, want, 2);
        assert_int_equal(b.k->head(b.k, &op, logits, bx), 0);
        b.k->get(b.k, host, logits, 6);
        for (int i = 0; i < 6; i++)
                assert_near(host[i], n[i % 3]);
        op.softcap = 2;
        assert_int_equal(b.k->head(b.k, &op, logits, bx), 0);
        b.k->get(b.k, host, logits, 6);
        for (int i = 0; i < 6; i++)
                assert_near(host[i], 2 * tanhl(n[i % 3] / 2));
        fixture_close(&b);
}

/* Everything a qkv takes, on the host. */
struct qkv_case {
        float w[(HEADS + 2 * KV_HEADS) * DIM * WIDTH], norm[WIDTH],
                bias[(HEADS + 2 * KV_HEADS) * DIM];
        float q_norm[DIM], k_norm[DIM], frequency[DIM / 2], x[ROWS * WIDTH];
};

static struct qkv qkv_make(struct fixture *b, struct qkv_case *c)
{
        noise(c->w, sizeof(c->w) / 4, 1);
        noise(c->norm, WIDTH, 2);
        noise(c->bias, sizeof(c->bias) / 4, 3);
        noise(c->q_norm, DIM, 4);
        noise(c->k_norm, DIM, 5);
        noise(c->x, sizeof(c->x) / 4, 6);
        for (uint32_t i = 0; i < DIM / 2; i++)
                c->frequency[i] = powf(100, -(float)i);
        return (struct qkv){
                .w = matrix_of(b, WIDTH, 3,
                               (uint32_t[]){ HEADS * DIM, KV_HEADS * DIM, KV_HEADS * DIM }, c->w),
                .norm = { NORM_RMS, given(b, c->norm, WIDTH), NULL, 0.125f },
                .bias = given(b, c->bias, sizeof(c->bias) / 4),
                .q_norm = { NORM_RMS, given(b, c->q_norm, DIM), NULL, 0.125f },
                .k_norm = { NORM_RMS, given(b, c->k_norm, DIM), NULL, 0.125f },
                .rope = { DIM, ROPE_HALVES, given(b, c->frequency, DIM / 2), 1.5f },
                .kv = b->kv,
                .layer = 1,
                .heads = HEADS,
                .kv_heads = KV_HEADS,
                .head_dim = DIM,
        };
}

/* Number `i` of head `h` of the row `x`; heads of q, then k, then v. */
static long double qkv_expect(const struct qkv_case *c, const struct rope *rope, const float *x,
                              uint32_t position, uint32_t h, uint32_t i)
{
        const float *norm = h < HEADS ? c->q_norm : c->k_norm;
        long double squares = 0, head[DIM], rms = 0, a, cosine, sine;
        uint32_t pair = i, mate = i;

        for (uint32_t j = 0; j < WIDTH; j++)
                squares += (long double)x[j] * x[j] / WIDTH;
        for (uint32_t d = 0; d < DIM; d++) {
                head[d] = c->bias[h * DIM + d];
                for (uint32_t j = 0; j < WIDTH; j++)
                        head[d] += c->w[(h * DIM + d) * WIDTH + j] * x[j] * c->norm[j] /
                                   sqrtl(squares + 0.125L);
                rms += head[d] * head[d] / DIM;
        }
        if (h >= HEADS + KV_HEADS)
                return head[i];
        for (uint32_t d = 0; d < DIM; d++)
                head[d] *= norm[d] / sqrtl(rms + 0.125L);
        if (i >= rope->dims)
                return head[i];

        if (rope->pairing == ROPE_ADJACENT) {
                pair = i / 2;
                mate = i ^ 1;
        } else {
                pair = i % (rope->dims / 2);
                mate = (i + rope->dims / 2) % rope->dims;
        }
        a = (long double)position * c->frequency[pair];
        cosine = cosl(a) * rope->factor;
        sine = sinl(a) * rope->factor;
        return i < mate ? head[i] * cosine - head[mate] * sine
                        : head[i] * cosine + head[mate] * sine;
}

/* As near as half a unit, and the largest number of the head is a whole one. */
static void assert_byte(const struct fixture *b, size_t at, long double expected)
{
        bool is_fp8 = b->kv->shape.type == KV_FP8;
        float *scale, most = 0;
        long double unit = 1;

        for (size_t i = at / DIM * DIM; i < at / DIM * DIM + DIM; i++)
                most = fmaxf(most, fabsf(kv_number(b, i)));
        kv_place(b, at, &scale);
        assert_near(*scale * (is_fp8 ? 448 : 127), most);
        if (is_fp8) /* an eighth of the power of two below, or of 2^-6 for smaller numbers */
                unit = fmaxl(exp2l(floorl(log2l(fabsl(expected) / *scale)) - 3), 0x1p-9L);
        assert_true(fabsl(kv_number(b, at) - expected) <= *scale * unit * 0.5001L);
}

static void qkv_check(struct fixture *b, const struct qkv *op, const struct qkv_case *c)
{
        const uint32_t position = 14, count = 4; /* over a page's end */
        static float q[ROWS * HEADS * DIM];
        float *bq = floats_new(b, sizeof(q) / 4);

        begin_one(b, 1, position, count);
        assert_int_equal(b->k->qkv(b->k, op, bq, given(b, c->x, sizeof(c->x) / 4)), 0);
        b->k->get(b->k, q, bq, sizeof(q) / 4);
        for (uint32_t r = 0; r < count; r++) {
                const float *x = &c->x[r * WIDTH];

                for (uint32_t i = 0; i < HEADS * DIM; i++)
                        assert_near(q[r * HEADS * DIM + i],
                                    qkv_expect(c, &op->rope, x, position + r, i / DIM, i % DIM));
                for (uint32_t i = 0; i < 2 * KV_HEADS * DIM; i++) {
                        size_t at = number_at(1, position + r, 1, i / DIM % KV_HEADS,
                                              i / DIM / KV_HEADS, i % DIM);
                        long double expected =
                                qkv_expect(c, &op->rope, x, position + r, HEADS + i / DIM, i % DIM);

                        switch (b->kv->shape.type) {
                        case KV_F16:
                                assert_true(kv_number(b, at) ==
                                            half_to_float(float_to_half((float)expected)));
                                break;
                        case KV_BF16:
                                assert_true(kv_number(b, at) ==
                                            bfloat_to_float(float_to_bfloat((float)expected)));
                                break;
                        case KV_INT8:
                        case KV_FP8:
                                assert_byte(b, at, expected);
                                break;
                        case KV_F32:
                                assert_near(kv_number(b, at), expected);
                        }
                }
        }
        b->k->step_end(b->k);
}

static void qkv_normalises_rotates_and_writes_pages(void **state)
{
        static struct qkv_case c;
        struct fixture b;
        struct qkv op;

        (void)state;
        for (int type = 0; type < KV_TYPES; type++) {
                fixture_open_kv(&b, (enum kv_type)type);
                op = qkv_make(&b, &c);
                qkv_check(&b, &op, &c);
                op.rope.pairing = ROPE_ADJACENT;
                qkv_check(&b, &op, &c);
                op.rope.dims = 4;
                op.rope.pairing = ROPE_HALVES;
                qkv_check(&b, &op, &c);
                /* the neighbours, and the other layer, are as they were */
                assert_true(isnan(kv_number(&b, number_at(1, 13, 1, 0, 0, 0))));
                assert_true(isnan(kv_number(&b, number_at(1, 18, 1, 1, 1, DIM - 1))));
                assert_true(isnan(kv_number(&b, number_at(1, 14, 0, 0, 0, 0))));
                fixture_close(&b);
        }
}

static void rows_without_the_write_flag_leave_their_pages_unchanged(void **state)
{
        static struct qkv_case c;
        struct fixture b;
        struct qkv op;
        float *q, one;

        (void)state;
        fixture_open(&b);
        op = qkv_make(&b, &c);
        q = floats_new(&b, HEADS * DIM);
        begin(&b, &(struct span){ 0, 3, 1 }, 1, false, NULL, 0);
        assert_int_equal(b.k->qkv(b.k, &op, q, given(&b, c.x, WIDTH)), 0);
        b.k->get(b.k, &one, q, 1);
        assert_near(one, qkv_expect(&c, &op.rope, c.x, 3, 0, 0));
        for (size_t i = 0; i < PAGES * b.kv->page_bytes; i++)
                assert_int_equal(b.kv->pages[i], 0xff);
        fixture_close(&b);
}

/* A product in float would be off by hundredths this far out. */
static void rope_computes_its_angle_in_double(void **state)
{
        const uint32_t position = 1000003;
        const float frequency = 0.7f, w[] = { 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1 }, x[] = { 3, 4 };
        const long double a = (long double)position * frequency;
        struct kernels_conf conf = { .rows_max = 1,
                                     .slots_max = 1,
                                     .wants_max = 1,
                                     .pages_max = position / PAGE_POSITIONS + 1 };
        struct kv_shape shape = { 1, 1, 2, 1, KV_F32 };
        struct step_row row = { .position = position, .from_row = STEP_TOKEN };
        struct step_run run = { 0, 1 };
        struct qkv op = { .heads = 1, .kv_heads = 1, .head_dim = 2 };
        struct fixture b = { 0 };
        float q[2], *bq;

        (void)state;
        assert_int_equal(kernels_open("ref", &conf, &b.k), 0);
        assert_int_equal(b.k->kv_new(b.k, &shape, &b.kv), 0);
        op.w = matrix_of(&b, 2, 3, (uint32_t[]){ 2, 2, 2 }, w);
        op.rope = (struct rope){ 2, ROPE_ADJACENT, given(&b, &frequency, 1), 1 };
        op.kv = b.kv;
        bq = floats_new(&b, 2);
        b.k->step_begin(
                b.k, KV_ALONE(b.kv),
                &(struct step){ .row_count = 1, .run_count = 1, .rows = &row, .runs = &run });
        assert_int_equal(b.k->qkv(b.k, &op, bq, given(&b, x, 2)), 0);
        b.k->get(b.k, q, bq, 2);
        assert_near(q[0], 3 * cosl(a) - 4 * sinl(a));
        assert_near(q[1], 3 * sinl(a) + 4 * cosl(a));
        fixture_close(&b);
}

static void qkv_without_extras_is_three_plain_products(void **state)
{
        float w[6 * DIM * DIM] = { 0 }, x[DIM] = { 1, 2, 3, 4, 5, 6 }, q[2 * DIM];
        struct qkv op = { .heads = 2, .kv_heads = KV_HEADS, .head_dim = DIM };
        struct fixture b;
        float *bq;

        (void)state;
        for (uint32_t h = 0; h < 6; h++) /* head h is (h + 1) times x */
                for (uint32_t i = 0; i < DIM; i++)
                        w[(h * DIM + i) * DIM + i] = (float)(h + 1);
        fixture_open(&b);
        op.kv = b.kv;
        op.w = matrix_of(&b, DIM, 3, (uint32_t[]){ 2 * DIM, 2 * DIM, 2 * DIM }, w);
        bq = floats_new(&b, 2 * DIM);
        begin_one(&b, 0, 40, 1);
        assert_int_equal(b.k->qkv(b.k, &op, bq, given(&b, x, DIM)), 0);
        b.k->get(b.k, q, bq, 2 * DIM);
        for (uint32_t i = 0; i < 6 * DIM; i++) {
                uint32_t h = i / DIM;
                float got = h < 2 ? q[i]
                                  : kv_number(&b, number_at(0, 40, 0, h % 2, h / 2 - 1, i % DIM));

                assert_true(got == (float)(h + 1) * x[i % DIM]);
        }
        fixture_close(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refuses_an_unknown_backend_name),
                cmocka_unit_test(refuses_invalid_matrix_shapes),
                cmocka_unit_test(embed_returns_the_rows_of_the_tokens_times_scale),
                cmocka_unit_test(project_adds_to_the_residual),
                cmocka_unit_test(gate_multiplies_the_activation_by_the_up_rows),
                cmocka_unit_test(head_computes_capped_logits_of_wanted_rows_only),
                cmocka_unit_test(qkv_without_extras_is_three_plain_products),
                cmocka_unit_test(qkv_normalises_rotates_and_writes_pages),
                cmocka_unit_test(rope_computes_its_angle_in_double),
                cmocka_unit_test(rows_without_the_write_flag_leave_their_pages_unchanged),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
