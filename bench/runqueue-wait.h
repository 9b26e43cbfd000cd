/*
 * How long the threads of a process have waited for a processor, as the kernel counts it: time
 * in which they could have run if no other thread had been running.  It does not include sleep,
 * nor time that a host took from the whole machine, which cannot be seen from inside.
 */
#ifndef BENCH_RUNQUEUE_WAIT_H
#define BENCH_RUNQUEUE_WAIT_H

#include <stdint.h>

/* Starts to watch the threads that this process has now, instead of the process before. */
void runqueue_wait_open(int pid);

/* The sum over all of them in ns; 0 if the kernel does not count it. */
uint64_t runqueue_wait_ns(void);

void runqueue_wait_close(void);

#endif
