#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/errtext.h"
#include "daemon/files/config-families.h"
#include "daemon/files/config-keys.h"
#include "daemon/files/config-layers.h"
#include "daemon/files/config-quantization.h"
#include "daemon/files/config-traits.h"
#include "daemon/files/trait-reader.h"

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
};

/*
 * Models whose text part is a model of its own, described by "text_config".  They name themselves;
 * the text part has a model_type.
 */
static const char *const wrappers[] = {
        "Mistral3ForConditionalGeneration",
        "Gemma3ForConditionalGeneration",
        "Gemma4ForConditionalGeneration",
};

static bool is_wrapper(const char *name)
{
        for (size_t i = 0; i < sizeof(wrappers) / sizeof(*wrappers); i++)
                if (!strcmp(name, wrappers[i]))
                        return true;
        return false;
}

/* The first of `architectures`; if absent, the older and less precise model_type. */
static const char *read_name(struct trait_reader *rd, bool *ret_is_type)
{
        *ret_is_type = !trait_reader_has(rd, "architectures");
        if (*ret_is_type)
                return trait_reader_text(rd, "model_type");
        return json_string(rd->from, json_first(rd->from, rd->node), NULL);
}

/* After this, keys are those of the text model. */
static const struct config_family *read_family(struct trait_reader *rd)
{
        const struct config_family *family = NULL;
        bool is_type;
        const char *name = read_name(rd, &is_type);

        if (name && !is_type && is_wrapper(name) && trait_reader_has(rd, "text_config")) {
                rd->root = rd->node;
                is_type = true;
                name = trait_reader_text(rd, "model_type");
                /* Gemma 3's first files leave it out. */
                if (!name && trait_reader_has(rd, "sliding_window"))
                        name = "gemma3_text";
        }
        if (name)
                family = config_family_of(name, is_type);
        if (!name)
                trait_reader_fault(rd, "config.json names no architecture");
        else if (!family)
                trait_reader_fault(rd, "architecture '%s' is not supported yet", shown(name).text);
        return family;
}

enum tensor_naming config_naming(const struct json_document *json)
{
        char why[256];
        struct trait_reader rd = {
                .kind = &config_keys, .from = json, .why = why, .why_bytes = sizeof(why)
        };
        const struct config_family *family = read_family(&rd);

        return family ? family->naming : NAMING_LLAMA;
}

static void read_activation(struct trait_reader *rd, const struct config_family *family,
                            struct traits *t)
{
        static const struct {
                const char *name;
                enum activation act;
        } names[] = {
                { "silu", ACT_SILU },           { "swish", ACT_SILU },
                { "gelu", ACT_GELU },           { "gelu_new", ACT_GELU_TANH },
                { "gelu_fast", ACT_GELU_TANH }, { "gelu_pytorch_tanh", ACT_GELU_TANH },
                { "relu", ACT_RELU },           { "relu2", ACT_RELU_SQUARE },
        };
        const char *key = trait_reader_first(rd, family->sizes->activation);
        const char *name = trait_reader_text(rd, key);

        t->act = family->activation;
        for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
                if (!strcmp(name, names[i].name)) {
                        t->act = names[i].act;
                        return;
                }
        if (name)
                trait_reader_fault(rd, "config.json's '%s' is '%s', which is not supported yet",
                                   key, shown(name).text);
}

static enum presence presence(bool there)
{
        return there ? MUST_BE_THERE : NOT_THERE;
}

static enum presence bias_presence(struct trait_reader *rd, enum config_bias bias, const char *key)
{
        if (bias == BIAS_NEVER || bias == BIAS_ALWAYS)
                return presence(bias == BIAS_ALWAYS);
        return presence(trait_reader_flag(rd, key, bias == BIAS_USUAL));
}

/* Sets the form that the family's row has; the family's own reader may change it. */
static void set_form(struct trait_reader *rd, const struct config_family *family, struct traits *t)
{
        const char *key = family->bias_key ? family->bias_key : "attention_bias";

        t->residual = family->residual;
        t->norm = family->norm;
        t->norm_weights = !family->no_norm_weights;
        t->norm_bias = presence(family->norm_bias);
        t->norm_is_one_plus = family->norm_is_one_plus;
        t->pre_norms = !family->no_pre_norms;
        t->post_norms = family->post_norms;
        t->embed_norm = presence(family->embed_norm);
        t->qk_norm = presence(family->qk_norm != NORM_NONE);
        t->qk_norm_bias = NOT_THERE;
        t->qk_norm_kind = family->qk_norm;
        t->qk_norm_span = family->qk_span;
        t->qkv_bias = bias_presence(rd, family->qkv_bias, key);
        t->output_bias = bias_presence(rd, family->output_bias, key);
        t->ffn_bias = bias_presence(rd, family->ffn_bias, "mlp_bias");
        t->head_bias = presence(family->head_bias);
        t->qkv_order = family->qkv_order;
        t->transposed = family->transposed;
        t->gated = !family->plain;
        t->rope_table = t->rope_tables = NOT_THERE; /* only GGUF files have these tensors */
        t->layer_scale = NOT_THERE;
}

/* A wrapper's own key comes first: it owns the head. */
static void read_tied(struct trait_reader *rd, const struct config_family *family, struct traits *t)
{
        uint32_t text = rd->root;
        bool inner = trait_reader_flag(rd, "tie_word_embeddings", family->tied);

        rd->root = 0;
        t->tied = trait_reader_flag(rd, "tie_word_embeddings", inner);
        rd->root = text;
}

static void read_heads(struct trait_reader *rd, const struct config_family *family,
                       struct traits *t)
{
        const struct config_sizes *keys = family->sizes;
        const char *key;
        uint32_t usual;

        t->heads = trait_reader_whole(rd, trait_reader_first(rd, keys->heads), 1, HEADS_MAX, NULL);
        key = trait_reader_first(rd, keys->kv_heads);
        /* null means as many as heads; only an absent key has the family's default */
        usual = family->kv_heads && !trait_reader_has(rd, key) && rd->node == JSON_NONE
                        ? family->kv_heads
                        : t->heads;
        t->kv_heads = trait_reader_whole(rd, key, 1, HEADS_MAX, &usual);
        if (family->head_dim && !trait_reader_has(rd, "head_dim"))
                t->head_dim = family->head_dim;
        else
                t->head_dim = trait_reader_head_dim(rd, "head_dim", t);
}

static void read_sizes(struct trait_reader *rd, const struct config_family *family,
                       struct traits *t)
{
        const struct config_sizes *keys = family->sizes;
        uint32_t four;

        t->layers =
                trait_reader_whole(rd, trait_reader_first(rd, keys->layers), 1, LAYERS_MAX, NULL);
        t->width = trait_reader_whole(rd, trait_reader_first(rd, keys->width), 1, WIDTH_MAX, NULL);
        four = t->width <= WIDTH_MAX / 4 ? 4 * t->width : WIDTH_MAX;
        t->ffn = trait_reader_whole(rd, trait_reader_first(rd, keys->ffn), 1, WIDTH_MAX,
                                    family->plain ? &four : NULL);
        t->vocab = trait_reader_whole(rd, "vocab_size", 2, VOCAB_MAX, NULL);
        t->context = trait_reader_whole(rd, trait_reader_first(rd, keys->context), 1, CONTEXT_MAX,
                                        family->context ? &family->context : NULL);
        t->eps = (float)trait_reader_real(rd, trait_reader_first(rd, keys->eps), EPS_MIN, 1,
                                          &family->eps);
        read_heads(rd, family, t);
}

static void read_tokens(struct trait_reader *rd, const struct config_family *family,
                        struct traits *t)
{
        const uint32_t none = TRAITS_NO_TOKEN;
        uint32_t list;

        t->bos = family->bos_first ? trait_reader_whole(rd, "bos_token_id", 0, t->vocab - 1, &none)
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
                .kind = &config_keys, .from = json, .prefix = "", .why = why, .why_bytes = why_bytes
        };
        const struct config_family *family = read_family(&rd);
        struct traits t = { .embed_scale = 1, .residual_scale = 1, .head_scale = 1 };
        struct scale_block block;

        if (!family)
                return error_raise(rd.r);
        read_sizes(&rd, family, &t);
        set_form(&rd, family, &t);
        read_tied(&rd, family, &t);
        read_activation(&rd, family, &t);
        config_read_windows(&rd, family, &t);
        config_read_ropes(&rd, family, &t);
        read_tokens(&rd, family, &t);
        if (family->read)
                family->read(&rd, &t);
        trait_reader_refuse(&rd, refusals, sizeof(refusals) / sizeof(*refusals));
        traits_check(&rd, &t);
        if (!rd.r)
                rd.r = config_quantization(json, &block, why, why_bytes);
        if (rd.r)
                return error_raise(rd.r);
        *ret_traits = t;
        return 0;
}
