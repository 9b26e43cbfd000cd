#include "tests/kernels/small-model.h"

#include <errno.h>
#include <time.h>

#include "kernels/blocks.h"

static uint64_t random_state;

void random_seed(void)
{
        const char *seed = getenv("SEED");

        random_state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
        print_message("SEED=%llu\n", (unsigned long long)random_state);
}

uint32_t random_next(void)
{
        random_state = random_state * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(random_state >> 32);
}

uint32_t random_below(uint32_t n)
{
        return (uint32_t)((uint64_t)random_next() * n >> 32);
}

float random_float(void)
{
        return (float)((int32_t)random_next() * 0x1p-31);
}

float *random_floats(size_t count)
{
        float *f = malloc(count * sizeof(*f));

        assert_non_null(f);
        for (size_t i = 0; i < count; i++)
                f[i] = random_float();
        return f;
}

/* ---- the variants: ref, and the cpu backend in every way it can be opened here ---- */

struct kernels *ref;
struct kernels *variants[VARIANTS_MAX];
uint32_t variant_threads[VARIANTS_MAX];
uint32_t variant_count;

const char *const isa_names[] = {
        "c", "amx-emulated", "avx2", "avx512", "avx512bf16", "amx", NULL
};

uint32_t kind_of(const struct kernels *k)
{
        return !strcmp(k->name, "cpu/avx512bf16") ? 1 : !strncmp(k->name, "cpu/amx", 7) ? 2 : 0;
}

uint32_t variant_kind(uint32_t variant)
{
        return kind_of(variants[variant]);
}

static struct kernels_conf conf_of(const char *isa, uint32_t threads)
{
        return (struct kernels_conf){
                .threads = threads,
                .isa = isa,
                .rows_max = ROWS_MAX,
                .slots_max = SLOTS,
                .pages_max = SLOT_PAGES,
                .vocab_max = VOCAB_MAX,
                .wants_max = ROWS_MAX,
        };
}

/* Tiles in plain C are slow, and the release build has all numbers of threads. */
static bool is_too_slow(const char *isa, uint32_t threads)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        return strcmp(isa, "amx-emulated") == 0 && threads != 2;
#else
        (void)isa;
        (void)threads;
        return false;
#endif
}

int variants_open(void **state)
{
        struct kernels_conf conf = conf_of("auto", 1);

        (void)state;
        assert_int_equal(kernels_open("ref", &conf, &ref), 0);
        for (uint32_t i = 0; isa_names[i]; i++) {
                for (uint32_t threads = 1; threads <= 3; threads++) {
                        int r;

                        if (is_too_slow(isa_names[i], threads))
                                continue;
                        assert_true(variant_count < VARIANTS_MAX);
                        conf = conf_of(isa_names[i], threads);
                        r = kernels_open("cpu", &conf, &variants[variant_count]);
                        if (r == -ENOTSUP) {
                                print_message("no %s on this machine: not compared\n",
                                              isa_names[i]);
                                break;
                        }
                        assert_int_equal(r, 0);
                        variant_threads[variant_count++] = threads;
                }
        }
        return 0;
}

int variants_close(void **state)
{
        (void)state;
        ref->close(ref);
        for (uint32_t i = 0; i < variant_count; i++)
                variants[i]->close(variants[i]);
        return 0;
}

/* ---- a random model of one shape, on the host ---- */

static void number_put(enum row_type type, uint8_t *to, float f)
{
        uint16_t half = type == ROW_F16 ? float_to_half(f) : (uint16_t)(float_bits(f) >> 16);

        if (type == ROW_F32)
                memcpy(to, &f, 4);
        else
                memcpy(to, &half, 2);
}

/* Any codes that are numbers, and a small scale. */
static void e4m3_put(uint8_t *to)
{
        float scale = random_float() * 0x1p-9f;

        memcpy(to, &scale, 4);
        for (uint32_t i = 4; i < 132; i++)
                if ((to[i] & 0x7f) == 0x7f)
                        to[i] ^= 1;
}

void iq1_m_scale_put(uint8_t *block, uint16_t half)
{
        for (uint32_t i = 0; i < 4; i++)
                block[49 + i * 2] = (uint8_t)((block[49 + i * 2] & 15) | (half >> i * 4 & 15) << 4);
}

/* Whole blocks of random bytes, except for the scales, which are small numbers. */
static void blocks_put(enum row_type type, uint8_t *to, size_t count)
{
        static const struct {
                uint8_t scale, least; /* where halves are; 0 and 0: no least value */
        } at[ROW_TYPE_N] = {
                [ROW_Q4_1] = { 0, 2 },   [ROW_Q5_1] = { 0, 2 },   [ROW_Q4_K] = { 0, 2 },
                [ROW_Q5_K] = { 0, 2 },   [ROW_Q2_K] = { 80, 82 }, [ROW_Q3_K] = { 108, 0 },
                [ROW_Q6_K] = { 208, 0 }, [ROW_TQ1_0] = { 52, 0 }, [ROW_TQ2_0] = { 64, 0 },
        };
        const struct block_format *f = block_format(type);

        for (; count; count--, to += f->bytes) {
                for (uint32_t i = 0; i < f->bytes; i++)
                        to[i] = (uint8_t)random_next();
                if (type == ROW_MXFP4) {
                        to[0] = (uint8_t)(120 - random_below(4)); /* an exponent */
                        continue;
                }
                if (type == ROW_F8_E4M3) {
                        e4m3_put(to);
                        continue;
                }
                if (type == ROW_NVFP4) {
                        number_put(ROW_F32, to, random_float() * 0x1p-12f);
                        continue;
                }
                if (type == ROW_IQ1_M) {
                        iq1_m_scale_put(to, float_to_half(random_float() * 0x1p-7f));
                        continue;
                }
                number_put(ROW_F16, to + at[type].scale, random_float() * 0x1p-7f);
                if (at[type].least)
                        number_put(ROW_F16, to + at[type].least, random_float() * 0x1p-7f);
        }
}

/* |scale * code| + |least value| of each number, of a block its run's. */
static void parts_of(enum row_type type, const uint8_t *file_row, uint32_t columns,
                     float *ret_parts)
{
        const struct block_format *f = block_format(type);
        struct block b;

        if (!f) {
                row_to_floats(type, file_row, columns, ret_parts);
                for (uint32_t i = 0; i < columns; i++)
                        ret_parts[i] = fabsf(ret_parts[i]);
                return;
        }
        for (uint32_t at = 0; at < columns; at += f->numbers, file_row += f->bytes) {
                f->take(file_row, &b);
                for (uint32_t i = 0; i < f->numbers; i++) {
                        float number = block_number(f, b.codes[i]);

                        ret_parts[at + i] =
                                fabsf(b.scale *
                                      (block_run_scale(f, b.scales[i / f->run]) * number)) +
                                fabsf(b.min * (float)b.mins[i / f->run]);
                }
        }
}

/* A random type of those that can have this many columns. */
static enum row_type random_type(uint32_t columns)
{
        enum row_type type;

        do
                type = random_below(ROW_TYPE_N);
        while (!row_bytes(type, columns));
        return type;
}

static void host_matrix_make(struct host_matrix *m, uint32_t columns, uint32_t parts,
                             const uint32_t *rows, const enum row_type *types)
{
        float *w, *parts_at;

        *m = (struct host_matrix){ .shape = { .columns = columns, .parts = parts } };
        for (uint32_t p = 0; p < parts; p++)
                m->rows += rows[p];
        w = m->w = malloc((size_t)m->rows * columns * sizeof(*m->w));
        parts_at = m->parts = malloc((size_t)m->rows * columns * sizeof(*m->parts));
        for (uint32_t p = 0; p < parts; p++) {
                enum row_type type = types ? types[p] : random_type(columns);
                const struct block_format *blocks = block_format(type);
                size_t number = row_bytes(type, 1), row = row_bytes(type, columns);

                m->shape.rows[p] = rows[p];
                m->shape.type[p] = type;
                m->file[p] = malloc(rows[p] * row);
                if (blocks)
                        blocks_put(type, m->file[p], rows[p] * row / blocks->bytes);
                for (size_t i = 0; !blocks && i < (size_t)rows[p] * columns; i++) {
                        float f = random_float();

                        /* a subnormal half */
                        if (random_below(16) == 0)
                                f *= 0x1p-18f;
                        number_put(type, m->file[p] + i * number, f);
                }
                for (uint32_t r = 0; r < rows[p]; r++, w += columns, parts_at += columns) {
                        row_to_floats(type, m->file[p] + r * row, columns, w);
                        parts_of(type, m->file[p] + r * row, columns, parts_at);
                }
        }
}

static void host_matrix_free(struct host_matrix *m)
{
        for (uint32_t p = 0; p < m->shape.parts; p++)
                free(m->file[p]);
        free(m->w);
        free(m->parts);
}

bool has_bfloats(const struct host_matrix *m)
{
        bool has = false;

        for (uint32_t p = 0; p < m->shape.parts; p++)
                has |= m->shape.type[p] == ROW_BF16;
        return has;
}

/* How many numbers the vectors have, in their order. */
static size_t vector_count(const struct shape *s, uint32_t which)
{
        const uint32_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
        const uint32_t columns = s->columns, pairs = s->rope_dims / 2 + 1;
        const uint32_t counts[VECTORS] = { columns,    columns, columns,   columns,
                                           q,          q,       kv,        kv,
                                           q + 2 * kv, columns, 2 * s->ff, s->vocab,
                                           pairs,      pairs,   s->heads,  s->heads };

        return counts[which];
}

void host_make(struct host *h, const struct shape *s)
{
        uint32_t q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
        const enum row_type *of = s->types;

        *h = (struct host){ .s = *s };
        host_matrix_make(&h->qkv, s->columns, 3, (uint32_t[]){ q, kv, kv }, of);
        host_matrix_make(&h->o, q, 1, (uint32_t[]){ s->columns }, of ? of + 3 : NULL);
        host_matrix_make(&h->gate, s->columns, s->plain ? 1 : 2, (uint32_t[]){ s->ff, s->ff },
                         of ? of + 4 : NULL);
        host_matrix_make(&h->down, s->ff, 1, (uint32_t[]){ s->columns }, of ? of + 6 : NULL);
        host_matrix_make(&h->head, s->columns, 1, (uint32_t[]){ s->vocab }, of ? of + 7 : NULL);
        host_matrix_make(&h->positions, s->columns, 1,
                         (uint32_t[]){ SLOT_PAGES * PAGE_POSITIONS + FIRST_POSITION }, NULL);
        for (uint32_t i = 0; i < VECTORS; i++)
                h->vectors[i] = random_floats(vector_count(s, i));
}

void host_free(struct host *h)
{
        host_matrix_free(&h->qkv);
        host_matrix_free(&h->o);
        host_matrix_free(&h->gate);
        host_matrix_free(&h->down);
        host_matrix_free(&h->head);
        host_matrix_free(&h->positions);
        for (uint32_t i = 0; i < VECTORS; i++)
                free(h->vectors[i]);
}

void host_norm(const struct shape *s, const float *weight, const float *bias, uint32_t count,
               double *x, double *ret_size)
{
        double mean = 0, square = 0, inverse;

        for (uint32_t i = 0; s->layer_norm && i < count; i++)
                mean += x[i] / count;
        for (uint32_t i = 0; i < count; i++)
                square += (x[i] - mean) * (x[i] - mean);
        inverse = 1 / sqrt(square / count + NORM_EPS);
        for (uint32_t i = 0; i < count; i++) {
                double w = s->bare_norm ? 1 : weight[i];
                double b = s->bare_norm || !s->layer_norm ? 0 : bias[i];

                x[i] = (x[i] - mean) * inverse * w;
                if (ret_size) /* a mean is off by some units of the average difference */
                        ret_size[i] = fabs(x[i]) + fabs(b) + (s->layer_norm ? fabs(w) : 0);
                x[i] += b;
        }
}

/* x, normed if `norm` is set. */
static void norm_row(const struct host *h, const float *x, uint32_t columns, bool norm,
                     double *ret_x, double *ret_size)
{
        for (uint32_t i = 0; i < columns; i++) {
                ret_x[i] = x[i];
                ret_size[i] = fabs((double)x[i]);
        }
        if (norm)
                host_norm(&h->s, h->norm, h->norm_bias, columns, ret_x, ret_size);
}

void products(const struct host *h, const struct host_matrix *w, const float *x, bool norm,
              const float *bias, double *ret_sums, double *ret_abs)
{
        uint32_t columns = w->shape.columns;
        double *normed = malloc(columns * sizeof(*normed));
        double *size = malloc(columns * sizeof(*size));

        norm_row(h, x, columns, norm, normed, size);
        for (uint32_t r = 0; r < w->rows; r++) {
                double sum = bias ? bias[r] : 0, abs = fabs(sum);

                for (uint32_t i = 0; i < columns; i++) {
                        double p = w->w[(size_t)r * columns + i] * normed[i];

                        sum += p;
                        abs += fabs(p);
                }
                ret_sums[r] = sum;
                ret_abs[r] = abs;
        }
        free(normed);
        free(size);
}

/*
 * The rounding error of each number of x.  A bfloat has 8 bits, so it is off by at most 2^-8 of
 * itself, plus half of the smallest one.  A byte is off by half of 1/127 of the largest of 32
 * numbers, plus some units of that in the last place, since a float holds the scale and
 * multiplies by it.  A number up to 2^-100 may become 0.
 */
static void x_off(enum row_type type, const double *x, uint32_t columns, double *ret_off)
{
        for (uint32_t from = 0; from < columns; from += 32) {
                uint32_t to = columns - from < 32 ? columns : from + 32;
                double most = 0;

                for (uint32_t i = from; i < to; i++)
                        most = fmax(most, fabs(x[i]));
                for (uint32_t i = from; i < to; i++) {
                        if (type == ROW_F32 || type == ROW_F16)
                                ret_off[i] = 0;
                        else if (type == ROW_BF16)
                                ret_off[i] = fabs(x[i]) * 0x1p-8 + 0x1p-134;
                        else
                                ret_off[i] = most / 254 + most * 0x1p-22 + 0x1p-100;
                }
        }
}

void products_off(const struct host *h, const struct host_matrix *w, const float *x, bool norm,
                  const float *bias, double *ret_off)
{
        const uint32_t columns = w->shape.columns;
        const double share = SLACK(columns); /* of all that is summed; the norm's is in it, twice */
        double *normed = malloc(columns * sizeof(*normed)), *off = malloc(columns * sizeof(*off));
        double *size = malloc(columns * sizeof(*size));
        uint32_t r = 0;

        norm_row(h, x, columns, norm, normed, size);
        for (uint32_t p = 0; p < w->shape.parts; p++) {
                x_off(w->shape.type[p], normed, columns, off);
                for (uint32_t end = r + w->shape.rows[p]; r < end; r++) {
                        const float *row = w->w + (size_t)r * columns;
                        const float *parts = w->parts + (size_t)r * columns;
                        double sum = bias ? fabs((double)bias[r]) : 0, rounded = 0;

                        for (uint32_t i = 0; i < columns; i++) {
                                rounded += fabs(row[i]) * off[i];
                                sum += parts[i] * (size[i] + off[i]);
                        }
                        ret_off[r] = rounded * (1 + share) + sum * share * (norm ? 2 : 1);
                }
        }
        free(normed);
        free(off);
        free(size);
}

/* ---- the same model in a backend ---- */

struct matrix *host_matrix_load(struct kernels *k, const struct host_matrix *m)
{
        struct matrix *matrix;

        assert_int_equal(k->matrix_new(k, &m->shape, &matrix), 0);
        for (uint32_t p = 0; p < m->shape.parts; p++) {
                size_t row = row_bytes(m->shape.type[p], m->shape.columns);
                uint32_t some = m->shape.rows[p] / 3; /* in two pieces, cut anywhere */

                k->weights_put(k, matrix, p, some, m->shape.rows[p] - some,
                               m->file[p] + some * row);
                k->weights_put(k, matrix, p, 0, some, m->file[p]);
        }
        return matrix;
}

static float *floats_load(struct kernels *k, const float *host, size_t count)
{
        float *floats;

        assert_int_equal(k->floats_new(k, count, &floats), 0);
        if (host)
                k->put(k, floats, host, count);
        return floats;
}

void model_open(struct model *m, struct kernels *k, const struct host *h)
{
        const struct shape *s = &h->s;
        uint32_t q = s->heads * s->head_dim;
        struct kv_shape pool = { 2, s->kv_heads, s->head_dim, PAGES, s->kv, SWAP_PAGES };

        *m = (struct model){ .k = k, .host = h };
        m->qkv = host_matrix_load(k, &h->qkv);
        m->o = host_matrix_load(k, &h->o);
        m->gate = host_matrix_load(k, &h->gate);
        m->down = host_matrix_load(k, &h->down);
        m->head = host_matrix_load(k, &h->head);
        m->positions = host_matrix_load(k, &h->positions);
        for (uint32_t i = 0; i < VECTORS; i++)
                m->vectors[i] = floats_load(k, h->vectors[i], vector_count(s, i));
        m->x = floats_load(k, NULL, ROWS_MAX * s->columns);
        m->q = floats_load(k, NULL, ROWS_MAX * q);
        m->a = floats_load(k, NULL, ROWS_MAX * q);
        m->g = floats_load(k, NULL, ROWS_MAX * s->ff);
        m->logits = floats_load(k, NULL, ROWS_MAX * s->vocab);
        assert_int_equal(k->kv_new(k, &pool, &m->kv), 0);
        if (strncmp(k->name, "cuda", 4)) { /* the emulated device's is like that already */
                size_t bytes = kv_all_pages(&m->kv->shape) * m->kv->page_bytes;

                memset(m->kv->pages, 0xff, bytes); /* NaN in every type */
        }
}

void model_close(struct model *m)
{
        struct kernels *k = m->k;
        float *floats[] = { m->x, m->q, m->a, m->g, m->logits };

        for (uint32_t i = 0; i < VECTORS; i++)
                k->floats_free(k, m->vectors[i]);
        for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++)
                k->floats_free(k, floats[i]);
        k->matrix_free(k, m->qkv);
        k->matrix_free(k, m->o);
        k->matrix_free(k, m->gate);
        k->matrix_free(k, m->down);
        k->matrix_free(k, m->head);
        k->matrix_free(k, m->positions);
        k->kv_free(k, m->kv);
}

static struct row_norm norm_of(const struct model *m, bool is_there, const float *weight,
                               const float *bias)
{
        const struct shape *s = &m->host->s;

        if (!is_there)
                return (struct row_norm){ 0 };
        return (struct row_norm){
                .kind = s->layer_norm ? NORM_LAYER : NORM_RMS,
                .weight = s->bare_norm ? NULL : weight,
                .bias = s->bare_norm || !s->layer_norm ? NULL : bias,
                .eps = NORM_EPS,
        };
}

void model_embed(struct model *m, float scale)
{
        const struct shape *s = &m->host->s;
        struct embed op = { .table = m->head, .scale = scale };

        if (s->positions) {
                op.positions = m->positions;
                op.first_position = FIRST_POSITION;
                op.norm = norm_of(m, s->norm, m->norm, m->norm_bias);
        }
        assert_int_equal(m->k->embed(m->k, &op, m->x), 0);
}

void model_qkv(struct model *m, uint32_t layer)
{
        const struct shape *s = &m->host->s;
        bool is_second = s->two_ropes && layer == 1;
        const float *frequency = is_second ? m->frequency_2 : m->frequency;
        struct qkv op = {
                .w = m->qkv,
                .norm = norm_of(m, s->norm, m->norm, m->norm_bias),
                .bias = s->bias ? m->qkv_bias : NULL,
                .clip = s->clip,
                .span = s->span,
                .q_norm = norm_of(m, s->head_norm, m->q_norm, m->q_norm_bias),
                .k_norm = norm_of(m, s->head_norm, m->k_norm, m->k_norm_bias),
                .rope = { s->rope_dims, s->pairing, frequency, 1.25f },
                .query_beta = s->query_beta,
                .query_length = s->query_length,
                .kv = m->kv,
                .layer = layer,
                .heads = s->heads,
                .kv_heads = s->kv_heads,
                .head_dim = s->head_dim,
        };

        assert_int_equal(m->k->qkv(m->k, &op, m->q, m->x), 0);
}

void model_attend(struct model *m, uint32_t layer)
{
        const struct shape *s = &m->host->s;
        struct attend op = {
                .kv = m->kv,
                .layer = layer,
                .heads = s->heads,
                .kv_heads = s->kv_heads,
                .head_dim = s->head_dim,
                .scale = (s->scale > 0 ? s->scale : 1) / sqrtf((float)s->head_dim),
                .softcap = s->softcap,
                .window = s->window,
                .sinks = s->sinks ? m->sinks : NULL,
                .slopes = s->slopes ? m->slopes : NULL,
        };

        assert_int_equal(m->k->attend(m->k, &op, m->a, m->q), 0);
}

void model_project(struct model *m, const struct matrix *w, const float *y)
{
        const struct shape *s = &m->host->s;
        struct linear op = {
                .w = w,
                .bias = s->bias ? m->o_bias : NULL,
                .norm = norm_of(m, s->add_norm, m->add_norm, m->add_norm_bias),
                .scale = s->add_scale,
        };

        assert_int_equal(m->k->project(m->k, &op, m->x, y), 0);
}

void model_gate(struct model *m)
{
        const struct shape *s = &m->host->s;
        struct gate op = {
                .w = m->gate,
                .norm = norm_of(m, s->norm, m->norm, m->norm_bias),
                .bias = s->bias ? m->gate_bias : NULL,
                .act = s->act,
        };

        assert_int_equal(m->k->gate(m->k, &op, m->g, m->x), 0);
}

void model_head(struct model *m)
{
        const struct shape *s = &m->host->s;
        struct head op = {
                .w = m->head,
                .norm = norm_of(m, s->norm, m->norm, m->norm_bias),
                .bias = s->head_bias ? m->head_bias : NULL,
                .scale = s->logit_scale,
                .softcap = s->softcap,
        };

        assert_int_equal(m->k->head(m->k, &op, m->logits, m->x), 0);
}

/* ---- steps ---- */

uint32_t page_of(uint32_t slot, uint32_t index)
{
        return (slot * SLOT_PAGES + index) * 11 % PAGES;
}

/* Numbers only grow, whichever model of a backend is at work. */
static uint64_t step_number;

int model_begin(struct model *m, const struct chunk *chunks, uint32_t chunk_count)
{
        static const struct pick greedy[ROWS_MAX];
        struct step_row rows[ROWS_MAX];
        struct step_run runs[SLOTS];
        struct step_page pages[SLOTS * SLOT_PAGES];
        uint32_t want[ROWS_MAX], n = 0;
        struct step step = { .number = ++step_number, .runs = runs, .rows = rows, .pages = pages };
        int r;

        for (uint32_t c = 0; c < chunk_count; c++) {
                runs[step.run_count++] = (struct step_run){ n, chunks[c].count };
                for (uint32_t i = 0; i < chunks[c].count; i++, n++) {
                        rows[n] = (struct step_row){
                                .slot = chunks[c].slot,
                                .position = chunks[c].position + i,
                                .token = (chunks[c].slot * 31 + (chunks[c].position + i) * 7) %
                                         m->host->s.vocab,
                                .from_row = STEP_TOKEN,
                                .write = !chunks[c].again,
                        };
                        want[n] = n;
                }
        }
        for (uint32_t i = 0; !m->step && i < SLOTS * SLOT_PAGES; i++)
                pages[step.page_count++] =
                        (struct step_page){ i / SLOT_PAGES, i % SLOT_PAGES,
                                            page_of(i / SLOT_PAGES, i % SLOT_PAGES) };
        step.copies = m->copies;
        step.copy_count = m->copy_count;
        m->copy_count = 0;
        step.row_count = step.want_count = n;
        step.want = want;
        step.picks = greedy;
        m->step = step.number;
        r = m->k->step_begin(m->k, KV_ALONE(m->kv), &step);
        assert_true(r >= 0);
        return r;
}

void model_end(struct model *m)
{
        uint32_t picked[ROWS_MAX];

        /* the same logits in every backend, so that every step is one that was picked from */
        assert_int_equal(m->k->pick(m->k, m->logits, m->host->s.vocab), 0);
        assert_int_equal(m->k->step_end(m->k), 0);
        assert_int_equal(m->k->collect(m->k, m->step, picked), 0);
}
