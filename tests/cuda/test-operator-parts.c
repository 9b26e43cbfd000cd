/*
 * Operators that treat parts of a row, run by the emulator, against ref: matrices without v, or
 * with q alone, norms of V, norms of some columns, factors of whole rows, and factors of a gate.
 */
#include "tests/cuda/operator-sides.h"

#define BFLOAT  0x1p-8
#define HALF    0x1p-11
#define FLOATS  1e-5 /* of sums, sines, exponentials */
#define COLUMNS 64u
#define HEADS   4u

static const struct kv_shape pool = { 2, 1, 32, PAGES, KV_F16, SWAP_PAGES };
/* Rows that linear() multiplies, and rows that the library multiplies. */
static const struct chunk few[] = { { 0, 3, 1 }, { 1, 0, 7 }, { 2, 5, 19 } };
static const struct chunk many[] = { { 0, 0, 50 }, { 1, 9, 1 }, { 2, 4, 21 } };
#define FEW_ROWS  27u
#define MANY_ROWS 72u

static const enum norm_kind kinds[] = { NORM_NONE, NORM_RMS, NORM_LAYER };
static const enum kv_type types[] = { KV_F16, KV_BF16, KV_INT8, KV_FP8 };

static uint32_t begin(struct sides *s, bool is_long)
{
        sides_begin(s, is_long ? many : few, 3);
        return is_long ? MANY_ROWS : FEW_ROWS;
}

static struct both_floats both_exact(struct sides *s, size_t count)
{
        float *host = exact_floats(count);
        struct both_floats both = both_floats(s, host, count);

        free(host);
        return both;
}

/* ---- qkv ---- */

struct form {
        uint32_t parts, kv_heads, dim;
        enum head_norm_span span;
        enum norm_kind qk, v;
        enum kv_type type;
        float clip;
        bool biased, is_long;
        enum row_type rows; /* of all parts */
};

static double number_in(const struct kv *kv, const uint8_t *tile, uint32_t line, uint32_t d)
{
        size_t at = (size_t)line * kv->shape.head_dim + d;

        switch (kv->shape.type) {
        case KV_F16:
                return half_to_float(((const uint16_t *)tile)[at]);
        case KV_BF16:
                return bfloat_to_float(((const uint16_t *)tile)[at]);
        case KV_INT8:
                return (double)((const int8_t *)tile)[at] * kv_scales(kv, (uint8_t *)tile)[line];
        case KV_FP8:
                return (double)e4m3_to_float(tile[at]) * kv_scales(kv, (uint8_t *)tile)[line];
        case KV_F32:
                break;
        }
        return NAN;
}

/* The numbers of K, then those of V, of all rows. */
static float *pages_of(struct sides *s, uint32_t side, const struct chunk *chunks, uint32_t rows)
{
        const struct kv *kv = s->model[REF].kv;
        const struct kv_shape *shape = &kv->shape;
        float *all = malloc((size_t)rows * 2 * shape->kv_heads * shape->head_dim * sizeof(*all));
        uint8_t *pages = malloc(PAGES * kv->page_bytes);
        float *to = all;

        assert_true(all && pages);
        if (side == GPU)
                peek(pages, s->model[GPU].kv->pages, PAGES * kv->page_bytes);
        else
                memcpy(pages, kv->pages, PAGES * kv->page_bytes);
        for (uint32_t c = 0; c < 3; c++)
                for (uint32_t i = 0; i < chunks[c].count * 2 * shape->kv_heads; i++) {
                        uint32_t position = chunks[c].position + i / 2 / shape->kv_heads;
                        uint32_t is_v = i / shape->kv_heads % 2;
                        const uint8_t *tile = pages +
                                              page_of(chunks[c].slot, position / PAGE_POSITIONS) *
                                                      kv->page_bytes +
                                              kv_tile_offset(shape, 1, i % shape->kv_heads) +
                                              is_v * kv->tile_bytes;

                        for (uint32_t d = 0; d < shape->head_dim; d++)
                                *to++ = (float)number_in(kv, tile, position % PAGE_POSITIONS, d);
                }
        free(pages);
        return all;
}

/* How far two roundings of nearly the same number may be apart. */
static void pages_near(struct sides *s, const struct form *form, uint32_t rows)
{
        static const double share[] = { 2 * HALF, 2 * BFLOAT, 0, 0, 2.0 / 15 };
        static const double of_most[] = { 1e-4, 1e-4, 1.02 / 127, 0, 1e-3 };
        const uint32_t columns = form->kv_heads * form->dim;
        struct both_floats both = both_floats(s, NULL, (size_t)rows * 2 * columns);

        for (uint32_t side = 0; side < SIDES; side++) {
                float *numbers = pages_of(s, side, form->is_long ? many : few, rows);

                s->k[side]->put(s->k[side], both.of[side], numbers, both.count);
                free(numbers);
        }
        rows_near(s, "k and v", &both, rows * 2, columns, share[form->type], of_most[form->type]);
}

static void run_qkv(struct sides *s, const struct form *form, const struct both_matrix *w,
                    const struct both_floats *q, const struct both_floats *x)
{
        const uint32_t kv = form->kv_heads * form->dim, all = HEADS * form->dim;
        struct both_floats bias = both_random(s, all + 2 * kv), weight = both_random(s, all);
        struct both_floats norm_bias = both_random(s, all), v_weight = both_random(s, form->dim);
        struct both_floats frequency = both_random(s, form->dim / 2);

        for (uint32_t side = 0; side < SIDES; side++) {
                const struct qkv op = {
                        .w = w->of[side],
                        .bias = form->biased ? bias.of[side] : NULL,
                        .clip = form->clip,
                        .span = form->span,
                        .q_norm = norm_at(form->qk, &weight, &norm_bias, side),
                        .k_norm = norm_at(form->qk, &weight, &norm_bias, side),
                        .v_norm = norm_at(form->v, form->v == NORM_LAYER ? &v_weight : NULL,
                                          &norm_bias, side),
                        .rope = { form->dim / 2, ROPE_HALVES, frequency.of[side], 1 },
                        .kv = s->model[side].kv,
                        .layer = 1,
                        .heads = HEADS,
                        .kv_heads = form->kv_heads,
                        .head_dim = form->dim,
                };

                assert_int_equal(s->k[side]->qkv(s->k[side], &op, q->of[side], x->of[side]), 0);
        }
}

static void try_qkv(const struct form *form)
{
        const struct kv_shape shape = {
                2, form->kv_heads, form->dim, PAGES, form->type, SWAP_PAGES
        };
        const uint32_t kv = form->kv_heads * form->dim, all = HEADS * form->dim;
        const uint32_t parts[] = { all, kv, kv };
        struct both_floats x, q;
        struct both_matrix w;
        uint8_t *was, *is;
        struct sides s;
        uint32_t rows;
        size_t bytes;

        sides_open(&s, !form->is_long, &shape);
        w = both_matrix(&s, COLUMNS, form->parts, parts, form->rows, NULL);
        rows = begin(&s, form->is_long);
        x = both_exact(&s, (size_t)rows * COLUMNS);
        q = both_floats(&s, NULL, (size_t)rows * all);
        bytes = PAGES * s.model[REF].kv->page_bytes;
        was = malloc(bytes);
        is = malloc(bytes);
        assert_true(was && is);
        peek(was, s.model[GPU].kv->pages, bytes);
        run_qkv(&s, form, &w, &q, &x);
        rows_near(&s, "q", &q, rows, all, form->type == KV_BF16 ? BFLOAT : HALF, 1e-4);
        peek(is, s.model[GPU].kv->pages, bytes);
        if (form->parts > 1)
                pages_near(&s, form, rows);
        else
                assert_memory_equal(is, was, bytes);
        sides_end(&s);
        sides_close(&s);
        free(was);
        free(is);
}

/* Of one part, two, or three; with as many KV heads as heads, q and k are of the same height. */
static void qkv_serves_every_number_of_parts(void **state)
{
        static const enum head_norm_span spans[] = { SPAN_HEAD, SPAN_HEADS, SPAN_WHOLE };

        (void)state;
        for (uint32_t i = 0; i < 36; i++) {
                const struct form form = { .parts = 1 + i % 3,
                                           .kv_heads = i / 3 % 2 ? HEADS : 2,
                                           .dim = i % 5 ? 32 : 80,
                                           .span = spans[i / 6 % 3],
                                           .qk = kinds[i / 18 + (i / 2 % 2)],
                                           .v = kinds[i / 4 % 3],
                                           .type = types[i / 3 % 4],
                                           .clip = i % 7 ? 0 : 3,
                                           .biased = i % 2,
                                           .is_long = i / 2 % 2,
                                           .rows = i / 9 % 2 ? ROW_Q8_0 : ROW_BF16 };

                try_qkv(&form);
        }
}

static void k_is_v_before_the_norm_of_a_whole_row(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 8; i++) {
                const struct form form = { .parts = 2,
                                           .kv_heads = i % 2 ? HEADS : 1,
                                           .dim = 64,
                                           .span = SPAN_WHOLE,
                                           .qk = kinds[1 + i / 2 % 2],
                                           .v = kinds[i / 4],
                                           .clip = i % 3 ? 0 : 2,
                                           .biased = true,
                                           .is_long = i / 2 % 2,
                                           .rows = ROW_BF16 };

                try_qkv(&form);
        }
}

static void writes_pages_of_heads_of_512_numbers(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 4; i++) {
                const struct form form = { .parts = 2,
                                           .kv_heads = 1,
                                           .dim = 512,
                                           .qk = NORM_RMS,
                                           .v = NORM_RMS,
                                           .type = types[i],
                                           .rows = ROW_BF16 };

                try_qkv(&form);
        }
}

/* Parts of two types are multiplied one by one. */
static void q_and_k_may_have_different_types(void **state)
{
        const uint32_t parts[] = { HEADS * 32, 64 };
        const struct form form = { .parts = 2, .kv_heads = 2, .dim = 32, .v = NORM_RMS };
        const struct kv_shape shape = { 2, 2, 32, PAGES, KV_F16, SWAP_PAGES };
        struct matrix_shape mixed = { COLUMNS, 2, { parts[0], parts[1] }, { ROW_BF16, ROW_Q8_0 } };
        struct both_floats x, q;
        struct both_matrix w;
        struct sides s;

        (void)state;
        sides_open(&s, true, &shape);
        for (uint32_t side = 0; side < SIDES; side++) {
                assert_int_equal(s.k[side]->matrix_new(s.k[side], &mixed, &w.of[side]), 0);
                s.matrices[side][0] = w.of[side];
        }
        s.matrix_count = 1;
        for (uint32_t i = 0; i < parts[0] + parts[1]; i++) {
                uint32_t part = i >= parts[0];
                uint8_t row[2 * COLUMNS];

                exact_row(mixed.type[part], COLUMNS, row);
                for (uint32_t side = 0; side < SIDES; side++)
                        s.k[side]->weights_put(s.k[side], w.of[side], part, part ? i - parts[0] : i,
                                               1, row);
        }
        begin(&s, false);
        x = both_exact(&s, FEW_ROWS * COLUMNS);
        q = both_floats(&s, NULL, FEW_ROWS * parts[0]);
        run_qkv(&s, &form, &w, &q, &x);
        rows_near(&s, "q", &q, FEW_ROWS, parts[0], HALF, 1e-4);
        pages_near(&s, &form, FEW_ROWS);
        sides_end(&s);
        sides_close(&s);
}

/* ---- project ---- */

static void try_project(bool is_long, uint32_t n, uint32_t together, enum norm_kind kind,
                        float scale, float after, bool biased)
{
        const uint32_t columns = 70, weights = together ? together : n;
        struct both_floats x, y, bias, weight, norm_bias;
        struct both_matrix w;
        struct sides s;
        uint32_t rows;

        sides_open(&s, !is_long, &pool);
        w = both_matrix(&s, columns, 1, &n, ROW_BF16, NULL);
        bias = both_random(&s, n);
        weight = both_random(&s, weights);
        norm_bias = both_random(&s, weights);
        rows = begin(&s, is_long);
        x = both_random(&s, (size_t)rows * n);
        y = both_exact(&s, (size_t)rows * columns);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct linear op = { .w = w.of[side],
                                           .bias = biased ? bias.of[side] : NULL,
                                           .norm = norm_at(kind, &weight, &norm_bias, side),
                                           .norm_columns = together,
                                           .scale = scale,
                                           .after = after };

                assert_int_equal(s.k[side]->project(s.k[side], &op, x.of[side], y.of[side]), 0);
        }
        rows_near(&s, "project", &x, rows, n, FLOATS, 1e-4);
        sides_end(&s);
        sides_close(&s);
}

static void norms_some_columns_and_multiplies_the_row_afterwards(void **state)
{
        static const uint32_t widths[] = { 96, 33, 768 }, pieces[] = { 0, 3, 256 };
        static const float afters[] = { 0, 0.7f, -3, 1 };

        (void)state;
        for (uint32_t i = 0; i < 48; i++) {
                uint32_t n = widths[i % 3], together = i / 3 % 2 ? pieces[i % 3] : 0;

                if (i % 3 == 0 && i / 3 % 2)
                        together = i % 2 ? 96 : 32;
                try_project(i % 2, n, together, kinds[i / 4 % 3], i % 5 ? 0 : -0.3f,
                            afters[i / 2 % 4], i / 8 % 2);
        }
}

/* ---- gate ---- */

/* The factors are in the middle of wider rows. */
static void try_gate(bool is_long, uint32_t ff, enum activation act, bool biased,
                     enum row_type type)
{
        const uint32_t columns = 2 * ff + 3, first = ff + 2;
        struct both_floats x, out, bias, factor;
        struct both_matrix w;
        struct sides s;
        uint32_t rows;

        sides_open(&s, !is_long, &pool);
        w = both_matrix(&s, COLUMNS, 1, &ff, type, NULL);
        bias = both_random(&s, ff);
        rows = begin(&s, is_long);
        x = both_exact(&s, (size_t)rows * COLUMNS);
        factor = both_random(&s, (size_t)rows * columns);
        out = both_random(&s, (size_t)rows * ff);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct gate op = { .w = w.of[side],
                                         .bias = biased ? bias.of[side] : NULL,
                                         .act = act,
                                         .factor = factor.of[side],
                                         .factor_columns = columns,
                                         .factor_first = first };

                assert_int_equal(s.k[side]->gate(s.k[side], &op, out.of[side], x.of[side]), 0);
        }
        rows_near(&s, "gate", &out, rows, ff, BFLOAT, FLOATS);
        sides_end(&s);
        sides_close(&s);
}

static void a_gate_of_one_part_is_multiplied_with_factors(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 2 * ACT_N; i++) {
                try_gate(i % 2, 37, i / 2, i / 2 % 2, ROW_BF16);
                try_gate(i % 2, 256, i / 2, i / 2 % 2, ROW_Q8_0);
        }
}

/* ---- whose bits they are ---- */

#define DIM 64u
#define FF  96u

/* A layer's operators with all of these options, on the GPU alone. */
struct layer {
        struct sides s;
        struct both_matrix qk, gate, down;
        struct both_floats weight, factor, x, q, g, y;
};

static void layer_open(struct layer *l)
{
        const struct kv_shape shape = { 2, 2, DIM, PAGES, KV_F16, SWAP_PAGES };
        const uint32_t parts[] = { HEADS * DIM, 2 * DIM }, ff = FF, columns = COLUMNS;
        struct sides *s = &l->s;

        sides_open(s, true, &shape);
        l->qk = both_matrix(s, COLUMNS, 2, parts, ROW_Q8_0, NULL);
        l->gate = both_matrix(s, COLUMNS, 1, &ff, ROW_BF16, NULL);
        l->down = both_matrix(s, FF, 1, &columns, ROW_BF16, NULL);
        l->weight = both_random(s, HEADS * DIM);
        l->factor = both_random(s, FEW_ROWS * 2 * FF);
        l->x = both_random(s, FEW_ROWS * COLUMNS);
        l->q = both_floats(s, NULL, FEW_ROWS * HEADS * DIM);
        l->g = both_floats(s, NULL, FEW_ROWS * FF);
        l->y = both_floats(s, NULL, FEW_ROWS * COLUMNS);
}

/* Rows from `first` on of x and of factors; results are q and y. */
static void layer_run(struct layer *l, const struct chunk *chunks, uint32_t count, uint32_t first,
                      float *ret_q, float *ret_y, uint32_t rows)
{
        static const float zeros[FEW_ROWS * COLUMNS];
        struct kernels *k = l->s.k[GPU];
        const struct row_norm norm = { NORM_RMS, l->weight.of[GPU], NULL, 1e-5f };
        const struct qkv qkv = { .w = l->qk.of[GPU],
                                 .q_norm = norm,
                                 .k_norm = norm,
                                 .v_norm = { NORM_RMS, NULL, NULL, 1e-5f },
                                 .kv = l->s.model[GPU].kv,
                                 .heads = HEADS,
                                 .kv_heads = 2,
                                 .head_dim = DIM };
        const struct gate gate = { .w = l->gate.of[GPU],
                                   .act = ACT_GELU_TANH,
                                   .factor = l->factor.of[GPU] + (size_t)first * 2 * FF,
                                   .factor_columns = 2 * FF,
                                   .factor_first = 5 };
        const struct linear down = {
                .w = l->down.of[GPU], .norm = norm, .norm_columns = 16, .after = 0.3f
        };
        const float *x = l->x.of[GPU] + (size_t)first * COLUMNS;

        k->put(k, l->y.of[GPU], zeros, FEW_ROWS * COLUMNS);
        assert_int_equal(model_begin(&l->s.model[GPU], chunks, count), 0);
        assert_int_equal(k->qkv(k, &qkv, l->q.of[GPU], x), 0);
        assert_int_equal(k->gate(k, &gate, l->g.of[GPU], x), 0);
        assert_int_equal(k->project(k, &down, l->y.of[GPU], l->g.of[GPU]), 0);
        k->get(k, ret_q, l->q.of[GPU], (size_t)rows * HEADS * DIM);
        k->get(k, ret_y, l->y.of[GPU], (size_t)rows * COLUMNS);
        model_end(&l->s.model[GPU]);
}

static void a_row_has_the_same_bits_alone_and_beside_others(void **state)
{
        static float q[FEW_ROWS * HEADS * DIM], y[FEW_ROWS * COLUMNS], one_q[HEADS * DIM],
                one_y[COLUMNS];
        struct layer l;
        size_t bytes;
        uint8_t *was, *is;

        (void)state;
        layer_open(&l);
        bytes = PAGES * l.s.model[REF].kv->page_bytes;
        was = malloc(bytes);
        is = malloc(bytes);
        assert_true(was && is);
        layer_run(&l, few, 3, 0, q, y, FEW_ROWS);
        peek(was, l.s.model[GPU].kv->pages, bytes);
        for (uint32_t c = 0, r = 0; c < 3; c++)
                for (uint32_t i = 0; i < few[c].count; i++, r++) {
                        const struct chunk one = { few[c].slot, few[c].position + i, 1 };

                        layer_run(&l, &one, 1, r, one_q, one_y, 1);
                        assert_memory_equal(one_q, q + (size_t)r * HEADS * DIM, sizeof(one_q));
                        assert_memory_equal(one_y, y + (size_t)r * COLUMNS, sizeof(one_y));
                }
        peek(is, l.s.model[GPU].kv->pages, bytes);
        assert_memory_equal(is, was, bytes);
        sides_close(&l.s);
        free(was);
        free(is);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(qkv_serves_every_number_of_parts),
                cmocka_unit_test(k_is_v_before_the_norm_of_a_whole_row),
                cmocka_unit_test(writes_pages_of_heads_of_512_numbers),
                cmocka_unit_test(q_and_k_may_have_different_types),
                cmocka_unit_test(norms_some_columns_and_multiplies_the_row_afterwards),
                cmocka_unit_test(a_gate_of_one_part_is_multiplied_with_factors),
                cmocka_unit_test(a_row_has_the_same_bits_alone_and_beside_others),
        };

        random_seed();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
