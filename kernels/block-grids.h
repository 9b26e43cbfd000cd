/*
 * The codebooks of GGUF's types IQ1, IQ2 and IQ3: a file has indexes into them. An entry has the
 * magnitudes of eight numbers, in two bits each, or of four numbers, in four bits each; the first
 * number is in the lowest bits.
 *
 *      iq2     0, 1, 2 stand for 8, 25, 43
 *      iq1     0, 1, 2 stand for -1, 0, 1
 *      iq3_xxs 0 .. 7 stand for 4, 12, 20, 28, 36, 44, 52, 62
 *      iq3_s   0 .. 7 stand for 1, 3, 5, 7, 9, 11, 13, 15
 */
#ifndef KERNELS_BLOCK_GRIDS_H
#define KERNELS_BLOCK_GRIDS_H

#include <stdint.h>

extern const uint16_t grid_iq2_xxs[256];
extern const uint16_t grid_iq2_xs[512];
extern const uint16_t grid_iq2_s[1024];
extern const uint16_t grid_iq1[2048];
extern const uint16_t grid_iq3_xxs[256];
extern const uint16_t grid_iq3_s[512];

#endif
