/*
 * Names of tensors: Hugging Face's names become GGUF's, which we use everywhere.
 *
 *      model.layers.7.self_attn.q_proj.weight      blk.7.attn_q.weight
 *
 * A name that is not in the table stays as it is; the code that looks up tensors refuses unknown
 * names.  A few tensors that models have but that are not used are left out.  The table is for
 * llama and similar models.  Architectures that use the same names for other norms (gemma) are not
 * in it.
 */
#ifndef DAEMON_FILES_TENSOR_NAMES_H
#define DAEMON_FILES_TENSOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A weight's scales, X.weight_scale or X.weight_scale_inv, are renamed like the weight.  Scales for
 * rounding activations (a layer's input, its output, K and V) are left out: they are for programs
 * that round these.
 *
 * TENSOR_NAME_GROWTH_MAX: the most bytes by which a new name is longer than the old one.
 */
#define TENSOR_NAME_GROWTH_MAX 16u

/*
 * Writes the new name, NUL-ended, into ret_name, which has strlen(name) + TENSOR_NAME_GROWTH_MAX +
 * 1 bytes.  False: leave this tensor out.
 */
bool tensor_name_canonical(const char *name, char *ret_name);

#endif
