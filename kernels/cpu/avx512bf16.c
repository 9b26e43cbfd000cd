/* avx512.c on a processor that multiplies bfloats: this file makes and multiplies only bfloats. */
#include "kernels/convert.h"
#include "kernels/cpu/isa.h"

#if defined(__x86_64__)

#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(                                                                      \
        __attribute__((target(                                                                     \
                "avx2,f16c,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16"))),       \
        apply_to = function)
#else
#pragma GCC target("avx2,f16c,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16")
#endif

#define LANES               16
#define WIDTH               2u
#define WIDTH_FEW           2u
#define WIDTH_CODES         2u
#define TILE                12u
#define TILE_CODES          6u
#define TILE_DOTS           4u
#define HALF_BY_HARDWARE    1
#define BFLOATS_BY_HARDWARE 1

#include "kernels/cpu/simd.h"
#include "kernels/cpu/int8-dot.h"

#include "kernels/cpu/product-float.h"
#include "kernels/cpu/product-codes.h"
#include "kernels/cpu/product.h"

static void product(enum row_type type, float *out, const void *panel, uint32_t columns,
                    const void *acts, size_t stride, uint32_t tokens)
{
        if (type == ROW_BF16)
                passes(ROW_BF16, out, panel, columns, acts, stride, tokens);
        else
                isa_avx512.product(type, out, panel, columns, acts, stride, tokens);
}

static void act_quantise(enum act_kind kind, void *to, const float *x, uint32_t columns)
{
        if (kind == ACT_BFLOATS)
                bfloats_make(to, x, columns);
        else
                isa_avx512.act_quantise(kind, to, x, columns);
}

#ifdef __clang__
#pragma clang attribute pop
#endif

/* Other types and the loops are those of avx512. */
const struct isa isa_avx512bf16 = {
        .name = "cpu/avx512bf16",
        .product = product,
        .act_quantise = act_quantise,
        .loops = &loops_avx512,
};

#endif
