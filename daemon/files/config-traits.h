/*
 * What a Hugging Face config.json says its model is.
 *
 * Understood are LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and
 * Qwen3ForCausalLM, in the spellings of transformers 4 (rope_theta, rope_scaling)
 * and 5 (rope_parameters).  What is left out means what it means there.  A key
 * that would change the numbers in a way not served is refused by its name;
 * torch_dtype and what only training needs is not looked at.
 *
 * Two things are not to be had from this file: whether a text begins with bos
 * (the tokenizer's files may know better than the architecture's custom, which
 * is what bos says), and all the tokens that end a stream: generation_config.json
 * may have more.
 */
#ifndef DAEMON_FILES_CONFIG_TRAITS_H
#define DAEMON_FILES_CONFIG_TRAITS_H

#include <stddef.h>

#include "daemon/json.h"
#include "daemon/traits.h"

/* The root of `json` is the file's object.  0, or -EINVAL and *why. */
int config_traits(const struct json *json, struct traits *ret_traits, char *why, size_t why_bytes);

#endif
