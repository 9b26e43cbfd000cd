/*
 * The tensors of a model, by name and shape.
 *
 * tensors_find() looks up every tensor.  So a file is either complete and of the right shapes, or
 * it is refused before anything is allocated for it.  The traits say which tensors a model has.
 *
 * Some files have one tensor for q, k and v, or for the gate and `up`.  Such a tensor is divided
 * here (tensor-parts.h), so that the rest of the engine knows the parts only.
 */
#ifndef DAEMON_ENGINE_TENSORS_H
#define DAEMON_ENGINE_TENSORS_H

#include "daemon/files/checkpoint.h"
#include "daemon/model/traits.h"

enum model_tensor {
        TOKEN_EMBD,
        TOKEN_EMBD_NORM,
        TOKEN_EMBD_NORM_BIAS,
        POSITION_EMBD,
        OUTPUT_NORM,
        OUTPUT_NORM_BIAS,
        OUTPUT,
        OUTPUT_BIAS,
        ROPE_FREQS,
        ROPE_FACTORS_SHORT,
        ROPE_FACTORS_LONG,
        MODEL_TENSOR_N,
};

enum layer_tensor {
        ATTN_NORM,
        ATTN_NORM_BIAS,
        ATTN_Q,
        ATTN_K,
        ATTN_V,
        ATTN_Q_BIAS,
        ATTN_K_BIAS,
        ATTN_V_BIAS,
        ATTN_Q_NORM,
        ATTN_Q_NORM_BIAS,
        ATTN_K_NORM,
        ATTN_K_NORM_BIAS,
        ATTN_OUTPUT,
        ATTN_OUTPUT_BIAS,
        ATTN_POST_NORM,
        ATTN_POST_NORM_BIAS,
        FFN_NORM,
        FFN_NORM_BIAS,
        FFN_GATE,
        FFN_UP,
        FFN_GATE_BIAS,
        FFN_UP_BIAS,
        FFN_DOWN,
        FFN_DOWN_BIAS,
        FFN_POST_NORM,
        FFN_POST_NORM_BIAS,
        LAYER_TENSOR_N,
};

struct layer_tensors {
        const struct tensor *at[LAYER_TENSOR_N]; /* NULL: optional and absent */
};

struct tensors {
        const struct tensor *at[MODEL_TENSOR_N]; /* OUTPUT: NULL if the embedding is the head */
        struct layer_tensors *layers;            /* traits.layers entries */
        struct tensor *parts;                    /* of tensors that were divided */
};

int tensors_find(const struct checkpoint *checkpoint, const struct traits *traits,
                 struct tensors *ret_tensors, char *why, size_t why_bytes);
void tensors_deinit(struct tensors *tensors);

#endif
