#include "bench/cuda/random-model.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of rows; all matrices are taken from these. */
#define NOISE (32u << 20)
/* Bytes of weights that are put at once. */
#define PIECE     (2u << 20)
#define AMPLITUDE 0.03f /* the amplitude of weights */
#define EPS       1e-5f
#define BLOCK     256u /* in numbers; whole blocks of each type */

double random_numbers(const struct random_shape *s)
{
        double q = (double)s->heads * s->head_dim, kv = (double)s->kv_heads * s->head_dim;
        double layer = s->columns * (2 * q + 2 * kv + 3.0 * s->ff);

        return s->layers * layer + (double)s->vocab * s->columns;
}

double random_bytes_of_number(enum row_type type)
{
        return (double)row_bytes(type, BLOCK) / BLOCK;
}

/* ---- noise ---- */

static uint64_t next(uint64_t *dice)
{
        uint64_t z = *dice += 0x9e3779b97f4a7c15u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

static uint16_t bfloat_of(float f)
{
        uint32_t bits;

        memcpy(&bits, &f, sizeof(bits));
        return (uint16_t)(bits >> 16);
}

static void fill_bfloat(uint8_t *at)
{
        int16_t number;
        uint16_t bfloat;

        memcpy(&number, at, 2);
        bfloat = bfloat_of((float)number / 32768 * AMPLITUDE);
        memcpy(at, &bfloat, 2);
}

/* A half, which is 2^-12 or 2^-8, then 32 integers. */
static void fill_q8_0(uint8_t *at)
{
        const uint16_t scale = 0x0c00;

        memcpy(at, &scale, 2);
}

static void fill_q4_0(uint8_t *at)
{
        const uint16_t scale = 0x1c00;

        memcpy(at, &scale, 2);
}

/*
 * Halves of 2^-13 and 7.5 * 2^-13, then 6-bit integers: the scale and the least value of each run
 * (kernels/blocks.c).  Both integers are equal, so that the weights' mean is 0: 7.5 is the mean
 * of the codes.
 */
static void fill_q4_k(uint8_t *at)
{
        const uint16_t halves[] = { 0x0800, 0x1380 };

        memcpy(at, halves, 4);
        for (unsigned i = 4; i < 8; i++) {
                at[i + 4] = at[i];
                at[i + 8] = (uint8_t)((at[i + 8] & 15) * 0x11);
        }
}

/* A float, then 128 codes.  A code whose exponent and fraction are all ones is NaN. */
static void fill_e4m3(uint8_t *at)
{
        const float scale = 0x1p-13f;

        memcpy(at, &scale, 4);
        for (unsigned i = 4; i < 132; i++)
                if ((at[i] & 0x7f) == 0x7f)
                        at[i] ^= 1;
}

/*
 * Blocks of a type are random bits; some bits are set so that the numbers are small and finite.
 */
static void fill(enum row_type type, uint8_t *noise, size_t bytes)
{
        static const struct {
                size_t bytes;
                void (*fill)(uint8_t *block);
        } blocks[ROW_TYPE_N] = {
                [ROW_BF16] = { 2, fill_bfloat },    [ROW_Q8_0] = { 34, fill_q8_0 },
                [ROW_Q4_0] = { 18, fill_q4_0 },     [ROW_Q4_K] = { 144, fill_q4_k },
                [ROW_F8_E4M3] = { 132, fill_e4m3 },
        };
        const size_t block = blocks[type].bytes;
        uint64_t dice = 20261122;

        for (size_t at = 0; at + 8 <= bytes; at += 8) {
                uint64_t bits = next(&dice);

                memcpy(noise + at, &bits, 8);
        }
        for (size_t at = 0; at + block <= bytes; at += block)
                blocks[type].fill(noise + at);
}

/* ---- matrices ---- */

struct job {
        struct random_model *m;
        const uint8_t *noise;
        uint32_t next; /* the next matrix; accessed atomically */
};

/* Returns matrix `n` of all; NULL past the last. */
static struct matrix **matrix_number(struct random_model *m, uint32_t n,
                                     struct matrix_shape *ret_shape)
{
        const struct random_shape *s = &m->shape;
        uint32_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
        struct random_layer *layer = &m->layers[n / 4 % RANDOM_LAYERS_MAX];

        *ret_shape = (struct matrix_shape){ .columns = s->columns,
                                            .parts = 1,
                                            .rows = { s->columns },
                                            .type = { s->type, s->type, s->type } };
        if (n >= 4 * s->layers) {
                ret_shape->rows[0] = s->vocab;
                n -= 4 * s->layers;
                return n == 0 ? &m->table : n == 1 && !s->tied ? &m->head : NULL;
        }
        switch (n % 4) {
        case 0:
                ret_shape->parts = 3;
                ret_shape->rows[0] = q;
                ret_shape->rows[1] = ret_shape->rows[2] = kv;
                return &layer->qkv;
        case 1:
                ret_shape->columns = q;
                return &layer->o;
        case 2:
                ret_shape->parts = 2;
                ret_shape->rows[0] = ret_shape->rows[1] = s->ff;
                return &layer->gate;
        default:
                ret_shape->columns = s->ff;
                return &layer->down;
        }
}

static void load(struct kernels *k, struct matrix *matrix, const struct matrix_shape *shape,
                 const uint8_t *noise, uint64_t *dice)
{
        size_t bytes = row_bytes(shape->type[0], shape->columns);
        uint32_t piece = (uint32_t)(PIECE / bytes), spare = (uint32_t)(NOISE / bytes) - piece;

        for (uint32_t p = 0; p < shape->parts; p++)
                for (uint32_t row = 0, count; row < shape->rows[p]; row += count) {
                        count = shape->rows[p] - row < piece ? shape->rows[p] - row : piece;
                        k->weights_put(k, matrix, p, row, count,
                                       noise + next(dice) % spare * bytes);
                }
}

static void *work(void *arg)
{
        struct job *job = arg;
        struct random_model *m = job->m;
        struct matrix_shape shape;
        struct matrix **matrix;

        for (;;) {
                uint32_t n = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
                uint64_t dice = n;

                matrix = matrix_number(m, n, &shape);
                if (!matrix)
                        return NULL;
                load(m->k, *matrix, &shape, job->noise, &dice);
        }
}

static int load_all(struct random_model *m, unsigned threads)
{
        pthread_t *others = calloc(threads, sizeof(*others));
        uint8_t *noise = malloc(NOISE);
        struct job job = { m, noise, 0 };
        unsigned begun = 0;
        int r = others && noise ? 0 : -ENOMEM;

        if (!r)
                fill(m->shape.type, noise, NOISE);
        for (; !r && begun < threads; begun += !r)
                r = -pthread_create(&others[begun], NULL, work, &job);
        while (begun)
                pthread_join(others[--begun], NULL);
        free(others);
        free(noise);
        return r;
}

/* ---- the rest of it ---- */

static int vector(struct random_model *m, float **ret_vector, uint32_t count,
                  float (*number)(uint32_t i, uint32_t count))
{
        float *host = calloc(count, sizeof(*host));
        int r = host ? m->k->floats_new(m->k, count, ret_vector) : -ENOMEM;

        for (uint32_t i = 0; !r && i < count; i++)
                host[i] = number(i, count);
        if (!r)
                m->k->put(m->k, *ret_vector, host, count);
        free(host);
        return r;
}

static float near_one(uint32_t i, uint32_t count)
{
        return 1 + (float)(i * 7919 % count) / (float)count / 8;
}

static float frequency(uint32_t i, uint32_t count)
{
        return powf(500000, -(float)i / (float)count);
}

static int make_buffers(struct random_model *m, const struct kernels_conf *conf)
{
        const struct random_shape *s = &m->shape;
        size_t rows = conf->rows_max, q = (size_t)s->heads * s->head_dim;
        struct kernels *k = m->k;
        int r;

        if ((r = vector(m, &m->norm, s->columns, near_one)) ||
            (r = vector(m, &m->head_norm, s->head_dim, near_one)) ||
            (r = vector(m, &m->frequency, s->head_dim / 2, frequency)) ||
            (r = k->floats_new(k, rows * s->columns, &m->x)) ||
            (r = k->floats_new(k, rows * q, &m->q)) || (r = k->floats_new(k, rows * q, &m->a)) ||
            (r = k->floats_new(k, rows * s->ff, &m->g)))
                return r;
        return k->floats_new(k, (size_t)conf->wants_max * s->vocab, &m->logits);
}

int random_open(struct random_model *m, struct kernels *k, const struct random_shape *shape,
                const struct kernels_conf *conf, uint32_t pages, unsigned threads)
{
        const struct kv_shape pool = { shape->layers, shape->kv_heads, shape->head_dim, pages,
                                       KV_F16 };
        struct matrix_shape of;
        struct matrix **matrix;
        int r;

        *m = (struct random_model){ .k = k, .shape = *shape };
        if (shape->layers > RANDOM_LAYERS_MAX)
                return -EINVAL;
        for (uint32_t n = 0; (matrix = matrix_number(m, n, &of)); n++) {
                r = k->matrix_new(k, &of, matrix);
                if (r)
                        return r;
        }
        r = k->kv_new(k, &pool, &m->kv);
        if (!r)
                r = make_buffers(m, conf);
        if (!r)
                r = load_all(m, threads);
        return r;
}

void random_close(struct random_model *m)
{
        struct kernels *k = m->k;
        float *floats[] = {
                m->norm, m->head_norm, m->frequency, m->x, m->q, m->a, m->g, m->logits
        };
        struct matrix_shape of;
        struct matrix **matrix;

        for (uint32_t n = 0; (matrix = matrix_number(m, n, &of)); n++)
                k->matrix_free(k, *matrix);
        for (size_t i = 0; i < sizeof(floats) / sizeof(*floats); i++)
                if (floats[i])
                        k->floats_free(k, floats[i]);
        k->kv_free(k, m->kv);
}

static int forward_layer(struct random_model *m, uint32_t number)
{
        const struct random_shape *s = &m->shape;
        const struct random_layer *layer = &m->layers[number];
        const struct row_norm of_heads = { s->head_norms ? NORM_RMS : NORM_NONE, m->head_norm, NULL,
                                           EPS };
        const struct row_norm of_rows = { NORM_RMS, m->norm, NULL, EPS };
        const struct qkv qkv = { .w = layer->qkv,
                                 .norm = of_rows,
                                 .q_norm = of_heads,
                                 .k_norm = of_heads,
                                 .rope = { s->head_dim, ROPE_HALVES, m->frequency, 1 },
                                 .kv = m->kv,
                                 .layer = number,
                                 .heads = s->heads,
                                 .kv_heads = s->kv_heads,
                                 .head_dim = s->head_dim };
        const struct attend attend = { .kv = m->kv,
                                       .layer = number,
                                       .heads = s->heads,
                                       .kv_heads = s->kv_heads,
                                       .head_dim = s->head_dim,
                                       .scale = 1 / sqrtf((float)s->head_dim) };
        const struct linear o = { .w = layer->o }, down = { .w = layer->down };
        const struct gate gate = { .w = layer->gate, .norm = of_rows, .act = ACT_SILU };
        struct kernels *k = m->k;
        int r;

        if ((r = k->qkv(k, &qkv, m->q, m->x)) || (r = k->attend(k, &attend, m->a, m->q)) ||
            (r = k->project(k, &o, m->x, m->a)) || (r = k->gate(k, &gate, m->g, m->x)))
                return r;
        return k->project(k, &down, m->x, m->g);
}

/* All operators of a step. */
static int forward(void *arg)
{
        struct random_model *m = arg;
        const struct embed embed = { .table = m->table, .scale = 1 };
        const struct head head = { .w = m->shape.tied ? m->table : m->head,
                                   .norm = { NORM_RMS, m->norm, NULL, EPS } };
        struct kernels *k = m->k;
        int r = k->embed(k, &embed, m->x);

        for (uint32_t i = 0; !r && i < m->shape.layers; i++)
                r = forward_layer(m, i);
        if (r || (r = k->head(k, &head, m->logits, m->x)))
                return r;
        return k->pick(k, m->logits, m->shape.vocab);
}

int random_warm_up(struct random_model *m)
{
        return m->k->warm_up ? m->k->warm_up(m->k, forward, m) : 0;
}

int random_forward(struct random_model *m, const struct step *step)
{
        struct kernels *k = m->k;
        int r = k->step_begin(k, KV_ALONE(m->kv), step);

        if (r < 0 || (r != STEP_REPLAYED && (r = forward(m))))
                return r;
        return k->step_end(k);
}
