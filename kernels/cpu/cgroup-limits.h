/*
 * How much of the machine this process may use: no more than the machine has, and no more than
 * the process's control groups allow.
 *
 * Cores: of the cores that it may run on (affinity.h), as many as its groups have CPU time for. The
 * kernel makes threads beyond that wait, tens of milliseconds at a time, all of them at once.
 * That is slower than fewer threads. A group's time is `cpu.max` (version 2) or
 * `cpu.cfs_quota_us` (version 1); the time of one and a half cores counts as two cores.
 *
 * Memory: the machine's memory, as far as the groups allow it. A group that uses more is killed
 * (`memory.max`; `memory.limit_in_bytes`), or slowed down until it uses less (`memory.high`).
 *
 * The limits of all enclosing groups count too. A limit that cannot be read is treated as no
 * limit.
 */
#ifndef KERNELS_CPU_CGROUP_LIMITS_H
#define KERNELS_CPU_CGROUP_LIMITS_H

#include <stdint.h>

#define CGROUP_NO_LIMIT UINT64_MAX

uint32_t cgroup_limits_cores(void);  /* at least 1 */
uint64_t cgroup_limits_memory(void); /* bytes */

/*
 * The limits of the groups alone: `groups` is a file like /proc/self/cgroup, `mount` the folder
 * where the groups are mounted.
 */
uint64_t cgroup_limits_cores_of(const char *groups, const char *mount);
uint64_t cgroup_limits_memory_of(const char *groups, const char *mount);

#endif
