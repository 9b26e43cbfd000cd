/*
 * Runs the real scheduler (daemon/core/sched.h) over a trace in simulated time.
 *
 * This plays the engine: requests arrive, each plan takes the time that the model of step costs
 * gives, and its results come back before the next plan (a depth of 1).  A request ends by an EOS
 * verdict when it has as many tokens as the trace says.  Prompts begin differently, so no request
 * finds blocks of another.  A preempted request finds what is left of its own.
 */
#ifndef BENCH_POOL_SCHED_H
#define BENCH_POOL_SCHED_H

#include "bench/pool-log.h"
#include "daemon/core/sched-conf.h"

struct pool_sched {
        /* blocks, slots and rows are those of the world; depth is 1, and one channel is enough */
        struct sched_conf conf;
        /* of each request, as its client asks: no less than its answer, and it must fit the pool */
        const uint32_t *max_tokens;
        uint32_t users; /* that the requests belong to in turns */
        uint64_t seed;  /* of the prompts */
};

/* Runs the whole trace; 0 or -ENOMEM.  The log must be new. */
int pool_sched_run(const struct pool_world *world, const struct pool_sched *setup,
                   struct pool_log *log);

#endif
