/*
 * What a product's kernels and who launches them agree on.  The kernels are in two files, as compilers
 * take long for each.
 */
#ifndef KERNELS_CUDA_LINEAR_LAUNCH_H
#define KERNELS_CUDA_LINEAR_LAUNCH_H

#include "kernels/cuda/linear.h"

#define WARPS_MAX 8u
#define CHUNK     64u /* rows of x that a block multiplies, at most */

/* Sums of a tile in memory: [row of x][row of w], with room so that lanes write side by side. */
#define SUMS_WIDTH     20u
#define SUMS_OF(tiles) ((tiles)*8 * SUMS_WIDTH)

/* Tiles of eight rows of x that a block has: 1, 2, 4 or 8. */
static inline unsigned tiles_of(uint32_t rows_max)
{
        return rows_max <= 8 ? 1 : rows_max <= 16 ? 2 : rows_max <= 32 ? 4 : 8;
}

/* LINEAR_BFLOAT, LINEAR_INT8, LINEAR_INT4, LINEAR_E4M3. */
int linear_numbers(device *device, const launch &launch, const linear_args *args);
/* LINEAR_K4, LINEAR_K5, LINEAR_K6. */
int linear_blocks(device *device, const launch &launch, const linear_args *args);

#endif
