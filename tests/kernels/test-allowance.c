/*
 * The processors and memory that we may use, by control groups of both versions, which are
 * simulated with plain files.
 */
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

#include "kernels/cpu/allowance.h"

static char folder[] = "/tmp/samovar-allowance-XXXXXX";

static void write_file(const char *name, const char *text)
{
        char path[256];
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')); *at++ = '/') {
                *at = 0;
                assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        }
        file = fopen(path, "w");
        assert_non_null(file);
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* The number of cores that a process in these groups may use. */
static uint64_t cores(const char *groups)
{
        char path[256];

        write_file("groups", groups);
        snprintf(path, sizeof(path), "%s/groups", folder);
        return allowance_cores_of(path, folder);
}

static uint64_t memory(const char *groups)
{
        char path[256];

        write_file("groups", groups);
        snprintf(path, sizeof(path), "%s/groups", folder);
        return allowance_memory_of(path, folder);
}

static void no_limit_is_none(void **state)
{
        (void)state;
        assert_int_equal(cores(""), ALLOWANCE_NO_LIMIT);
        assert_int_equal(cores("0::/\n"), ALLOWANCE_NO_LIMIT);
        assert_int_equal(cores("0::/nowhere/at/all\n"), ALLOWANCE_NO_LIMIT);
        assert_int_equal(allowance_cores_of("/nonexistent", folder), ALLOWANCE_NO_LIMIT);
        write_file("free/cpu.max", "max 100000\n");
        assert_int_equal(cores("0::/free\n"), ALLOWANCE_NO_LIMIT);
        write_file("cpu/free/cpu.cfs_quota_us", "-1\n");
        write_file("cpu/free/cpu.cfs_period_us", "100000\n");
        assert_int_equal(cores("3:cpu:/free\n"), ALLOWANCE_NO_LIMIT);
}

static void a_part_of_a_core_is_one(void **state)
{
        static const struct {
                const char *max;
                uint32_t cores;
        } limits[] = {
                { "1000 100000", 1 },   { "100000 100000", 1 }, { "100001 100000", 2 },
                { "150000 100000", 2 }, { "200000 100000", 2 }, { "1600000 50000", 32 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
                write_file("part/cpu.max", limits[i].max);
                assert_int_equal(cores("0::/part\n"), limits[i].cores);
        }
}

static void the_tightest_group_around_counts(void **state)
{
        (void)state;
        write_file("a/cpu.max", "300000 100000\n");
        write_file("a/b/cpu.max", "max 100000\n");
        write_file("a/b/c/cpu.max", "500000 100000\n");
        assert_int_equal(cores("0::/a/b/c\n"), 3);
        assert_int_equal(cores("0::/a/b\n"), 3);
        write_file("a/b/c/cpu.max", "200000 100000\n");
        assert_int_equal(cores("0::/a/b/c\n"), 2);
}

/* The container gets its name as seen from outside, but finds its own folder at the top. */
static void a_container_finds_its_limit(void **state)
{
        (void)state;
        write_file("cpu.max", "400000 100000\n");
        assert_int_equal(cores("0::/docker/12ab\n"), 4);
        write_file("cpu.max", "max 100000\n");
}

static void groups_of_version_one_count_by_their_controller(void **state)
{
        (void)state;
        write_file("cpu/box/cpu.cfs_quota_us", "250000\n");
        write_file("cpu/box/cpu.cfs_period_us", "100000\n");
        assert_int_equal(cores("5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n"), 3);
        assert_int_equal(cores("4:cpuacct,cpu:/box/within\n"), 3);
        assert_int_equal(cores("5:memory:/box\n4:cpuset:/box\n3:cpuacct:/box\n"),
                         ALLOWANCE_NO_LIMIT);
}

static void where_both_versions_are_mounted_both_count(void **state)
{
        (void)state;
        write_file("unified/box/cpu.max", "100000 100000\n");
        assert_int_equal(cores("4:cpu:/box\n0::/box\n"), 1);
        assert_int_equal(cores("4:cpu:/box\n0::/\n"), 3);
}

static void nonsense_is_no_limit(void **state)
{
        static const char *const lines[] = { "0:", "0:cpu", "0::", "::", "4:cpu:box\n", "\n\n" };
        static const char *const limits[] = { "", "x y", "100000", "-5 100000", "5 0", "5 -1" };

        (void)state;
        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                assert_int_equal(cores(lines[i]), ALLOWANCE_NO_LIMIT);
        for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
                write_file("odd/cpu.max", limits[i]);
                assert_int_equal(cores("0::/odd\n"), ALLOWANCE_NO_LIMIT);
        }
}

static void memory_is_what_the_tightest_group_around_may_have(void **state)
{
        (void)state;
        assert_true(memory("0::/\n") == ALLOWANCE_NO_LIMIT);
        write_file("m/memory.max", "6442450944\n");
        write_file("m/n/memory.max", "max\n");
        assert_true(memory("0::/m/n\n") == 6442450944);
        write_file("m/n/memory.max", "5368709120\n");
        assert_true(memory("0::/m/n\n") == 5368709120);
        assert_true(memory("0::/m\n") == 6442450944);
        assert_true(cores("0::/m/n\n") == ALLOWANCE_NO_LIMIT);
}

/*
 * Above this limit the kernel slows a group down until it uses less, which makes serving
 * useless.
 */
static void memory_that_slows_down_counts(void **state)
{
        (void)state;
        write_file("slow/memory.max", "4000000\n");
        write_file("slow/memory.high", "3000000\n");
        assert_true(memory("0::/slow\n") == 3000000);
        write_file("slow/memory.high", "max\n");
        assert_true(memory("0::/slow\n") == 4000000);
}

static void memory_of_version_one_counts_by_its_controller(void **state)
{
        (void)state;
        write_file("memory/box/memory.limit_in_bytes", "1073741824\n");
        write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_true(memory("4:cpu,cpuacct:/box\n5:memory:/box\n0::/\n") == 1073741824);
        assert_true(memory("5:memory:/elsewhere\n") == 9223372036854771712u);
        assert_true(memory("4:cpu:/box\n") == ALLOWANCE_NO_LIMIT);
}

static void nonsense_limits_no_memory(void **state)
{
        static const char *const limits[] = { "", "x", "-1", "-5 7", "max max" };

        (void)state;
        for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
                write_file("odd/memory.max", limits[i]);
                assert_true(memory("0::/odd\n") == ALLOWANCE_NO_LIMIT);
        }
        write_file("odd/memory.max", "0\n");
        assert_int_equal(memory("0::/odd\n"), 0);
}

static void there_is_no_more_than_the_machine_has(void **state)
{
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), machine;

        (void)state;
        machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
        assert_in_range(allowance_memory(), page, machine);
}

static void there_is_at_least_one_core(void **state)
{
        (void)state;
        assert_in_range(allowance_cores(), 1, (uintmax_t)sysconf(_SC_NPROCESSORS_CONF));
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
                cmocka_unit_test(no_limit_is_none),
                cmocka_unit_test(a_part_of_a_core_is_one),
                cmocka_unit_test(the_tightest_group_around_counts),
                cmocka_unit_test(a_container_finds_its_limit),
                cmocka_unit_test(groups_of_version_one_count_by_their_controller),
                cmocka_unit_test(where_both_versions_are_mounted_both_count),
                cmocka_unit_test(nonsense_is_no_limit),
                cmocka_unit_test(there_is_at_least_one_core),
                cmocka_unit_test(memory_is_what_the_tightest_group_around_may_have),
                cmocka_unit_test(memory_that_slows_down_counts),
                cmocka_unit_test(memory_of_version_one_counts_by_its_controller),
                cmocka_unit_test(nonsense_limits_no_memory),
                cmocka_unit_test(there_is_no_more_than_the_machine_has),
        };

        return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
