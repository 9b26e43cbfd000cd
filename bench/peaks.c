#include "bench/peaks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/peaks-loops.h"
#include "base/sys.h"
#include "kernels/cpu/thread-pool.h"

#define PIECE      ((size_t)2 << 20) /* bytes that a thread reads before it takes the next piece */
#define LEAST_NS   20000000u
#define ROUNDS     20000u /* of a loop of products, between two looks */
#define PIECES_MAX 64u

struct peaks {
        struct thread_pool *thread_pool;
        uint8_t *memory;
        size_t bytes;
};

int peaks_open(uint32_t threads, size_t bytes, struct peaks **ret_peaks)
{
        struct peaks *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        p->bytes = (bytes + PIECE - 1) / PIECE * PIECE;
        p->memory =
                mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p->memory == MAP_FAILED) {
                free(p);
                return -ENOMEM;
        }
        madvise(p->memory, p->bytes, MADV_HUGEPAGE);
        memset(p->memory, 0x2c, p->bytes);
        r = thread_pool_new(threads, true, NULL, &p->thread_pool);
        if (r) {
                peaks_close(p);
                return r;
        }
        *ret_peaks = p;
        return 0;
}

struct peaks *peaks_close(struct peaks *p)
{
        if (!p)
                return NULL;
        if (p->thread_pool)
                thread_pool_free(p->thread_pool);
        munmap(p->memory, p->bytes);
        free(p);
        return NULL;
}

uint32_t peaks_threads(const struct peaks *p)
{
        return thread_pool_threads(p->thread_pool);
}

static void read_piece(void *arg, uint32_t thread, uint32_t item)
{
        const struct peaks *p = arg;

        (void)thread;
        loop_read(p->memory + item * PIECE, PIECE);
}

double peaks_read(struct peaks *p)
{
        uint64_t began = sys_clock_ns(), now;
        double bytes = 0;

        do {
                thread_pool_run(p->thread_pool, read_piece, p, (uint32_t)(p->bytes / PIECE));
                bytes += (double)p->bytes;
                now = sys_clock_ns();
        } while (now - began < LEAST_NS);
        return bytes * 1e9 / (double)(now - began);
}

static void multiply_piece(void *arg, uint32_t thread, uint32_t item)
{
        const struct loop *loop = arg;

        (void)thread;
        (void)item;
        loop->run(ROUNDS);
}

double peaks_multiply(struct peaks *p, enum peak_kind kind)
{
        const struct loop *loop = loop_of(kind);
        uint64_t began = sys_clock_ns(), now;
        double operations = 0;

        do {
                thread_pool_run(p->thread_pool, multiply_piece, (void *)(uintptr_t)loop,
                                PIECES_MAX);
                operations += (double)loop->operations * ROUNDS * PIECES_MAX;
                now = sys_clock_ns();
        } while (now - began < LEAST_NS);
        return operations * 1e9 / (double)(now - began);
}

const char *peaks_name(enum peak_kind kind)
{
        return loop_of(kind)->name;
}
