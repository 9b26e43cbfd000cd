/*
 * A row's bits do not depend on the other rows of its step.
 *
 * A small model of two layers is run from token to logits, one row at a time.  This gives the
 * expected result of every position.  Then the same sequence is run in runs of 1 to 19 rows, in
 * runs of random length, beside other sequences, and with its last row run again on pages that are
 * not written.  This is repeated with every instruction set and with 1, 2 and 3 threads. The bits
 * must be the same every time.  If weights are bfloats, they must be the same within each kind of
 * variants (small-model.h).
 */
#include "tests/kernels/small-model.h"

#define LENGTH 45u

struct result { /* of each position of slot 0 */
        float *logits, *x;
};

static struct result result_new(const struct shape *s)
{
        struct result r = { calloc(LENGTH * s->vocab, sizeof(float)),
                            calloc(LENGTH * s->columns, sizeof(float)) };

        assert_non_null(r.logits);
        assert_non_null(r.x);
        return r;
}

static void result_free(struct result *r)
{
        free(r->logits);
        free(r->x);
}

/* One step through the whole model; slot 0's rows come first. */
static void forward(struct model *m, const struct chunk *chunks, uint32_t chunk_count,
                    struct result *r)
{
        const struct shape *s = &m->host->s;
        struct kernels *k = m->k;
        size_t position = chunks[0].position, count = chunks[0].count;

        assert_int_equal(chunks[0].slot, 0);
        model_begin(m, chunks, chunk_count);
        model_embed(m, 1);
        for (uint32_t layer = 0; layer < 2; layer++) {
                model_qkv(m, layer);
                model_attend(m, layer);
                model_project(m, m->o, m->a);
                model_gate(m);
                model_project(m, m->down, m->g);
        }
        model_head(m);
        k->get(k, r->x + position * s->columns, m->x, count * s->columns);
        k->get(k, r->logits + position * s->vocab, m->logits, count * s->vocab);
        model_end(m);
}

static void same(const struct shape *s, const struct kernels *k, uint32_t threads, const char *how,
                 uint32_t most, const struct result *a, const struct result *b)
{
        for (uint32_t p = 0; p < LENGTH; p++) {
                if (memcmp(a->x + p * s->columns, b->x + p * s->columns,
                           s->columns * sizeof(float)) ||
                    memcmp(a->logits + p * s->vocab, b->logits + p * s->vocab,
                           s->vocab * sizeof(float)))
                        fail_msg("%s, %u threads, %s %u: position %u has other bits", k->name,
                                 threads, how, most, p);
        }
}

/* The sequence in runs of `most` rows, or of random length when `most` is 0. */
static void run_cut(struct model *m, uint32_t most, struct result *r)
{
        for (uint32_t at = 0; at < LENGTH;) {
                uint32_t n = most ? most : 1 + random_below(20);
                struct chunk chunk = { 0, at, n < LENGTH - at ? n : LENGTH - at };

                forward(m, &chunk, 1, r);
                at += chunk.count;
        }
}

/* One row at a time, while two others are at anything. */
static void run_beside(struct model *m, struct result *r)
{
        uint32_t others[2] = { 0, 0 };

        for (uint32_t at = 0; at < LENGTH; at++) {
                struct chunk chunks[3] = { { 0, at, 1 } };
                uint32_t n = 1;

                for (uint32_t o = 0; o < 2; o++) {
                        uint32_t count = random_below(6);

                        if (!count || others[o] + count > SLOT_PAGES * PAGE_POSITIONS)
                                continue;
                        chunks[n++] = (struct chunk){ o + 1, others[o], count };
                        others[o] += count;
                }
                forward(m, chunks, n, r);
        }
}

static const struct chunk again = { 0, LENGTH - 1, 1, .again = true };

/* The last position once more, from the KV in the pages. */
static void run_again(struct model *m, struct result *r)
{
        memset(r->logits + (LENGTH - 1) * m->host->s.vocab, 0, m->host->s.vocab * sizeof(float));
        forward(m, &again, 1, r);
}

/* Whatever is in the pages stays there, when a row does not write. */
static void pages_are_only_read(struct model *m, struct result *r)
{
        size_t bytes = m->kv->page_bytes;
        uint8_t *page = m->kv->pages + page_of(0, (LENGTH - 1) / PAGE_POSITIONS) * bytes;
        uint8_t *zero = calloc(1, bytes);

        assert_non_null(zero);
        memset(page, 0, bytes);
        forward(m, &again, 1, r);
        assert_memory_equal(page, zero, bytes);
        free(zero);
}

static void all_finite(const struct shape *s, const struct result *r)
{
        for (size_t i = 0; i < (size_t)LENGTH * s->vocab; i++)
                assert_true(isfinite(r->logits[i]));
}

static bool any_bfloats(const struct host *h)
{
        return has_bfloats(&h->qkv) || has_bfloats(&h->o) || has_bfloats(&h->gate) ||
               has_bfloats(&h->down) || has_bfloats(&h->head);
}

/* The sequence in every way; `alone` has been run by a variant of the same kind. */
static void check_set(uint32_t variant, const struct host *h, const struct result *alone,
                      struct result *other)
{
        const struct shape *s = &h->s;
        struct model m;

        for (uint32_t most = 0; most < 20; most++) {
                /* all lengths with the first variant, a few lengths with the others */
                if (variant && most > 1 && most != 1 + variant && most != 19)
                        continue;
                model_open(&m, variants[variant], h);
                run_cut(&m, most, other);
                model_close(&m);
                same(s, variants[variant], variant_threads[variant], "runs of", most, other, alone);
        }
        model_open(&m, variants[variant], h);
        run_beside(&m, other);
        same(s, variants[variant], variant_threads[variant], "beside", 2, other, alone);
        run_again(&m, other);
        same(s, variants[variant], variant_threads[variant], "again", 1, other, alone);
        pages_are_only_read(&m, other);
        model_close(&m);
}

static void check_shape(const struct shape *s)
{
        struct result alone[VARIANT_KINDS] = { { 0 } }, other = result_new(s);
        struct model m;
        struct host h;

        host_make(&h, s);
        for (uint32_t i = 0; i < variant_count; i++) {
                struct result *own = &alone[variant_kind(i)];

                if (!own->x) {
                        *own = result_new(s);
                        model_open(&m, variants[i], &h);
                        run_cut(&m, 1, own);
                        model_close(&m);
                        all_finite(s, own);
                        if (!any_bfloats(&h))
                                same(s, variants[i], variant_threads[i], "runs of", 1, own,
                                     &alone[0]);
                }
                check_set(i, &h, own, &other);
        }
        host_free(&h);
        for (uint32_t kind = 0; kind < VARIANT_KINDS; kind++)
                result_free(&alone[kind]);
        result_free(&other);
}

static const struct shape llama = {
        .columns = 96,
        .heads = 6,
        .kv_heads = 2,
        .head_dim = 20,
        .ff = 150,
        .vocab = 290,
        .kv = KV_F16,
        .pairing = ROPE_HALVES,
        .rope_dims = 20,
        .norm = true,
};

static void a_row_has_the_same_bits_in_any_batch(void **state)
{
        struct shape s = llama;

        (void)state;
        for (int type = 0; type < KV_TYPES; type++) {
                s.kv = (enum kv_type)type;
                check_shape(&s);
        }
}

static void a_row_has_the_same_bits_in_any_batch_with_every_trait(void **state)
{
        struct shape s = llama; /* f16 */

        (void)state;
        s.columns = 33;
        s.heads = 36; /* more heads than a block of queries has room for */
        s.kv_heads = 1;
        s.head_dim = 16;
        s.rope_dims = 10;
        s.window = 21;
        s.softcap = 5;
        s.bias = s.head_norm = s.sinks = s.slopes = true;
        s.act = ACT_GELU_TANH;
        s.kv = KV_F32;
        check_shape(&s);
        s.kv = KV_INT8;
        check_shape(&s);
        s.kv = KV_FP8;
        check_shape(&s);
}

static void a_row_has_the_same_bits_in_any_batch_with_norms_of_every_span(void **state)
{
        struct shape s = llama;

        (void)state;
        s.columns = 99;
        s.layer_norm = s.head_norm = s.positions = s.add_norm = s.two_ropes = s.bias = true;
        s.head_bias = true;
        s.clip = 0.75f;
        s.add_scale = 0.5f;
        s.logit_scale = 3;
        s.query_beta = 0.25f;
        s.query_length = 10;
        s.act = ACT_GELU;
        for (int span = SPAN_HEAD; span <= SPAN_WHOLE; span++) {
                s.span = (enum head_norm_span)span;
                check_shape(&s);
                s.bare_norm = true;
        }
}

static void a_row_has_the_same_bits_in_any_batch_with_one_part_of_a_gate(void **state)
{
        struct shape s = llama;

        (void)state;
        s.plain = s.add_norm = s.positions = true;
        s.rope_dims = 0;
        s.act = ACT_RELU_SQUARE;
        check_shape(&s);
        s.act = ACT_RELU;
        s.layer_norm = true;
        check_shape(&s);
}

/* A row of x with a number that is none, in the middle of a run. */
static void spoil_and_look(struct model *m, float bad)
{
        const struct shape *s = &m->host->s;
        const struct chunk chunk = { 0, 0, 9 };
        const uint32_t width = s->heads * s->head_dim;
        float *x = random_floats(9 * s->columns), *a = malloc(9 * width * sizeof(*a));

        assert_non_null(a);
        x[5 * s->columns + 2] = bad;
        model_begin(m, &chunk, 1);
        m->k->put(m->k, m->x, x, 9 * s->columns);
        model_qkv(m, 1);
        model_attend(m, 1);
        m->k->get(m->k, a, m->a, 9 * width);
        model_end(m);
        for (uint32_t i = 0; i < 9 * width; i++)
                if (isfinite(a[i]) != (i / width < 5))
                        fail_msg("%s: row %u, number %u is %g", m->k->name, i / width, i % width,
                                 a[i]);
        free(x);
        free(a);
}

static void a_value_that_is_not_finite_stays_so_in_every_page_type(void **state)
{
        const float bad[] = { NAN, INFINITY, -INFINITY };
        struct shape s = llama;

        (void)state;
        for (int type = 0; type < KV_TYPES; type++) {
                struct host h;

                s.kv = (enum kv_type)type;
                host_make(&h, &s);
                for (uint32_t i = 0; i <= variant_count; i++)
                        for (uint32_t b = 0; b < 3; b++) {
                                struct model m;

                                model_open(&m, i < variant_count ? variants[i] : ref, &h);
                                spoil_and_look(&m, bad[b]);
                                model_close(&m);
                        }
                host_free(&h);
        }
}

static void a_row_has_the_same_bits_in_any_batch_with_quantised_weights(void **state)
{
        static const enum row_type mixes[][8] = {
                { ROW_Q4_K, ROW_Q4_K, ROW_Q6_K, ROW_Q4_K, ROW_Q5_K, ROW_Q5_K, ROW_Q6_K, ROW_Q6_K },
                { ROW_Q2_K, ROW_Q2_K, ROW_Q3_K, ROW_Q3_K, ROW_Q2_K, ROW_Q2_K, ROW_Q3_K, ROW_Q6_K },
                { ROW_Q4_0, ROW_Q4_1, ROW_Q5_0, ROW_Q5_1, ROW_Q8_0, ROW_Q8_0, ROW_IQ4_NL,
                  ROW_MXFP4 },
                { ROW_Q8_0, ROW_F32, ROW_F16, ROW_MXFP4, ROW_IQ4_NL, ROW_F16, ROW_Q5_1, ROW_Q4_1 },
                { ROW_IQ4_XS, ROW_IQ3_XXS, ROW_IQ3_S, ROW_IQ2_XXS, ROW_IQ2_XS, ROW_IQ2_S, ROW_IQ1_S,
                  ROW_IQ1_M },
                { ROW_TQ1_0, ROW_IQ4_XS, ROW_IQ4_XS, ROW_NVFP4, ROW_TQ2_0, ROW_NVFP4, ROW_NVFP4,
                  ROW_TQ1_0 },
                { ROW_F8_E4M3, ROW_BF16, ROW_F8_E4M3, ROW_F8_E4M3, ROW_F8_E4M3, ROW_F8_E4M3,
                  ROW_F8_E4M3, ROW_F8_E4M3 },
        };
        struct shape s = llama;

        (void)state;
        s.columns = s.ff = 256;
        s.heads = 4;
        s.head_dim = 64;
        s.rope_dims = 64;
        s.vocab = 70;
        for (size_t i = 0; i < sizeof(mixes) / sizeof(*mixes); i++) {
                s.types = mixes[i];
                check_shape(&s);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_row_has_the_same_bits_in_any_batch),
                cmocka_unit_test(a_row_has_the_same_bits_in_any_batch_with_every_trait),
                cmocka_unit_test(a_row_has_the_same_bits_in_any_batch_with_norms_of_every_span),
                cmocka_unit_test(a_row_has_the_same_bits_in_any_batch_with_one_part_of_a_gate),
                cmocka_unit_test(a_value_that_is_not_finite_stays_so_in_every_page_type),
                cmocka_unit_test(a_row_has_the_same_bits_in_any_batch_with_quantised_weights),
        };

        random_seed();
        return cmocka_run_group_tests(tests, variants_open, variants_close);
}
