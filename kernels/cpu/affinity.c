#include "kernels/cpu/affinity.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * The first processor of the core of `processor`. The core's file begins with that number: "0,64"
 * or "0-1".
 */
static uint32_t core_of(const char *machine, uint32_t processor)
{
        char path[PATH_MAX];
        unsigned first;
        bool known = false;
        FILE *file;
        int n;

        n = snprintf(path, sizeof(path), "%s/cpu%u/topology/thread_siblings_list", machine,
                     processor);
        file = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
        if (file) {
                known = fscanf(file, "%u", &first) == 1 && first < AFFINITY_MAX;
                fclose(file);
        }
        return known ? first : processor;
}

void affinity_order(const cpu_set_t *processors, const char *machine, struct affinity *ret_affinity)
{
        uint16_t others[AFFINITY_MAX];
        uint32_t other_count = 0;
        cpu_set_t taken;

        CPU_ZERO(&taken);
        ret_affinity->count = 0;
        for (uint32_t i = 0; i < AFFINITY_MAX; i++) {
                uint32_t core;

                if (!CPU_ISSET(i, processors))
                        continue;
                core = core_of(machine, i);
                if (CPU_ISSET(core, &taken))
                        others[other_count++] = (uint16_t)i;
                else
                        ret_affinity->processors[ret_affinity->count++] = (uint16_t)i;
                CPU_SET(core, &taken);
        }
        ret_affinity->cores = ret_affinity->count;
        for (uint32_t i = 0; i < other_count; i++)
                ret_affinity->processors[ret_affinity->count++] = others[i];
}

static struct affinity found;

static void find_cores(void)
{
        cpu_set_t processors;

        CPU_ZERO(&processors);
        if (sched_getaffinity(0, sizeof(processors), &processors) || !CPU_COUNT(&processors))
                CPU_SET(0, &processors);
        affinity_order(&processors, "/sys/devices/system/cpu", &found);
}

void affinity_find(struct affinity *ret_affinity)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, find_cores);
        *ret_affinity = found;
}

void affinity_pin(uint32_t processor)
{
        cpu_set_t only;

        CPU_ZERO(&only);
        CPU_SET(processor, &only);
        (void)sched_setaffinity(0, sizeof(only), &only);
}
