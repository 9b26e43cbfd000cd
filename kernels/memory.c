/*
 * Each piece (an allocation) stores a note just before its bytes, which says where the piece
 * really begins. The spare bytes in front make room for the note.
 *
 *      small    [spare | note][bytes ...]                      from the heap
 *      medium   [extent][note][bytes ...][note][bytes ...]...  several in one mapping
 *      large    [spare ...| note][bytes ... at 2 MiB]          a mapping of its own; pages that are
 *                                                              never touched take no memory
 *
 * Medium pieces share mappings because huge pages are large. The last huge page of a mapping is
 * seldom complete, so the kernel uses small pages there, and reading them takes a tenth longer.
 * For a matrix of 3 MiB that would be a third of its memory.
 *
 * Addresses in an extent are never used twice, so all of it stays zero. When a piece is freed,
 * its pages go back to the kernel; when the last piece is freed, the whole extent does.
 */
#include "kernels/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEDIUM     ((size_t)1 << 20)
#define LARGE      ((size_t)32 << 20)
#define EXTENT     ((size_t)64 << 20)
#define LARGE_PAGE ((size_t)2 << 20)

struct extent {     /* at the beginning of the extent */
        void *base; /* of the extent's mapping */
        size_t mapped;
        size_t used; /* bytes, including this struct */
        uint32_t pieces;
};

struct header {
        /* The beginning of the piece's own memory; NULL if the piece is in an extent. */
        void *base;
        size_t mapped;         /* 0: the piece is from the heap */
        struct extent *extent; /* the extent of a medium piece, or NULL */
};

_Static_assert(sizeof(struct header) <= MEMORY_ALIGN,
               "the header fits before the first cache line");
_Static_assert(sizeof(struct extent) <= MEMORY_ALIGN, "so that pieces begin at cache lines");

static struct {
        pthread_mutex_t lock;
        struct extent *last; /* the extent to which pieces are added */
} extents = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *header_put(void *at, struct header header)
{
        memcpy((char *)at - sizeof(header), &header, sizeof(header));
        return at;
}

/*
 * Maps memory at a multiple of 2 MiB, with MEMORY_ALIGN bytes before it. `bytes` of it will be
 * huge pages, if the kernel has them.
 */
static void *map(size_t bytes, void **ret_base, size_t *ret_mapped)
{
        size_t mapped = bytes + LARGE_PAGE;
        uintptr_t at;
        void *base;

        base = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED)
                return NULL;
        at = ((uintptr_t)base + MEMORY_ALIGN + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
        (void)madvise((void *)at, bytes, MADV_HUGEPAGE); /* a request; not every kernel has them */
        *ret_base = base;
        *ret_mapped = mapped;
        return (void *)at;
}

static void *large_new(size_t bytes)
{
        struct header header = { 0 };
        void *at = map(bytes, &header.base, &header.mapped);

        return at ? header_put(at, header) : NULL;
}

static void *small_new(size_t bytes)
{
        size_t padded = (bytes + 2 * MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
        void *base = aligned_alloc(MEMORY_ALIGN, padded);

        if (!base)
                return NULL;
        memset(base, 0, padded);
        return header_put((char *)base + MEMORY_ALIGN, (struct header){ .base = base });
}

/* Call with the lock held. */
static struct extent *extent_with(size_t padded)
{
        struct extent *e = extents.last;
        size_t mapped;
        void *base;

        if (e && EXTENT - e->used >= padded)
                return e;
        e = map(EXTENT, &base, &mapped);
        if (!e)
                return NULL;
        *e = (struct extent){ .base = base, .mapped = mapped, .used = MEMORY_ALIGN };
        extents.last = e;
        return e;
}

static void *medium_new(size_t bytes)
{
        size_t padded = (bytes + 2 * MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
        void *at = NULL;
        struct extent *e;

        (void)pthread_mutex_lock(&extents.lock);
        e = extent_with(padded);
        if (e) {
                at = (char *)e + e->used + MEMORY_ALIGN;
                e->used += padded;
                e->pieces++;
                header_put(at, (struct header){ .mapped = padded, .extent = e });
        }
        (void)pthread_mutex_unlock(&extents.lock);
        return at;
}

/*
 * Unmaps an extent when all its pieces are freed. No pieces are added to an extent that is not
 * the last.
 */
static void medium_free(char *at, const struct header *header)
{
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t from = ((uintptr_t)at + page - 1) & ~(page - 1);
        uintptr_t to = ((uintptr_t)at - MEMORY_ALIGN + header->mapped) & ~(page - 1);
        struct extent *e = header->extent;

        (void)pthread_mutex_lock(&extents.lock);
        if (--e->pieces == 0) {
                if (extents.last == e)
                        extents.last = NULL;
                (void)munmap(e->base, e->mapped);
        } else if (to > from) {
                (void)madvise((void *)from, to - from, MADV_DONTNEED);
        }
        (void)pthread_mutex_unlock(&extents.lock);
}

void *memory_new(size_t count, size_t bytes)
{
        size_t sum, padded;

        if (__builtin_mul_overflow(count, bytes, &sum) ||
            __builtin_add_overflow(sum, 2 * LARGE_PAGE, &padded))
                return NULL;
        return sum >= LARGE ? large_new(sum) : sum >= MEDIUM ? medium_new(sum) : small_new(sum);
}

void *memory_free(void *memory)
{
        struct header header;

        if (!memory)
                return NULL;
        memcpy(&header, (char *)memory - sizeof(header), sizeof(header));
        if (header.extent)
                medium_free(memory, &header);
        else if (header.mapped)
                (void)munmap(header.base, header.mapped);
        else
                free(header.base);
        return NULL;
}
