/*
 * Unpacks blocks of GGUF's types IQ1, IQ2 and IQ3 (kernels/blocks.h). Each eight numbers, or each
 * four for IQ3, are an index into a codebook. Unpacked, each number has its own code:
 *
 *      IQ3     0 .. 7: the codebook's magnitude; 8 more: negative. The scale of IQ3_XXS is half of
 *              the file's, and its numbers are half of the codebook's
 *      IQ2     0 .. 2: the codebook's magnitude; 4 more: negative. The scale is 1/8 of the file's
 *      IQ1     0 .. 2: the codebook's number, plus 1/8; 4 more: less 1/8. The scale is 1/8 of the
 *              file's, and all numbers are eight times as large
 */
#ifndef KERNELS_BLOCKS_IQ_H
#define KERNELS_BLOCKS_IQ_H

#include "kernels/block.h"

void block_iq3_xxs(const uint8_t *from, struct block *ret_block);
void block_iq3_s(const uint8_t *from, struct block *ret_block);
void block_iq2_xxs(const uint8_t *from, struct block *ret_block);
void block_iq2_xs(const uint8_t *from, struct block *ret_block);
void block_iq2_s(const uint8_t *from, struct block *ret_block);
void block_iq1_s(const uint8_t *from, struct block *ret_block);
void block_iq1_m(const uint8_t *from, struct block *ret_block);

/* IQ1_M has the bits of its scale, a half, in four places. */
uint16_t block_iq1_m_scale(const uint8_t *from);

#endif
