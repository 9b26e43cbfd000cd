/*
 * The pipeline: the whole daemon without the model's computation.
 *
 * Edge and listener, text worker, engine and waker are the product's own, put together as main.c
 * does, over a null model (null-model.h).  So everything between a picked token and the client
 * that reads it runs as in production, only at millions of tokens a second, and under a
 * sanitizer in one program.
 *
 * The caller's thread runs the loop.  SIGTERM, from any thread or process, shuts it down in
 * order.  SIGUSR1 prints the position of every ring, which helps when nothing moves.
 */
#ifndef BENCH_PIPELINE_H
#define BENCH_PIPELINE_H

#include <stdio.h>

#include "bench/null-model.h"

struct pipeline;

/* In memory that outlives the pipeline and is shared with its observers. */
struct pipeline_facts {
        struct stats stats;
        struct null_facts model;
        /* stalls that were declared to a reader: the engine slept because its ring was full */
        counter stalls;
        counter ready; /* it is listening */
};

struct pipeline_conf {
        const char *socket; /* a path in a directory of ours */
        uint32_t connections;
        uint32_t requests; /* the limit of requests */
        uint32_t slots;    /* that run at once; 0: all of them */
        uint32_t context;
        uint32_t depth;
        /* without the fields that the pipeline fills in: rows_max, stats, facts */
        struct null_conf model;
        struct pipeline_facts *facts;
};

int pipeline_open(const struct pipeline_conf *conf, struct pipeline **ret_road);
/* Runs until SIGTERM has come and everything has ended; returns edge_run()'s result. */
int pipeline_run(struct pipeline *pipeline);
struct pipeline *pipeline_close(struct pipeline *pipeline); /* takes NULL */

/* Forks a process that opens, runs and closes a pipeline.  Returns its pid once it listens, or
 * -1. */
int pipeline_fork(const struct pipeline_conf *conf);
/* Sends SIGTERM and returns the exit status. */
int pipeline_stop(int pid);

/* One line of counts, for people. */
void pipeline_print(const struct pipeline_facts *facts, FILE *to);

#endif
