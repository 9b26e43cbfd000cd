/*
 * Work is handed out with one word.
 *
 * `left` is the number of items of the job that no thread has taken yet. A thread that lowers it
 * by compare-and-swap has taken item `items - left`. The job's fields (work, arg, items) are
 * plain memory, read only after an item was taken. The caller may not write them again before
 * that item is done, so they do not change meanwhile.
 *
 *      caller    job = ...; done = 0;  left = n (release)      ...  done == n (acquire)
 *      worker                          left - 1 (acquire)  work  done + 1 (release)
 *
 * It does not matter whether a worker saw the announcement of the job. A compare-and-swap that
 * succeeds, even one begun during an older job, has taken an item of the current job. So no thread
 * waits for a worker that is late or asleep.
 *
 * Sleeping uses the usual pair of flags. A worker adds itself to `sleepers` and then reads `left`;
 * the caller sets `left` and then reads `sleepers`. Both orders are sequentially consistent, so one
 * of the two sees the other. The kernel itself reads `left` once more before it lets a worker
 * sleep. The caller waits for the last item in the same way, with `done` and `waiting`.
 */
#include "kernels/cpu/thread-pool.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernels/cpu/affinity.h"
#include "kernels/cpu/cgroup-limits.h"
#include "kernels/cpu/time-slice.h"

#define THREAD_POOL_THREADS_MAX 1024u
#define THREAD_POOL_STACK_BYTES (1u << 20)
/* Two cache lines, because they are fetched in pairs. */
#define LINE      128
#define LEFT_STOP UINT32_MAX /* in `left`: no job, workers end */

struct worker {
        struct thread_pool *thread_pool;
        uint32_t thread;
        int32_t processor; /* -1: anywhere */
        pthread_t id;
};

struct thread_pool {
        _Alignas(LINE) _Atomic uint32_t left;
        _Alignas(LINE) _Atomic uint32_t done;
        _Atomic uint32_t waiting; /* the caller sleeps until `done` changes */
        _Alignas(LINE) _Atomic uint32_t sleepers;

        _Alignas(LINE) thread_pool_work *work; /* the job */
        void *arg;
        uint32_t items;

        void (*rest)(void);
        uint32_t threads;
        uint32_t started;      /* workers that exist */
        int32_t processor;     /* of the caller; -1: anywhere */
        bool caller_is_set_up; /* thread_pool_adopt_caller() was called */
        struct worker *workers;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
}

static uint64_t clock_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Spins until the word is (`equal`) or is no longer (not `equal`) `value`; false if the time is
 * up.
 */
static bool spin(_Atomic uint32_t *word, uint32_t value, bool equal)
{
        uint64_t end = 0;

        for (uint32_t i = 0;; i++) {
                if ((atomic_load_explicit(word, memory_order_acquire) == value) == equal)
                        return true;
                relax();
                if (i % 32 != 31)
                        continue;
                if (!end)
                        end = clock_ns() + THREAD_POOL_SPIN_NS;
                else if (clock_ns() > end)
                        return false;
        }
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
        /* the caller's loop checks the word after every return, whatever its reason */
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, uint32_t count)
{
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* Takes an item of the job; false when none is left. */
static bool take(struct thread_pool *p, uint32_t *ret_left)
{
        uint32_t left = atomic_load_explicit(&p->left, memory_order_relaxed);

        while (left > 0 && left != LEFT_STOP)
                if (atomic_compare_exchange_weak_explicit(&p->left, &left, left - 1,
                                                          memory_order_acquire,
                                                          memory_order_relaxed)) {
                        *ret_left = left;
                        return true;
                }
        return false;
}

/* Works until no item is left. */
static void work(struct thread_pool *p, uint32_t thread)
{
        uint32_t left;

        while (take(p, &left)) {
                p->work(p->arg, thread, p->items - left);
                /* publishes what the work wrote, and precedes the read of `waiting` */
                atomic_fetch_add(&p->done, 1);
                if (atomic_load(&p->waiting))
                        futex_wake(&p->done, 1);
        }
}

/* May return early, but returns at the latest when there is work. */
static void worker_wait(struct thread_pool *p)
{
        if (spin(&p->left, 0, false))
                return;

        if (p->rest)
                p->rest();
        atomic_fetch_add(&p->sleepers, 1);
        while (atomic_load(&p->left) == 0)
                futex_wait(&p->left, 0);
        atomic_fetch_sub(&p->sleepers, 1);
}

static void set_up_thread(int32_t processor)
{
        if (processor >= 0)
                affinity_pin((uint32_t)processor);
        time_slice_set_longest();
}

static void *worker_main(void *arg)
{
        struct worker *w = arg;

        set_up_thread(w->processor);
        for (;;) {
                worker_wait(w->thread_pool);
                if (atomic_load(&w->thread_pool->left) == LEFT_STOP)
                        return NULL;
                work(w->thread_pool, w->thread);
        }
}

static int worker_start(struct worker *w, const pthread_attr_t *attr)
{
        char name[16]; /* the kernel's limit */
        int r;

        r = pthread_create(&w->id, attr, worker_main, w);
        if (r)
                return -r;
        snprintf(name, sizeof(name), "smv-cpu-%u", w->thread % 10000);
        pthread_setname_np(w->id, name);
        return 0;
}

/*
 * Workers inherit the signal mask of the thread that makes them, so signals are blocked meanwhile.
 */
static int workers_start(struct thread_pool *p, const struct affinity *affinity)
{
        pthread_attr_t attr;
        sigset_t all, before;
        int r;

        r = pthread_attr_init(&attr);
        if (r)
                return -r;
        pthread_attr_setstacksize(&attr, THREAD_POOL_STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        for (uint32_t i = 1; i < p->threads && !r; i++) {
                struct worker *w = &p->workers[i - 1];

                *w = (struct worker){ .thread_pool = p, .thread = i, .processor = -1 };
                if (affinity)
                        w->processor = affinity->processors[i];
                r = worker_start(w, &attr);
                if (!r)
                        p->started++;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attr);
        return r;
}

int thread_pool_new(uint32_t threads, bool pin, void (*rest)(void),
                    struct thread_pool **ret_thread_pool)
{
        struct affinity affinity;
        struct thread_pool *p;
        int r;

        if (threads == 0)
                threads = cgroup_limits_cores();
        if (threads > THREAD_POOL_THREADS_MAX)
                return -EINVAL;

        p = aligned_alloc(LINE, sizeof(*p));
        if (!p)
                return -ENOMEM;
        affinity_find(&affinity);
        pin = pin && threads > 1 && threads == affinity.cores;
        *p = (struct thread_pool){ .threads = threads,
                                   .rest = rest,
                                   .processor = pin ? affinity.processors[0] : -1 };
        p->workers = calloc(threads, sizeof(*p->workers));
        r = p->workers ? workers_start(p, pin ? &affinity : NULL) : -ENOMEM;
        if (r < 0) {
                thread_pool_free(p);
                return r;
        }

        *ret_thread_pool = p;
        return 0;
}

struct thread_pool *thread_pool_free(struct thread_pool *p)
{
        if (!p)
                return NULL;

        atomic_store(&p->left, LEFT_STOP);
        futex_wake(&p->left, INT_MAX);
        for (uint32_t i = 0; i < p->started; i++)
                pthread_join(p->workers[i].id, NULL);
        free(p->workers);
        free(p);
        return NULL;
}

uint32_t thread_pool_threads(const struct thread_pool *p)
{
        return p->threads;
}

void thread_pool_adopt_caller(struct thread_pool *p)
{
        if (!p->caller_is_set_up)
                set_up_thread(p->processor);
        p->caller_is_set_up = true;
}

static void wait_done(struct thread_pool *p, uint32_t items)
{
        uint32_t done;

        if (spin(&p->done, items, true))
                return;

        atomic_store(&p->waiting, 1);
        while ((done = atomic_load(&p->done)) != items)
                futex_wait(&p->done, done);
        atomic_store(&p->waiting, 0);
}

void thread_pool_run(struct thread_pool *p, thread_pool_work *fn, void *arg, uint32_t items)
{
        if (p->threads == 1 || items <= 1) {
                for (uint32_t i = 0; i < items; i++)
                        fn(arg, 0, i);
                return;
        }

        assert(items < LEFT_STOP && atomic_load_explicit(&p->left, memory_order_relaxed) == 0);
        p->work = fn;
        p->arg = arg;
        p->items = items;
        atomic_store_explicit(&p->done, 0, memory_order_relaxed);
        atomic_store(&p->left, items);
        if (atomic_load(&p->sleepers))
                futex_wake(&p->left, items - 1 < p->threads ? items - 1 : p->threads);

        work(p, 0);
        wait_done(p, items);
}
