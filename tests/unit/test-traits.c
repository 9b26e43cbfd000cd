/*
 * The meaning of GGUF metadata, architecture by architecture, and which metadata is refused.
 *
 * A file is made of the few pairs that a model must have; a case adds pairs, or replaces some.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/gguf.h"

#define PAIRS_MAX 8u

enum { U32 = 4, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9 };

struct given {
        const char *key; /* ".key": of the architecture */
        int type;
        double number;
        const char *text;
};

static const struct given base[] = {
        { ".block_count", U32, 24 },
        { ".embedding_length", U32, 64 },
        { ".feed_forward_length", U32, 96 },
        { ".context_length", U32, 1000 },
        { ".attention.head_count", U32, 8 },
        { ".attention.head_count_kv", U32, 2 },
        { ".attention.layer_norm_rms_epsilon", F32, 1e-5 },
        { ".vocab_size", U32, 300 },
};

static uint8_t bytes[4096];
static size_t count;

static void put(const void *what, size_t size)
{
        assert_true(size <= sizeof(bytes) - count);
        memcpy(bytes + count, what, size);
        count += size;
}

static void put_int(uint64_t value, size_t size)
{
        put(&value, size); /* this test runs where GGUF is at home */
}

static void put_pair(const char *architecture, const struct given *pair)
{
        char key[128];
        float number = (float)pair->number;

        snprintf(key, sizeof(key), "%s%s", *pair->key == '.' ? architecture : "", pair->key);
        put_int(strlen(key), 8);
        put(key, strlen(key));
        put_int((uint64_t)pair->type, 4);
        if (pair->type == STRING) {
                put_int(strlen(pair->text), 8);
                put(pair->text, strlen(pair->text));
        } else if (pair->type == ARRAY) { /* of one truth value */
                put_int(BOOL, 4);
                put_int(1, 8);
                put_int(1, 1);
        } else if (pair->type == F32) {
                put(&number, 4);
        } else {
                put_int((uint64_t)pair->number, pair->type == BOOL ? 1 : 4);
        }
}

static bool replaced(const char *key, const struct given *pairs)
{
        for (size_t i = 0; i < PAIRS_MAX && pairs[i].key; i++)
                if (!strcmp(pairs[i].key, key))
                        return true;
        return false;
}

static int read_traits(const char *architecture, const struct given *pairs, struct traits *ret,
                       char *why, size_t why_bytes)
{
        const struct given name = { "general.architecture", STRING, 0, architecture };
        uint64_t pair_count = 1;
        struct gguf *gguf;
        int r;

        count = 0;
        put("GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
        put_pair("", &name);
        for (size_t i = 0; i < sizeof(base) / sizeof(*base); i++)
                if (!replaced(base[i].key, pairs)) {
                        put_pair(architecture, &base[i]);
                        pair_count++;
                }
        for (size_t i = 0; i < PAIRS_MAX && pairs[i].key; i++, pair_count++)
                put_pair(architecture, &pairs[i]);
        memcpy(bytes + 16, &pair_count, 8);
        r = gguf_parse(bytes, count, count, &gguf, why, why_bytes);
        if (r)
                fail_msg("the test's own file: %s", why);
        r = gguf_traits(gguf, ret, why, why_bytes);
        gguf_close(gguf);
        return r;
}

static struct traits traits_of(const char *architecture, const struct given *pairs)
{
        struct traits t;
        char why[256] = "";

        if (read_traits(architecture, pairs, &t, why, sizeof(why)))
                fail_msg("%s: %s", architecture, why);
        return t;
}

static const struct given nothing[PAIRS_MAX];

static void baichuan_2_is_known_by_its_vocabulary_and_has_unit_rows(void **state)
{
        static const struct given second[PAIRS_MAX] = { { ".vocab_size", U32, 125696 } };
        static const struct given larger[PAIRS_MAX] = { { ".block_count", U32, 40 } };

        (void)state;
        assert_true(traits_of("baichuan", second).head_unit_rows);
        assert_true(traits_of("baichuan", second).alibi == 0);
        assert_false(traits_of("baichuan", larger).head_unit_rows);
        assert_true(traits_of("baichuan", larger).alibi == 8);
        assert_false(traits_of("llama", second).head_unit_rows);
}

static void qwen_1_uses_half_of_the_width_that_the_file_says(void **state)
{
        static const struct given odd[PAIRS_MAX] = { { ".feed_forward_length", U32, 97 } };
        struct traits t = traits_of("qwen", nothing);
        char why[256] = "";

        (void)state;
        assert_int_equal(t.ffn, 48);
        assert_int_equal(read_traits("qwen", odd, &t, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "is 97, and half of it is used: it is not even"));
}

static void architectures_differ_in_rope_pairing_biases_and_norms(void **state)
{
        struct traits llama = traits_of("llama", nothing);
        struct traits qwen2 = traits_of("qwen2", nothing), qwen3 = traits_of("qwen3", nothing);

        (void)state;
        assert_true(llama.ropes[0].pairing == ROPE_ADJACENT &&
                    qwen2.ropes[0].pairing == ROPE_HALVES && qwen3.ropes[0].pairing == ROPE_HALVES);
        assert_true(llama.qkv_bias == MAYBE_THERE && llama.qk_norm == MAYBE_THERE);
        assert_true(qwen2.qkv_bias == MUST_BE_THERE && qwen2.output_bias == NOT_THERE &&
                    qwen2.qk_norm == NOT_THERE);
        assert_true(qwen3.qk_norm == MUST_BE_THERE);
}

static void missing_metadata_has_its_usual_value(void **state)
{
        static const struct given one[PAIRS_MAX] = { { ".attention.head_count_kv", U32, 8 } };
        struct traits t = traits_of("llama", one);

        (void)state;
        assert_true(t.layers == 24 && t.width == 64 && t.ffn == 96 && t.context == 1000);
        assert_true(t.heads == 8 && t.kv_heads == 8 && t.head_dim == 8 && t.vocab == 300);
        assert_true(t.ropes[0].dims == 8 && t.ropes[0].base == 10000 &&
                    t.ropes[0].scaling == ROPE_PLAIN && t.ropes[0].attention == 1);
        assert_true(t.layer[0].window == 0 && t.bos == TRAITS_NO_TOKEN && t.eos_count == 0 &&
                    t.tied);
        assert_true(fabs((double)t.attend_scale - 1 / sqrt(8)) < 1e-7);
}

static void a_head_size_may_differ_from_width_divided_by_heads(void **state)
{
        static const struct given pairs[PAIRS_MAX] = {
                { ".attention.key_length", U32, 20 },
                { ".attention.value_length", U32, 20 },
                { ".attention.head_count", U32, 6 },
                { ".rope.dimension_count", U32, 10 },
        };
        struct traits t = traits_of("qwen3", pairs);

        (void)state;
        assert_true(t.head_dim == 20 && t.ropes[0].dims == 10 && t.heads == 6);
}

static void reads_linear_and_yarn_rope_scaling(void **state)
{
        static const struct given linear[PAIRS_MAX] = {
                { ".rope.scaling.type", STRING, 0, "linear" },
                { ".rope.scaling.factor", F32, 4 },
        };
        static const struct given old[PAIRS_MAX] = { { ".rope.scale_linear", F32, 8 } };
        static const struct given none[PAIRS_MAX] = {
                { ".rope.scaling.type", STRING, 0, "none" },
                { ".rope.scaling.factor", F32, 4 },
        };
        static const struct given zero[PAIRS_MAX] = { { ".rope.scaling.factor", F32, 0 } };
        static const struct given yarn[PAIRS_MAX] = {
                { ".rope.scaling.type", STRING, 0, "yarn" },
                { ".rope.scaling.factor", F32, 4 },
                { ".rope.scaling.original_context_length", U32, 512 },
                { ".rope.scaling.attn_factor", F32, 0.5 },
                { ".rope.scaling.yarn_beta_fast", F32, 16 },
                { ".rope.scaling.yarn_attn_factor", F32, 1.13862944 },
                { ".rope.freq_base", F32, 1e6 },
        };
        struct traits t = traits_of("llama", linear);

        (void)state;
        assert_true(t.ropes[0].scaling == ROPE_LINEAR && t.ropes[0].factor == 4 &&
                    t.context == 1000);
        t = traits_of("qwen2", old);
        assert_true(t.ropes[0].scaling == ROPE_LINEAR && t.ropes[0].factor == 8);
        assert_true(traits_of("llama", none).ropes[0].scaling == ROPE_PLAIN);
        assert_true(traits_of("llama", zero).ropes[0].scaling == ROPE_PLAIN);
        t = traits_of("qwen2", yarn);
        assert_true(t.ropes[0].scaling == ROPE_YARN && t.ropes[0].factor == 4 &&
                    t.ropes[0].trained == 512 && t.ropes[0].low == 1 && t.ropes[0].high == 16 &&
                    t.ropes[0].whole && t.ropes[0].base == 1e6);
        /* 0.5 * (0.1 ln 4 + 1); and 512 * 4 positions are more than the 1000 before it. */
        assert_true(fabs(t.ropes[0].attention - 0.56931471805599454) < 1e-12 && t.context == 2048);
}

static void accepts_unsupported_keys_with_a_neutral_value(void **state)
{
        static const struct given pairs[PAIRS_MAX] = {
                { ".expert_count", U32, 0 },
                { ".logit_scale", F32, 0 },
                { ".residual_scale", F32, 1 },
                { ".attention.sliding_window_pattern", U32, 0 },
        };

        (void)state;
        assert_true(traits_of("llama", pairs).layers == 24);
}

static void reads_the_window_and_the_bos_and_eos_tokens(void **state)
{
        static const struct given pairs[PAIRS_MAX] = {
                { ".attention.sliding_window", U32, 32 },
                { "tokenizer.ggml.bos_token_id", U32, 1 },
                { "tokenizer.ggml.eos_token_id", U32, 2 },
                { "tokenizer.ggml.eot_token_id", U32, 7 },
                { "tokenizer.ggml.eom_token_id", U32, 2 },
        };
        struct traits t = traits_of("llama", pairs);

        (void)state;
        assert_true(t.layer[0].window == 32);
        assert_true(t.bos == 1 && t.eos_count == 2 && t.eos[0] == 2 && t.eos[1] == 7);
}

static const struct bad {
        struct given pair[2];
        const char *message;
} bads[] = {
        { { { ".rope.scaling.type", STRING, 0, "longrope" } },
          "scaling.type' is 'longrope', which" },
        { { { ".rope.scaling.type", U32, 1 } }, "'qwen2.rope.scaling.type' is not a string" },
        { { { ".rope.scaling.factor", F32, 0.5 } }, "scaling.factor' is 0.5, less than 1" },
        { { { ".rope.scaling.factor", F32, NAN } }, "scaling.factor' is " },
        { { { ".rope.scaling.factor", F32, 1e9 } }, "scaling.factor' is 1e+09, not 0 to 65536" },
        { { { ".rope.freq_base", F32, 1 } }, "rope's base is 1, which is not greater than 1" },
        { { { ".rope.scaling.type", STRING, 0, "yarn" },
            { ".rope.scaling.yarn_beta_fast", F32, 1 } },
          "between 1 turns and 1" },
        { { { ".rope.scaling.type", STRING, 0, "yarn" },
            { ".rope.scaling.yarn_ext_factor", F32, 0.5 } },
          "yarn_ext_factor' is 0.5: only 1 is supported" },
        { { { ".rope.scaling.yarn_log_multiplier", F32, 0.1 } },
          "'qwen2.rope.scaling.yarn_log_multiplier' has a value that is not supported yet" },
        { { { ".rope.scaling.type", STRING, 0, "yarn" },
            { ".rope.scaling.yarn_attn_factor", F32, 1.5 } },
          "yarn_attn_factor' is 1.5, not 1 as follows from the factor" },
        { { { ".rope.scaling.attn_factor", F32, -1 } }, "attn_factor' is -1, not" },
        { { { ".rope.scaling.original_context_length", U32, 0 } }, "context_length' is 0, not" },
        { { { ".rope.dimension_sections", ARRAY } }, "dimension_sections' has a value" },
        { { { ".expert_count", U32, 8 } },
          "'qwen2.expert_count' has a value that is not supported yet" },
        { { { ".attention.sliding_window_pattern", ARRAY } },
          "sliding_window_pattern' has a value" },
        { { { ".final_logit_softcapping", F32, 30 } }, "final_logit_softcapping' has a value" },
        { { { ".logit_scale", F32, 2 } }, "logit_scale' has a value" },
        { { { ".attention.value_length", U32, 16 } }, "value_length' is 16, not 8 to 8" },
        { { { ".attention.head_count", U32, 7 } }, "a width of 64 and 7 heads do not give heads" },
        { { { ".attention.head_count_kv", U32, 3 } }, "8 heads are not a multiple of 3 kv heads" },
        { { { ".rope.dimension_count", U32, 3 } },
          "rope rotates 3 numbers of a head, not an even count to 512" },
        { { { ".embedding_length", U32, 8 } }, "a width of 8 and 8 heads do not give heads" },
        { { { "tokenizer.ggml.add_bos_token", U32, 1 } }, "add_bos_token' is not true or false" },
        { { { ".vocab_size", U32, 1 } }, "vocab_size' is 1, not 2" },
};

static void refuses_properties_that_would_change_the_numbers(void **state)
{
        unsigned wrong = 0;
        struct traits t;
        char why[256];

        (void)state;
        for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
                struct given pairs[PAIRS_MAX] = { bads[i].pair[0], bads[i].pair[1] };
                int r;

                why[0] = 0;
                r = read_traits("qwen2", pairs, &t, why, sizeof(why));
                if (r == -EINVAL && strstr(why, bads[i].message))
                        continue;
                wrong++;
                print_error("%s: %d, \"%s\" does not say \"%s\"\n", pairs[0].key, r, why,
                            bads[i].message);
        }
        assert_int_equal(wrong, 0);
}

static void refuses_an_unknown_architecture_by_name(void **state)
{
        static const char *const names[] = { "gemma3n", "qwen2moe", "mistral4", "", "llama\n" };
        struct traits t;
        char why[256];

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                assert_int_equal(read_traits(names[i], nothing, &t, why, sizeof(why)), -EINVAL);
                assert_non_null(strstr(why, "is not supported yet"));
                assert_null(strchr(why, '\n'));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(baichuan_2_is_known_by_its_vocabulary_and_has_unit_rows),
                cmocka_unit_test(qwen_1_uses_half_of_the_width_that_the_file_says),
                cmocka_unit_test(architectures_differ_in_rope_pairing_biases_and_norms),
                cmocka_unit_test(missing_metadata_has_its_usual_value),
                cmocka_unit_test(a_head_size_may_differ_from_width_divided_by_heads),
                cmocka_unit_test(reads_linear_and_yarn_rope_scaling),
                cmocka_unit_test(accepts_unsupported_keys_with_a_neutral_value),
                cmocka_unit_test(reads_the_window_and_the_bos_and_eos_tokens),
                cmocka_unit_test(refuses_properties_that_would_change_the_numbers),
                cmocka_unit_test(refuses_an_unknown_architecture_by_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
