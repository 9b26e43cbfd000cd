/*
 * How large a model's weights would be in another quantisation.
 *
 * The recipes are those of llama.cpp's llama-quantize: which matrices get more bits, and which type
 * replaces one whose blocks do not divide a row.  The sum has matrices and norms.  Biases, rope
 * factors, and what else a file has are too small to matter.
 */
#ifndef DAEMON_START_WEIGHT_SIZES_H
#define DAEMON_START_WEIGHT_SIZES_H

#include "daemon/model/traits.h"

#define WEIGHT_RECIPES 6u

/* The name as people write it: "q4_k_m".  The recipes are in the order of their bits. */
const char *weight_recipe_name(uint32_t recipe);

/* Bytes of all weights; and how many numbers they are.  `own_head`: it is not the embedding. */
uint64_t weight_recipe_bytes(uint32_t recipe, const struct traits *traits, bool own_head);
uint64_t weight_parameters(const struct traits *traits, bool own_head);

#endif
