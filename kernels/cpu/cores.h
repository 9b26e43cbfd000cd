/*
 * How many cores this process may use at once: of those it may run on (its affinity), no more than its
 * control groups have time for.  Threads beyond that are made to wait by the kernel, tens of milliseconds
 * at a time, all of them at once: slower than fewer threads.
 *
 * A group's time is `cpu.max` (version 2) or `cpu.cfs_quota_us` (version 1); that of each group around it counts
 * too.  One and a half core's time is two cores.  What cannot be read is no limit.
 */
#ifndef KERNELS_CPU_CORES_H
#define KERNELS_CPU_CORES_H

#include <stdint.h>

uint32_t cores_allowed(void); /* at least 1 */

/* By the groups alone: `groups` is a file like /proc/self/cgroup, `mount` the folder that they are mounted in;
 * UINT32_MAX: no limit. */
uint32_t cores_of_groups(const char *groups, const char *mount);

#endif
