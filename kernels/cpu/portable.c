/* The loops for any processor: 4 lanes, which the compiler maps to the vectors that there are. */
#include "kernels/convert.h"
#include "kernels/cpu/isa.h"

#define LANES               4
#define WIDTH               2u
#define WIDTH_FEW           2u
#define WIDTH_CODES         1u
#define TILE                2u
#define TILE_CODES          1u
#define TILE_DOTS           1u
#define HALF_BY_HARDWARE    0
#define BFLOATS_BY_HARDWARE 0
#define LOOPS_ISA           isa_portable
#define LOOPS_TABLE         loops_portable
#define LOOPS_NAME          "cpu/c"

#include "kernels/cpu/loops.inc"
