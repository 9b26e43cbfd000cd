/* avx512.c on a processor with tiles: this file has only the products that they make. */
#include "kernels/cpu/isa.h"

#if defined(__x86_64__)

#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(                                                                      \
        __attribute__((target("avx2,f16c,fma,avx512f,avx512bw,avx512dq,avx512vl,"                  \
                              "avx512vnni,amx-tile,amx-int8,amx-bf16"))),                          \
        apply_to = function)
#else
#pragma GCC target(                                                                                \
        "avx2,f16c,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8,amx-bf16")
#endif

#define TILES_BASE isa_avx512

#define LANES               16
#define HALF_BY_HARDWARE    1
#define BFLOATS_BY_HARDWARE 0

#include "kernels/cpu/simd.h"
#include "kernels/cpu/int8-dot.h"

#include "kernels/cpu/product-float.h"
#include "kernels/cpu/product-codes.h"

#include "kernels/cpu/product-tiles.h"

#ifdef __clang__
#pragma clang attribute pop
#endif

const struct isa isa_amx = {
        .name = "cpu/amx",
        .product = product,
        .act_quantise = act_quantise,
        .tiled_from = tiled_from,
        .rest = release,
        .loops = &loops_avx512,
};

#endif
