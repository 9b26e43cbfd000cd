/*
 * The meaning of a Hugging Face config.json, and which settings are refused.
 *
 * The whole files are as their publishers wrote them, without the keys that only training uses.
 * The expected traits were worked out by hand, from the behaviour of transformers.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/config-traits.h"

#define NODES_MAX 1000u

static int read_traits(const char *text, struct traits *ret, char *why, size_t why_bytes)
{
        struct json_document *json;
        int r = json_parse_python(text, strlen(text), NODES_MAX, &json, why, why_bytes);

        if (r)
                fail_msg("the test's own text: %s", why);
        r = config_traits(json, ret, why, why_bytes);
        json_free(json);
        return r;
}

static struct traits traits_of(const char *text)
{
        struct traits t;
        char why[256] = "";

        if (read_traits(text, &t, why, sizeof(why)))
                fail_msg("%s", why);
        return t;
}

/* Layers from this one on have a window, and no others. */
static bool windows_from(const struct traits *t, uint32_t window, uint32_t from)
{
        for (uint32_t i = 0; i < t->layers; i++)
                if (t->layer[i].window != (i < from ? 0 : window))
                        return false;
        return true;
}

/* Members first, then the least that a model must say. */
static const char *with(const char *architecture, const char *members)
{
        static char text[2048];

        snprintf(text, sizeof(text),
                 "{\"architectures\": [\"%sForCausalLM\"], %s%s\"hidden_size\": 64, "
                 "\"intermediate_size\": 96, \"num_hidden_layers\": 3, "
                 "\"num_attention_heads\": 8, \"vocab_size\": 300, "
                 "\"max_position_embeddings\": 1000}",
                 architecture, members, *members ? ", " : "");
        return text;
}

#define KV "\"num_key_value_heads\": 2"

static void reads_the_config_of_llama_3_1(void **state)
{
        struct traits t = traits_of(
                "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,"
                "\"attention_dropout\":0.0,\"bos_token_id\":128000,"
                "\"eos_token_id\":[128001,128008,128009],\"hidden_act\":\"silu\","
                "\"hidden_size\":4096,\"initializer_range\":0.02,\"intermediate_size\":14336,"
                "\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\","
                "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":8,"
                "\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":8.0,"
                "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
                "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},"
                "\"rope_theta\":500000.0,\"tie_word_embeddings\":false,"
                "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.43.0.dev0\","
                "\"use_cache\":true,\"vocab_size\":128256}");

        (void)state;
        assert_true(t.width == 4096 && t.ffn == 14336 && t.layers == 32 && t.heads == 32 &&
                    t.kv_heads == 8 && t.head_dim == 128 && t.vocab == 128256 &&
                    t.context == 131072);
        assert_true(t.ropes[0].pairing == ROPE_HALVES && t.ropes[0].dims == 128 &&
                    t.ropes[0].scaling == ROPE_LLAMA3 && t.ropes[0].base == 500000 &&
                    t.ropes[0].factor == 8 && t.ropes[0].low == 1 && t.ropes[0].high == 4 &&
                    t.ropes[0].trained == 8192 && t.ropes[0].attention == 1);
        assert_true(t.bos == 128000 && t.eos_count == 3 && t.eos[2] == 128009 && !t.tied);
        assert_true(t.qkv_bias == NOT_THERE && t.output_bias == NOT_THERE &&
                    t.ffn_bias == NOT_THERE && t.qk_norm == NOT_THERE && t.layer[0].window == 0);
        assert_true(t.eps == 1e-5f && fabs((double)t.attend_scale - 0.08838834764831845) < 1e-8);
}

static void mistral_0_1_has_a_window_in_every_layer(void **state)
{
        struct traits t = traits_of(
                "{\"architectures\":[\"MistralForCausalLM\"],\"bos_token_id\":1,"
                "\"eos_token_id\":2,\"hidden_act\":\"silu\",\"hidden_size\":4096,"
                "\"intermediate_size\":14336,\"max_position_embeddings\":32768,"
                "\"model_type\":\"mistral\",\"num_attention_heads\":32,\"num_hidden_layers\":32,"
                "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_theta\":10000.0,"
                "\"sliding_window\":4096,\"tie_word_embeddings\":false,"
                "\"torch_dtype\":\"bfloat16\",\"vocab_size\":32000}");

        (void)state;
        assert_true(windows_from(&t, 4096, 0) && t.bos == 1 && t.eos[0] == 2);
        assert_true(traits_of(with("Mistral", KV)).layer[0].window == 4096);
        assert_true(traits_of(with("Mistral", KV ",\"sliding_window\":null")).layer[0].window == 0);
        assert_true(traits_of(with("Mistral", KV ",\"head_dim\":20")).head_dim == 20);
        assert_true(traits_of(with("Mistral", "")).kv_heads == 8);
}

static void qwen_2_5_has_biases_and_no_bos(void **state)
{
        struct traits t = traits_of(
                "{\"architectures\":[\"Qwen2ForCausalLM\"],\"bos_token_id\":151643,"
                "\"eos_token_id\":151645,\"hidden_act\":\"silu\",\"hidden_size\":896,"
                "\"intermediate_size\":4864,\"max_position_embeddings\":32768,"
                "\"max_window_layers\":21,\"model_type\":\"qwen2\",\"num_attention_heads\":14,"
                "\"num_hidden_layers\":24,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,"
                "\"rope_scaling\":{\"factor\":4.0,\"original_max_position_embeddings\":32768,"
                "\"type\":\"yarn\"},\"rope_theta\":1000000.0,\"sliding_window\":32768,"
                "\"tie_word_embeddings\":true,\"use_sliding_window\":false,"
                "\"vocab_size\":151936}");

        (void)state;
        assert_true(t.qkv_bias == MUST_BE_THERE && t.output_bias == NOT_THERE && t.tied);
        assert_true(t.layer[0].window == 0 && t.bos == TRAITS_NO_TOKEN && t.head_dim == 64);
        assert_true(t.ropes[0].scaling == ROPE_YARN && t.ropes[0].factor == 4 &&
                    t.ropes[0].low == 1 && t.ropes[0].high == 32 && t.ropes[0].whole &&
                    t.context == 131072);
        assert_true(fabs(t.ropes[0].attention - 1.138629436111989) < 1e-12);
}

static void qwen_3_has_qk_norms_and_its_own_head_size(void **state)
{
        struct traits t = traits_of(
                "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,"
                "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,"
                "\"hidden_act\":\"silu\",\"hidden_size\":1024,\"intermediate_size\":3072,"
                "\"max_position_embeddings\":40960,\"max_window_layers\":28,"
                "\"model_type\":\"qwen3\",\"num_attention_heads\":16,\"num_hidden_layers\":28,"
                "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-06,\"rope_scaling\":null,"
                "\"rope_theta\":1000000,\"sliding_window\":null,\"tie_word_embeddings\":true,"
                "\"use_sliding_window\":false,\"vocab_size\":151936}");

        (void)state;
        assert_true(t.qk_norm == MUST_BE_THERE && t.qkv_bias == NOT_THERE && t.head_dim == 128);
        assert_true(t.ropes[0].dims == 128 && t.ropes[0].base == 1e6 &&
                    t.ropes[0].scaling == ROPE_PLAIN);
        assert_true(traits_of(with("Qwen3", KV)).head_dim == 128);
        assert_true(traits_of(with("Qwen3", KV ",\"attention_bias\":true")).output_bias ==
                    MUST_BE_THERE);
}

static void uses_the_defaults_of_transformers_for_missing_keys(void **state)
{
        struct traits t = traits_of(with("Llama", ""));

        (void)state;
        assert_true(t.kv_heads == 8 && t.head_dim == 8 && t.eps == 1e-6f && !t.tied);
        assert_true(t.ropes[0].base == 10000 && t.ropes[0].scaling == ROPE_PLAIN &&
                    t.layer[0].window == 0);
        assert_true(t.bos == TRAITS_NO_TOKEN && t.eos_count == 0 && t.act == ACT_SILU);
        t = traits_of(with("Llama", "\"num_key_value_heads\": null, \"head_dim\": null"));
        assert_true(t.kv_heads == 8 && t.head_dim == 8);
        t = traits_of(with("Qwen2", "\"num_key_value_heads\": null"));
        assert_true(t.kv_heads == 8);
        t = traits_of(with("Llama", "\"attention_bias\":true,\"mlp_bias\":true,"
                                    "\"hidden_act\":\"gelu_pytorch_tanh\""));
        assert_true(t.qkv_bias == MUST_BE_THERE && t.output_bias == MUST_BE_THERE &&
                    t.ffn_bias == MUST_BE_THERE && t.act == ACT_GELU_TANH);
}

static void recognises_the_architecture_by_model_type(void **state)
{
        struct traits t = traits_of("{\"model_type\":\"qwen2\",\"hidden_size\":64,"
                                    "\"intermediate_size\":96,\"num_hidden_layers\":3,"
                                    "\"num_attention_heads\":32,\"vocab_size\":300,"
                                    "\"max_position_embeddings\":1000}");

        (void)state;
        assert_true(t.qkv_bias == MUST_BE_THERE && t.kv_heads == 32);
}

#define PARAMETERS(members) with("Llama", "\"rope_parameters\":{" members "}")

static void reads_rope_scaling_in_both_spellings(void **state)
{
        struct traits t = traits_of(PARAMETERS("\"rope_type\":\"default\",\"rope_theta\":5e5"));

        (void)state;
        assert_true(t.ropes[0].scaling == ROPE_PLAIN && t.ropes[0].base == 5e5);
        t = traits_of(PARAMETERS("\"rope_type\":\"linear\",\"factor\":2,\"rope_theta\":10000"));
        assert_true(t.ropes[0].scaling == ROPE_LINEAR && t.ropes[0].factor == 2 &&
                    t.context == 1000);
        t = traits_of(with("Llama", "\"rope_theta\":777,\"rope_scaling\":{\"type\":\"linear\","
                                    "\"factor\":2.5}"));
        assert_true(t.ropes[0].scaling == ROPE_LINEAR && t.ropes[0].factor == 2.5 &&
                    t.ropes[0].base == 777);
        /* Where it says nothing of the trained context, transformers takes the whole one. */
        t = traits_of(PARAMETERS("\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
                                 "\"high_freq_factor\":4"));
        assert_true(t.ropes[0].trained == 1000);
}

static void reads_every_parameter_of_yarn(void **state)
{
        struct traits t = traits_of(PARAMETERS(
                "\"rope_type\":\"yarn\",\"factor\":4,\"beta_fast\":16,\"beta_slow\":2,"
                "\"truncate\":false,\"original_max_position_embeddings\":250,\"finetuned\":true"));

        (void)state;
        assert_true(t.ropes[0].low == 2 && t.ropes[0].high == 16 && !t.ropes[0].whole &&
                    t.ropes[0].trained == 250 && t.context == 1000);
        t = traits_of(PARAMETERS("\"rope_type\":\"yarn\",\"factor\":4,\"attention_factor\":1.5"));
        assert_true(t.ropes[0].attention == 1.5);
        /*
         * DeepSeek: (0.1 ln 40 + 1) / (0.0707 ln 40 + 1).  One of the two settings alone has no
         * effect.
         */
        t = traits_of(PARAMETERS("\"rope_type\":\"yarn\",\"factor\":40,\"mscale\":1.0,"
                                 "\"mscale_all_dim\":0.707"));
        assert_true(fabs(t.ropes[0].attention - 1.0857263992561355) < 1e-9);
        t = traits_of(PARAMETERS("\"rope_type\":\"yarn\",\"factor\":40,\"mscale\":0.707"));
        assert_true(fabs(t.ropes[0].attention - 1.3688879454113936) < 1e-9);
        /* Without a factor: how much the context is of the trained one. */
        t = traits_of(PARAMETERS("\"rope_type\":\"yarn\",\"factor\":null,"
                                 "\"original_max_position_embeddings\":250"));
        assert_true(t.ropes[0].factor == 4);
}

static void qwen_windows_need_a_switch_and_apply_to_the_last_layers(void **state)
{
        struct traits t = traits_of(with("Qwen2", KV ",\"sliding_window\":16"));

        (void)state;
        assert_true(t.layer[0].window == 0);
        t = traits_of(with("Qwen2", KV ",\"sliding_window\":16,\"use_sliding_window\":true,"
                                       "\"max_window_layers\":2"));
        assert_true(windows_from(&t, 16, 2));
        t = traits_of(with("Qwen2", KV ",\"use_sliding_window\":true"));
        assert_true(windows_from(&t, 4096, 28));
        t = traits_of(with("Qwen3", KV ",\"sliding_window\":16,\"use_sliding_window\":true,"
                                       "\"layer_types\":[\"full_attention\",\"sliding_attention\","
                                       "\"sliding_attention\"]"));
        assert_true(windows_from(&t, 16, 1));
        t = traits_of(with("Qwen2", KV ",\"layer_types\":[\"full_attention\",\"full_attention\","
                                       "\"full_attention\"],\"sliding_window\":null"));
        assert_true(t.layer[0].window == 0);
}

static const struct bad {
        const char *architecture, *members, *message;
} bads[] = {
        { "Mixtral", "", "architecture 'MixtralForCausalLM' is not supported yet" },
        { "Llama", "\"hidden_act\":\"xielu\"",
          "'hidden_act' is 'xielu', which is not supported yet" },
        { "Llama", "\"hidden_act\":3", "config.json's 'hidden_act' is not a string" },
        { "Llama", "\"num_key_value_heads\":3", "8 heads are not a multiple of 3" },
        { "Llama", "\"num_key_value_heads\":8.0", "'num_key_value_heads' is not a whole number" },
        { "Llama", "\"num_key_value_heads\":4294967297", "is not a whole number of 32 bits" },
        { "Llama", "\"head_dim\":513", "'head_dim' is 513, not 2 to 512" },
        { "Llama", "\"head_dim\":7", "rope rotates 7 numbers of a head" },
        { "Llama", "\"rms_norm_eps\":0", "'rms_norm_eps' is 0, not" },
        { "Llama", "\"rms_norm_eps\":\"1e-5\"", "'rms_norm_eps' is not a real number" },
        { "Llama", "\"rope_theta\":1", "rope's base is 1" },
        { "Llama", "\"rope_theta\":Infinity", "'rope_theta' is not a real number" },
        { "Llama", "\"logits_scaling\":NaN", "'logits_scaling' has a value" },
        { "Llama", "\"num_key_value_heads\":-Infinity", "'num_key_value_heads' is not a whole" },
        { "Llama", "\"rope_theta\":1e300", "'rope_theta' is 1e+300" },
        { "Llama", "\"tie_word_embeddings\":1", "'tie_word_embeddings' is not true or false" },
        { "Llama", "\"eos_token_id\":300", "'eos_token_id' is 300, not 0 to 299" },
        { "Llama", "\"eos_token_id\":[1,300]", "'eos_token_id' has an id that is not" },
        { "Llama", "\"eos_token_id\":[1,-1]", "'eos_token_id' has an id that is not" },
        { "Llama", "\"eos_token_id\":[0,1,2,3,4,5,6,7,8]", "more than 8 tokens" },
        { "Llama", "\"eos_token_id\":\"</s>\"", "'eos_token_id' is not a whole number" },
        { "Llama", "\"bos_token_id\":-1", "'bos_token_id' is not a whole number" },
        { "Llama", "\"quantization_config\":{\"bits\":4}",
          "'quantization_config.quant_method' is missing" },
        { "Qwen3", KV ",\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}",
          "'quantization_config.quant_method' is 'gptq', which is not supported yet" },
        { "Llama",
          "\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"NVFP4\"}",
          "'quantization_config.quant_algo' is 'NVFP4', which is not supported yet" },
        { "Llama", "\"num_experts\":8", "'num_experts' has a value that is not supported yet" },
        { "Qwen3", KV ",\"num_local_experts\":8", "'num_local_experts' has a value" },
        { "Llama", "\"final_logit_softcapping\":30.0", "'final_logit_softcapping' has a value" },
        { "Llama", "\"partial_rotary_factor\":1.5", "'partial_rotary_factor' is 1.5, not 0 to 1" },
        { "Llama", "\"logits_scaling\":8.0", "'logits_scaling' has a value" },
        { "Llama", "\"alibi\":true", "'alibi' has a value" },
        { "Llama", "\"sliding_window\":16", "'sliding_window' is not supported with 'Llama" },
        { "Mistral", KV ",\"sliding_window\":0", "'sliding_window' is 0, not 1" },
        { "Mistral", KV ",\"sliding_window\":\"no\"", "'sliding_window' is not a whole" },
        { "Qwen2", KV ",\"layer_types\":[\"full_attention\"]", "'layer_types' are 1 for 3" },
        { "Gemma2", "\"head_dim\":2147483648", "'head_dim' is 2147483648, not 2 to 512" },
        { "Gemma2", "\"sliding_window\":0", "'sliding_window' is 0, not 1" },
        { "Gemma3", "\"sliding_window_pattern\":0", "'sliding_window_pattern' is 0, not 1" },
        { "Exaone4", "\"sliding_window_pattern\":\"\"",
          "'sliding_window_pattern' is '', not made" },
        { "Exaone4", "\"sliding_window_pattern\":\"LX\"", "is 'LX', not made of L and G" },
        { "SmolLM3", "\"use_sliding_window\":true,\"sliding_window\":16",
          "'use_sliding_window' is true, and there are no 'layer_types'" },
        { "SmolLM3", "\"no_rope_layer_interval\":0", "'no_rope_layer_interval' is 0, not 1" },
        { "SmolLM3", "\"no_rope_layers\":[1,2,1]", "has a value other than 0 and 1" },
        { "SmolLM3", "\"no_rope_layers\":[1]", "'no_rope_layers' are 1 for 3 layers" },
        { "Gemma3", "\"rope_parameters\":{\"full_attention\":7}", "is not an object" },
        { "Gemma3", "\"use_bidirectional_attention\":true", "is not supported yet" },
        { "Granite", "\"residual_multiplier\":0", "'residual_multiplier' is 0, not" },
        { "Granite", "\"logits_scaling\":\"8\"", "'logits_scaling' is not a real number" },
        { "GraniteMoeHybrid", "", "has no 'num_local_experts'" },
        { "GraniteMoeHybrid",
          "\"num_local_experts\":8,\"layer_types\":[\"attention\","
          "\"attention\",\"attention\"]",
          "'num_local_experts' has a value" },
        { "GraniteMoeHybrid",
          "\"num_local_experts\":0,\"layer_types\":[\"attention\",\"mamba\","
          "\"attention\"]",
          "have 'mamba'" },
        { "Phi3",
          "\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1,1,1],"
          "\"long_factor\":[1,1,1,1]}",
          "short_factor' has 3 numbers, not 4" },
        { "Phi3",
          "\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1,1,0,1],"
          "\"long_factor\":[1,1,1,1]}",
          "short_factor' has a number that is not above 0" },
        { "OPT", "\"ffn_dim\":96,\"word_embed_proj_dim\":65", "is 65, not 1 to 64" },
        { "OPT", "\"ffn_dim\":96,\"word_embed_proj_dim\":0", "is 0, not 1 to 64" },
        { "OPT", "\"ffn_dim\":96,\"_remove_final_layer_norm\":true",
          "'_remove_final_layer_norm' has a value" },
#define MPT "\"d_model\":64,\"n_layers\":3,\"n_heads\":8,\"max_seq_len\":9,"
        { "Mpt", MPT "\"norm_type\":\"rmsnorm\"", "'norm_type' is 'rmsnorm'" },
        { "Mpt", MPT "\"ffn_config\":{\"ffn_act_fn\":{\"name\":\"relu\"}}",
          "'ffn_config.ffn_act_fn'" },
        { "Mpt", MPT "\"attn_config\":{\"sliding_window_size\":4}", "is not -1" },
        { "Mpt", MPT "\"expansion_ratio\":0", "'expansion_ratio' is 0" },
        { "Mpt", MPT "\"attn_config\":{\"alibi\":true,\"alibi_bias_max\":65}", "is 65, not 1" },
        { "GPTJ", "\"n_positions\":9", "rope rotates 64 numbers of a head, which has 8" },
        { "CodeGen", "\"n_head\":2,\"n_positions\":9,\"rotary_dim\":4",
          "2 heads are not a multiple of 4" },
        { "GPTNeoX", "\"num_key_value_heads\":2", "8 heads and 2 kv heads in one tensor" },
        { "Qwen2", KV ",\"layer_types\":[\"full_attention\",\"chunked_attention\",{}]",
          "'layer_types' have 'chunked_attention'" },
        { "Qwen2", KV ",\"layer_types\":7", "'layer_types' are 0 for 3" },
        { "Llama", "\"rope_scaling\":{\"rope_type\":\"ntk\"}", "'ntk', which" },
        { "Llama", "\"rope_scaling\":{\"rope_type\":\"longrope\"}",
          "'rope_scaling.short_factor' is missing" },
        { "Llama", "\"rope_scaling\":{\"type\":\"linear\"}", "'rope_scaling.factor' is missing" },
        { "Llama", "\"rope_scaling\":{\"type\":\"linear\",\"factor\":0.5}", "factor' is 0.5, not" },
        { "Llama", "\"rope_scaling\":7", "'rope_scaling' is not an object" },
        { "Llama", "\"rope_scaling\":{\"type\":\"default\"},\"rope_parameters\":{}", "has both" },
        { "Qwen2", KV ",\"rope_scaling\":{\"type\":\"default\",\"mrope_section\":[16,24,24]}",
          "'rope_scaling.mrope_section' has a value that is not supported yet" },
        { "Llama", "\"rope_parameters\":{\"full_attention\":{}}",
          "parameters.full_attention' has" },
        { "Llama",
          "\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,"
          "\"high_freq_factor\":4}",
          "between 4 turns and 4" },
        { "Llama", "\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}", "freq_factor' is miss" },
        { "Llama", "\"rope_scaling\":{\"type\":\"yarn\",\"original_max_position_embeddings\":2000}",
          "'rope_scaling.factor' is missing" },
        { "Llama", "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"truncate\":0}",
          "'rope_scaling.truncate' is not true or false" },
};

static void slopes_of_falcon_have_the_scale_of_scores_and_nothing_rotates(void **state)
{
        struct traits t = traits_of(with("Falcon", "\"alibi\":true,\"multi_query\":false"));

        (void)state;
        assert_true(t.alibi == 8 && t.alibi_is_scaled);
        assert_int_equal(t.qkv_order, QKV_BY_HEAD);
        for (uint32_t i = 0; i < t.layers; i++)
                assert_int_equal(t.layer[i].rope, TRAITS_NO_ROPE);
        t = traits_of(with("Falcon", "\"alibi\":false"));
        assert_true(t.alibi == 0 && t.layer[0].rope == 0);
}

/* These matter in the published code, and transformers takes no notice of them. */
static void mpt_has_a_width_and_slopes_as_the_file_says(void **state)
{
        struct traits t = traits_of(with("Mpt", MPT "\"expansion_ratio\":2,\"attn_config\":{"
                                                    "\"alibi\":true,\"alibi_bias_max\":16,"
                                                    "\"sliding_window_size\":-1}"));

        (void)state;
        assert_true(t.ffn == 128 && t.alibi == 16);
}

static void phi_3_has_its_trained_positions_among_its_sizes(void **state)
{
#define TABLES "\"short_factor\":[1,1,1,1],\"long_factor\":[1,1,1,1]}"
        struct traits t = traits_of(with("Phi3", "\"original_max_position_embeddings\":250,"
                                                 "\"rope_scaling\":{\"type\":\"su\"," TABLES));

        (void)state;
        assert_true(t.ropes[0].trained == 250 && t.ropes[0].factor == 4);
        t = traits_of(with("Phi3",
                           "\"original_max_position_embeddings\":250,\"rope_scaling\":{"
                           "\"original_max_position_embeddings\":500,\"type\":\"su\"," TABLES));
        assert_true(t.ropes[0].trained == 250);
        t = traits_of(with("Phi3", "\"rope_scaling\":{\"original_max_position_embeddings\":500,"
                                   "\"type\":\"su\"," TABLES));
        assert_true(t.ropes[0].trained == 500);
        t = traits_of(with("Phi3", "\"original_max_position_embeddings\":250"));
        assert_true(t.ropes[0].scaling == ROPE_PLAIN && t.context == 1000);
#undef TABLES
}

static void opt_350m_norms_sums_and_has_an_embedding_of_another_width(void **state)
{
        struct traits t = traits_of(with("OPT", "\"ffn_dim\":96,\"do_layer_norm_before\":false,"
                                                "\"word_embed_proj_dim\":20"));

        (void)state;
        assert_true(t.sum_norms && !t.pre_norms && !t.post_norms && t.embed_width == 20);
        t = traits_of(with("OPT", "\"ffn_dim\":96,\"word_embed_proj_dim\":64"));
        assert_true(!t.sum_norms && t.pre_norms && t.embed_width == 0);
}

/* The first published files have GPT-2's names of sizes. */
static void qwen_1_uses_half_of_the_width_that_the_file_says(void **state)
{
#define QWEN                                                                                       \
        "{\"architectures\":[\"QWenLMHeadModel\"],\"n_embd\":64,\"n_layer\":3,\"n_head\":8,"       \
        "\"vocab_size\":300,\"seq_length\":1000,\"kv_channels\":8,\"ffn_hidden_size\":"
        struct traits t = traits_of(QWEN "96,\"scale_attn_weights\":true}");
        char why[256] = "";

        (void)state;
        assert_true(t.layers == 3 && t.width == 64 && t.heads == 8 && t.ffn == 48);
        assert_int_equal(read_traits(QWEN "97}", &t, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "is 97, and half of it is used: it is not even"));
        assert_int_equal(read_traits(QWEN "96,\"scale_attn_weights\":false}", &t, why, sizeof(why)),
                         -EINVAL);
        assert_non_null(strstr(why, "'scale_attn_weights' is false"));
#undef QWEN
}

static void refuses_properties_that_would_change_the_numbers(void **state)
{
        unsigned wrong = 0;
        struct traits t;
        char why[256];

        (void)state;
        for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
                int r;

                why[0] = 0;
                r = read_traits(with(bads[i].architecture, bads[i].members), &t, why, sizeof(why));
                if (r == -EINVAL && strstr(why, bads[i].message))
                        continue;
                wrong++;
                print_error("%s: %d, \"%s\" does not say \"%s\"\n", bads[i].members, r, why,
                            bads[i].message);
        }
        assert_int_equal(wrong, 0);
}

static void ignores_numbers_of_python_where_they_mean_nothing(void **state)
{
        struct traits t = traits_of(with("Llama", "\"time_step_limit\":[0.0,Infinity],\"a\":NaN"));

        (void)state;
        assert_int_equal(t.layers, 3);
}

static void refuses_a_malformed_config(void **state)
{
        static const char *const texts[] = {
                "{}",
                "[]",
                "null",
                "7",
                "\"architectures\"",
                "{\"architectures\": []}",
                "{\"architectures\": [null]}",
                "{\"architectures\": {\"a\": 1}}",
                "{\"model_type\": null}",
                "{\"model_type\": \"llama\\u0000\"}",
                "{\"architectures\": [\"LlamaForCausalLM\"]}",
        };
        struct traits t;
        char why[256];

        (void)state;
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
                why[0] = 0;
                assert_int_equal(read_traits(texts[i], &t, why, sizeof(why)), -EINVAL);
                assert_true(why[0]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_the_config_of_llama_3_1),
                cmocka_unit_test(mistral_0_1_has_a_window_in_every_layer),
                cmocka_unit_test(qwen_2_5_has_biases_and_no_bos),
                cmocka_unit_test(qwen_3_has_qk_norms_and_its_own_head_size),
                cmocka_unit_test(uses_the_defaults_of_transformers_for_missing_keys),
                cmocka_unit_test(recognises_the_architecture_by_model_type),
                cmocka_unit_test(reads_rope_scaling_in_both_spellings),
                cmocka_unit_test(reads_every_parameter_of_yarn),
                cmocka_unit_test(qwen_windows_need_a_switch_and_apply_to_the_last_layers),
                cmocka_unit_test(slopes_of_falcon_have_the_scale_of_scores_and_nothing_rotates),
                cmocka_unit_test(mpt_has_a_width_and_slopes_as_the_file_says),
                cmocka_unit_test(phi_3_has_its_trained_positions_among_its_sizes),
                cmocka_unit_test(opt_350m_norms_sums_and_has_an_embedding_of_another_width),
                cmocka_unit_test(qwen_1_uses_half_of_the_width_that_the_file_says),
                cmocka_unit_test(refuses_properties_that_would_change_the_numbers),
                cmocka_unit_test(ignores_numbers_of_python_where_they_mean_nothing),
                cmocka_unit_test(refuses_a_malformed_config),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
