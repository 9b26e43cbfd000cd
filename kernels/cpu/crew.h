/*
 * The crew: the caller and its helping threads, who share out the items of one
 * job and then wait for the next.
 *
 * crew_run() calls work(arg, thread, item) once for each item, from whichever
 * thread is free, and returns when all are done; what the caller wrote before
 * the work sees, and what the work wrote the caller sees.  Nothing may depend on
 * which thread does which item: `thread` is for choosing scratch memory only.
 *
 * A helper with nothing to do spins for CREW_SPIN_NS, which covers the gap
 * between two operators of a step, and then sleeps in the kernel.  A helper that
 * sleeps, or that has lost its core, delays nobody unless it is inside an item.
 *
 * One thread calls.  Helpers are named smv-crew-N and take no signals.
 *
 * A crew that has a thread for each core may have each of them on a core of its own (places.h): the kernel,
 * which does not know that they wait for each other, at times puts two on one core.  With fewer threads
 * than cores all run where the kernel has them, since other crews would choose the same cores.  And whoever
 * is woken beside them goes first (patience.h).  Of the caller both is done by crew_settle(), once.
 */
#ifndef KERNELS_CPU_CREW_H
#define KERNELS_CPU_CREW_H

#include <stdbool.h>
#include <stdint.h>

#define CREW_SPIN_NS 50000u

struct crew;

typedef void crew_work(void *arg, uint32_t thread, uint32_t item);

/* `threads` include the caller; 0: as many as there are cores for us (allowance.h). */
int crew_new(uint32_t threads, bool pin, struct crew **ret_crew);
struct crew *crew_free(struct crew *crew);

uint32_t crew_threads(const struct crew *crew);
void crew_settle(struct crew *crew); /* the thread that calls, from now on, is the caller */
void crew_run(struct crew *crew, crew_work *work, void *arg, uint32_t items);

#endif
