/*
 * The thread pool runs every item once, its writes are seen, and no thread runs when there is no
 * work.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/cpu/thread-pool.h"

#define ITEMS 500u

struct job {
        uint32_t times[ITEMS]; /* plain memory: each item is one thread's, and then the caller's */
        uint32_t input, thread_max;
};

static void count_work(void *arg, uint32_t thread, uint32_t item)
{
        struct job *job = arg;

        assert_true(thread < job->thread_max);
        job->times[item] += job->input;
}

static void nap(long ms)
{
        nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static void each_item_is_done_once_and_its_writes_are_visible(void **state)
{
        (void)state;
        for (uint32_t threads = 1; threads <= 5; threads++) {
                struct job job = { .thread_max = threads };
                struct thread_pool *thread_pool;
                uint32_t expected[ITEMS] = { 0 };

                assert_int_equal(thread_pool_new(threads, false, NULL, &thread_pool), 0);
                assert_int_equal(thread_pool_threads(thread_pool), threads);
                for (uint32_t round = 0; round < 2000; round++) {
                        uint32_t items = round * 7919 % (round % 3 ? 9 : ITEMS);

                        /* long enough for the threads to fall asleep */
                        if (round % 500 == 499)
                                nap(2);
                        job.input = round;
                        thread_pool_run(thread_pool, count_work, &job, items);
                        for (uint32_t i = 0; i < items; i++)
                                expected[i] += round;
                        assert_memory_equal(job.times, expected, sizeof(expected));
                }
                assert_null(thread_pool_free(thread_pool));
        }
}

struct meeting {
        _Atomic uint32_t here;
        uint32_t met[3]; /* by item */
};

/* Each item waits for the others: done only if as many threads work at once. */
static void meet_work(void *arg, uint32_t thread, uint32_t item)
{
        struct meeting *m = arg;

        (void)thread;
        m->here++;
        for (uint32_t ms = 0; m->here < 3 && ms < 5000; ms++)
                nap(1);
        m->met[item] = m->here;
}

static void wakes_sleeping_worker_threads(void **state)
{
        struct thread_pool *thread_pool;

        (void)state;
        assert_int_equal(thread_pool_new(3, false, NULL, &thread_pool), 0);
        for (uint32_t round = 0; round < 10; round++) {
                struct meeting m = { 0 };

                nap(3); /* they fall asleep */
                thread_pool_run(thread_pool, meet_work, &m, 3);
                for (uint32_t i = 0; i < 3; i++)
                        assert_int_equal(m.met[i], 3);
        }
        thread_pool_free(thread_pool);
}

static void a_thread_pool_can_be_freed_at_any_moment(void **state)
{
        struct job job = { .input = 1, .thread_max = 4 };

        (void)state;
        for (uint32_t i = 0; i < 200; i++) {
                struct thread_pool *thread_pool;

                assert_int_equal(thread_pool_new(4, false, NULL, &thread_pool), 0);
                if (i % 4 > 0)
                        thread_pool_run(thread_pool, count_work, &job, i % 50);
                if (i % 40 == 3)
                        nap(1);
                thread_pool_free(thread_pool);
        }
        assert_null(thread_pool_free(NULL));
}

static uint64_t cpu_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void an_idle_thread_pool_uses_no_cpu_time(void **state)
{
        struct job job = { .input = 1, .thread_max = 4 };
        struct thread_pool *thread_pool;
        uint64_t before;

        (void)state;
        assert_int_equal(thread_pool_new(4, false, NULL, &thread_pool), 0);
        thread_pool_run(thread_pool, count_work, &job, ITEMS);
        before = cpu_ns();
        nap(300);
        /* three workers, 50 us of spinning each; spinning on would be hundreds of ms */
        assert_true(cpu_ns() - before < 20000000);
        thread_pool_free(thread_pool);
}

/* Whether /proc says that a thread of ours is a worker and takes no signals it could block. */
static int is_quiet_helper(const char *task)
{
        char path[300], line[200];
        unsigned long long blocked = 0;
        int named = 0;
        FILE *f;

        snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
        f = fopen(path, "r");
        assert_non_null(f);
        while (fgets(line, sizeof(line), f)) {
                if (!strncmp(line, "Name:\tsmv-cpu-", 14))
                        named = 1;
                sscanf(line, "SigBlk: %llx", &blocked);
        }
        fclose(f);
        /* SIGTERM and SIGUSR1 stand for all */
        return named && (blocked >> 14 & 1) && (blocked >> 9 & 1);
}

static void worker_threads_have_names_and_block_signals(void **state)
{
        struct thread_pool *thread_pool;
        struct dirent *entry;
        int found = 0;
        DIR *dir;

        (void)state;
        assert_int_equal(thread_pool_new(4, false, NULL, &thread_pool), 0);
        dir = opendir("/proc/self/task");
        assert_non_null(dir);
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        found += is_quiet_helper(entry->d_name);
        closedir(dir);
        assert_int_equal(found, 3);
        thread_pool_free(thread_pool);
}

static void uses_one_thread_for_each_core_by_default(void **state)
{
        struct thread_pool *thread_pool;

        (void)state;
        assert_int_equal(thread_pool_new(0, false, NULL, &thread_pool), 0);
        assert_in_range(thread_pool_threads(thread_pool), 1,
                        (uintmax_t)sysconf(_SC_NPROCESSORS_CONF));
        thread_pool_free(thread_pool);
        assert_int_equal(thread_pool_new(100000, false, NULL, &thread_pool), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_item_is_done_once_and_its_writes_are_visible),
                cmocka_unit_test(wakes_sleeping_worker_threads),
                cmocka_unit_test(a_thread_pool_can_be_freed_at_any_moment),
                cmocka_unit_test(an_idle_thread_pool_uses_no_cpu_time),
                cmocka_unit_test(worker_threads_have_names_and_block_signals),
                cmocka_unit_test(uses_one_thread_for_each_core_by_default),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
