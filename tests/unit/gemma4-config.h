/*
 * Texts of Gemma 4's config.json, and their traits.
 *
 * Gemma4TextConfig and Gemma4TextModel of transformers are the model.  The numbers that tests
 * expect are those of models that transformers made from such configs.
 */
#ifndef TESTS_UNIT_GEMMA4_CONFIG_H
#define TESTS_UNIT_GEMMA4_CONFIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/config-traits.h"

#define NODES_MAX 1000u

static inline int read_traits(const char *text, struct traits *ret, char *why, size_t why_bytes)
{
        struct json_document *json;
        int r = json_parse_python(text, strlen(text), NODES_MAX, &json, why, why_bytes);

        if (r)
                fail_msg("the test's own text: %s", why);
        r = config_traits(json, ret, why, why_bytes);
        json_free(json);
        return r;
}

static inline struct traits traits_of(const char *text)
{
        static struct traits t;
        char why[256] = "";

        if (read_traits(text, &t, why, sizeof(why)))
                fail_msg("%s\n%s", text, why);
        return t;
}

/* Whether one of the members has this key, which has its quotes and its colon. */
static inline bool names(const char *members, const char *key)
{
        int depth = 0;

        for (const char *at = members; *at; at++) {
                depth += (*at == '{') - (*at == '}');
                if (!depth && !strncmp(at, key, strlen(key)))
                        return true;
        }
        return false;
}

/*
 * Members first, then what they leave out of the least that a model must say.  Layers 5 and 7
 * have no window, and no layer has an input.
 */
static inline const char *with(const char *members)
{
        static const struct {
                const char *key, *value;
        } usual[] = {
                { "\"architectures\":", "[\"Gemma4ForCausalLM\"]" },
                { "\"hidden_size\":", "64" },
                { "\"intermediate_size\":", "96" },
                { "\"num_hidden_layers\":", "8" },
                { "\"num_attention_heads\":", "8" },
                { "\"vocab_size\":", "262144" },
                { "\"max_position_embeddings\":", "1000" },
                { "\"hidden_size_per_layer_input\":", "0" },
        };
        static char text[4096];
        size_t at = (size_t)snprintf(text, sizeof(text), "{%s", members);

        for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
                if (!names(members, usual[i].key))
                        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%s",
                                               text[at - 1] == '{' ? "" : ",", usual[i].key,
                                               usual[i].value);
        assert_true(at + 2 < sizeof(text));
        strcpy(text + at, "}");
        return text;
}

#define WINDOW_ROPE "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":2e4}"
#define ROPE(full)                                                                                 \
        "\"head_dim\":16,\"global_head_dim\":32,\"rope_parameters\":{\"full_attention\":{" full    \
        "\"rope_theta\":5e5}," WINDOW_ROPE "}"
#define STILL(factor) ROPE("\"rope_type\":\"proportional\",\"partial_rotary_factor\":" factor ",")

#define SLIDING "\"sliding_attention\""
#define FULL    "\"full_attention\""
#define SIX     SLIDING "," SLIDING "," SLIDING "," SLIDING "," SLIDING "," FULL

/* Of the model with experts, without them: transformers makes the same layers. */
#define PUBLISHED(experts)                                                                         \
        "{\"architectures\":[\"Gemma4ForConditionalGeneration\"],\"audio_config\":null,"           \
        "\"audio_token_id\":258881,\"dtype\":\"bfloat16\",\"eos_token_id\":[1,106,50],"            \
        "\"model_type\":\"gemma4\",\"text_config\":{\"attention_bias\":false,"                     \
        "\"attention_dropout\":0.0,\"attention_k_eq_v\":true,\"bos_token_id\":2," experts          \
        "\"eos_token_id\":1,\"final_logit_softcapping\":30.0,\"global_head_dim\":512,"             \
        "\"head_dim\":256,\"hidden_activation\":\"gelu_pytorch_tanh\",\"hidden_size\":2816,"       \
        "\"hidden_size_per_layer_input\":0,\"initializer_range\":0.02,"                            \
        "\"intermediate_size\":2112,\"layer_types\":[" SIX "," SIX "," SIX "," SIX "," SIX "],"    \
        "\"max_position_embeddings\":262144,\"model_type\":\"gemma4_text\","                       \
        "\"num_attention_heads\":16,\"num_global_key_value_heads\":2,\"num_hidden_layers\":30,"    \
        "\"num_key_value_heads\":8,\"num_kv_shared_layers\":0,\"pad_token_id\":0,"                 \
        "\"rms_norm_eps\":1e-06,\"rope_parameters\":{\"full_attention\":{"                         \
        "\"partial_rotary_factor\":0.25,\"rope_theta\":1000000.0,"                                 \
        "\"rope_type\":\"proportional\"},\"sliding_attention\":{\"rope_theta\":10000.0,"           \
        "\"rope_type\":\"default\"}},\"sliding_window\":1024,\"tie_word_embeddings\":true,"        \
        "\"use_bidirectional_attention\":\"vision\",\"use_cache\":true,"                           \
        "\"use_double_wide_mlp\":false,\"vocab_size\":262144,"                                     \
        "\"vocab_size_per_layer_input\":262144},\"tie_word_embeddings\":true,"                     \
        "\"video_token_id\":258884,\"vision_config\":{\"model_type\":\"gemma4_vision\"}}"

#endif
