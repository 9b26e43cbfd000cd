/*
 * Rows times weights, 1 to 256 rows, for the matrices of two models: by the kernel (linear.h), and
 * by cuBLASLt (linear-blas.h).  Each product reads other weights than the products before it, so
 * that the weights come from memory and not from the cache.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <vector>

#include "bench/cuda/bench.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/linear-blas.h"
#include "kernels/cuda/linear.h"

#define ROWS_MAX     256u
#define CHUNK        64u /* rows for which the kernel reads the weights once */
#define VARIANTS_MAX 64u
#define CACHED       ((size_t)300 << 20) /* five times what the largest L2 cache holds */
#define NODES        32u                 /* products of a graph */
#define SAMPLES      5u                  /* there are hundreds of figures */
#define COMPARED     16u                 /* numbers of a result that are checked */
#define NEAR         0.03f /* of the largest number: cuBLASLt gets weights rounded to bfloats */

struct product {
        const char *name;
        uint32_t n, k; /* LINEAR_GATE: n of gate and up together */
        linear_epilogue epilogue;
};

static const std::vector<product> of_8b = {
        { "8B qkv", 6144, 4096, LINEAR_STORE },     { "8B o", 4096, 4096, LINEAR_ADD },
        { "8B gate|up", 28672, 4096, LINEAR_GATE }, { "8B down", 4096, 14336, LINEAR_ADD },
        { "8B head", 128256, 4096, LINEAR_STORE },
};
static const std::vector<product> of_1b = {
        { "1B qkv", 3072, 2048, LINEAR_STORE },
        { "1B o", 2048, 2048, LINEAR_ADD },
        { "1B gate|up", 16384, 2048, LINEAR_GATE },
        { "1B down", 2048, 8192, LINEAR_ADD },
};

struct named_format {
        linear_format format;
        const char *name;
        double bytes; /* of a number */
};

/* The most important first, in case the time runs out. */
static const std::vector<named_format> formats = {
        { LINEAR_BFLOAT, "bf16", 2 },        { LINEAR_INT4, "Q4_0", 0.5625 },
        { LINEAR_E4M3, "F8_E4M3", 1.03125 }, { LINEAR_K4, "Q4_K", 0.5625 },
        { LINEAR_INT8, "Q8_0", 1.0625 },     { LINEAR_K5, "Q5_K", 0.6875 },
        { LINEAR_K6, "Q6_K", 0.8203125 },
};
#define FORMATS_OF_1B 2u

enum way { BY_KERNEL, BY_LIBRARY };
static const char *const ways[] = { "kernel", "cuBLASLt" };

struct operands {
        linear_args args;
        linear_matrix sets[VARIANTS_MAX];
        unsigned count;
        uint32_t *rows; /* on the device */
        uint16_t *x, *out;
        float *y, *sums;
        unsigned *arrived;
        blas *library; /* NULL: there is none */
        linear_blas_scratch scratch;
        float alone[COMPARED]; /* the first results for one row alone */
};

static void make_sets(bench *b, operands *o, size_t bytes, size_t scales)
{
        linear_matrix *w = &o->args.w;
        fill kind = w->format == LINEAR_BFLOAT ? FILL_BFLOATS : FILL_BITS;
        fill kind_of_scales = w->format == LINEAR_E4M3 ? FILL_FLOATS : FILL_SCALES;

        o->count = b->tiny ? 2 : (unsigned)(CACHED / (bytes + scales)) + 2;
        o->count = o->count < VARIANTS_MAX ? o->count : VARIANTS_MAX;
        for (unsigned i = 0; i < o->count; i++) {
                o->sets[i] = *w;
                o->sets[i].weights = bench_array<uint8_t>(b, kind, bytes);
                if (scales)
                        o->sets[i].scales = bench_array<uint16_t>(b, kind_of_scales, scales / 2);
        }
        o->args.w = o->sets[0];
}

static void make_scratch(bench *b, operands *o)
{
        linear_args *a = &o->args;
        size_t sums, arrived, weights;

        linear_scratch_size(b->device, &a->w, ROWS_MAX, &sums, &arrived);
        o->sums = a->sums = bench_array<float>(b, FILL_FLOATS, sums + 1);
        o->arrived = a->arrived = (unsigned *)bench_new(b, (arrived + 1) * sizeof(unsigned));
        bench_must(
                device_clear(b->device, STREAM_STEPS, o->arrived, (arrived + 1) * sizeof(unsigned)),
                "to clear");
        if (!o->library)
                return;
        linear_blas_scratch_size(&a->w, a->epilogue, ROWS_MAX, LINEAR_BLAS_SCRATCH_BYTES, &weights,
                                 &sums);
        o->scratch = { LINEAR_BLAS_SCRATCH_BYTES, nullptr, nullptr };
        if (weights)
                o->scratch.weights = (uint16_t *)bench_new(b, weights * sizeof(uint16_t));
        if (sums)
                o->scratch.sums = (float *)bench_new(b, sums * sizeof(float));
}

static void operands_open(bench *b, operands *o, const product *p, linear_format format,
                          blas *library)
{
        linear_args *a = &o->args;
        uint32_t k = b->tiny ? 256 : p->k, n = b->tiny ? 64 : p->n;
        bool gate = p->epilogue == LINEAR_GATE;

        *o = {};
        o->library = library;
        a->epilogue = p->epilogue;
        a->w.format = format;
        a->w.rows = n;
        a->w.columns = k;
        a->n = gate ? n / 2 : n;
        a->x_columns = k;
        a->y_columns = n;
        a->out_columns = (a->n + 63) / 64 * 64;
        make_sets(b, o, n * linear_row_bytes(format, k), n * linear_row_scales(format, k) * 2);
        a->x = o->x = bench_array<uint16_t>(b, FILL_BFLOATS, (size_t)ROWS_MAX * k);
        if (gate)
                a->out = o->out =
                        bench_array<uint16_t>(b, FILL_BFLOATS, (size_t)ROWS_MAX * a->out_columns);
        else
                a->y = o->y = bench_array<float>(b, FILL_FLOATS, (size_t)ROWS_MAX * n);
        a->count = o->rows = (uint32_t *)bench_new(b, sizeof(*o->rows));
        make_scratch(b, o);
}

static void operands_close(bench *b, operands *o)
{
        for (unsigned i = 0; i < o->count; i++) {
                bench_delete(b, (void *)o->sets[i].weights);
                bench_delete(b, (void *)o->sets[i].scales);
        }
        for (void *memory :
             { (void *)o->x, (void *)o->y, (void *)o->out, (void *)o->rows, (void *)o->sums,
               (void *)o->arrived, (void *)o->scratch.weights, (void *)o->scratch.sums })
                bench_delete(b, memory);
}

/* ---- predictions ---- */

/*
 * The time for bytes or operations, whichever is longer, plus the time to start; x adds time from
 * 32 rows on.  Each chunk of rows reads x for every 16 rows of weights, out of the cache: 8 bytes
 * a weight.
 */
static double predict_kernel(const card &card, const product *p, double bytes_of_number,
                             uint32_t rows)
{
        double numbers = (double)p->n * p->k;
        double bytes = numbers * bytes_of_number / card.memory / (rows < 32 ? 1 : 0.94);
        double operations = 2 * numbers * rows / card.products;

        if (rows > CHUNK)
                bytes = rows / CHUNK * numbers * 8 / card.l2;
        return (bytes > operations ? bytes : operations) + PREDICTED_GAP;
}

/*
 * Packed weights are first read and written as bfloats; the sums of a gate are also read and
 * written.
 */
static double predict_library(const card &card, const product *p, const named_format *f,
                              uint32_t rows)
{
        double numbers = (double)p->n * p->k, around = 0;
        double bytes = numbers * 2 / card.memory;
        double operations = 2 * numbers * rows / card.products;
        bool packed = f->format != LINEAR_BFLOAT, gate = p->epilogue == LINEAR_GATE;

        if (packed)
                around += numbers * (f->bytes + 2) / card.memory + PREDICTED_GAP;
        if (gate)
                around += (double)rows * p->n * 8 / card.memory + PREDICTED_GAP;
        return around + (bytes > operations ? bytes : operations) + PREDICTED_GAP;
}

/* ---- products ---- */

static void set_rows(bench *b, operands *o, uint32_t rows)
{
        o->args.rows_max = rows < 8 ? 8 : rows; /* like the backend's buckets */
        bench_send(b, o->rows, &rows, sizeof(rows));
}

static void multiply(bench *b, operands *o, way way, unsigned set)
{
        o->args.w = o->sets[set % o->count];
        bench_must(way == BY_KERNEL ? linear(b->device, &o->args)
                                    : linear_blas(b->device, o->library, &o->args, &o->scratch),
                   "a product");
}

/* This also makes cuBLASLt choose an algorithm. */
static bool library_serves(const operands *o)
{
        int r = linear_blas_serves(o->library, &o->args, &o->scratch);

        bench_must(r < 0 ? r : 0, "a product by cuBLASLt");
        return r;
}

/*
 * Multiplies the first row with the first weights; the result does not depend on the previous
 * contents of y.
 */
static void first_numbers(bench *b, operands *o, way way, float ret_numbers[COMPARED])
{
        bool gate = o->args.epilogue == LINEAR_GATE;
        void *result = gate ? (void *)o->out : o->y;
        uint32_t words[COMPARED];
        uint16_t bfloats[COMPARED];

        bench_must(device_clear(b->device, STREAM_STEPS, result, sizeof(words)), "to clear");
        multiply(b, o, way, 0);
        if (gate) {
                bench_fetch(b, bfloats, result, sizeof(bfloats));
                for (unsigned i = 0; i < COMPARED; i++)
                        words[i] = (uint32_t)bfloats[i] << 16;
        } else
                bench_fetch(b, words, result, sizeof(words));
        memcpy(ret_numbers, words, sizeof(words));
}

/* The kernel gives a row among many the bits of that row alone; cuBLASLt rounds differently. */
static void check_first(bench *b, operands *o, way way, const char *what)
{
        float numbers[COMPARED], most = 0, apart = 0;
        bool same, is_number = true;
        char wrong[200];

        first_numbers(b, o, way, numbers);
        same = !memcmp(numbers, o->alone, sizeof(numbers));
        for (unsigned i = 0; i < COMPARED; i++) {
                most = fmaxf(most, fabsf(o->alone[i]));
                apart = fmaxf(apart, fabsf(numbers[i] - o->alone[i]));
                is_number = is_number && isfinite(numbers[i]);
        }
        snprintf(wrong, sizeof(wrong), "%s: the first row is not what it is alone", what);
        bench_note(b, is_number && most > 0 && (way == BY_KERNEL ? same : apart <= NEAR * most),
                   wrong);
}

static figure time_rows(bench *b, operands *o, way way)
{
        unsigned most = o->count < NODES ? NODES : o->count, nodes;
        double began = figure_clock();

        multiply(b, o, way, 1);
        bench_wait(b);
        nodes = (unsigned)(FIGURE_SAMPLE / (figure_clock() - began));
        nodes = nodes < o->count ? o->count : nodes < most ? nodes : most;
        return bench_time_recorded(b, b->tiny ? 2 : nodes,
                                   [&](unsigned i) { multiply(b, o, way, i); });
}

static void tell_rows(bench *b, const product *p, const named_format *format, operands *o,
                      uint32_t rows, way way)
{
        double bytes = (double)p->n * p->k * format->bytes;
        prediction predicted = predict_each([=](const card &card) {
                return 1e6 * (way == BY_KERNEL ? predict_kernel(card, p, format->bytes, rows)
                                               : predict_library(card, p, format, rows));
        });
        figure f = {};
        char what[100];

        snprintf(what, sizeof(what), "%s, %u x %u, %s, %u row%s, %s", p->name, p->n, p->k,
                 format->name, rows, rows > 1 ? "s" : "", ways[way]);
        if (b->device) {
                set_rows(b, o, rows);
                if (way == BY_LIBRARY && !library_serves(o)) {
                        fprintf(stderr, "bench-device: %s: cuBLASLt has no such product\n", what);
                        return;
                }
                check_first(b, o, way, what);
                f = figure_times(time_rows(b, o, way), 1e6);
        }
        figure_tell("products", what, "us", predicted, b->device ? &f : nullptr,
                    b->device ? bytes / b->bandwidth / (f.median * 1e-6) : 0);
}

static void tell_product(bench *b, const product *p, const named_format *format, blas *library)
{
        operands o;

        if (b->device) {
                operands_open(b, &o, p, format->format, library);
                set_rows(b, &o, 1);
                first_numbers(b, &o, BY_KERNEL, o.alone);
        }
        for (uint32_t rows : { 1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u }) {
                if (b->tiny && rows != 1 && rows != 8)
                        continue;
                tell_rows(b, p, format, &o, rows, BY_KERNEL);
                if (rows >= 8 && (library || !b->device))
                        tell_rows(b, p, format, &o, rows, BY_LIBRARY);
        }
        if (b->device)
                operands_close(b, &o);
}

static blas *open_library(bench *b)
{
        blas *library = nullptr;
        int r = blas_open(b->device, &library);

        if (r != -ENOENT) {
                bench_must(r, "cuBLASLt");
                return library;
        }
        fprintf(stderr, "bench-device: products of cuBLASLt are not measured: %s\n",
                blas_errtext());
        figure_tell("products", "cuBLASLt", "-", {}, nullptr, 0);
        return nullptr;
}

void bench_products(bench *b)
{
        blas *library = b->device ? open_library(b) : nullptr;

        b->samples = SAMPLES;
        for (const named_format &format : formats)
                for (const product &p : of_8b)
                        tell_product(b, &p, &format, library);
        for (unsigned i = 0; i < FORMATS_OF_1B; i++)
                for (const product &p : of_1b)
                        tell_product(b, &p, &formats[i], library);
        blas_close(library);
}
