/*
 * An open reference backend for tests: a pool with NaN in every page, two slots
 * with page tables, and shorthands to put numbers in and to begin steps.
 */
#ifndef TESTS_KERNELS_REF_FIXTURE_H
#define TESTS_KERNELS_REF_FIXTURE_H

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kernels/convert.h"
#include "kernels/draw.h"
#include "kernels/kv.h"

#define HEADS    4u
#define KV_HEADS 2u
#define DIM      6u
#define WIDTH    10u
#define LAYERS   2u
#define PAGES    8u
#define SLOTS    2u
#define TABLE    3u
#define ROWS     48u
#define PIECES   16u

struct fixture {
        struct kernels *k;
        struct kv *kv;
        uint64_t number;
        uint32_t float_count, matrix_count;
        float *floats[PIECES];
        struct matrix *matrices[PIECES];
};

static const uint32_t tables[SLOTS][TABLE] = { { 5, 2, 7 }, { 0, 6, 3 } };

static inline void fixture_open_kv(struct fixture *b, enum kv_type type)
{
        struct kernels_conf conf = { .rows_max = ROWS,
                                     .slots_max = SLOTS,
                                     .pages_max = TABLE,
                                     .vocab_max = 16,
                                     .wants_max = 4,
                                     .isa = "auto" };
        struct kv_shape shape = { LAYERS, KV_HEADS, DIM, PAGES, type };
        struct step_page pages[SLOTS * TABLE];
        struct step step = { .number = 1, .page_count = SLOTS * TABLE, .pages = pages };

        *b = (struct fixture){ .number = 1 };
        assert_int_equal(kernels_open("ref", &conf, &b->k), 0);
        assert_int_equal(b->k->kv_new(b->k, &shape, &b->kv), 0);
        memset(b->kv->pages, 0xff, PAGES * b->kv->page_bytes); /* NaN everywhere */
        for (uint32_t i = 0; i < SLOTS * TABLE; i++)
                pages[i] = (struct step_page){ i / TABLE, i % TABLE, tables[i / TABLE][i % TABLE] };
        assert_int_equal(b->k->step_begin(b->k, KV_ALONE(b->kv), &step), 0);
        assert_int_equal(b->k->step_end(b->k), 0);
}

static inline void fixture_open(struct fixture *b)
{
        fixture_open_kv(b, KV_F32);
}

static inline void fixture_close(struct fixture *b)
{
        for (uint32_t i = 0; i < b->float_count; i++)
                b->k->floats_free(b->k, b->floats[i]);
        for (uint32_t i = 0; i < b->matrix_count; i++)
                b->k->matrix_free(b->k, b->matrices[i]);
        b->k->kv_free(b->k, b->kv);
        b->k->close(b->k);
}

static inline float *floats_new(struct fixture *b, size_t count)
{
        float *f;

        assert_true(b->float_count < PIECES);
        assert_int_equal(b->k->floats_new(b->k, count, &f), 0);
        return b->floats[b->float_count++] = f;
}

static inline float *given(struct fixture *b, const float *host, size_t count)
{
        float *f = floats_new(b, count);

        b->k->put(b->k, f, host, count);
        return f;
}

/* Numbers in [-1, 1), the same for the same seed. */
static inline void noise(float *f, size_t count, uint64_t seed)
{
        for (size_t i = 0; i < count; i++)
                f[i] = (float)(draw(seed, 0, i) * 2 - 1);
}

/* An F32 matrix of `parts` parts, from its rows one below the other. */
static inline struct matrix *matrix_of(struct fixture *b, uint32_t columns, uint32_t parts,
                                       const uint32_t *rows, const float *host)
{
        struct matrix_shape shape = { .columns = columns, .parts = parts };
        struct matrix *matrix;

        for (uint32_t p = 0; p < parts; p++)
                shape.rows[p] = rows[p];
        assert_true(b->matrix_count < PIECES);
        assert_int_equal(b->k->matrix_new(b->k, &shape, &matrix), 0);
        for (uint32_t p = 0; p < parts; host += (size_t)rows[p++] * columns) {
                b->k->weights_put(b->k, matrix, p, 0, 1, host);
                b->k->weights_put(b->k, matrix, p, 1, rows[p] - 1, host + columns);
        }
        return b->matrices[b->matrix_count++] = matrix;
}

struct span { /* rows of one slot: a run */
        uint32_t slot, position, count;
};

static inline void begin(struct fixture *b, const struct span *spans, uint32_t span_count,
                         bool write, const uint32_t *want, uint32_t want_count)
{
        struct step_row rows[ROWS] = { { 0 } };
        struct step_run runs[4];
        struct pick picks[4] = { { 0 } };
        uint32_t row = 0;

        for (uint32_t i = 0; i < span_count; i++) {
                runs[i] = (struct step_run){ row, spans[i].count };
                for (uint32_t j = 0; j < spans[i].count; j++)
                        rows[row++] = (struct step_row){ .slot = spans[i].slot,
                                                         .position = spans[i].position + j,
                                                         .token = j,
                                                         .from_row = STEP_TOKEN,
                                                         .write = write };
        }
        assert_int_equal(b->k->step_begin(b->k, KV_ALONE(b->kv),
                                          &(struct step){ .number = ++b->number,
                                                          .row_count = row,
                                                          .run_count = span_count,
                                                          .want_count = want_count,
                                                          .rows = rows,
                                                          .runs = runs,
                                                          .want = want,
                                                          .picks = picks }),
                         0);
}

static inline void begin_one(struct fixture *b, uint32_t slot, uint32_t position, uint32_t count)
{
        begin(b, &(struct span){ slot, position, count }, 1, true, NULL, 0);
}

static inline void assert_near(float got, long double expected)
{
        if (!(fabsl(got - expected) <= 1e-6L * (1 + fabsl(expected))))
                fail_msg("got %.9g, expected %.9Lg", got, expected);
}

/* The index of a number of K (v 0) or V (v 1) among all numbers, from the description in page.h. */
static inline size_t number_at(uint32_t slot, uint32_t position, uint32_t layer, uint32_t head,
                               uint32_t v, uint32_t i)
{
        size_t tile =
                (((size_t)tables[slot][position / 16] * LAYERS + layer) * KV_HEADS + head) * 2 + v;

        return (tile * 16 + position % 16) * DIM + i;
}

/* ... and its place, with that of its scale behind the tile's numbers, if it has one. */
static inline uint8_t *kv_place(const struct fixture *b, size_t at, float **ret_scale)
{
        const size_t numbers = 16 * DIM, bytes[] = { 2, 2, 1, 4, 1 };
        size_t size = bytes[b->kv->shape.type], scales = size == 1 ? 64 : 0;
        uint8_t *tile = b->kv->pages + at / numbers * (numbers * size + scales);

        *ret_scale = (float *)(tile + numbers * size) + at % numbers / DIM;
        return tile + at % numbers * size;
}

static inline float kv_number(const struct fixture *b, size_t at)
{
        float *scale;
        const uint8_t *place = kv_place(b, at, &scale);

        switch (b->kv->shape.type) {
        case KV_F16:
                return half_to_float(*(const uint16_t *)place);
        case KV_BF16:
                return bfloat_to_float(*(const uint16_t *)place);
        case KV_INT8:
                return *(const int8_t *)place * *scale;
        case KV_FP8:
                return e4m3_to_float(*place) * *scale;
        case KV_F32:
                break;
        }
        return *(const float *)place;
}

#endif
