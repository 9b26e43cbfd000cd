/*
 * Names of tensors: Hugging Face's names become GGUF's, which we use everywhere.
 *
 *      model.layers.7.self_attn.q_proj.weight      blk.7.attn_q.weight
 *
 * The same name stands for another tensor in another family (post_attention_layernorm), so each
 * family has a naming.  A name that is not in it stays as it is; the code that looks up tensors
 * refuses unknown names.  Left out are tensors that models have and do not use, and those of the
 * other parts of a model whose text model is served (vision, sound, drafts).
 */
#ifndef DAEMON_FILES_TENSOR_NAMES_H
#define DAEMON_FILES_TENSOR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum tensor_naming {
        NAMING_LLAMA,
        NAMING_POST,  /* post_attention_layernorm is a norm of what a branch adds */
        NAMING_GEMMA, /* and there are pre_feedforward and post_feedforward norms */
        NAMING_GLM4,
        NAMING_GRANITE,
        NAMING_INTERNLM2,
        NAMING_GPT2,
        NAMING_QWEN,
        NAMING_GPTJ,
        NAMING_NEOX,
        NAMING_FALCON,
        NAMING_BLOOM,
        NAMING_STARCODER2,
        NAMING_MPT,
        NAMING_OPT,
        NAMING_PHI,
        NAMING_N,
};

/*
 * A weight's scales, X.weight_scale or X.weight_scale_inv, are renamed like the weight.  Scales for
 * rounding activations (a layer's input, its output, K and V) are left out: they are for programs
 * that round these.
 *
 * TENSOR_NAME_GROWTH_MAX: the most bytes by which a new name is longer than the old one.
 */
#define TENSOR_NAME_GROWTH_MAX 24u

/*
 * Writes the new name, NUL-ended, into ret_name, which has strlen(name) + TENSOR_NAME_GROWTH_MAX +
 * 1 bytes.  False: leave this tensor out.
 */
bool tensor_name_canonical(enum tensor_naming naming, const char *name, char *ret_name);

#endif
