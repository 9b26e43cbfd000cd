/*
 * Counters, histograms and rates that one thread updates and the loop shows in `status`.
 *
 * Every field has one writer, named below.  Values read together are a consistent snapshot only
 * when nothing changes, which is enough to check that nothing leaked.  The counters are relaxed
 * atomics: no other memory is ordered by them.
 *
 * A histogram counts durations.  All histograms have the same bounds, five for each power of ten
 * from 1 us to 1000 s.  A reader gets cumulative counts, as Prometheus wants them.  Rows of steps
 * are counted in the same way; there the bounds are the powers of two.
 *
 * A rate counts events of the last seconds.  Each slot has the events of one second, and that
 * second beside them, so the writer needs no timer to begin a new second, and an idle daemon stays
 * asleep.
 */
#ifndef DAEMON_IPC_STATS_H
#define DAEMON_IPC_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include <samovar/error.h>
#include <samovar/protocol.h>

typedef _Atomic uint64_t counter;

#define HISTOGRAM_BOUNDS 46u
struct histogram {
        counter sum_ns;
        counter buckets[HISTOGRAM_BOUNDS + 1]; /* each for itself; the last has no upper bound */
};

#define STEP_BOUNDS 15u /* 1, 2, 4 ... 16384 rows */
struct step_histogram {
        counter buckets[STEP_BOUNDS + 1]; /* as those of a histogram */
};

#define RATE_WINDOW_S 10u
#define RATE_SLOTS    16u /* more than the window, so that no slot that is read is written again */
struct rate {
        counter slots[RATE_SLOTS]; /* by second: its number (high half) and its events */
};

#define X(number, name, word, text) +1
enum { STATS_CODES = 0 SMV_ERRORS(X) }; /* their numbers have no gaps */
#undef X

struct stats {
        /* written by the engine */
        counter steps, rows, tokens_in, tokens_out, streams_ended, numeric_faults;
        counter blocks_total, blocks_free, blocks_cached, blocks_in_use, blocks_reserved;
        counter blocks_shared;
        counter blocks_evicted, blocks_copied;                            /* since the start */
        counter swap_total, swap_used, swapped_out, swapped_in, restored; /* as in sched_counts */
        counter windows_total, windows_free, windows_cached, window_evictions;
        counter waiting, running, stalled, ending, ends_unsent, passed_over, preemptions,
                blocks_lost, recomputed, trust;
        counter waits_turn, waits_slot, waits_windows, waits_blocks, waits_forecast, waits_share,
                waits_prefix, waits_reader;
        counter submitted;             /* requests since the start */
        counter forks;                 /* of these, forks of running streams */
        counter stalls;                /* times that a request stalled */
        counter answers_late;          /* questions that a client did not answer in time */
        counter drafted, drafts_right; /* rows of drafts, and those that were confirmed */
        /* the same of the first token of a draft, of the second, ... */
        counter drafted_by_depth[SMV_DRAFT_TOKENS_MAX], drafts_right_by_depth[SMV_DRAFT_TOKENS_MAX];
        counter channels_open;
        /* running average of the time that a request has its slot */
        counter slot_ns;
        counter prompt_row_ns, prompt_far_ns; /* as in sched_counts */
        counter busy_ns;                      /* time in which at least one step was in flight */
        struct rate tokens_in_rate, tokens_out_rate;
        struct step_histogram step_rows;
        struct histogram first_token, token_gap, queue, total;
        struct histogram delivery; /* of tokens, until their readers are woken */
        /* load_total: written by main before the threads start */
        counter load_bytes, load_total, load_way;
        counter pings_taken;
        /* written by the waker */
        /* channels with news that were handled; doorbells rung for them */
        counter wakes, doorbells;
        /* written by the loop */
        counter connections_received, connections_refused, requests_received, requests_refused;
        counter refusals[STATS_CODES]; /* the same by enum smv_code */
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

/* Durations up to this many nanoseconds, and longer than the bound before, are in this bucket. */
uint64_t histogram_bound_ns(uint32_t bucket);
/* Only the writer's thread adds: one duration, or `count` equal ones. */
void histogram_add(struct histogram *histogram, uint64_t ns);
void histogram_add_many(struct histogram *histogram, uint64_t ns, uint64_t count);
/*
 * ret_counts[i]: durations up to bound i, with all shorter ones.  Returns the count of all
 * durations.
 */
uint64_t histogram_read(const struct histogram *histogram, uint64_t ret_counts[HISTOGRAM_BOUNDS]);

/* The same for the rows of a step, which has at least one. */
uint32_t step_bound(uint32_t bucket);
void step_histogram_add(struct step_histogram *histogram, uint32_t rows);
uint64_t step_histogram_read(const struct step_histogram *histogram,
                             uint64_t ret_counts[STEP_BOUNDS]);

void rate_add(struct rate *rate, uint64_t now_ns, uint64_t events); /* only the writer's thread */
/* Events a second in the last RATE_WINDOW_S seconds, or since `started_ns` if that is later. */
double rate_per_s(const struct rate *rate, uint64_t now_ns, uint64_t started_ns);

#endif
