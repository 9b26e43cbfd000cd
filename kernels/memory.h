/*
 * Memory of the CPU backends: zeroed, at a multiple of 64 bytes (a cache line,
 * the widest vector), and from 1 MiB up in huge pages where the kernel has them.  Pieces of some
 * MiB that are made one after the other lie one after the other.  Made at start, never in a step; any thread may.
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
