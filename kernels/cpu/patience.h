/*
 * Threads that let others go first.
 *
 * Who reads a stream sleeps until a token is there, needs a processor for microseconds, and then finds all of
 * them taken by threads that compute.  Linux (6.6 and later) gives a processor to whoever is owed time and whose
 * turn would be over soonest; somebody who has just been woken has the usual turn of 3 ms, and so has
 * whom he would have to displace, so he may wait for a tick of the clock, 4 ms, for a token that was made in 1.
 *
 * A thread whose turns are to be as long as the kernel lets them (from 6.12 on) is displaced by everybody
 * with a shorter one.  It has no less time for it: turns say when, not how much.
 */
#ifndef KERNELS_CPU_PATIENCE_H
#define KERNELS_CPU_PATIENCE_H

#include <stdint.h>

#define PATIENCE_TURN_NS UINT64_C(100000000) /* the longest there is */

/* Of the calling thread, unless it is of a class that knows no turns.  A kernel that does not know of it
 * leaves all as it is. */
void patience_take(void);

#endif
