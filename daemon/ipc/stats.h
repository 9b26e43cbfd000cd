/*
 * Counters that one thread updates and the loop shows in `status`.
 *
 * Every field has one writer, named below.  Values read together are a consistent snapshot only
 * when nothing changes, which is enough to check that nothing leaked.  The counters are relaxed
 * atomics: no other memory is ordered by them.
 */
#ifndef DAEMON_IPC_STATS_H
#define DAEMON_IPC_STATS_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

struct stats {
        /* written by the engine */
        counter steps, rows, tokens_in, tokens_out, streams_ended, numeric_faults;
        counter blocks_total, blocks_free, blocks_cached, blocks_in_use, blocks_reserved;
        counter blocks_evicted, blocks_copied; /* since the start */
        counter waiting, running, stalled, ending, ends_unsent, passed_over, preemptions;
        counter channels_open;
        /* running average of the time that a request has its slot */
        counter slot_ns;
        counter prompt_row_ns, prompt_far_ns; /* as in sched_counts */
        /* load_total: written by main before the threads start */
        counter load_bytes, load_total, load_way;
        counter pings_taken;
        /* written by the waker */
        /* channels with news that were handled; doorbells rung for them */
        counter wakes, doorbells;
        /* written by the loop */
        counter connections_received, connections_refused, requests_received, requests_refused;
};

static inline void counter_add(counter *c, uint64_t n) /* only the writer's thread */
{
        atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                              memory_order_relaxed);
}

static inline void counter_set(counter *c, uint64_t n)
{
        atomic_store_explicit(c, n, memory_order_relaxed);
}

static inline uint64_t counter_get(const counter *c)
{
        return atomic_load_explicit(c, memory_order_relaxed);
}

#endif
