/* amx.c with tiles in plain C: slow, and for tests of its bits. */
#include "kernels/convert.h"
#include "kernels/cpu/isa.h"

#define TILES_ARE_EMULATED
#define TILES_BASE isa_portable

#define LANES               4
#define HALF_BY_HARDWARE    0
#define BFLOATS_BY_HARDWARE 0

#include "kernels/cpu/simd.h"
#include "kernels/cpu/int8-dot.h"

#include "kernels/cpu/product-float.h"
#include "kernels/cpu/product-codes.h"

#include "kernels/cpu/product-tiles.h"

const struct isa isa_amx_emulated = {
        .name = "cpu/amx-emulated",
        .product = product,
        .act_quantise = act_quantise,
        .tiled_from = tiled_from,
        .rest = release,
        .loops = &loops_portable,
};
