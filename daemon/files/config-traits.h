/*
 * Reads traits from a Hugging Face config.json.
 *
 * The families that are served are in config-families.c, in the spellings of transformers 4
 * (rope_theta, rope_scaling) and 5 (rope_parameters).  An absent key means what it means there.
 * "text_config" describes the text model of a model with other parts.  A key that would change the
 * results in a way not served is refused by its name.  torch_dtype and keys for training only are
 * ignored.
 *
 * This file cannot tell two things.  The first is whether a text begins with bos: `bos` follows the
 * architecture's usual rule, and the tokenizer's files may know better.  The second is the full
 * list of tokens that end a stream: generation_config.json may have more.
 */
#ifndef DAEMON_FILES_CONFIG_TRAITS_H
#define DAEMON_FILES_CONFIG_TRAITS_H

#include <stddef.h>

#include "daemon/files/tensor-names.h"
#include "daemon/model/traits.h"
#include "json/reader.h"

/* The root of `json` is the file's object.  Returns 0, or -EINVAL and *why. */
int config_traits(const struct json_document *json, struct traits *ret_traits, char *why,
                  size_t why_bytes);

/* How the file's family names its tensors; as llama does if the file is refused. */
enum tensor_naming config_naming(const struct json_document *json);

#endif
