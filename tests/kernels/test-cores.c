/*
 * How many cores there are for us, by control groups of both versions, made of plain files.
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

#include "kernels/cpu/cores.h"

static char folder[] = "/tmp/samovar-cores-XXXXXX";

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

/* What is allowed to who is in these groups. */
static uint32_t cores(const char *groups)
{
        char path[256];

        write_file("groups", groups);
        snprintf(path, sizeof(path), "%s/groups", folder);
        return cores_of_groups(path, folder);
}

static void no_limit_is_none(void **state)
{
        (void)state;
        assert_int_equal(cores(""), UINT32_MAX);
        assert_int_equal(cores("0::/\n"), UINT32_MAX);
        assert_int_equal(cores("0::/nowhere/at/all\n"), UINT32_MAX);
        assert_int_equal(cores_of_groups("/nonexistent", folder), UINT32_MAX);
        write_file("free/cpu.max", "max 100000\n");
        assert_int_equal(cores("0::/free\n"), UINT32_MAX);
        write_file("cpu/free/cpu.cfs_quota_us", "-1\n");
        write_file("cpu/free/cpu.cfs_period_us", "100000\n");
        assert_int_equal(cores("3:cpu:/free\n"), UINT32_MAX);
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

/* It is told its name outside, but has its own folder at the top. */
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
        assert_int_equal(cores("5:memory:/box\n4:cpuset:/box\n3:cpuacct:/box\n"), UINT32_MAX);
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
                assert_int_equal(cores(lines[i]), UINT32_MAX);
        for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
                write_file("odd/cpu.max", limits[i]);
                assert_int_equal(cores("0::/odd\n"), UINT32_MAX);
        }
}

static void there_is_at_least_one(void **state)
{
        (void)state;
        assert_in_range(cores_allowed(), 1, (uintmax_t)sysconf(_SC_NPROCESSORS_CONF));
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
                cmocka_unit_test(there_is_at_least_one),
        };

        return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
