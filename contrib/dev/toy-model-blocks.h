/*
 * Blocks for toy-model: numbers as GGUF's quantized types store them.
 *
 * These are simple encoders; none searches for the best code.  They take a scale from the largest
 * number, or from the largest and the least, and use it for all runs of a block.  The meaning of
 * the bits is that of the format's makers (ggml).  Nothing is shared with kernels/blocks.c, which
 * reads the blocks.
 */
#ifndef TOY_MODEL_BLOCKS_H
#define TOY_MODEL_BLOCKS_H

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

/* Rounds to the nearest half, ties to even.  The number must not be huge; a NaN stays a NaN. */
uint16_t block_half(float f);

#endif
