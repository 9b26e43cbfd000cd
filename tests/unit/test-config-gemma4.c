/*
 * The meaning of Gemma 4's config.json: both spellings of heads, the defaults of absent keys,
 * ropes, and values at their limits.
 */
#include <math.h>

#include "tests/unit/gemma4-config.h"

#define LAYERS 8u

static bool is_full(uint32_t layer)
{
        return layer == 5 || layer == 7;
}

static const struct rope_shape *rope_of(const struct traits *t, uint32_t layer)
{
        assert_true(t->layer[layer].rope < t->rope_count);
        return &t->ropes[t->layer[layer].rope];
}

/* What differs between the layers with a window and those without one. */
struct kinds {
        uint32_t window_dim, window_kv, full_dim, full_kv;
};

static void check_heads(const struct traits *t, const struct kinds *kinds)
{
        for (uint32_t i = 0; i < t->layers; i++) {
                bool full = !t->layer[i].window;

                assert_int_equal(t->layer[i].head_dim, full ? kinds->full_dim : kinds->window_dim);
                assert_int_equal(t->layer[i].kv_heads, full ? kinds->full_kv : kinds->window_kv);
        }
}

static void reads_the_config_of_a_published_model(void **state)
{
        static const struct kinds kinds = { 256, 8, 512, 2 };
        struct traits t = traits_of(PUBLISHED("\"enable_moe_block\":false,\"num_experts\":null,"
                                              "\"top_k_experts\":null,"
                                              "\"moe_intermediate_size\":null,"));

        (void)state;
        assert_true(t.width == 2816 && t.layers == 30 && t.heads == 16 && t.vocab == 262144 &&
                    t.context == 262144 && t.ffn == 2112);
        check_heads(&t, &kinds);
        for (uint32_t i = 0; i < 30; i++) {
                bool full = i % 6 == 5;

                assert_int_equal(t.layer[i].window, full ? 0 : 1024);
                assert_int_equal(t.layer[i].ffn, 2112);
                assert_int_equal(t.layer[i].kv_back, 0);
                assert_int_equal(t.layer[i].v_is_k, full);
                assert_int_equal(rope_of(&t, i)->dims, full ? 512 : 256);
                assert_int_equal(rope_of(&t, i)->still, full ? 192 : 0);
                assert_true(rope_of(&t, i)->base == (full ? 1e6 : 1e4));
                assert_true(rope_of(&t, i)->pairing == ROPE_HALVES);
        }
        assert_true(t.embed_scale == sqrtf(2816) && t.attend_scale == 1 && t.head_softcap == 30 &&
                    t.attend_softcap == 0 && t.eps == 1e-6f && t.act == ACT_GELU_TANH && t.gated);
        assert_true(t.norm == NORM_RMS && t.pre_norms && t.post_norms && !t.norm_is_one_plus &&
                    t.qk_norm == MUST_BE_THERE && t.qk_norm_kind == NORM_RMS &&
                    t.qk_norm_span == SPAN_HEAD && t.v_norm);
        assert_true(t.layer_scale == MUST_BE_THERE && t.layer_input == 0 && t.tied &&
                    t.residual == RESIDUAL_SERIAL && t.qkv_bias == NOT_THERE &&
                    t.output_bias == NOT_THERE && t.ffn_bias == NOT_THERE && t.bos == 2);
        assert_int_equal(traits_split_max(&t), 29);
        assert_int_equal(traits_window(&t, t.context), 1024);
}

/* In the form of the small published models: five layers to a window, most layers share. */
static void shared_layers_attend_to_the_last_earlier_one_of_their_kind(void **state)
{
#define FIVE SLIDING "," SLIDING "," SLIDING "," SLIDING "," FULL
        static const struct kinds kinds = { 256, 1, 512, 1 };
        struct traits t = traits_of(with(
                "\"num_hidden_layers\":35,\"num_kv_shared_layers\":20,\"layer_types\":[" FIVE
                "," FIVE "," FIVE "," FIVE "," FIVE "," FIVE "," FIVE
                "],\"num_key_value_heads\":1,\"hidden_size_per_layer_input\":256,"
                "\"use_double_wide_mlp\":true,\"intermediate_size\":6144,\"sliding_window\":512"));

        (void)state;
        check_heads(&t, &kinds);
        for (uint32_t i = 0; i < 35; i++) {
                assert_int_equal(t.layer[i].window, i % 5 == 4 ? 0 : 512);
                assert_int_equal(traits_kv_layer(&t, i), i < 15 ? i : i % 5 == 4 ? 14 : 13);
                assert_int_equal(t.layer[i].ffn, i < 15 ? 6144 : 12288);
                assert_false(t.layer[i].v_is_k);
        }
        assert_true(t.layer_input == 256 && t.ffn == 12288);
        assert_int_equal(traits_split_max(&t), 13);
        t = traits_of(with("\"num_kv_shared_layers\":2"));
        assert_int_equal(traits_kv_layer(&t, 6), 4);
        assert_int_equal(traits_kv_layer(&t, 7), 5);
        assert_int_equal(t.layer[7].ffn, 96);
        t = traits_of(with("\"num_kv_shared_layers\":1,\"use_double_wide_mlp\":true"));
        assert_int_equal(traits_split_max(&t), 5);
        assert_true(t.layer[6].ffn == 96 && !t.layer[6].kv_back && t.layer[7].ffn == 192);
        /* None shares, so none is wide. */
        t = traits_of(with("\"num_kv_shared_layers\":0,\"use_double_wide_mlp\":true"));
        assert_true(t.layer[7].ffn == 96 && t.ffn == 96);
#undef FIVE
}

static void absent_keys_have_the_defaults_of_transformers(void **state)
{
        static const struct kinds kinds = { 256, 4, 512, 4 };
        struct traits t = traits_of("{\"architectures\":[\"Gemma4ForCausalLM\"],"
                                    "\"hidden_size\":64,\"intermediate_size\":96,"
                                    "\"num_hidden_layers\":8,\"num_attention_heads\":8,"
                                    "\"vocab_size\":262144}");

        (void)state;
        check_heads(&t, &kinds);
        for (uint32_t i = 0; i < LAYERS; i++) {
                assert_int_equal(t.layer[i].window, is_full(i) ? 0 : 512);
                assert_int_equal(t.layer[i].ffn, 96);
                assert_true(!t.layer[i].v_is_k && !t.layer[i].kv_back);
                assert_int_equal(rope_of(&t, i)->dims, is_full(i) ? 512 : 256);
                assert_int_equal(rope_of(&t, i)->still, is_full(i) ? 192 : 0);
                assert_true(rope_of(&t, i)->base == (is_full(i) ? 1e6 : 1e4));
        }
        assert_true(t.tied && t.context == 131072 && t.eps == 1e-6f && t.act == ACT_GELU_TANH &&
                    t.layer_input == 256 && t.head_softcap == 0 && t.embed_scale == 8);
        /* the largest of the layers */
        assert_true(t.head_dim == 512 && t.kv_heads == 4 && t.ffn == 96);
}

#define HEADS "\"head_dim\":16,\"num_key_value_heads\":4,\"attention_k_eq_v\":true,"

static void heads_of_layers_without_a_window_have_two_spellings(void **state)
{
        static const char *const spellings[] = {
                HEADS "\"global_head_dim\":32,\"num_global_key_value_heads\":2",
                HEADS "\"per_layer_config\":{\"5\":{\"head_dim\":32,\"num_key_value_heads\":2},"
                      "\"7\":{\"head_dim\":32,\"num_key_value_heads\":2}}",
                HEADS "\"per_layer_config\":{\"7\":{\"num_key_value_heads\":2,\"head_dim\":32},"
                      "\"0\":{\"head_dim\":16},\"1\":{},"
                      "\"5\":{\"num_key_value_heads\":2,\"head_dim\":32}}",
                /* what is listed has precedence */
                HEADS "\"global_head_dim\":64,\"num_global_key_value_heads\":1,"
                      "\"per_layer_config\":{\"5\":{\"head_dim\":32,\"num_key_value_heads\":2},"
                      "\"7\":{\"head_dim\":32,\"num_key_value_heads\":2}}",
        };
        static const struct kinds kinds = { 16, 4, 32, 2 };

        (void)state;
        for (size_t s = 0; s < sizeof(spellings) / sizeof(*spellings); s++) {
                struct traits t = traits_of(with(spellings[s]));

                check_heads(&t, &kinds);
                for (uint32_t i = 0; i < LAYERS; i++) {
                        assert_int_equal(t.layer[i].v_is_k, is_full(i));
                        assert_int_equal(rope_of(&t, i)->dims, is_full(i) ? 32 : 16);
                        assert_int_equal(rope_of(&t, i)->still, is_full(i) ? 12 : 0);
                }
                assert_true(t.head_dim == 32 && t.kv_heads == 4);
        }
}

/* A list that is there, and names no layer, leaves every layer as the model. */
static void an_empty_list_of_heads_means_the_same_heads_everywhere(void **state)
{
        static const char *const lists[] = { HEADS "\"per_layer_config\":{}",
                                             HEADS "\"per_layer_config\":{},\"global_head_dim\":32",
                                             HEADS "\"per_layer_config\":null" };
        static const struct kinds kinds = { 16, 4, 16, 4 };

        (void)state;
        for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
                struct traits t = traits_of(with(lists[i]));

                check_heads(&t, &kinds);
                assert_true(rope_of(&t, 7)->dims == 16 && rope_of(&t, 7)->still == 6);
        }
}

static void the_number_of_global_heads_counts_where_v_is_k_only(void **state)
{
        static const struct kinds same = { 256, 4, 512, 4 }, other = { 256, 4, 512, 2 };
        struct traits t = traits_of(with("\"num_global_key_value_heads\":2"));

        (void)state;
        check_heads(&t, &same);
        assert_false(t.layer[7].v_is_k);
        t = traits_of(with("\"num_global_key_value_heads\":null,\"attention_k_eq_v\":true"));
        check_heads(&t, &same);
        assert_true(t.layer[7].v_is_k && !t.layer[6].v_is_k);
        t = traits_of(with("\"num_global_key_value_heads\":2,\"attention_k_eq_v\":true"));
        check_heads(&t, &other);
        /* A list of layers needs no such key. */
        t = traits_of(with("\"per_layer_config\":{\"5\":{\"head_dim\":512,"
                           "\"num_key_value_heads\":2},\"7\":{\"head_dim\":512,"
                           "\"num_key_value_heads\":2}}"));
        check_heads(&t, &other);
        assert_false(t.layer[7].v_is_k);
}

static void the_last_layer_never_has_a_window(void **state)
{
        static const struct kinds kinds = { 256, 4, 512, 4 };
        struct traits t = traits_of(with("\"num_hidden_layers\":3,\"layer_types\":[" SLIDING
                                         "," SLIDING "," SLIDING "]"));

        (void)state;
        assert_true(t.layer[0].window == 512 && t.layer[1].window == 512 && !t.layer[2].window);
        check_heads(&t, &kinds);
        assert_true(rope_of(&t, 2)->base == 1e6 && rope_of(&t, 1)->base == 1e4);
        /* As such it shares with a layer without a window. */
        t = traits_of(with("\"num_hidden_layers\":3,\"layer_types\":[" FULL "," SLIDING "," SLIDING
                           "],\"num_kv_shared_layers\":1"));
        assert_int_equal(traits_kv_layer(&t, 2), 0);
        t = traits_of(with("\"num_hidden_layers\":1,\"layer_types\":[" SLIDING "]"));
        assert_int_equal(t.layer[0].window, 0);
        t = traits_of(with("\"num_hidden_layers\":2,\"layer_types\":[" FULL "," FULL "]"));
        assert_true(!t.layer[0].window && !t.layer[1].window && t.layer[0].head_dim == 512);
}

/* Of 32 numbers, int(factor * 32 // 2) pairs rotate, at the speeds of a head of 32. */
static void a_proportional_rope_lets_the_last_pairs_stand_still(void **state)
{
        static const struct {
                const char *members;
                uint32_t still;
        } cases[] = {
                { STILL("0.25"), 12 },
                { STILL("0.5"), 8 },
                { STILL("0.3"), 12 },
                { STILL("0.06"), 16 },
                { STILL("0.0625"), 15 },
                { STILL("0.999"), 1 },
                { STILL("1.0"), 0 },
                { STILL("1"), 0 },
                { STILL("0"), 16 },
                { ROPE("\"rope_type\":\"proportional\","), 0 },
                { ROPE("\"rope_type\":\"proportional\",\"factor\":1.0,"), 0 },
                { ROPE("\"type\":\"proportional\",\"partial_rotary_factor\":0.5,"), 8 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct traits t = traits_of(with(cases[i].members));

                if (rope_of(&t, 7)->still != cases[i].still)
                        fail_msg("%s: %u pairs stand still, not %u", cases[i].members,
                                 rope_of(&t, 7)->still, cases[i].still);
                assert_true(rope_of(&t, 7)->dims == 32 && rope_of(&t, 7)->base == 5e5);
                assert_true(rope_of(&t, 0)->dims == 16 && rope_of(&t, 0)->still == 0 &&
                            rope_of(&t, 0)->base == 2e4);
        }
}

static void a_rope_of_the_default_type_turns_all_pairs(void **state)
{
        static const char *const ropes[] = {
                ROPE("\"rope_type\":\"default\","),
                ROPE("\"rope_type\":\"default\",\"partial_rotary_factor\":0.5,"),
        };

        (void)state;
        for (size_t i = 0; i < sizeof(ropes) / sizeof(*ropes); i++) {
                struct traits t = traits_of(with(ropes[i]));

                assert_true(rope_of(&t, 7)->dims == 32 && rope_of(&t, 7)->base == 5e5);
                if (rope_of(&t, 7)->still)
                        fail_msg("%s: %u pairs stand still", ropes[i], rope_of(&t, 7)->still);
        }
}

/* Parameters without a type are of the default type, as in every model of transformers. */
static void a_rope_without_a_type_turns_all_pairs(void **state)
{
        static const char *const ropes[] = { ROPE(""), ROPE("\"partial_rotary_factor\":0.5,") };

        (void)state;
        for (size_t i = 0; i < sizeof(ropes) / sizeof(*ropes); i++) {
                struct traits t = traits_of(with(ropes[i]));

                assert_true(rope_of(&t, 7)->dims == 32 && rope_of(&t, 7)->base == 5e5);
                if (rope_of(&t, 7)->still)
                        fail_msg("%s: %u pairs stand still", ropes[i], rope_of(&t, 7)->still);
        }
}

static void a_rope_may_be_slowed_down_in_each_kind_of_layer(void **state)
{
        struct traits t = traits_of(with(ROPE("\"rope_type\":\"linear\",\"factor\":8,")));

        (void)state;
        assert_true(rope_of(&t, 7)->scaling == ROPE_LINEAR && rope_of(&t, 7)->factor == 8 &&
                    rope_of(&t, 7)->dims == 32 && rope_of(&t, 7)->still == 0);
        assert_true(rope_of(&t, 0)->scaling == ROPE_PLAIN);
        t = traits_of(with("\"rope_parameters\":{\"full_attention\":{\"rope_type\":"
                           "\"proportional\",\"partial_rotary_factor\":0.25,\"rope_theta\":1e6},"
                           "\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":4,"
                           "\"rope_theta\":1e4}}"));
        assert_true(rope_of(&t, 0)->scaling == ROPE_LINEAR && rope_of(&t, 0)->factor == 4);
        assert_true(rope_of(&t, 7)->scaling == ROPE_PLAIN && rope_of(&t, 7)->still == 192);
}

static void accepts_values_at_their_limits(void **state)
{
        struct traits t = traits_of(with("\"num_kv_shared_layers\":1,\"use_double_wide_mlp\":true,"
                                         "\"intermediate_size\":524288"));

        (void)state;
        assert_true(t.layer[0].ffn == 1u << 19 && t.layer[7].ffn == 1u << 20);
        assert_int_equal(traits_of(with("\"intermediate_size\":1048576")).layer[7].ffn, 1u << 20);
        assert_int_equal(traits_of(with("\"sliding_window\":1")).layer[0].window, 1);
        t = traits_of(with("\"hidden_size_per_layer_input\":131072"));
        assert_int_equal(t.layer_input, 131072);
        t = traits_of(with("\"head_dim\":512,\"global_head_dim\":2,\"num_key_value_heads\":8"));
        assert_true(t.layer[0].head_dim == 512 && t.layer[7].head_dim == 2 && t.head_dim == 512);
        t = traits_of(with("\"hidden_size_per_layer_input\":4,\"vocab_size\":300,"
                           "\"vocab_size_per_layer_input\":300"));
        assert_true(t.layer_input == 4 && t.vocab == 300);
        /* Without inputs, the rows of their table do not matter. */
        t = traits_of(with("\"vocab_size\":300,\"vocab_size_per_layer_input\":7"));
        assert_true(t.layer_input == 0 && t.vocab == 300);
}

static void attention_has_biases_if_the_file_says_so(void **state)
{
        struct traits t = traits_of(with("\"attention_bias\":true"));

        (void)state;
        assert_true(t.qkv_bias == MUST_BE_THERE && t.output_bias == MUST_BE_THERE &&
                    t.ffn_bias == NOT_THERE);
}

static void images_may_see_what_follows_them(void **state)
{
        (void)state;
        (void)traits_of(with("\"use_bidirectional_attention\":\"vision\""));
        (void)traits_of(with("\"use_bidirectional_attention\":null"));
        (void)traits_of(with("\"enable_moe_block\":false,\"num_experts\":null,"
                             "\"top_k_experts\":null,\"moe_intermediate_size\":null"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_the_config_of_a_published_model),
                cmocka_unit_test(shared_layers_attend_to_the_last_earlier_one_of_their_kind),
                cmocka_unit_test(absent_keys_have_the_defaults_of_transformers),
                cmocka_unit_test(heads_of_layers_without_a_window_have_two_spellings),
                cmocka_unit_test(an_empty_list_of_heads_means_the_same_heads_everywhere),
                cmocka_unit_test(the_number_of_global_heads_counts_where_v_is_k_only),
                cmocka_unit_test(the_last_layer_never_has_a_window),
                cmocka_unit_test(a_proportional_rope_lets_the_last_pairs_stand_still),
                cmocka_unit_test(a_rope_of_the_default_type_turns_all_pairs),
                cmocka_unit_test(a_rope_without_a_type_turns_all_pairs),
                cmocka_unit_test(a_rope_may_be_slowed_down_in_each_kind_of_layer),
                cmocka_unit_test(accepts_values_at_their_limits),
                cmocka_unit_test(attention_has_biases_if_the_file_says_so),
                cmocka_unit_test(images_may_see_what_follows_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
