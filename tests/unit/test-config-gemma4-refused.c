/*
 * Gemma 4's config.json is refused in one line if its values do not fit, or if a setting would
 * change the numbers.
 */
#include <errno.h>

#include "tests/unit/gemma4-config.h"

static const struct bad {
        const char *members, *message;
} bads[] = {
        { "\"enable_moe_block\":true", "'enable_moe_block' is true" },
        { "\"enable_moe_block\":1", "'enable_moe_block' is not true or false" },
        { "\"use_bidirectional_attention\":\"all\"", "'use_bidirectional_attention' is 'all'" },
        { "\"use_bidirectional_attention\":\"vi\\nsion\"", "'use_bidirectional_attention' is '" },
        { "\"use_bidirectional_attention\":true", "'use_bidirectional_attention' is not a string" },
        { "\"attention_bias\":1", "'attention_bias' is not true or false" },
        { "\"attention_k_eq_v\":\"yes\"", "'attention_k_eq_v' is not true or false" },
        { "\"use_double_wide_mlp\":2", "'use_double_wide_mlp' is not true or false" },
        { "\"hidden_activation\":\"xielu\"", "'hidden_activation' is 'xielu'" },
        { "\"num_kv_shared_layers\":8", "'num_kv_shared_layers' is 8, not 0 to 7" },
        { "\"num_kv_shared_layers\":9", "'num_kv_shared_layers' is 9, not 0 to 7" },
        { "\"num_kv_shared_layers\":-1", "'num_kv_shared_layers' is not a whole number" },
        { "\"num_kv_shared_layers\":4294967295", "'num_kv_shared_layers' is 4294967295" },
        { "\"num_kv_shared_layers\":2.5", "'num_kv_shared_layers' is not a whole number" },
        /* The layers before have no layer without a window, or none with one. */
        { "\"num_kv_shared_layers\":3", "layer 5 shares the keys and values of an earlier layer" },
        { "\"num_kv_shared_layers\":7", "shares the keys and values of an earlier layer" },
        { "\"num_kv_shared_layers\":1,\"num_hidden_layers\":3,\"layer_types\":[" SLIDING "," SLIDING
          "," SLIDING "]",
          "layer 2 shares the keys and values of an earlier layer" },
        { "\"num_kv_shared_layers\":2,\"num_hidden_layers\":3,\"layer_types\":[" FULL "," SLIDING
          "," FULL "]",
          "layer 1 shares the keys and values of an earlier layer" },
        { "\"sliding_window\":0", "'sliding_window' is 0" },
        { "\"sliding_window\":4294967296", "'sliding_window' is not a whole number" },
        { "\"layer_types\":[]", "'layer_types' are 0 for 8 layers" },
        { "\"num_hidden_layers\":1,\"layer_types\":[\"chunked_attention\"]", "chunked_attention" },
        { "\"head_dim\":2147483648", "'head_dim' is 2147483648, not 2 to 512" },
        { "\"head_dim\":0", "'head_dim' is 0, not 2 to 512" },
        { "\"head_dim\":7", "7 numbers of a head" },
        { "\"global_head_dim\":2147483648", "'global_head_dim' is 2147483648, not 2 to 512" },
        { "\"global_head_dim\":0", "'global_head_dim' is 0, not 2 to 512" },
        { "\"global_head_dim\":33", "33 numbers of a head" },
        { "\"num_key_value_heads\":3", "8 heads are not a multiple of 3 kv heads" },
        { "\"num_key_value_heads\":0", "'num_key_value_heads' is 0" },
        { "\"num_global_key_value_heads\":3,\"attention_k_eq_v\":true",
          "8 heads are not a multiple of 3 kv heads" },
        { "\"num_global_key_value_heads\":0,\"attention_k_eq_v\":true",
          "'num_global_key_value_heads' is 0" },
        { "\"num_global_key_value_heads\":4294967295,\"attention_k_eq_v\":true",
          "'num_global_key_value_heads' is 4294967295" },
        { "\"hidden_size_per_layer_input\":2147483648", "'hidden_size_per_layer_input'" },
        { "\"hidden_size_per_layer_input\":131073", "'hidden_size_per_layer_input' is 131073" },
        { "\"hidden_size_per_layer_input\":-1", "'hidden_size_per_layer_input'" },
        { "\"hidden_size_per_layer_input\":8,\"vocab_size_per_layer_input\":1000",
          "'vocab_size_per_layer_input' is 1000, not 262144" },
        { "\"hidden_size_per_layer_input\":8,\"vocab_size\":300", "'vocab_size_per_layer_input'" },
        { "\"intermediate_size\":524289,\"use_double_wide_mlp\":true,\"num_kv_shared_layers\":1",
          "'intermediate_size' is 524289" },
        { "\"intermediate_size\":1048577", "'intermediate_size' is 1048577" },
        { "\"intermediate_size\":2147483648,\"use_double_wide_mlp\":true,"
          "\"num_kv_shared_layers\":1",
          "'intermediate_size' is 2147483648" },
        { STILL("2"), "full_attention.partial_rotary_factor' is 2, not 0 to 1" },
        { STILL("-0.5"), "full_attention.partial_rotary_factor' is -0.5, not 0 to 1" },
        { STILL("\"half\""), "full_attention.partial_rotary_factor' is not a real number" },
        { STILL("NaN"), "full_attention.partial_rotary_factor' is not a real number" },
        { ROPE("\"rope_type\":\"proportional\",\"factor\":8,"), "full_attention.factor' is 8" },
        { ROPE("\"rope_type\":7,"), "rope_type' is not a string" },
        { ROPE("\"rope_type\":\"dynamo\","), "'dynamo'" },
        { "\"rope_parameters\":{\"full_attention\":7}", "is not an object" },
};

#define LISTED(members) "\"head_dim\":16,\"per_layer_config\":{" members "}"

static const struct bad bad_lists[] = {
        { LISTED("\"-1\":{}"), "has '-1', which is not one of the 8 layers" },
        { LISTED("\"x\":{}"), "has 'x', which is not one of the 8 layers" },
        { LISTED("\"\":{}"), "has '', which is not one of the 8 layers" },
        { LISTED("\"8\":{}"), "has '8', which is not one of the 8 layers" },
        { LISTED("\"5x\":{}"), "has '5x', which is not one of the 8 layers" },
        { LISTED("\"2.0\":{}"), "has '2.0', which is not one of the 8 layers" },
        { LISTED("\"0x5\":{}"), "has '0x5', which is not one of the 8 layers" },
        { LISTED("\"4294967301\":{}"), "is not one of the 8 layers" },
        { LISTED("\"99999999999999999999\":{}"), "is not one of the 8 layers" },
        { LISTED("\"5\\n\":{}"), "is not one of the 8 layers" },
        { LISTED("\"5\":{\"head_dim\":32},\"7\":{\"head_dim\":64}"), "another layer like it" },
        { LISTED("\"7\":{\"head_dim\":32}"), "another layer like it" },
        { LISTED("\"0\":{\"head_dim\":32}"), "another layer like it" },
        { LISTED("\"3\":{\"num_key_value_heads\":2}"), "another layer like it" },
        { LISTED("\"5\":{\"head_dim\":2147483648}"), "'head_dim' is 2147483648, not 2 to 512" },
        { LISTED("\"5\":{\"head_dim\":0}"), "'head_dim' is 0, not 2 to 512" },
        { LISTED("\"5\":{\"head_dim\":\"16\"}"), "'head_dim' is not a whole number" },
        { LISTED("\"5\":{\"head_dim\":33},\"7\":{\"head_dim\":33}"), "33 numbers of a head" },
        { LISTED("\"5\":{\"num_key_value_heads\":3},\"7\":{\"num_key_value_heads\":3}"),
          "8 heads are not a multiple of 3 kv heads" },
        { LISTED("\"5\":{\"num_key_value_heads\":0}"), "'num_key_value_heads' is 0" },
        { "\"per_layer_config\":[]", "'per_layer_config'" },
        { "\"per_layer_config\":7", "'per_layer_config'" },
        { "\"per_layer_config\":\"5\"", "'per_layer_config'" },
        { "\"per_layer_config\":[{\"head_dim\":16}]", "'per_layer_config'" },
        { LISTED("\"5\":7"), "per_layer_config" },
        { LISTED("\"5\":[16,2]"), "per_layer_config" },
};

/* Number of cases that are not refused in one line, with the sentence. */
static unsigned wrong_of(const struct bad *cases, size_t count)
{
        static struct traits t;
        unsigned wrong = 0;

        for (size_t i = 0; i < count; i++) {
                char why[256] = "";
                int r = read_traits(with(cases[i].members), &t, why, sizeof(why));

                if (r == -EINVAL && strstr(why, cases[i].message) && !strchr(why, '\n'))
                        continue;
                wrong++;
                print_error("%s: %d, \"%s\" does not say \"%s\"\n", cases[i].members, r, why,
                            cases[i].message);
        }
        return wrong;
}

static void refuses_in_one_line_what_it_cannot_compute(void **state)
{
        (void)state;
        assert_int_equal(wrong_of(bads, sizeof(bads) / sizeof(*bads)), 0);
}

static void refuses_a_list_of_heads_that_does_not_fit(void **state)
{
        (void)state;
        assert_int_equal(wrong_of(bad_lists, sizeof(bad_lists) / sizeof(*bad_lists)), 0);
}

/* strtoul() would take each for the number of a layer. */
static void a_layer_in_a_list_of_heads_is_named_by_its_digits(void **state)
{
        static const struct bad names[] = {
                { LISTED("\"-18446744073709551611\":{}"), "is not one of the 8 layers" },
                { LISTED("\"5\\u0000\":{}"), "" },
        };

        (void)state;
        assert_int_equal(wrong_of(names, sizeof(names) / sizeof(*names)), 0);
}

/* transformers refuses them; they would change the layer. */
static void refuses_other_keys_in_a_list_of_heads(void **state)
{
        static const struct bad keys[] = {
                { LISTED("\"5\":{\"intermediate_size\":48}"), "intermediate_size" },
                { LISTED("\"0\":{\"sliding_window\":4}"), "sliding_window" },
                { LISTED("\"5\":{\"num_attention_heads\":4}"), "num_attention_heads" },
                { LISTED("\"5\":{\"rms_norm_eps\":0.5}"), "rms_norm_eps" },
                { LISTED("\"5\":{\"head_size\":32}"), "head_size" },
        };

        (void)state;
        assert_int_equal(wrong_of(keys, sizeof(keys) / sizeof(*keys)), 0);
}

/* transformers computes with these: 2 of 4 pairs stand still; a half of the head rotates. */
static void refuses_ropes_that_it_would_compute_otherwise(void **state)
{
        static const struct bad ropes[] = {
                { "\"head_dim\":8,\"rope_parameters\":{\"full_attention\":{\"rope_type\":"
                  "\"default\",\"rope_theta\":1e6},\"sliding_attention\":{\"rope_type\":"
                  "\"proportional\",\"partial_rotary_factor\":0.5,\"rope_theta\":1e4}}",
                  "sliding_attention" },
                { ROPE("\"rope_type\":\"linear\",\"factor\":8,\"partial_rotary_factor\":0.5,"),
                  "partial_rotary_factor" },
        };

        (void)state;
        assert_int_equal(wrong_of(ropes, sizeof(ropes) / sizeof(*ropes)), 0);
}

static void refuses_the_published_model_with_experts(void **state)
{
        static struct traits t;
        char why[256] = "";

        (void)state;
        assert_int_equal(read_traits(PUBLISHED("\"enable_moe_block\":true,\"num_experts\":128,"
                                               "\"top_k_experts\":8,"
                                               "\"moe_intermediate_size\":704,"),
                                     &t, why, sizeof(why)),
                         -EINVAL);
        assert_non_null(strstr(why, "'enable_moe_block' is true"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refuses_in_one_line_what_it_cannot_compute),
                cmocka_unit_test(refuses_a_list_of_heads_that_does_not_fit),
                cmocka_unit_test(a_layer_in_a_list_of_heads_is_named_by_its_digits),
                cmocka_unit_test(refuses_other_keys_in_a_list_of_heads),
                cmocka_unit_test(refuses_ropes_that_it_would_compute_otherwise),
                cmocka_unit_test(refuses_the_published_model_with_experts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
