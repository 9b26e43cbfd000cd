/*
 * The cost of the boundary between two kernels, beyond the bytes that each has to read.  A chain of
 * kernels is launched one by one or as a graph, with and without early begin.  Each kernel has a
 * slice of weights of its own, and reads the sums of its predecessor.
 */
#include <stdio.h>
#include <vector>

#include "bench/cuda/bench.h"
#include "kernels/cuda/intrinsics.h"

#define THREADS 512u
#define WARPS   (THREADS / LANES)
#define RING    8u /* loads of a thread in progress, 64 KiB for a block */

struct link_args {
        const uint8_t *weights;
        uint32_t loads;     /* of each thread; a multiple of RING, or 0 */
        const uint32_t *in; /* (blocks, WARPS) */
        uint32_t *out;
};

DEVICE uint32_t add_up(const uint4 &v)
{
        return v.x + v.y * 3 + v.z * 5 + v.w * 7;
}

/* EAGER: the kernel requests its first weights before it waits for its predecessor. */
template <bool EAGER> static KERNEL(THREADS) chain_link(link_args a)
{
        const size_t step = (size_t)gridDim.x * THREADS * 16;
        const uint8_t *from = a.weights + ((size_t)blockIdx.x * THREADS + threadIdx.x) * 16;
        unsigned warp = threadIdx.x / LANES;
        uint4 ring[RING] = {};
        uint32_t sum = 0, before;

        if (!EAGER)
                wait_for_predecessor();
        if (a.loads) {
                UNROLL
                for (unsigned i = 0; i < RING; i++)
                        ring[i] = load_once(from + i * step);
        }
        if (EAGER)
                wait_for_predecessor();
        before = a.in[(blockIdx.x + 1) % gridDim.x * WARPS + warp];
        for (uint32_t at = RING; at < a.loads; at += RING) {
                UNROLL
                for (unsigned i = 0; i < RING; i++) {
                        sum += add_up(ring[i]);
                        ring[i] = load_once(from + (at + i) * step);
                }
        }
        UNROLL
        for (unsigned i = 0; i < RING; i++)
                sum += add_up(ring[i]);
        sum = warp_sum(sum);
        if (!lane_number())
                a.out[blockIdx.x * WARPS + warp] = sum * 7 + before;
}

struct chain {
        bench *b;
        unsigned links, blocks, slices;
        uint32_t loads;
        size_t slice_bytes, sums;
        uint8_t *weights;
        uint32_t *row; /* (links + 1, sums) */
};

static size_t slice_of(unsigned blocks, uint32_t loads)
{
        return (size_t)blocks * THREADS * 16 * loads;
}

static chain chain_new(bench *b, unsigned megabytes)
{
        chain c = {};

        c.b = b;
        c.links = b->tiny ? 5 : 200;
        c.blocks = b->device ? device_processors(b->device) : 132;
        c.sums = (size_t)c.blocks * WARPS;
        while (slice_of(c.blocks, c.loads) < (size_t)megabytes << 20)
                c.loads += RING;
        if (b->tiny && c.loads)
                c.loads = 2 * RING;
        c.slice_bytes = slice_of(c.blocks, c.loads);
        if (!b->device)
                return c;
        /*
         * A slice is read again only after five times the size of the cache was read in between.
         */
        c.slices = c.loads ? (unsigned)(((size_t)300 << 20) / c.slice_bytes) + 1 : 1;
        c.slices = c.slices < c.links ? c.slices : c.links;
        c.weights = bench_array<uint8_t>(b, FILL_BITS, c.loads ? c.slices * c.slice_bytes : 4);
        c.row = bench_array<uint32_t>(b, FILL_BITS, (c.links + 1) * c.sums);
        return c;
}

static void chain_free(chain *c)
{
        if (!c->b->device)
                return;
        bench_delete(c->b, c->weights);
        bench_delete(c->b, c->row);
}

struct way {
        const char *name;
        bool recorded, early, eager;
        double predicted; /* seconds beyond the bytes */
};

static const way ways[] = {
        { "one by one", false, false, false, 3.5e-6 },
        { "one by one, early", false, true, true, 2.5e-6 },
        { "recorded", true, false, false, 2.2e-6 },
        { "recorded, early, weights after the wait", true, true, false, 1.3e-6 },
        { "recorded, early, weights before the wait", true, true, true, PREDICTED_GAP },
};

static void put_link(const chain *c, const way *w, unsigned i)
{
        const link_args args = { c->weights + i % c->slices * c->slice_bytes, c->loads,
                                 c->row + i * c->sums, c->row + (i + 1) * c->sums };

        bench_must(device_launch(c->b->device, STREAM_STEPS,
                                 { c->blocks, 1, 1, THREADS, 0, w->early },
                                 w->eager ? chain_link<true> : chain_link<false>, args),
                   "a link");
}

/* Checks the result at the end, which must be the same for all ways. */
static void check_way(const chain *c, std::vector<uint32_t> *first)
{
        std::vector<uint32_t> last(c->sums);

        bench_fetch(c->b, last.data(), c->row + c->links * c->sums, c->sums * sizeof(uint32_t));
        if (first->empty())
                *first = last;
        bench_check(last == *first, "the sums at the end of a chain");
        bench_must(device_clear(c->b->device, STREAM_STEPS, c->row + c->sums,
                                c->links * c->sums * sizeof(uint32_t)),
                   "to clear");
}

static void tell_way(const chain *c, const way *w, unsigned megabytes, std::vector<uint32_t> *first)
{
        bench *b = c->b;
        double bytes_take = (double)c->slice_bytes / b->bandwidth;
        figure f = {};
        char what[100];

        snprintf(what, sizeof(what), "%u MB each, %s", megabytes, w->name);
        if (b->device) {
                auto put = [&](unsigned i) { put_link(c, w, i); };

                if (w->recorded)
                        f = bench_time_recorded(b, c->links, put);
                else
                        f = figure_times(bench_time(b,
                                                    [&] {
                                                            for (unsigned i = 0; i < c->links; i++)
                                                                    put(i);
                                                    }),
                                         1.0 / c->links);
                check_way(c, first);
                f = { f.median - bytes_take, f.lowest - bytes_take, f.highest - bytes_take };
                f = figure_times(f, 1e6);
        }
        figure_tell("boundary", what, "us", prediction_of_all(w->predicted * 1e6),
                    b->device ? &f : nullptr, 0);
}

void bench_boundary(bench *b)
{
        for (unsigned megabytes : { 0u, 2u, 8u, 32u }) {
                chain c = chain_new(b, megabytes);
                std::vector<uint32_t> first;

                for (const way &w : ways)
                        tell_way(&c, &w, megabytes, &first);
                chain_free(&c);
        }
}
