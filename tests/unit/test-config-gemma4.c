/*
 * The config.json of Gemma 4: its two spellings, the defaults of absent keys, and values that are
 * refused in one line.  Gemma4TextConfig of transformers is the model.
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

/* Members first, then the least that a model must say; inputs of layers only if members say so. */
static const char *with(const char *members)
{
        static char text[4096];
        bool has_inputs = strstr(members, "hidden_size_per_layer_input");

        snprintf(text, sizeof(text),
                 "{\"architectures\": [\"Gemma4ForCausalLM\"], %s%s\"hidden_size\": 64, "
                 "\"intermediate_size\": 96, \"num_hidden_layers\": 8, "
                 "\"num_attention_heads\": 8, %s\"vocab_size\": 262144}",
                 members, *members ? ", " : "",
                 has_inputs ? "" : "\"hidden_size_per_layer_input\": 0, ");
        return text;
}

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

static void absent_keys_have_the_defaults_of_transformers(void **state)
{
        struct traits t = traits_of(
                "{\"architectures\": [\"Gemma4ForCausalLM\"], \"hidden_size\": 64, "
                "\"intermediate_size\": 96, \"num_hidden_layers\": 8, \"num_attention_heads\": 8, "
                "\"vocab_size\": 262144}");

        (void)state;
        assert_true(t.tied && t.context == 131072 && t.eps == 1e-6f && t.act == ACT_GELU_TANH);
        assert_true(t.layer_input == 256 && t.v_norm && t.layer_scale == MUST_BE_THERE);
        assert_true(t.attend_scale == 1 && t.embed_scale == 8 && t.head_softcap == 0);
        assert_true(!t.norm_is_one_plus && t.post_norms && t.pre_norms);
        for (uint32_t i = 0; i < 8; i++) {
                bool full = i == 5 || i == 7; /* the last one has no window, ever */

                assert_int_equal(t.layer[i].window, full ? 0 : 512);
                assert_int_equal(t.layer[i].rope, full ? 0 : 1);
                assert_int_equal(t.layer[i].head_dim, full ? 512 : 256);
                assert_int_equal(t.layer[i].kv_heads, 4);
                assert_int_equal(t.layer[i].ffn, 96);
                assert_true(!t.layer[i].v_is_k && !t.layer[i].kv_back);
        }
        assert_true(t.ropes[0].dims == 512 && t.ropes[0].still == 192 && t.ropes[0].base == 1e6);
        assert_true(t.ropes[1].dims == 256 && t.ropes[1].still == 0 && t.ropes[1].base == 1e4);
        /* the sizes of the model are the largest of its layers */
        assert_true(t.head_dim == 512 && t.kv_heads == 4 && t.ffn == 96);
}

static void full_layers_have_heads_of_their_own_in_both_spellings(void **state)
{
        static const char *const spellings[] = {
                "\"head_dim\":16,\"num_key_value_heads\":4,\"attention_k_eq_v\":true,"
                "\"global_head_dim\":32,\"num_global_key_value_heads\":2",
                "\"head_dim\":16,\"num_key_value_heads\":4,\"attention_k_eq_v\":true,"
                "\"per_layer_config\":{\"5\":{\"head_dim\":32,\"num_key_value_heads\":2},"
                "\"7\":{\"head_dim\":32,\"num_key_value_heads\":2}}",
        };

        (void)state;
        for (size_t s = 0; s < 2; s++) {
                struct traits t = traits_of(with(spellings[s]));

                for (uint32_t i = 0; i < 8; i++) {
                        bool full = i == 5 || i == 7;

                        assert_int_equal(t.layer[i].head_dim, full ? 32 : 16);
                        assert_int_equal(t.layer[i].kv_heads, full ? 2 : 4);
                        assert_int_equal(t.layer[i].v_is_k, full);
                }
                assert_true(t.ropes[0].dims == 32 && t.ropes[1].dims == 16);
        }
}

static void the_number_of_global_heads_needs_keys_that_are_values(void **state)
{
        struct traits t = traits_of(with("\"num_global_key_value_heads\":2"));

        (void)state;
        assert_true(t.layer[7].kv_heads == 4 && !t.layer[7].v_is_k);
        t = traits_of(with("\"num_global_key_value_heads\":null,\"attention_k_eq_v\":true"));
        assert_true(t.layer[7].kv_heads == 4 && t.layer[7].v_is_k);
}

static void shared_layers_attend_to_the_last_unshared_one_of_their_kind(void **state)
{
        /* Layers 5 and 7 have no window; 6 and 7 share. */
        struct traits t =
                traits_of(with("\"num_kv_shared_layers\":2,\"use_double_wide_mlp\":true"));

        (void)state;
        assert_int_equal(traits_kv_layer(&t, 6), 4);
        assert_int_equal(traits_kv_layer(&t, 7), 5);
        for (uint32_t i = 0; i < 8; i++) {
                assert_int_equal(t.layer[i].kv_back > 0, i >= 6);
                assert_int_equal(t.layer[i].ffn, i >= 6 ? 192 : 96);
        }
        assert_int_equal(traits_split_max(&t), 4);
}

static void a_rope_of_another_type_turns_all_pairs(void **state)
{
        struct traits t = traits_of(with("\"rope_parameters\":{\"full_attention\":{\"rope_type\":"
                                         "\"default\",\"rope_theta\":5e5},\"sliding_attention\":{"
                                         "\"rope_type\":\"default\",\"rope_theta\":2e4}}"));

        (void)state;
        assert_true(t.ropes[0].dims == 512 && !t.ropes[0].still && t.ropes[0].base == 5e5);
        assert_true(t.ropes[1].dims == 256 && t.ropes[1].base == 2e4);
        t = traits_of(with("\"rope_parameters\":{\"full_attention\":{\"rope_type\":"
                           "\"proportional\",\"partial_rotary_factor\":0.5}}"));
        assert_true(t.ropes[0].dims == 512 && t.ropes[0].still == 128);
}

static void images_may_see_what_follows_them(void **state)
{
        (void)state;
        traits_of(with("\"use_bidirectional_attention\":\"vision\""));
        traits_of(with("\"use_bidirectional_attention\":null,\"enable_moe_block\":false,"
                       "\"num_experts\":null"));
}

static const struct bad {
        const char *members, *message;
} bads[] = {
        { "\"enable_moe_block\":true", "experts, which are not supported yet" },
        { "\"use_bidirectional_attention\":\"all\"", "'use_bidirectional_attention' is 'all'" },
        { "\"num_kv_shared_layers\":8", "'num_kv_shared_layers' is 8, not 0 to 7" },
        { "\"num_kv_shared_layers\":4294967295", "'num_kv_shared_layers' is 4294967295" },
        { "\"num_kv_shared_layers\":3", "layer 5 shares the keys and values of an earlier layer" },
        { "\"sliding_window\":0", "'sliding_window' is 0" },
        { "\"global_head_dim\":2147483648", "'global_head_dim' is 2147483648, not 2 to 512" },
        { "\"head_dim\":0", "'head_dim' is 0" },
        { "\"num_global_key_value_heads\":3,\"attention_k_eq_v\":true",
          "8 heads are not a multiple of 3 kv heads" },
        { "\"hidden_size_per_layer_input\":2147483648", "'hidden_size_per_layer_input'" },
        { "\"hidden_size_per_layer_input\":8,\"vocab_size_per_layer_input\":1000",
          "'vocab_size_per_layer_input' is 1000, not 262144" },
        { "\"per_layer_config\":{\"-1\":{}}", "has '-1', which is not one of the 8 layers" },
        { "\"per_layer_config\":{\"x\":{}}", "has 'x', which is not one of the 8 layers" },
        { "\"per_layer_config\":{\"\":{}}", "has '', which is not one of the 8 layers" },
        { "\"per_layer_config\":{\"8\":{}}", "has '8', which is not one of the 8 layers" },
        { "\"per_layer_config\":{\"99999999999999999999\":{}}", "is not one of the 8 layers" },
        { "\"per_layer_config\":{\"5\":{\"head_dim\":32},\"7\":{\"head_dim\":64}}",
          "of 64, and another layer like it has" },
        { "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\","
          "\"partial_rotary_factor\":2}}",
          "'rope_parameters.full_attention.partial_rotary_factor' is 2, not 0 to 1" },
        { "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\",\"factor\":8}}",
          "'rope_parameters.full_attention.factor' is 8, not 1 to 1" },
        { "\"layer_types\":[]", "'layer_types' are 0 for 8 layers" },
};

static void refuses_in_one_line_what_it_cannot_compute(void **state)
{
        unsigned wrong = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
                struct traits t;
                char why[256] = "";
                int r = read_traits(with(bads[i].members), &t, why, sizeof(why));

                if (r == -EINVAL && strstr(why, bads[i].message) && !strchr(why, '\n'))
                        continue;
                wrong++;
                print_error("%s: %d, \"%s\" does not say \"%s\"\n", bads[i].members, r, why,
                            bads[i].message);
        }
        assert_int_equal(wrong, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(absent_keys_have_the_defaults_of_transformers),
                cmocka_unit_test(full_layers_have_heads_of_their_own_in_both_spellings),
                cmocka_unit_test(the_number_of_global_heads_needs_keys_that_are_values),
                cmocka_unit_test(shared_layers_attend_to_the_last_unshared_one_of_their_kind),
                cmocka_unit_test(a_rope_of_another_type_turns_all_pairs),
                cmocka_unit_test(images_may_see_what_follows_them),
                cmocka_unit_test(refuses_in_one_line_what_it_cannot_compute),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
