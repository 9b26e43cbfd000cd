/*
 * Allocates the memory of containers so that the GPU can access it, too (gpu-heap.h).  It is not
 * compiled by nvcc, which would take these functions for kernel code as well.
 */
#include "tests/cuda/gpu-heap.h"

#include <new>

void *operator new(size_t bytes)
{
        return gpu_heap_new(bytes);
}

void operator delete(void *memory) noexcept
{
        gpu_heap_delete(memory);
}

void operator delete(void *memory, size_t) noexcept
{
        gpu_heap_delete(memory);
}
