/*
 * Rows of weights at random, of every type that GGUF has, as fast as they can be copied: all rows
 * of one type and size of numbers are cut from a pool of blocks, anywhere.  Mean 0; the standard
 * deviation is what was asked for, of MXFP4 the nearest that a power of two gives.
 *
 * The same dice give the same bytes on every machine: an integer generator, and + - * / and sqrt
 * alone.
 */
#ifndef CONTRIB_DEV_SHAM_ROWS_H
#define CONTRIB_DEV_SHAM_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

uint64_t dice_next(uint64_t *dice);
double dice_unit(uint64_t *dice); /* from -1 to 1 */

/* Types that GGUF has, and its numbers for them. */
bool sham_has(enum row_type type);
uint32_t sham_gguf_type(enum row_type type);

/* A row, lent until the process ends; anywhere in the pool, as the dice say. */
const void *sham_row(enum row_type type, double deviation, uint32_t columns, uint64_t *dice);

#endif
