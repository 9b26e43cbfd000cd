/*
 * Every operator of the cpu backend against ref, and against itself.
 *
 * Against ref, operators get random inputs of odd shapes.  The allowed difference is computed
 * beforehand.  Rows are rounded to bytes or to bfloats before they are multiplied with weights
 * that are blocks or bfloats (kernels/cpu/act-quant.h), and sums are of floats.  products_off()
 * gives the error of a product.  The tests follow that error through norms, rotations and
 * activations.
 *
 * Against itself, for every instruction set of this machine and for 1, 2 and 3 threads, the same
 * inputs must give the same bits.  Products with bfloats are an exception: their bits are equal
 * within a kind of variants (small-model.h).
 *
 * With SMV_TEST_SCALE below 1 only every third shape and type, for example, is tested, from a
 * random first one on.
 */
#include "tests/kernels/small-model.h"
#include "tests/scale.h"

#define ROPE_FACTOR  1.25 /* small-model.c */
#define EMBED_SCALE  1.5f
#define ACT_SLOPE    1.13 /* the steepest that an activation is */
#define ATTEND_SLACK 1e-5 /* relative to the largest value ... */
#define SCORE_SLACK                                                                                \
        0x1p-22 /* ... and more, for each 1 that a score may have: it is in an exponent */

struct inputs { /* the host's, the same for every backend */
        float *before, *x, *q, *a, *g;
};

struct outputs {
        float *q, *attend, *o, *gate, *logits, *embed;
        uint8_t *pages;
};

#define BEFORE 37u /* positions of slot 0 that are there already; slot 1 has 15, slot 2 none */
static const struct chunk before[] = { { 0, 0, BEFORE }, { 1, 0, 15 } };
static const struct chunk now[] = { { 0, BEFORE, 1 }, { 1, 15, 7 }, { 2, 0, 19 } };
#define NOW_ROWS    27u
#define BEFORE_ROWS (BEFORE + 15u)

/* Number `at` of a tile, which is of a position. */
static double number_in(const struct kv *kv, const uint8_t *tile, size_t at, size_t line)
{
        switch (kv->shape.type) {
        case KV_F16:
                return half_to_float(((const uint16_t *)tile)[at]);
        case KV_BF16:
                return bfloat_to_float(((const uint16_t *)tile)[at]);
        case KV_INT8:
                return (double)((const int8_t *)tile)[at] * kv_scales(kv, tile)[line];
        case KV_FP8:
                return (double)e4m3_to_float(tile[at]) * kv_scales(kv, tile)[line];
        case KV_F32:
                break;
        }
        return ((const float *)tile)[at];
}

static double tile_number(const struct kv *kv, enum kv_layout layout, uint32_t page, uint32_t layer,
                          uint32_t head, uint32_t is_v, uint32_t line, uint32_t d)
{
        const uint8_t *tile = kv_tile(kv, page, layer, head) + is_v * kv->tile_bytes;
        size_t at = layout == KV_LAYOUT_LANES && !is_v ? d * PAGE_POSITIONS + line
                                                       : line * kv->shape.head_dim + d;

        return number_in(kv, tile, at, line);
}

/* By how much two roundings of nearly the same float may differ: units of the rounded number. */
static double unit_of(const struct kv *kv, uint32_t page, uint32_t head, uint32_t is_v,
                      uint32_t line, double number)
{
        const uint8_t *tile = kv_tile(kv, page, 1, head) + is_v * kv->tile_bytes;

        switch (kv->shape.type) {
        case KV_F16:
                return fabs(number) * 0x1p-10 + 0x1p-24;
        case KV_BF16:
                return fabs(number) * 0x1p-7;
        case KV_INT8:
                return kv_scales(kv, tile)[line];
        case KV_FP8: /* of the number before rounding, which is at most 16/15 of the rounded one */
                return fabs(number) * 2 / 15 + kv_scales(kv, tile)[line] * 0x1p-9;
        case KV_F32:
                break;
        }
        return 0;
}

/* Pages of `from` (natural) become those of `to` (lanes): from here on both hold the same. */
static void pages_take(struct kv *to, const struct kv *from)
{
        size_t number = kv_number_bytes(to->shape.type), dim = to->shape.head_dim;
        size_t tiles = (size_t)PAGES * to->shape.layers * to->shape.kv_heads * 2;

        for (size_t t = 0; t < tiles; t++) {
                uint8_t *a = to->pages + t * to->tile_bytes;
                const uint8_t *b = from->pages + t * to->tile_bytes;

                memcpy(a, b, to->tile_bytes);
                if (t % 2)
                        continue;
                for (size_t i = 0; i < PAGE_POSITIONS; i++)
                        for (size_t d = 0; d < dim; d++)
                                memcpy(a + (d * PAGE_POSITIONS + i) * number,
                                       b + (i * dim + d) * number, number);
        }
}

static float *fetch(struct kernels *k, const float *from, size_t count)
{
        float *host = malloc(count * sizeof(*host));

        k->get(k, host, from, count);
        return host;
}

static void run_operators(struct model *m, const struct inputs *in, const struct kv *pages,
                          struct outputs *ret_out)
{
        struct kernels *k = m->k;
        const struct shape *s = &m->host->s;
        size_t q = (size_t)s->heads * s->head_dim, bytes = PAGES * m->kv->page_bytes;
        struct outputs out;

        for (uint32_t layer = 0; layer < 2; layer++) {
                model_begin(m, before, 2);
                k->put(k, m->x, in->before, BEFORE_ROWS * s->columns);
                model_qkv(m, layer);
                model_end(m);
        }

        model_begin(m, now, 3);
        model_embed(m, EMBED_SCALE);
        out.embed = fetch(k, m->x, NOW_ROWS * s->columns);
        k->put(k, m->x, in->x, NOW_ROWS * s->columns);
        model_qkv(m, 0); /* it may rotate by other frequencies */
        model_qkv(m, 1);
        out.q = fetch(k, m->q, NOW_ROWS * q);
        out.pages = malloc(bytes);
        memcpy(out.pages, m->kv->pages, bytes);
        if (pages)
                pages_take(m->kv, pages);

        k->put(k, m->q, in->q, NOW_ROWS * q);
        model_attend(m, 1);
        out.attend = fetch(k, m->a, NOW_ROWS * q);

        k->put(k, m->a, in->a, NOW_ROWS * q);
        model_project(m, m->o, m->a);
        out.o = fetch(k, m->x, NOW_ROWS * s->columns);

        k->put(k, m->x, in->x, NOW_ROWS * s->columns);
        model_gate(m);
        out.gate = fetch(k, m->g, NOW_ROWS * s->ff);
        model_head(m);
        out.logits = fetch(k, m->logits, NOW_ROWS * s->vocab);
        model_end(m);
        *ret_out = out;
}

static void outputs_free(struct outputs *o)
{
        free(o->embed);
        free(o->q);
        free(o->attend);
        free(o->o);
        free(o->gate);
        free(o->logits);
        free(o->pages);
}

static void near(const char *what, const char *who, size_t at, double is, double should,
                 double slack)
{
        if (!(fabs(is - should) <= slack + 1e-30))
                fail_msg("%s of %s: number %zu is %.9g, not %.9g within %.3g", what, who, at, is,
                         should, slack);
}

/*
 * A norm of results: each number may be off by its own share, and by those of the mean and of the
 * root.
 */
static void norm_results(const struct shape *s, const float *weight, const float *bias,
                         uint32_t count, double *x, double *off)
{
        double mean = 0, square = 0, most = 0, rms, least;
        double *size = malloc(count * sizeof(*size));

        for (uint32_t i = 0; s->layer_norm && i < count; i++)
                mean += x[i] / count;
        for (uint32_t i = 0; i < count; i++) {
                square += (x[i] - mean) * (x[i] - mean);
                most = fmax(most, off[i]);
        }
        rms = sqrt(square / count + NORM_EPS);
        least = fmax(rms - most, 1e-30);
        for (uint32_t i = 0; i < count; i++) {
                double own = off[i] + (s->layer_norm ? most : 0);
                double apart = (own + most * fabs(x[i] - mean) / rms) / least;

                /* none of them is above sqrt(count), whatever it was */
                off[i] = (s->bare_norm ? 1 : fabs(weight[i])) * fmin(apart, 2 * sqrt(count));
        }
        host_norm(s, weight, bias, count, x, size);
        for (uint32_t i = 0; i < count; i++)
                off[i] += size[i] * SLACK(count);
        free(size);
}

/* The heads of q or of k, which begin at x. */
static void norm_heads(const struct shape *s, const float *weight, const float *bias,
                       uint32_t heads, double *x, double *off)
{
        uint32_t dim = s->head_dim;

        if (s->span == SPAN_WHOLE) {
                norm_results(s, weight, bias, heads * dim, x, off);
                return;
        }
        for (uint32_t h = 0; h < heads; h++) {
                size_t at = (size_t)h * dim, own = s->span == SPAN_HEADS ? at : 0;

                norm_results(s, weight + own, bias + own, dim, x + at, off + at);
        }
}

/* From the sums of a row to what is rotated. */
static void clip_and_norm(const struct host *h, double *sums, double *off)
{
        const struct shape *s = &h->s;
        size_t q = (size_t)s->heads * s->head_dim;

        for (uint32_t i = 0; s->clip > 0 && i < h->qkv.rows; i++)
                sums[i] = fmax(-s->clip, fmin(sums[i], s->clip));
        if (!s->head_norm)
                return;
        norm_heads(s, h->q_norm, h->q_norm_bias, s->heads, sums, off);
        norm_heads(s, h->k_norm, h->k_norm_bias, s->kv_heads, sums + q, off + q);
}

/* The factor of q at this position, also for its errors, and one rounding more. */
static void scale_query(const struct shape *s, uint32_t position, const double *q, double *off)
{
        double factor = 1;

        if (s->query_beta != 0)
                factor += s->query_beta * log(1 + position / s->query_length);
        for (uint32_t d = 0; d < s->head_dim; d++)
                off[d] = fabs(factor) * (off[d] + 2 * ROPE_FACTOR * fabs(q[d]) * SLACK(0));
}

static void turn_head(const struct shape *s, const double *head, double *off)
{
        bool halves = s->pairing == ROPE_HALVES;

        for (uint32_t pair = 0; pair < s->rope_dims / 2; pair++) {
                uint32_t i = halves ? pair : 2 * pair;
                uint32_t j = halves ? pair + s->rope_dims / 2 : i + 1;
                double all = fabs(head[i]) + fabs(head[j]) + off[i] + off[j];

                off[i] = off[j] = ROPE_FACTOR * (hypot(off[i], off[j]) + all * SLACK(0));
        }
}

struct pair { /* the results of a backend and ref's */
        const struct host *host;
        const struct kernels *k;
        const struct inputs *in;
        const struct outputs *is, *should;
        struct kv is_kv, should_kv; /* over the copies of the pages */
};

static void head_near(const struct pair *p, uint32_t row, uint32_t position, uint32_t slot,
                      uint32_t n, const double *off)
{
        const struct shape *s = &p->host->s;
        uint32_t page = page_of(slot, position / PAGE_POSITIONS), line = position % PAGE_POSITIONS;
        bool is_v = n >= s->heads + s->kv_heads;
        double most = 0;

        for (uint32_t d = 0; d < s->head_dim; d++)
                most = fmax(most, off[d]);
        for (uint32_t d = 0; d < s->head_dim; d++) {
                size_t at = ((size_t)row * s->heads + n) * s->head_dim + d;
                uint32_t kv_head = (n - s->heads) % s->kv_heads;
                double is, should, slack = off[d];

                if (n < s->heads) {
                        near("q", p->k->name, at, p->is->q[at], p->should->q[at], slack);
                        continue;
                }
                is = tile_number(&p->is_kv, p->k->layout, page, 1, kv_head, is_v, line, d);
                should = tile_number(&p->should_kv, KV_LAYOUT_NATURAL, page, 1, kv_head, is_v, line,
                                     d);
                /*
                 * Each is rounded by half a unit of a value that is itself off by the slack.  A
                 * scale is off by that of its largest number, too.
                 */
                slack += unit_of(&p->should_kv, page, kv_head, is_v, line, fabs(should) + slack);
                if (KV_HAS_SCALES(s->kv))
                        slack += most / 127;
                near(is_v ? "v" : "k", p->k->name, at, is, should, slack);
        }
}

static void qkv_near(const struct pair *p, double *sums, double *abs, double *off)
{
        const struct host *h = p->host;
        const struct shape *s = &h->s;
        const float *bias = s->bias ? h->qkv_bias : NULL;
        uint32_t row = 0;

        for (uint32_t c = 0; c < 3; c++) {
                for (uint32_t i = 0; i < now[c].count; i++, row++) {
                        const float *x = p->in->x + (size_t)row * s->columns;

                        products(h, &h->qkv, x, s->norm, bias, sums, abs);
                        products_off(h, &h->qkv, x, s->norm, bias, off);
                        clip_and_norm(h, sums, off);
                        for (uint32_t n = 0; n < s->heads + 2 * s->kv_heads; n++) {
                                bool is_q = n < s->heads, is_v = n >= s->heads + s->kv_heads;
                                size_t at = (size_t)n * s->head_dim;

                                if (!is_v)
                                        turn_head(s, sums + at, off + at);
                                if (is_q)
                                        scale_query(s, now[c].position + i, sums + at, off + at);
                                head_near(p, row, now[c].position + i, now[c].slot, n, off + at);
                        }
                }
        }
}

/* Of ref's pages: the largest value, which is what attention mixes, and the longest key. */
static void find_largest(const struct kv *kv, double *ret_value, double *ret_key)
{
        size_t tiles = (size_t)PAGES * kv->shape.layers * kv->shape.kv_heads * 2;
        double value = 0, key = 0;

        for (size_t t = 0; t < tiles; t++) {
                const uint8_t *tile = kv->pages + t * kv->tile_bytes;
                double square = 0;

                for (size_t i = 0; i < (size_t)PAGE_POSITIONS * kv->shape.head_dim; i++) {
                        double v = number_in(kv, tile, i, i / kv->shape.head_dim);

                        if (t % 2 && fabs(v) > value) /* not for NaN */
                                value = fabs(v);
                        square = i % kv->shape.head_dim ? square + v * v : v * v;
                        if (t % 2 == 0 && square > key)
                                key = square;
                }
        }
        *ret_value = value;
        *ret_key = sqrt(key);
}

static void attend_near(const struct pair *p)
{
        const struct shape *s = &p->host->s;
        double value, key;

        find_largest(&p->should_kv, &value, &key);
        for (size_t head = 0; head < (size_t)NOW_ROWS * s->heads; head++) {
                const float *q = p->in->q + head * s->head_dim;
                double square = 0, score;

                for (uint32_t d = 0; d < s->head_dim; d++)
                        square += (double)q[d] * q[d];
                score = sqrt(square / s->head_dim) * key; /* no product of the two is above it */
                for (uint32_t d = 0; d < s->head_dim; d++) {
                        size_t at = head * s->head_dim + d;

                        near("attend", p->k->name, at, p->is->attend[at], p->should->attend[at],
                             (ATTEND_SLACK + SCORE_SLACK * score) * value);
                }
        }
}

static void project_near(const struct pair *p, uint32_t row, double *sums, double *abs, double *off)
{
        const struct host *h = p->host;
        const float *y = p->in->a + (size_t)row * h->o.shape.columns;
        const float *bias = h->s.bias ? h->o_bias : NULL;
        double scale = h->s.add_scale != 0 ? fabs((double)h->s.add_scale) : 1;
        size_t at = (size_t)row * h->s.columns;

        products(h, &h->o, y, false, bias, sums, abs);
        products_off(h, &h->o, y, false, bias, off);
        if (h->s.add_norm)
                norm_results(&h->s, h->add_norm, h->add_norm_bias, h->s.columns, sums, off);
        for (uint32_t i = 0; i < h->s.columns; i++, at++)
                near("project", p->k->name, at, p->is->o[at], p->should->o[at],
                     scale * off[i] + (1 + scale * fabs(sums[i])) * SLACK(0));
}

/*
 * An activation is no larger than g and not much steeper, or it is a square. *ret_off: by how much
 * it may be off. Returns its size.
 */
static double act_off(const struct shape *s, double gate, double off, double *ret_off)
{
        bool is_square = s->act == ACT_RELU_SQUARE;
        double most = gate + off, slope = is_square ? 2 * most : ACT_SLOPE;

        *ret_off = slope * off + most * (16 + most) * 0x1p-24;
        return is_square ? gate * gate : gate;
}

static void gate_near(const struct pair *p, uint32_t row, double *sums, double *abs, double *off)
{
        const struct host *h = p->host;
        const float *x = p->in->x + (size_t)row * h->s.columns;
        const float *bias = h->s.bias ? h->gate_bias : NULL;
        uint32_t ff = h->s.ff;

        products(h, &h->gate, x, h->s.norm, bias, sums, abs);
        products_off(h, &h->gate, x, h->s.norm, bias, off);
        for (uint32_t i = 0; i < ff; i++) {
                size_t at = (size_t)row * ff + i;
                double up = h->s.plain ? 1 : fabs(sums[ff + i]);
                double up_off = h->s.plain ? 0 : off[ff + i], gate_off;
                double gate = act_off(&h->s, fabs(sums[i]), off[i], &gate_off);

                near("gate", p->k->name, at, p->is->gate[at], p->should->gate[at],
                     gate_off * (up + up_off) + gate * up_off);
        }
}

static void logits_near(const struct pair *p, uint32_t row, double *sums, double *abs, double *off)
{
        const struct host *h = p->host;
        const float *x = p->in->x + (size_t)row * h->s.columns;
        const float *bias = h->s.head_bias ? h->head_bias : NULL;
        double scale = h->s.logit_scale != 0 ? fabs((double)h->s.logit_scale) : 1;
        size_t at = (size_t)row * h->s.vocab;

        products(h, &h->head, x, h->s.norm, bias, sums, abs);
        products_off(h, &h->head, x, h->s.norm, bias, off);
        for (uint32_t i = 0; i < h->s.vocab; i++, at++) /* a cap is nowhere steeper than 1 */
                near("head", p->k->name, at, p->is->logits[at], p->should->logits[at],
                     scale * (off[i] + fabs(sums[i]) * SLACK(0)));
}

/* One row; without positions it is exact. */
static void embed_near(const struct pair *p, uint32_t row, uint32_t slot, uint32_t position,
                       double *x, double *off)
{
        const struct host *h = p->host;
        uint32_t columns = h->s.columns, token = (slot * 31 + position * 7) % h->s.vocab;
        const float *w = h->head.w + (size_t)token * columns;
        const float *place = h->positions.w + (size_t)(position + FIRST_POSITION) * columns;
        bool are_placed = h->s.positions;

        for (uint32_t i = 0; i < columns; i++) {
                x[i] = (double)w[i] * EMBED_SCALE + (are_placed ? place[i] : 0);
                off[i] = are_placed ? (fabs(w[i] * EMBED_SCALE) + fabs(x[i])) * 0x1p-23 : 0;
        }
        if (are_placed && h->s.norm)
                norm_results(&h->s, h->norm, h->norm_bias, columns, x, off);
        for (uint32_t i = 0; i < columns; i++) {
                size_t at = (size_t)row * columns + i;

                near("embed", p->k->name, at, p->is->embed[at], p->should->embed[at], off[i]);
        }
}

static void operators_near(const struct pair *p)
{
        const struct shape *s = &p->host->s;
        size_t most = p->host->qkv.rows + p->host->gate.rows + s->vocab + s->columns;
        double *sums = malloc(most * sizeof(*sums)), *abs = malloc(most * sizeof(*abs)),
               *off = malloc(most * sizeof(*off));

        for (uint32_t c = 0, row = 0; c < 3; c++)
                for (uint32_t i = 0; i < now[c].count; i++, row++)
                        embed_near(p, row, now[c].slot, now[c].position + i, sums, off);
        qkv_near(p, sums, abs, off);
        attend_near(p);
        for (uint32_t row = 0; row < NOW_ROWS; row++) {
                project_near(p, row, sums, abs, off);
                gate_near(p, row, sums, abs, off);
                logits_near(p, row, sums, abs, off);
        }
        free(sums);
        free(abs);
        free(off);
}

static void same_bits(const char *what, const struct kernels *k, uint32_t threads, const void *a,
                      const void *b, size_t bytes)
{
        if (memcmp(a, b, bytes))
                fail_msg("%s of %s with %u threads has other bits", what, k->name, threads);
}

/*
 * `a` of a variant, and `b` of one of kind 0 or of its own kind: compares the results that must be
 * equal.
 */
static void operators_same(const struct host *h, uint32_t variant, bool own_kind, size_t page_bytes,
                           const struct outputs *a, const struct outputs *b)
{
        const struct shape *s = &h->s;
        size_t q = (size_t)s->heads * s->head_dim, row = NOW_ROWS * sizeof(float);

        same_bits("embed", variants[variant], variant_threads[variant], a->embed, b->embed,
                  row * s->columns);
        same_bits("attend", variants[variant], variant_threads[variant], a->attend, b->attend,
                  row * q);
        if (own_kind || !has_bfloats(&h->qkv)) {
                same_bits("q", variants[variant], variant_threads[variant], a->q, b->q, row * q);
                same_bits("pages", variants[variant], variant_threads[variant], a->pages, b->pages,
                          PAGES * page_bytes);
        }
        if (own_kind || !has_bfloats(&h->o))
                same_bits("project", variants[variant], variant_threads[variant], a->o, b->o,
                          row * s->columns);
        if (own_kind || !has_bfloats(&h->gate))
                same_bits("gate", variants[variant], variant_threads[variant], a->gate, b->gate,
                          row * s->ff);
        if (own_kind || !has_bfloats(&h->head))
                same_bits("head", variants[variant], variant_threads[variant], a->logits, b->logits,
                          row * s->vocab);
}

/*
 * The first variant of a kind is compared with ref, and all others of that kind have the same bits.
 */
static void variants_compare(const struct host *h, const struct inputs *in,
                             const struct outputs *should, const struct kv *kv)
{
        struct outputs first[VARIANT_KINDS] = { { 0 } }, is;
        struct model m;

        for (uint32_t i = 0; i < variant_count; i++) {
                struct outputs *same = &first[variant_kind(i)];
                struct pair pair = { h, variants[i], in, same, should, *kv, *kv };

                model_open(&m, variants[i], h);
                run_operators(&m, in, kv, &is);
                model_close(&m);
                if (i)
                        operators_same(h, i, false, kv->page_bytes, &is, &first[0]);
                if (same->q) {
                        operators_same(h, i, true, kv->page_bytes, &is, same);
                        outputs_free(&is);
                        continue;
                }
                *same = is;
                pair.is_kv.pages = same->pages;
                pair.should_kv.pages = should->pages;
                operators_near(&pair);
        }
        for (uint32_t kind = 0; kind < VARIANT_KINDS; kind++)
                outputs_free(&first[kind]);
}

static void compare_shape(const struct shape *s)
{
        size_t q = (size_t)s->heads * s->head_dim;
        struct inputs in = {
                .before = random_floats(BEFORE_ROWS * s->columns),
                .x = random_floats(NOW_ROWS * s->columns),
                .q = random_floats(NOW_ROWS * q),
                .a = random_floats(NOW_ROWS * q),
        };
        struct outputs should;
        struct model m;
        struct host h;

        host_make(&h, s);
        model_open(&m, ref, &h);
        run_operators(&m, &in, NULL, &should);
        variants_compare(&h, &in, &should, m.kv);
        outputs_free(&should);
        model_close(&m);
        host_free(&h);
        free(in.before);
        free(in.x);
        free(in.q);
        free(in.a);
}

static const uint32_t columns_of[] = { 1, 3, 16, 33, 64, 100, 256, 257 };
static const uint32_t dims_of[] = { 4, 16, 20, 64, 128 };
static const uint32_t heads_of[][2] = { { 1, 1 }, { 4, 4 }, { 6, 2 }, { 8, 1 }, { 40, 1 } };

static struct shape random_shape(uint32_t i)
{
        const uint32_t *heads = heads_of[random_below(5)];
        uint32_t dim = dims_of[i % 5];

        return (struct shape){
                .columns = columns_of[i % 8],
                .heads = heads[0],
                .kv_heads = heads[1],
                .head_dim = dim,
                .ff = 1 + random_below(100),
                .vocab = 1 + random_below(VOCAB_MAX),
                .kv = random_below(KV_TYPES),
                .pairing = random_below(2),
                .rope_dims = random_below(dim / 2 + 1) * 2,
                .window = random_below(2) ? 1 + random_below(40) : 0,
                .softcap = random_below(3) ? 0 : 1 + 10 * fabsf(random_float()),
                .norm = random_below(4) > 0,
                .bias = random_below(2),
                .head_norm = random_below(2),
                .sinks = random_below(3) == 0,
                .slopes = random_below(3) == 0,
                .layer_norm = random_below(2),
                .bare_norm = random_below(4) == 0,
                .positions = random_below(2),
                .add_norm = random_below(3) == 0,
                .plain = random_below(3) == 0,
                .head_bias = random_below(2),
                .two_ropes = random_below(2),
                .span = random_below(3),
                .clip = random_below(3) ? 0 : 0.1f + fabsf(random_float()),
                .add_scale = random_below(2) ? 0 : 2 * random_float(),
                .logit_scale = random_below(2) ? 0 : 2 * random_float(),
                .query_beta = random_below(2) ? 0 : random_float(),
                .query_length = 1 + random_below(20),
                .act = random_below(ACT_N),
        };
}

/*
 * Selects some of `n` cases: *ret_first, and from there on every case at a distance of the
 * result.
 */
static uint32_t every(uint32_t n, uint32_t *ret_first)
{
        uint32_t most = scaled(n, n), step = (n + most / 2) / most;

        *ret_first = random_below(step);
        return step;
}

static void operators_agree_with_ref_and_across_isas_and_threads(void **state)
{
        uint32_t i, step = every(40, &i);

        (void)state;
        for (; i < 40; i += step) { /* every width with every head size */
                struct shape s = random_shape(i);

                compare_shape(&s);
        }
}

static void every_weight_type_agrees_with_ref_and_across_isas_and_threads(void **state)
{
        uint32_t type, step = every(ROW_TYPE_N, &type);

        (void)state;
        for (; type < ROW_TYPE_N; type += step) {
                enum row_type types[8] = { type, type, type, type, type, type, type, type };
                struct shape s = random_shape(type);

                s.columns = 512; /* blocks of each type, more than one */
                s.heads = 4;
                s.kv_heads = 2;
                s.head_dim = 64;
                s.rope_dims = 64;
                s.ff = 256;
                s.types = types;
                compare_shape(&s);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_weight_type_agrees_with_ref_and_across_isas_and_threads),
                cmocka_unit_test(operators_agree_with_ref_and_across_isas_and_threads),
        };

        random_seed();
        return cmocka_run_group_tests(tests, variants_open, variants_close);
}
