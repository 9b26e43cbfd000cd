/*
 * Threads that let other threads run first.
 *
 * A client that reads a stream sleeps until a token is there, and then needs a processor for
 * microseconds. At that moment the computing threads occupy all processors. Linux (6.6 and later)
 * gives a processor to the thread that is owed time and whose time slice would end soonest. A
 * thread that has just been woken has the usual time slice of 3 ms, and so has the thread that it
 * would have to displace. So it may wait for a clock tick, 4 ms, for a token that was made in 1 ms.
 *
 * If a thread has the longest time slice that the kernel allows (from 6.12 on), every thread with a
 * shorter time slice displaces it. It does not lose CPU time: time slices decide when a thread
 * runs, not how much.
 */
#ifndef KERNELS_CPU_TIME_SLICE_H
#define KERNELS_CPU_TIME_SLICE_H

#include <stdint.h>

#define TIME_SLICE_LONGEST_NS UINT64_C(100000000) /* the longest that the kernel allows */

/*
 * Sets the longest time slice for the calling thread, unless its scheduling class has none. On a
 * kernel that does not support this, nothing changes.
 */
void time_slice_set_longest(void);

#endif
