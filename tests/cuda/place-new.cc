/*
 * Allocates the memory of containers so that the GPU can access it, too (place.h).  It is not
 * compiled by nvcc, which would take these functions for kernel code as well.
 */
#include "tests/cuda/place.h"

#include <new>

void *operator new(size_t bytes)
{
        return place_new(bytes);
}

void operator delete(void *memory) noexcept
{
        place_delete(memory);
}

void operator delete(void *memory, size_t) noexcept
{
        place_delete(memory);
}
