/*
 * Random numbers for workloads.  They depend on their seed only, so that the same command makes the
 * same requests on every machine.  Pure functions.
 */
#ifndef CLI_BENCH_DRAWS_H
#define CLI_BENCH_DRAWS_H

#include <stddef.h>
#include <stdint.h>

struct draws {
        uint64_t state;
};

/* A generator for one thing (`which`) of one seed: others of the same seed are independent. */
struct draws draws_begin(uint64_t seed, uint64_t which);

uint64_t draws_bits(struct draws *draws);
double draws_uniform(struct draws *draws); /* above 0, below 1 */
/* 0 to n - 1; n is at least 1. */
uint32_t draws_below(struct draws *draws, uint32_t n);
double draws_normal(struct draws *draws);              /* mean 0, deviation 1 */
double draws_exponential(struct draws *draws);         /* mean 1 */
double draws_gamma(struct draws *draws, double shape); /* mean `shape`; shape above 0 */

/* How lengths are distributed; in tokens. */
enum lengths_kind {
        LENGTHS_FIXED,
        LENGTHS_UNIFORM,   /* low to high, both included */
        LENGTHS_NORMAL,    /* with this mean and deviation; below 1: 1 */
        LENGTHS_LOGNORMAL, /* the lengths, not their logarithms, have this mean and deviation */
        LENGTHS_EXPONENTIAL,
};

#define LENGTH_MAX 10000000u

struct lengths {
        enum lengths_kind kind;
        uint32_t low, high;     /* FIXED: low */
        double mean, deviation; /* of the others */
};

/*
 * Reads "256", "64-512", "normal:256:64", "lognormal:256:200" or "exp:256".  0, or -EINVAL.
 */
int lengths_read(const char *text, struct lengths *ret_lengths);
#define LENGTHS_FORMS "N, LOW-HIGH, normal:MEAN:DEVIATION, lognormal:MEAN:DEVIATION or exp:MEAN"

/* 1 to LENGTH_MAX. */
uint32_t lengths_draw(const struct lengths *lengths, struct draws *draws);

#endif
