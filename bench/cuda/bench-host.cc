/*
 * Between the host and the device: copies of pinned memory in both directions, and the cost of a
 * launch and a graph launch for the calling thread.
 */
#include <stdio.h>

#include "bench/cuda/bench.h"
#include "kernels/cuda/intrinsics.h"

#define BUS      52e9 /* bytes/s one way, predicted for PCIe 5 */
#define BUS_BOTH 85e9 /* bytes/s both ways at once, predicted for PCIe 5 */

struct nothing {
        uint32_t *never;
};

static KERNEL(128) do_nothing(nothing a)
{
        wait_for_predecessor();
        if (a.never)
                *a.never = 1;
}

static void put_nothing(bench *b)
{
        bench_must(device_launch(b->device, STREAM_STEPS, { 132, 1, 1, 128, 0, true }, do_nothing,
                                 nothing{ nullptr }),
                   "to launch");
}

/* ---- copies ---- */

enum direction { UP, DOWN, BOTH };

static const char *const directions[] = { "to the device", "from the device", "both ways at once" };

struct ends {
        void *pinned[2], *memory[2];
        event *loads;
        size_t bytes;
};

static void put_copy(bench *b, const ends *e, direction way)
{
        if (way != DOWN)
                bench_must(device_upload(b->device, STREAM_STEPS, e->memory[0], e->pinned[0],
                                         e->bytes),
                           "to upload");
        if (way == DOWN)
                bench_must(device_download(b->device, STREAM_STEPS, e->pinned[1], e->memory[1],
                                           e->bytes),
                           "to download");
        if (way != BOTH)
                return;
        bench_must(device_download(b->device, STREAM_LOADS, e->pinned[1], e->memory[1], e->bytes),
                   "to download");
        bench_must(device_event_record(b->device, STREAM_LOADS, e->loads), "an event");
        bench_must(device_stream_wait(b->device, STREAM_STEPS, e->loads), "to follow");
}

static void tell_copy(bench *b, ends *e, direction way)
{
        double much = (double)e->bytes * (way == BOTH ? 2 : 1),
               limit = way == BOTH ? BUS_BOTH : BUS;
        double predicted = much / (much / limit + 3e-6); /* 3 us to start the copy */
        figure f = {};
        char what[100];

        snprintf(what, sizeof(what), "copy, %zu KiB, %s", e->bytes >> 10, directions[way]);
        if (b->device) {
                f = figure_rate(bench_time(b, [&] { put_copy(b, e, way); }), much);
                f = figure_times(f, 1e-9);
        }
        figure_tell("host", what, "GB/s", prediction_of_all(predicted * 1e-9),
                    b->device ? &f : nullptr, f.median * 1e9 / limit);
}

static void tell_copies(bench *b, size_t bytes)
{
        ends e = {};

        e.bytes = bytes;
        for (unsigned i = 0; b->device && i < 2; i++) {
                bench_must(device_pinned_new(b->device, bytes, &e.pinned[i]), "pinned memory");
                for (size_t at = 0; at < bytes / 4; at++)
                        ((uint32_t *)e.pinned[i])[at] = (uint32_t)at * 2654435761u;
                e.memory[i] = bench_array<uint8_t>(b, FILL_BITS, bytes);
        }
        if (b->device)
                bench_must(device_event_new(b->device, &e.loads), "an event");
        for (direction way : { UP, DOWN, BOTH })
                tell_copy(b, &e, way);
        for (unsigned i = 0; b->device && i < 2; i++) {
                device_pinned_delete(b->device, e.pinned[i]);
                bench_delete(b, e.memory[i]);
        }
        if (b->device)
                device_event_delete(b->device, e.loads);
}

/* ---- the thread that launches ---- */

/* The time of the call alone, while the device is idle. */
template <class Call> static figure time_calls(bench *b, Call call)
{
        double samples[101];
        unsigned count = b->tiny ? 3 : 101;

        for (unsigned i = 0; i < count; i++) {
                double began = figure_clock();

                call();
                samples[i] = figure_clock() - began;
                bench_wait(b);
        }
        return figure_times(figure_of(samples, count), 1e6);
}

static void tell_replay(bench *b, unsigned nodes)
{
        graph *graph = nullptr;
        figure f = {};
        char what[100];

        snprintf(what, sizeof(what), "the host's time for a replay of %u kernel%s", nodes,
                 nodes > 1 ? "s" : "");
        if (b->device) {
                put_nothing(b);
                bench_wait(b);
                graph = bench_record(b, nodes, [&](unsigned) { put_nothing(b); });
                f = time_calls(b, [&] {
                        bench_must(device_graph_launch(b->device, STREAM_STEPS, graph),
                                   "a graph launch");
                });
                device_graph_delete(b->device, graph);
        }
        figure_tell("host", what, "us", prediction_of_all(3 + 0.01 * nodes),
                    b->device ? &f : nullptr, 0);
}

void bench_host(bench *b)
{
        figure f = {};

        for (size_t kib : { 4u, 64u, 512u, 2048u, 65536u })
                if (!b->tiny || kib <= 64)
                        tell_copies(b, kib << 10);
        if (b->device)
                f = time_calls(b, [&] { put_nothing(b); });
        figure_tell("host", "the host's time for one launch", "us", prediction_of_all(2.5),
                    b->device ? &f : nullptr, 0);
        for (unsigned nodes : { 1u, 82u, 162u, 322u })
                tell_replay(b, nodes);
}
