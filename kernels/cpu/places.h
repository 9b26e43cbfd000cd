/*
 * The processors that a crew's threads are put on: those this process may run on (its affinity), one of
 * each core first, then the cores' other ones.  What two threads of a core share is what a crew
 * wants most, multipliers and the first cache.
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

/* As it was when this was first asked: a thread that has its place would find no other. */
void places_find(struct places *ret_places);

/* The same of these processors; `machine` is a folder like /sys/devices/system/cpu.  One of which it does not
 * say whose core it is has a core to itself. */
void places_order(const cpu_set_t *processors, const char *machine, struct places *ret_places);

/* The calling thread runs there only; or, where that is not allowed any more, where it may. */
void places_pin(uint32_t processor);

#endif
