/*
 * How kv_copy_ns() measures: the same copies are made COPY_TIME_ROUNDS times, and the round in the
 * middle counts. So rounds in which memory is touched for the first time do not count, nor do
 * rounds that something interrupts.
 */
#ifndef KERNELS_COPY_TIME_H
#define KERNELS_COPY_TIME_H

#include <stdint.h>
#include <time.h>

#define COPY_TIME_ROUNDS 5u

static inline uint64_t copy_time_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time of one copy, if a round of `copies` took so long; at least 1. Sorts the rounds. */
static inline uint64_t copy_time_median(uint64_t rounds[COPY_TIME_ROUNDS], uint32_t copies)
{
        for (uint32_t i = 1; i < COPY_TIME_ROUNDS; i++)
                for (uint32_t at = i; at && rounds[at] < rounds[at - 1]; at--) {
                        uint64_t later = rounds[at];

                        rounds[at] = rounds[at - 1];
                        rounds[at - 1] = later;
                }
        return rounds[COPY_TIME_ROUNDS / 2] / copies ? rounds[COPY_TIME_ROUNDS / 2] / copies : 1;
}

#endif
