#include "daemon/engine/tensor-wants.h"

#include <assert.h>

enum extent {
        EXTENT_ONE,
        EXTENT_WIDTH,
        EXTENT_EMBED,
        EXTENT_Q,
        EXTENT_KV,
        EXTENT_Q_NORM,
        EXTENT_K_NORM,
        EXTENT_TURNS,
        EXTENT_FFN,
        EXTENT_VOCAB,
        EXTENT_POSITIONS,
        EXTENT_INPUT,
        EXTENT_INPUTS,
};

/* Tensors of a group are present or absent together. */
enum group {
        EVERY_MODEL,
        ENDS,
        PROJECTIONS,
        EMBED_NORM,
        EMBED_NORM_BIAS,
        POSITIONS,
        ROPE_TABLE,
        ROPE_TABLES,
        LAST_NORM,
        LAST_NORM_BIAS,
        PRE_NORM,
        PRE_NORM_BIAS,
        FFN_PRE_NORM,
        FFN_PRE_NORM_BIAS,
        POST_NORM,
        POST_NORM_BIAS,
        QKV_BIAS,
        OUTPUT_BIAS_GROUP,
        GATE,
        GATE_BIAS,
        FFN_BIAS,
        HEAD_BIAS,
        Q_NORM,
        Q_NORM_BIAS,
        K_NORM,
        K_NORM_BIAS,
        MATRIX_K,
        MATRIX_V,
        LAYER_INPUT,
        LAYER_SCALES,
};

struct entry {
        const char *name;
        enum extent rows, columns;
        enum group group;
        const char *second; /* its name in a layer that has "attn_norm_2.weight" */
};

static const struct entry model_entries[MODEL_TENSOR_N] = {
        [TOKEN_EMBD] = { "token_embd.weight", EXTENT_VOCAB, EXTENT_EMBED, ENDS },
        [TOKEN_EMBD_NORM] = { "token_embd_norm.weight", EXTENT_ONE, EXTENT_WIDTH, EMBED_NORM },
        [TOKEN_EMBD_NORM_BIAS] = { "token_embd_norm.bias", EXTENT_ONE, EXTENT_WIDTH,
                                   EMBED_NORM_BIAS },
        [POSITION_EMBD] = { "position_embd.weight", EXTENT_POSITIONS, EXTENT_WIDTH, POSITIONS },
        [OUTPUT_NORM] = { "output_norm.weight", EXTENT_ONE, EXTENT_WIDTH, LAST_NORM },
        [OUTPUT_NORM_BIAS] = { "output_norm.bias", EXTENT_ONE, EXTENT_WIDTH, LAST_NORM_BIAS },
        [OUTPUT] = { "output.weight", EXTENT_VOCAB, EXTENT_EMBED, ENDS },
        [PROJECT_IN] = { "project_in.weight", EXTENT_WIDTH, EXTENT_EMBED, PROJECTIONS },
        [PROJECT_OUT] = { "project_out.weight", EXTENT_EMBED, EXTENT_WIDTH, PROJECTIONS },
        [OUTPUT_BIAS] = { "output.bias", EXTENT_ONE, EXTENT_VOCAB, HEAD_BIAS },
        [ROPE_FREQS] = { "rope_freqs.weight", EXTENT_ONE, EXTENT_TURNS, ROPE_TABLE },
        [ROPE_FACTORS_SHORT] = { "rope_factors_short.weight", EXTENT_ONE, EXTENT_TURNS,
                                 ROPE_TABLES },
        [ROPE_FACTORS_LONG] = { "rope_factors_long.weight", EXTENT_ONE, EXTENT_TURNS, ROPE_TABLES },
        [LAYER_INPUT_EMBD] = { "per_layer_token_embd.weight", EXTENT_VOCAB, EXTENT_INPUTS,
                               LAYER_INPUT },
        [LAYER_INPUT_PROJ] = { "per_layer_model_proj.weight", EXTENT_INPUTS, EXTENT_WIDTH,
                               LAYER_INPUT },
        [LAYER_INPUT_NORM] = { "per_layer_proj_norm.weight", EXTENT_ONE, EXTENT_INPUT,
                               LAYER_INPUT },
};

static const struct entry layer_entries[LAYER_TENSOR_N] = {
        [ATTN_NORM] = { "attn_norm.weight", EXTENT_ONE, EXTENT_WIDTH, PRE_NORM,
                        "attn_norm_2.weight" },
        [ATTN_NORM_BIAS] = { "attn_norm.bias", EXTENT_ONE, EXTENT_WIDTH, PRE_NORM_BIAS,
                             "attn_norm_2.bias" },
        [ATTN_Q] = { "attn_q.weight", EXTENT_Q, EXTENT_WIDTH },
        [ATTN_K] = { "attn_k.weight", EXTENT_KV, EXTENT_WIDTH, MATRIX_K },
        [ATTN_V] = { "attn_v.weight", EXTENT_KV, EXTENT_WIDTH, MATRIX_V },
        [ATTN_Q_BIAS] = { "attn_q.bias", EXTENT_ONE, EXTENT_Q, QKV_BIAS },
        [ATTN_K_BIAS] = { "attn_k.bias", EXTENT_ONE, EXTENT_KV, QKV_BIAS },
        [ATTN_V_BIAS] = { "attn_v.bias", EXTENT_ONE, EXTENT_KV, QKV_BIAS },
        [ATTN_Q_NORM] = { "attn_q_norm.weight", EXTENT_ONE, EXTENT_Q_NORM, Q_NORM },
        [ATTN_Q_NORM_BIAS] = { "attn_q_norm.bias", EXTENT_ONE, EXTENT_Q_NORM, Q_NORM_BIAS },
        [ATTN_K_NORM] = { "attn_k_norm.weight", EXTENT_ONE, EXTENT_K_NORM, K_NORM },
        [ATTN_K_NORM_BIAS] = { "attn_k_norm.bias", EXTENT_ONE, EXTENT_K_NORM, K_NORM_BIAS },
        [ATTN_OUTPUT] = { "attn_output.weight", EXTENT_WIDTH, EXTENT_Q },
        [ATTN_OUTPUT_BIAS] = { "attn_output.bias", EXTENT_ONE, EXTENT_WIDTH, OUTPUT_BIAS_GROUP },
        [ATTN_POST_NORM] = { "post_attention_norm.weight", EXTENT_ONE, EXTENT_WIDTH, POST_NORM },
        [ATTN_POST_NORM_BIAS] = { "post_attention_norm.bias", EXTENT_ONE, EXTENT_WIDTH,
                                  POST_NORM_BIAS },
        [FFN_NORM] = { "ffn_norm.weight", EXTENT_ONE, EXTENT_WIDTH, FFN_PRE_NORM,
                       "attn_norm.weight" },
        [FFN_NORM_BIAS] = { "ffn_norm.bias", EXTENT_ONE, EXTENT_WIDTH, FFN_PRE_NORM_BIAS,
                            "attn_norm.bias" },
        [FFN_GATE] = { "ffn_gate.weight", EXTENT_FFN, EXTENT_WIDTH, GATE },
        [FFN_UP] = { "ffn_up.weight", EXTENT_FFN, EXTENT_WIDTH },
        [FFN_GATE_BIAS] = { "ffn_gate.bias", EXTENT_ONE, EXTENT_FFN, GATE_BIAS },
        [FFN_UP_BIAS] = { "ffn_up.bias", EXTENT_ONE, EXTENT_FFN, FFN_BIAS },
        [FFN_DOWN] = { "ffn_down.weight", EXTENT_WIDTH, EXTENT_FFN },
        [FFN_DOWN_BIAS] = { "ffn_down.bias", EXTENT_ONE, EXTENT_WIDTH, FFN_BIAS },
        [FFN_POST_NORM] = { "post_ffw_norm.weight", EXTENT_ONE, EXTENT_WIDTH, POST_NORM },
        [FFN_POST_NORM_BIAS] = { "post_ffw_norm.bias", EXTENT_ONE, EXTENT_WIDTH, POST_NORM_BIAS },
        [INPUT_GATE] = { "inp_gate.weight", EXTENT_INPUT, EXTENT_WIDTH, LAYER_INPUT },
        [INPUT_PROJ] = { "proj.weight", EXTENT_WIDTH, EXTENT_INPUT, LAYER_INPUT },
        [INPUT_POST_NORM] = { "post_norm.weight", EXTENT_ONE, EXTENT_WIDTH, LAYER_INPUT },
        [LAYER_SCALE] = { "layer_output_scale.weight", EXTENT_ONE, EXTENT_ONE, LAYER_SCALES },
};

static uint32_t extent_of(const struct traits *t, uint32_t layer, enum extent extent)
{
        const struct layer_traits *l = &t->layer[layer];
        bool one = t->qk_norm_span == SPAN_HEAD;

        switch (extent) {
        case EXTENT_ONE:
                return 1;
        case EXTENT_WIDTH:
                return t->width;
        case EXTENT_EMBED:
                return t->embed_width ? t->embed_width : t->width;
        case EXTENT_Q:
                return t->heads * l->head_dim;
        case EXTENT_KV:
                return l->kv_heads * l->head_dim;
        case EXTENT_Q_NORM:
                return one ? l->head_dim : t->heads * l->head_dim;
        case EXTENT_K_NORM:
                return one ? l->head_dim : l->kv_heads * l->head_dim;
        case EXTENT_TURNS:
                return t->ropes[0].dims / 2;
        case EXTENT_FFN:
                return l->ffn;
        case EXTENT_INPUT:
                return t->layer_input;
        case EXTENT_INPUTS:
                return t->layers * t->layer_input;
        case EXTENT_VOCAB:
                return t->vocab;
        case EXTENT_POSITIONS:
                return t->context + t->first_position;
        }
        assert(false);
        return 0;
}

static enum presence must_be(bool there)
{
        return there ? MUST_BE_THERE : NOT_THERE;
}

static enum presence norm_presence(const struct traits *t, bool there, bool bias)
{
        if (!there || !t->norm_weights)
                return NOT_THERE;
        return bias ? t->norm_bias : MUST_BE_THERE;
}

static enum presence presence_of(const struct traits *t, uint32_t layer, enum group group)
{
        bool second = (t->pre_norms && t->residual != RESIDUAL_ONE_NORM) || t->sum_norms;

        switch (group) {
        case EVERY_MODEL:
                return MUST_BE_THERE;
        case ENDS: /* find_ends() checks them together */
                return MAYBE_THERE;
        case PROJECTIONS:
                return must_be(t->embed_width > 0);
        case EMBED_NORM:
                return t->embed_norm;
        case EMBED_NORM_BIAS:
                return t->embed_norm == NOT_THERE ? NOT_THERE : t->norm_bias;
        case POSITIONS:
                return must_be(t->positions == POSITIONS_LEARNED);
        case ROPE_TABLE:
                return t->rope_table;
        case ROPE_TABLES:
                return t->rope_tables;
        case LAST_NORM:
        case LAST_NORM_BIAS:
                return norm_presence(t, !t->sum_norms, group == LAST_NORM_BIAS);
        case PRE_NORM:
        case PRE_NORM_BIAS:
                return norm_presence(t, t->pre_norms || t->sum_norms, group == PRE_NORM_BIAS);
        case FFN_PRE_NORM:
        case FFN_PRE_NORM_BIAS:
                return norm_presence(t, second, group == FFN_PRE_NORM_BIAS);
        case POST_NORM:
        case POST_NORM_BIAS:
                return norm_presence(t, t->post_norms, group == POST_NORM_BIAS);
        case QKV_BIAS:
                return t->qkv_bias;
        case OUTPUT_BIAS_GROUP:
                return t->output_bias;
        case GATE:
                return must_be(t->gated);
        case GATE_BIAS:
                return t->gated ? t->ffn_bias : NOT_THERE;
        case FFN_BIAS:
                return t->ffn_bias;
        case HEAD_BIAS:
                return t->head_bias;
        case Q_NORM:
        case K_NORM:
                return t->qk_norm;
        case Q_NORM_BIAS:
        case K_NORM_BIAS:
                return t->qk_norm_bias;
        case MATRIX_K:
                return MUST_BE_THERE;
        case MATRIX_V:
                return must_be(!t->layer[layer].v_is_k);
        case LAYER_INPUT:
                return must_be(t->layer_input > 0);
        case LAYER_SCALES:
                return t->layer_scale;
        }
        assert(false);
        return NOT_THERE;
}

/* Whether a layer has no use for this because it attends to the k and v of another layer. */
static bool is_unused(const struct layer_traits *layer, enum group group)
{
        bool is_of_kv =
                group == MATRIX_K || group == MATRIX_V || group == K_NORM || group == K_NORM_BIAS;

        return layer->kv_back && is_of_kv;
}

/* `layer` is 0 for a tensor of the model. */
static struct wanted_tensor wanted(const struct traits *t, uint32_t layer,
                                   const struct entry *entry)
{
        bool unused = is_unused(&t->layer[layer], entry->group);

        return (struct wanted_tensor){
                .name = entry->name,
                .second = entry->second,
                .rows = extent_of(t, layer, entry->rows),
                .columns = extent_of(t, layer, entry->columns),
                .presence = unused ? MAYBE_THERE : presence_of(t, layer, entry->group),
                .is_unused = unused,
                .head_dim = t->layer[layer].head_dim,
                .is_matrix = entry->rows != EXTENT_ONE,
                .is_of_heads = (entry->group == Q_NORM || entry->group == K_NORM) &&
                               t->qk_norm_span == SPAN_HEADS,
        };
}

struct wanted_tensor wanted_in_model(const struct traits *traits, enum model_tensor which)
{
        return wanted(traits, 0, &model_entries[which]);
}

struct wanted_tensor wanted_in_layer(const struct traits *traits, uint32_t layer,
                                     enum layer_tensor which)
{
        return wanted(traits, layer, &layer_entries[which]);
}
