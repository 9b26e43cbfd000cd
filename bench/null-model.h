/*
 * A model without numbers: what the road is driven with.
 *
 * It defines model_forward() and model_collect() (daemon/engine/model.h) itself, so
 * a program that has it is linked with them and not with the forward pass.  The
 * token at a position is a function of the request's seed and the position;
 * whoever reads can compute it, too.  Steps run at a period, or as fast as the
 * rest of the road lets them.
 *
 * Meetings.  A reader that was not woken may be found by the next ring, so a lost
 * wake-up hides in a stream that goes on.  At a meeting the model makes no step
 * until all that was shown has been read: who sleeps through that is noticed.
 */
#ifndef BENCH_NULL_MODEL_H
#define BENCH_NULL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/stats.h"

struct model;

#define NULL_VOCAB 300u /* a byte each, and from 256 on tokens without text */

/* What it tells others; in shared memory, if they are processes. */
struct null_facts {
        counter stalled_steps; /* steps that somebody was left out of for want of room */
        counter meetings;
        counter slow_meetings; /* over 0.9 s: a client's library may have found it by itself */
        counter lost;          /* 10 s: nobody came */
        counter slowest_ns;
};

struct null_conf {
        uint64_t period_ns;          /* 0: as fast as it goes */
        uint32_t pause_every;        /* about so many steps there is a pause; 0: never */
        uint64_t pause_ns;           /* of up to this */
        uint32_t meet_every;         /* about so many steps there is a meeting; 0: never */
        uint64_t (*read)(void *arg); /* tokens that were read, by all together */
        void *read_arg;
        int cpu;              /* where the engine thread is to run; -1: anywhere */
        counter *stamps;      /* of a token's position: when the engine had it; NULL: none */
        uint32_t stamp_count; /* a power of two */
        uint64_t lost_at;     /* the step at which its backend is lost; 0: none ... */
        bool lost_late;       /* ... when its result is asked for, not when it begins */
        uint32_t rows_max;
        const struct stats *stats;
        struct null_facts *facts;
};

uint32_t null_token(uint64_t seed, uint64_t position);

int null_model_new(const struct null_conf *conf, struct model **ret_model); /* 0 or -ENOMEM */
struct model *null_model_free(struct model *model);                         /* takes NULL */

/* The calling thread stays on this processor, if there is one of that number. */
void null_pin(int cpu);

/* Spins: a sleeping sender's core would have to wake up before it could wake another. */
void null_spin_until(uint64_t ns);

#endif
