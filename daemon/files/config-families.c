#include "daemon/files/config-families.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/errtext.h"
#include "daemon/files/config-gemma4.h"
#include "json/reader.h"

static const char *const layers[] = { "num_hidden_layers", NULL };
static const char *const width[] = { "hidden_size", NULL };
static const char *const ffn[] = { "intermediate_size", NULL };
static const char *const heads[] = { "num_attention_heads", NULL };
static const char *const kv_heads[] = { "num_key_value_heads", NULL };
static const char *const context[] = { "max_position_embeddings", NULL };
static const char *const rms_eps[] = { "rms_norm_eps", NULL };
static const char *const layer_eps[] = { "layer_norm_eps", NULL };
static const char *const norm_eps[] = { "norm_eps", NULL };
static const char *const norm_epsilon[] = { "norm_epsilon", NULL };
static const char *const layer_epsilon[] = { "layer_norm_epsilon", NULL };
static const char *const hidden_act[] = { "hidden_act", NULL };
static const char *const gemma_act[] = { "hidden_activation", "hidden_act", NULL };
static const char *const function[] = { "activation_function", NULL };
static const char *const n_layer[] = { "n_layer", "num_hidden_layers", NULL };
static const char *const n_embd[] = { "n_embd", "hidden_size", NULL };
static const char *const n_inner[] = { "n_inner", NULL };
static const char *const n_head[] = { "n_head", "num_attention_heads", NULL };
static const char *const n_positions[] = { "n_positions", "n_ctx", NULL };
static const char *const none[] = { "", NULL }; /* no file has a key without a name */

#define USUAL layers, width, ffn, heads, kv_heads, context

static const struct config_sizes usual = { USUAL, rms_eps, hidden_act };
static const struct config_sizes layer_sizes = { USUAL, layer_eps, hidden_act };
static const struct config_sizes norm_sizes = { USUAL, norm_eps, hidden_act };
static const struct config_sizes epsilon_sizes = { USUAL, norm_epsilon, hidden_act };
static const struct config_sizes gemma_sizes = { USUAL, rms_eps, gemma_act };
static const struct config_sizes baichuan_sizes = {
        layers,  width,
        ffn,     heads,
        none,    (const char *const[]){ "max_position_embeddings", "model_max_length", NULL },
        rms_eps, hidden_act
};
static const struct config_sizes qwen_sizes = {
        (const char *const[]){ "num_hidden_layers", "n_layer", NULL },
        (const char *const[]){ "hidden_size", "n_embd", NULL },
        (const char *const[]){ "intermediate_size", "ffn_hidden_size", NULL },
        (const char *const[]){ "num_attention_heads", "n_head", NULL },
        none,
        (const char *const[]){ "seq_length", NULL },
        layer_epsilon,
        none,
};
static const struct config_sizes gpt_sizes = { n_layer, n_embd,      n_inner,       n_head,
                                               none,    n_positions, layer_epsilon, function };
static const struct config_sizes falcon_sizes = {
        (const char *const[]){ "num_hidden_layers", "n_layer", NULL },
        width,
        (const char *const[]){ "ffn_hidden_size", NULL },
        (const char *const[]){ "num_attention_heads", "n_head", NULL },
        (const char *const[]){ "num_kv_heads", "n_head_kv", NULL },
        context,
        layer_epsilon,
        (const char *const[]){ "activation", NULL },
};
static const struct config_sizes mpt_sizes = {
        (const char *const[]){ "n_layers", NULL },
        (const char *const[]){ "d_model", NULL },
        none,
        (const char *const[]){ "n_heads", NULL },
        none,
        (const char *const[]){ "max_seq_len", NULL },
        layer_epsilon,
        none,
};
static const struct config_sizes bloom_sizes = {
        n_layer,       (const char *const[]){ "hidden_size", "n_embed", NULL },
        none,          n_head,
        none,          (const char *const[]){ "seq_length", NULL },
        layer_epsilon, none,
};
static const struct config_sizes opt_sizes = {
        layers, width,   (const char *const[]){ "ffn_dim", NULL }, heads, none, context,
        none,   function
};
static const struct config_sizes xglm_sizes = {
        (const char *const[]){ "num_layers", NULL },
        (const char *const[]){ "d_model", NULL },
        (const char *const[]){ "ffn_dim", NULL },
        (const char *const[]){ "attention_heads", NULL },
        none,
        context,
        none,
        function,
};

/* ---- what one family alone has ---- */

static double scale_of(struct trait_reader *rd, const char *key, double absent)
{
        return trait_reader_real(rd, key, SCALE_MIN, SCALE_MAX, &absent);
}

/* No layer rotates q and k. */
static void no_ropes(struct traits *t)
{
        for (uint32_t i = 0; i < t->layers; i++)
                t->layer[i].rope = TRAITS_NO_ROPE;
}

static void granite_read(struct trait_reader *rd, struct traits *t)
{
        t->embed_scale = (float)scale_of(rd, "embedding_multiplier", 1);
        t->residual_scale = (float)scale_of(rd, "residual_multiplier", 1);
        t->attend_scale = (float)scale_of(rd, "attention_multiplier", 1);
        t->head_scale = (float)(1 / scale_of(rd, "logits_scaling", 1));
}

/* The dense ones: all layers are attention, and the shared experts are the feed-forward part. */
static void granite_hybrid_read(struct trait_reader *rd, struct traits *t)
{
        static const uint32_t shared = 1024;
        const char *positions = trait_reader_text(rd, "position_embedding_type");

        granite_read(rd, t);
        t->ffn = trait_reader_whole(rd, "shared_intermediate_size", 1, WIDTH_MAX, &shared);
        if (!positions || strcmp(positions, "rope"))
                no_ropes(t);
        if (!trait_reader_has(rd, "num_local_experts"))
                trait_reader_fault(rd, "config.json has no 'num_local_experts', so the model has "
                                       "experts, which are not supported yet");
        if (!trait_reader_has(rd, "layer_types"))
                trait_reader_fault(rd, "config.json has no 'layer_types', so the model has "
                                       "recurrent layers, which are not supported yet");
}

/* Whether or not the rope has tables, the file says what the first model was trained for. */
static void phi3_read(struct trait_reader *rd, struct traits *t)
{
        (void)t;
        (void)trait_reader_take(rd, "original_max_position_embeddings");
}

static void gemma_read(struct trait_reader *rd, struct traits *t)
{
        (void)rd;
        t->embed_scale = sqrtf((float)t->width);
        if (t->act == ACT_GELU) /* the first files say so and mean the approximation */
                t->act = ACT_GELU_TANH;
}

static void gemma_later_read(struct trait_reader *rd, struct traits *t, double attend, double head)
{
        static const double scalar = 256;

        t->embed_scale = sqrtf((float)t->width);
        t->attend_softcap =
                (float)trait_reader_real(rd, "attn_logit_softcapping", 0, SCALE_MAX, &attend);
        t->head_softcap =
                (float)trait_reader_real(rd, "final_logit_softcapping", 0, SCALE_MAX, &head);
        t->attend_scale = (float)(1 / sqrt(trait_reader_real(rd, "query_pre_attn_scalar", SCALE_MIN,
                                                             SCALE_MAX, &scalar)));
        if (trait_reader_flag(rd, "use_bidirectional_attention", false))
                trait_reader_fault(rd, "config.json's 'use_bidirectional_attention' is not "
                                       "supported yet");
}

/* A key that is null stands for no cap, so the defaults are for absent keys only. */
static void gemma2_read(struct trait_reader *rd, struct traits *t)
{
        bool attend = trait_reader_has(rd, "attn_logit_softcapping") || rd->node != JSON_NONE;
        bool head = trait_reader_has(rd, "final_logit_softcapping") || rd->node != JSON_NONE;

        gemma_later_read(rd, t, attend ? 0 : 50, head ? 0 : 30);
}

static void gemma3_read(struct trait_reader *rd, struct traits *t)
{
        gemma_later_read(rd, t, 0, 0);
}

static void cohere_read(struct trait_reader *rd, struct traits *t)
{
        t->head_scale = (float)scale_of(rd, "logit_scale", 0.0625);
        if (!trait_reader_flag(rd, "use_qk_norm", false))
                return;
        t->qk_norm = MUST_BE_THERE;
        t->qk_norm_kind = NORM_LAYER;
        t->qk_norm_span = SPAN_HEADS;
}

static void olmo_read(struct trait_reader *rd, struct traits *t)
{
        static const double none_given = 0;

        t->qkv_clip = (float)trait_reader_real(rd, "clip_qkv", 0, SCALE_MAX, &none_given);
}

static void seed_read(struct trait_reader *rd, struct traits *t)
{
        t->output_bias =
                trait_reader_flag(rd, "attention_out_bias", false) ? MUST_BE_THERE : NOT_THERE;
}

static void stablelm_read(struct trait_reader *rd, struct traits *t)
{
        if (trait_reader_flag(rd, "use_qkv_bias", false))
                t->qkv_bias = MUST_BE_THERE;
        if (trait_reader_flag(rd, "use_parallel_residual", false))
                t->residual = RESIDUAL_ONE_NORM;
        if (!trait_reader_flag(rd, "qk_layernorm", false))
                return;
        t->qk_norm = MUST_BE_THERE;
        t->qk_norm_kind = NORM_LAYER;
        t->qk_norm_span = SPAN_HEADS;
}

static void bias_read(struct trait_reader *rd, struct traits *t, const char *key, bool absent)
{
        enum presence there = trait_reader_flag(rd, key, absent) ? MUST_BE_THERE : NOT_THERE;

        t->qkv_bias = t->output_bias = t->ffn_bias = there;
}

static void starcoder2_read(struct trait_reader *rd, struct traits *t)
{
        bias_read(rd, t, "use_bias", true);
}

static void neox_read(struct trait_reader *rd, struct traits *t)
{
        if (!trait_reader_flag(rd, "use_parallel_residual", true))
                t->residual = RESIDUAL_SERIAL;
        t->qkv_bias = t->output_bias =
                trait_reader_flag(rd, "attention_bias", true) ? MUST_BE_THERE : NOT_THERE;
}

static void falcon_read(struct trait_reader *rd, struct traits *t)
{
        bool newer = trait_reader_flag(rd, "new_decoder_architecture", false);
        uint32_t norms = newer ? 2 : 1;

        norms = trait_reader_whole(rd, "num_ln_in_parallel_attn", 1, 2, &norms);
        bias_read(rd, t, "bias", false);
        /* transformers rounds a slope times a position to a bfloat; we round neither. */
        if (trait_reader_flag(rd, "alibi", false)) {
                t->alibi = 8;
                t->alibi_is_scaled = true;
                no_ropes(t);
        }
        if (!newer && trait_reader_flag(rd, "multi_query", true))
                t->kv_heads = 1;
        else if (!newer)
                t->kv_heads = t->heads;
        t->qkv_order = newer ? QKV_BY_GROUP : t->kv_heads == 1 ? QKV_STACKED : QKV_BY_HEAD;
        if (!newer && !trait_reader_flag(rd, "parallel_attn", true))
                t->residual = RESIDUAL_SERIAL;
        else
                t->residual = newer && norms == 2 ? RESIDUAL_PARALLEL : RESIDUAL_ONE_NORM;
}

/* Refuses keys of the published code that are not implemented. */
static void mpt_refuse(struct trait_reader *rd)
{
        static const double no_window = -1;
        const char *norm = trait_reader_text(rd, "norm_type");

        if (norm && strcmp(norm, "layernorm") && strcmp(norm, "low_precision_layernorm"))
                trait_reader_fault(rd,
                                   "config.json's 'norm_type' is '%s', which is not supported "
                                   "yet for MPT",
                                   shown(norm).text);
        if (trait_reader_has(rd, "ffn_config.ffn_act_fn"))
                trait_reader_fault(rd, "config.json's 'ffn_config.ffn_act_fn' is not supported yet "
                                       "for MPT");
        if (trait_reader_real(rd, "attn_config.sliding_window_size", -1, CONTEXT_MAX, &no_window) >=
            0)
                trait_reader_fault(rd, "config.json's 'attn_config.sliding_window_size' is not -1, "
                                       "which is not supported yet for MPT");
        if (!trait_reader_flag(rd, "no_bias", true))
                trait_reader_fault(rd, "config.json's 'no_bias' is false, which is not supported "
                                       "yet for MPT");
        if (trait_reader_flag(rd, "attn_config.qk_ln", false) ||
            trait_reader_flag(rd, "attn_config.prefix_lm", false))
                trait_reader_fault(rd, "config.json's '%s' is true, which is not supported yet",
                                   rd->key);
}

/*
 * The published code has two keys that transformers takes no notice of: expansion_ratio and
 * alibi_bias_max.
 */
static void mpt_read(struct trait_reader *rd, struct traits *t)
{
        static const double zero = 0, eight = 8;
        static const uint32_t four = 4;
        uint32_t most = WIDTH_MAX / t->width;

        t->ffn = t->width * trait_reader_whole(rd, "expansion_ratio", 1, most, &four);
        mpt_refuse(rd);
        t->qkv_clip = (float)trait_reader_real(rd, "attn_config.clip_qkv", 0, SCALE_MAX, &zero);
        t->attend_scale =
                (float)trait_reader_real(rd, "attn_config.softmax_scale", 0, SCALE_MAX, &zero);
        if (trait_reader_flag(rd, "attn_config.alibi", false))
                t->alibi =
                        (float)trait_reader_real(rd, "attn_config.alibi_bias_max", 1, 64, &eight);
        else
                trait_reader_fault(rd, "config.json's 'attn_config.alibi' is false, which is not "
                                       "supported yet for MPT");
}

static void bloom_read(struct trait_reader *rd, struct traits *t)
{
        t->alibi = 8;
        if (trait_reader_flag(rd, "apply_residual_connection_post_layernorm", false))
                trait_reader_fault(rd, "config.json's 'apply_residual_connection_post_layernorm' "
                                       "is true, which is not supported yet");
}

/*
 * Which of the two: the larger model has slopes.  Baichuan 2 divides the rows of its head by their
 * lengths; only a setting of its training tells that a model is one.
 */
static void baichuan_read(struct trait_reader *rd, struct traits *t)
{
        static const uint32_t vocab_of_2 = 125696;
        bool slopes = !trait_reader_has(rd, "max_position_embeddings");

        t->head_unit_rows = trait_reader_take(rd, "z_loss_weight") || t->vocab == vocab_of_2;
        if (!slopes)
                return;
        t->alibi = 8;
        no_ropes(t);
}

/*
 * Up to `seq_length` positions it computes as Qwen2 does; beyond these it would stretch its rope
 * and its scores.  The feed-forward part is half as wide as the file says.
 */
static void qwen_read(struct trait_reader *rd, struct traits *t)
{
        uint32_t head_dim = trait_reader_whole(rd, "kv_channels", 2, HEAD_DIM_MAX, &t->head_dim);
        bool biases = !trait_reader_flag(rd, "no_bias", true);

        if (t->ffn % 2)
                trait_reader_fault(rd,
                                   "config.json's width of the feed-forward part is %" PRIu32
                                   ", and half of it is used: it is not even",
                                   t->ffn);
        if (!trait_reader_flag(rd, "scale_attn_weights", true))
                trait_reader_fault(rd, "config.json's 'scale_attn_weights' is false, which is not "
                                       "supported yet for Qwen");
        t->ffn /= 2;
        t->output_bias = t->ffn_bias = biases ? MUST_BE_THERE : NOT_THERE;
        if (head_dim != t->head_dim)
                trait_reader_fault(rd,
                                   "config.json's 'kv_channels' is %" PRIu32 ", not %" PRIu32
                                   ", the width for each head; this is not supported yet",
                                   head_dim, t->head_dim);
}

static void gpt2_read(struct trait_reader *rd, struct traits *t)
{
        t->positions = POSITIONS_LEARNED;
        if (!trait_reader_flag(rd, "scale_attn_weights", true))
                t->attend_scale = 1;
        if (trait_reader_flag(rd, "scale_attn_by_inverse_layer_idx", false))
                trait_reader_fault(rd, "config.json's 'scale_attn_by_inverse_layer_idx' is true, "
                                       "which is not supported yet");
}

static void bigcode_read(struct trait_reader *rd, struct traits *t)
{
        t->positions = POSITIONS_LEARNED;
        if (trait_reader_flag(rd, "multi_query", true))
                t->kv_heads = 1;
        else
                t->qkv_order = QKV_BY_HEAD;
        if (!trait_reader_flag(rd, "scale_attn_weights", true))
                t->attend_scale = 1;
}

static void gptj_read(struct trait_reader *rd, struct traits *t)
{
        static const uint32_t dims = 64;

        t->ropes[0].dims = trait_reader_whole(rd, "rotary_dim", 0, t->head_dim, &dims);
}

static void opt_read(struct trait_reader *rd, struct traits *t)
{
        uint32_t embed;

        t->positions = POSITIONS_LEARNED;
        t->first_position = 2;
        bias_read(rd, t, "enable_bias", true);
        t->sum_norms = !trait_reader_flag(rd, "do_layer_norm_before", true);
        t->pre_norms = !t->sum_norms;
        embed = trait_reader_whole(rd, "word_embed_proj_dim", 1, t->width, &t->width);
        t->embed_width = embed < t->width ? embed : 0;
        if ((trait_reader_flag(rd, "_remove_final_layer_norm", false) && t->pre_norms) ||
            !trait_reader_flag(rd, "layer_norm_elementwise_affine", true))
                trait_reader_fault(rd, "config.json's '%s' has a value that is not supported yet",
                                   rd->key);
}

static void phi_read(struct trait_reader *rd, struct traits *t)
{
        if (!trait_reader_flag(rd, "qk_layernorm", false))
                return;
        t->qk_norm = t->qk_norm_bias = MUST_BE_THERE;
        t->qk_norm_kind = NORM_LAYER;
        t->qk_norm_span = SPAN_HEAD;
}

static void xglm_read(struct trait_reader *rd, struct traits *t)
{
        t->positions = POSITIONS_SINUSOIDAL;
        t->first_position = 2;
        if (trait_reader_flag(rd, "scale_embedding", true))
                t->embed_scale = sqrtf((float)t->width);
}

/* ---- the table ---- */

#define RMS(e)    .norm = NORM_RMS, .eps = (e)
#define LAYER(e)  .norm = NORM_LAYER, .eps = (e)
#define BIASES(b) .qkv_bias = (b), .output_bias = (b), .ffn_bias = (b)
#define SANDWICH  .post_norms = true
#define POST_ONLY .post_norms = true, .no_pre_norms = true
#define GEMMA_ANY                                                                                  \
        .sizes = &gemma_sizes, .tied = true, .bos_first = true, .head_dim = 256,                   \
        .activation = ACT_GELU_TANH, RMS(1e-6)
#define GEMMA GEMMA_ANY, .norm_is_one_plus = true
#define GPT   .plain = true, .tied = true, .activation = ACT_GELU_TANH, .norm_bias = true, LAYER(1e-5)

static const struct config_family families[] = {
        { "LlamaForCausalLM", "llama", &usual, BIASES(BIAS_KEYED), .bos_first = true, RMS(1e-6) },
        { "LLaMAForCausalLM", "llama", &usual, .context = 2048, BIASES(BIAS_KEYED),
          .bos_first = true, RMS(1e-6) },
        { "MistralForCausalLM", "mistral", &usual, .kv_heads = 8, .bos_first = true, RMS(1e-6),
          .window = WINDOW_ALWAYS, .window_usual = 4096 },
        { "Ministral3ForCausalLM", "ministral3", &usual, .kv_heads = 8, .head_dim = 128,
          .bos_first = true, RMS(1e-5), .window = WINDOW_ALWAYS, .rope_base = 1e6 },
        { "Qwen2ForCausalLM", "qwen2", &usual, .kv_heads = 32, .qkv_bias = BIAS_ALWAYS, RMS(1e-6),
          .window = WINDOW_ON_REQUEST, .window_usual = 4096 },
        { "MiMoForCausalLM", "mimo", &usual, .kv_heads = 32, .qkv_bias = BIAS_USUAL, RMS(1e-6),
          .window = WINDOW_ON_REQUEST, .window_usual = 4096 },
        { "PanguEmbeddedForCausalLM", "PanguEmbedded", &usual, RMS(1e-5), .bos_first = true,
          .bias_key = "bias", .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED },
        { "Qwen3ForCausalLM", "qwen3", &usual, .kv_heads = 32, .head_dim = 128, RMS(1e-6),
          .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED, .qk_norm = NORM_RMS,
          .window = WINDOW_ON_REQUEST, .window_usual = 4096 },
        { "Phi3ForCausalLM", "phi3", &usual, RMS(1e-5), .bos_first = true, .window = WINDOW_ALWAYS,
          .read = phi3_read },
        { "GlmForCausalLM", "glm", &usual, .kv_heads = 2, .head_dim = 128, RMS(1.5625e-7),
          .qkv_bias = BIAS_USUAL, .rope_share = 0.5, .adjacent = true },
        { "Glm4ForCausalLM", "glm4", &usual, .naming = NAMING_GLM4, .kv_heads = 2, .head_dim = 128,
          RMS(1.5625e-7), .qkv_bias = BIAS_USUAL, SANDWICH, .rope_share = 0.5, .adjacent = true },
        { "OlmoForCausalLM", "olmo", &usual, LAYER(1e-5), .no_norm_weights = true,
          .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED, .read = olmo_read },
        { "Olmo2ForCausalLM", "olmo2", &usual, .naming = NAMING_POST, RMS(1e-5), POST_ONLY,
          .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED, .qk_norm = NORM_RMS,
          .qk_span = SPAN_WHOLE },
        { "Olmo3ForCausalLM", "olmo3", &usual, .naming = NAMING_POST, RMS(1e-5), POST_ONLY,
          .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED, .qk_norm = NORM_RMS,
          .qk_span = SPAN_WHOLE, .window = WINDOW_IN_TURNS, .window_usual = 4096, .period = 4,
          .ropes = ROPES_TWO, .rope_base = 500000 },
        { "Exaone4ForCausalLM", "exaone4", &usual, .naming = NAMING_POST, .kv_heads = 32, RMS(1e-5),
          POST_ONLY, .qk_norm = NORM_RMS, .window = WINDOW_IN_TURNS, .window_usual = 4096,
          .period = 4, .ropes = ROPES_WITH_WINDOWS },
        { "GraniteForCausalLM", "granite", &usual, RMS(1e-6), BIASES(BIAS_KEYED),
          .read = granite_read },
        { "GraniteMoeHybridForCausalLM", "granitemoehybrid", &usual, .naming = NAMING_GRANITE,
          RMS(1e-6), .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED,
          .read = granite_hybrid_read },
        { "SmolLM3ForCausalLM", "smollm3", &usual, .kv_heads = 4, .tied = true, RMS(1e-6),
          BIASES(BIAS_KEYED), .window = WINDOW_LISTED, .ropes = ROPES_LISTED, .rope_base = 2e6 },
        { "SeedOssForCausalLM", "seed_oss", &usual, .kv_heads = 8, .head_dim = 128, RMS(1e-6),
          .qkv_bias = BIAS_USUAL, .ffn_bias = BIAS_KEYED, .read = seed_read },
        { "GemmaForCausalLM", "gemma", GEMMA, .read = gemma_read },
        { "Gemma2ForCausalLM", "gemma2", GEMMA, .naming = NAMING_GEMMA, .kv_heads = 4, SANDWICH,
          .window = WINDOW_IN_TURNS, .window_usual = 4096, .period = 2, .qkv_bias = BIAS_KEYED,
          .output_bias = BIAS_KEYED, .read = gemma2_read },
        { "Gemma3ForCausalLM", "gemma3_text", GEMMA, .naming = NAMING_GEMMA, .kv_heads = 4,
          SANDWICH, .qk_norm = NORM_RMS, .window = WINDOW_IN_TURNS, .window_usual = 4096,
          .period = 6, .ropes = ROPES_TWO, .rope_base = 1e6, .local_base = 1e4,
          .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED, .read = gemma3_read },
        { "Gemma4ForCausalLM", "gemma4_text", GEMMA_ANY, .context = 131072, .naming = NAMING_GEMMA,
          .kv_heads = 4, SANDWICH, .qk_norm = NORM_RMS, .window = WINDOW_IN_TURNS,
          .window_usual = 512, .period = 6, .ropes = ROPES_TWO, .rope_base = 1e6, .local_base = 1e4,
          .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED, .read = config_gemma4_read },
        { "CohereForCausalLM", "cohere", &layer_sizes, .tied = true, .bos_first = true, LAYER(1e-5),
          .residual = RESIDUAL_ONE_NORM, .qkv_bias = BIAS_KEYED, .output_bias = BIAS_KEYED,
          .adjacent = true, .rope_base = 500000, .read = cohere_read },
        { "Cohere2ForCausalLM", "cohere2", &layer_sizes, .tied = true, .bos_first = true,
          LAYER(1e-5), .residual = RESIDUAL_ONE_NORM, .qkv_bias = BIAS_KEYED,
          .output_bias = BIAS_KEYED, .adjacent = true, .window = WINDOW_IN_TURNS,
          .window_usual = 4096, .period = 4, .ropes = ROPES_WITH_WINDOWS, .read = cohere_read },
        { "NemotronForCausalLM", "nemotron", &norm_sizes, .bos_first = true, LAYER(1e-5),
          .norm_bias = true, .norm_is_one_plus = true, .plain = true, .activation = ACT_RELU_SQUARE,
          BIASES(BIAS_KEYED), .rope_share = 0.5 },
        { "StableLmForCausalLM", "stablelm", &layer_sizes, .kv_heads = 32, LAYER(1e-5),
          .norm_bias = true, .rope_share = 0.25, .read = stablelm_read },
        { "InternLM2ForCausalLM", "internlm2", &usual, .naming = NAMING_INTERNLM2,
          .bos_first = true, RMS(1e-6), .qkv_order = QKV_BY_GROUP },
        { "InternLMForCausalLM", "internlm", &usual, .bos_first = true, .bias_key = "bias",
          RMS(1e-6), .qkv_bias = BIAS_USUAL, .output_bias = BIAS_USUAL },
        { "BaichuanForCausalLM", "baichuan", &baichuan_sizes, RMS(1e-6), .bos_first = true,
          .read = baichuan_read },
        { "BaiChuanForCausalLM", "baichuan", &baichuan_sizes, RMS(1e-6), .bos_first = true,
          .read = baichuan_read },
        { "QWenLMHeadModel", "qwen", &qwen_sizes, .naming = NAMING_QWEN, RMS(1e-6),
          .qkv_bias = BIAS_ALWAYS, .activation = ACT_SILU, .read = qwen_read },
        { "GPT2LMHeadModel", "gpt2", &gpt_sizes, .naming = NAMING_GPT2, GPT, BIASES(BIAS_ALWAYS),
          .transposed = true, .ropes = ROPES_NOWHERE, .read = gpt2_read },
        { "GPTBigCodeForCausalLM", "gpt_bigcode", &gpt_sizes, .naming = NAMING_GPT2, GPT,
          BIASES(BIAS_ALWAYS), .ropes = ROPES_NOWHERE, .read = bigcode_read },
        { "GPTJForCausalLM", "gptj", &gpt_sizes, .naming = NAMING_GPTJ, .plain = true,
          .norm_bias = true, .activation = ACT_GELU_TANH, LAYER(1e-5),
          .residual = RESIDUAL_ONE_NORM, .ffn_bias = BIAS_ALWAYS, .head_bias = true,
          .adjacent = true, .read = gptj_read },
        { "CodeGenForCausalLM", "codegen", &gpt_sizes, .naming = NAMING_GPTJ, .plain = true,
          .norm_bias = true, .activation = ACT_GELU_TANH, LAYER(1e-5),
          .residual = RESIDUAL_ONE_NORM, .ffn_bias = BIAS_ALWAYS, .head_bias = true,
          .qkv_order = QKV_IN_FOURS, .adjacent = true, .read = gptj_read },
        { "GPTNeoXForCausalLM", "gpt_neox", &layer_sizes, .naming = NAMING_NEOX, .plain = true,
          .norm_bias = true, .activation = ACT_GELU, LAYER(1e-5), .residual = RESIDUAL_PARALLEL,
          .ffn_bias = BIAS_ALWAYS, .qkv_order = QKV_BY_HEAD, .rope_share = 0.25,
          .read = neox_read },
        { "FalconForCausalLM", "falcon", &falcon_sizes, .naming = NAMING_FALCON, .plain = true,
          .tied = true, .norm_bias = true, .activation = ACT_GELU, LAYER(1e-5), .context = 2048,
          .read = falcon_read },
        { "RWForCausalLM", "RefinedWebModel", &falcon_sizes, .naming = NAMING_FALCON, .plain = true,
          .tied = true, .norm_bias = true, .activation = ACT_GELU, LAYER(1e-5), .context = 2048,
          .read = falcon_read },
        { "Starcoder2ForCausalLM", "starcoder2", &epsilon_sizes, .naming = NAMING_STARCODER2,
          .plain = true, .kv_heads = 2, .tied = true, .norm_bias = true,
          .activation = ACT_GELU_TANH, LAYER(1e-5), .window = WINDOW_ALWAYS,
          .read = starcoder2_read },
        { "MptForCausalLM", "mpt", &mpt_sizes, .naming = NAMING_MPT, .plain = true, .tied = true,
          .activation = ACT_GELU, LAYER(1e-5), .ropes = ROPES_NOWHERE, .read = mpt_read },
        { "MPTForCausalLM", "mpt", &mpt_sizes, .naming = NAMING_MPT, .plain = true, .tied = true,
          .activation = ACT_GELU, LAYER(1e-5), .ropes = ROPES_NOWHERE, .read = mpt_read },
        { "BloomForCausalLM", "bloom", &bloom_sizes, .naming = NAMING_BLOOM, GPT,
          BIASES(BIAS_ALWAYS), .embed_norm = true, .context = 2048, .qkv_order = QKV_BY_HEAD,
          .ropes = ROPES_NOWHERE, .read = bloom_read },
        { "OPTForCausalLM", "opt", &opt_sizes, .naming = NAMING_OPT, .plain = true, .tied = true,
          .bos_first = true, .norm_bias = true, .activation = ACT_RELU, LAYER(1e-5),
          .ropes = ROPES_NOWHERE, .read = opt_read },
        { "PhiForCausalLM", "phi", &layer_sizes, .naming = NAMING_PHI, .plain = true,
          .norm_bias = true, .activation = ACT_GELU_TANH, LAYER(1e-5),
          .residual = RESIDUAL_ONE_NORM, BIASES(BIAS_ALWAYS), .head_bias = true, .rope_share = 0.5,
          .read = phi_read },
        { "XGLMForCausalLM", "xglm", &xglm_sizes, .naming = NAMING_OPT, .plain = true, .tied = true,
          .bos_first = true, .norm_bias = true, .activation = ACT_GELU, LAYER(1e-5),
          BIASES(BIAS_ALWAYS), .ropes = ROPES_NOWHERE, .read = xglm_read },
};

const struct config_family *config_family_of(const char *name, bool is_type)
{
        for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
                if (!strcmp(name, is_type ? families[i].type : families[i].name))
                        return &families[i];
        return NULL;
}
