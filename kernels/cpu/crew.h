/*
 * The crew is a thread pool: the caller and its helper threads. They share the items of one job
 * and then wait for the next.
 *
 * crew_run() calls work(arg, thread, item) once for each item, from any free thread, and returns
 * when all items are done. The work sees everything that the caller wrote before, and the caller
 * sees everything that the work wrote. No result may depend on which thread does which item:
 * `thread` is only for choosing scratch memory.
 *
 * A helper with nothing to do spins for CREW_SPIN_NS, which covers the gap between two operators
 * of a step, and then sleeps in the kernel. A helper that sleeps, or that has lost its core,
 * delays no other thread unless it is inside an item.
 *
 * Only one thread calls. Helpers are named smv-crew-N and take no signals.
 *
 * If a crew has a thread for each core, each thread may be pinned to a core of its own
 * (places.h). The kernel does not know that the threads wait for each other, and at times puts
 * two on one core. With fewer threads than cores no thread is pinned, because other crews would
 * choose the same cores. In addition, any other thread that wakes up on their processors runs
 * before them (patience.h). crew_settle() does both for the caller, once.
 */
#ifndef KERNELS_CPU_CREW_H
#define KERNELS_CPU_CREW_H

#include <stdbool.h>
#include <stdint.h>

#define CREW_SPIN_NS 50000u

struct crew;

typedef void crew_work(void *arg, uint32_t thread, uint32_t item);

/* `threads` includes the caller; 0: as many as the process may use cores (allowance.h). */
int crew_new(uint32_t threads, bool pin, struct crew **ret_crew);
struct crew *crew_free(struct crew *crew);

uint32_t crew_threads(const struct crew *crew);
/* The calling thread is the caller of crew_run() from now on. */
void crew_settle(struct crew *crew);
void crew_run(struct crew *crew, crew_work *work, void *arg, uint32_t items);

#endif
