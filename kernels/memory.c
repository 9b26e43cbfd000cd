/*
 * Just before what it hands out, each piece keeps a note of where it really
 * begins; hence the spare room in front.
 *
 *      small    [spare | note][bytes ...]              from the heap
 *      large    [spare ...| note][bytes ... at 2 MiB]  a mapping; what is not touched is not paid
 */
#include "kernels/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LARGE      ((size_t)4 << 20)
#define LARGE_PAGE ((size_t)2 << 20)

struct note {
        void *base;
        size_t mapped; /* 0: from the heap */
};

_Static_assert(sizeof(struct note) <= MEMORY_ALIGN, "the note fits before the first line");

static void *note_put(void *at, void *base, size_t mapped)
{
        struct note note = { base, mapped };

        memcpy((char *)at - sizeof(note), &note, sizeof(note));
        return at;
}

static void *memory_map(size_t bytes)
{
        size_t mapped = bytes + LARGE_PAGE;
        uintptr_t at;
        void *base;

        base = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED)
                return NULL;
        at = ((uintptr_t)base + MEMORY_ALIGN + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
        (void)madvise((void *)at, bytes, MADV_HUGEPAGE); /* a wish; not every kernel has them */
        return note_put((void *)at, base, mapped);
}

void *memory_new(size_t count, size_t bytes)
{
        size_t sum, room;
        void *base;

        if (__builtin_mul_overflow(count, bytes, &sum) ||
            __builtin_add_overflow(sum, 2 * LARGE_PAGE, &room))
                return NULL;
        if (sum >= LARGE)
                return memory_map(sum);

        room = (sum + 2 * MEMORY_ALIGN - 1) & ~(size_t)(MEMORY_ALIGN - 1);
        base = aligned_alloc(MEMORY_ALIGN, room);
        if (!base)
                return NULL;
        memset(base, 0, room);
        return note_put((char *)base + MEMORY_ALIGN, base, 0);
}

void *memory_free(void *memory)
{
        struct note note;

        if (!memory)
                return NULL;
        memcpy(&note, (char *)memory - sizeof(note), sizeof(note));
        if (note.mapped)
                (void)munmap(note.base, note.mapped);
        else
                free(note.base);
        return NULL;
}
