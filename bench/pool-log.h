/*
 * The log of one simulated run of a trace: its steps, and when each request had its first token
 * and its end.  bench-pool.c runs several policies of admission over the same world, and compares
 * the figures of their logs.
 */
#ifndef BENCH_POOL_LOG_H
#define BENCH_POOL_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "bench/step-cost.h"
#include "bench/trace.h"

/* What all policies have in common. */
struct pool_world {
        const struct trace *trace; /* each request has a token of prompt and of answer, at least */
        struct step_cost cost;
        uint32_t blocks; /* of the pool; each request alone fits it */
        uint32_t slots;  /* sequences that run at once */
        uint32_t rows;   /* the token budget of a step; at least `slots` */
};

struct pool_step {
        uint64_t begin_ns, ns;
        uint32_t running; /* sequences that have been admitted and have not ended */
        uint32_t blocks;  /* blocks that they use; those only reserved do not count */
};

struct pool_log {
        struct pool_step *steps;
        size_t step_count, step_max;
        uint64_t *first_ns, *end_ns; /* of each request of the trace */
        uint64_t preemptions;
        uint64_t recomputed; /* rows at a position that the same request had computed before */
};

struct pool_figures {
        double seconds; /* from the first arrival until the last end */
        double requests_s, tokens_s;
        double running_mean, running_p95; /* by time; sequences */
        double preemptions_100;           /* per 100 requests */
        uint64_t recomputed;
        double ttft_mean, ttft_p50, ttft_p95; /* seconds from arrival to the first token */
        double blocks_mean;                   /* in use, by time */
};

int pool_log_init(struct pool_log *log, uint32_t requests); /* 0 or -ENOMEM */
void pool_log_deinit(struct pool_log *log);

int pool_log_add(struct pool_log *log, const struct pool_step *step); /* 0 or -ENOMEM */

/* 0 or -ENOMEM.  Every request of the trace must have ended. */
int pool_log_figures(const struct pool_log *log, const struct pool_world *world,
                     struct pool_figures *ret_figures);

/* The time of arrival of a request. */
static inline uint64_t pool_arrival_ns(const struct pool_world *world, uint32_t request)
{
        return (uint64_t)(world->trace->requests[request].at * 1e9 + 0.5);
}

#endif
