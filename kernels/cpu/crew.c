/*
 * Work is handed out with one word.
 *
 * `left` is the number of items of the job that no thread has taken yet. A thread that lowers it
 * by compare-and-swap has taken item `items - left`. The job's fields (work, arg, items) are
 * plain memory, read only after an item was taken. The caller may not write them again before
 * that item is done, so they do not change meanwhile.
 *
 *      caller    job = ...; done = 0;  left = n (release)      ...  done == n (acquire)
 *      helper                          left - 1 (acquire)  work  done + 1 (release)
 *
 * It does not matter whether a helper saw the announcement of the job. A compare-and-swap that
 * succeeds, even one begun during an older job, has taken an item of the current job. So no
 * thread waits for a helper that is late or asleep.
 *
 * Sleeping uses the usual pair of flags. A helper adds itself to `sleepers` and then reads
 * `left`; the caller sets `left` and then reads `sleepers`. Both orders are sequentially
 * consistent, so one of the two sees the other. The kernel itself reads `left` once more before
 * it lets a helper sleep. The caller waits for the last item in the same way, with `done` and
 * `waiting`.
 */
#include "kernels/cpu/crew.h"

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

#include "kernels/cpu/allowance.h"
#include "kernels/cpu/patience.h"
#include "kernels/cpu/places.h"

#define CREW_THREADS_MAX 1024u
#define CREW_STACK_BYTES (1u << 20)
/* Two cache lines, because they are fetched in pairs. */
#define LINE      128
#define LEFT_STOP UINT32_MAX /* in `left`: no job, helpers end */

struct helper {
        struct crew *crew;
        uint32_t thread;
        int32_t place; /* -1: anywhere */
        pthread_t id;
};

struct crew {
        _Alignas(LINE) _Atomic uint32_t left;
        _Alignas(LINE) _Atomic uint32_t done;
        _Atomic uint32_t waiting; /* the caller sleeps until `done` changes */
        _Alignas(LINE) _Atomic uint32_t sleepers;

        _Alignas(LINE) crew_work *work; /* the job */
        void *arg;
        uint32_t items;

        uint32_t threads;
        uint32_t started; /* helpers that exist */
        int32_t place;    /* of the caller; -1: anywhere */
        bool settled;     /* crew_settle() was called */
        struct helper *helpers;
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
                        end = clock_ns() + CREW_SPIN_NS;
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
static bool take(struct crew *c, uint32_t *ret_left)
{
        uint32_t left = atomic_load_explicit(&c->left, memory_order_relaxed);

        while (left > 0 && left != LEFT_STOP)
                if (atomic_compare_exchange_weak_explicit(&c->left, &left, left - 1,
                                                          memory_order_acquire,
                                                          memory_order_relaxed)) {
                        *ret_left = left;
                        return true;
                }
        return false;
}

/* Works until no item is left. */
static void work(struct crew *c, uint32_t thread)
{
        uint32_t left;

        while (take(c, &left)) {
                c->work(c->arg, thread, c->items - left);
                /* publishes what the work wrote, and precedes the read of `waiting` */
                atomic_fetch_add(&c->done, 1);
                if (atomic_load(&c->waiting))
                        futex_wake(&c->done, 1);
        }
}

/* May return early, but returns at the latest when there is work. */
static void helper_wait(struct crew *c)
{
        if (spin(&c->left, 0, false))
                return;

        atomic_fetch_add(&c->sleepers, 1);
        while (atomic_load(&c->left) == 0)
                futex_wait(&c->left, 0);
        atomic_fetch_sub(&c->sleepers, 1);
}

static void settle(int32_t place)
{
        if (place >= 0)
                places_pin((uint32_t)place);
        patience_take();
}

static void *helper_main(void *arg)
{
        struct helper *h = arg;

        settle(h->place);
        for (;;) {
                helper_wait(h->crew);
                if (atomic_load(&h->crew->left) == LEFT_STOP)
                        return NULL;
                work(h->crew, h->thread);
        }
}

static int helper_start(struct helper *h, const pthread_attr_t *attr)
{
        char name[16]; /* the kernel's limit */
        int r;

        r = pthread_create(&h->id, attr, helper_main, h);
        if (r)
                return -r;
        snprintf(name, sizeof(name), "smv-crew-%u", h->thread % 10000);
        pthread_setname_np(h->id, name);
        return 0;
}

/*
 * Helpers inherit the signal mask of the thread that makes them, so signals are blocked
 * meanwhile.
 */
static int helpers_start(struct crew *c, const struct places *places)
{
        pthread_attr_t attr;
        sigset_t all, before;
        int r;

        r = pthread_attr_init(&attr);
        if (r)
                return -r;
        pthread_attr_setstacksize(&attr, CREW_STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        for (uint32_t i = 1; i < c->threads && !r; i++) {
                struct helper *h = &c->helpers[i - 1];

                *h = (struct helper){ .crew = c, .thread = i, .place = -1 };
                if (places)
                        h->place = places->processors[i];
                r = helper_start(h, &attr);
                if (!r)
                        c->started++;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attr);
        return r;
}

int crew_new(uint32_t threads, bool pin, struct crew **ret_crew)
{
        struct places places;
        struct crew *c;
        int r;

        if (threads == 0)
                threads = allowance_cores();
        if (threads > CREW_THREADS_MAX)
                return -EINVAL;

        c = aligned_alloc(LINE, sizeof(*c));
        if (!c)
                return -ENOMEM;
        places_find(&places);
        pin = pin && threads > 1 && threads == places.cores;
        *c = (struct crew){ .threads = threads, .place = pin ? places.processors[0] : -1 };
        c->helpers = calloc(threads, sizeof(*c->helpers));
        r = c->helpers ? helpers_start(c, pin ? &places : NULL) : -ENOMEM;
        if (r < 0) {
                crew_free(c);
                return r;
        }

        *ret_crew = c;
        return 0;
}

struct crew *crew_free(struct crew *c)
{
        if (!c)
                return NULL;

        atomic_store(&c->left, LEFT_STOP);
        futex_wake(&c->left, INT_MAX);
        for (uint32_t i = 0; i < c->started; i++)
                pthread_join(c->helpers[i].id, NULL);
        free(c->helpers);
        free(c);
        return NULL;
}

uint32_t crew_threads(const struct crew *c)
{
        return c->threads;
}

void crew_settle(struct crew *c)
{
        if (!c->settled)
                settle(c->place);
        c->settled = true;
}

static void wait_done(struct crew *c, uint32_t items)
{
        uint32_t done;

        if (spin(&c->done, items, true))
                return;

        atomic_store(&c->waiting, 1);
        while ((done = atomic_load(&c->done)) != items)
                futex_wait(&c->done, done);
        atomic_store(&c->waiting, 0);
}

void crew_run(struct crew *c, crew_work *fn, void *arg, uint32_t items)
{
        if (c->threads == 1 || items <= 1) {
                for (uint32_t i = 0; i < items; i++)
                        fn(arg, 0, i);
                return;
        }

        assert(items < LEFT_STOP && atomic_load_explicit(&c->left, memory_order_relaxed) == 0);
        c->work = fn;
        c->arg = arg;
        c->items = items;
        atomic_store_explicit(&c->done, 0, memory_order_relaxed);
        atomic_store(&c->left, items);
        if (atomic_load(&c->sleepers))
                futex_wake(&c->left, items - 1 < c->threads ? items - 1 : c->threads);

        work(c, 0);
        wait_done(c, items);
}
