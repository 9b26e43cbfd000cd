/*
 * The order in which processors are taken, on machines simulated with plain files; and a check
 * that a crew runs on the processors that it names.
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

#include "kernels/cpu/crew.h"
#include "kernels/cpu/places.h"

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
                struct places found_;                                                              \
                                                                                                   \
                places_order(&set_, machine, &found_);                                             \
                assert_int_equal(found_.cores, CORES);                                             \
                assert_int_equal(found_.count, sizeof(wanted_) / sizeof(*wanted_));                \
                assert_memory_equal(found_.processors, wanted_, sizeof(wanted_));                  \
        } while (0)

static void each_core_is_taken_before_one_is_taken_twice(void **state)
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

static void only_processors_that_are_ours_count(void **state)
{
        static const unsigned second_ones[] = { 1, 3 }, mixed[] = { 1, 2, 3 };

        (void)state;
        make_machine("ours");
        for (unsigned i = 0; i < 4; i++)
                add_processor(i, i < 2 ? "0-1\n" : "2-3\n");
        EXPECT_ORDER(second_ones, 2, 1, 3);
        EXPECT_ORDER(mixed, 2, 1, 2, 3);
}

static void cores_that_nothing_is_known_of_are_cores(void **state)
{
        static const unsigned some[] = { 0, 5, 900 };

        (void)state;
        make_machine("silent");
        add_processor(0, "");
        add_processor(5, "none\n");
        EXPECT_ORDER(some, 3, 0, 5, 900);
}

static void kinds_of_cores_may_differ(void **state)
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

static void this_machine_has_a_place(void **state)
{
        struct places places;

        (void)state;
        places_find(&places);
        assert_in_range(places.count, 1, (uintmax_t)sysconf(_SC_NPROCESSORS_CONF));
        assert_in_range(places.cores, 1, places.count);
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

static void a_crew_with_a_thread_for_each_core_stays_there(void **state)
{
        struct places places;
        struct crew *crew;
        cpu_set_t before;

        (void)state;
        places_find(&places);
        if (places.cores < 2)
                skip();
        assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
        assert_int_equal(crew_new(places.cores, true, &crew), 0);
        crew_settle(crew);
        crew_run(crew, nothing_work, NULL, 1000);
        while (count_pinned() < places.cores) /* some may not have begun */
                usleep(1000);
        assert_int_equal(count_pinned(), places.cores);
        crew_free(crew);
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void other_crews_run_where_they_may(void **state)
{
        struct places places;

        (void)state;
        places_find(&places);
        if (places.count < 2)
                skip();
        for (uint32_t pin = 0; pin < 2; pin++) {
                uint32_t threads = pin ? places.cores + 1 : places.cores;
                struct crew *crew;

                assert_int_equal(crew_new(threads, pin, &crew), 0);
                crew_settle(crew);
                crew_run(crew, nothing_work, NULL, 1000);
                usleep(20000);
                assert_int_equal(count_pinned(), 0);
                crew_free(crew);
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
                cmocka_unit_test(each_core_is_taken_before_one_is_taken_twice),
                cmocka_unit_test(only_processors_that_are_ours_count),
                cmocka_unit_test(cores_that_nothing_is_known_of_are_cores),
                cmocka_unit_test(kinds_of_cores_may_differ),
                cmocka_unit_test(this_machine_has_a_place),
                cmocka_unit_test(a_crew_with_a_thread_for_each_core_stays_there),
                cmocka_unit_test(other_crews_run_where_they_may),
        };

        return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
