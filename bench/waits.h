/*
 * How long the threads of a process have waited for a processor, as the kernel counts it: time
 * that they would have run in, had nobody else been running.  Not that they slept, and not that a
 * host took the processor from the whole machine, which nobody here is told of.
 */
#ifndef BENCH_WAITS_H
#define BENCH_WAITS_H

#include <stdint.h>

/* Of the threads that this process has now, instead of the one before. */
void waits_open(int pid);

/* ns, of all of them together; 0 where the kernel does not count it. */
uint64_t waits_ns(void);

void waits_close(void);

#endif
