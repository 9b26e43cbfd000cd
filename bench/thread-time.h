/*
 * What threads of a process have done, by their name, as /proc tells.
 */
#ifndef BENCH_THREAD_TIME_H
#define BENCH_THREAD_TIME_H

#include <stdint.h>

/* ns on a processor, of all its threads of that name; 0: there is none. */
uint64_t thread_time_ns(int pid, const char *name);

/* Times they have gone to sleep. */
uint64_t thread_sleeps(int pid, const char *name);

#endif
