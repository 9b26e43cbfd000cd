/*
 * The loops under peaks.h, for the best instructions that this machine has.
 */
#ifndef BENCH_PEAKS_LOOPS_H
#define BENCH_PEAKS_LOOPS_H

#include "bench/peaks.h"

struct loop {
        const char *name;
        void (*run)(uint32_t rounds);
        uint32_t operations; /* of a round */
};

const struct loop *loop_of(enum peak_kind kind);

/* All of it, whole lines; what is in it does not matter. */
void loop_read(const uint8_t *from, size_t bytes);

#endif
