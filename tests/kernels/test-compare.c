/*
 * Every operator of the cpu backend against ref, and against itself.
 *
 * Against ref, operators get random inputs of odd shapes and are held to an error
 * relative to the sum of absolute products (SLACK).  Against itself, for every
 * instruction set this machine has and for 1, 2 and 3 threads, the same inputs
 * must give the same bits.
 */
#include "tests/kernels/world.h"

/* A float sum of n products is within n * 2^-24 of their absolute sum, and usually far nearer. */
#define SLACK(n)     (((n) / 8 + 16) * 0x1p-24)
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

/* By how much numbers of nearly the same float may differ: units of what it became. */
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
        assert_int_equal(k->embed(k, m->head, 1.5f, m->x), 0);
        out.embed = fetch(k, m->x, NOW_ROWS * s->columns);
        k->put(k, m->x, in->x, NOW_ROWS * s->columns);
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

/* How far one number of a head may be off: what its products allow, spread by norm and turn. */
static double head_slack(const struct host *h, const double *abs, const double *head, bool norm)
{
        uint32_t dim = h->s.head_dim;
        double most = 0, square = 0;

        for (uint32_t d = 0; d < dim; d++) {
                most = fmax(most, abs[d]);
                square += head[d] * head[d];
        }
        if (norm)
                most *= 2 / sqrt(square / dim + 1e-5);
        return most * 4 * SLACK(h->s.columns + dim);
}

struct pair { /* the results of a backend and ref's */
        const struct host *host;
        const struct kernels *k;
        const struct inputs *in;
        const struct outputs *is, *should;
        struct kv is_kv, should_kv; /* over the copies of the pages */
};

static void head_near(const struct pair *p, uint32_t row, uint32_t position, uint32_t slot,
                      uint32_t n, double slack)
{
        const struct shape *s = &p->host->s;
        uint32_t page = page_of(slot, position / PAGE_POSITIONS), line = position % PAGE_POSITIONS;
        bool is_v = n >= s->heads + s->kv_heads;

        for (uint32_t d = 0; d < s->head_dim; d++) {
                size_t at = ((size_t)row * s->heads + n) * s->head_dim + d;
                uint32_t kv_head = (n - s->heads) % s->kv_heads;
                double is, should;

                if (n < s->heads) {
                        near("q", p->k->name, at, p->is->q[at], p->should->q[at], slack);
                        continue;
                }
                is = tile_number(&p->is_kv, p->k->layout, page, 1, kv_head, is_v, line, d);
                should = tile_number(&p->should_kv, KV_LAYOUT_NATURAL, page, 1, kv_head, is_v, line,
                                     d);
                /* neighbours at most; a scale may be off, too, by what its largest number is */
                near(is_v ? "v" : "k", p->k->name, at, is, should,
                     (s->kv == KV_INT8 ? 2 : 1) * slack +
                             unit_of(&p->should_kv, page, kv_head, is_v, line, should));
        }
}

static void qkv_near(const struct pair *p)
{
        const struct host *h = p->host;
        const struct shape *s = &h->s;
        double *sums = malloc(h->qkv.rows * sizeof(*sums)),
               *abs = malloc(h->qkv.rows * sizeof(*abs));
        uint32_t row = 0;

        for (uint32_t c = 0; c < 3; c++) {
                for (uint32_t i = 0; i < now[c].count; i++, row++) {
                        products(h, &h->qkv, p->in->x + (size_t)row * s->columns, s->norm,
                                 s->bias ? h->qkv_bias : NULL, sums, abs);
                        for (uint32_t n = 0; n < s->heads + 2 * s->kv_heads; n++) {
                                bool normed = s->head_norm && n < s->heads + s->kv_heads;
                                size_t at = (size_t)n * s->head_dim;

                                head_near(p, row, now[c].position + i, now[c].slot, n,
                                          head_slack(h, abs + at, sums + at, normed));
                        }
                }
        }
        free(sums);
        free(abs);
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

static void rows_near(const struct pair *p, double *sums, double *abs)
{
        const struct host *h = p->host;
        const struct shape *s = &h->s;
        size_t q = (size_t)s->heads * s->head_dim;
        const char *name = p->k->name;

        for (uint32_t r = 0; r < NOW_ROWS; r++) {
                const float *x = p->in->x + (size_t)r * s->columns;
                size_t at = (size_t)r * s->columns;

                products(h, &h->o, p->in->a + r * q, false, s->bias ? h->o_bias : NULL, sums, abs);
                for (uint32_t i = 0; i < s->columns; i++, at++)
                        near("project", name, at, p->is->o[at], p->should->o[at],
                             (abs[i] + 1) * SLACK(q));

                products(h, &h->gate, x, s->norm, s->bias ? h->gate_bias : NULL, sums, abs);
                at = (size_t)r * s->ff;
                for (uint32_t i = 0; i < s->ff; i++, at++)
                        near("gate", name, at, p->is->gate[at], p->should->gate[at],
                             4 * abs[i] * abs[s->ff + i] * SLACK(s->columns));

                products(h, &h->head, x, s->norm, NULL, sums, abs);
                at = (size_t)r * s->vocab;
                for (uint32_t i = 0; i < s->vocab; i++, at++)
                        near("head", name, at, p->is->logits[at], p->should->logits[at],
                             2 * abs[i] * SLACK(s->columns));
        }
}

static void operators_near(const struct pair *p)
{
        const struct shape *s = &p->host->s;
        size_t most = p->host->gate.rows + s->vocab + s->columns;
        double *sums = malloc(most * sizeof(*sums)), *abs = malloc(most * sizeof(*abs));

        for (size_t i = 0; i < (size_t)NOW_ROWS * s->columns; i++)
                near("embed", p->k->name, i, p->is->embed[i], p->should->embed[i], 0);
        qkv_near(p);
        attend_near(p);
        rows_near(p, sums, abs);
        free(sums);
        free(abs);
}

static void same_bits(const char *what, const struct kernels *k, uint32_t threads, const void *a,
                      const void *b, size_t bytes)
{
        if (memcmp(a, b, bytes))
                fail_msg("%s of %s with %u threads has other bits", what, k->name, threads);
}

static void operators_same(const struct host *h, uint32_t set, size_t page_bytes,
                           const struct outputs *a, const struct outputs *b)
{
        const struct shape *s = &h->s;
        size_t q = (size_t)s->heads * s->head_dim, row = NOW_ROWS * sizeof(float);

        same_bits("embed", sets[set], set_threads[set], a->embed, b->embed, row * s->columns);
        same_bits("q", sets[set], set_threads[set], a->q, b->q, row * q);
        same_bits("pages", sets[set], set_threads[set], a->pages, b->pages, PAGES * page_bytes);
        same_bits("attend", sets[set], set_threads[set], a->attend, b->attend, row * q);
        same_bits("project", sets[set], set_threads[set], a->o, b->o, row * s->columns);
        same_bits("gate", sets[set], set_threads[set], a->gate, b->gate, row * s->ff);
        same_bits("head", sets[set], set_threads[set], a->logits, b->logits, row * s->vocab);
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
        struct outputs should, first = { 0 }, is;
        struct model ref_model, m;
        struct host h;

        host_make(&h, s);
        model_open(&ref_model, ref, &h);
        run_operators(&ref_model, &in, NULL, &should);
        for (uint32_t i = 0; i < set_count; i++) {
                size_t page_bytes = ref_model.kv->page_bytes;

                model_open(&m, sets[i], &h);
                run_operators(&m, &in, ref_model.kv, i ? &is : &first);
                model_close(&m);
                if (i == 0) {
                        struct pair pair = { &h,      sets[i],       &in,          &first,
                                             &should, *ref_model.kv, *ref_model.kv };

                        pair.is_kv.pages = first.pages;
                        pair.should_kv.pages = should.pages;
                        operators_near(&pair);
                        continue;
                }
                operators_same(&h, i, page_bytes, &is, &first);
                outputs_free(&is);
        }
        outputs_free(&first);
        outputs_free(&should);
        model_close(&ref_model);
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
                .act = random_below(2),
        };
}

static void operators_agree_with_ref_and_have_one_answer(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 35; i++) { /* every width with every head size */
                struct shape s = random_shape(i);

                compare_shape(&s);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(operators_agree_with_ref_and_have_one_answer),
        };

        random_seed();
        return cmocka_run_group_tests(tests, sets_open, sets_close);
}
