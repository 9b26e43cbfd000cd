/*
 * Objects that exist twice, on a GPU and in ref, for tests of single operators.  Numbers that are
 * multiplied are exact as bfloats, so that what an operator does to its products is compared
 * tightly.
 */
#ifndef TESTS_CUDA_OPERATOR_SIDES_H
#define TESTS_CUDA_OPERATOR_SIDES_H

#include "tests/cuda/backend-fixture.h"

enum { GPU, REF, SIDES };

struct sides {
        struct kernels *k[SIDES];
        struct host host;          /* only its vocabulary is used: the tokens of rows are below */
        struct model model[SIDES]; /* only what steps need */
        float *floats[SIDES][32];  /* all buffers, to free them */
        struct matrix *matrices[SIDES][16];
        uint32_t float_count, matrix_count;
};

struct both_floats {
        float *of[SIDES];
        size_t count;
};

struct both_matrix {
        struct matrix *of[SIDES];
};

static inline float exact_float(void) /* -2 .. 2 */
{
        return (float)((int)random_below(255) - 127) / 64;
}

static inline float *exact_floats(size_t count)
{
        float *floats = malloc(count * sizeof(*floats));

        assert_non_null(floats);
        for (size_t i = 0; i < count; i++)
                floats[i] = exact_float();
        return floats;
}

static inline void sides_close(struct sides *s)
{
        for (uint32_t side = 0; side < SIDES; side++) {
                struct kernels *k = s->k[side];

                for (uint32_t i = 0; i < s->float_count; i++)
                        k->floats_free(k, s->floats[side][i]);
                for (uint32_t i = 0; i < s->matrix_count; i++)
                        k->matrix_free(k, s->matrices[side][i]);
                k->kv_free(k, s->model[side].kv);
                k->close(k);
        }
}

/* host: NULL: zeros */
static inline struct both_floats both_floats(struct sides *s, const float *host, size_t count)
{
        struct both_floats both = { .count = count };

        assert_true(s->float_count < sizeof(s->floats[0]) / sizeof(s->floats[0][0]));
        for (uint32_t side = 0; side < SIDES; side++) {
                assert_int_equal(s->k[side]->floats_new(s->k[side], count, &both.of[side]), 0);
                if (host)
                        s->k[side]->put(s->k[side], both.of[side], host, count);
                s->floats[side][s->float_count] = both.of[side];
        }
        s->float_count++;
        return both;
}

static inline void sides_open(struct sides *s, bool deterministic, const struct kv_shape *pool)
{
        struct kernels_conf conf = cuda_conf();
        struct both_floats logits;

        *s = (struct sides){ .host = { .s = { .vocab = VOCAB_MAX } } };
        assert_int_equal(kernels_open("ref", &conf, &s->k[REF]), 0);
        conf.deterministic = deterministic;
        s->k[GPU] = cuda_open(&conf);
        logits = both_floats(s, NULL, (size_t)ROWS_MAX * VOCAB_MAX);
        for (uint32_t side = 0; side < SIDES; side++) {
                s->model[side] = (struct model){ .k = s->k[side],
                                                 .host = &s->host,
                                                 .logits = logits.of[side] };
                assert_int_equal(s->k[side]->kv_new(s->k[side], pool, &s->model[side].kv), 0);
        }
}

static inline struct both_floats both_random(struct sides *s, size_t count)
{
        float *host = random_floats(count);
        struct both_floats both = both_floats(s, host, count);

        free(host);
        return both;
}

static inline void put_both(struct sides *s, const struct both_floats *to, const float *host)
{
        for (uint32_t side = 0; side < SIDES; side++)
                s->k[side]->put(s->k[side], to->of[side], host, to->count);
}

/* A file row of ROW_BF16 or ROW_Q8_0; of that, the scale is a power of two. */
static inline void exact_row(enum row_type type, uint32_t columns, uint8_t *row)
{
        for (uint32_t i = 0; i < columns && type == ROW_BF16; i++) {
                uint16_t bits = (uint16_t)(float_bits(exact_float()) >> 16);

                memcpy(row + 2 * i, &bits, 2);
        }
        for (uint32_t i = 0; i < columns && type == ROW_Q8_0; i += 32, row += 34) {
                uint16_t scale = float_to_half(0x1p-6f);

                memcpy(row, &scale, 2);
                for (uint32_t j = 0; j < 32; j++)
                        row[2 + j] = (uint8_t)(int8_t)((int)random_below(255) - 127);
        }
}

/* With rows of these numbers, or, if `rows_of` is NULL, with random ones. */
static inline struct both_matrix both_matrix(struct sides *s, uint32_t columns, uint32_t parts,
                                             const uint32_t *rows, enum row_type type,
                                             const float *rows_of)
{
        struct matrix_shape shape = { .columns = columns, .parts = parts };
        uint8_t *row = malloc(row_bytes(ROW_F32, columns));
        struct both_matrix both;

        assert_true(s->matrix_count < sizeof(s->matrices[0]) / sizeof(s->matrices[0][0]));
        assert_non_null(row);
        for (uint32_t p = 0; p < parts; p++) {
                shape.rows[p] = rows[p];
                shape.type[p] = rows_of ? ROW_F32 : type;
        }
        for (uint32_t side = 0; side < SIDES; side++) {
                assert_int_equal(s->k[side]->matrix_new(s->k[side], &shape, &both.of[side]), 0);
                s->matrices[side][s->matrix_count] = both.of[side];
        }
        s->matrix_count++;
        for (uint32_t p = 0; p < parts; p++)
                for (uint32_t r = 0; r < rows[p]; r++) {
                        if (rows_of)
                                memcpy(row, rows_of + (size_t)r * columns, columns * sizeof(float));
                        else
                                exact_row(type, columns, row);
                        for (uint32_t side = 0; side < SIDES; side++)
                                s->k[side]->weights_put(s->k[side], both.of[side], p, r, 1, row);
                }
        free(row);
        return both;
}

static inline struct row_norm norm_at(enum norm_kind kind, const struct both_floats *weight,
                                      const struct both_floats *bias, uint32_t side)
{
        return (struct row_norm){ kind, weight ? weight->of[side] : NULL,
                                  bias && kind == NORM_LAYER ? bias->of[side] : NULL, 1e-5f };
}

static inline void sides_begin(struct sides *s, const struct chunk *chunks, uint32_t count)
{
        for (uint32_t side = 0; side < SIDES; side++)
                assert_int_equal(model_begin(&s->model[side], chunks, count), 0);
}

static inline void sides_end(struct sides *s)
{
        for (uint32_t side = 0; side < SIDES; side++)
                model_end(&s->model[side]);
}

/*
 * Each number may be off by `share` of itself, and by `share_of_most` of the largest number of its
 * row.
 */
static inline void rows_near(struct sides *s, const char *what, const struct both_floats *both,
                             uint32_t rows, uint32_t columns, double share, double share_of_most)
{
        size_t count = (size_t)rows * columns;
        float *is = malloc(count * sizeof(*is)), *should = malloc(count * sizeof(*should));

        assert_true(is && should && count <= both->count);
        s->k[GPU]->get(s->k[GPU], is, both->of[GPU], count);
        s->k[REF]->get(s->k[REF], should, both->of[REF], count);
        for (uint32_t r = 0; r < rows; r++) {
                const float *row = should + (size_t)r * columns;
                double most = 0;

                for (uint32_t i = 0; i < columns; i++)
                        most = fmax(most, fabs((double)row[i]));
                for (uint32_t i = 0; i < columns; i++) {
                        double off = share * fabs((double)row[i]) + share_of_most * most + 1e-30;
                        double number = is[(size_t)r * columns + i];

                        if (!(fabs(number - row[i]) <= off))
                                fail_msg("%s: row %u, number %u is %.9g, not %.9g within %.3g",
                                         what, r, i, number, row[i], off);
                }
        }
        free(is);
        free(should);
}

#endif
