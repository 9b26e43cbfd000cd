/*
 * One run: sends requests in time, and waits for their answers.
 *
 * With a rate, or the times of a trace, each request is sent when it is due, whatever has become of
 * the others (an open loop); `concurrency` then only limits how many are in flight.  Otherwise
 * `concurrency` requests are in flight at any time (a closed loop).
 */
#ifndef CLI_BENCH_LOAD_H
#define CLI_BENCH_LOAD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/bench/options.h"
#include "cli/bench/sample.h"
#include "cli/bench/target.h"
#include "cli/bench/workload.h"

struct load {
        uint32_t concurrency; /* 0: no limit, with a rate or times */
        double rate;          /* requests a second; 0: none */
        enum bench_arrivals arrivals;
        double burstiness;
        bool times;   /* of the trace */
        double speed; /* they are divided by this */
        uint32_t requests;
        double seconds;   /* no request is due later than this; 0: no limit */
        uint32_t warm_up; /* requests before the measured part, which are not counted */
        uint64_t seed;
};

struct load_result {
        struct samples samples;
        double seconds;  /* from the first request to the end of the last */
        double cpu_s;    /* that this process used */
        uint32_t unsent; /* requests that were not sent: the server is gone, or a ^C */
        uint32_t most;   /* in flight at a time */
};

/* ^C: no more requests, and those in flight are given up.  Set by a handler of signals. */
extern volatile sig_atomic_t load_interrupted;

/*
 * 0 or -ENOMEM, also if requests fail.  `progress`: shows a bar on stderr.
 */
int load_run(const struct load *load, struct workload *workload, struct target *target,
             const char *progress, struct load_result *ret_result);
void load_result_deinit(struct load_result *result);

#endif
