#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/config-keys.h"
#include "daemon/files/config-quantization.h"
#include "daemon/files/config-traits.h"
#include "daemon/files/trait-reader.h"

#define ROOT 0u

enum window_kind { WINDOW_NEVER, WINDOW_ALWAYS, WINDOW_ON_REQUEST };

/* The numbers in a row are the defaults of transformers for absent keys. */
static const struct architecture {
        const char *name, *type;
        uint32_t kv_heads; /* 0: as many as heads */
        uint32_t head_dim; /* 0: width / heads */
        bool qkv_bias;     /* always; otherwise attention_bias decides, if may_bias */
        bool may_bias, may_ffn_bias;
        bool qk_norm;
        bool bos_first;
        enum window_kind window;
} architectures[] = {
        { "LlamaForCausalLM", "llama", .may_bias = true, .may_ffn_bias = true, .bos_first = true },
        { "MistralForCausalLM", "mistral", .kv_heads = 8, .bos_first = true,
          .window = WINDOW_ALWAYS },
        { "Qwen2ForCausalLM", "qwen2", .kv_heads = 32, .qkv_bias = true,
          .window = WINDOW_ON_REQUEST },
        { "Qwen3ForCausalLM", "qwen3", .kv_heads = 32, .head_dim = 128, .may_bias = true,
          .qk_norm = true, .window = WINDOW_ON_REQUEST },
};

#define WINDOW_USUAL      4096u
#define WINDOW_FROM_USUAL 28u

/* Keys that would change the results and are not implemented. */
static const struct refusal refusals[] = {
        { "num_experts", 0 },
        { "num_local_experts", 0 },
        { "n_routed_experts", 0 },
        { "original_max_position_embeddings", 0 },
        { "attn_logit_softcapping", 0 },
        { "final_logit_softcapping", 0 },
        { "query_pre_attn_scalar", 0 },
        { "attention_multiplier", 0 },
        { "residual_multiplier", 1 },
        { "embedding_multiplier", 1 },
        { "logits_scaling", 1 },
        { "logit_scale", 1 },
        { "clip_qkv", 0 },
        { "alibi", 0 },
        { "is_encoder_decoder", 0 },
        { "sliding_window_pattern", 0 },
        { "no_rope_layers", 0 },
        { "rope_interleaved", 0 },
        { "use_mrope", 0 },
        { "use_qk_norm", 0 },
        { "add_cross_attention", 0 },
        { "text_config", 0 },
};

/* Keys in rope_scaling or rope_parameters that are read, or are known to have no effect. */
static const char *const rope_keys[] = {
        "rope_type",
        "type",
        "rope_theta",
        "factor",
        "low_freq_factor",
        "high_freq_factor",
        "beta_slow",
        "beta_fast",
        "mscale",
        "mscale_all_dim",
        "truncate",
        "attention_factor",
        "finetuned",
        "original_max_position_embeddings",
        "partial_rotary_factor",
};

/* The first of `architectures`; if absent, the older and less precise model_type. */
static const struct architecture *read_architecture(struct trait_reader *rd)
{
        bool listed = trait_reader_has(rd, "architectures");
        const char *name;

        if (listed)
                name = json_string(rd->from, json_first(rd->from, rd->node), NULL);
        else
                name = trait_reader_text(rd, "model_type");
        for (size_t i = 0; name && i < sizeof(architectures) / sizeof(*architectures); i++)
                if (!strcmp(name, listed ? architectures[i].name : architectures[i].type))
                        return &architectures[i];
        if (name)
                trait_reader_fault(rd, "architecture '%s' is not supported yet", shown(name).text);
        else
                trait_reader_fault(rd, "config.json names no architecture");
        return NULL;
}

static void read_activation(struct trait_reader *rd, struct traits *t)
{
        const char *name = trait_reader_text(rd, "hidden_act");

        if (!name || !strcmp(name, "silu"))
                t->act = ACT_SILU;
        else if (!strcmp(name, "gelu_pytorch_tanh"))
                t->act = ACT_GELU_TANH;
        else
                trait_reader_fault(rd,
                                   "config.json's 'hidden_act' is '%s', which is not supported yet",
                                   shown(name).text);
}

/* Finds the object with the rope keys; after this they are read as ".key". */
static void find_rope(struct trait_reader *rd)
{
        bool newer = trait_reader_has(rd, "rope_parameters"),
             older = trait_reader_has(rd, "rope_scaling");
        const char *name = older ? "rope_scaling" : "rope_parameters";
        uint32_t node = json_member(rd->from, ROOT, name);

        if (newer && older)
                trait_reader_fault(rd, "config.json has both 'rope_parameters' and 'rope_scaling'");
        if ((newer || older) && json_kind(rd->from, node) != JSON_OBJECT)
                trait_reader_fault(rd, "config.json's '%s' is not an object", name);
        for (uint32_t at = json_first(rd->from, node); at != JSON_NONE;
             at = json_next(rd->from, at)) {
                const char *key = json_key(rd->from, at, NULL);
                bool known = false;

                for (size_t i = 0; key && i < sizeof(rope_keys) / sizeof(*rope_keys); i++)
                        known = known || !strcmp(key, rope_keys[i]);
                if (!known)
                        trait_reader_fault(
                                rd, "config.json's '%s.%s' has a value that is not supported yet",
                                name, shown(key ? key : "?").text);
        }
        rd->prefix = name;
}

static enum rope_scaling read_scaling(struct trait_reader *rd)
{
        static const char *const names[] = {
                [ROPE_PLAIN] = "default",
                [ROPE_LINEAR] = "linear",
                [ROPE_LLAMA3] = "llama3",
                [ROPE_YARN] = "yarn",
        };
        const char *name =
                trait_reader_text(rd, trait_reader_has(rd, ".rope_type") ? ".rope_type" : ".type");

        for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
                if (!strcmp(name, names[i]))
                        return (enum rope_scaling)i;
        if (name)
                trait_reader_fault(rd, "config.json's '%s' is '%s', which is not supported yet",
                                   rd->key, shown(name).text);
        return ROPE_PLAIN;
}

/*
 * attention_factor is given, or follows from the factor.  DeepSeek's two mscales define a quotient;
 * if only one is given, it is ignored, as in transformers.
 */
static double read_attention(struct trait_reader *rd, double factor)
{
        static const double none = 0;
        double mscale = trait_reader_real(rd, ".mscale", 0, ATTENTION_MAX, &none);
        double all = trait_reader_real(rd, ".mscale_all_dim", 0, ATTENTION_MAX, &none);
        double usual = rope_attention(factor, 1);

        if (mscale > 0 && all > 0)
                usual = rope_attention(factor, mscale) / rope_attention(factor, all);
        return trait_reader_real(rd, ".attention_factor", ATTENTION_MIN, ATTENTION_MAX, &usual);
}

static void read_rope(struct trait_reader *rd, struct traits *t)
{
        static const double base = 10000, whole = 1, slow = 1, fast = 32;
        struct rope_shape *rope = &t->rope;
        double outer, stretch, context = t->context;
        bool by_parts;

        outer = trait_reader_real(rd, "rope_theta", 1, ROPE_BASE_MAX, &base);
        find_rope(rd);
        rope->pairing = ROPE_HALVES;
        rope->dims = t->head_dim;
        rope->attention = 1;
        rope->base = trait_reader_real(rd, ".rope_theta", 1, ROPE_BASE_MAX, &outer);
        (void)trait_reader_real(rd, ".partial_rotary_factor", 1, 1, &whole);
        (void)trait_reader_real(rd, "partial_rotary_factor", 1, 1, &whole);
        rope->scaling = read_scaling(rd);
        if (rope->scaling == ROPE_PLAIN)
                return;
        by_parts = rope->scaling != ROPE_LINEAR;
        rope->trained = by_parts ? trait_reader_real(rd, ".original_max_position_embeddings", 1,
                                                     CONTEXT_MAX, &context)
                                 : context;
        stretch = context / rope->trained;
        rope->factor =
                trait_reader_real(rd, ".factor", 1, STRETCH_MAX,
                                  rope->scaling == ROPE_YARN && stretch >= 1 ? &stretch : NULL);
        if (rope->scaling == ROPE_LLAMA3) {
                rope->low = trait_reader_real(rd, ".low_freq_factor", TURNS_MIN, TURNS_MAX, NULL);
                rope->high = trait_reader_real(rd, ".high_freq_factor", TURNS_MIN, TURNS_MAX, NULL);
        } else if (rope->scaling == ROPE_YARN) {
                rope->low = trait_reader_real(rd, ".beta_slow", TURNS_MIN, TURNS_MAX, &slow);
                rope->high = trait_reader_real(rd, ".beta_fast", TURNS_MIN, TURNS_MAX, &fast);
                rope->whole = trait_reader_flag(rd, ".truncate", true);
                rope->attention = read_attention(rd, rope->factor);
        }
}

/*
 * The first layer that has a window; t->layers if none has.  All later layers must have one too.
 * TRAITS_NO_TOKEN: there is no list.
 */
static uint32_t read_layer_types(struct trait_reader *rd, const struct traits *t)
{
        uint32_t list, count = 0, first = t->layers;

        if (!trait_reader_has(rd, "layer_types"))
                return TRAITS_NO_TOKEN;
        list = rd->node;
        if (json_count(rd->from, list) != t->layers)
                trait_reader_fault(
                        rd, "config.json's 'layer_types' are %" PRIu32 " for %" PRIu32 " layers",
                        json_count(rd->from, list), t->layers);
        for (uint32_t at = json_first(rd->from, list); at != JSON_NONE;
             at = json_next(rd->from, at), count++) {
                const char *name = json_string(rd->from, at, NULL);
                bool sliding = name && !strcmp(name, "sliding_attention");

                if (!sliding && (!name || strcmp(name, "full_attention")))
                        trait_reader_fault(
                                rd,
                                "config.json's 'layer_types' have '%s', which is not supported yet",
                                shown(name ? name : "?").text);
                if (sliding && first == t->layers)
                        first = count;
                if (!sliding && first < count)
                        trait_reader_fault(rd, "config.json's 'layer_types' alternate, which is "
                                               "not supported yet");
        }
        return first;
}

static void read_window(struct trait_reader *rd, const struct architecture *architecture,
                        struct traits *t)
{
        static const uint32_t usual = WINDOW_USUAL, from_usual = WINDOW_FROM_USUAL;
        bool wanted = architecture->window == WINDOW_ALWAYS;
        uint32_t listed = read_layer_types(rd, t), from = 0;

        if (architecture->window == WINDOW_ON_REQUEST) {
                wanted = trait_reader_flag(rd, "use_sliding_window", false);
                from = trait_reader_whole(rd, "max_window_layers", 0, UINT32_MAX, &from_usual);
        }
        if (trait_reader_has(rd, "sliding_window") && architecture->window == WINDOW_NEVER)
                trait_reader_fault(rd, "config.json's 'sliding_window' is not supported with '%s'",
                                   architecture->name);
        if (wanted && rd->node != JSON_NONE && !trait_reader_has(rd, "sliding_window"))
                wanted = false; /* the key is null */
        if (wanted) {
                t->window = trait_reader_whole(rd, "sliding_window", 1, CONTEXT_MAX, &usual);
                t->window_from = listed != TRAITS_NO_TOKEN ? listed : from;
        }
}

static enum presence presence(bool there)
{
        return there ? MUST_BE_THERE : NOT_THERE;
}

static void read_parts(struct trait_reader *rd, const struct architecture *architecture,
                       struct traits *t)
{
        bool bias = architecture->may_bias && trait_reader_flag(rd, "attention_bias", false);
        bool ffn_bias = architecture->may_ffn_bias && trait_reader_flag(rd, "mlp_bias", false);

        t->qkv_bias = presence(architecture->qkv_bias || bias);
        t->output_bias = presence(bias);
        t->ffn_bias = presence(ffn_bias);
        t->qk_norm = presence(architecture->qk_norm);
        t->rope_table = NOT_THERE; /* only GGUF files have this tensor */
        t->tied = trait_reader_flag(rd, "tie_word_embeddings", false);
}

static void read_sizes(struct trait_reader *rd, const struct architecture *architecture,
                       struct traits *t)
{
        static const double eps = 1e-6;
        uint32_t kv_heads;

        t->layers = trait_reader_whole(rd, "num_hidden_layers", 1, LAYERS_MAX, NULL);
        t->width = trait_reader_whole(rd, "hidden_size", 1, WIDTH_MAX, NULL);
        t->ffn = trait_reader_whole(rd, "intermediate_size", 1, WIDTH_MAX, NULL);
        t->vocab = trait_reader_whole(rd, "vocab_size", 2, VOCAB_MAX, NULL);
        t->context = trait_reader_whole(rd, "max_position_embeddings", 1, CONTEXT_MAX, NULL);
        t->eps = (float)trait_reader_real(rd, "rms_norm_eps", EPS_MIN, 1, &eps);
        t->heads = trait_reader_whole(rd, "num_attention_heads", 1, HEADS_MAX, NULL);
        kv_heads = architecture->kv_heads && !trait_reader_has(rd, "num_key_value_heads") &&
                                   rd->node == JSON_NONE
                           ? architecture->kv_heads
                           : t->heads;
        t->kv_heads = trait_reader_whole(rd, "num_key_value_heads", 1, HEADS_MAX, &kv_heads);
        if (architecture->head_dim && !trait_reader_has(rd, "head_dim"))
                t->head_dim = architecture->head_dim;
        else
                t->head_dim = trait_reader_head_dim(rd, "head_dim", t);
}

static void read_tokens(struct trait_reader *rd, const struct architecture *architecture,
                        struct traits *t)
{
        const uint32_t none = TRAITS_NO_TOKEN;
        uint32_t list;

        t->bos = architecture->bos_first
                         ? trait_reader_whole(rd, "bos_token_id", 0, t->vocab - 1, &none)
                         : none;
        if (!trait_reader_has(rd, "eos_token_id"))
                return;
        if (json_kind(rd->from, rd->node) != JSON_ARRAY) {
                traits_add_eos(rd, t,
                               trait_reader_whole(rd, "eos_token_id", 0, t->vocab - 1, NULL));
                return;
        }
        list = rd->node;
        for (uint32_t at = json_first(rd->from, list); at != JSON_NONE;
             at = json_next(rd->from, at)) {
                uint64_t id;

                if (json_whole(rd->from, at, &id) && id < t->vocab)
                        traits_add_eos(rd, t, (uint32_t)id);
                else
                        trait_reader_fault(rd, "config.json's 'eos_token_id' has an id that is not "
                                               "in the vocabulary");
        }
}

int config_traits(const struct json_document *json, struct traits *ret_traits, char *why,
                  size_t why_bytes)
{
        struct trait_reader rd = {
                .kind = &config_keys, .from = json, .why = why, .why_bytes = why_bytes
        };
        const struct architecture *architecture = read_architecture(&rd);
        struct traits t = { .embed_scale = 1 };
        struct scale_block block;

        if (!architecture)
                return error_raise(rd.r);
        read_sizes(&rd, architecture, &t);
        read_parts(&rd, architecture, &t);
        read_activation(&rd, &t);
        read_window(&rd, architecture, &t);
        read_rope(&rd, &t);
        read_tokens(&rd, architecture, &t);
        trait_reader_refuse(&rd, refusals, sizeof(refusals) / sizeof(*refusals));
        traits_check(&rd, &t);
        if (!rd.r)
                rd.r = config_quantization(json, &block, why, why_bytes);
        if (rd.r)
                return error_raise(rd.r);
        *ret_traits = t;
        return 0;
}
