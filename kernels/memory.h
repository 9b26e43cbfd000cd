/*
 * Memory of the CPU backends: zeroed, at a multiple of 64 bytes (a cache line,
 * the widest vector), and from 4 MiB up a mapping of its own at a multiple of
 * 2 MiB, offered to the kernel for huge pages.  Made at start, never in a step.
 */
#ifndef KERNELS_MEMORY_H
#define KERNELS_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMORY_ALIGN 64u

/* NULL when there is none left, or count * bytes does not fit a size; never NULL for zero bytes. */
void *memory_new(size_t count, size_t bytes);
void *memory_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
