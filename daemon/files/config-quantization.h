/*
 * Reads what a config.json says about quantised weights: `quantization_config`.
 *
 * Served are 8-bit numbers, E4M3, with scales in separate tensors (files/scales.h).  The programs
 * that write such files use these words:
 *
 *      "fp8"                 transformers, DeepSeek, Qwen: blocks of `weight_block_size`;
 *                            AutoFP8: no blocks
 *      "fbgemm_fp8"          a scale for each row
 *      "compressed-tensors"  "float-quantized" or "naive-quantized", all groups of eight bits
 *      "modelopt"            NVIDIA's, `quant_algo` "FP8": no blocks
 *
 * The types and shapes of the tensors tell which of them are quantised and what a scale covers;
 * lists of modules are not looked at.  Keys about rounding of activations, keys and values are
 * ignored (activation_scheme, input_activations, kv_cache_scheme).  Here activations are not
 * rounded, and --kv decides how keys and values are stored.
 */
#ifndef DAEMON_FILES_CONFIG_QUANTIZATION_H
#define DAEMON_FILES_CONFIG_QUANTIZATION_H

#include <stddef.h>

#include "daemon/files/scales.h"
#include "json/reader.h"

/*
 * What one scale covers when scales are for blocks; 128 x 128 unless the file says otherwise.
 * Returns 0, or -EINVAL and *why: not served.
 */
int config_quantization(const struct json_document *json, struct scale_block *ret_block, char *why,
                        size_t why_bytes);

#endif
