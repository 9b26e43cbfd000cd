#include "kernels/cpu/cgroup-limits.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/affinity.h"

#define NO_LIMIT CGROUP_NO_LIMIT

/*
 * A resource that groups limit. `limit_1` and `limit_2` read the limit in a group's folder, of
 * version 1 or 2.
 */
struct resource {
        const char *controller, *mount_1;
        uint64_t (*limit_1)(const char *folder);
        uint64_t (*limit_2)(const char *folder);
};

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* Reads the numbers at the beginning of the file; returns how many, 2 at most. */
static int numbers_read(const char *folder, const char *name, long long *ret_one,
                        long long *ret_other)
{
        char path[PATH_MAX];
        FILE *file;
        int n;

        n = snprintf(path, sizeof(path), "%s/%s", folder, name);
        file = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
        if (!file)
                return 0;
        n = fscanf(file, "%lld %lld", ret_one, ret_other);
        fclose(file);
        return n;
}

static uint64_t cores_of_time(long long quota, long long period)
{
        return quota > 0 && period > 0 ? (uint64_t)((quota - 1) / period + 1) : NO_LIMIT;
}

/* "150000 100000", or "max 100000" */
static uint64_t cores_2(const char *folder)
{
        long long quota, period;

        return numbers_read(folder, "cpu.max", &quota, &period) == 2 ? cores_of_time(quota, period)
                                                                     : NO_LIMIT;
}

static uint64_t cores_1(const char *folder)
{
        long long quota, period, none;

        if (numbers_read(folder, "cpu.cfs_quota_us", &quota, &none) != 1 ||
            numbers_read(folder, "cpu.cfs_period_us", &period, &none) != 1)
                return NO_LIMIT;
        return cores_of_time(quota, period);
}

/* "1073741824", or "max" */
static uint64_t bytes_of(const char *folder, const char *name)
{
        long long bytes, none;

        return numbers_read(folder, name, &bytes, &none) >= 1 && bytes >= 0 ? (uint64_t)bytes
                                                                            : NO_LIMIT;
}

static uint64_t memory_2(const char *folder)
{
        return least(bytes_of(folder, "memory.max"), bytes_of(folder, "memory.high"));
}

/* A group without a limit has "9223372036854771712" there. */
static uint64_t memory_1(const char *folder)
{
        return bytes_of(folder, "memory.limit_in_bytes");
}

static const struct resource cores = { "cpu", "/cpu", cores_1, cores_2 };
static const struct resource memory = { "memory", "/memory", memory_1, memory_2 };

/*
 * The smallest limit of a group and of all groups around it. The groups are in `mount`, or in its
 * folder `under`. Within a container, a group may have the name that it has outside, and only the
 * outermost folder may exist there.
 */
static uint64_t limit_up(const char *mount, const char *under, const char *group,
                         uint64_t (*limit)(const char *folder))
{
        size_t length = strlen(group);
        uint64_t limit_all = NO_LIMIT;

        for (;;) {
                char folder[PATH_MAX];
                int n = snprintf(folder, sizeof(folder), "%s%s%.*s", mount, under, (int)length,
                                 group);

                if (n > 0 && (size_t)n < sizeof(folder))
                        limit_all = least(limit_all, limit(folder));
                if (length == 0)
                        return limit_all;
                while (group[--length] != '/')
                        ;
        }
}

static bool is_among(const char *list, const char *name)
{
        size_t length = strlen(name);

        for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
                if (!strncmp(list, name, length) && (!list[length] || list[length] == ','))
                        return true;
        return false;
}

/*
 * One line: "0::/user.slice" (version 2), "4:cpu,cpuacct:/docker/1" (version 1). If both versions
 * are in use, version 2 is mounted in a folder, "unified".
 */
static uint64_t limit_of_line(const struct resource *of, char *line, const char *mount)
{
        char *controllers = strchr(line, ':'), *group;

        group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/')
                return NO_LIMIT;
        *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        if (controllers[1])
                return is_among(controllers + 1, of->controller)
                               ? limit_up(mount, of->mount_1, group, of->limit_1)
                               : NO_LIMIT;
        return least(limit_up(mount, "", group, of->limit_2),
                     limit_up(mount, "/unified", group, of->limit_2));
}

static uint64_t limit_of(const struct resource *of, const char *groups, const char *mount)
{
        FILE *file = fopen(groups, "re");
        uint64_t limit = NO_LIMIT;
        char line[PATH_MAX];

        if (!file)
                return NO_LIMIT;
        while (fgets(line, sizeof(line), file))
                limit = least(limit, limit_of_line(of, line, mount));
        fclose(file);
        return limit;
}

uint64_t cgroup_limits_cores_of(const char *groups, const char *mount)
{
        return limit_of(&cores, groups, mount);
}

uint64_t cgroup_limits_memory_of(const char *groups, const char *mount)
{
        return limit_of(&memory, groups, mount);
}

uint32_t cgroup_limits_cores(void)
{
        struct affinity affinity;

        affinity_find(&affinity);
        return (uint32_t)least(affinity.cores,
                               limit_of(&cores, "/proc/self/cgroup", "/sys/fs/cgroup"));
}

uint64_t cgroup_limits_memory(void)
{
        uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

        return least(machine, limit_of(&memory, "/proc/self/cgroup", "/sys/fs/cgroup"));
}
