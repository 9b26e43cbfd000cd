#include "daemon/files/gguf-families.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/files/gguf.h"

static const double none = 0, one = 1;

/* ---- what one architecture alone has ---- */

static double scale_of(struct trait_reader *rd, const char *key)
{
        return trait_reader_real(rd, key, SCALE_MIN, SCALE_MAX, &one);
}

static void attend_scale_read(struct trait_reader *rd, struct traits *t)
{
        t->attend_scale = (float)trait_reader_real(rd, ".attention.scale", 0, SCALE_MAX, &none);
}

/* No layer rotates q and k. */
static void no_ropes(struct traits *t)
{
        for (uint32_t i = 0; i < t->layers; i++)
                t->layer[i].rope = TRAITS_NO_ROPE;
}

static void granite_read(struct trait_reader *rd, struct traits *t)
{
        t->embed_scale = (float)scale_of(rd, ".embedding_scale");
        t->residual_scale = (float)scale_of(rd, ".residual_scale");
        t->head_scale = (float)(1 / scale_of(rd, ".logit_scale"));
        attend_scale_read(rd, t);
        if (!trait_reader_flag(rd, ".rope.scaling.finetuned", true))
                no_ropes(t);
}

/* Ministral 3: cos and sin are divided by what the log multiplier gives. */
static void mistral3_read(struct trait_reader *rd, struct traits *t)
{
        static const uint32_t trained = 8192;
        struct rope_shape *rope = &t->ropes[0];
        double all =
                trait_reader_real(rd, ".rope.scaling.yarn_log_multiplier", 0, ATTENTION_MAX, &none);
        uint32_t length;

        if (rope->scaling == ROPE_YARN && all > 0)
                rope->attention /= rope_attention(rope->factor, all);
        t->query_beta =
                (float)trait_reader_real(rd, ".attention.temperature_scale", 0, SCALE_MAX, &none);
        length = trait_reader_whole(rd, ".rope.scaling.original_context_length", 1, CONTEXT_MAX,
                                    &trained);
        length = trait_reader_whole(rd, ".attention.temperature_length", 1, CONTEXT_MAX, &length);
        t->query_length = t->query_beta > 0 ? length : 0;
}

static void gemma_read(struct trait_reader *rd, struct traits *t)
{
        (void)rd;
        t->embed_scale = sqrtf((float)t->width);
}

/* The largest model of each scales by its width, not by the size of its heads. */
static void gemma_scale(struct traits *t, uint32_t largest)
{
        double dim = t->layers == largest ? (double)t->width / t->heads : t->head_dim;

        t->embed_scale = sqrtf((float)t->width);
        t->attend_scale = (float)(1 / sqrt(dim));
}

static void gemma2_read(struct trait_reader *rd, struct traits *t)
{
        static const double attend = 50, head = 30;

        gemma_scale(t, 46);
        t->attend_softcap =
                (float)trait_reader_real(rd, ".attn_logit_softcapping", 0, SCALE_MAX, &attend);
        t->head_softcap =
                (float)trait_reader_real(rd, ".final_logit_softcapping", 0, SCALE_MAX, &head);
}

/* Layers with a window rotate by another base, and nothing stretches that. */
static void gemma3_read(struct trait_reader *rd, struct traits *t)
{
        static const double local = 10000;

        gemma_scale(t, 62);
        t->head_softcap =
                (float)trait_reader_real(rd, ".final_logit_softcapping", 0, SCALE_MAX, &none);
        t->ropes[1] = (struct rope_shape){
                .dims = t->ropes[0].dims,
                .pairing = t->ropes[0].pairing,
                .attention = 1,
                .base = trait_reader_real(rd, ".rope.freq_base_swa", 1, ROPE_BASE_MAX, &local),
        };
        t->rope_count = 2;
        for (uint32_t i = 0; i < t->layers; i++)
                t->layer[i].rope = t->layer[i].window > 0;
}

/* Whether v is k, only the tensors tell. */
static void gemma4_values(struct trait_reader *rd, struct traits *t)
{
        char name[64];

        for (uint32_t i = 0; i < t->layers; i++) {
                bool whole;

                snprintf(name, sizeof(name), "blk.%" PRIu32 ".attn_qkv.weight", i);
                whole = gguf_tensor(rd->from, name);
                snprintf(name, sizeof(name), "blk.%" PRIu32 ".attn_v.weight", i);
                t->layer[i].v_is_k = !whole && !gguf_tensor(rd->from, name);
        }
}

/* Layers with a window have other heads, and rotate them by another base. */
static void gemma4_read(struct trait_reader *rd, struct traits *t)
{
        static const uint32_t no_layers = 0;
        static const double local = 10000;
        uint32_t head_dim =
                trait_reader_whole(rd, ".attention.key_length_swa", 2, HEAD_DIM_MAX, &t->head_dim);
        uint32_t shared =
                trait_reader_whole(rd, ".attention.shared_kv_layers", 0, t->layers - 1, &no_layers);

        (void)trait_reader_whole(rd, ".attention.value_length_swa", head_dim, head_dim, &head_dim);
        t->embed_scale = sqrtf((float)t->width);
        t->attend_scale = 1;
        t->head_softcap =
                (float)trait_reader_real(rd, ".final_logit_softcapping", 0, SCALE_MAX, &none);
        t->v_norm = true;
        t->layer_scale = MAYBE_THERE;
        t->layer_input = trait_reader_whole(rd, ".embedding_length_per_layer_input", 0,
                                            WIDTH_MAX / t->layers, &no_layers);
        t->ropes[1] = (struct rope_shape){
                .dims = trait_reader_whole(rd, ".rope.dimension_count_swa", 0, head_dim, &head_dim),
                .pairing = t->ropes[0].pairing,
                .attention = 1,
                .base = trait_reader_real(rd, ".rope.freq_base_swa", 1, ROPE_BASE_MAX, &local),
        };
        t->rope_count = 2;
        for (uint32_t i = 0; i < t->layers; i++) {
                t->layer[i].rope = t->layer[i].window > 0;
                if (t->layer[i].window)
                        t->layer[i].head_dim = head_dim;
        }
        gemma4_values(rd, t);
        traits_share_kv(rd, t, shared);
}

/* OLMo 3 has windows; its layers with a window are not stretched. */
static void olmo2_read(struct trait_reader *rd, struct traits *t)
{
        (void)rd;
        t->ropes[1] = t->ropes[0];
        t->ropes[1].scaling = ROPE_PLAIN;
        t->ropes[1].attention = 1;
        t->rope_count = 2;
        for (uint32_t i = 0; i < t->layers; i++)
                t->layer[i].rope = t->layer[i].window > 0;
}

static void olmo_read(struct trait_reader *rd, struct traits *t)
{
        t->qkv_clip = (float)trait_reader_real(rd, ".attention.clamp_kqv", 0, SCALE_MAX, &none);
}

/* If any layer has a window, the others do not rotate. */
static void ropes_with_windows(struct trait_reader *rd, struct traits *t)
{
        bool windows = false;

        (void)rd;
        for (uint32_t i = 0; i < t->layers; i++)
                windows = windows || t->layer[i].window;
        for (uint32_t i = 0; i < t->layers; i++)
                if (windows && !t->layer[i].window)
                        t->layer[i].rope = TRAITS_NO_ROPE;
}

static void smollm3_read(struct trait_reader *rd, struct traits *t)
{
        (void)rd;
        for (uint32_t i = 3; i < t->layers; i += 4)
                t->layer[i].rope = TRAITS_NO_ROPE;
}

/* The tensors alone tell of them. */
static void norms_of_heads_read(struct trait_reader *rd, struct traits *t)
{
        if (!gguf_tensor(rd->from, "blk.0.attn_q_norm.weight"))
                return;
        t->qk_norm = MUST_BE_THERE;
        t->qk_norm_kind = NORM_LAYER;
        t->qk_norm_span = SPAN_HEADS;
}

static void cohere_read(struct trait_reader *rd, struct traits *t)
{
        t->head_scale = (float)scale_of(rd, ".logit_scale");
        norms_of_heads_read(rd, t);
}

static void cohere2_read(struct trait_reader *rd, struct traits *t)
{
        t->head_scale = (float)scale_of(rd, ".logit_scale");
        ropes_with_windows(rd, t);
}

/* Its own norm of the second branch tells that the branches follow each other. */
static void stablelm_read(struct trait_reader *rd, struct traits *t)
{
        (void)trait_reader_flag(rd, ".use_parallel_residual", false);
        if (!gguf_tensor(rd->from, "blk.0.ffn_norm.weight"))
                t->residual = RESIDUAL_ONE_NORM;
        norms_of_heads_read(rd, t);
}

static void phi3_read(struct trait_reader *rd, struct traits *t)
{
        struct rope_shape *rope = &t->ropes[0];
        double stretch;

        if (!gguf_tensor(rd->from, "rope_factors_long.weight"))
                return;
        t->rope_table = NOT_THERE;
        t->rope_tables = MUST_BE_THERE;
        rope->scaling = ROPE_LONG;
        rope->trained = trait_reader_whole(rd, ".rope.scaling.original_context_length", 1,
                                           CONTEXT_MAX, &t->context);
        stretch = t->context / rope->trained;
        stretch = rope_long_attention(stretch, rope->trained);
        rope->attention = trait_reader_real(rd, ".rope.scaling.attn_factor", ATTENTION_MIN,
                                            ATTENTION_MAX, &stretch);
}

static void neox_read(struct trait_reader *rd, struct traits *t)
{
        if (!trait_reader_flag(rd, ".use_parallel_residual", true))
                t->residual = RESIDUAL_SERIAL;
}

static void falcon_read(struct trait_reader *rd, struct traits *t)
{
        if (gguf_tensor(rd->from, "blk.0.attn_norm_2.weight"))
                t->residual = RESIDUAL_PARALLEL;
}

static void learned_read(struct trait_reader *rd, struct traits *t)
{
        (void)rd;
        t->positions = POSITIONS_LEARNED;
}

static void mpt_read(struct trait_reader *rd, struct traits *t)
{
        static const double eight = 8;

        t->alibi = (float)trait_reader_real(rd, ".attention.max_alibi_bias", 1, 64, &eight);
        t->qkv_clip = (float)trait_reader_real(rd, ".attention.clamp_kqv", 0, SCALE_MAX, &none);
}

static void bloom_read(struct trait_reader *rd, struct traits *t)
{
        (void)rd;
        t->alibi = 8;
}

/*
 * The larger of the two has slopes.  The converter stores the head as it is, and only the size of
 * the vocabulary tells that a model is Baichuan 2, whose head has rows of length 1.
 */
static void baichuan_read(struct trait_reader *rd, struct traits *t)
{
        static const uint32_t vocab_of_2 = 125696;

        (void)rd;
        t->head_unit_rows = t->vocab == vocab_of_2;
        if (t->layers != 40)
                return;
        t->alibi = 8;
        no_ropes(t);
}

/* The feed-forward part is half as wide as the file says. */
static void qwen_read(struct trait_reader *rd, struct traits *t)
{
        if (t->ffn % 2)
                trait_reader_fault(rd,
                                   "metadata 'qwen.feed_forward_length' is %" PRIu32
                                   ", and half of it is used: it is not even",
                                   t->ffn);
        t->ffn /= 2;
}

/* ---- the table ---- */

#define NO_BIASES .qkv_bias = NOT_THERE, .output_bias = NOT_THERE, .ffn_bias = NOT_THERE
#define BIASES    .qkv_bias = MUST_BE_THERE, .output_bias = MUST_BE_THERE, .ffn_bias = MUST_BE_THERE
#define QKV_ONLY  .qkv_bias = MAYBE_THERE, .output_bias = NOT_THERE, .ffn_bias = NOT_THERE
/* What most rows have not. */
#define NO_NORM_BIAS .norm_bias = NOT_THERE, .head_bias = NOT_THERE
#define NO_QK        .qk_norm = NOT_THERE
#define GPT          .norm = NORM_LAYER, .norm_bias = MUST_BE_THERE, .plain = true, NO_QK

static const struct gguf_family families[] = {
        { "llama", ROPE_ADJACENT, NO_NORM_BIAS },
        { "mistral3", ROPE_ADJACENT, NO_NORM_BIAS, .read = mistral3_read },
        { "qwen", ROPE_HALVES, .qkv_bias = MUST_BE_THERE, .output_bias = NOT_THERE,
          .ffn_bias = NOT_THERE, NO_NORM_BIAS, NO_QK, .read = qwen_read },
        { "qwen2", ROPE_HALVES, .qkv_bias = MUST_BE_THERE, .output_bias = NOT_THERE,
          .ffn_bias = NOT_THERE, NO_NORM_BIAS, NO_QK },
        { "qwen3", ROPE_HALVES, .ffn_bias = NOT_THERE, NO_NORM_BIAS, .qk_norm = MUST_BE_THERE },
        { "phi3", ROPE_HALVES, NO_BIASES, NO_NORM_BIAS, NO_QK, .read = phi3_read },
        { "chatglm", ROPE_ADJACENT, QKV_ONLY, NO_NORM_BIAS, NO_QK },
        { "glm4", ROPE_ADJACENT, QKV_ONLY, NO_NORM_BIAS, NO_QK, .post_norms = true },
        { "olmo", ROPE_ADJACENT, NO_BIASES, NO_NORM_BIAS, NO_QK, .norm = NORM_LAYER,
          .no_norm_weights = true, .read = olmo_read },
        { "olmo2", ROPE_HALVES, NO_BIASES, NO_NORM_BIAS, .no_pre_norms = true, .post_norms = true,
          .qk_norm = MUST_BE_THERE, .qk_span = SPAN_WHOLE, .in_turns = true, .period = 4,
          .read = olmo2_read },
        { "exaone4", ROPE_HALVES, NO_BIASES, NO_NORM_BIAS, .no_pre_norms = true, .post_norms = true,
          .qk_norm = MUST_BE_THERE, .in_turns = true, .period = 4, .read = ropes_with_windows },
        { "granite", ROPE_ADJACENT, NO_NORM_BIAS, NO_QK, .read = granite_read },
        { "smollm3", ROPE_ADJACENT, NO_NORM_BIAS, NO_QK, .read = smollm3_read },
        { "seed_oss", ROPE_HALVES, QKV_ONLY, NO_NORM_BIAS, NO_QK },
        { "gemma", ROPE_HALVES, NO_BIASES, NO_NORM_BIAS, NO_QK, .activation = ACT_GELU_TANH,
          .read = gemma_read },
        { "gemma2", ROPE_HALVES, NO_BIASES, NO_NORM_BIAS, NO_QK, .activation = ACT_GELU_TANH,
          .post_norms = true, .in_turns = true, .period = 2, .read = gemma2_read },
        { "gemma3", ROPE_HALVES, NO_BIASES, NO_NORM_BIAS, .activation = ACT_GELU_TANH,
          .post_norms = true, .qk_norm = MUST_BE_THERE, .in_turns = true, .period = 6,
          .read = gemma3_read },
        { "gemma4", ROPE_HALVES, NO_BIASES, NO_NORM_BIAS, .activation = ACT_GELU_TANH,
          .post_norms = true, .qk_norm = MUST_BE_THERE, .in_turns = true, .period = 6,
          .read = gemma4_read },
        { "command-r", ROPE_ADJACENT, NO_BIASES, NO_NORM_BIAS, NO_QK, .norm = NORM_LAYER,
          .residual = RESIDUAL_ONE_NORM, .read = cohere_read },
        { "cohere2", ROPE_ADJACENT, NO_BIASES, NO_NORM_BIAS, NO_QK, .norm = NORM_LAYER,
          .residual = RESIDUAL_ONE_NORM, .in_turns = true, .period = 4, .read = cohere2_read },
        { "nemotron", ROPE_HALVES, .norm = NORM_LAYER, .norm_bias = MUST_BE_THERE,
          .head_bias = NOT_THERE, NO_QK, .plain = true, .activation = ACT_RELU_SQUARE },
        { "stablelm", ROPE_HALVES, QKV_ONLY, .norm = NORM_LAYER, .norm_bias = MUST_BE_THERE,
          .head_bias = NOT_THERE, NO_QK, .read = stablelm_read },
        { "internlm2", ROPE_ADJACENT, NO_NORM_BIAS, NO_QK },
        { "pangu-embedded", ROPE_HALVES, NO_NORM_BIAS, NO_QK },
        { "baichuan", ROPE_ADJACENT, NO_BIASES, NO_NORM_BIAS, NO_QK, .read = baichuan_read },
        { "gpt2", ROPE_HALVES, GPT, BIASES, .head_bias = NOT_THERE, .no_rope = true,
          .activation = ACT_GELU_TANH, .read = learned_read },
        { "starcoder", ROPE_HALVES, GPT, BIASES, .head_bias = NOT_THERE, .no_rope = true,
          .activation = ACT_GELU_TANH, .read = learned_read },
        { "gptneox", ROPE_HALVES, GPT, .ffn_bias = MUST_BE_THERE, .head_bias = NOT_THERE,
          .residual = RESIDUAL_PARALLEL, .activation = ACT_GELU, .read = neox_read },
        { "falcon", ROPE_HALVES, GPT, .head_bias = NOT_THERE, .residual = RESIDUAL_ONE_NORM,
          .activation = ACT_GELU, .read = falcon_read },
        { "starcoder2", ROPE_HALVES, GPT, .head_bias = NOT_THERE, .activation = ACT_GELU_TANH },
        { "mpt", ROPE_HALVES, .norm = NORM_LAYER, NO_NORM_BIAS, NO_QK, .plain = true, NO_BIASES,
          .no_rope = true, .activation = ACT_GELU, .read = mpt_read },
        { "bloom", ROPE_HALVES, GPT, BIASES, .head_bias = NOT_THERE, .no_rope = true,
          .embed_norm = true, .activation = ACT_GELU_TANH, .read = bloom_read },
        { "phi2", ROPE_HALVES, GPT, BIASES, .head_bias = MUST_BE_THERE,
          .residual = RESIDUAL_ONE_NORM, .activation = ACT_GELU_TANH },
};

const struct gguf_family *gguf_family_of(const char *name)
{
        for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
                if (!strcmp(name, families[i].name))
                        return &families[i];
        return NULL;
}
