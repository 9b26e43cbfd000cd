/*
 * Blocks for babble: numbers as GGUF's quantized types write them.
 *
 * Simple encoders, none of which looks for the best: a scale from the largest number, or from the
 * largest and the least, and the same for all runs of a block.  What the bits mean is that of the
 * format's makers (ggml); nothing is shared with kernels/blocks.c, which reads them.
 */
#ifndef BABBLE_BLOCKS_H
#define BABBLE_BLOCKS_H

#include <stdint.h>

#define BLOCK_NUMBERS_MAX 256u
#define BLOCK_BYTES_MAX   288u

struct block_type {
        const char *name;
        uint32_t id, numbers, bytes;
        void (*write)(const struct block_type *type, const double *numbers, uint8_t *ret_bytes);
};

/* NULL: no such type. */
const struct block_type *block_type(const char *name);

/* To the nearest half, ties to even.  What is given is not huge; of a NaN a NaN comes. */
uint16_t block_half(float f);

#endif
