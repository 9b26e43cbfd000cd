/*
 * Smoke tests that need no model: the device (device.h), the instructions (intrinsics.h), one
 * product (linear.h).  Numbers are small integers, so that every result is exact.
 */
#include "tests/cuda/smoke.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <vector>

#include "kernels/convert.h"
#include "kernels/cuda/blas.h"
#include "kernels/cuda/intrinsics.h"
#include "kernels/cuda/linear.h"

#define NUMBERS 4096u
#define THREADS 256u
#define LARGE_SHARED                                                                               \
        (96u << 10) /* more than a kernel has unasked, and as much as any GPU that serves */
#define CHAIN 64u

struct fixture {
        struct device *device;
        struct event *event;
        uint32_t *a, *b, *pinned; /* NUMBERS each: on the device, and pinned */
};

static void must(int error, const char *what)
{
        if (error)
                smoke_fail("%s: %s (%d)", what, device_errtext(), error);
}

static fixture open_world(void)
{
        fixture w = {};

        must(device_open(0, &w.device), "to open the GPU");
        must(device_event_new(w.device, &w.event), "to create an event");
        must(device_new(w.device, NUMBERS * 4, (void **)&w.a), "memory");
        must(device_new(w.device, NUMBERS * 4, (void **)&w.b), "memory");
        must(device_pinned_new(w.device, NUMBERS * 4, (void **)&w.pinned), "pinned memory");
        return w;
}

static void close_world(fixture *w)
{
        device_delete(w->device, w->a);
        device_delete(w->device, w->b);
        device_pinned_delete(w->device, w->pinned);
        device_event_delete(w->device, w->event);
        device_close(w->device);
}

static void wait(const fixture *w)
{
        must(device_event_record(w->device, STREAM_STEPS, w->event), "to record an event");
        must(device_event_wait(w->device, w->event), "to wait for the GPU");
}

/* The numbers i * times + plus. */
static void send(fixture *w, uint32_t *to, uint32_t times, uint32_t plus)
{
        for (uint32_t i = 0; i < NUMBERS; i++)
                w->pinned[i] = i * times + plus;
        must(device_upload(w->device, STREAM_STEPS, to, w->pinned, NUMBERS * 4), "to upload");
        wait(w);
}

static void expect(fixture *w, const uint32_t *from, uint32_t times, uint32_t plus,
                   const char *what)
{
        must(device_download(w->device, STREAM_STEPS, w->pinned, from, NUMBERS * 4), "to download");
        wait(w);
        for (uint32_t i = 0; i < NUMBERS; i++)
                if (w->pinned[i] != i * times + plus)
                        smoke_fail("%s: number %u is %u instead of %u", what, i, w->pinned[i],
                                   i * times + plus);
}

/* ---- the device ---- */

static void smoke_driver(const char *)
{
        fixture w = open_world();

        printf("%s, %u multiprocessors, %zu MiB of memory free\n", device_name(w.device),
               device_processors(w.device), device_memory_left(w.device) >> 20);
        close_world(&w);
}

static void smoke_library(const char *)
{
        fixture w = open_world();
        blas *blas;
        int r = blas_open(w.device, &blas);

        if (r == -ENOENT)
                smoke_fail("%s", blas_errtext());
        must(r, "to open cuBLASLt");
        puts(blas_about(blas));
        blas_close(blas);
        close_world(&w);
}

static void smoke_copy(const char *)
{
        fixture w = open_world();

        send(&w, w.a, 3, 1);
        must(device_event_record(w.device, STREAM_STEPS, w.event), "to record an event");
        must(device_stream_wait(w.device, STREAM_LOADS, w.event),
             "to make a stream wait for an event");
        must(device_copy(w.device, STREAM_LOADS, w.b, w.a, NUMBERS * 4), "to copy");
        must(device_event_record(w.device, STREAM_LOADS, w.event), "to record an event");
        must(device_stream_wait(w.device, STREAM_STEPS, w.event),
             "to make a stream wait for an event");
        must(device_clear(w.device, STREAM_STEPS, w.a, NUMBERS * 4), "to clear");
        expect(&w, w.a, 0, 0, "memory that was cleared");
        expect(&w, w.b, 3, 1, "memory that was copied on another stream");
        puts("up, across two streams, down");
        close_world(&w);
}

/* ---- launches ---- */

struct add_args {
        const uint32_t *in;
        uint32_t *out;
        uint32_t plus;
};

/*
 * Each block passes its numbers through shared memory: add through its beginning, add_far
 * through the end of a large one.
 */
static KERNEL(THREADS) add(add_args a)
{
        uint32_t i = blockIdx.x * THREADS + threadIdx.x;
        uint32_t *board = (uint32_t *)shared();

        wait_for_predecessor();
        board[threadIdx.x ^ 1] = a.in[i ^ 1];
        block_sync();
        a.out[i] = board[threadIdx.x] + a.plus;
}

static KERNEL(THREADS) add_far(add_args a)
{
        uint32_t i = blockIdx.x * THREADS + threadIdx.x;
        uint32_t *board = (uint32_t *)(shared() + LARGE_SHARED) - THREADS;

        wait_for_predecessor();
        board[threadIdx.x ^ 1] = a.in[i ^ 1];
        block_sync();
        a.out[i] = board[threadIdx.x] + a.plus;
}

static void put_add(fixture *w, uint32_t *out, const uint32_t *in, bool early)
{
        const launch launch = { NUMBERS / THREADS, 1, 1, THREADS, THREADS * 4, early };

        must(device_launch(w->device, STREAM_STEPS, launch, add, add_args{ in, out, 5 }),
             "to launch a kernel");
}

static void smoke_launch(const char *)
{
        fixture w = open_world();

        send(&w, w.a, 7, 2);
        put_add(&w, w.b, w.a, false);
        expect(&w, w.b, 7, 7, "a kernel");
        puts("16 blocks of 256 threads, shared memory, a barrier");
        close_world(&w);
}

static void smoke_shared(const char *)
{
        fixture w = open_world();
        const launch launch = { NUMBERS / THREADS, 1, 1, THREADS, LARGE_SHARED, false };

        send(&w, w.a, 7, 2);
        must(device_launch(w.device, STREAM_STEPS, launch, add_far, add_args{ w.a, w.b, 5 }),
             "to launch a kernel with 96 KiB of shared memory");
        expect(&w, w.b, 7, 7, "a kernel with 96 KiB of shared memory");
        puts("96 KiB of shared memory for a block");
        close_world(&w);
}

/* a to b and back, again and again: each kernel reads the results of the one before. */
static void put_chain(fixture *w, bool early)
{
        for (uint32_t i = 0; i < CHAIN; i++)
                put_add(w, i % 2 ? w->a : w->b, i % 2 ? w->b : w->a, early);
}

static void replay_chain(fixture *w, bool early)
{
        graph *graph;

        must(device_capture_begin(w->device, STREAM_STEPS), "to begin a capture");
        put_chain(w, early);
        must(device_capture_end(w->device, STREAM_STEPS, &graph), "to end a capture");
        send(w, w->a, 7, 2);
        for (unsigned i = 0; i < 3; i++)
                must(device_graph_launch(w->device, STREAM_STEPS, graph), "to launch a graph");
        expect(w, w->a, 7, 2 + 3 * 5 * CHAIN, "a graph that is launched three times");
        device_graph_delete(w->device, graph);
}

static void smoke_graph(const char *)
{
        fixture w = open_world();

        put_chain(&w, false); /* allocations for a kernel's first launch are made before */
        replay_chain(&w, false);
        printf("a graph of %u kernels, launched three times\n", CHAIN);
        close_world(&w);
}

static void smoke_early(const char *)
{
        fixture w = open_world();

        send(&w, w.a, 7, 2);
        put_chain(&w, true);
        expect(&w, w.a, 7, 2 + 5 * CHAIN, "a chain of early kernels");
        replay_chain(&w, true);
        printf("a chain of %u early kernels, launched one by one and as a graph\n", CHAIN);
        close_world(&w);
}

/* ---- instructions ---- */

struct tile_args {
        const uint16_t *a, *b; /* (16, 16) and (8, 16): of b the columns lie one after the other */
        float *halves, *bfloats; /* (16, 8) */
};

/* A 16 x 8 x 16 product by way of cp.async, ldmatrix and mma: once as halves, once as bfloats. */
static KERNEL(LANES) multiply_tile(tile_args args)
{
        uint16_t *a = (uint16_t *)shared(), *b = a + 256;
        unsigned lane = lane_number(), g = lane / 4, t = lane % 4;
        uint32_t of_a[4], of_b[4];
        float sums[4] = {}, others[4] = {};

        wait_for_predecessor();
        async_copy(a + lane * 8, args.a + lane * 8, true);
        async_copy(b + lane * 8, args.b + (lane < 16 ? lane * 8 : 0), lane < 16);
        async_copy_commit();
        async_copy_wait<0>();
        block_sync();
        load_matrices<false>(of_a, a + lane % 16 * 16 + lane / 16 * 8);
        load_matrices<false>(of_b, b + lane % 8 * 16 + lane / 8 % 2 * 8);
        multiply_halves(sums, of_a, of_b);
        multiply_bfloats(others, of_a, of_b);
        for (unsigned i = 0; i < 4; i++) {
                unsigned at = (g + i / 2 * 8) * 8 + 2 * t + i % 2;

                args.halves[at] = sums[i];
                args.bfloats[at] = others[i];
        }
}

/* Bits that are 0, 1 or 2 as halves, and other exact numbers as bfloats. */
static uint16_t tile_number(unsigned i)
{
        static const uint16_t bits[] = { 0x0000, 0x3c00, 0x4000 };

        return bits[i * 7 % 11 % 3];
}

static void smoke_multiply(const char *)
{
        fixture w = open_world();
        uint16_t *numbers = (uint16_t *)w.pinned;
        const tile_args args = { (uint16_t *)w.a, (uint16_t *)w.a + 256, (float *)w.b,
                                 (float *)w.b + 128 };
        float sums[256];

        for (unsigned i = 0; i < 384; i++)
                numbers[i] = tile_number(i);
        must(device_upload(w.device, STREAM_STEPS, w.a, w.pinned, 384 * 2), "to upload");
        must(device_launch(w.device, STREAM_STEPS, { 1, 1, 1, LANES, 1024, false }, multiply_tile,
                           args),
             "to launch a product");
        wait(&w);
        must(device_download(w.device, STREAM_STEPS, w.pinned, w.b, sizeof(sums)), "to download");
        wait(&w);
        memcpy(sums, w.pinned, sizeof(sums));
        for (unsigned i = 0; i < 256; i++) {
                unsigned row = i % 128 / 8, column = i % 8;
                float sum = 0;

                for (unsigned k = 0; k < 16; k++) {
                        uint16_t x = tile_number(row * 16 + k);
                        uint16_t y = tile_number(256 + column * 16 + k);

                        sum += i < 128 ? half_to_float(x) * half_to_float(y)
                                       : bfloat_to_float(x) * bfloat_to_float(y);
                }
                if (sums[i] != sum)
                        smoke_fail("a product of %s: row %u, column %u is %g instead of %g",
                                   i < 128 ? "halves" : "bfloats", row, column, (double)sums[i],
                                   (double)sum);
        }
        puts("cp.async, ldmatrix, mma of halves and of bfloats");
        close_world(&w);
}

/* ---- a product with weights ---- */

#define ROWS    3u
#define N       32u
#define COLUMNS 128u

static float weight(unsigned n, unsigned k)
{
        return (float)((int)((n * 5 + k * 3) % 7) - 3);
}

static float of_x(unsigned row, unsigned k)
{
        return (float)((int)((row * 11 + k * 13) % 9) - 4);
}

/* Blocks of 32 numbers as Q8_0 has them, each with a scale of 2. */
static void write_q8_0(uint8_t *row, unsigned n)
{
        const uint16_t two = 0x4000;

        for (unsigned k = 0; k < COLUMNS; k++) {
                uint8_t *block = row + k / 32 * 34;

                memcpy(block, &two, 2);
                block[2 + k % 32] = (uint8_t)(int8_t)weight(n, k);
        }
}

static void *sent(fixture *w, const void *from, size_t bytes)
{
        void *to;

        must(device_new(w->device, bytes, &to), "memory");
        memcpy(w->pinned, from, bytes);
        must(device_upload(w->device, STREAM_STEPS, to, w->pinned, bytes), "to upload");
        wait(w);
        return to;
}

static void *cleared(fixture *w, size_t bytes)
{
        void *memory;

        must(device_new(w->device, bytes, &memory), "memory");
        must(device_clear(w->device, STREAM_STEPS, memory, bytes), "to clear");
        return memory;
}

static void check_product(const float *y, linear_format format)
{
        float scale = format == LINEAR_INT8 ? 2 : 1;

        for (unsigned row = 0; row < ROWS; row++)
                for (unsigned n = 0; n < N; n++) {
                        float sum = 0;

                        for (unsigned k = 0; k < COLUMNS; k++)
                                sum += of_x(row, k) * weight(n, k) * scale;
                        if (y[row * N + n] != sum)
                                smoke_fail("a product with %s: row %u, column %u is %g instead of "
                                           "%g",
                                           format == LINEAR_INT8 ? "Q8_0" : "bf16", row, n,
                                           (double)y[row * N + n], (double)sum);
                }
}

static void multiply(fixture *w, linear_format format)
{
        const row_type type = format == LINEAR_INT8 ? ROW_Q8_0 : ROW_BF16;
        size_t bytes = linear_row_bytes(format, COLUMNS),
               scales = linear_row_scales(format, COLUMNS);
        std::vector<uint8_t> file(COLUMNS * 2), weights(N * bytes);
        std::vector<uint16_t> packed_scales(N * scales), x(8 * COLUMNS);
        const uint32_t rows = ROWS;
        size_t sums, arrived;
        linear_args a = {};
        std::vector<void *> sent_to;
        auto keep = [&](void *memory) {
                sent_to.push_back(memory);
                return memory;
        };

        for (unsigned n = 0; n < N; n++) {
                for (unsigned k = 0; k < COLUMNS && type == ROW_BF16; k++) {
                        uint16_t bits = float_to_bfloat(weight(n, k));

                        memcpy(&file[k * 2], &bits, 2);
                }
                if (type == ROW_Q8_0)
                        write_q8_0(file.data(), n);
                linear_pack_row(format, type, file.data(), COLUMNS, &weights[n * bytes],
                                packed_scales.data() + n * scales);
        }
        for (unsigned i = 0; i < ROWS * COLUMNS; i++)
                x[i] = float_to_bfloat(of_x(i / COLUMNS, i % COLUMNS));
        a.w = { format, N, COLUMNS, keep(sent(w, weights.data(), weights.size())), nullptr };
        if (scales)
                a.w.scales = (uint16_t *)keep(sent(w, packed_scales.data(), N * scales * 2));
        a.x = (uint16_t *)keep(sent(w, x.data(), x.size() * 2));
        a.x_columns = COLUMNS;
        a.rows_max = 8;
        a.count = (uint32_t *)keep(sent(w, &rows, 4));
        a.epilogue = LINEAR_STORE;
        a.n = a.y_columns = N;
        a.y = (float *)w->a;
        linear_scratch_size(w->device, &a.w, a.rows_max, &sums, &arrived);
        a.sums = (float *)keep(cleared(w, (sums + 1) * sizeof(float)));
        a.arrived = (unsigned *)keep(cleared(w, (arrived + 1) * sizeof(unsigned)));
        must(linear(w->device, &a), "to launch a product");
        wait(w);
        must(device_download(w->device, STREAM_STEPS, w->pinned, w->a, ROWS * N * 4),
             "to download");
        wait(w);
        check_product((const float *)w->pinned, format);
        for (void *memory : sent_to)
                device_delete(w->device, memory);
}

static void smoke_linear(const char *)
{
        fixture w = open_world();

        multiply(&w, LINEAR_BFLOAT);
        multiply(&w, LINEAR_INT8);
        puts("3 rows times 32 x 128 weights, bf16 and Q8_0");
        close_world(&w);
}

const smoke_test smoke_device_tests[] = {
        { "driver", smoke_driver }, { "cublaslt", smoke_library },  { "copy", smoke_copy },
        { "launch", smoke_launch }, { "shared", smoke_shared },     { "graph", smoke_graph },
        { "early", smoke_early },   { "multiply", smoke_multiply }, { "linear", smoke_linear },
};
const size_t smoke_device_test_count = sizeof(smoke_device_tests) / sizeof(*smoke_device_tests);
