/*
 * The crew runs every item once, its writes are seen, and no thread runs when there is no work.
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

#include "kernels/cpu/crew.h"

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

static void each_item_is_done_once_and_seen(void **state)
{
        (void)state;
        for (uint32_t threads = 1; threads <= 5; threads++) {
                struct job job = { .thread_max = threads };
                struct crew *crew;
                uint32_t expected[ITEMS] = { 0 };

                assert_int_equal(crew_new(threads, false, &crew), 0);
                assert_int_equal(crew_threads(crew), threads);
                for (uint32_t round = 0; round < 2000; round++) {
                        uint32_t items = round * 7919 % (round % 3 ? 9 : ITEMS);

                        /* long enough for the threads to fall asleep */
                        if (round % 500 == 499)
                                nap(2);
                        job.input = round;
                        crew_run(crew, count_work, &job, items);
                        for (uint32_t i = 0; i < items; i++)
                                expected[i] += round;
                        assert_memory_equal(job.times, expected, sizeof(expected));
                }
                assert_null(crew_free(crew));
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

static void sleeping_helpers_are_woken(void **state)
{
        struct crew *crew;

        (void)state;
        assert_int_equal(crew_new(3, false, &crew), 0);
        for (uint32_t round = 0; round < 10; round++) {
                struct meeting m = { 0 };

                nap(3); /* they fall asleep */
                crew_run(crew, meet_work, &m, 3);
                for (uint32_t i = 0; i < 3; i++)
                        assert_int_equal(m.met[i], 3);
        }
        crew_free(crew);
}

static void crew_can_end_at_any_moment(void **state)
{
        struct job job = { .input = 1, .thread_max = 4 };

        (void)state;
        for (uint32_t i = 0; i < 200; i++) {
                struct crew *crew;

                assert_int_equal(crew_new(4, false, &crew), 0);
                if (i % 4 > 0)
                        crew_run(crew, count_work, &job, i % 50);
                if (i % 40 == 3)
                        nap(1);
                crew_free(crew);
        }
        assert_null(crew_free(NULL));
}

static uint64_t cpu_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void idle_crew_uses_no_time(void **state)
{
        struct job job = { .input = 1, .thread_max = 4 };
        struct crew *crew;
        uint64_t before;

        (void)state;
        assert_int_equal(crew_new(4, false, &crew), 0);
        crew_run(crew, count_work, &job, ITEMS);
        before = cpu_ns();
        nap(300);
        /* three helpers, 50 us of spinning each; spinning on would be hundreds of ms */
        assert_true(cpu_ns() - before < 20000000);
        crew_free(crew);
}

/* Whether /proc says that a thread of ours is a helper and takes no signals it could block. */
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
                if (!strncmp(line, "Name:\tsmv-crew-", 15))
                        named = 1;
                sscanf(line, "SigBlk: %llx", &blocked);
        }
        fclose(f);
        /* SIGTERM and SIGUSR1 stand for all */
        return named && (blocked >> 14 & 1) && (blocked >> 9 & 1);
}

static void helpers_are_named_and_take_no_signals(void **state)
{
        struct crew *crew;
        struct dirent *entry;
        int found = 0;
        DIR *dir;

        (void)state;
        assert_int_equal(crew_new(4, false, &crew), 0);
        dir = opendir("/proc/self/task");
        assert_non_null(dir);
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.')
                        found += is_quiet_helper(entry->d_name);
        closedir(dir);
        assert_int_equal(found, 3);
        crew_free(crew);
}

static void default_is_a_thread_for_each_core(void **state)
{
        struct crew *crew;

        (void)state;
        assert_int_equal(crew_new(0, false, &crew), 0);
        assert_in_range(crew_threads(crew), 1, (uintmax_t)sysconf(_SC_NPROCESSORS_CONF));
        crew_free(crew);
        assert_int_equal(crew_new(100000, false, &crew), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_item_is_done_once_and_seen),
                cmocka_unit_test(sleeping_helpers_are_woken),
                cmocka_unit_test(crew_can_end_at_any_moment),
                cmocka_unit_test(idle_crew_uses_no_time),
                cmocka_unit_test(helpers_are_named_and_take_no_signals),
                cmocka_unit_test(default_is_a_thread_for_each_core),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
