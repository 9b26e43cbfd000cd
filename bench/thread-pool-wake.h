/*
 * How long it takes until every thread of a thread pool is at work.  A step waits that long where
 * no thread can do another's part.  (thread_pool_run() itself does not wait for threads that have
 * not begun.)
 */
#ifndef BENCH_THREAD_POOL_WAKE_H
#define BENCH_THREAD_POOL_WAKE_H

#include <stdint.h>

/*
 * Samples are in ns.  Before each, the thread pool rests for rest_us; a rest longer than
 * THREAD_POOL_SPIN_NS lets its threads fall asleep.  Fills ret_samples; returns -ENOMEM or the
 * error of thread_pool_new().
 */
int thread_pool_wake_measure(uint32_t threads, uint32_t rest_us, uint32_t count,
                             uint32_t *ret_samples);

#endif
