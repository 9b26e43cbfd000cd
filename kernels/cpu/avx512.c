/* The loops in AVX-512: 16 lanes, 32 registers. */
#include "kernels/convert.h"
#include "kernels/cpu/isa.h"

#if defined(__x86_64__)

#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(                                                                      \
        __attribute__((target("avx2,f16c,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"))),    \
        apply_to = function)
#else
#pragma GCC target("avx2,f16c,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#endif

#define LANES               16
#define WIDTH               2u
#define WIDTH_FEW           2u
#define WIDTH_CODES         2u
#define TILE                12u
#define TILE_CODES          6u
#define TILE_DOTS           4u
#define HALF_BY_HARDWARE    1
#define BFLOATS_BY_HARDWARE 0
#define LOOPS_ISA           isa_avx512
#define LOOPS_TABLE         loops_avx512
#define LOOPS_NAME          "cpu/avx512"

#include "kernels/cpu/loops.inc"

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
