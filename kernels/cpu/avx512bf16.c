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

/* A function of its own, as in loops.inc. */
static __attribute__((noinline)) void panel_product(float *out, const uint8_t *panel,
                                                    uint32_t columns, const uint8_t *acts,
                                                    size_t stride, uint32_t rows,
                                                    uint32_t lone_ahead)
{
        passes(ROW_BF16, out, panel, columns, acts, stride, rows, lone_ahead);
}

static void product(const struct piece *p, float *out)
{
        if (p->type != ROW_BF16) {
                isa_avx512.product(p, out);
                return;
        }
        for (uint32_t i = 0; i < p->panel_count; i++)
                panel_product(out + (size_t)i * p->rows * PANEL, p->panels + i * p->panel_stride,
                              p->columns, p->acts, p->act_stride, p->rows, p->lone_ahead);
}

static void act_quantise(enum act_kind kind, void *to, const float *x, uint32_t columns)
{
        if (kind == ACT_BFLOATS)
                bfloats_make(false, to, x, columns);
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
