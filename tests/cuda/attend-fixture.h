/*
 * Shared by tests of attention: the contexts of some slots, the formula in double, and memory
 * that holds NaN in all places that must not be read.
 */
#ifndef TESTS_CUDA_ATTEND_FIXTURE_H
#define TESTS_CUDA_ATTEND_FIXTURE_H

#include <utility>
#include <vector>

#include "kernels/cuda/attend.h"
#include "tests/cuda/fixture.h"
#include "tests/kernels/e4m3.h"

#define SLOTS     9u
#define CONTEXT   800u /* positions of a slot, unless a test needs a long one */
#define UNTOUCHED 0x5a5a
#define NO_PAGE   0x40000000u /* far outside all memory */
#define LAYERS    2u
#define LAYER     1u

using std::vector;

/* A launch that is put on a stream runs at once. */
int device_launch_raw(device *, stream, const launch *launch, const void *kernel, device_run *run,
                      const void *args, size_t)
{
        run(launch, kernel, args);
        return 0;
}

/* ---- numbers ---- */

static uint64_t dice;

static double roll(void) /* -1 .. 1 */
{
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        return (double)(int32_t)(dice >> 32) / 2147483648.0;
}

static uint32_t roll_below(uint32_t n)
{
        return (uint32_t)((roll() + 1) / 2 * n) % n;
}

/* A number as a page stores it, no larger than 1; for types of bytes without its scale. */
static uint16_t number_of_type(kv_type type, double x)
{
        if (type == KV_INT8)
                return (uint8_t)(int8_t)lrint(x * 127);
        if (type == KV_FP8)
                return e4m3_nearest(x * 448);
        return (uint16_t)(type == KV_BF16 ? two_bfloats((float)x, 0) : two_halves((float)x, 0));
}

/* Repeats the same thousands of numbers, from varying offsets. */
static void fill(vector<uint16_t> *to, kv_type type, size_t count)
{
        static vector<uint16_t> all[KV_TYPES];
        vector<uint16_t> &noise = all[type];

        while (noise.size() < 9973)
                noise.push_back(number_of_type(type, roll()));
        to->resize(count);
        for (size_t i = 0, at = roll_below(9973); i < count; i++, at = at == 9972 ? 0 : at + 1)
                (*to)[i] = noise[at];
}

static const char *const type_names[KV_TYPES] = { "f16", "bf16", "int8", "f32", "fp8" };

/* ---- a fixture: an operator's parameters, and the context of each slot ---- */

struct fixture {
        uint32_t heads, kv_heads, head_dim, window;
        uint32_t context; /* the maximum of a slot's positions */
        kv_type type;
        float scale, softcap;
        vector<float> sinks, slopes; /* or empty */
        vector<uint16_t> q[SLOTS];   /* of each position */
        vector<uint16_t> kv[SLOTS];  /* (positions, K or V, kv_heads, head_dim) */
        vector<float> scales[SLOTS]; /* (positions, K or V, kv_heads), for types of bytes */
};

/* The type of queries: halves, or bfloats if pages hold bfloats. */
static kv_type type_of_q(kv_type type)
{
        return type == KV_BF16 ? KV_BF16 : KV_F16;
}

static fixture fixture_new(uint32_t group, uint32_t kv_heads, uint32_t head_dim,
                           uint32_t context = CONTEXT, kv_type type = KV_F16)
{
        fixture w = {};

        w.heads = group * kv_heads;
        w.kv_heads = kv_heads;
        w.head_dim = head_dim;
        w.context = context;
        w.type = type;
        w.scale = 6 / sqrtf((float)head_dim);
        dice = 7 * group + 1000 * head_dim;
        print_message("heads %u of %u, %u numbers each, %s, seed %u\n", w.heads, kv_heads, head_dim,
                      type_names[type], (unsigned)dice);
        for (uint32_t s = 0; s < SLOTS; s++) {
                fill(&w.q[s], type_of_q(type), (size_t)context * w.heads * head_dim);
                fill(&w.kv[s], type, (size_t)context * 2 * kv_heads * head_dim);
                for (uint32_t i = 0; KV_HAS_SCALES(type) && i < context * 2 * kv_heads; i++)
                        w.scales[s].push_back((float)(0.55 + 0.45 * roll()) /
                                              (type == KV_FP8 ? 448 : 127));
        }
        return w;
}

/* The types that have kernels. */
static const kv_type types[] = { KV_F16, KV_BF16, KV_INT8, KV_FP8 };

/*
 * KV_FP8 bytes with this exponent and the one below (0: subnormal bytes only).  Their scales
 * make them as large as those of other worlds.
 */
static fixture fixture_of_exponent(uint32_t exponent, uint32_t head_dim)
{
        fixture w = fixture_new(2, 1, head_dim, 64, KV_FP8);
        double largest = e4m3_value((uint8_t)(exponent << 3 | (exponent == 15 ? 6 : 7)));

        for (uint32_t s = 0; s < SLOTS; s++) {
                for (uint16_t &byte : w.kv[s])
                        do
                                byte = (uint16_t)((exponent << 3 | 7) -
                                                  roll_below(exponent ? 16 : 8));
                        while ((byte & 0x7f) == 0x7f);
                for (uint16_t &byte : w.kv[s])
                        byte = (uint16_t)(byte | roll_below(2) << 7);
                for (float &scale : w.scales[s])
                        scale = (float)((0.55 + 0.45 * roll()) / largest);
        }
        return w;
}

static void with_sinks_and_slopes(fixture *w)
{
        for (uint32_t h = 0; h < w->heads; h++) {
                w->sinks.push_back((float)roll() * 3);
                w->slopes.push_back((float)(roll() + 1.1) / 40);
        }
}

static size_t number_at(const fixture *w, uint32_t position, uint32_t v, uint32_t head)
{
        return (((size_t)position * 2 + v) * w->kv_heads + head) * w->head_dim;
}

static double number(kv_type type, uint16_t bits)
{
        if (type == KV_INT8)
                return (int8_t)bits;
        if (type == KV_FP8)
                return e4m3_value((uint8_t)bits);
        return (double)(type == KV_BF16 ? from_bfloat(bits) : from_half(bits));
}

/* The numbers of one head at one position of a slot; `at` is a result of number_at(). */
static vector<double> numbers(const fixture *w, uint32_t slot, size_t at)
{
        double scale = KV_HAS_SCALES(w->type) ? (double)w->scales[slot][at / w->head_dim] : 1;
        vector<double> all;

        for (uint32_t i = 0; i < w->head_dim; i++)
                all.push_back(number(w->type, w->kv[slot][at + i]) * scale);
        return all;
}

/* Makes one number, or its scale, not finite.  A number that becomes infinite has no scale. */
static void make_unfit(fixture *w, uint32_t slot, size_t at, bool nan, bool minus)
{
        uint32_t bits = w->type == KV_BF16 ? (nan ? 0x7fc0 : 0x7f80) : (nan ? 0x7e00 : 0x7c00);

        if (KV_HAS_SCALES(w->type))
                w->scales[slot][at / w->head_dim] = NAN;
        else
                w->kv[slot][at] = (uint16_t)(bits | (minus ? 0x8000 : 0));
}

/* ---- the formula ---- */

/*
 * The result of one row and head: head_dim numbers.  *ret_largest: the largest sum of absolute
 * terms of any of its scores.
 */
static vector<double> expected(const fixture *w, uint32_t slot, uint32_t own, uint32_t head,
                               double *ret_largest)
{
        uint32_t kv_head = head / (w->heads / w->kv_heads), d = w->head_dim;
        const uint16_t *q = &w->q[slot][((size_t)own * w->heads + head) * d];
        double most = w->sinks.empty() ? -INFINITY : w->sinks[head], below = 0;
        vector<double> scores(own + 1, -INFINITY), out(d, 0);

        *ret_largest = 0;
        for (uint32_t p = 0; p <= own; p++) {
                double s = 0, all = 0;

                if (w->window && own - p >= w->window)
                        continue;
                vector<double> k = numbers(w, slot, number_at(w, p, 0, kv_head));
                for (uint32_t i = 0; i < d; i++) {
                        double product = number(type_of_q(w->type), q[i]) * k[i];

                        s += product;
                        all += fabs(product);
                }
                s *= w->scale;
                all *= w->scale;
                if (w->softcap > 0)
                        s = w->softcap * tanh(s / w->softcap);
                if (!w->slopes.empty())
                        s += w->slopes[head] * ((double)p - own);
                if (!w->slopes.empty())
                        all += w->slopes[head] * ((double)own - p);
                *ret_largest = fmax(*ret_largest, all);
                scores[p] = s;
                most = fmax(most, s);
        }
        if (!w->sinks.empty())
                below = exp(w->sinks[head] - most);
        for (uint32_t p = 0; p <= own; p++) {
                double weight = exp(scores[p] - most);

                if (weight == 0)
                        continue;
                vector<double> v = numbers(w, slot, number_at(w, p, 1, kv_head));
                below += weight;
                for (uint32_t i = 0; i < d; i++)
                        out[i] += weight * v[i];
        }
        for (double &x : out)
                x /= below;
        return out;
}

/* ---- memory ---- */

/* The queries of the rows of these runs, in the order of a step. */
static vector<uint16_t> queries(const fixture *w, const vector<view_run> &runs, uint32_t rows)
{
        size_t row = (size_t)w->heads * w->head_dim;
        vector<uint16_t> q(rows * row);

        for (const view_run &run : runs)
                memcpy(&q[run.row * row], &w->q[run.slot][run.position * row], run.count * row * 2);
        return q;
}

/* Tables of pages in random order.  All other memory is 0xff, which is NaN in all types. */
struct memory {
        vector<uint32_t> tables;
        vector<uint8_t> pages;
        size_t page_bytes, layer; /* where the layer begins in a page */
};

/* Writes K and V of a position into the layer's part of a page, in the layout of page.h. */
static void put_position(const fixture *w, const kv_shape *shape, uint8_t *layer, uint32_t slot,
                         uint32_t position)
{
        size_t line = position % PAGE_POSITIONS, bytes = kv_number_bytes(w->type);

        for (uint32_t x = 0; x < 2 * w->kv_heads; x++) {
                uint32_t v = x / w->kv_heads, head = x % w->kv_heads;
                size_t at = number_at(w, position, v, head);
                uint8_t *tile = layer + (head * 2 + v) * kv_tile_bytes(shape);

                for (uint32_t i = 0; i < w->head_dim; i++)
                        memcpy(tile + (line * w->head_dim + i) * bytes, &w->kv[slot][at + i],
                               bytes);
                if (KV_HAS_SCALES(w->type))
                        memcpy(tile + PAGE_POSITIONS * w->head_dim + line * 4,
                               &w->scales[slot][at / w->head_dim], 4);
        }
}

static memory memory_new(const fixture *w, const vector<view_run> &runs)
{
        const kv_shape shape = { LAYERS, w->kv_heads, w->head_dim, 0, w->type };
        uint32_t pages_max = w->context / PAGE_POSITIONS;
        vector<uint32_t> order(SLOTS * pages_max);
        memory m = {};

        for (uint32_t i = 0; i < order.size(); i++)
                order[i] = i;
        for (uint32_t i = (uint32_t)order.size() - 1; i > 0; i--)
                std::swap(order[i], order[roll_below(i + 1)]);
        m.page_bytes = kv_page_bytes(&shape);
        m.layer = kv_tile_offset(&shape, LAYER, 0);
        m.tables.assign(SLOTS * pages_max, NO_PAGE);
        m.pages.assign(order.size() * m.page_bytes, 0xff);
        for (const view_run &run : runs) {
                uint32_t own = run.position, end = own + run.count;
                uint32_t first = w->window && own >= w->window ? own - w->window + 1 : 0;

                for (uint32_t p = first; p < end; p++) {
                        uint32_t at = run.slot * pages_max + p / PAGE_POSITIONS;

                        m.tables[at] = order[at];
                        put_position(w, &shape, &m.pages[order[at] * m.page_bytes + m.layer],
                                     run.slot, p);
                }
        }
        return m;
}

/* Fills in the arguments that describe the fixture and its memory. */
static void describe(attend_args *args, const fixture *w, const memory *m)
{
        args->view.tables = m->tables.data();
        args->view.pages_max = w->context / PAGE_POSITIONS;
        args->pages = m->pages.data() + m->layer;
        args->page_bytes = m->page_bytes;
        args->type = w->type;
        args->scale = w->scale;
        args->softcap = w->softcap;
        args->sinks = w->sinks.empty() ? nullptr : w->sinks.data();
        args->slopes = w->slopes.empty() ? nullptr : w->slopes.data();
}

/* ---- numbers that are not finite ---- */

static bool finite(const uint16_t *bfloats, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                if ((bfloats[i] & 0x7f80) == 0x7f80)
                        return false;
        return true;
}

#endif
