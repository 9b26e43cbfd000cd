/*
 * Memory of the CPU backends: zeroed, and aligned to 64 bytes (a cache line, the widest vector).
 * Allocations from 1 MiB up are in huge pages if the kernel has them. Allocations of some MiB
 * that are made one after the other lie one after the other. Memory is allocated at start, never
 * in a step; any thread may do it.
 */
#ifndef KERNELS_MEMORY_H
#define KERNELS_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMORY_ALIGN 64u

/*
 * Returns NULL if there is no memory left, or if count * bytes overflows size_t; never NULL for
 * zero bytes.
 */
void *memory_new(size_t count, size_t bytes);
void *memory_free(void *memory);

#ifdef __cplusplus
}
#endif

#endif
