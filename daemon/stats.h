/*
 * Counters that one thread updates and the loop shows in `status`.
 *
 * Every field has one writer, named below.  Values read together are a consistent snapshot only
 * when nothing changes, which is enough to check that nothing leaked.  The counters are relaxed
 * atomics: no other memory is ordered by them.
 */
#ifndef DAEMON_STATS_H
#define DAEMON_STATS_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

struct stats {
        /* written by the engine */
        counter steps, rows, tokens_in, tokens_out, ends, numeric_faults;
        counter blocks_total, blocks_free, blocks_kept, blocks_held, blocks_promised;
        counter blocks_evicted, blocks_copied; /* since the start */
        counter waiting, running, stalled, ending, ends_waiting, passed_over, parks;
        counter channels_open;
        /* running average of the time that a request has its slot */
        counter slot_ns;
        counter prompt_row_ns, prompt_far_ns; /* as in sched_counts */
        /* load_total: written by main before the threads start */
        counter load_bytes, load_total, load_way;
        /* written by the waker */
        /* channels with news that were handled; doorbells rung for them */
        counter wakes, doorbells;
        /* written by the loop */
        counter connections_seen, connections_refused, requests_seen, requests_refused;
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
