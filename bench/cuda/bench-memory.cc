/*
 * How fast memory is copied, and how fast it is read; reading determines the cost of a token.
 * Reading is measured with more and more loads in progress on each multiprocessor, until the
 * bandwidth no longer grows; and also out of the L2 cache.
 */
#include <stdio.h>

#include "bench/cuda/bench.h"
#include "kernels/cuda/intrinsics.h"

#define READERS 512u /* threads of a block */

struct read_args {
        const uint8_t *from;
        /* Vectors of 16 bytes; a multiple of the number that the grid reads at once. */
        size_t vectors;
        unsigned passes;
        uint32_t *sum; /* of all words */
};

template <unsigned DEPTH> static KERNEL(READERS) read_all(read_args a)
{
        size_t step = (size_t)gridDim.x * READERS;
        uint32_t sum = 0;

        wait_for_predecessor();
        for (unsigned pass = 0; pass < a.passes; pass++)
                for (size_t i = (size_t)blockIdx.x * READERS + threadIdx.x; i < a.vectors;
                     i += step * DEPTH) {
                        uint4 v[DEPTH];

                        UNROLL
                        for (unsigned d = 0; d < DEPTH; d++)
                                v[d] = load_once(a.from + (i + d * step) * 16);
                        UNROLL
                        for (unsigned d = 0; d < DEPTH; d++)
                                sum += v[d].x + v[d].y + v[d].z + v[d].w;
                }
        sum = warp_sum(sum);
        if (!lane_number())
                atomic_add(a.sum, sum);
}

struct reading {
        /* `blocks` of each multiprocessor; `depth`: loads of a thread in progress. */
        unsigned blocks, depth;
        void (*kernel)(read_args);
};

static const reading readings[] = {
        { 1, 2, read_all<2> }, { 1, 4, read_all<4> }, { 1, 8, read_all<8> },
        { 2, 4, read_all<4> }, { 2, 8, read_all<8> }, { 4, 4, read_all<4> },
};

/* Measures one way of reading.  Its sum is checked once against that of the first way. */
static figure read_through(bench *b, const reading *r, const uint8_t *from, size_t vectors,
                           unsigned passes)
{
        const launch launch = { device_processors(b->device) * r->blocks, 1, 1, READERS, 0, false };
        uint32_t *sum = (uint32_t *)bench_new(b, sizeof(*sum)), once;
        const read_args args = { from, vectors, passes, sum };
        static const uint8_t *summed;
        static uint32_t expected;
        auto put = [&] {
                bench_must(device_launch(b->device, STREAM_STEPS, launch, r->kernel, args),
                           "to read");
        };
        figure seconds;

        bench_must(device_clear(b->device, STREAM_STEPS, sum, sizeof(*sum)), "to clear");
        put();
        bench_fetch(b, &once, sum, sizeof(once));
        if (summed != from) {
                summed = from;
                expected = once;
        }
        bench_check(passes > 1 || once == expected, "two readings of the same memory");
        seconds = bench_time(b, put);
        bench_delete(b, sum);
        return seconds;
}

static void tell_read(bench *b, const reading *r, const uint8_t *from, size_t bytes, double *best)
{
        figure f;
        char what[80];

        snprintf(what, sizeof(what), "read, %u KiB under way on each multiprocessor, %u block%s",
                 r->blocks * r->depth * READERS * 16 >> 10, r->blocks, r->blocks > 1 ? "s" : "");
        if (!b->device) {
                figure_tell("memory", what, "GB/s", {}, nullptr, 0);
                return;
        }
        f = figure_rate(read_through(b, r, from, bytes / 16, 1), (double)bytes);
        *best = f.median > *best ? f.median : *best;
        f = figure_times(f, 1e-9);
        figure_tell("memory", what, "GB/s", {}, &f, f.median * 1e9 / b->card->memory);
}

static prediction predict_memory(void)
{
        return predict_each([](const card &card) { return card.memory * 1e-9; });
}

static void tell_copy(bench *b, uint8_t *to, const uint8_t *from, size_t bytes)
{
        figure f = {};

        if (b->device) {
                f = bench_time(b, [&] {
                        bench_must(device_copy(b->device, STREAM_STEPS, to, from, bytes), "a copy");
                });
                f = figure_times(figure_rate(f, 2.0 * (double)bytes), 1e-9);
        }
        figure_tell("memory", "copy, both ways counted", "GB/s", predict_memory(),
                    b->device ? &f : nullptr, f.median * 1e9 / b->card->memory);
}

static void tell_cached(bench *b, const uint8_t *from, size_t bytes)
{
        const prediction predicted = predict_each([](const card &card) { return card.l2 * 1e-9; });
        const reading r = { 4, 4, read_all<4> };
        const unsigned passes = b->tiny ? 2 : 64;
        figure f = {};

        if (b->device) {
                f = figure_rate(read_through(b, &r, from, bytes / 16, passes),
                                (double)bytes * passes);
                f = figure_times(f, 1e-9);
        }
        figure_tell("memory", "read out of the L2 cache", "GB/s", predicted,
                    b->device ? &f : nullptr, f.median * 1e9 / b->card->l2);
}

void bench_memory(bench *b)
{
        /* the bytes that the widest grid reads at once; `bytes` is a multiple of them */
        size_t once = b->device ? (size_t)device_processors(b->device) * 4 * 8 * READERS * 16 : 0;
        size_t bytes = b->tiny ? once : once * (((size_t)2 << 30) / (once ? once : 1));
        uint8_t *from = nullptr, *to = nullptr;
        double best = 0;
        figure f;

        if (b->device) {
                from = bench_array<uint8_t>(b, FILL_BITS, bytes);
                to = (uint8_t *)bench_new(b, bytes);
        }
        tell_copy(b, to, from, bytes);
        for (const reading &r : readings)
                tell_read(b, &r, from, bytes, &best);
        f = { best * 1e-9, best * 1e-9, best * 1e-9 };
        figure_tell("memory", "read, best", "GB/s", predict_memory(), b->device ? &f : nullptr,
                    best / b->card->memory);
        tell_cached(b, from, once / 2);
        if (b->device) {
                bench_delete(b, from);
                bench_delete(b, to);
        }
}
