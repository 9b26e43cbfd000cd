/*
 * The flags of `samovar bench`, as given; plan.h has their meaning.
 *
 * samovar bench loads a server, and says how it answers: our daemon at its socket, or any server at
 * a URL that speaks the API of OpenAI.
 *
 *      options.h   the flags as given
 *      plan.c      checks them, and makes numbers of them
 *      draws.c     random numbers and lengths        arrivals.c  when requests are due
 *      workload.c  makes the prompts of requests     files.c, trace-file.c, prompt-file.c read them
 *      target.c    a server: target-socket.c; target-http.c, with http-facts.c and answer-reader.c
 *      load.c      sends the requests of one run in time, and takes samples (sample.h)
 *      numbers.c   percentiles                       figures.c   the figures of a run
 *      report.c    all runs, and what they ran on: table.c, export.c and picture.c write it
 *      host.c      names the machine
 *      bench.c     the runs of the command           exercises.c runs with private daemons
 */
#ifndef CLI_BENCH_OPTIONS_H
#define CLI_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum bench_api { BENCH_API_AUTO, BENCH_API_COMPLETIONS, BENCH_API_CHAT };
enum bench_prompts_as { BENCH_AS_AUTO, BENCH_AS_IDS, BENCH_AS_TEXT };
enum bench_arrivals { BENCH_POISSON, BENCH_FIXED, BENCH_GAMMA };
enum bench_unit { BENCH_UNIT_AUTO, BENCH_UNIT_S, BENCH_UNIT_MS };

struct bench_options {
        /* The servers. */
        const char *url, *key_file, *against;
        enum bench_api api;
        enum bench_prompts_as as;
        uint32_t rounds, connections;
        /* The workload. */
        const char *input, *output, *prefix, *prompts, *trace;
        float speed, divisor;
        uint32_t first, block_tokens;
        enum bench_unit unit;
        bool may_end;
        /* The load. */
        const char *concurrency, *rate;
        enum bench_arrivals arrivals;
        float burstiness, seconds;
        uint32_t requests, warm_up;
        /* Exercises. */
        uint32_t batch, window_ms;
        const char *loads;
        /* The output. */
        const char *slo, *csv, *svg, *raw;
};

#endif
