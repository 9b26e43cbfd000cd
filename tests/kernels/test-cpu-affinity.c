/*
 * The order in which processors are taken, on machines simulated with plain files; and a check that
 * a thread pool runs on the processors that it names.
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/cpu/affinity.h"
#include "kernels/cpu/thread-pool.h"
#include "tests/skip.h"

static char folder[] = "/tmp/samovar-places-XXXXXX";
static char machine[256];

static void make_machine(const char *name)
{
        snprintf(machine, sizeof(machine), "%s/%s", folder, name);
        assert_int_equal(mkdir(machine, 0700), 0);
}

static void add_processor(unsigned processor, const char *siblings)
{
        char path[512];
        FILE *file;
        int n = snprintf(path, sizeof(path), "%s/cpu%u", machine, processor);

        assert_int_equal(mkdir(path, 0700), 0);
        n += snprintf(path + n, sizeof(path) - (size_t)n, "/topology");
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(path + n, sizeof(path) - (size_t)n, "/thread_siblings_list");
        file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(siblings, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static cpu_set_t set_of(const unsigned *processors, size_t count)
{
        cpu_set_t set;

        CPU_ZERO(&set);
        for (size_t i = 0; i < count; i++)
                CPU_SET(processors[i], &set);
        return set;
}

#define EXPECT_ORDER(ALLOWED, CORES, ...)                                                          \
        do {                                                                                       \
                const uint16_t wanted_[] = { __VA_ARGS__ };                                        \
                cpu_set_t set_ = set_of(ALLOWED, sizeof(ALLOWED) / sizeof(*(ALLOWED)));            \
                struct affinity found_;                                                            \
                                                                                                   \
                affinity_order(&set_, machine, &found_);                                           \
                assert_int_equal(found_.cores, CORES);                                             \
                assert_int_equal(found_.count, sizeof(wanted_) / sizeof(*wanted_));                \
                assert_memory_equal(found_.processors, wanted_, sizeof(wanted_));                  \
        } while (0)

static void takes_every_core_once_before_its_second_processor(void **state)
{
        static const unsigned all[] = { 0, 1, 2, 3, 4, 5 };

        (void)state;
        make_machine("beside");
        for (unsigned i = 0; i < 6; i++)
                add_processor(i, i < 2 ? "0-1\n" : i < 4 ? "2-3\n" : "4-5\n");
        EXPECT_ORDER(all, 3, 0, 2, 4, 1, 3, 5);
        make_machine("apart");
        for (unsigned i = 0; i < 6; i++)
                add_processor(i, i % 3 == 0 ? "0,3\n" : i % 3 == 1 ? "1,4\n" : "2,5\n");
        EXPECT_ORDER(all, 3, 0, 1, 2, 3, 4, 5);
}

static void takes_only_processors_of_our_affinity_mask(void **state)
{
        static const unsigned second_ones[] = { 1, 3 }, mixed[] = { 1, 2, 3 };

        (void)state;
        make_machine("ours");
        for (unsigned i = 0; i < 4; i++)
                add_processor(i, i < 2 ? "0-1\n" : "2-3\n");
        EXPECT_ORDER(second_ones, 2, 1, 3);
        EXPECT_ORDER(mixed, 2, 1, 2, 3);
}

static void processors_of_unknown_topology_count_as_cores(void **state)
{
        static const unsigned some[] = { 0, 5, 900 };

        (void)state;
        make_machine("silent");
        add_processor(0, "");
        add_processor(5, "none\n");
        EXPECT_ORDER(some, 3, 0, 5, 900);
}

static void cores_may_have_different_numbers_of_processors(void **state)
{
        static const unsigned all[] = { 0, 1, 2, 3, 4 };

        (void)state;
        make_machine("hybrid"); /* one core of two processors, three of one */
        add_processor(0, "0-1\n");
        add_processor(1, "0-1\n");
        for (unsigned i = 2; i < 5; i++) {
                char own[8];

                snprintf(own, sizeof(own), "%u\n", i);
                add_processor(i, own);
        }
        EXPECT_ORDER(all, 4, 0, 2, 3, 4, 1);
}

static void finds_at_least_one_core_on_this_machine(void **state)
{
        struct affinity affinity;

        (void)state;
        affinity_find(&affinity);
        assert_in_range(affinity.count, 1, (uintmax_t)sysconf(_SC_NPROCESSORS_CONF));
        assert_in_range(affinity.cores, 1, affinity.count);
}

/* The threads of this process that run on one processor only, on none twice. */
static uint32_t count_pinned(void)
{
        DIR *dir = opendir("/proc/self/task");
        struct dirent *entry;
        uint32_t count = 0;
        cpu_set_t all;

        CPU_ZERO(&all);
        assert_non_null(dir);
        while ((entry = readdir(dir))) {
                cpu_set_t set, both;

                if (entry->d_name[0] == '.' ||
                    sched_getaffinity(atoi(entry->d_name), sizeof(set), &set) ||
                    CPU_COUNT(&set) != 1)
                        continue;
                CPU_AND(&both, &all, &set);
                assert_int_equal(CPU_COUNT(&both), 0);
                CPU_OR(&all, &all, &set);
                count++;
        }
        closedir(dir);
        return count;
}

static void nothing_work(void *arg, uint32_t thread, uint32_t item)
{
        (void)arg;
        (void)thread;
        (void)item;
}

static void a_thread_pool_with_one_thread_per_core_is_pinned(void **state)
{
        struct affinity affinity;
        struct thread_pool *thread_pool;
        cpu_set_t before;

        (void)state;
        affinity_find(&affinity);
        if (affinity.cores < 2)
                skip_because("two cores are needed");
        assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
        assert_int_equal(thread_pool_new(affinity.cores, true, NULL, &thread_pool), 0);
        thread_pool_adopt_caller(thread_pool);
        thread_pool_run(thread_pool, nothing_work, NULL, 1000);
        while (count_pinned() < affinity.cores) /* some may not have begun */
                usleep(1000);
        assert_int_equal(count_pinned(), affinity.cores);
        thread_pool_free(thread_pool);
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void thread_pools_of_other_sizes_are_not_pinned(void **state)
{
        struct affinity affinity;

        (void)state;
        affinity_find(&affinity);
        if (affinity.count < 2)
                skip_because("two hardware threads are needed");
        for (uint32_t pin = 0; pin < 2; pin++) {
                uint32_t threads = pin ? affinity.cores + 1 : affinity.cores;
                struct thread_pool *thread_pool;

                assert_int_equal(thread_pool_new(threads, pin, NULL, &thread_pool), 0);
                thread_pool_adopt_caller(thread_pool);
                thread_pool_run(thread_pool, nothing_work, NULL, 1000);
                usleep(20000);
                assert_int_equal(count_pinned(), 0);
                thread_pool_free(thread_pool);
        }
}

static int folder_make(void **state)
{
        (void)state;
        return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
        char command[256];

        (void)state;
        snprintf(command, sizeof(command), "rm -r %s", folder);
        return system(command);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(takes_every_core_once_before_its_second_processor),
                cmocka_unit_test(takes_only_processors_of_our_affinity_mask),
                cmocka_unit_test(processors_of_unknown_topology_count_as_cores),
                cmocka_unit_test(cores_may_have_different_numbers_of_processors),
                cmocka_unit_test(finds_at_least_one_core_on_this_machine),
                cmocka_unit_test(a_thread_pool_with_one_thread_per_core_is_pinned),
                cmocka_unit_test(thread_pools_of_other_sizes_are_not_pinned),
        };

        return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
