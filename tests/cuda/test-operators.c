/*
 * Every operator of the backend for GPUs, run by the emulator, against ref.
 *
 * Both get the same numbers: the result of each operator, pages included, is copied to ref
 * before the next one.  So the allowed difference is known beforehand.
 *
 * Numbers that are multiplied with weights are bfloats of 8 bits, so each is off by at most
 * 2^-8 of itself.  So are weights of files that are not kept in their own format.  A product is
 * off by as much, and a sum of products by that share of its absolute sum.  Queries, keys,
 * values and the weights of positions are halves of 11 bits, or have the precision of the type
 * of pages.  Sums are floats: they are off by n * 2^-24 of their absolute sum.
 */
#include "tests/cuda/backend-fixture.h"

#include <errno.h>

#define BFLOAT   0x1p-8
#define HALF     0x1p-11
#define HALF_MIN 0x1p-25 /* half of the smallest half */
#define SUM(n)   (((n) + 16) * 0x1p-24)
#define CURVE    0x1p-20 /* sines, exponentials and the like */

#define BEFORE 37u /* positions of slot 0 that are there already; slot 1 has 15, slot 2 none */
static const struct chunk before[] = { { 0, 0, BEFORE }, { 1, 0, 15 } };
static const struct chunk now[] = { { 0, BEFORE, 1 }, { 1, 15, 7 }, { 2, 0, 19 } };
#define NOW_ROWS    27u
#define BEFORE_ROWS (BEFORE + 15u)
#define ROPE_FACTOR 1.25 /* small-model.c */

static struct kernels *gpu;

struct pair { /* the same model twice */
        struct host host;
        struct model is, should;
        double *sums, *abs, *off; /* of a row's numbers: products and by how much they may be off */
};

static void near(const char *what, size_t at, double is, double should, double slack)
{
        if (!(fabs(is - should) <= slack + 1e-30))
                fail_msg("%s: number %zu is %.9g, not %.9g within %.3g", what, at, is, should,
                         slack);
}

static float *fetch(const struct model *m, const float *from, size_t count)
{
        float *host = malloc(count * sizeof(*host));

        assert_non_null(host);
        m->k->get(m->k, host, from, count);
        return host;
}

static void put_both(const struct pair *p, float *is, float *should, const float *host,
                     size_t count)
{
        p->is.k->put(p->is.k, is, host, count);
        p->should.k->put(p->should.k, should, host, count);
}

/* By how much a part's weights may be off, each of itself: some become bfloats. */
static double weights_off(const struct matrix_shape *shape, uint32_t part)
{
        enum row_type type = shape->type[part];

        if (type == ROW_BF16)
                return 0;
        /* gate and up share a layout with interleaved rows */
        if (shape->parts == 2 && shape->type[!part] != type)
                return BFLOAT;
        switch (type) {
        case ROW_Q8_0:
        case ROW_Q4_0:
        case ROW_F8_E4M3:
        case ROW_Q4_K:
        case ROW_Q5_K:
        case ROW_Q6_K:
                return 0;
        default:
                return BFLOAT;
        }
}

/* Of a row of x, that is off by `share` of itself: p->sums, and p->off. */
static void multiply(struct pair *p, const struct host_matrix *w, const float *x, bool norm,
                     const float *bias, double share)
{
        uint32_t n = 0;

        products(&p->host, w, x, norm, bias, p->sums, p->abs);
        for (uint32_t part = 0; part < w->shape.parts; part++) {
                double both = (1 + share) * (1 + weights_off(&w->shape, part)) - 1;

                for (uint32_t i = 0; i < w->shape.rows[part]; i++, n++)
                        p->off[n] = p->abs[n] * (both + SUM(w->shape.columns));
        }
}

/* ---- queries, keys and values ---- */

/* An rmsnorm of a head: each number may be off by its own share, and by that of the norm. */
static void norm_head(const struct host *h, const float *weight, double *head, double *off)
{
        uint32_t dim = h->s.head_dim;
        double square = 0, most = 0, rms, least;

        for (uint32_t d = 0; d < dim; d++) {
                square += head[d] * head[d];
                most = fmax(most, off[d]);
        }
        rms = sqrt(square / dim + 1e-5);
        least = fmax(rms - most, 1e-30);
        for (uint32_t d = 0; d < dim; d++) {
                off[d] = fabs(weight[d]) * (off[d] + most * fabs(head[d]) / rms) / least;
                head[d] *= weight[d] / rms;
        }
}

static void turn_head(const struct shape *s, const double *head, double *off)
{
        bool halves = s->pairing == ROPE_HALVES;

        for (uint32_t pair = 0; pair < s->rope_dims / 2; pair++) {
                uint32_t i = halves ? pair : 2 * pair;
                uint32_t j = halves ? pair + s->rope_dims / 2 : i + 1;
                double all = fabs(head[i]) + fabs(head[j]);

                off[i] = off[j] = ROPE_FACTOR * (off[i] + off[j] + all * CURVE);
        }
}

/* A number of a tile, and its rounding error by its type. */
static double number_in(const struct kv *kv, const uint8_t *tile, uint32_t line, uint32_t d,
                        double *ret_unit)
{
        size_t at = (size_t)line * kv->shape.head_dim + d;
        double number = kv->shape.type == KV_BF16 ? bfloat_to_float(((const uint16_t *)tile)[at])
                                                  : half_to_float(((const uint16_t *)tile)[at]);

        *ret_unit =
                kv->shape.type == KV_BF16 ? fabs(number) * BFLOAT : fabs(number) * HALF + HALF_MIN;
        if (!KV_HAS_SCALES(kv->shape.type))
                return number;
        if (kv->shape.type == KV_FP8) {
                number = (double)e4m3_to_float(tile[at]) * kv_scales(kv, tile)[line];
                /*
                 * Half a unit of the number before rounding, which is at most 16/15 of the
                 * rounded one.
                 */
                *ret_unit = fabs(number) / 15 + kv_scales(kv, tile)[line] * 0x1p-10;
                return number;
        }
        *ret_unit = kv_scales(kv, tile)[line] * 0.5001;
        return (double)((const int8_t *)tile)[at] * kv_scales(kv, tile)[line];
}

static double tile_number(const uint8_t *pages, const struct kv *kv, uint32_t slot,
                          uint32_t position, uint32_t head, bool is_v, uint32_t d, double *ret_unit)
{
        const uint8_t *page =
                pages + page_of(slot, position / PAGE_POSITIONS) * kv_page_bytes(&kv->shape);
        const uint8_t *tile =
                page + kv_tile_offset(&kv->shape, 1, head) + is_v * kv_tile_bytes(&kv->shape);

        return number_in(kv, tile, position % PAGE_POSITIONS, d, ret_unit);
}

static void heads_near(const struct pair *p, const uint8_t *pages, const float *q_is,
                       const float *q_should, uint32_t row, uint32_t slot, uint32_t position)
{
        const struct shape *s = &p->host.s;
        const struct kv *kv = p->should.kv;
        const double q_unit = s->kv == KV_BF16 ? BFLOAT : HALF;

        for (uint32_t n = 0; n < s->heads + 2 * s->kv_heads; n++) {
                bool is_q = n < s->heads, is_v = n >= s->heads + s->kv_heads;
                double *head = p->sums + (size_t)n * s->head_dim;
                double *off = p->off + (size_t)n * s->head_dim;
                uint32_t kv_head = (n - s->heads) % s->kv_heads;
                double most = 0;

                if (s->head_norm && !is_v)
                        norm_head(&p->host, is_q ? p->host.q_norm : p->host.k_norm, head, off);
                if (!is_v)
                        turn_head(s, head, off);
                for (uint32_t d = 0; d < s->head_dim; d++)
                        most = fmax(most, off[d]);
                for (uint32_t d = 0; d < s->head_dim; d++) {
                        size_t at = ((size_t)row * s->heads + n) * s->head_dim + d;
                        double unit, should_unit, is, should;

                        if (is_q) {
                                is = q_is[at];
                                should = q_should[at];
                                unit = (fabs(should) + off[d]) * q_unit + HALF_MIN;
                                near("q", at, is, should, off[d] + unit);
                                continue;
                        }
                        is = tile_number(pages, kv, slot, position, kv_head, is_v, d, &unit);
                        should = tile_number(kv->pages, kv, slot, position, kv_head, is_v, d,
                                             &should_unit);
                        /*
                         * Both were rounded to the type of pages, and a scale is as far off as
                         * the largest number.
                         */
                        near(is_v ? "v" : "k", at, is, should,
                             off[d] + unit + should_unit + (KV_HAS_SCALES(s->kv) ? 2 * most : 0));
                }
        }
}

static void qkv_near(struct pair *p, const float *x, const uint8_t *pages, const float *q_is,
                     const float *q_should)
{
        const struct shape *s = &p->host.s;
        uint32_t row = 0;

        for (uint32_t c = 0; c < 3; c++)
                for (uint32_t i = 0; i < now[c].count; i++, row++) {
                        multiply(p, &p->host.qkv, x + (size_t)row * s->columns, s->norm,
                                 s->bias ? p->host.qkv_bias : NULL, BFLOAT);
                        heads_near(p, pages, q_is, q_should, row, now[c].slot, now[c].position + i);
                }
}

/* ---- attention ---- */

/* Of pages: the largest value, and the longest key. */
static void find_largest(const struct kv *kv, double *ret_value, double *ret_key)
{
        size_t tiles = PAGES * kv->page_bytes / kv->tile_bytes;
        double value = 0, key = 0;

        for (size_t i = 0; i < tiles * PAGE_POSITIONS; i++) {
                size_t tile = i / PAGE_POSITIONS;
                double square = 0;

                for (uint32_t d = 0; d < kv->shape.head_dim; d++) {
                        double unit, number = number_in(kv, kv->pages + tile * kv->tile_bytes,
                                                        i % PAGE_POSITIONS, d, &unit);

                        if (tile % 2 && fabs(number) > value)
                                value = fabs(number);
                        square += number * number;
                }
                if (tile % 2 == 0 && square > key) /* NaN is not */
                        key = square;
        }
        *ret_value = value;
        *ret_key = sqrt(key);
}

/*
 * A score is a sum of floats.  The largest score is subtracted, and the result is an exponent.
 * If a score is off by e, its weight is off by the factor exp(e), and so is the sum of weights.
 * Weights are halves or bfloats, values and queries are exact, and the result is a bfloat.
 */
static void attend_near(const struct pair *p, const float *q, const float *is, const float *should)
{
        const struct shape *s = &p->host.s;
        double value, key;

        find_largest(p->should.kv, &value, &key);
        for (size_t head = 0; head < (size_t)NOW_ROWS * s->heads; head++) {
                double square = 0, score, e, weights;

                for (uint32_t d = 0; d < s->head_dim; d++)
                        square += (double)q[head * s->head_dim + d] * q[head * s->head_dim + d];
                score = sqrt(square / s->head_dim) * s->scale * key;
                if (s->slopes)
                        score += BEFORE + 1;
                e = score * SUM(s->head_dim + 64) + s->softcap * CURVE + CURVE;
                weights = 2 * expm1(2 * e) + (s->kv == KV_F16 ? HALF : BFLOAT) +
                          SLOT_PAGES * PAGE_POSITIONS * HALF_MIN;
                for (uint32_t d = 0; d < s->head_dim; d++) {
                        size_t at = head * s->head_dim + d;

                        near("attend", at, is[at], should[at],
                             value * weights * (1 + BFLOAT) + fabs(should[at]) * BFLOAT);
                }
        }
}

/* ---- the others ---- */

static void embed_near(const struct pair *p, const float *is, const float *should)
{
        double off = weights_off(&p->host.head.shape, 0) + 0x1p-23;

        for (size_t i = 0; i < (size_t)NOW_ROWS * p->host.s.columns; i++)
                near("embed", i, is[i], should[i], fabs(should[i]) * off);
}

/* x was the same, and to it was added W y; y is off by `share`. */
static void project_near(struct pair *p, const struct host_matrix *w, const float *y, double share)
{
        const struct shape *s = &p->host.s;
        size_t count = (size_t)NOW_ROWS * s->columns;
        float *is = fetch(&p->is, p->is.x, count), *should = fetch(&p->should, p->should.x, count);

        for (uint32_t r = 0; r < NOW_ROWS; r++) {
                multiply(p, w, y + (size_t)r * w->shape.columns, false,
                         s->bias ? p->host.o_bias : NULL, share);
                for (uint32_t i = 0; i < s->columns; i++) {
                        size_t at = (size_t)r * s->columns + i;

                        near("project", at, is[at], should[at],
                             p->off[i] + (1 + fabs(should[at])) * SUM(0));
                }
        }
        free(is);
        free(should);
}

/* act() is no steeper than 1.13 anywhere, and never further from 0 than its argument. */
static void gate_near(struct pair *p, const float *x, const float *is, const float *should)
{
        const struct shape *s = &p->host.s;

        for (uint32_t r = 0; r < NOW_ROWS; r++) {
                multiply(p, &p->host.gate, x + (size_t)r * s->columns, s->norm,
                         s->bias ? p->host.gate_bias : NULL, BFLOAT);
                for (uint32_t i = 0; i < s->ff; i++) {
                        size_t at = (size_t)r * s->ff + i;
                        double gate = fabs(p->sums[i]), up = fabs(p->sums[s->ff + i]);
                        double up_off = p->off[s->ff + i];
                        double off = 1.13 * p->off[i] * (up + up_off) + gate * up_off +
                                     gate * up * CURVE;

                        near("gate", at, is[at], should[at],
                             off + (fabs(should[at]) + off) * BFLOAT);
                }
        }
}

static void head_near(struct pair *p, const float *x, const float *is, const float *should)
{
        const struct shape *s = &p->host.s;

        for (uint32_t r = 0; r < NOW_ROWS; r++) {
                multiply(p, &p->host.head, x + (size_t)r * s->columns, s->norm, NULL, BFLOAT);
                for (uint32_t i = 0; i < s->vocab; i++) {
                        size_t at = (size_t)r * s->vocab + i;

                        near("head", at, is[at], should[at], p->off[i] + s->softcap * CURVE);
                }
        }
}

/* ---- all of them ---- */

static void fill_pages(struct pair *p)
{
        size_t columns = p->host.s.columns;
        float *x = random_floats(BEFORE_ROWS * columns);

        for (uint32_t layer = 0; layer < 2; layer++) {
                model_begin(&p->is, before, 2);
                model_begin(&p->should, before, 2);
                put_both(p, p->is.x, p->should.x, x, BEFORE_ROWS * columns);
                model_qkv(&p->is, layer);
                model_qkv(&p->should, layer);
                model_end(&p->is);
                model_end(&p->should);
        }
        free(x);
}

static void check_embed(struct pair *p)
{
        size_t count = (size_t)NOW_ROWS * p->host.s.columns;
        const struct embed embeds[] = { { .table = p->is.head, .scale = 1.5f },
                                        { .table = p->should.head, .scale = 1.5f } };
        float *is, *should;

        assert_int_equal(p->is.k->embed(p->is.k, &embeds[0], p->is.x), 0);
        assert_int_equal(p->should.k->embed(p->should.k, &embeds[1], p->should.x), 0);
        is = fetch(&p->is, p->is.x, count);
        should = fetch(&p->should, p->should.x, count);
        embed_near(p, is, should);
        free(is);
        free(should);
}

/* From here on ref has the pages that the GPU has. */
static void check_attention(struct pair *p, const float *x)
{
        const struct shape *s = &p->host.s;
        size_t q = (size_t)NOW_ROWS * s->heads * s->head_dim,
               bytes = PAGES * p->should.kv->page_bytes;
        uint8_t *pages = malloc(bytes);
        float *is, *should, *a_is, *a_should;

        put_both(p, p->is.x, p->should.x, x, (size_t)NOW_ROWS * s->columns);
        model_qkv(&p->is, 1);
        model_qkv(&p->should, 1);
        is = fetch(&p->is, p->is.q, q);
        should = fetch(&p->should, p->should.q, q);
        assert_non_null(pages);
        peek(pages, p->is.kv->pages, bytes);
        qkv_near(p, x, pages, is, should);

        memcpy(p->should.kv->pages, pages, bytes);
        p->should.k->put(p->should.k, p->should.q, is, q);
        model_attend(&p->is, 1);
        model_attend(&p->should, 1);
        a_is = fetch(&p->is, p->is.a, q);
        a_should = fetch(&p->should, p->should.a, q);
        attend_near(p, is, a_is, a_should);

        /* x has its value from before. */
        p->should.k->put(p->should.k, p->should.a, a_is, q);
        model_project(&p->is, p->is.o, p->is.a);
        model_project(&p->should, p->should.o, p->should.a);
        project_near(p, &p->host.o, a_is, 0);
        free(pages);
        free(is);
        free(should);
        free(a_is);
        free(a_should);
}

/*
 * Numbers that came from the host become bfloats only here.  Operators called before are done
 * before this.
 */
static void check_project(struct pair *p, const float *x)
{
        const struct shape *s = &p->host.s;
        size_t q = (size_t)NOW_ROWS * s->heads * s->head_dim;
        float *a = random_floats(q);

        p->is.k->put(p->is.k, p->is.a, a, q);
        model_project(&p->is, p->is.o, p->is.a);
        put_both(p, p->is.x, p->should.x, x, (size_t)NOW_ROWS * s->columns);
        put_both(p, p->is.a, p->should.a, a, q);
        model_project(&p->is, p->is.o, p->is.a);
        model_project(&p->should, p->should.o, p->should.a);
        project_near(p, &p->host.o, a, BFLOAT);
        free(a);
}

/* Where anything was before: half of a float may be a bfloat that is not finite. */
static void check_gate(struct pair *p, const float *x)
{
        const struct shape *s = &p->host.s;
        size_t count = (size_t)NOW_ROWS * s->ff;
        float *is, *should, *anything = random_floats((size_t)ROWS_MAX * s->ff);

        p->is.k->put(p->is.k, p->is.g, anything, (size_t)ROWS_MAX * s->ff);
        put_both(p, p->is.x, p->should.x, x, (size_t)NOW_ROWS * s->columns);
        model_gate(&p->is);
        model_gate(&p->should);
        is = fetch(&p->is, p->is.g, count);
        should = fetch(&p->should, p->should.g, count);
        gate_near(p, x, is, should);
        p->should.k->put(p->should.k, p->should.g, is, count);
        model_project(&p->is, p->is.down, p->is.g);
        model_project(&p->should, p->should.down, p->should.g);
        project_near(p, &p->host.down, is, 0);
        free(anything);
        free(is);
        free(should);
}

static void check_head(struct pair *p, const float *x)
{
        const struct shape *s = &p->host.s;
        size_t count = (size_t)NOW_ROWS * s->vocab;
        float *is, *should;

        put_both(p, p->is.x, p->should.x, x, (size_t)NOW_ROWS * s->columns);
        model_head(&p->is);
        model_head(&p->should);
        is = fetch(&p->is, p->is.logits, count);
        should = fetch(&p->should, p->should.logits, count);
        head_near(p, x, is, should);
        free(is);
        free(should);
}

static void compare_shape(const struct shape *s)
{
        float *x = random_floats((size_t)NOW_ROWS * s->columns);
        struct kernels_conf conf = cuda_conf();
        struct pair p = { 0 };
        size_t most;

        gpu = cuda_open(&conf); /* a backend that has seen no other shape */
        host_make(&p.host, s);
        most = p.host.qkv.rows + p.host.gate.rows + s->vocab + s->columns;
        p.sums = malloc(most * sizeof(*p.sums));
        p.abs = malloc(most * sizeof(*p.abs));
        p.off = malloc(most * sizeof(*p.off));
        model_open(&p.is, gpu, &p.host);
        model_open(&p.should, ref, &p.host);
        fill_pages(&p);
        model_begin(&p.is, now, 3);
        model_begin(&p.should, now, 3);
        check_embed(&p);
        check_attention(&p, x);
        check_project(&p, x);
        check_gate(&p, x);
        check_head(&p, x);
        model_end(&p.is);
        model_end(&p.should);
        model_close(&p.is);
        model_close(&p.should);
        gpu->close(gpu);
        host_free(&p.host);
        free(p.sums);
        free(p.abs);
        free(p.off);
        free(x);
}

static const uint32_t columns_of[] = { 96, 33, 256, 1, 100 };
static const uint32_t dims_of[] = { 32, 64, 80, 128 };
static const enum kv_type kv_of[] = { KV_F16, KV_BF16, KV_INT8, KV_FP8 };
static const uint32_t heads_of[][2] = { { 2, 2 }, { 3, 1 }, { 8, 2 }, { 8, 1 } };

static struct shape random_shape(uint32_t i)
{
        const uint32_t *heads = heads_of[(i + random_below(2)) % 4];
        uint32_t dim = dims_of[i % 4];

        return (struct shape){
                .columns = columns_of[i % 5],
                .heads = heads[0],
                .kv_heads = heads[1],
                .head_dim = dim,
                .ff = random_below(4) ? 1 + random_below(100) : 256,
                .vocab = 1 + random_below(VOCAB_MAX),
                .kv = kv_of[(i + i / 4) % 4],
                .pairing = random_below(2),
                .rope_dims = random_below(dim / 2 + 1) * 2,
                .window = random_below(2) ? 1 + random_below(40) : 0,
                .softcap = random_below(3) ? 0 : 1 + 10 * fabsf(random_float()),
                .scale = random_below(2) ? 1 : 1.f / 32, /* or one position has all the weight */
                .norm = random_below(4) > 0,
                .bias = random_below(2),
                .head_norm = random_below(2),
                .sinks = random_below(3) == 0,
                .slopes = random_below(3) == 0,
                .act = random_below(2),
        };
}

static void operators_are_within_the_error_bound_of_ref(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 12; i++) {
                struct shape s = random_shape(i);

                compare_shape(&s);
        }
}

/* As files are that have the more of bits where it counts: in v, down and head. */
static void multiplies_the_parts_of_a_matrix_in_their_own_formats(void **state)
{
        static const enum row_type mixes[][8] = {
                { ROW_Q4_K, ROW_Q4_K, ROW_Q6_K, ROW_Q4_K, ROW_Q4_K, ROW_Q4_K, ROW_Q6_K, ROW_Q6_K },
                { ROW_Q5_K, ROW_Q5_K, ROW_Q6_K, ROW_Q5_K, ROW_Q5_K, ROW_Q5_K, ROW_Q6_K, ROW_Q5_K },
                { ROW_Q6_K, ROW_Q4_K, ROW_Q6_K, ROW_Q6_K, ROW_Q6_K, ROW_Q6_K, ROW_Q4_K, ROW_Q4_K },
                { ROW_BF16, ROW_Q8_0, ROW_Q4_0, ROW_Q5_K, ROW_Q4_K, ROW_Q6_K, ROW_Q5_K, ROW_Q8_0 },
                { ROW_F8_E4M3, ROW_F8_E4M3, ROW_BF16, ROW_F8_E4M3, ROW_F8_E4M3, ROW_F8_E4M3,
                  ROW_F8_E4M3, ROW_F8_E4M3 },
                { ROW_IQ4_XS, ROW_IQ3_XXS, ROW_IQ3_S, ROW_IQ2_XXS, ROW_IQ2_XS, ROW_IQ2_S, ROW_IQ1_S,
                  ROW_IQ1_M },
                { ROW_TQ1_0, ROW_TQ2_0, ROW_NVFP4, ROW_Q4_K, ROW_NVFP4, ROW_IQ4_XS, ROW_TQ1_0,
                  ROW_NVFP4 },
        };

        (void)state;
        for (uint32_t i = 0; i < sizeof(mixes) / sizeof(*mixes); i++) {
                struct shape s = random_shape(i);

                s.columns = 256 + 256 * (i % 2);
                s.heads = 8;
                s.kv_heads = 1 + i % 2;
                s.head_dim = i % 2 ? 64 : 32;
                s.rope_dims = 32;
                s.ff = 512;
                s.types = mixes[i];
                compare_shape(&s);
        }
}

static void refuses_pools_of_unsupported_types_or_head_sizes(void **state)
{
        struct kernels_conf conf = cuda_conf();
        static const uint32_t others[] = { 1, 16, 48, 112, 192, 257, 384, 1024 };
        struct kv_shape shape = { 1, 1, 64, 4, KV_F32 };
        struct kv *kv;

        (void)state;
        gpu = cuda_open(&conf);
        assert_int_equal(gpu->kv_new(gpu, &shape, &kv), -ENOTSUP);
        shape.type = KV_F16;
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
                shape.head_dim = others[i];
                assert_int_equal(gpu->kv_new(gpu, &shape, &kv), -ENOTSUP);
        }
        shape.head_dim = 0;
        assert_int_equal(gpu->kv_new(gpu, &shape, &kv), -EINVAL);
        shape = (struct kv_shape){ 1u << 20, 1u << 20, 64, 1u << 20, KV_F16 };
        assert_int_equal(gpu->kv_new(gpu, &shape, &kv), -ENOMEM);
        gpu->close(gpu);
}

static void refuses_impossible_matrices(void **state)
{
        struct kernels_conf conf = cuda_conf();
        struct matrix_shape shapes[] = {
                { 0, 1, { 4 }, { ROW_F32 } },
                { 64, 0, { 0 }, { 0 } },
                { 64, 2, { 8, 0 }, { ROW_F32, ROW_F32 } },
                { 33, 1, { 4 }, { ROW_Q8_0 } },
                { 64, 3, { 4, 0, 4 }, { ROW_F32, ROW_F32, ROW_F32 } },
        };
        float *floats;
        struct matrix *matrix;

        (void)state;
        gpu = cuda_open(&conf);
        for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
                assert_int_equal(gpu->matrix_new(gpu, &shapes[i], &matrix), -EINVAL);
        assert_int_equal(gpu->floats_new(gpu, SIZE_MAX / 2, &floats), -ENOMEM);
        gpu->matrix_free(gpu, NULL);
        gpu->kv_free(gpu, NULL);
        gpu->floats_free(gpu, NULL);
        gpu->close(gpu);
}

static int open_ref(void **state)
{
        struct kernels_conf conf = cuda_conf();

        (void)state;
        random_seed();
        return kernels_open("ref", &conf, &ref);
}

static int close_ref(void **state)
{
        (void)state;
        ref->close(ref);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(operators_are_within_the_error_bound_of_ref),
                cmocka_unit_test(multiplies_the_parts_of_a_matrix_in_their_own_formats),
                cmocka_unit_test(refuses_pools_of_unsupported_types_or_head_sizes),
                cmocka_unit_test(refuses_impossible_matrices),
        };

        return cmocka_run_group_tests(tests, open_ref, close_ref);
}
