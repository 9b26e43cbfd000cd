/*
 * Compiled by nvcc, which includes the runtime's header.
 *
 * Memory comes from an arena: chunks of ordinary memory that are registered with the GPU, so
 * that host and GPU access it at the same addresses.  Managed memory is not used, because a
 * dozen tests that run at once wait for each other's pages.  CUDA's own pinned memory is not
 * used either: a thread's stack holds a futex, which the kernel refuses to have there.
 */
#include "tests/cuda/gpu-heap.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#include "kernels/cuda/device.h"

#define STACK_BYTES    ((size_t)64 << 20)
#define CHUNK_BYTES    ((size_t)256 << 20)
#define ALIGN          ((size_t)256)
#define ZONE_BYTES     ((size_t)64) /* behind each block, at least */
#define ZONE           0xa5
#define SHARED_UNASKED (48u << 10)

static void must(cudaError_t error, const char *what)
{
        if (error == cudaSuccess)
                return;
        fprintf(stderr, "%s: %s (%s)\n", what, cudaGetErrorString(error), cudaGetErrorName(error));
        abort();
}

/* ---- memory ---- */

struct block {
        uint8_t *memory;
        size_t bytes, padded; /* asked for; with the zone, up to the next block */
        bool taken;
        block *next;
};
static block *blocks;
static uint8_t *chunk; /* the rest of the last one */
static size_t chunk_left;

static void check_for_one_address(void)
{
        int same = 0;

        must(cudaDeviceGetAttribute(&same, cudaDevAttrCanUseHostPointerForRegisteredMem, 0),
             "to ask the GPU");
        if (same)
                return;
        fprintf(stderr, "this GPU sees registered memory at other addresses than the host\n");
        abort();
}

static uint8_t *register_new(size_t bytes)
{
        void *memory =
                mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED) {
                perror("mmap");
                abort();
        }
        must(cudaHostRegister(memory, bytes, cudaHostRegisterDefault), "to register memory");
        return (uint8_t *)memory;
}

static uint8_t *carve(size_t padded)
{
        uint8_t *memory;

        if (padded > CHUNK_BYTES)
                return register_new(padded);
        if (padded > chunk_left) {
                chunk = register_new(CHUNK_BYTES);
                chunk_left = CHUNK_BYTES;
        }
        memory = chunk;
        chunk += padded;
        chunk_left -= padded;
        return memory;
}

static void check_zone(const block *block)
{
        for (size_t i = block->bytes; i < block->bytes + ZONE_BYTES; i++)
                if (block->memory[i] != ZONE) {
                        fprintf(stderr, "byte %zu was written of a block of %zu bytes\n", i,
                                block->bytes);
                        abort();
                }
}

/* A block of another size is given again if no more than half of it stays unused. */
void *gpu_heap_new(size_t bytes)
{
        size_t padded = (bytes + ZONE_BYTES + ALIGN - 1) / ALIGN * ALIGN;
        block *block = blocks;

        while (block && (block->taken || block->padded < padded || block->padded > 2 * padded))
                block = block->next;
        if (!block) {
                block = (struct block *)malloc(sizeof(*block));
                if (!block)
                        abort();
                *block = { carve(padded), 0, padded, false, blocks };
                blocks = block;
        }
        block->taken = true;
        block->bytes = bytes;
        memset(block->memory + bytes, ZONE, ZONE_BYTES);
        return block->memory;
}

void *gpu_heap_new_zeros(size_t count, size_t bytes)
{
        return memset(gpu_heap_new(count * bytes), 0, count * bytes);
}

int gpu_heap_new_aligned(void **ret_memory, size_t align, size_t bytes)
{
        *ret_memory = gpu_heap_new(bytes);
        return (size_t)*ret_memory % align ? 22 : 0;
}

void gpu_heap_delete(void *memory)
{
        for (block *block = blocks; block; block = block->next)
                if (block->memory == memory) {
                        check_zone(block);
                        block->taken = false;
                }
}

/* ---- kernels ---- */

void gpu_heap_launch(const launch *launch, const void *kernel, const void *args)
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
        for (const block *block = blocks; block; block = block->next)
                if (block->taken)
                        check_zone(block);
}

/* ---- a stack ---- */

static void *run_test(void *)
{
        return (void *)(size_t)gpu_heap_main();
}

int main(void)
{
        pthread_attr_t attributes;
        pthread_t thread;
        void *status;

        check_for_one_address();
        if (pthread_attr_init(&attributes) ||
            pthread_attr_setstack(&attributes, register_new(STACK_BYTES), STACK_BYTES) ||
            pthread_create(&thread, &attributes, run_test, nullptr) ||
            pthread_join(thread, &status)) {
                fprintf(stderr, "a thread with a stack of ours cannot be made\n");
                return 1;
        }
        return (int)(size_t)status;
}
