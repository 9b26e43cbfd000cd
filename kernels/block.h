/* A block of a row, unpacked: kernels/blocks.h says what it means. */
#ifndef KERNELS_BLOCK_H
#define KERNELS_BLOCK_H

#include <stdint.h>

#define BLOCK_NUMBERS_MAX 256u
#define BLOCK_RUNS_MAX    16u

/*
 * A block, unpacked. If a format has no scales of runs, they are 1; if it has no least values,
 * they are 0.
 */
struct block {
        float scale, min;
        int8_t scales[BLOCK_RUNS_MAX]; /* NVFP4: E4M3 */
        uint8_t mins[BLOCK_RUNS_MAX];
        uint8_t codes[BLOCK_NUMBERS_MAX]; /* in the row's order */
};

#endif
