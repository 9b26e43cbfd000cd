/*
 * Figures of a set of values.  A percentile lies between the two values around its place, as
 * numpy.percentile() has it by default ("linear"), to the last bit.  Pure functions.
 */
#ifndef CLI_BENCH_NUMBERS_H
#define CLI_BENCH_NUMBERS_H

#include <stddef.h>

struct numbers {
        size_t count;           /* 0: there are no values, and all others are 0 */
        double mean, deviation; /* of the values themselves: the divisor is their count */
        double least, p50, p90, p95, p99, most;
};

/* Sorts the values. */
struct numbers numbers_of(double *values, size_t count);

/* 0 <= percent <= 100; the values are sorted, and there is one at least. */
double numbers_percentile(const double *sorted, size_t count, double percent);

/* The median; sorts the values.  0: there are none. */
double numbers_median(double *values, size_t count);

#endif
