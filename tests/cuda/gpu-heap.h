/*
 * Tests of single kernels, on a GPU.
 *
 * The kernel is compiled by nvcc.  The test that calls it is the same source that the emulator
 * runs: it gives kernels pointers into its heap and its stack.  So heap and stack are in memory
 * here that the GPU can access as well (gpu-heap.cc).  Behind each heap block there is a zone
 * that must not be written; it is checked after each launch.  A launch has finished when it
 * returns.
 *
 * contrib/gpu/build includes this file before all others, in tests and in the kernels that they
 * launch.
 */
#ifndef TESTS_CUDA_GPU_HEAP_H
#define TESTS_CUDA_GPU_HEAP_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

struct launch;

#define ON_GPU
#define DEVICE_RUN(Args) gpu_heap_launch
void gpu_heap_launch(const launch *launch, const void *kernel, const void *args);

void *gpu_heap_new(size_t bytes);
void *gpu_heap_new_zeros(size_t count, size_t bytes);
/* align: a power of two up to 256 */
int gpu_heap_new_aligned(void **ret_memory, size_t align, size_t bytes);
void gpu_heap_delete(void *memory);

int gpu_heap_main(void); /* the test's own main() */

#ifndef __CUDACC__
#define malloc         gpu_heap_new
#define calloc         gpu_heap_new_zeros
#define posix_memalign gpu_heap_new_aligned
#define free           gpu_heap_delete
#define main           gpu_heap_main
#endif

#endif
