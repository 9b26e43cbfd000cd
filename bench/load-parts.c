#include "bench/load-parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/sys.h"
#include "kernels/cpu/thread-pool.h"
#include "kernels/memory.h"

/* a large page; small enough to stay in a cache while it is read into */
#define PIECE ((size_t)2 << 20)
#define PAGE  4096u

struct parts {
        int fd;
        uint8_t *memory; /* PIECE for each thread, or for each item */
        int result;
};

static void read_piece(void *arg, uint32_t thread, uint32_t item)
{
        struct parts *p = arg;
        ssize_t n = sys_pread(p->fd, p->memory + thread * PIECE, PIECE, item * (uint64_t)PIECE);

        if (n < 0)
                p->result = (int)n;
}

static void touch_piece(void *arg, uint32_t thread, uint32_t item)
{
        struct parts *p = arg;
        volatile uint8_t *at = p->memory + item * PIECE;

        (void)thread;
        for (size_t i = 0; i < PIECE; i += PAGE)
                at[i] = 1;
}

static uint32_t pieces(uint64_t bytes)
{
        return (uint32_t)((bytes + PIECE - 1) / PIECE);
}

static double timed(struct thread_pool *thread_pool, thread_pool_work *work, struct parts *p,
                    uint64_t bytes)
{
        uint64_t began = sys_clock_ns();

        thread_pool_run(thread_pool, work, p, pieces(bytes));
        return p->result ? p->result : (double)(sys_clock_ns() - began) / 1e9;
}

double load_parts_read(uint32_t threads, const char *path, uint64_t bytes)
{
        struct parts p = { 0 };
        struct thread_pool *thread_pool;
        double seconds;
        int r = thread_pool_new(threads, true, NULL, &thread_pool);

        if (r)
                return r;
        p.fd = sys_open(path, O_RDONLY, 0);
        p.memory = memory_new(thread_pool_threads(thread_pool), PIECE);
        p.result = p.fd < 0 ? p.fd : !p.memory ? -ENOMEM : 0;
        if (!p.result) {
                thread_pool_run(thread_pool, touch_piece, &p, thread_pool_threads(thread_pool));
                seconds = timed(thread_pool, read_piece, &p, bytes);
        } else {
                seconds = p.result;
        }
        memory_free(p.memory);
        sys_close(p.fd);
        thread_pool_free(thread_pool);
        return seconds;
}

double load_parts_memory(uint32_t threads, uint64_t bytes)
{
        struct parts p = { .memory = memory_new(pieces(bytes), PIECE) };
        struct thread_pool *thread_pool;
        double seconds;
        int r = p.memory ? thread_pool_new(threads, true, NULL, &thread_pool) : -ENOMEM;

        if (r)
                return r;
        seconds = timed(thread_pool, touch_piece, &p, bytes);
        thread_pool_free(thread_pool);
        return seconds;
}
