/*
 * A thread pool: the caller and its worker threads share the items of one job, and then wait for
 * the next.
 *
 * thread_pool_run() calls work(arg, thread, item) once for each item, from any free thread, and
 * returns when all items are done. The work sees everything that the caller wrote before, and the
 * caller sees everything that the work wrote. No result may depend on which thread does which item:
 * `thread` is only for choosing scratch memory.
 *
 * A worker with nothing to do spins for THREAD_POOL_SPIN_NS, which covers the gap between two
 * operators of a step, and then sleeps in the kernel. A worker that sleeps, or that has lost its
 * core, delays no other thread unless it is inside an item.
 *
 * Only one thread calls. Workers are named smv-cpu-N and take no signals.
 *
 * If a pool has a thread for each core, each thread may be pinned to a core of its own
 * (affinity.h). The kernel does not know that the threads wait for each other, and at times puts
 * two on one core. With fewer threads than cores no thread is pinned, because other pools would
 * choose the same cores. In addition, any other thread that wakes up on their processors runs
 * before them (time-slice.h). thread_pool_adopt_caller() pins the caller and sets its time slice,
 * once.
 */
#ifndef KERNELS_CPU_THREAD_POOL_H
#define KERNELS_CPU_THREAD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define THREAD_POOL_SPIN_NS 50000u

struct thread_pool;

typedef void thread_pool_work(void *arg, uint32_t thread, uint32_t item);

/*
 * `threads` includes the caller; 0: as many as the process may use cores (cgroup-limits.h).
 * `rest`: NULL, or what a worker calls before it sleeps.
 */
int thread_pool_new(uint32_t threads, bool pin, void (*rest)(void),
                    struct thread_pool **ret_thread_pool);
struct thread_pool *thread_pool_free(struct thread_pool *thread_pool);

uint32_t thread_pool_threads(const struct thread_pool *thread_pool);
/* The calling thread is the caller of thread_pool_run() from now on. */
void thread_pool_adopt_caller(struct thread_pool *thread_pool);
void thread_pool_run(struct thread_pool *thread_pool, thread_pool_work *work, void *arg,
                     uint32_t items);

#endif
