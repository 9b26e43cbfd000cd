/*
 * What a config.json says of weights that are written in fewer bits: `quantization_config`.
 *
 * Served are numbers of eight bits, E4M3, with scales in tensors of their own (files/scales.h), in
 * the words of those who write them:
 *
 *      "fp8"                 transformers, DeepSeek, Qwen: blocks of `weight_block_size`; AutoFP8: no blocks
 *      "fbgemm_fp8"          a scale for each row
 *      "compressed-tensors"  "float-quantized" or "naive-quantized", all groups of eight bits
 *      "modelopt"            NVIDIA's, `quant_algo` "FP8": no blocks
 *
 * Which tensors are written so, and what a scale covers, their types and shapes say themselves; lists of
 * modules are not looked at.  Nor is what concerns rounding of rows, keys and values
 * (activation_scheme, input_activations, kv_cache_scheme): these are not rounded here, or as --kv says.
 */
#ifndef DAEMON_FILES_CONFIG_QUANTIZATION_H
#define DAEMON_FILES_CONFIG_QUANTIZATION_H

#include <stddef.h>

#include "daemon/files/scales.h"
#include "daemon/json.h"

/* What scales for blocks cover, 128 x 128 unless it says otherwise.  0, or -EINVAL and *why: not served. */
int config_quantization(const struct json *json, struct scale_block *ret_block, char *why,
                        size_t why_bytes);

#endif
