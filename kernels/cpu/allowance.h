/*
 * What this process may use of the machine: no more than there is, and no more than its control groups
 * let it have.
 *
 * Cores: of those it may run on (places.h), as many as its groups have time for.  Threads beyond
 * that are made to wait by the kernel, tens of milliseconds at a time, all of them at once: slower than
 * fewer threads.  A group's time is `cpu.max` (version 2) or `cpu.cfs_quota_us` (version 1); one and a
 * half core's time is two cores.
 *
 * Memory: what the machine has, as far as its groups may have it.  A group that has more is killed
 * (`memory.max`; `memory.limit_in_bytes`), or slowed down until it has less (`memory.high`).
 *
 * The limits of each group around count too.  What cannot be read is no limit.
 */
#ifndef KERNELS_CPU_ALLOWANCE_H
#define KERNELS_CPU_ALLOWANCE_H

#include <stdint.h>

#define ALLOWANCE_NO_LIMIT UINT64_MAX

uint32_t allowance_cores(void);  /* at least 1 */
uint64_t allowance_memory(void); /* bytes */

/* By the groups alone: `groups` is a file like /proc/self/cgroup, `mount` the folder that they are mounted in. */
uint64_t allowance_cores_of(const char *groups, const char *mount);
uint64_t allowance_memory_of(const char *groups, const char *mount);

#endif
