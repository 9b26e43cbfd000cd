/*
 * How long it takes until every thread of a crew is at work: what a step waits for where nobody can
 * do another's part.  (crew_run() itself waits for nobody who has not begun.)
 */
#ifndef BENCH_CREW_WAKE_H
#define BENCH_CREW_WAKE_H

#include <stdint.h>

/* In ns, after the crew has rested for so long: longer than CREW_SPIN_NS, and it sleeps.  Fills
 * ret_samples; -ENOMEM or what crew_new() says. */
int crew_wake_measure(uint32_t threads, uint32_t rest_us, uint32_t count, uint32_t *ret_samples);

#endif
