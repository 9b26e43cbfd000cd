/*
 * Compiled by nvcc, which brings the runtime's header along.
 */
#include "tests/cuda/place.h"

#include <pthread.h>
#include <stdio.h>

#include "kernels/cuda/device.h"

#define STACK_BYTES    ((size_t)64 << 20)
#define SHARED_UNASKED (48u << 10)

static void must(cudaError_t error, const char *what)
{
        if (error == cudaSuccess)
                return;
        fprintf(stderr, "%s: %s (%s)\n", what, cudaGetErrorString(error), cudaGetErrorName(error));
        abort();
}

void place_run(const launch *launch, const void *kernel, const void *args)
{
        void *all_args[] = { (void *)args };

        if (!launch->x || !launch->y || !launch->z)
                return;
        if (launch->shared > SHARED_UNASKED)
                must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          (int)launch->shared),
                     "shared memory");
        must(cudaLaunchKernel(kernel, dim3(launch->x, launch->y, launch->z), dim3(launch->threads),
                              all_args, launch->shared, nullptr),
             "a launch");
        must(cudaDeviceSynchronize(), "a kernel");
}

/* ---- memory ---- */

/* What was made once is given again to who asks for as much: making takes long, and tests ask often. */
struct block {
        void *memory;
        size_t bytes;
        bool taken;
        block *next;
};
static block *blocks;

/* Where host and device cannot both look at it any time, memory of the host that the device reaches. */
static void make(block *block)
{
        int both = 0;

        must(cudaDeviceGetAttribute(&both, cudaDevAttrConcurrentManagedAccess, 0), "a GPU");
        must(both ? cudaMallocManaged(&block->memory, block->bytes)
                  : cudaHostAlloc(&block->memory, block->bytes, cudaHostAllocDefault),
             "memory");
}

void *place_new(size_t bytes)
{
        block *block = blocks;

        bytes = bytes ? bytes : 1;
        while (block && (block->taken || block->bytes != bytes))
                block = block->next;
        if (!block) {
                block = (struct block *)malloc(sizeof(*block));
                if (!block)
                        abort();
                *block = { nullptr, bytes, false, blocks };
                make(block);
                blocks = block;
        }
        block->taken = true;
        return block->memory;
}

void *place_new_zeros(size_t count, size_t bytes)
{
        return memset(place_new(count * bytes), 0, count * bytes);
}

int place_new_at(void **ret_memory, size_t align, size_t bytes)
{
        *ret_memory = place_new(bytes);
        return (size_t)*ret_memory % align ? 22 : 0;
}

void place_delete(void *memory)
{
        for (block *block = blocks; block; block = block->next)
                if (block->memory == memory)
                        block->taken = false;
}

/* ---- a stack ---- */

static void *run_test(void *)
{
        return (void *)(size_t)place_main();
}

int main(void)
{
        pthread_attr_t attributes;
        pthread_t thread;
        void *stack, *status;

        must(cudaHostAlloc(&stack, STACK_BYTES, cudaHostAllocDefault), "a stack");
        if (pthread_attr_init(&attributes) ||
            pthread_attr_setstack(&attributes, stack, STACK_BYTES) ||
            pthread_create(&thread, &attributes, run_test, nullptr) ||
            pthread_join(thread, &status)) {
                fprintf(stderr, "a thread with a stack of ours cannot be made\n");
                return 1;
        }
        return (int)(size_t)status;
}
