#include "tests/kernels/context.h"

#include <errno.h>

#include "kernels/steps.h"

struct test_backend test_backends[TEST_BACKENDS_MAX];
uint32_t test_backend_count;

static int test_backend_open(const char *name, const char *isa, uint32_t threads)
{
        struct kernels_conf conf = {
                .threads = threads,
                .isa = isa,
                .rows_max = CONTEXT_ROWS,
                .slots_max = SLOTS,
                .pages_max = CONTEXT_PAGES,
                .vocab_max = 1,
                .wants_max = 1,
        };
        int r;

        assert_true(test_backend_count < TEST_BACKENDS_MAX);
        r = kernels_open(name, &conf, &test_backends[test_backend_count].k);
        if (r == -ENOTSUP)
                return r;
        assert_int_equal(r, 0);
        test_backends[test_backend_count++].threads = threads;
        return 0;
}

void test_backends_open(const uint32_t *threads, uint32_t count)
{
        static const char *const isas[] = { "avx512bf16", "avx512", "avx2", "c" };

        assert_int_equal(test_backend_open("ref", "auto", 1), 0);
        for (uint32_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++)
                for (uint32_t t = 0; t < count; t++) {
                        if (!strcmp(isas[i], "c") && threads[t] != 1 && threads[t] != 3)
                                continue;
                        if (test_backend_open("cpu", isas[i], threads[t])) {
                                print_message("no %s on this machine: not compared\n", isas[i]);
                                break;
                        }
                }
}

void test_backends_close(void)
{
        for (uint32_t i = 0; i < test_backend_count; i++)
                test_backends[i].k->close(test_backends[i].k);
}

void context_make(struct context *c)
{
        size_t count = (size_t)CONTEXT_LENGTH * c->kv_heads * c->head_dim;

        c->scale = 4 / sqrtf((float)c->head_dim); /* so that some scores are far apart */
        c->k = random_floats(count);
        c->v = random_floats(count);
        c->q = random_floats(QUERY_ROWS * context_width(c));
        c->sinks = random_floats(c->heads);
        c->slopes = random_floats(c->heads);
        for (uint32_t h = 0; h < c->heads; h++)
                c->slopes[h] *= 0x1p-8f;
}

void context_free(struct context *c)
{
        free(c->k);
        free(c->v);
        free(c->q);
        free(c->sinks);
        free(c->slopes);
}

const float *context_ask(const struct context *c, uint32_t slot, uint32_t position)
{
        return c->q + (position + slot * 13) % QUERY_ROWS * context_width(c);
}

/* ---- a backend's copy of it ---- */

static float *floats_load(struct test_backend *s, const float *host, size_t count)
{
        float *floats;

        assert_int_equal(s->k->floats_new(s->k, count, &floats), 0);
        if (host)
                s->k->put(s->k, floats, host, count);
        return floats;
}

static void step(struct test_backend *s, struct step step)
{
        step.number = ++s->number;
        assert_int_equal(s->k->step_begin(s->k, KV_ALONE(s->kv), &step), 0);
}

uint32_t test_backend_page(const struct test_backend *s, uint32_t slot, uint32_t index)
{
        return (index + 5 * slot) % CONTEXT_PAGES * s->stride % CONTEXT_PAGES;
}

void test_backend_pages(struct test_backend *s, uint32_t slot, uint32_t from, uint32_t to,
                        bool there)
{
        struct step_page pages[CONTEXT_PAGES];
        uint32_t n = 0;

        for (uint32_t i = from; i < to; i++)
                pages[n++] =
                        (struct step_page){ slot, i,
                                            there ? test_backend_page(s, slot, i) : STEPS_NO_PAGE };
        step(s, (struct step){ .page_count = n, .pages = pages });
        assert_int_equal(s->k->step_end(s->k), 0);
}

void test_backend_use_context(struct test_backend *s, const struct context *c)
{
        uint32_t kv = c->kv_heads * c->head_dim;
        struct matrix_shape shape = { .columns = 1, .parts = 3, .rows = { kv, kv, kv } };
        struct kv_shape pool = { 1, c->kv_heads, c->head_dim, CONTEXT_PAGES, c->type };
        float *zeros = calloc(3 * kv, sizeof(*zeros));

        assert_non_null(zeros);
        assert_int_equal(s->k->matrix_new(s->k, &shape, &s->zeros), 0);
        for (uint32_t p = 0; p < 3; p++)
                assert_int_equal(s->k->weights_put(s->k, s->zeros, p, 0, kv, zeros), 0);
        s->x = floats_load(s, NULL, CONTEXT_ROWS);
        s->bias = floats_load(s, zeros, 3 * kv);
        s->q = floats_load(s, NULL, CONTEXT_ROWS * context_width(c));
        s->out = floats_load(s, NULL, CONTEXT_ROWS * context_width(c));
        s->sinks = floats_load(s, c->sinks, c->heads);
        s->slopes = floats_load(s, c->slopes, c->heads);
        free(zeros);

        assert_int_equal(s->k->kv_new(s->k, &pool, &s->kv), 0);
        memset(s->kv->pages, 0xff, CONTEXT_PAGES * s->kv->page_bytes); /* NaN in every type */
        s->stride = 89;
        for (uint32_t slot = 0; slot < SLOTS; slot++)
                test_backend_pages(s, slot, 0, CONTEXT_PAGES, true);
}

void test_backend_end_step(struct test_backend *s)
{
        float *floats[] = { s->x, s->bias, s->q, s->out, s->sinks, s->slopes };

        for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++)
                s->k->floats_free(s->k, floats[i]);
        s->k->matrix_free(s->k, s->zeros);
        s->k->kv_free(s->k, s->kv);
}

void test_backend_write(struct test_backend *s, const struct context *c, uint32_t from, uint32_t to)
{
        uint32_t kv = c->kv_heads * c->head_dim;
        struct qkv op = {
                .w = s->zeros,
                .bias = s->bias,
                .kv = s->kv,
                .heads = c->kv_heads,
                .kv_heads = c->kv_heads,
                .head_dim = c->head_dim,
        };

        for (uint32_t p = from; p < to; p++) {
                struct step_row row = { .position = p, .from_row = STEP_TOKEN, .write = 1 };
                struct step_run run = { 0, 1 };

                step(s,
                     (struct step){ .row_count = 1, .run_count = 1, .rows = &row, .runs = &run });
                s->k->put(s->k, s->bias + kv, context_at(c, c->k, p), kv);
                s->k->put(s->k, s->bias + 2 * kv, context_at(c, c->v, p), kv);
                assert_int_equal(s->k->qkv(s->k, &op, s->q, s->x), 0);
                assert_int_equal(s->k->step_end(s->k), 0);
        }
}

void test_backend_copy(struct test_backend *s, const struct test_backend *from)
{
        assert_int_equal(s->k->layout, from->k->layout);
        assert_int_equal(s->stride, from->stride);
        memcpy(s->kv->pages, from->kv->pages, CONTEXT_PAGES * s->kv->page_bytes);
}

void test_backend_order_pages(struct test_backend *s, uint32_t stride)
{
        size_t bytes = s->kv->page_bytes;
        uint8_t *pages = malloc(CONTEXT_PAGES * bytes);
        uint32_t before = s->stride;

        assert_non_null(pages);
        memcpy(pages, s->kv->pages, CONTEXT_PAGES * bytes);
        for (uint32_t i = 0; i < CONTEXT_PAGES; i++)
                memcpy(s->kv->pages + i * stride % CONTEXT_PAGES * bytes,
                       pages + i * before % CONTEXT_PAGES * bytes, bytes);
        free(pages);
        s->stride = stride;
        for (uint32_t slot = 0; slot < SLOTS; slot++)
                test_backend_pages(s, slot, 0, CONTEXT_PAGES, true);
}

void test_backend_attend(struct test_backend *s, const struct context *c,
                         const struct chunk *chunks, uint32_t chunk_count, float *ret_out)
{
        struct step_row rows[CONTEXT_ROWS];
        struct step_run runs[SLOTS];
        struct attend op = {
                .kv = s->kv,
                .heads = c->heads,
                .kv_heads = c->kv_heads,
                .head_dim = c->head_dim,
                .scale = c->scale,
                .softcap = c->softcap,
                .window = c->window,
                .sinks = c->has_sinks ? s->sinks : NULL,
                .slopes = c->has_slopes ? s->slopes : NULL,
        };
        size_t width = context_width(c);
        uint32_t n = 0;

        for (uint32_t i = 0; i < chunk_count; i++) {
                runs[i] = (struct step_run){ n, chunks[i].count };
                for (uint32_t j = 0; j < chunks[i].count; j++, n++) {
                        uint32_t position = chunks[i].position + j;

                        assert_true(n < CONTEXT_ROWS);
                        rows[n] = (struct step_row){ .slot = chunks[i].slot,
                                                     .position = position,
                                                     .from_row = STEP_TOKEN };
                        s->k->put(s->k, s->q + n * width, context_ask(c, chunks[i].slot, position),
                                  width);
                }
        }
        step(s,
             (struct step){ .row_count = n, .run_count = chunk_count, .rows = rows, .runs = runs });
        /* NaN remains where attend() writes nothing */
        for (size_t i = 0; i < n * width; i++)
                ret_out[i] = NAN;
        s->k->put(s->k, s->out, ret_out, n * width);
        assert_int_equal(s->k->attend(s->k, &op, s->out, s->q), 0);
        s->k->get(s->k, ret_out, s->out, n * width);
        assert_int_equal(s->k->step_end(s->k), 0);
}
