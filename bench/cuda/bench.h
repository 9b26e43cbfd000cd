/*
 * Measures a GPU's kernels one by one: bandwidths, the cost of starting a kernel, products,
 * attention, picks, copies to and from the host.
 *
 *      bench-device [--tiny] [--predict] [--bandwidth GB/S] PART ...
 *
 * It is a program for a GPU (contrib/gpu/build).  With --tiny it also runs on the emulated
 * device, where times mean nothing and everything else is checked.  --predict needs no device and
 * prints only predictions.
 *
 * A figure is the median of some samples, with the lowest and the highest.  A sample is long
 * enough that the error of the host's clock is below a hundredth of it.  Results of computations
 * are checked.  bench_check() ends the program if a check fails.  bench_note() lets the program
 * continue, and its exit status is then 1.
 */
#ifndef BENCH_CUDA_BENCH_H
#define BENCH_CUDA_BENCH_H

#include <stdlib.h>
#include <vector>

#include "bench/cuda/figure.h"
#include "kernels/cuda/device.h"

struct bench {
        struct device *device; /* NULL: only predictions are printed */
        /* `wrong`: bench_note() noted a wrong result. */
        bool tiny, wrong;
        const struct card *card;
        /* Bandwidth of reading memory in bytes/s, as measured or as predicted. */
        double bandwidth;
        unsigned samples; /* samples of each figure; BENCH_SAMPLES at most */
        struct event *event;
};

void bench_memory(bench *b);    /* bench-memory.cc */
void bench_boundary(bench *b);  /* bench-boundary.cc */
void bench_products(bench *b);  /* bench-products.cc */
void bench_attention(bench *b); /* bench-attention.cc */
void bench_pick(bench *b);      /* bench-pick.cc */
void bench_host(bench *b);      /* bench-host.cc */

/* ---- the device ---- */

/* Ends the program on an error, and prints device_errtext(). */
void bench_must(int error, const char *what);
void bench_check(bool good, const char *what); /* checks a computed result */
void bench_note(bench *b, bool good, const char *what);
void *bench_new(bench *b, size_t bytes);
void bench_delete(bench *b, void *memory);
void bench_send(bench *b, void *to, const void *from, size_t bytes);
void bench_fetch(bench *b, void *to, const void *from, size_t bytes);
void bench_wait(bench *b); /* waits for STREAM_STEPS */

/*
 * Random numbers.  They are not zeros, because multiplying zeros needs less power and so is
 * quicker.
 */
enum fill { FILL_BITS, FILL_BFLOATS, FILL_HALVES, FILL_FLOATS, FILL_SCALES };
void bench_fill(bench *b, fill kind, void *to, size_t bytes); /* a multiple of 4 */

template <class T> T *bench_array(bench *b, fill kind, size_t count)
{
        size_t bytes = (count * sizeof(T) + 3) / 4 * 4;
        T *array = (T *)bench_new(b, bytes);

        bench_fill(b, kind, array, bytes);
        return array;
}

template <class T> T *bench_sent(bench *b, const std::vector<T> &from)
{
        T *array = (T *)bench_new(b, from.size() * sizeof(T));

        bench_send(b, array, from.data(), from.size() * sizeof(T));
        return array;
}

/* ---- predictions ---- */

/* Calls `predict()` for each card. */
template <class Predict> prediction predict_each(Predict predict)
{
        prediction prediction;

        for (size_t i = 0; i < CARDS; i++)
                prediction.on[i] = predict(cards[i]);
        return prediction;
}

/* ---- time ---- */

#define BENCH_SAMPLES 9u

/* The seconds that one `put()` takes; `put()` puts work on STREAM_STEPS. */
template <class Put> figure bench_time(bench *b, Put put)
{
        unsigned count = b->tiny ? 2 : b->samples, times = 1;
        double samples[BENCH_SAMPLES];
        auto sample = [&] {
                double began = figure_clock();

                for (unsigned i = 0; i < times; i++)
                        put();
                bench_wait(b);
                return (figure_clock() - began) / times;
        };

        put();
        bench_wait(b);
        while (!b->tiny && sample() * times < FIGURE_SAMPLE)
                times *= 2;
        for (unsigned i = 0; i < count; i++)
                samples[i] = sample();
        return figure_of(samples, count);
}

/*
 * Captures put(0) .. put(count - 1).  Each must have been put once before, unless it makes nothing
 * at its first call.
 */
template <class Put> graph *bench_record(bench *b, unsigned count, Put put)
{
        graph *graph;

        bench_must(device_capture_begin(b->device, STREAM_STEPS), "a graph capture");
        for (unsigned i = 0; i < count; i++)
                put(i);
        bench_must(device_capture_end(b->device, STREAM_STEPS, &graph), "a graph capture");
        return graph;
}

/* The seconds of one put in a graph of put(0) .. put(count - 1), as in a step. */
template <class Put> figure bench_time_recorded(bench *b, unsigned count, Put put)
{
        graph *graph = bench_record(b, count, put);
        figure all = bench_time(b, [&] {
                bench_must(device_graph_launch(b->device, STREAM_STEPS, graph), "a graph launch");
        });

        device_graph_delete(b->device, graph);
        return figure_times(all, 1.0 / count);
}

#endif
