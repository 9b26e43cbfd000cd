#include "kernels/cpu/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NO_LIMIT UINT32_MAX

/* Returns how many numbers the file begins with: 2 at most. */
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

static uint32_t cores_of_time(long long quota, long long period)
{
        if (quota <= 0 || period <= 0 || (quota - 1) / period >= NO_LIMIT - 1)
                return NO_LIMIT;
        return (uint32_t)((quota - 1) / period + 1);
}

/* "150000 100000", or "max 100000" */
static uint32_t limit_2(const char *folder)
{
        long long quota, period;

        return numbers_read(folder, "cpu.max", &quota, &period) == 2 ? cores_of_time(quota, period)
                                                                     : NO_LIMIT;
}

static uint32_t limit_1(const char *folder)
{
        long long quota, period, none;

        if (numbers_read(folder, "cpu.cfs_quota_us", &quota, &none) != 1 ||
            numbers_read(folder, "cpu.cfs_period_us", &period, &none) != 1)
                return NO_LIMIT;
        return cores_of_time(quota, period);
}

/* The least of a group's limit and those of all that it is in; groups are in `mount`, or in its folder `under`.
 * Within a container a group may be called what it is called outside, and only the outermost be there. */
static uint32_t limit_up(const char *mount, const char *under, const char *group,
                         uint32_t (*limit)(const char *folder))
{
        size_t length = strlen(group);
        uint32_t least = NO_LIMIT;

        for (;;) {
                char folder[PATH_MAX];
                int n = snprintf(folder, sizeof(folder), "%s%s%.*s", mount, under, (int)length,
                                 group);
                uint32_t here = n > 0 && (size_t)n < sizeof(folder) ? limit(folder) : NO_LIMIT;

                least = here < least ? here : least;
                if (length == 0)
                        return least;
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

/* One line: "0::/user.slice" (version 2), "4:cpu,cpuacct:/docker/1" (version 1).  Where there are both, those of
 * version 2 are mounted in a folder. */
static uint32_t limit_of_line(char *line, const char *mount)
{
        char *controllers = strchr(line, ':'), *group;
        uint32_t one, other;

        group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || group[1] != '/')
                return NO_LIMIT;
        *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        if (controllers[1])
                return is_among(controllers + 1, "cpu") ? limit_up(mount, "/cpu", group, limit_1)
                                                        : NO_LIMIT;
        one = limit_up(mount, "", group, limit_2);
        other = limit_up(mount, "/unified", group, limit_2);
        return one < other ? one : other;
}

uint32_t cores_of_groups(const char *groups, const char *mount)
{
        FILE *file = fopen(groups, "re");
        uint32_t least = NO_LIMIT;
        char line[PATH_MAX];

        if (!file)
                return NO_LIMIT;
        while (fgets(line, sizeof(line), file)) {
                uint32_t limit = limit_of_line(line, mount);

                least = limit < least ? limit : least;
        }
        fclose(file);
        return least;
}

uint32_t cores_allowed(void)
{
        uint32_t limit = cores_of_groups("/proc/self/cgroup", "/sys/fs/cgroup"), count = 1;
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
                count = (uint32_t)CPU_COUNT(&set);
        return count < limit ? count : limit;
}
