/*
 * A row's bits do not depend on the other rows of its step on a GPU, either.
 *
 * A small model of two layers is run from token to logits, one row at a time.  This gives the
 * expected result of every position.  Then the same sequence is run in runs of other lengths,
 * beside other sequences, and with its last row run again on pages that are not written.  The
 * bits must be the same every time.  This also holds if other sequences, or later positions of
 * the same one, are not finite.
 */
#include "tests/cuda/backend-fixture.h"

#define LENGTH 37u

struct result { /* of each position of slot 0 */
        float *logits, *x;
};

static struct kernels *gpu;

static struct result result_new(const struct shape *s)
{
        struct result r = { calloc((size_t)LENGTH * s->vocab, sizeof(float)),
                            calloc((size_t)LENGTH * s->columns, sizeof(float)) };

        assert_non_null(r.logits);
        assert_non_null(r.x);
        return r;
}

static void result_free(struct result *r)
{
        free(r->logits);
        free(r->x);
}

#define ALL UINT32_MAX

/* No number of the rows from `from` on. */
static void put_nans(struct model *m, uint32_t from, uint32_t count)
{
        size_t columns = m->host->s.columns, all = (count - from) * columns;
        float *nans = malloc(all * sizeof(*nans));

        assert_non_null(nans);
        for (size_t i = 0; i < all; i++)
                nans[i] = NAN;
        m->k->put(m->k, m->x + from * columns, nans, all);
        free(nans);
}

static void assert_nan(struct model *m, uint32_t row)
{
        size_t vocab = m->host->s.vocab;
        float logit;

        m->k->get(m->k, &logit, m->logits + row * vocab, 1);
        assert_true(isnan(logit));
}

/* One step through the whole model; slot 0's rows come first, and `sound` rows are numbers. */
static void forward(struct model *m, const struct chunk *chunks, uint32_t chunk_count,
                    uint32_t sound, struct result *r)
{
        const struct shape *s = &m->host->s;
        size_t position = chunks[0].position, count = chunks[0].count;
        struct kernels *k = m->k;
        uint32_t rows = 0;

        assert_int_equal(chunks[0].slot, 0);
        for (uint32_t c = 0; c < chunk_count; c++)
                rows += chunks[c].count;
        model_begin(m, chunks, chunk_count);
        assert_int_equal(k->embed(k, &(struct embed){ .table = m->head, .scale = 1 }, m->x), 0);
        if (sound < rows)
                put_nans(m, sound, rows);
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
        for (uint32_t row = sound; row < rows; row++)
                assert_nan(m, row);
        model_end(m);
}

/* As far as it goes, its first `count` positions. */
static void same_so_far(const struct shape *s, const char *how, uint32_t most, uint32_t count,
                        const struct result *a, const struct result *b)
{
        for (uint32_t p = 0; p < count; p++)
                if (memcmp(a->x + p * s->columns, b->x + p * s->columns,
                           s->columns * sizeof(float)) ||
                    memcmp(a->logits + p * s->vocab, b->logits + p * s->vocab,
                           s->vocab * sizeof(float)))
                        fail_msg("%s %u: position %u has other bits", how, most, p);
}

static void same(const struct shape *s, const char *how, uint32_t most, const struct result *a,
                 const struct result *b)
{
        same_so_far(s, how, most, LENGTH, a, b);
}

/* The sequence in runs of `most` rows, or of random length when `most` is 0. */
static void run_cut(struct model *m, uint32_t most, struct result *r)
{
        for (uint32_t at = 0; at < LENGTH;) {
                uint32_t n = most ? most : 1 + random_below(20);
                struct chunk chunk = { 0, at, n < LENGTH - at ? n : LENGTH - at };

                forward(m, &chunk, 1, ALL, r);
                at += chunk.count;
        }
}

/* A few rows at a time, while two others are at anything, or at nothing that is a number. */
static void run_beside(struct model *m, bool sound, struct result *r)
{
        uint32_t others[2] = { 0, 0 };

        for (uint32_t at = 0; at < LENGTH;) {
                uint32_t n = 1 + random_below(6), count = 1;
                struct chunk chunks[3] = { { 0, at, n < LENGTH - at ? n : LENGTH - at } };

                for (uint32_t o = 0; o < 2; o++) {
                        uint32_t rows = random_below(20);

                        if (!rows || others[o] + rows > SLOT_PAGES * PAGE_POSITIONS)
                                continue;
                        chunks[count++] = (struct chunk){ o + 1, others[o], rows };
                        others[o] += rows;
                }
                forward(m, chunks, count, sound ? ALL : chunks[0].count, r);
                at += chunks[0].count;
        }
}

/* All rows at once, and those from one row on are not finite: earlier rows must not see that. */
static void run_until(struct model *m, uint32_t sound, struct result *r)
{
        static const struct chunk all = { 0, 0, LENGTH };

        forward(m, &all, 1, sound, r);
}

/* The last position once more, from the KV in the pages, which stay unchanged. */
static void run_again(struct model *m, struct result *r)
{
        static const struct chunk again = { 0, LENGTH - 1, 1, .again = true };
        size_t bytes = PAGES * kv_page_bytes(&m->kv->shape);
        uint8_t *was = malloc(bytes), *is = malloc(bytes);

        assert_non_null(was);
        assert_non_null(is);
        peek(was, m->kv->pages, bytes);
        memset(r->logits + (LENGTH - 1) * m->host->s.vocab, 0, m->host->s.vocab * sizeof(float));
        forward(m, &again, 1, ALL, r);
        peek(is, m->kv->pages, bytes);
        assert_memory_equal(is, was, bytes);
        free(was);
        free(is);
}

static void check_shape(const struct shape *s)
{
        static const uint32_t cuts[] = { 0, 2, 7, LENGTH };
        struct result alone = result_new(s), other = result_new(s);
        struct model m;
        struct host h;

        host_make(&h, s);
        model_open(&m, gpu, &h);
        run_cut(&m, 1, &alone);
        model_close(&m);
        for (size_t i = 0; i < (size_t)LENGTH * s->vocab; i++)
                assert_true(isfinite(alone.logits[i]));
        for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
                model_open(&m, gpu, &h);
                run_cut(&m, cuts[i], &other);
                model_close(&m);
                same(s, "runs of", cuts[i], &other, &alone);
        }
        model_open(&m, gpu, &h);
        run_beside(&m, true, &other);
        same(s, "beside", 2, &other, &alone);
        run_again(&m, &other);
        same(s, "again", 1, &other, &alone);
        model_close(&m);
        model_open(&m, gpu, &h);
        run_beside(&m, false, &other);
        same(s, "beside what is no number", 2, &other, &alone);
        model_close(&m);
        for (uint32_t sound = 1; sound < LENGTH; sound += 1 + random_below(6)) {
                model_open(&m, gpu, &h);
                run_until(&m, sound, &other);
                same_so_far(s, "before what is no number", sound, sound, &other, &alone);
                model_close(&m);
        }
        host_free(&h);
        result_free(&alone);
        result_free(&other);
}

static const struct shape plain = {
        .columns = 96,
        .heads = 3,
        .kv_heads = 1,
        .head_dim = 32,
        .ff = 70,
        .vocab = 90,
        .kv = KV_F16,
        .pairing = ROPE_HALVES,
        .rope_dims = 32,
        .norm = true,
};

static void a_row_has_the_same_bits_in_any_batch(void **state)
{
        static const enum kv_type types[] = { KV_F16, KV_BF16, KV_INT8, KV_FP8 };
        struct shape s = plain;

        (void)state;
        for (uint32_t i = 0; i < 4; i++) {
                s.kv = types[i];
                check_shape(&s);
        }
}

static void a_row_has_the_same_bits_in_any_batch_with_every_trait(void **state)
{
        struct shape s = plain;

        (void)state;
        s.columns = 33;
        s.heads = 8;
        s.kv_heads = 2;
        s.head_dim = 64;
        s.rope_dims = 10;
        s.pairing = ROPE_ADJACENT;
        s.window = 21;
        s.softcap = 5;
        s.bias = s.head_norm = s.sinks = s.slopes = true;
        s.act = ACT_GELU_TANH;
        check_shape(&s);
}

static int open_gpu(void **state)
{
        struct kernels_conf conf = cuda_conf();

        (void)state;
        random_seed();
        gpu = cuda_open(&conf);
        return 0;
}

static int close_gpu(void **state)
{
        (void)state;
        gpu->close(gpu);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_row_has_the_same_bits_in_any_batch),
                cmocka_unit_test(a_row_has_the_same_bits_in_any_batch_with_every_trait),
        };

        return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
