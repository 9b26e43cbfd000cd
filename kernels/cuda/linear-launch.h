/*
 * Declarations that a product's kernels share with the code that launches them.  The kernels are
 * in two files, because each takes long to compile.
 */
#ifndef KERNELS_CUDA_LINEAR_LAUNCH_H
#define KERNELS_CUDA_LINEAR_LAUNCH_H

#include "kernels/cuda/linear.h"

#define WARPS_MAX 8u
#define CHUNK     64u /* the most rows of x that a block multiplies */

/*
 * Sums of a tile in memory: [row of x][row of w], padded so that lanes write to different banks.
 */
#define SUMS_WIDTH     20u
#define SUMS_OF(tiles) ((tiles)*8 * SUMS_WIDTH)

/* The number of tiles of eight rows of x that a block has: 1, 2, 4 or 8. */
static inline unsigned tiles_of(uint32_t rows_max)
{
        return rows_max <= 8 ? 1 : rows_max <= 16 ? 2 : rows_max <= 32 ? 4 : 8;
}

/* LINEAR_BFLOAT, LINEAR_INT8, LINEAR_INT4, LINEAR_E4M3. */
int linear_basic(device *device, const launch &launch, const linear_args *args);
/* LINEAR_K4, LINEAR_K5, LINEAR_K6. */
int linear_k_quants(device *device, const launch &launch, const linear_args *args);

#endif
