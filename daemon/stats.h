/*
 * Counts that one thread keeps and the loop shows in `status`.
 *
 * Every field has one writer, named below; reading them together is a snapshot
 * only when nothing moves, which is enough to see that nothing leaked.  They
 * are relaxed atomics: no other memory is ordered by them.
 */
#ifndef DAEMON_STATS_H
#define DAEMON_STATS_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

struct stats {
        /* engine */
        counter steps, rows, tokens_in, tokens_out, ends, numeric_faults;
        counter blocks_total, blocks_free, blocks_kept, blocks_held, blocks_promised;
        counter blocks_evicted, blocks_copied; /* so far */
        counter waiting, running, stalled, ending, ends_waiting, passed_over, parks;
        counter channels_open;
        counter slot_ns;                          /* how long one is had */
        counter prompt_row_ns, prompt_far_ns;     /* as in sched_counts */
        counter load_bytes, load_total, load_way; /* total: by main, before there are threads */
        /* waker */
        counter wakes, doorbells; /* of channels that had news; of those, rung */
        /* loop */
        counter connections_seen, connections_refused, requests_seen, requests_refused;
};

static inline void counter_add(counter *c, uint64_t n) /* its writer only */
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
