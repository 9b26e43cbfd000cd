/*
 * Code that the litmus programs share.
 *
 * A litmus is a few steps of two or three threads, which may interleave in every way that C11
 * allows, and a question about the end that no run may answer with yes.
 *
 *      litmus_begin()        sets up the start
 *      litmus_thread[i]()    the steps of thread i
 *      litmus_end()          the outcome, as a small number; LITMUS_FORBIDDEN is the bad one
 *
 * Under a model checker (-DLITMUS_CHECK: GenMC) all executions of one round are explored.
 * Everywhere else this is a stress program: many rounds on real processors, which the threads begin
 * together but for some jitter, and a count of each outcome.  The other outcomes tell whether the
 * race took place: if one of them is 0, the run says little.
 *
 *      PROGRAM [ROUNDS]      exits with 1 if the forbidden outcome was seen
 */
#ifndef TESTS_MODELS_LITMUS_H
#define TESTS_MODELS_LITMUS_H

#ifndef LITMUS_CHECK
#define _GNU_SOURCE 1 /* sched_setaffinity() */
#endif

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LITMUS_FORBIDDEN 0
#define LITMUS_OUTCOMES  5

static const char *const litmus_outcome[LITMUS_OUTCOMES]; /* NULL: there are no more */
static void (*const litmus_thread[3])(void);              /* the same */
static void litmus_begin(void);
static int litmus_end(void);

#ifdef LITMUS_CHECK

#include <assert.h>

static void *litmus_one(void *arg)
{
        litmus_thread[(intptr_t)arg]();
        return NULL;
}

int main(void)
{
        pthread_t threads[3];

        litmus_begin();
        for (intptr_t i = 0; i < 3; i++)
                if (litmus_thread[i])
                        pthread_create(&threads[i], NULL, litmus_one, (void *)i);
        for (int i = 0; i < 3; i++)
                if (litmus_thread[i])
                        pthread_join(threads[i], NULL);
        assert(litmus_end() != LITMUS_FORBIDDEN);
        return 0;
}

#else

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef LITMUS_ROUNDS
#define LITMUS_ROUNDS 500000u
#endif

/* Rounds are numbered from 1: `go` is the current round, and `start_ns` is when all threads
 * begin. */
static struct {
        uint32_t rounds, threads;
        uint64_t start_ns;
        _Alignas(128) _Atomic uint32_t go;
        /* how many of the other threads have ended their part */
        _Alignas(128) _Atomic uint32_t done;
        _Alignas(128) uint32_t counts[LITMUS_OUTCOMES];
} litmus;

static uint64_t litmus_now(void)
{
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The threads start together, but for a pause whose length and order of magnitude are random. */
static void litmus_start(uint64_t *random)
{
        uint32_t spins;

        *random = *random * 6364136223846793005u + 1442695040888963407u;
        spins = (uint32_t)(*random >> 33) & ((1u << (*random >> 60) % 12) - 1);
        while (litmus_now() < litmus.start_ns)
                ;
        while (spins--)
                __asm__ volatile("");
}

/* With fewer processors than threads no thread may spin for long. */
static void litmus_pause(uint32_t *spins)
{
        if (++*spins % 4096 == 0)
                sched_yield();
}

/* Two threads that share a processor never race.  If there is only one processor, they share it. */
static void litmus_settle(int thread)
{
        cpu_set_t all, one;

        if (sched_getaffinity(0, sizeof(all), &all))
                return;
        thread %= CPU_COUNT(&all);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
                if (!CPU_ISSET(cpu, &all) || thread--)
                        continue;
                CPU_ZERO(&one);
                CPU_SET(cpu, &one);
                (void)sched_setaffinity(0, sizeof(one), &one);
        }
}

static void *litmus_one(void *arg)
{
        uint64_t random = 17 + (uint64_t)(intptr_t)arg;

        litmus_settle((int)(intptr_t)arg);
        for (uint32_t round = 1; round <= litmus.rounds; round++) {
                uint32_t spins = 0;

                while (atomic_load_explicit(&litmus.go, memory_order_acquire) != round)
                        litmus_pause(&spins);
                litmus_start(&random);
                litmus_thread[(intptr_t)arg]();
                atomic_fetch_add_explicit(&litmus.done, 1, memory_order_acq_rel);
        }
        return NULL;
}

/* The main thread is also thread 0: two processors are enough for two threads. */
static void litmus_rounds(void)
{
        uint64_t random = 5;

        for (uint32_t round = 1; round <= litmus.rounds; round++) {
                uint32_t spins = 0;

                litmus_begin();
                atomic_store_explicit(&litmus.done, 0, memory_order_relaxed);
                litmus.start_ns = litmus_now() + 1500;
                atomic_store_explicit(&litmus.go, round, memory_order_release);
                litmus_start(&random);
                litmus_thread[0]();
                while (atomic_load_explicit(&litmus.done, memory_order_acquire) !=
                       litmus.threads - 1)
                        litmus_pause(&spins);
                litmus.counts[litmus_end()]++;
        }
}

int main(int argc, char **argv)
{
        pthread_t threads[3];

        litmus.rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : LITMUS_ROUNDS;
        while (litmus.threads < 3 && litmus_thread[litmus.threads])
                litmus.threads++;
        for (intptr_t i = 1; i < litmus.threads; i++)
                if (pthread_create(&threads[i], NULL, litmus_one, (void *)i))
                        return 2;
        litmus_settle(0);
        litmus_rounds();
        for (uint32_t i = 1; i < litmus.threads; i++)
                pthread_join(threads[i], NULL);

        printf("%u rounds", litmus.rounds);
        for (int i = 0; i < LITMUS_OUTCOMES && litmus_outcome[i]; i++)
                printf(", %s: %u", litmus_outcome[i], litmus.counts[i]);
        printf("\n");
        return litmus.counts[LITMUS_FORBIDDEN] ? 1 : 0;
}

#endif

#endif
