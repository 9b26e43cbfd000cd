/*
 * Picks with edits, a mask, or the cuts that kernels/cuts.h has beyond top_k, top_p and min_p. They
 * work on a copy of the row, whose candidates are sorted: those that top_k keeps, or all.
 */
#ifndef KERNELS_CPU_PICK_MORE_H
#define KERNELS_CPU_PICK_MORE_H

#include "kernels/cpu/top-p.h"

/* For a row of finite logits. *ret_surprise: 0 without mirostat. Overwrites s->group_maxima. */
uint32_t pick_more(const struct candidates *row, const struct pick *pick, float *ret_surprise);

#endif
