/* The loops in AVX2: 8 lanes, 16 registers. */
#include "kernels/convert.h"
#include "kernels/cpu/isa.h"

#if defined(__x86_64__)

#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,f16c,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c,fma")
#endif

#define LANES               8
#define WIDTH               2u
#define WIDTH_FEW           2u
#define WIDTH_CODES         2u
#define TILE                6u
#define TILE_CODES          6u
#define TILE_DOTS           8u
#define HALF_BY_HARDWARE    1
#define BFLOATS_BY_HARDWARE 0
#define LOOPS_ISA           isa_avx2
#define LOOPS_TABLE         loops_avx2
#define LOOPS_NAME          "cpu/avx2"

#include "kernels/cpu/loops.inc"

#ifdef __clang__
#pragma clang attribute pop
#endif

#endif
