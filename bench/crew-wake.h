/*
 * How long it takes until every thread of a crew is at work.  A step waits that long where no
 * thread can do another's part.  (crew_run() itself does not wait for threads that have not
 * begun.)
 */
#ifndef BENCH_CREW_WAKE_H
#define BENCH_CREW_WAKE_H

#include <stdint.h>

/*
 * Samples are in ns.  Before each, the crew rests for rest_us; a rest longer than CREW_SPIN_NS
 * lets its threads fall asleep.  Fills ret_samples; returns -ENOMEM or the error of crew_new().
 */
int crew_wake_measure(uint32_t threads, uint32_t rest_us, uint32_t count, uint32_t *ret_samples);

#endif
