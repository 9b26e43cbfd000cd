/*
 * The backend for GPUs as the daemon loads it: a library, either with the emulated device in
 * it, or for a real GPU.  CUDA_LIBRARY is the library's path.
 */
#ifndef TESTS_CUDA_BACKEND_FIXTURE_H
#define TESTS_CUDA_BACKEND_FIXTURE_H

#include <dlfcn.h>
#include <stdlib.h>

#include "kernels/cuda/device-emu.h"
#include "tests/kernels/small-model.h"

static inline const char *cuda_library(void)
{
        const char *path = getenv("CUDA_LIBRARY");

        if (!path) {
                printf("1..0 # SKIP CUDA_LIBRARY names nothing\n");
                exit(77);
        }
        return path;
}

static inline struct kernels_conf cuda_conf(void)
{
        return (struct kernels_conf){
                .isa = "auto",
                .rows_max = ROWS_MAX,
                .slots_max = SLOTS,
                .pages_max = SLOT_PAGES,
                .vocab_max = VOCAB_MAX,
                .wants_max = ROWS_MAX,
                .deterministic = true,
                .library = cuda_library(),
        };
}

/* A function of device-emu.h in the library; NULL: the library is for a real GPU. */
static inline void *if_emulated(const char *name)
{
        void *library = dlopen(cuda_library(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

        assert_non_null(library);
        return dlsym(library, name);
}

static inline void *emulated(const char *name)
{
        void *at = if_emulated(name);

        assert_non_null(at);
        return at;
}

/* Uses the driver's current context: this thread selected the device when it used the library. */
static inline void peek_on_gpu(void *to, const void *from, size_t bytes)
{
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        int (*copy)(void *to, unsigned long long from, size_t bytes);

        assert_non_null(driver);
        *(void **)&copy = dlsym(driver, "cuMemcpyDtoH_v2");
        assert_non_null(copy);
        assert_int_equal(copy(to, (unsigned long long)(uintptr_t)from, bytes), 0);
}

static inline void peek(void *to, const void *from, size_t bytes)
{
        void (*look)(void *to, const void *from, size_t bytes);

        *(void **)&look = if_emulated("device_emu_peek");
        if (!look)
                look = peek_on_gpu;
        look(to, from, bytes);
}

/* Makes the emulated device use another order each time; a GPU has its own order. */
static inline void seed_device(void)
{
        void (*seed)(uint64_t seed);

        *(void **)&seed = if_emulated("device_emu_seed");
        if (seed)
                seed(random_next());
}

static inline struct kernels *cuda_open(const struct kernels_conf *conf)
{
        struct kernels *k;
        int r;

        seed_device();
        r = kernels_open("cuda", conf, &k);
        if (r)
                fail_msg("%d: %s", r, kernels_errtext());
        return k;
}

#endif
