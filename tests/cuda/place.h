/*
 * Tests of single kernels, on a GPU.
 *
 * The kernel is compiled by nvcc.  The test that calls it is the same source that the emulator
 * runs: it gives kernels pointers into its heap and its stack.  So heap and stack are in memory
 * here that the GPU can access as well (place-gpu.cc).  Behind each heap block there is a zone
 * that must not be written; it is checked after each launch.  A launch has finished when it
 * returns.
 *
 * contrib/gpu/build includes this file before all others, in tests and in the kernels that they
 * launch.
 */
#ifndef TESTS_CUDA_PLACE_H
#define TESTS_CUDA_PLACE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

struct launch;

#define ON_GPU
#define DEVICE_RUN(Args) place_run
void place_run(const launch *launch, const void *kernel, const void *args);

void *place_new(size_t bytes);
void *place_new_zeros(size_t count, size_t bytes);
/* align: a power of two up to 256 */
int place_new_at(void **ret_memory, size_t align, size_t bytes);
void place_delete(void *memory);

int place_main(void); /* the test's own main() */

#ifndef __CUDACC__
#define malloc         place_new
#define calloc         place_new_zeros
#define posix_memalign place_new_at
#define free           place_delete
#define main           place_main
#endif

#endif
