/*
 * The road: the whole daemon without its numbers.
 *
 * Edge and listener, scribe, engine and waker are the product's own, put together
 * as main.c does, over a null model (null-model.h).  So everything between a token
 * that was picked and the client that reads it runs as it does in life, only at
 * millions of tokens a second, and under a sanitizer in one program.
 *
 * The caller's thread is the loop.  SIGTERM ends it in order, from any thread or
 * process; SIGUSR1 prints where every ring stands, which is what one wants to know
 * when nothing moves.
 */
#ifndef BENCH_ROAD_H
#define BENCH_ROAD_H

#include <stdio.h>

#include "bench/null-model.h"

struct road;

/* In memory that outlives the road and is shared with those who look. */
struct road_facts {
        struct stats stats;
        struct null_facts model;
        counter stalls; /* that were declared to a reader: the engine slept for want of room */
        counter ready;  /* it listens */
};

struct road_conf {
        const char *socket; /* a path in a directory of ours */
        uint32_t connections;
        uint32_t requests; /* and as many run at once */
        uint32_t context;
        uint32_t depth;
        struct null_conf model; /* less what the road knows: rows_max, stats, facts */
        struct road_facts *facts;
};

int road_open(const struct road_conf *conf, struct road **ret_road);
int road_run(struct road *road); /* until SIGTERM has come and all has ended: edge_run()'s result */
struct road *road_close(struct road *road); /* takes NULL */

/* A process of its own: opens, runs, closes.  Returns its pid once it listens, or -1. */
int road_fork(const struct road_conf *conf);
/* SIGTERM, and its exit status. */
int road_stop(int pid);

/* One line of counts, for people. */
void road_print(const struct road_facts *facts, FILE *to);

#endif
