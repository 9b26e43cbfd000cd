/*
 * A model without numbers, used to drive the pipeline.
 *
 * It defines model_forward() and model_collect() (daemon/engine/model.h) itself, so a program
 * that uses it is linked with them and not with the forward pass.  The token at a position is a
 * function of the request's seed and the position, so a reader can compute it, too.  Steps run
 * at a fixed period, or as fast as the rest of the pipeline lets them.
 *
 * Meetings.  A reader that missed its wake-up may be woken by the next ring of the doorbell, so
 * a lost wake-up stays hidden in a stream that goes on.  At a meeting the model makes no step
 * until all published records have been read.  A reader that sleeps through a meeting is
 * noticed.
 */
#ifndef BENCH_NULL_MODEL_H
#define BENCH_NULL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ipc/stats.h"

struct model;

#define NULL_VOCAB 300u /* a byte each, and from 256 on tokens without text */

/* Counters that others may read.  They are in shared memory if the others are processes. */
struct null_facts {
        counter stalled_steps; /* steps that left out a request because its ring was full */
        counter meetings;
        /* took over 0.9 s: a client's library may have found the records by itself */
        counter slow_meetings;
        counter lost; /* not read within 10 s */
        counter slowest_ns;
};

struct null_conf {
        uint64_t period_ns;   /* 0: no delay between steps */
        uint32_t pause_every; /* average number of steps between pauses; 0: never */
        uint64_t pause_ns;    /* maximum length of a pause */
        uint32_t meet_every;  /* average number of steps between meetings; 0: never */
        /* returns the number of tokens read so far, by all readers together */
        uint64_t (*read)(void *arg);
        void *read_arg;
        bool letters; /* each token is a letter, so that each has text of its own */
        int cpu;      /* the processor that the engine thread runs on; -1: any */
        /* the time at which the engine made each position's token; NULL: none */
        counter *stamps;
        uint32_t stamp_count; /* a power of two */
        uint64_t lost_at;     /* the step at which the backend is lost; 0: none ... */
        bool lost_late;       /* ... when its result is requested, not when it begins */
        uint32_t rows_max;
        const struct stats *stats;
        struct null_facts *facts;
};

uint32_t null_token(uint64_t seed, uint64_t position);

int null_model_new(const struct null_conf *conf, struct model **ret_model); /* 0 or -ENOMEM */
struct model *null_model_free(struct model *model);                         /* takes NULL */

/* Binds the calling thread to this processor, if that number exists. */
void null_pin(int cpu);

/*
 * Spins instead of sleeping: a sleeping sender's core would have to wake up before it could
 * wake another.
 */
void null_spin_until(uint64_t ns);

#endif
