#include "cli/bench/arrivals.h"

#define WHICH UINT64_C(0xa221) /* of the seed's generators */

struct arrivals arrivals_begin(enum bench_arrivals process, double rate, double burstiness,
                               uint64_t seed)
{
        return (struct arrivals){ .process = process,
                                  .rate = rate,
                                  .burstiness = burstiness,
                                  .draws = draws_begin(seed, WHICH) };
}

/* In units of the mean gap. */
static double gap(struct arrivals *arrivals)
{
        switch (arrivals->process) {
        case BENCH_FIXED:
                return 1;
        case BENCH_GAMMA:
                return draws_gamma(&arrivals->draws, arrivals->burstiness) / arrivals->burstiness;
        default:
                return draws_exponential(&arrivals->draws);
        }
}

double arrivals_next(struct arrivals *arrivals)
{
        /* A sum of equal gaps would drift. */
        if (arrivals->process == BENCH_FIXED)
                arrivals->at = arrivals->count / arrivals->rate;
        else if (arrivals->count)
                arrivals->at += gap(arrivals) / arrivals->rate;
        arrivals->count++;
        return arrivals->at;
}
