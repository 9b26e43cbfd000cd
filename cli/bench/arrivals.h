/* When requests are due, at a rate.  Pure functions. */
#ifndef CLI_BENCH_ARRIVALS_H
#define CLI_BENCH_ARRIVALS_H

#include <stdint.h>

#include "cli/bench/draws.h"
#include "cli/bench/options.h"

struct arrivals {
        enum bench_arrivals process;
        double rate;       /* requests a second, on average */
        double burstiness; /* GAMMA: the shape; 1: as POISSON; below 1: bursts; above 1: even */
        struct draws draws;
        double at;
        uint32_t count; /* so far */
};

struct arrivals arrivals_begin(enum bench_arrivals process, double rate, double burstiness,
                               uint64_t seed);
/* Seconds after the run began; never less than the one before.  The first is due at 0. */
double arrivals_next(struct arrivals *arrivals);

#endif
