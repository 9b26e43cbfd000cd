/*
 * Random rows of weights, of every type that GGUF has, as fast as they can be copied: all rows of
 * one type and size of numbers are cut from a pool of blocks, at any place.  The mean is 0; the
 * standard deviation is the given one, or for MXFP4 the nearest that a power of two gives.
 *
 * The same dice (seed) give the same bytes on every machine: the code uses an integer generator,
 * and + - * / and sqrt alone.
 */
#ifndef CONTRIB_DEV_RANDOM_WEIGHTS_ROWS_H
#define CONTRIB_DEV_RANDOM_WEIGHTS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

uint64_t dice_next(uint64_t *dice);
double dice_unit(uint64_t *dice); /* from -1 to 1 */

/* The types that GGUF has, but for NVFP4, and its numbers for them. */
bool random_weights_has(enum row_type type);
uint32_t random_weights_gguf_type(enum row_type type);

/* Returns a row, which is valid until the process ends, at a place in the pool that the dice
 * choose. */
const void *random_weights_row(enum row_type type, double deviation, uint32_t columns,
                               uint64_t *dice);

#endif
