/*
 * Reference operators that treat parts of a row, against the formulas of kernels.h in long double:
 * matrices without v, or with q alone, norms of V, norms of some columns, factors of whole rows,
 * and factors of a gate.
 */
#include "tests/kernels/ref-fixture.h"

#define Q_COUNT  (HEADS * DIM)
#define K_COUNT  (KV_HEADS * DIM)
#define COUNT    (Q_COUNT + 2 * K_COUNT)
#define ROPE     4u
#define POSITION 19u
#define EPS      0.125f

/* ---- qkv ---- */

struct numbers {
        float w[COUNT * WIDTH], x[WIDTH], bias[COUNT];
        float weight[3][Q_COUNT], add[3][Q_COUNT]; /* of the norms of q, k and v */
        float frequency[ROPE / 2];
};

struct form {
        uint32_t parts;
        enum head_norm_span span;
        enum norm_kind kind, v_kind;
        float clip;
};

/* Norms `count` numbers that are together; they have as many weights. */
static void norm_expect(enum norm_kind kind, long double *x, uint32_t count, const float *weight,
                        const float *add)
{
        long double mean = 0, square = 0;

        if (kind == NORM_NONE)
                return;
        for (uint32_t i = 0; kind == NORM_LAYER && i < count; i++)
                mean += x[i] / count;
        for (uint32_t i = 0; i < count; i++)
                square += (x[i] - mean) * (x[i] - mean) / count;
        for (uint32_t i = 0; i < count; i++)
                x[i] = (x[i] - mean) / sqrtl(square + EPS) * (weight ? weight[i] : 1) +
                       (kind == NORM_LAYER ? add[i] : 0);
}

static void heads_expect(enum norm_kind kind, enum head_norm_span span, long double *x,
                         uint32_t heads, const float *weight, const float *add)
{
        uint32_t together = span == SPAN_WHOLE ? heads * DIM : DIM;

        for (uint32_t i = 0; i < heads * DIM; i += together) {
                uint32_t own = span == SPAN_HEADS ? i : 0;

                norm_expect(kind, x + i, together, weight + own, add + own);
        }
}

static void rope_expect(const float *frequency, long double *x, uint32_t heads)
{
        for (uint32_t h = 0; h < heads; h++, x += DIM)
                for (uint32_t i = 0; i < ROPE / 2; i++) {
                        long double angle = (long double)POSITION * frequency[i];
                        long double a = x[i], b = x[i + ROPE / 2];

                        x[i] = a * cosl(angle) - b * sinl(angle);
                        x[i + ROPE / 2] = a * sinl(angle) + b * cosl(angle);
                }
}

/* q, k and v. */
static void qkv_expect(const struct form *form, const struct numbers *n, long double is[COUNT])
{
        uint32_t rows = form->parts == 1 ? Q_COUNT : Q_COUNT + (form->parts - 1) * K_COUNT;
        long double *k = is + Q_COUNT, *v = k + K_COUNT;

        for (uint32_t i = 0; i < rows; i++) {
                is[i] = n->bias[i];
                for (uint32_t c = 0; c < WIDTH; c++)
                        is[i] += (long double)n->w[i * WIDTH + c] * n->x[c];
                if (form->clip > 0)
                        is[i] = fmaxl(-form->clip, fminl(form->clip, is[i]));
        }
        for (uint32_t i = 0; form->parts == 2 && i < K_COUNT; i++)
                v[i] = k[i];
        heads_expect(form->kind, form->span, is, HEADS, n->weight[0], n->add[0]);
        heads_expect(form->kind, form->span, k, KV_HEADS, n->weight[1], n->add[1]);
        heads_expect(form->v_kind, SPAN_HEAD, v, KV_HEADS, n->weight[2], n->add[2]);
        rope_expect(n->frequency, is, HEADS);
        rope_expect(n->frequency, k, KV_HEADS);
}

static struct row_norm norm_of(struct fixture *b, const struct numbers *n, enum norm_kind kind,
                               uint32_t which)
{
        return (struct row_norm){ kind, given(b, n->weight[which], Q_COUNT),
                                  kind == NORM_LAYER ? given(b, n->add[which], Q_COUNT) : NULL,
                                  EPS };
}

static void qkv_check(const struct form *form, const struct numbers *n)
{
        const uint32_t rows[] = { Q_COUNT, K_COUNT, K_COUNT };
        long double should[COUNT] = { 0 };
        float *q, host[Q_COUNT];
        struct fixture b;
        struct qkv op;

        fixture_open(&b);
        op = (struct qkv){ .w = matrix_of(&b, WIDTH, form->parts, rows, n->w),
                           .bias = given(&b, n->bias, COUNT),
                           .clip = form->clip,
                           .span = form->span,
                           .q_norm = norm_of(&b, n, form->kind, 0),
                           .k_norm = norm_of(&b, n, form->kind, 1),
                           .v_norm = norm_of(&b, n, form->v_kind, 2),
                           .rope = { ROPE, ROPE_HALVES, given(&b, n->frequency, ROPE / 2), 1 },
                           .kv = b.kv,
                           .layer = 1,
                           .heads = HEADS,
                           .kv_heads = KV_HEADS,
                           .head_dim = DIM };
        q = floats_new(&b, Q_COUNT);
        begin_one(&b, 1, POSITION, 1);
        assert_int_equal(b.k->qkv(b.k, &op, q, given(&b, n->x, WIDTH)), 0);
        b.k->get(b.k, host, q, Q_COUNT);
        qkv_expect(form, n, should);
        for (uint32_t i = 0; i < Q_COUNT; i++)
                assert_near(host[i], should[i]);
        for (uint32_t i = 0; i < 2 * K_COUNT; i++) {
                float is = kv_number(
                        &b, number_at(1, POSITION, 1, i / DIM % KV_HEADS, i / K_COUNT, i % DIM));

                if (form->parts > 1)
                        assert_near(is, should[Q_COUNT + i]);
                else
                        assert_true(isnan(is)); /* as the page was */
        }
        fixture_close(&b);
}

static void v_is_k_before_its_norm_if_there_is_no_part_for_it(void **state)
{
        static struct numbers n;

        (void)state;
        noise((float *)&n, sizeof(n) / sizeof(float), 7);
        for (uint32_t i = 0; i < 54; i++) {
                const struct form form = { 1 + i % 3, (enum head_norm_span)(i / 3 % 3),
                                           (enum norm_kind)(i / 9 % 3),
                                           (enum norm_kind)((i / 9 + i / 27) % 3),
                                           i % 2 ? 0.8f : 0 };

                qkv_check(&form, &n);
        }
}

/* ---- project, gate ---- */

static void project_norms_each_part_and_multiplies_the_sum(void **state)
{
        const uint32_t count = 12, columns[] = { 0, 12, 4, 3, 1 };
        float w[12 * 5], y[2 * 5], x[2 * 12], weight[12], add[12], bias[12], host[2 * 12], *bx;

        (void)state;
        noise(w, 60, 1);
        noise(y, 10, 2);
        noise(x, 24, 3);
        noise(weight, 12, 4);
        noise(add, 12, 5);
        noise(bias, 12, 6);
        for (uint32_t i = 0; i < 45; i++) {
                enum norm_kind kind = (enum norm_kind)(i % 3);
                uint32_t together = columns[i / 3 % 5] ? columns[i / 3 % 5] : count;
                float scale = i % 2 ? -0.5f : 0, after = (float)(i / 15);
                struct linear op = { .norm_columns = columns[i / 3 % 5],
                                     .scale = scale,
                                     .after = after };
                struct fixture b;

                fixture_open(&b);
                op.w = matrix_of(&b, 5, 1, &count, w);
                op.bias = given(&b, bias, count);
                op.norm =
                        (struct row_norm){ kind, given(&b, weight, count),
                                           kind == NORM_LAYER ? given(&b, add, count) : NULL, EPS };
                bx = given(&b, x, 24);
                begin_one(&b, 0, 0, 2);
                assert_int_equal(b.k->project(b.k, &op, bx, given(&b, y, 10)), 0);
                b.k->get(b.k, host, bx, 24);
                for (uint32_t r = 0; r < 2; r++) {
                        long double sums[12];

                        for (uint32_t j = 0; j < count; j++) {
                                sums[j] = bias[j];
                                for (uint32_t c = 0; c < 5; c++)
                                        sums[j] += (long double)w[j * 5 + c] * y[r * 5 + c];
                        }
                        for (uint32_t j = 0; j < count; j += together)
                                norm_expect(kind, sums + j, together, weight, add);
                        for (uint32_t j = 0; j < count; j++)
                                assert_near(host[r * 12 + j],
                                            (x[r * 12 + j] + sums[j] * (scale == 0 ? 1 : scale)) *
                                                    (after == 0 ? 1 : after));
                }
                fixture_close(&b);
        }
}

static void gate_is_multiplied_with_numbers_of_its_row(void **state)
{
        /* the identity; rows of factors are 5 wide, and 2 of these count from number 2 on */
        const float w[] = { 1, 0, 0, 1 }, x[] = { 3, -1, 0.5f, 2 };
        const float factor[] = { NAN, NAN, 2, -4, NAN, NAN, NAN, -1, 0.25f, NAN };
        const float expected[] = { 18, 0, -0.25f, 1 };
        struct gate op = { .act = ACT_RELU_SQUARE, .factor_columns = 5, .factor_first = 2 };
        float *out, host[4];
        struct fixture b;

        (void)state;
        fixture_open(&b);
        op.w = matrix_of(&b, 2, 1, (uint32_t[]){ 2 }, w);
        op.factor = given(&b, factor, 10);
        out = floats_new(&b, 4);
        begin_one(&b, 0, 0, 2);
        assert_int_equal(b.k->gate(b.k, &op, out, given(&b, x, 4)), 0);
        b.k->get(b.k, host, out, 4);
        for (uint32_t i = 0; i < 4; i++)
                assert_true(host[i] == expected[i]);
        fixture_close(&b);
}

/* ---- pools ---- */

static void a_copy_is_made_in_each_pool_of_its_group(void **state)
{
        const struct kv_shape shapes[KV_POOLS_MAX] = { { 1, 1, 4, 3, KV_F16, 1, 0 },
                                                       { 2, 2, 8, 3, KV_F16, 1, 0 } };
        const struct step_copy copies[] = { { 1, 0, 0 }, { 0, 3, 0 }, { 2, 1, 1 } };
        struct kv *pools[KV_POOLS_MAX];

        (void)state;
        for (uint32_t i = 0; i < KV_POOLS_MAX; i++) {
                assert_int_equal(kv_pool_new(&shapes[i], &pools[i]), 0);
                for (uint32_t page = 0; page < 4; page++)
                        memset(pools[i]->pages + page * pools[i]->page_bytes, (int)(10 * i + page),
                               pools[i]->page_bytes);
        }
        kv_copy(pools, copies, 3);
        for (uint32_t i = 0; i < KV_POOLS_MAX; i++) {
                const uint32_t should[] = { 1, 1, 2, 1 };

                for (uint32_t page = 0; page < 4; page++)
                        for (size_t at = 0; at < pools[i]->page_bytes; at++)
                                assert_int_equal(pools[i]->pages[page * pools[i]->page_bytes + at],
                                                 10 * i + should[page]);
                pools[i] = kv_pool_free(pools[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(v_is_k_before_its_norm_if_there_is_no_part_for_it),
                cmocka_unit_test(project_norms_each_part_and_multiplies_the_sum),
                cmocka_unit_test(gate_is_multiplied_with_numbers_of_its_row),
                cmocka_unit_test(a_copy_is_made_in_each_pool_of_its_group),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
