/*
 * CPU time and sleeps of a process's threads, found by thread name in /proc.
 */
#ifndef BENCH_THREAD_TIME_H
#define BENCH_THREAD_TIME_H

#include <stdint.h>

/* CPU time in ns of all its threads of that name; 0: there is none. */
uint64_t thread_time_ns(int pid, const char *name);

/* How often they have gone to sleep. */
uint64_t thread_sleeps(int pid, const char *name);

#endif
