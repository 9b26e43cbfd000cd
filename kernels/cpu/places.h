/*
 * The processors to which a crew's threads are pinned: those on which this process may run (its
 * affinity). The first processor of each core comes first, then the cores' other processors. Two
 * threads on one core share the parts that a crew needs most, the multipliers and the L1 cache.
 */
#ifndef KERNELS_CPU_PLACES_H
#define KERNELS_CPU_PLACES_H

#include <sched.h>
#include <stdint.h>

#define PLACES_MAX ((uint32_t)CPU_SETSIZE)

struct places {
        uint32_t count, cores; /* both at least 1 */
        uint16_t processors[PLACES_MAX];
};

/*
 * Returns the affinity as it was at the first call: later, a thread that is already pinned would
 * see only its own processor.
 */
void places_find(struct places *ret_places);

/*
 * The same for the given processors; `machine` is a folder like /sys/devices/system/cpu. A
 * processor whose core is not listed there counts as a core of its own.
 */
void places_order(const cpu_set_t *processors, const char *machine, struct places *ret_places);

/*
 * Pins the calling thread to that processor; if that is no longer allowed, the thread runs as
 * before.
 */
void places_pin(uint32_t processor);

#endif
