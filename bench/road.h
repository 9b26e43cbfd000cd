/*
 * The road: the whole daemon without its numbers.
 *
 * Edge and listener, scribe, engine and waker are the product's own, put together as main.c
 * does, over a null model (null-model.h).  So everything between a picked token and the client
 * that reads it runs as in production, only at millions of tokens a second, and under a
 * sanitizer in one program.
 *
 * The caller's thread runs the loop.  SIGTERM, from any thread or process, shuts it down in
 * order.  SIGUSR1 prints the position of every ring, which helps when nothing moves.
 */
#ifndef BENCH_ROAD_H
#define BENCH_ROAD_H

#include <stdio.h>

#include "bench/null-model.h"

struct road;

/* In memory that outlives the road and is shared with its observers. */
struct road_facts {
        struct stats stats;
        struct null_facts model;
        /* stalls that were declared to a reader: the engine slept because its ring was full */
        counter stalls;
        counter ready; /* it is listening */
};

struct road_conf {
        const char *socket; /* a path in a directory of ours */
        uint32_t connections;
        uint32_t requests; /* the limit of requests, which all run at once */
        uint32_t context;
        uint32_t depth;
        /* without the fields that the road fills in: rows_max, stats, facts */
        struct null_conf model;
        struct road_facts *facts;
};

int road_open(const struct road_conf *conf, struct road **ret_road);
int road_run(struct road *road); /* until SIGTERM has come and all has ended: edge_run()'s result */
struct road *road_close(struct road *road); /* takes NULL */

/* Forks a process that opens, runs and closes a road.  Returns its pid once it listens, or -1. */
int road_fork(const struct road_conf *conf);
/* Sends SIGTERM and returns the exit status. */
int road_stop(int pid);

/* One line of counts, for people. */
void road_print(const struct road_facts *facts, FILE *to);

#endif
