#include "bench/crew-wake.h"

#include <stdatomic.h>
#include <unistd.h>

#include "daemon/sys.h"
#include "kernels/cpu/crew.h"

struct meeting {
        _Atomic uint32_t here;
        uint32_t all;
};

/* Each thread waits for the others, so that no thread can run two items. */
static void meet(void *arg, uint32_t thread, uint32_t item)
{
        struct meeting *m = arg;

        (void)thread;
        (void)item;
        atomic_fetch_add(&m->here, 1);
        while (atomic_load(&m->here) < m->all)
                ;
}

int crew_wake_measure(uint32_t threads, uint32_t rest_us, uint32_t count, uint32_t *ret_samples)
{
        struct crew *crew;
        uint64_t began;
        int r = crew_new(threads, true, &crew);

        if (r)
                return r;
        crew_settle(crew);
        for (uint32_t i = 0; i < count; i++) {
                struct meeting m = { .all = crew_threads(crew) };

                if (rest_us)
                        usleep(rest_us);
                began = sys_clock_ns();
                crew_run(crew, meet, &m, m.all);
                ret_samples[i] = (uint32_t)(sys_clock_ns() - began);
        }
        crew_free(crew);
        return 0;
}
