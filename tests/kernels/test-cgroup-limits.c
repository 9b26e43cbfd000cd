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

#include "kernels/cpu/cgroup-limits.h"

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
        return cgroup_limits_cores_of(path, folder);
}

static uint64_t memory(const char *groups)
{
        char path[256];

        write_file("groups", groups);
        snprintf(path, sizeof(path), "%s/groups", folder);
        return cgroup_limits_memory_of(path, folder);
}

static void reports_no_limit_if_no_group_sets_one(void **state)
{
        (void)state;
        assert_int_equal(cores(""), CGROUP_NO_LIMIT);
        assert_int_equal(cores("0::/\n"), CGROUP_NO_LIMIT);
        assert_int_equal(cores("0::/nowhere/at/all\n"), CGROUP_NO_LIMIT);
        assert_int_equal(cgroup_limits_cores_of("/nonexistent", folder), CGROUP_NO_LIMIT);
        write_file("free/cpu.max", "max 100000\n");
        assert_int_equal(cores("0::/free\n"), CGROUP_NO_LIMIT);
        write_file("cpu/free/cpu.cfs_quota_us", "-1\n");
        write_file("cpu/free/cpu.cfs_period_us", "100000\n");
        assert_int_equal(cores("3:cpu:/free\n"), CGROUP_NO_LIMIT);
}

static void rounds_a_fraction_of_a_core_up(void **state)
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

static void the_lowest_limit_of_all_parent_groups_counts(void **state)
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
static void finds_the_limit_of_a_container_at_the_top(void **state)
{
        (void)state;
        write_file("cpu.max", "400000 100000\n");
        assert_int_equal(cores("0::/docker/12ab\n"), 4);
        write_file("cpu.max", "max 100000\n");
}

static void reads_cpu_limits_of_cgroup_v1_by_controller(void **state)
{
        (void)state;
        write_file("cpu/box/cpu.cfs_quota_us", "250000\n");
        write_file("cpu/box/cpu.cfs_period_us", "100000\n");
        assert_int_equal(cores("5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n"), 3);
        assert_int_equal(cores("4:cpuacct,cpu:/box/within\n"), 3);
        assert_int_equal(cores("5:memory:/box\n4:cpuset:/box\n3:cpuacct:/box\n"), CGROUP_NO_LIMIT);
}

static void takes_the_lower_limit_if_v1_and_v2_are_mounted(void **state)
{
        (void)state;
        write_file("unified/box/cpu.max", "100000 100000\n");
        assert_int_equal(cores("4:cpu:/box\n0::/box\n"), 1);
        assert_int_equal(cores("4:cpu:/box\n0::/\n"), 3);
}

static void ignores_malformed_cpu_limits(void **state)
{
        static const char *const lines[] = { "0:", "0:cpu", "0::", "::", "4:cpu:box\n", "\n\n" };
        static const char *const limits[] = { "", "x y", "100000", "-5 100000", "5 0", "5 -1" };

        (void)state;
        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                assert_int_equal(cores(lines[i]), CGROUP_NO_LIMIT);
        for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
                write_file("odd/cpu.max", limits[i]);
                assert_int_equal(cores("0::/odd\n"), CGROUP_NO_LIMIT);
        }
}

static void the_lowest_memory_limit_of_all_parent_groups_counts(void **state)
{
        (void)state;
        assert_true(memory("0::/\n") == CGROUP_NO_LIMIT);
        write_file("m/memory.max", "6442450944\n");
        write_file("m/n/memory.max", "max\n");
        assert_true(memory("0::/m/n\n") == 6442450944);
        write_file("m/n/memory.max", "5368709120\n");
        assert_true(memory("0::/m/n\n") == 5368709120);
        assert_true(memory("0::/m\n") == 6442450944);
        assert_true(cores("0::/m/n\n") == CGROUP_NO_LIMIT);
}

/*
 * Above this limit the kernel slows a group down until it uses less, which makes serving
 * useless.
 */
static void memory_high_counts_as_a_limit(void **state)
{
        (void)state;
        write_file("slow/memory.max", "4000000\n");
        write_file("slow/memory.high", "3000000\n");
        assert_true(memory("0::/slow\n") == 3000000);
        write_file("slow/memory.high", "max\n");
        assert_true(memory("0::/slow\n") == 4000000);
}

static void reads_memory_limits_of_cgroup_v1_by_controller(void **state)
{
        (void)state;
        write_file("memory/box/memory.limit_in_bytes", "1073741824\n");
        write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_true(memory("4:cpu,cpuacct:/box\n5:memory:/box\n0::/\n") == 1073741824);
        assert_true(memory("5:memory:/elsewhere\n") == 9223372036854771712u);
        assert_true(memory("4:cpu:/box\n") == CGROUP_NO_LIMIT);
}

static void ignores_malformed_memory_limits(void **state)
{
        static const char *const limits[] = { "", "x", "-1", "-5 7", "max max" };

        (void)state;
        for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
                write_file("odd/memory.max", limits[i]);
                assert_true(memory("0::/odd\n") == CGROUP_NO_LIMIT);
        }
        write_file("odd/memory.max", "0\n");
        assert_int_equal(memory("0::/odd\n"), 0);
}

static void reports_at_most_the_memory_of_the_machine(void **state)
{
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), machine;

        (void)state;
        machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * page;
        assert_in_range(cgroup_limits_memory(), page, machine);
}

static void reports_at_least_one_core(void **state)
{
        (void)state;
        assert_in_range(cgroup_limits_cores(), 1, (uintmax_t)sysconf(_SC_NPROCESSORS_CONF));
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
                cmocka_unit_test(reports_no_limit_if_no_group_sets_one),
                cmocka_unit_test(rounds_a_fraction_of_a_core_up),
                cmocka_unit_test(the_lowest_limit_of_all_parent_groups_counts),
                cmocka_unit_test(finds_the_limit_of_a_container_at_the_top),
                cmocka_unit_test(reads_cpu_limits_of_cgroup_v1_by_controller),
                cmocka_unit_test(takes_the_lower_limit_if_v1_and_v2_are_mounted),
                cmocka_unit_test(ignores_malformed_cpu_limits),
                cmocka_unit_test(reports_at_least_one_core),
                cmocka_unit_test(the_lowest_memory_limit_of_all_parent_groups_counts),
                cmocka_unit_test(memory_high_counts_as_a_limit),
                cmocka_unit_test(reads_memory_limits_of_cgroup_v1_by_controller),
                cmocka_unit_test(ignores_malformed_memory_limits),
                cmocka_unit_test(reports_at_most_the_memory_of_the_machine),
        };

        return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
