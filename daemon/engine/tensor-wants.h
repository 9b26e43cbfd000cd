/*
 * The tensors that a model of certain traits has: the name, the shape and the presence of each.
 */
#ifndef DAEMON_ENGINE_TENSOR_WANTS_H
#define DAEMON_ENGINE_TENSOR_WANTS_H

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
        PROJECT_IN,
        PROJECT_OUT,
        ROPE_FREQS,
        ROPE_FACTORS_SHORT,
        ROPE_FACTORS_LONG,
        LAYER_INPUT_EMBD,
        LAYER_INPUT_PROJ,
        LAYER_INPUT_NORM,
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
        INPUT_GATE,
        INPUT_PROJ,
        INPUT_POST_NORM,
        LAYER_SCALE,
        LAYER_TENSOR_N,
};

struct wanted_tensor {
        const char *name;   /* without the layer */
        const char *second; /* its name in a layer that has "attn_norm_2.weight"; NULL: the same */
        uint32_t rows, columns;
        enum presence presence;
        bool is_unused; /* some files have it although the model does not need it */
        bool is_matrix;
        bool is_of_heads;  /* norms of q or k: each head has weights of its own */
        uint32_t head_dim; /* in a layer */
};

struct wanted_tensor wanted_in_model(const struct traits *traits, enum model_tensor which);
struct wanted_tensor wanted_in_layer(const struct traits *traits, uint32_t layer,
                                     enum layer_tensor which);

#endif
