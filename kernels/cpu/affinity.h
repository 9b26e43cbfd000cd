/*
 * The processors to which the threads of a thread pool are pinned: those on which this process may
 * run (its affinity). The first processor of each core comes first, then the cores' other
 * processors. Two threads on one core share the parts that a thread pool needs most, the
 * multipliers and the L1 cache.
 */
#ifndef KERNELS_CPU_AFFINITY_H
#define KERNELS_CPU_AFFINITY_H

#include <sched.h>
#include <stdint.h>

#define AFFINITY_MAX ((uint32_t)CPU_SETSIZE)

struct affinity {
        uint32_t count, cores; /* both at least 1 */
        uint16_t processors[AFFINITY_MAX];
};

/*
 * Returns the affinity as it was at the first call: later, a thread that is already pinned would
 * see only its own processor.
 */
void affinity_find(struct affinity *ret_affinity);

/*
 * The same for the given processors; `machine` is a folder like /sys/devices/system/cpu. A
 * processor whose core is not listed there counts as a core of its own.
 */
void affinity_order(const cpu_set_t *processors, const char *machine,
                    struct affinity *ret_affinity);

/*
 * Pins the calling thread to that processor; if that is no longer allowed, the thread runs as
 * before.
 */
void affinity_pin(uint32_t processor);

#endif
