#include "bench/thread-pool-wake.h"

#include <stdatomic.h>
#include <unistd.h>

#include "base/sys.h"
#include "kernels/cpu/thread-pool.h"

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

int thread_pool_wake_measure(uint32_t threads, uint32_t rest_us, uint32_t count,
                             uint32_t *ret_samples)
{
        struct thread_pool *thread_pool;
        uint64_t began;
        int r = thread_pool_new(threads, true, NULL, &thread_pool);

        if (r)
                return r;
        thread_pool_adopt_caller(thread_pool);
        for (uint32_t i = 0; i < count; i++) {
                struct meeting m = { .all = thread_pool_threads(thread_pool) };

                if (rest_us)
                        usleep(rest_us);
                began = sys_clock_ns();
                thread_pool_run(thread_pool, meet, &m, m.all);
                ret_samples[i] = (uint32_t)(sys_clock_ns() - began);
        }
        thread_pool_free(thread_pool);
        return 0;
}
