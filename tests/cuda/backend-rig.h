/*
 * The backend for GPUs as the daemon has it: a library, with the emulated device in it.  CUDA_LIBRARY says
 * where.
 */
#ifndef TESTS_CUDA_BACKEND_RIG_H
#define TESTS_CUDA_BACKEND_RIG_H

#include <dlfcn.h>
#include <stdlib.h>

#include "kernels/cuda/device-emu.h"
#include "tests/kernels/world.h"

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
                .library = cuda_library(),
        };
}

/* What device-emu.h has, in the library. */
static inline void *emulated(const char *name)
{
        void *library = dlopen(cuda_library(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE), *at;

        assert_non_null(library);
        at = dlsym(library, name);
        assert_non_null(at);
        return at;
}

static inline void peek(void *to, const void *from, size_t bytes)
{
        static void (*look)(void *to, const void *from, size_t bytes);

        if (!look)
                *(void **)&look = emulated("device_emu_peek");
        look(to, from, bytes);
}

/* Another order on the device each time. */
static inline void seed_device(void)
{
        void (*seed)(uint64_t seed);

        *(void **)&seed = emulated("device_emu_seed");
        seed(random_next());
}

static inline struct kernels *cuda_open(const struct kernels_conf *conf)
{
        struct kernels *k;
        int r;

        seed_device();
        r = kernels_open("cuda", conf, &k);
        if (r)
                fail_msg("%d: %s", r, kernels_why());
        return k;
}

#endif
