/* One `samovar bench`: what bench.c and exercises.c share. */
#ifndef CLI_BENCH_BENCH_H
#define CLI_BENCH_BENCH_H

#include <stdio.h>

#include "cli/bench/plan.h"
#include "cli/bench/report.h"
#include "cli/bench/target.h"
#include "cli/cli.h"

struct bench {
        struct cli *cli;
        struct plan plan;
        struct report report;
        struct target *targets[SERVERS_MAX];
        FILE *raw, *csv, *svg; /* of the flags of these names; NULL: not wanted */
};

/* These return 0 or an exit status, after a message. */
int bench_begin(struct bench *bench); /* an empty report; opens the files */
/* Runs a load, and adds the run to the report.  `level`: its concurrency, or the batch's size. */
int bench_run(struct bench *bench, struct target *target, const struct load *load, uint32_t level,
              const char *label, uint32_t server, uint32_t round);
/* Prints the report and writes its files.  Also CLI_FAILED if a request failed. */
int bench_finish(struct bench *bench);

void bench_target_options(const struct bench *bench, struct target_options *ret_options);

/* exercises.c: the exercises of the plan, each with daemons and a report of its own. */
int bench_exercises(struct bench *bench);

#endif
