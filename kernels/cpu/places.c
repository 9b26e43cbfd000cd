#include "kernels/cpu/places.h"

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
                known = fscanf(file, "%u", &first) == 1 && first < PLACES_MAX;
                fclose(file);
        }
        return known ? first : processor;
}

void places_order(const cpu_set_t *processors, const char *machine, struct places *ret_places)
{
        uint16_t others[PLACES_MAX];
        uint32_t other_count = 0;
        cpu_set_t taken;

        CPU_ZERO(&taken);
        ret_places->count = 0;
        for (uint32_t i = 0; i < PLACES_MAX; i++) {
                uint32_t core;

                if (!CPU_ISSET(i, processors))
                        continue;
                core = core_of(machine, i);
                if (CPU_ISSET(core, &taken))
                        others[other_count++] = (uint16_t)i;
                else
                        ret_places->processors[ret_places->count++] = (uint16_t)i;
                CPU_SET(core, &taken);
        }
        ret_places->cores = ret_places->count;
        for (uint32_t i = 0; i < other_count; i++)
                ret_places->processors[ret_places->count++] = others[i];
}

static struct places found;

static void find(void)
{
        cpu_set_t processors;

        CPU_ZERO(&processors);
        if (sched_getaffinity(0, sizeof(processors), &processors) || !CPU_COUNT(&processors))
                CPU_SET(0, &processors);
        places_order(&processors, "/sys/devices/system/cpu", &found);
}

void places_find(struct places *ret_places)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;

        pthread_once(&once, find);
        *ret_places = found;
}

void places_pin(uint32_t processor)
{
        cpu_set_t only;

        CPU_ZERO(&only);
        CPU_SET(processor, &only);
        (void)sched_setaffinity(0, sizeof(only), &only);
}
