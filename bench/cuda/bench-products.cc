/*
 * Rows times weights (linear.h), 1 to 64 rows, for the matrices of two models; each time other weights than
 * the last times, so that they come out of memory.
 */
#include <stdio.h>
#include <vector>

#include "bench/cuda/bench.h"
#include "kernels/cuda/linear.h"

#define ROWS_MAX 64u
#define SETS_MAX 64u
#define CACHED   ((size_t)300 << 20) /* five times what the largest L2 cache holds */

struct product {
        const char *name;
        uint32_t n, k; /* LINEAR_GATE: n of gate and up together */
        linear_epilogue epilogue;
};

static const product products[] = {
        { "1B qkv", 3072, 2048, LINEAR_STORE },     { "1B o", 2048, 2048, LINEAR_ADD },
        { "1B gate|up", 16384, 2048, LINEAR_GATE }, { "1B down", 2048, 8192, LINEAR_ADD },
        { "8B qkv", 6144, 4096, LINEAR_STORE },     { "8B o", 4096, 4096, LINEAR_ADD },
        { "8B gate|up", 28672, 4096, LINEAR_GATE }, { "8B down", 4096, 14336, LINEAR_ADD },
};

static const struct {
        linear_format format;
        const char *name;
        double bytes; /* of a number */
} formats[] = {
        { LINEAR_BFLOAT, "bf16", 2 },        { LINEAR_INT8, "Q8_0", 1.0625 },
        { LINEAR_INT4, "Q4_0", 0.5625 },     { LINEAR_K4, "Q4_K", 0.5625 },
        { LINEAR_K5, "Q5_K", 0.6875 },       { LINEAR_K6, "Q6_K", 0.8203125 },
        { LINEAR_E4M3, "F8_E4M3", 1.03125 },
};

#define FORMATS (sizeof(formats) / sizeof(*formats))

struct operands {
        linear_args args;
        linear_matrix sets[SETS_MAX];
        unsigned count;
        uint16_t *x, *out;
        float *y, *sums;
        unsigned *arrived;
};

static void make_sets(bench *b, operands *o, size_t bytes, size_t scales)
{
        linear_matrix *w = &o->args.w;
        fill kind = w->format == LINEAR_BFLOAT ? FILL_BFLOATS : FILL_BITS;
        fill kind_of_scales = w->format == LINEAR_E4M3 ? FILL_FLOATS : FILL_SCALES;

        o->count = b->tiny ? 2 : (unsigned)(CACHED / (bytes + scales)) + 2;
        o->count = o->count < SETS_MAX ? o->count : SETS_MAX;
        for (unsigned i = 0; i < o->count; i++) {
                o->sets[i] = *w;
                o->sets[i].weights = bench_array<uint8_t>(b, kind, bytes);
                if (scales)
                        o->sets[i].scales = bench_array<uint16_t>(b, kind_of_scales, scales / 2);
        }
        o->args.w = o->sets[0];
}

static void operands_open(bench *b, operands *o, const product *p, linear_format format)
{
        linear_args *a = &o->args;
        uint32_t k = b->tiny ? 256 : p->k, n = b->tiny ? 64 : p->n;
        size_t sums, arrived;

        *o = {};
        a->epilogue = p->epilogue;
        a->w.format = format;
        a->w.rows = n;
        a->w.columns = k;
        a->n = p->epilogue == LINEAR_GATE ? n / 2 : n;
        a->x_columns = k;
        a->y_columns = n;
        a->out_columns = (n + 63) / 64 * 64;
        make_sets(b, o, n * linear_row_bytes(format, k), n * linear_row_scales(format, k) * 2);
        o->x = bench_array<uint16_t>(b, FILL_BFLOATS, (size_t)ROWS_MAX * k);
        o->y = bench_array<float>(b, FILL_FLOATS, (size_t)ROWS_MAX * n);
        o->out = bench_array<uint16_t>(b, FILL_BFLOATS, (size_t)ROWS_MAX * a->out_columns);
        linear_room(b->device, &a->w, ROWS_MAX, &sums, &arrived);
        o->sums = bench_array<float>(b, FILL_FLOATS, sums + 1);
        o->arrived = (unsigned *)bench_new(b, (arrived + 1) * sizeof(unsigned));
        bench_must(
                device_clear(b->device, STREAM_STEPS, o->arrived, (arrived + 1) * sizeof(unsigned)),
                "to clear");
        a->x = o->x;
        a->sums = o->sums;
        a->arrived = o->arrived;
        a->y = p->epilogue == LINEAR_GATE ? nullptr : o->y;
        a->out = p->epilogue == LINEAR_GATE ? o->out : nullptr;
}

static void operands_close(bench *b, operands *o)
{
        for (unsigned i = 0; i < o->count; i++) {
                bench_delete(b, (void *)o->sets[i].weights);
                bench_delete(b, (void *)o->sets[i].scales);
        }
        bench_delete(b, o->x);
        bench_delete(b, o->y);
        bench_delete(b, o->out);
        bench_delete(b, o->sums);
        bench_delete(b, o->arrived);
}

/* Bytes or operations, whichever takes longer, and the beginning; x costs from 32 rows on. */
static double predict(const product *p, double bytes_of_number, uint32_t rows)
{
        double numbers = (double)p->n * p->k;
        double bytes = numbers * bytes_of_number / LIMIT_MEMORY / (rows < 32 ? 1 : 0.94);
        double operations = 2 * numbers * rows / LIMIT_PRODUCTS;

        return (bytes > operations ? bytes : operations) + PREDICTED_GAP;
}

static figure time_rows(bench *b, operands *o, uint32_t rows)
{
        uint32_t *count = bench_sent<uint32_t>(b, { rows });
        unsigned nodes = b->tiny ? 2 : o->count < 32 ? 32 : o->count;
        auto put = [&](unsigned i) {
                o->args.w = o->sets[i % o->count];
                bench_must(linear(b->device, &o->args), "a product");
        };
        figure f;

        o->args.rows_max = rows < 8 ? 8 : rows; /* as the backend's buckets are */
        o->args.count = count;
        put(0);
        bench_wait(b);
        f = bench_time_recorded(b, nodes, put);
        bench_delete(b, count);
        return f;
}

/* The first row's bits are its own: among `rows` as alone. */
static void check_alone(bench *b, operands *o)
{
        std::vector<float> among(16), alone(16);

        if (o->args.epilogue != LINEAR_STORE)
                return;
        bench_fetch(b, among.data(), o->y, 64);
        time_rows(b, o, 1);
        bench_fetch(b, alone.data(), o->y, 64);
        for (unsigned i = 0; i < 16; i++)
                bench_check(among[i] == alone[i] && among[i] != 0,
                            "a row among many, and the same row alone");
}

static void tell_rows(bench *b, const product *p, unsigned which, operands *o, uint32_t rows)
{
        double bytes = (double)p->n * p->k * formats[which].bytes;
        double predicted = predict(p, formats[which].bytes, rows);
        figure f = {};
        char what[100];

        snprintf(what, sizeof(what), "%s, %u x %u, %s, %u row%s", p->name, p->n, p->k,
                 formats[which].name, rows, rows > 1 ? "s" : "");
        if (b->device)
                f = figure_times(time_rows(b, o, rows), 1e6);
        figure_tell("products", what, "us", predicted * 1e6, b->device ? &f : nullptr,
                    b->device ? bytes / b->bandwidth / (f.median * 1e-6) : 0);
}

void bench_products(bench *b)
{
        for (const product &p : products)
                for (unsigned which = 0; which < FORMATS; which++) {
                        operands o;

                        if (b->device)
                                operands_open(b, &o, &p, formats[which].format);
                        for (uint32_t rows : { 1u, 2u, 4u, 8u, 16u, 32u, 64u })
                                if (!b->tiny || rows == 1 || rows == 8)
                                        tell_rows(b, &p, which, &o, rows);
                        if (!b->device)
                                continue;
                        check_alone(b, &o);
                        operands_close(b, &o);
                }
}
