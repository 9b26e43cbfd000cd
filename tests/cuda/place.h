/*
 * Tests of single kernels, on a GPU.
 *
 * There the kernel is nvcc's, and the test that calls it is the one that the emulator runs, unchanged: it
 * gives kernels pointers into its heap and its stack.  So heap and stack are memory here that the GPU sees
 * as well (place-gpu.cc).  Behind each block of the heap there is a zone that nobody may write; it is
 * looked at after each launch.  A launch is over when it returns.
 *
 * contrib/gpu/build includes this before all else, in tests and in the kernels that they launch.
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
int place_new_at(void **ret_memory, size_t align, size_t bytes); /* a multiple of 256 at most */
void place_delete(void *memory);

int place_main(void); /* the test's own */

#ifndef __CUDACC__
#define malloc         place_new
#define calloc         place_new_zeros
#define posix_memalign place_new_at
#define free           place_delete
#define main           place_main
#endif

#endif
