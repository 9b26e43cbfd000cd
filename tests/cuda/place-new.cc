/*
 * What containers hold, too, is memory that the GPU sees (place.h).  Not by nvcc, to which these would be a
 * kernel's as well.
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
