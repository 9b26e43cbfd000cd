/*
 * Operators of the cpu backend that treat parts of a row, against ref and against itself: matrices
 * without v, or with q alone, norms of V, norms of some columns, factors of whole rows, and factors
 * of a gate.
 *
 * Against ref, weights are floats, so that only the order of sums differs.  Against itself, the
 * bits must be the same with every instruction set and number of threads, for each row alone and
 * beside others, and if scratch memory has room for a few rows only.
 */
#include "tests/kernels/small-model.h"
#include "tests/scale.h"

#define COLUMNS 96u
#define HEADS   4u
#define DIM     24u
#define FF      41u
#define TALL    56u /* rows of the projection: 7 of 8 columns */
#define FACTORS (FF + 9)
#define NEAR    2e-5

static const struct chunk chunks[] = { { 0, 3, 1 }, { 1, 0, 7 }, { 2, 5, 19 } };
#define ROWS 27u

struct form {
        uint32_t parts, kv_heads, together;
        enum head_norm_span span;
        enum norm_kind qk, v, added;
        enum kv_type kv;
        enum row_type type;
        float clip, scale, after;
        bool is_roomy; /* another matrix needs scratch memory for all rows */
};

enum { QKV, GATE, DOWN, MATRICES };
enum { X, FACTOR, Y, WEIGHT, ADD, BIAS, FREQUENCY, Q, G, VECTORS_N };

struct numbers { /* the host's */
        struct matrix_shape shapes[MATRICES];
        uint8_t *file[MATRICES]; /* rows of all parts */
        float *vectors[VECTORS_N];
};

struct result {
        float q[ROWS * HEADS * DIM], g[ROWS * FF], y[ROWS * TALL];
        float kv[ROWS * 2 * HEADS * DIM]; /* of a row: K, then V */
};

static const size_t counts[VECTORS_N] = { ROWS * COLUMNS, ROWS *FACTORS,    ROWS *TALL,
                                          HEADS *DIM,     HEADS *DIM,       3 * HEADS *DIM,
                                          DIM / 2,        ROWS *HEADS *DIM, ROWS *FF };

/* ---- numbers ---- */

/* Rows of small numbers, whole blocks of any type that this file uses. */
static void file_row(enum row_type type, uint32_t columns, uint8_t *row)
{
        for (uint32_t i = 0; i < columns && type == ROW_F32; i++) {
                float x = random_float();

                memcpy(row + 4 * i, &x, 4);
        }
        for (uint32_t i = 0; i < columns && type == ROW_BF16; i++) {
                uint16_t x = float_to_bfloat(random_float());

                memcpy(row + 2 * i, &x, 2);
        }
        for (uint32_t i = 0; i < columns && type == ROW_Q8_0; i += 32, row += 34) {
                uint16_t scale = float_to_half(0x1p-7f);

                memcpy(row, &scale, 2);
                for (uint32_t j = 0; j < 32; j++)
                        row[2 + j] = (uint8_t)random_next();
        }
}

static void numbers_make(struct numbers *n, const struct form *form)
{
        const uint32_t kv = form->kv_heads * DIM;

        *n = (struct numbers){
                .shapes = { { COLUMNS, form->parts, { HEADS * DIM, kv, kv }, { 0 } },
                            { COLUMNS, 1, { FF }, { 0 } },
                            { FF, 1, { TALL }, { 0 } } },
        };
        for (uint32_t m = 0; m < MATRICES; m++) {
                struct matrix_shape *shape = &n->shapes[m];
                uint32_t rows = 0;
                size_t bytes;

                for (uint32_t p = 0; p < shape->parts; p++) {
                        shape->type[p] = m == DOWN ? ROW_F32 : form->type;
                        rows += shape->rows[p];
                }
                bytes = row_bytes(shape->type[0], shape->columns);
                n->file[m] = malloc(rows * bytes);
                assert_non_null(n->file[m]);
                for (uint32_t i = 0; i < rows; i++)
                        file_row(shape->type[0], shape->columns, n->file[m] + i * bytes);
        }
        for (uint32_t i = 0; i < VECTORS_N; i++)
                n->vectors[i] = random_floats(counts[i]);
}

static void numbers_free(struct numbers *n)
{
        for (uint32_t m = 0; m < MATRICES; m++)
                free(n->file[m]);
        for (uint32_t i = 0; i < VECTORS_N; i++)
                free(n->vectors[i]);
}

/* ---- a layer in a backend ---- */

struct layer {
        struct model m;
        struct host host; /* its vocabulary alone */
        struct matrix *matrices[MATRICES], *roomy;
        float *vectors[VECTORS_N];
};

static void matrix_make(struct kernels *k, const struct matrix_shape *shape, const uint8_t *file,
                        struct matrix **ret_matrix)
{
        assert_int_equal(k->matrix_new(k, shape, ret_matrix), 0);
        for (uint32_t p = 0; p < shape->parts; p++) {
                assert_int_equal(k->weights_put(k, *ret_matrix, p, 0, shape->rows[p], file), 0);
                file += shape->rows[p] * row_bytes(shape->type[p], shape->columns);
        }
}

static void layer_open(struct layer *l, struct kernels *k, const struct form *form,
                       const struct numbers *n)
{
        const struct matrix_shape tall = { COLUMNS, 3, { 200, 100, 100 }, { 0 } };
        const struct kv_shape pool = { 2, form->kv_heads, DIM, PAGES, form->kv, 0, 0 };

        *l = (struct layer){ .host = { .s = { .vocab = 5 } } };
        l->m = (struct model){ .k = k, .host = &l->host };
        for (uint32_t i = 0; i < MATRICES; i++)
                matrix_make(k, &n->shapes[i], n->file[i], &l->matrices[i]);
        if (form->is_roomy)
                assert_int_equal(k->matrix_new(k, &tall, &l->roomy), 0);
        for (uint32_t i = 0; i < VECTORS_N; i++) {
                assert_int_equal(k->floats_new(k, counts[i], &l->vectors[i]), 0);
                k->put(k, l->vectors[i], n->vectors[i], counts[i]);
        }
        assert_int_equal(k->kv_new(k, &pool, &l->m.kv), 0);
        assert_int_equal(k->floats_new(k, ROWS * 5, &l->m.logits), 0);
}

static void layer_close(struct layer *l)
{
        struct kernels *k = l->m.k;

        for (uint32_t i = 0; i < MATRICES; i++)
                k->matrix_free(k, l->matrices[i]);
        if (l->roomy)
                k->matrix_free(k, l->roomy);
        for (uint32_t i = 0; i < VECTORS_N; i++)
                k->floats_free(k, l->vectors[i]);
        k->floats_free(k, l->m.logits);
        k->kv_free(k, l->m.kv);
}

static float kv_number(const struct kernels *k, const struct kv *kv, const uint8_t *tile, bool is_v,
                       uint32_t line, uint32_t d)
{
        size_t at = k->layout == KV_LAYOUT_LANES && !is_v ? (size_t)d * PAGE_POSITIONS + line
                                                          : (size_t)line * DIM + d;

        switch (kv->shape.type) {
        case KV_F16:
                return half_to_float(((const uint16_t *)tile)[at]);
        case KV_BF16:
                return bfloat_to_float(((const uint16_t *)tile)[at]);
        case KV_INT8:
                return ((const int8_t *)tile)[at] * kv_scales(kv, tile)[line];
        case KV_FP8:
                return e4m3_to_float(tile[at]) * kv_scales(kv, tile)[line];
        case KV_F32:
                break;
        }
        return ((const float *)tile)[at];
}

/* K and V of the rows of a step. */
static void pages_get(const struct layer *l, const struct chunk *of, uint32_t count, float *to)
{
        const struct kv *kv = l->m.kv;

        for (uint32_t c = 0; c < count; c++)
                for (uint32_t i = 0; i < of[c].count * 2 * kv->shape.kv_heads; i++) {
                        uint32_t position = of[c].position + i / 2 / kv->shape.kv_heads;
                        uint32_t is_v = i / kv->shape.kv_heads % 2;
                        uint32_t page = page_of(of[c].slot, position / PAGE_POSITIONS);
                        const uint8_t *tile = kv_tile(kv, page, 1, i % kv->shape.kv_heads) +
                                              is_v * kv->tile_bytes;

                        for (uint32_t d = 0; d < DIM; d++)
                                *to++ = kv_number(l->m.k, kv, tile, is_v, position % PAGE_POSITIONS,
                                                  d);
                }
}

static struct row_norm norm_of(const struct layer *l, enum norm_kind kind)
{
        return (struct row_norm){ kind, l->vectors[WEIGHT],
                                  kind == NORM_LAYER ? l->vectors[ADD] : NULL, 0.01f };
}

/* A step of these chunks, whose first row has the numbers of row `first`. */
static void layer_run(struct layer *l, const struct form *form, const struct chunk *of,
                      uint32_t count, uint32_t first, struct result *ret)
{
        struct kernels *k = l->m.k;
        const struct qkv qkv = { .w = l->matrices[QKV],
                                 .bias = l->vectors[BIAS],
                                 .norm = { NORM_RMS, NULL, NULL, 0.01f },
                                 .clip = form->clip,
                                 .span = form->span,
                                 .q_norm = norm_of(l, form->qk),
                                 .k_norm = norm_of(l, form->qk),
                                 .v_norm = norm_of(l, form->v),
                                 .rope = { DIM, ROPE_HALVES, l->vectors[FREQUENCY], 1 },
                                 .kv = l->m.kv,
                                 .layer = 1,
                                 .heads = HEADS,
                                 .kv_heads = form->kv_heads,
                                 .head_dim = DIM };
        const struct gate gate = { .w = l->matrices[GATE],
                                   .act = ACT_GELU_TANH,
                                   .factor = l->vectors[FACTOR] + (size_t)first * FACTORS,
                                   .factor_columns = FACTORS,
                                   .factor_first = 7 };
        const struct linear down = { .w = l->matrices[DOWN],
                                     .norm = norm_of(l, form->added),
                                     .norm_columns = form->together,
                                     .scale = form->scale,
                                     .after = form->after };
        const float *x = l->vectors[X] + (size_t)first * COLUMNS;
        float *y = l->vectors[Y] + (size_t)first * TALL;
        uint32_t rows = 0;

        for (uint32_t c = 0; c < count; c++)
                rows += of[c].count;
        memset(ret, 0, sizeof(*ret));
        model_begin(&l->m, of, count);
        assert_int_equal(k->qkv(k, &qkv, l->vectors[Q], x), 0);
        assert_int_equal(k->gate(k, &gate, l->vectors[G], x), 0);
        assert_int_equal(k->project(k, &down, y, l->vectors[G]), 0);
        k->get(k, ret->q, l->vectors[Q], (size_t)rows * HEADS * DIM);
        k->get(k, ret->g, l->vectors[G], (size_t)rows * FF);
        k->get(k, ret->y, y, (size_t)rows * TALL);
        pages_get(l, of, count, ret->kv);
        model_end(&l->m);
}

static void run_once(struct kernels *k, const struct form *form, const struct numbers *n,
                     struct result *ret)
{
        struct layer l;

        layer_open(&l, k, form, n);
        layer_run(&l, form, chunks, 3, 0, ret);
        layer_close(&l);
}

/* ---- against ref ---- */

static void near(const char *what, const float *is, const float *should, size_t count, double off)
{
        for (size_t i = 0; i < count; i++)
                if (!(fabs((double)is[i] - should[i]) <= off * (1 + fabs((double)should[i]))))
                        fail_msg("%s: number %zu is %.9g, not %.9g", what, i, is[i], should[i]);
}

static struct form form_of(uint32_t i)
{
        static const enum kv_type kvs[] = { KV_F32, KV_F16, KV_INT8, KV_BF16, KV_FP8 };
        static const uint32_t pieces[] = { 0, 8, 7, 1, TALL };

        return (struct form){ .parts = 1 + i % 3,
                              .kv_heads = i / 3 % 2 ? HEADS : 1 + i % 2,
                              .together = pieces[i % 5],
                              .span = (enum head_norm_span)(i / 6 % 3),
                              .qk = (enum norm_kind)(i / 2 % 3),
                              .v = (enum norm_kind)(i / 5 % 3),
                              .added = (enum norm_kind)(i / 4 % 3),
                              .kv = kvs[i / 3 % 5],
                              .clip = i % 4 ? 0 : 0.7f,
                              .scale = i % 3 ? 0 : -0.4f,
                              .after = i % 5 ? 0.6f : 0,
                              .is_roomy = i / 2 % 2 };
}

/* Of the largest number of a head, which is below 8: by how much two roundings may differ. */
static double off_of(enum kv_type type)
{
        static const double off[] = { 0x1p-10, 0x1p-7, 8.1 / 127, NEAR, 2.0 / 15 };

        return off[type];
}

static void parts_agree_with_ref(void **state)
{
        static struct result should, is;
        uint32_t forms = scaled(60, 600);

        (void)state;
        for (uint32_t i = 0; i < forms; i++) {
                const struct form form = form_of(i);
                size_t kv = (size_t)ROWS * 2 * form.kv_heads * DIM;
                struct numbers n;

                numbers_make(&n, &form);
                run_once(ref, &form, &n, &should);
                for (uint32_t v = 0; v < variant_count; v++) {
                        run_once(variants[v], &form, &n, &is);
                        near("q", is.q, should.q, ROWS * HEADS * DIM, NEAR);
                        near("g", is.g, should.g, ROWS * FF, NEAR);
                        near("y", is.y, should.y, ROWS * TALL, 20 * NEAR);
                        near("k and v", is.kv, should.kv, kv, off_of(form.kv));
                        for (size_t at = 0; at < kv && form.parts == 1; at++)
                                assert_true(is.kv[at] == 0); /* as the pages were */
                }
                numbers_free(&n);
        }
}

/* ---- against itself ---- */

static void results_are_the_same_bits_if_there_is_little_scratch_memory(void **state)
{
        static const enum row_type types[] = { ROW_F32, ROW_BF16, ROW_Q8_0 };
        static struct result first[VARIANT_KINDS], is;

        (void)state;
        for (uint32_t i = 0; i < 9; i++) {
                struct form form = { .parts = 1 + i % 3,
                                     .kv_heads = HEADS,
                                     .together = 8,
                                     .span = (enum head_norm_span)(i % 3),
                                     .qk = NORM_RMS,
                                     .v = NORM_RMS,
                                     .added = NORM_RMS,
                                     .kv = KV_F16,
                                     .type = types[i / 3],
                                     .after = 0.5f };
                bool made[VARIANT_KINDS] = { false };
                struct numbers n;

                numbers_make(&n, &form);
                for (uint32_t v = 0; v < 2 * variant_count; v++) {
                        uint32_t kind = variant_kind(v / 2);

                        form.is_roomy = v % 2;
                        run_once(variants[v / 2], &form, &n, made[kind] ? &is : &first[kind]);
                        if (made[kind])
                                assert_memory_equal(&is, &first[kind], sizeof(is));
                        made[kind] = true;
                }
                numbers_free(&n);
        }
}

/* The rows of `all` from `first` on, as many as `one` has. */
static void rows_are(const struct form *form, const struct result *one, const struct result *all,
                     uint32_t first, uint32_t rows)
{
        const size_t kv = (size_t)2 * form->kv_heads * DIM;

        assert_memory_equal(one->q, all->q + first * HEADS * DIM, rows * HEADS * DIM * 4);
        assert_memory_equal(one->g, all->g + first * FF, rows * FF * 4);
        assert_memory_equal(one->y, all->y + first * TALL, rows * TALL * 4);
        assert_memory_equal(one->kv, all->kv + first * kv, rows * kv * 4);
}

static void a_row_has_the_same_bits_alone_and_beside_others(void **state)
{
        static const enum row_type types[] = { ROW_F32, ROW_BF16, ROW_Q8_0 };
        static struct result all, one;

        (void)state;
        for (uint32_t i = 0; i < 6; i++) {
                struct form form = form_of(3 * i + 1 + i % 2);
                struct numbers n;

                form.type = types[i % 3];
                numbers_make(&n, &form);
                for (uint32_t v = 0; v < variant_count; v++) {
                        struct layer l;

                        run_once(variants[v], &form, &n, &all);
                        layer_open(&l, variants[v], &form, &n);
                        for (uint32_t c = 0, r = 0; c < 3; c++)
                                for (uint32_t at = 0, some; at < chunks[c].count; at += some) {
                                        struct chunk part = { chunks[c].slot,
                                                              chunks[c].position + at, 0 };

                                        some = at % 3 ? 1 : 2;
                                        if (some > chunks[c].count - at)
                                                some = chunks[c].count - at;
                                        part.count = some;
                                        layer_run(&l, &form, &part, 1, r, &one);
                                        rows_are(&form, &one, &all, r, some);
                                        r += some;
                                }
                        layer_close(&l);
                }
                numbers_free(&n);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parts_agree_with_ref),
                cmocka_unit_test(results_are_the_same_bits_if_there_is_little_scratch_memory),
                cmocka_unit_test(a_row_has_the_same_bits_alone_and_beside_others),
        };

        random_seed();
        return cmocka_run_group_tests(tests, variants_open, variants_close);
}
