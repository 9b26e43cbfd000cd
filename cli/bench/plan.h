/* What `samovar bench` is asked to do, checked and in numbers. */
#ifndef CLI_BENCH_PLAN_H
#define CLI_BENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/bench/figures.h"
#include "cli/bench/load.h"
#include "cli/bench/workload.h"
#include "cli/cli.h"

#define PLAN_LEVELS_MAX 32u
#define PLAN_ROUNDS_MAX 64u

enum exercise {
        EXERCISE_NONE,
        EXERCISE_BATCH_SIZES = 1, /* private daemons with 1 to 32 slots */
        EXERCISE_BATCHING = 2,    /* static, dynamic and continuous batching */
        EXERCISE_ALL = 3,
};

struct plan {
        enum exercise exercise;
        struct workload workload;
        bool chat; /* its prompts are messages */
        /* A run for each of these; the rates if there are some. */
        uint32_t concurrencies[PLAN_LEVELS_MAX], concurrency_count;
        double rates[PLAN_LEVELS_MAX];
        uint32_t rate_count;
        uint32_t rounds;
        double shares[PLAN_LEVELS_MAX]; /* BATCHING: of the capacity */
        uint32_t share_count;
        struct load load; /* without its level and its seed */
        struct slo slo;
        uint64_t seed;
        char workload_words[256];
};

/* 0, or an exit status after a message. */
int plan_make(const struct cli *cli, struct plan *ret_plan);
void plan_deinit(struct plan *plan);

uint32_t plan_levels(const struct plan *plan);
/*
 * The load of a level in a round.  Each has a seed of its own, so that no prompt is in a cache from
 * an earlier run; the same round and level has the same one for each server.
 */
struct load plan_load(const struct plan *plan, uint32_t level, uint32_t round);

/* How it is said: "8 requests at a time; 64 requests". */
void plan_say_load(const struct plan *plan, char *to, size_t bytes);

#endif
