/*
 * The forms of operators that the model of small-model.h does not have, run by the emulator,
 * against ref: norms of both kinds, positions, gates of one part, norms and scales of what is
 * added, biases and scales of the head, norms of q and k over other spans, and layers that differ
 * in their windows and slopes.
 */
#include "tests/cuda/operator-sides.h"

#define BFLOAT 0x1p-8
#define HALF   0x1p-11
#define FLOATS 1e-5 /* of sums, sines, exponentials */
#define DIM    32u

static const struct kv_shape pool = { 2, 1, DIM, PAGES, KV_F16, SWAP_PAGES };
/* Rows that linear() multiplies, and rows that the library multiplies. */
static const struct chunk few[] = { { 0, 3, 1 }, { 1, 0, 7 }, { 2, 5, 19 } };
static const struct chunk many[] = { { 0, 0, 50 }, { 1, 9, 1 }, { 2, 4, 21 } };
#define FEW_ROWS  27u
#define MANY_ROWS 72u

static const enum norm_kind kinds[] = { NORM_NONE, NORM_RMS, NORM_LAYER };

/* Begins a step of few rows, or of many; returns their number. */
static uint32_t begin(struct sides *s, bool is_long)
{
        sides_begin(s, is_long ? many : few, 3);
        return is_long ? MANY_ROWS : FEW_ROWS;
}

/* ---- norms ---- */

/* Multiplied with an identity, so that the head's logits are the normalised row. */
static void try_norm(uint32_t columns, enum norm_kind kind, bool weighted, bool biased)
{
        float *one = calloc((size_t)columns * columns, sizeof(*one)), *x;
        struct both_floats weight, bias, rows, logits;
        struct both_matrix identity;
        struct sides s;

        assert_non_null(one);
        for (uint32_t i = 0; i < columns; i++)
                one[(size_t)i * columns + i] = 1;
        sides_open(&s, true, &pool);
        identity = both_matrix(&s, columns, 1, &columns, ROW_F32, one);
        weight = both_random(&s, columns);
        bias = both_random(&s, columns);
        x = random_floats((size_t)FEW_ROWS * columns);
        for (size_t i = 0; i < (size_t)FEW_ROWS * columns && kind == NORM_LAYER; i++)
                x[i] += 500; /* far from 0, and close to each other */
        rows = both_floats(&s, x, (size_t)FEW_ROWS * columns);
        logits = both_floats(&s, NULL, (size_t)FEW_ROWS * columns);
        begin(&s, false);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct head op = { .w = identity.of[side],
                                         .norm = norm_at(kind, weighted ? &weight : NULL,
                                                         biased ? &bias : NULL, side) };

                assert_int_equal(s.k[side]->head(s.k[side], &op, logits.of[side], rows.of[side]),
                                 0);
        }
        rows_near(&s, "norm", &logits, FEW_ROWS, columns, BFLOAT,
                  kind == NORM_LAYER ? 2e-3 : FLOATS);
        sides_end(&s);
        sides_close(&s);
        free(one);
        free(x);
}

static void norms_of_rows_of_any_width_match_ref(void **state)
{
        static const uint32_t widths[] = { 1, 33, 96, 257, 300 };

        (void)state;
        for (uint32_t i = 0; i < sizeof(widths) / sizeof(*widths); i++)
                for (uint32_t form = 0; form < 12; form++)
                        try_norm(widths[i], kinds[form % 3], form / 3 % 2, form / 6);
}

/* ---- embed ---- */

static void try_embed(uint32_t columns, enum row_type type, enum row_type position_type,
                      bool placed, enum norm_kind kind)
{
        const uint32_t tokens = VOCAB_MAX, places = 64;
        struct both_matrix table, positions;
        struct both_floats x, weight, bias;
        struct sides s;

        sides_open(&s, true, &pool);
        table = both_matrix(&s, columns, 1, &tokens, type, NULL);
        positions = both_matrix(&s, columns, 1, &places, position_type, NULL);
        weight = both_random(&s, columns);
        bias = both_random(&s, columns);
        x = both_floats(&s, NULL, (size_t)FEW_ROWS * columns);
        begin(&s, false);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct embed op = { .table = table.of[side],
                                          .scale = 1.3f,
                                          .positions = placed ? positions.of[side] : NULL,
                                          .first_position = 2,
                                          .norm = norm_at(kind, &weight, &bias, side) };

                assert_int_equal(s.k[side]->embed(s.k[side], &op, x.of[side]), 0);
        }
        rows_near(&s, "embed", &x, FEW_ROWS, columns, FLOATS, FLOATS);
        sides_end(&s);
        sides_close(&s);
}

static void embeds_positions_and_normalises_the_sum(void **state)
{
        (void)state;
        for (uint32_t form = 0; form < 6; form++) {
                try_embed(96, ROW_BF16, ROW_Q8_0, form / 3, kinds[form % 3]);
                try_embed(288, ROW_Q8_0, ROW_BF16, form / 3, kinds[form % 3]);
                try_embed(33, ROW_BF16, ROW_BF16, form / 3, kinds[form % 3]);
        }
}

/* ---- project ---- */

static void try_project(bool is_long, uint32_t n, enum norm_kind kind, float scale, bool biased)
{
        const uint32_t columns = 70;
        struct both_floats x, y, bias, weight, norm_bias;
        struct both_matrix w;
        struct sides s;
        uint32_t rows;
        float *host;

        sides_open(&s, !is_long, &pool);
        w = both_matrix(&s, columns, 1, &n, ROW_BF16, NULL);
        bias = both_random(&s, n);
        weight = both_random(&s, n);
        norm_bias = both_random(&s, n);
        rows = begin(&s, is_long);
        x = both_random(&s, (size_t)rows * n);
        host = exact_floats((size_t)rows * columns);
        y = both_floats(&s, host, (size_t)rows * columns);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct linear op = { .w = w.of[side],
                                           .bias = biased ? bias.of[side] : NULL,
                                           .norm = norm_at(kind, &weight, &norm_bias, side),
                                           .scale = scale };

                assert_int_equal(s.k[side]->project(s.k[side], &op, x.of[side], y.of[side]), 0);
        }
        rows_near(&s, "project", &x, rows, n, FLOATS, 1e-4);
        sides_end(&s);
        sides_close(&s);
        free(host);
}

static void adds_what_a_branch_projects_normalised_and_scaled(void **state)
{
        static const float scales[] = { 0, 1, -0.22f };

        (void)state;
        for (uint32_t form = 0; form < 36; form++)
                try_project(form / 18, form % 2 ? 96 : 33, kinds[form / 2 % 3],
                            scales[form / 6 % 3], random_below(2));
}

static void adds_a_scaled_bias(void **state)
{
        (void)state;
        try_project(false, 33, NORM_NONE, 3, true);
        try_project(true, 33, NORM_NONE, 3, true);
        try_project(true, 96, NORM_NONE, 3, false);
}

/* ---- renorm ---- */

static void try_renorm(bool is_long, uint32_t columns, enum norm_kind kind)
{
        const uint32_t n = 4;
        struct both_floats x, weight, bias;
        struct sides s;
        uint32_t rows;

        sides_open(&s, !is_long, &pool);
        (void)both_matrix(&s, columns, 1, &n, ROW_BF16, NULL);
        weight = both_random(&s, columns);
        bias = both_random(&s, columns);
        rows = begin(&s, is_long);
        x = both_random(&s, (size_t)rows * columns);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct renorm op = { norm_at(kind, &weight, &bias, side), columns };

                assert_int_equal(s.k[side]->renorm(s.k[side], &op, x.of[side]), 0);
        }
        rows_near(&s, "renorm", &x, rows, columns, FLOATS, 1e-5);
        sides_end(&s);
        sides_close(&s);
}

static void replaces_rows_by_their_norms(void **state)
{
        (void)state;
        for (uint32_t form = 0; form < 4; form++)
                try_renorm(form / 2, form % 2 ? 96 : 33, form ? NORM_LAYER : NORM_RMS);
}

/* ---- gate ---- */

/* Then the results are projected, with the padding that they have on the GPU. */
static void try_gate(bool is_long, uint32_t parts, enum activation act, bool biased)
{
        const uint32_t columns = 64, ff[] = { 37, 37 }, n = 33;
        struct both_floats x, out, to, bias;
        struct both_matrix w, down;
        float *host, *results;
        struct sides s;
        uint32_t rows;

        sides_open(&s, !is_long, &pool);
        w = both_matrix(&s, columns, parts, ff, ROW_BF16, NULL);
        down = both_matrix(&s, ff[0], 1, &n, ROW_BF16, NULL);
        bias = both_random(&s, parts * ff[0]);
        rows = begin(&s, is_long);
        host = exact_floats((size_t)rows * columns);
        x = both_floats(&s, host, (size_t)rows * columns);
        out = both_random(&s, (size_t)rows * ff[0]);
        to = both_random(&s, (size_t)rows * n);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct gate op = { .w = w.of[side],
                                         .bias = biased ? bias.of[side] : NULL,
                                         .act = act };

                assert_int_equal(s.k[side]->gate(s.k[side], &op, out.of[side], x.of[side]), 0);
        }
        rows_near(&s, "gate", &out, rows, ff[0], BFLOAT, FLOATS);
        results = malloc(out.count * sizeof(*results));
        assert_non_null(results);
        s.k[GPU]->get(s.k[GPU], results, out.of[GPU], out.count);
        s.k[REF]->put(s.k[REF], out.of[REF], results, out.count);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct linear op = { .w = down.of[side] };

                assert_int_equal(s.k[side]->project(s.k[side], &op, to.of[side], out.of[side]), 0);
        }
        rows_near(&s, "down", &to, rows, n, FLOATS, FLOATS);
        sides_end(&s);
        sides_close(&s);
        free(results);
        free(host);
}

static void gates_of_one_part_and_of_two_have_every_activation(void **state)
{
        (void)state;
        for (uint32_t act = 0; act < ACT_N; act++)
                for (uint32_t form = 0; form < 4; form++)
                        try_gate(form / 2, 1 + form % 2, act, (act + form) % 2);
}

/* ---- qkv ---- */

struct qkv_form {
        enum head_norm_span span;
        enum norm_kind q, k;
        float clip, beta;
        uint32_t rope_dims, kv_heads;
        float far; /* added to biases */
};

/* A buffer of ours with the floats of K (V, if is_v) of all rows. */
static float *heads_of(struct sides *s, uint32_t side, const struct chunk *chunks, bool is_v,
                       uint32_t rows)
{
        const struct kv *kv = s->model[REF].kv;
        const uint32_t heads = kv->shape.kv_heads;
        size_t bytes = kv_all_pages(&kv->shape) * kv->page_bytes;
        float *floats = malloc((size_t)rows * heads * DIM * sizeof(*floats)), *to = floats;
        uint8_t *pages = malloc(bytes);

        assert_true(floats && pages);
        if (side == GPU)
                peek(pages, s->model[GPU].kv->pages, PAGES * kv->page_bytes);
        else
                memcpy(pages, kv->pages, PAGES * kv->page_bytes);
        for (; rows; chunks++)
                for (uint32_t i = 0; i < chunks->count; i++, rows--)
                        for (uint32_t h = 0; h < heads; h++) {
                                uint32_t position = chunks->position + i;
                                uint32_t page = page_of(chunks->slot, position / PAGE_POSITIONS);
                                const uint8_t *tile = pages + page * kv->page_bytes +
                                                      kv_tile_offset(&kv->shape, 1, h) +
                                                      is_v * kv->tile_bytes;
                                const uint16_t *line =
                                        (const uint16_t *)tile + position % PAGE_POSITIONS * DIM;

                                for (uint32_t d = 0; d < DIM; d++)
                                        *to++ = half_to_float(line[d]);
                        }
        free(pages);
        return floats;
}

static void pages_near(struct sides *s, const struct chunk *chunks, uint32_t rows)
{
        const uint32_t columns = s->model[REF].kv->shape.kv_heads * DIM;
        struct both_floats both = both_floats(s, NULL, (size_t)rows * columns);

        for (uint32_t is_v = 0; is_v < 2; is_v++) {
                for (uint32_t side = 0; side < SIDES; side++) {
                        float *heads = heads_of(s, side, chunks, is_v, rows);

                        s->k[side]->put(s->k[side], both.of[side], heads, both.count);
                        free(heads);
                }
                rows_near(s, is_v ? "v" : "k", &both, rows, columns, 2 * HALF, 1e-4);
        }
}

static void try_qkv(bool is_long, const struct qkv_form *form)
{
        const struct kv_shape shape = { 2, form->kv_heads, DIM, PAGES, KV_F16, SWAP_PAGES };
        const uint32_t heads = 3, columns = 64, kv = form->kv_heads * DIM;
        const uint32_t parts[] = { heads * DIM, kv, kv }, all = heads * DIM + 2 * kv;
        struct both_floats x, q, bias, weight, norm_bias, frequency;
        float *host, *biases = random_floats(all);
        struct both_matrix w;
        struct sides s;
        uint32_t rows;

        sides_open(&s, !is_long, &shape);
        w = both_matrix(&s, columns, 3, parts, ROW_BF16, NULL);
        for (uint32_t i = 0; i < all; i++)
                biases[i] += form->far;
        bias = both_floats(&s, biases, all);
        weight = both_random(&s, heads * DIM);
        norm_bias = both_random(&s, heads * DIM);
        frequency = both_random(&s, DIM / 2);
        rows = begin(&s, is_long);
        host = exact_floats((size_t)rows * columns);
        x = both_floats(&s, host, (size_t)rows * columns);
        q = both_floats(&s, NULL, (size_t)rows * heads * DIM);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct qkv op = {
                        .w = w.of[side],
                        .bias = bias.of[side],
                        .clip = form->clip,
                        .span = form->span,
                        .q_norm = norm_at(form->q, &weight, &norm_bias, side),
                        .k_norm = norm_at(form->k, &weight, &norm_bias, side),
                        .rope = { form->rope_dims, ROPE_HALVES, frequency.of[side], 1 },
                        .query_beta = form->beta,
                        .query_length = 8,
                        .kv = s.model[side].kv,
                        .layer = 1,
                        .heads = heads,
                        .kv_heads = form->kv_heads,
                        .head_dim = DIM,
                };

                assert_int_equal(s.k[side]->qkv(s.k[side], &op, q.of[side], x.of[side]), 0);
        }
        rows_near(&s, "q", &q, rows, heads * DIM, HALF, 1e-4);
        pages_near(&s, is_long ? many : few, rows);
        sides_end(&s);
        sides_close(&s);
        free(biases);
        free(host);
}

static void norms_of_q_and_k_have_every_span(void **state)
{
        static const enum head_norm_span spans[] = { SPAN_HEAD, SPAN_HEADS, SPAN_WHOLE };

        (void)state;
        for (uint32_t i = 0; i < 18; i++) {
                const struct qkv_form form = { .span = spans[i % 3],
                                               .q = i == 17 ? NORM_NONE : kinds[1 + i / 3 % 2],
                                               .k = i == 16 ? NORM_NONE : kinds[1 + i / 3 % 2],
                                               .rope_dims = i % 2 ? DIM : 16,
                                               .kv_heads = 1 + i % 3 / 2 * 2,
                                               .far = kinds[1 + i / 3 % 2] == NORM_LAYER ? 60 : 0 };

                try_qkv(i / 6 % 2, &form);
        }
}

static void clips_q_k_and_v_before_norms(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 6; i++) {
                const struct qkv_form form = { .span = i / 3 ? SPAN_WHOLE : SPAN_HEAD,
                                               .q = kinds[i % 3],
                                               .k = kinds[i % 3],
                                               .clip = 3,
                                               .rope_dims = DIM,
                                               .kv_heads = 3 };

                try_qkv(i % 2, &form);
        }
}

static void scales_queries_by_position_with_and_without_rotation(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 4; i++) {
                const struct qkv_form form = { .beta = i % 2 ? 0.3f : 0,
                                               .rope_dims = i / 2 ? DIM : 0,
                                               .kv_heads = 1 };

                try_qkv(i % 2, &form);
        }
}

/* ---- head ---- */

static void try_head(bool is_long, float scale, float softcap, bool biased)
{
        const uint32_t columns = 64, vocab = 131;
        struct both_floats x, logits, bias;
        struct both_matrix w;
        struct sides s;
        uint32_t rows;
        float *host;

        sides_open(&s, !is_long, &pool);
        w = both_matrix(&s, columns, 1, &vocab, ROW_BF16, NULL);
        bias = both_random(&s, vocab);
        rows = begin(&s, is_long);
        host = exact_floats((size_t)rows * columns);
        x = both_floats(&s, host, (size_t)rows * columns);
        logits = both_floats(&s, NULL, (size_t)rows * vocab);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct head op = { .w = w.of[side],
                                         .bias = biased ? bias.of[side] : NULL,
                                         .scale = scale,
                                         .softcap = softcap };

                assert_int_equal(s.k[side]->head(s.k[side], &op, logits.of[side], x.of[side]), 0);
        }
        rows_near(&s, "head", &logits, rows, vocab, FLOATS, FLOATS);
        sides_end(&s);
        sides_close(&s);
        free(host);
}

static void logits_are_biased_then_scaled_then_capped(void **state)
{
        static const float scales[] = { 0, 1, 0.25f };

        (void)state;
        for (uint32_t form = 0; form < 24; form++)
                try_head(form / 12, scales[form % 3], form / 3 % 2 ? 4 : 0, form / 6 % 2);
}

/* ---- attend ---- */

#define HEADS 6u

struct attend_form {
        uint32_t window;
        float softcap;
        bool slopes, sinks;
};

/* The layers of a model, by turns; each has other slopes, too. */
static const struct attend_form layers[] = { { 0, 0, true, false },
                                             { 20, 0, true, false },
                                             { 20, 0, false, true },
                                             { 0, 5, false, false } };

struct attend_fixture {
        struct sides s;
        struct both_matrix w;
        struct both_floats x, q, out, slopes, sinks;
        float *x_host;
};

/* Both sides get the queries and the pages of the GPU. */
static void fill(struct attend_fixture *f, uint32_t rows)
{
        struct sides *s = &f->s;
        float *q = malloc(f->q.count * sizeof(*q));
        size_t count = (size_t)rows * HEADS * DIM;

        assert_non_null(q);
        for (uint32_t side = 0; side < SIDES; side++) {
                const struct qkv op = { .w = f->w.of[side],
                                        .kv = s->model[side].kv,
                                        .layer = 1,
                                        .heads = HEADS,
                                        .kv_heads = 2,
                                        .head_dim = DIM };

                assert_int_equal(s->k[side]->qkv(s->k[side], &op, f->q.of[side], f->x.of[side]), 0);
        }
        s->k[GPU]->get(s->k[GPU], q, f->q.of[GPU], count);
        s->k[REF]->put(s->k[REF], f->q.of[REF], q, count);
        peek(s->model[REF].kv->pages, s->model[GPU].kv->pages,
             PAGES * s->model[REF].kv->page_bytes);
        free(q);
}

static void attend_layer(struct attend_fixture *f, uint32_t layer)
{
        struct sides *s = &f->s;

        for (uint32_t side = 0; side < SIDES; side++) {
                const struct attend op = {
                        .kv = s->model[side].kv,
                        .layer = 1,
                        .heads = HEADS,
                        .kv_heads = 2,
                        .head_dim = DIM,
                        .scale = 1.f / 64,
                        .softcap = layers[layer].softcap,
                        .window = layers[layer].window,
                        .slopes = layers[layer].slopes ? f->slopes.of[side] + layer * HEADS : NULL,
                        .sinks = layers[layer].sinks ? f->sinks.of[side] : NULL,
                };

                assert_int_equal(
                        s->k[side]->attend(s->k[side], &op, f->out.of[side], f->q.of[side]), 0);
        }
}

static void try_attend(bool deterministic, const struct chunk *before, const struct chunk *now,
                       uint32_t count, uint32_t rows)
{
        const struct kv_shape shape = { 2, 2, DIM, PAGES, KV_F16, SWAP_PAGES };
        const uint32_t columns = 64, parts[] = { HEADS * DIM, 2 * DIM, 2 * DIM };
        struct attend_fixture f;
        uint32_t rows_before = 0;

        sides_open(&f.s, deterministic, &shape);
        f.w = both_matrix(&f.s, columns, 3, parts, ROW_BF16, NULL);
        f.x_host = exact_floats((size_t)ROWS_MAX * columns);
        f.x = both_floats(&f.s, f.x_host, (size_t)ROWS_MAX * columns);
        f.q = both_floats(&f.s, NULL, (size_t)ROWS_MAX * HEADS * DIM);
        f.out = both_floats(&f.s, NULL, (size_t)ROWS_MAX * HEADS * DIM);
        f.slopes = both_random(&f.s, 4 * HEADS);
        f.sinks = both_random(&f.s, HEADS);
        for (uint32_t i = 0; i < count; i++)
                rows_before += before[i].count;
        sides_begin(&f.s, before, count);
        fill(&f, rows_before);
        sides_end(&f.s);
        sides_begin(&f.s, now, count);
        fill(&f, rows);
        for (uint32_t turn = 0; turn < 8; turn++) {
                attend_layer(&f, turn % 4);
                rows_near(&f.s, "attend", &f.out, rows, HEADS * DIM, BFLOAT, 4e-3);
        }
        sides_end(&f.s);
        sides_close(&f.s);
        free(f.x_host);
}

static void layers_of_one_step_differ_in_windows_slopes_and_sinks(void **state)
{
        static const struct chunk before[] = { { 0, 0, 90 }, { 1, 0, 31 }, { 2, 0, 1 } };
        static const struct chunk now[] = { { 0, 90, 1 }, { 1, 31, 7 }, { 2, 1, 40 } };
        static const struct chunk first[] = { { 0, 0, 20 }, { 1, 0, 2 } };
        static const struct chunk prompt[] = { { 0, 20, 1 }, { 1, 0, 128 } };

        (void)state;
        try_attend(true, before, now, 3, 48);
        try_attend(false, before, now, 3, 48);
        try_attend(true, first, prompt, 2, 129);
        try_attend(false, first, prompt, 2, 129);
}

static int seed(void **state)
{
        (void)state;
        random_seed();
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(norms_of_rows_of_any_width_match_ref),
                cmocka_unit_test(embeds_positions_and_normalises_the_sum),
                cmocka_unit_test(adds_what_a_branch_projects_normalised_and_scaled),
                cmocka_unit_test(adds_a_scaled_bias),
                cmocka_unit_test(replaces_rows_by_their_norms),
                cmocka_unit_test(gates_of_one_part_and_of_two_have_every_activation),
                cmocka_unit_test(norms_of_q_and_k_have_every_span),
                cmocka_unit_test(clips_q_k_and_v_before_norms),
                cmocka_unit_test(scales_queries_by_position_with_and_without_rotation),
                cmocka_unit_test(logits_are_biased_then_scaled_then_capped),
                cmocka_unit_test(layers_of_one_step_differ_in_windows_slopes_and_sinks),
        };

        return cmocka_run_group_tests(tests, seed, NULL);
}
