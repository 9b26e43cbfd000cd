#include "daemon/files/tensor-names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define LAYER_DIGITS_MAX 9u

/* Without ".weight" and ".bias", which stay as they are. */
struct renaming {
        const char *from, *to; /* NULL: left out */
};

/* In front of all names of a model, at most one of these; the longest that fits. */
static const char *const prefixes[] = {
        "model.language_model.model.",
        "language_model.model.",
        "model.language_model.",
        "language_model.",
        "model.decoder.",
        "transformer.",
        "gpt_neox.",
        "model.",
};

/* Of other parts of a model. */
static const char *const others[] = {
        "vision_tower.",
        "vision_model.",
        "vision_encoder.",
        "visual.",
        "audio_tower.",
        "embed_vision.",
        "embed_audio.",
        "multi_modal_projector.",
        "mtp.",
        "vision_language_adapter.",
        "patch_merger.",
        "mtp_layers.",
};

static const struct renaming llama_outside[] = {
        { "embed_tokens", "token_embd" },
        { "norm", "output_norm" },
        { "lm_head", "output" },
        { "embed_tokens_per_layer", "per_layer_token_embd" },
        { "per_layer_model_projection", "per_layer_model_proj" },
        { "per_layer_projection_norm", "per_layer_proj_norm" },
        { NULL, NULL },
};

static const struct renaming llama_inside[] = {
        { "input_layernorm", "attn_norm" },
        { "self_attn.q_proj", "attn_q" },
        { "self_attn.k_proj", "attn_k" },
        { "self_attn.v_proj", "attn_v" },
        { "self_attn.qkv_proj", "attn_qkv" },
        { "self_attn.W_pack", "attn_qkv" },
        { "self_attn.q_norm", "attn_q_norm" },
        { "self_attn.k_norm", "attn_k_norm" },
        { "self_attn.q_layernorm", "attn_q_norm" },
        { "self_attn.k_layernorm", "attn_k_norm" },
        { "self_attn.o_proj", "attn_output" },
        { "self_attn.rotary_emb.inv_freq", NULL }, /* computed from config.json */
        { "post_attention_layernorm", "ffn_norm" },
        { "mlp.gate_proj", "ffn_gate" },
        { "mlp.up_proj", "ffn_up" },
        { "mlp.gate_up_proj", "ffn_up" },
        { "mlp.down_proj", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming post_inside[] = {
        { "post_attention_layernorm", "post_attention_norm" },
        { "post_feedforward_layernorm", "post_ffw_norm" },
        { NULL, NULL },
};

static const struct renaming gemma_inside[] = {
        { "post_attention_layernorm", "post_attention_norm" },
        { "pre_feedforward_layernorm", "ffn_norm" },
        { "post_feedforward_layernorm", "post_ffw_norm" },
        { "per_layer_input_gate", "inp_gate" },
        { "per_layer_projection", "proj" },
        { "post_per_layer_input_norm", "post_norm" },
        { "layer_scalar", "layer_output_scale.weight" },
        { NULL, NULL },
};

static const struct renaming glm4_inside[] = {
        { "post_self_attn_layernorm", "post_attention_norm" },
        { "post_mlp_layernorm", "post_ffw_norm" },
        { NULL, NULL },
};

static const struct renaming granite_inside[] = {
        { "shared_mlp.input_linear", "ffn_up" },
        { "shared_mlp.output_linear", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming internlm2_outside[] = {
        { "tok_embeddings", "token_embd" },
        { "output", "output" },
        { NULL, NULL },
};

static const struct renaming internlm2_inside[] = {
        { "attention_norm", "attn_norm" }, { "attention.wqkv", "attn_qkv" },
        { "attention.wo", "attn_output" }, { "ffn_norm", "ffn_norm" },
        { "feed_forward.w1", "ffn_gate" }, { "feed_forward.w3", "ffn_up" },
        { "feed_forward.w2", "ffn_down" }, { NULL, NULL },
};

static const struct renaming gpt2_outside[] = {
        { "wte", "token_embd" },
        { "wpe", "position_embd" },
        { "ln_f", "output_norm" },
        { NULL, NULL },
};

static const struct renaming gpt2_inside[] = {
        { "ln_1", "attn_norm" },
        { "attn.c_attn", "attn_qkv" },
        { "attn.c_proj", "attn_output" },
        { "attn", NULL }, /* attn.bias is a mask */
        { "attn.masked_bias", NULL },
        { "ln_2", "ffn_norm" },
        { "mlp.c_fc", "ffn_up" },
        { "mlp.c_proj", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming qwen_inside[] = {
        { "ln_1", "attn_norm" },          { "attn.c_attn", "attn_qkv" },
        { "attn.c_proj", "attn_output" }, { "ln_2", "ffn_norm" },
        { "mlp.w1", "ffn_up" },           { "mlp.w2", "ffn_gate" },
        { "mlp.c_proj", "ffn_down" },     { NULL, NULL },
};

static const struct renaming gptj_inside[] = {
        { "ln_1", "attn_norm" },
        { "attn.q_proj", "attn_q" },
        { "attn.k_proj", "attn_k" },
        { "attn.v_proj", "attn_v" },
        { "attn.qkv_proj", "attn_qkv" },
        { "attn.out_proj", "attn_output" },
        { "attn", NULL },
        { "attn.masked_bias", NULL },
        { "attn.causal_mask", NULL },
        { "attn.embed_positions", NULL },
        { "mlp.fc_in", "ffn_up" },
        { "mlp.fc_out", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming neox_outside[] = {
        { "embed_in", "token_embd" },
        { "final_layer_norm", "output_norm" },
        { "embed_out", "output" },
        { NULL, NULL },
};

static const struct renaming neox_inside[] = {
        { "attention.query_key_value", "attn_qkv" },
        { "attention.dense", "attn_output" },
        { "attention", NULL },
        { "attention.masked_bias", NULL },
        { "attention.rotary_emb.inv_freq", NULL },
        { "mlp.dense_h_to_4h", "ffn_up" },
        { "mlp.dense_4h_to_h", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming falcon_outside[] = {
        { "word_embeddings", "token_embd" },
        { "word_embeddings_layernorm", "token_embd_norm" },
        { "ln_f", "output_norm" },
        { NULL, NULL },
};

static const struct renaming falcon_inside[] = {
        { "ln_attn", "attn_norm_2" },
        { "ln_mlp", "attn_norm" },
        { "self_attention.query_key_value", "attn_qkv" },
        { "self_attention.dense", "attn_output" },
        { "self_attention.rotary_emb.inv_freq", NULL },
        { "mlp.dense_h_to_4h", "ffn_up" },
        { "mlp.dense_4h_to_h", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming starcoder2_inside[] = {
        { "mlp.c_fc", "ffn_up" },
        { "mlp.c_proj", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming mpt_outside[] = {
        { "wte", "token_embd" },
        { "norm_f", "output_norm" },
        { NULL, NULL },
};

static const struct renaming mpt_inside[] = {
        { "norm_1", "attn_norm" },
        { "attn.Wqkv", "attn_qkv" },
        { "attn.out_proj", "attn_output" },
        { "norm_2", "ffn_norm" },
        { "ffn.up_proj", "ffn_up" },
        { "ffn.down_proj", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming opt_outside[] = {
        { "embed_positions", "position_embd" },
        { "embed_positions.weights", NULL }, /* computed */
        { "final_layer_norm", "output_norm" },
        { "layer_norm", "output_norm" },
        { "project_in", "project_in" },
        { "project_out", "project_out" },
        { NULL, NULL },
};

static const struct renaming opt_inside[] = {
        { "self_attn_layer_norm", "attn_norm" },
        { "self_attn.out_proj", "attn_output" },
        { "final_layer_norm", "ffn_norm" },
        { "fc1", "ffn_up" },
        { "fc2", "ffn_down" },
        { NULL, NULL },
};

static const struct renaming phi_outside[] = {
        { "final_layernorm", "output_norm" },
        { NULL, NULL },
};

static const struct renaming phi_inside[] = {
        { "self_attn.dense", "attn_output" },
        { "mlp.fc1", "ffn_up" },
        { "mlp.fc2", "ffn_down" },
        { NULL, NULL },
};

/* A naming's own names; those of llama hold besides. */
static const struct naming {
        const char *layers; /* before a layer's number */
        const struct renaming *outside, *inside;
} namings[NAMING_N] = {
        [NAMING_LLAMA] = { "layers.", llama_outside, llama_inside },
        [NAMING_POST] = { "layers.", llama_outside, post_inside },
        [NAMING_GEMMA] = { "layers.", llama_outside, gemma_inside },
        [NAMING_GLM4] = { "layers.", llama_outside, glm4_inside },
        [NAMING_GRANITE] = { "layers.", llama_outside, granite_inside },
        [NAMING_INTERNLM2] = { "layers.", internlm2_outside, internlm2_inside },
        [NAMING_GPT2] = { "h.", gpt2_outside, gpt2_inside },
        [NAMING_QWEN] = { "h.", gpt2_outside, qwen_inside },
        [NAMING_GPTJ] = { "h.", gpt2_outside, gptj_inside },
        [NAMING_NEOX] = { "layers.", neox_outside, neox_inside },
        [NAMING_FALCON] = { "h.", falcon_outside, falcon_inside },
        [NAMING_BLOOM] = { "h.", falcon_outside, falcon_inside },
        [NAMING_STARCODER2] = { "layers.", llama_outside, starcoder2_inside },
        [NAMING_MPT] = { "blocks.", mpt_outside, mpt_inside },
        [NAMING_OPT] = { "layers.", opt_outside, opt_inside },
        [NAMING_PHI] = { "layers.", phi_outside, phi_inside },
};

/* After the last dot: scales that other programs use to round activations. */
static const char *const rounding[] = {
        "input_scale", "activation_scale", "output_scale", "q_scale",
        "k_scale",     "v_scale",          "kv_scale",
};

static const struct renaming *find_in(const struct renaming *table, const char *name, size_t bytes)
{
        for (; table->from; table++)
                if (strlen(table->from) == bytes && !memcmp(table->from, name, bytes))
                        return table;
        return NULL;
}

static const struct renaming *find_renaming(const struct naming *own, bool is_inside,
                                            const char *name, size_t bytes)
{
        const struct naming *usual = &namings[NAMING_LLAMA];
        const struct renaming *found = find_in(is_inside ? own->inside : own->outside, name, bytes);

        return found ? found : find_in(is_inside ? usual->inside : usual->outside, name, bytes);
}

static bool starts_with(const char *name, const char *start)
{
        return !strncmp(name, start, strlen(start));
}

/* The number of digits behind the word for layers, without leading zeros; 0: another name. */
static unsigned layer_digits(const char *layers, const char *name)
{
        size_t word = strlen(layers);
        unsigned n;

        if (!starts_with(name, layers))
                return 0;
        n = (unsigned)strspn(name + word, "0123456789");
        if (!n || n > LAYER_DIGITS_MAX || name[word + n] != '.' || (n > 1 && name[word] == '0'))
                return 0;
        return n;
}

/* Bytes of ".weight" or ".bias" and of what a weight's scales have behind it; 0: none of them. */
static size_t ending(const char *name)
{
        static const char *const endings[] = { ".weight", ".bias", ".weight_scale",
                                               ".weight_scale_inv" };
        size_t bytes = strlen(name);

        for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
                size_t n = strlen(endings[i]);

                if (bytes > n && !strcmp(name + bytes - n, endings[i]))
                        return n;
        }
        return 0;
}

/* Bytes of ".norms.N" at the end: the norm of head N, where each is a tensor; 0: none of them. */
static size_t head_ending(const char *name, size_t bytes)
{
        static const char word[] = ".norms.";
        size_t digits = 0, n = sizeof(word) - 1;

        while (digits < bytes && strchr("0123456789", name[bytes - 1 - digits]))
                digits++;
        if (!digits || bytes < digits + n || memcmp(name + bytes - digits - n, word, n))
                return 0;
        return digits + n;
}

static bool is_for_rounding(const char *name)
{
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && i < sizeof(rounding) / sizeof(*rounding); i++)
                if (!strcmp(dot + 1, rounding[i]))
                        return true;
        return false;
}

static bool is_of_another_part(const char *name)
{
        static const char *const before[] = { "model.", "transformer." };
        const char *rest = name;

        for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++)
                if (starts_with(name, before[i]))
                        rest = name + strlen(before[i]);
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
                if (starts_with(rest, others[i]))
                        return true;
        return false;
}

static const char *without_prefix(const char *name)
{
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
                if (starts_with(name, prefixes[i]))
                        return name + strlen(prefixes[i]);
        return name;
}

bool tensor_name_canonical(enum tensor_naming naming, const char *name, char *ret_name)
{
        const struct naming *own = &namings[naming];
        const char *rest = without_prefix(name), *middle;
        unsigned digits = layer_digits(own->layers, rest);
        size_t word = strlen(own->layers), end = ending(rest), bytes;
        const struct renaming *r;
        int n;

        if (is_for_rounding(name) || is_of_another_part(name))
                return false;
        middle = digits ? rest + word + digits + 1 : rest;
        bytes = strlen(middle) > end ? strlen(middle) - end : 0;
        bytes -= head_ending(middle, bytes);
        r = find_renaming(own, digits > 0, middle, bytes);
        if (r && !r->to)
                return false;
        if (!r)
                n = sprintf(ret_name, "%s", name);
        else if (digits)
                n = sprintf(ret_name, "blk.%.*s.%s%s", (int)digits, rest + word, r->to,
                            middle + bytes);
        else
                n = sprintf(ret_name, "%s%s", r->to, middle + bytes);
        assert((size_t)n <= strlen(name) + TENSOR_NAME_GROWTH_MAX);
        return true;
}
