/*
 * The tensors of a llama-like model, by name and shape.
 *
 * tensors_find() looks up every tensor.  So a file is either complete and of the right shapes, or
 * it is refused before anything is allocated for it.  The traits say which optional tensors a model
 * has.
 */
#ifndef DAEMON_ENGINE_TENSORS_H
#define DAEMON_ENGINE_TENSORS_H

#include "daemon/files/checkpoint.h"
#include "daemon/model/traits.h"

enum model_tensor {
        TOKEN_EMBD,
        OUTPUT_NORM,
        OUTPUT,
        ROPE_FREQS,
        MODEL_TENSOR_N,
};

enum layer_tensor {
        ATTN_NORM,
        ATTN_Q,
        ATTN_K,
        ATTN_V,
        ATTN_Q_BIAS,
        ATTN_K_BIAS,
        ATTN_V_BIAS,
        ATTN_Q_NORM,
        ATTN_K_NORM,
        ATTN_OUTPUT,
        ATTN_OUTPUT_BIAS,
        FFN_NORM,
        FFN_GATE,
        FFN_UP,
        FFN_GATE_BIAS,
        FFN_UP_BIAS,
        FFN_DOWN,
        FFN_DOWN_BIAS,
        LAYER_TENSOR_N,
};

struct layer_tensors {
        const struct tensor *at[LAYER_TENSOR_N]; /* NULL: optional and absent */
};

struct tensors {
        const struct tensor *at[MODEL_TENSOR_N]; /* OUTPUT: NULL if the embedding is the head */
        struct layer_tensors *layers;            /* traits.layers entries */
};

int tensors_find(const struct checkpoint *checkpoint, const struct traits *traits,
                 struct tensors *ret_tensors, char *why, size_t why_bytes);
void tensors_deinit(struct tensors *tensors);

#endif
