/*
 * The meaning of Gemma 4's GGUF metadata, where each layer may have numbers of its own, and which
 * of these are refused.
 *
 * A file is made of the pairs that a model has; a case replaces some, or adds some.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/gguf.h"

#define PAIRS_MAX 4u
#define LIST_MAX  8u
#define LAYERS    6u

enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9 };

/* A number, or a list of numbers of its type; a string is of zeros. */
struct given {
        const char *key; /* of the architecture */
        int type;
        double number;
        uint32_t list_count;
        int64_t list[LIST_MAX];
};

#define LIST(type, ...)                                                                            \
        type, 0, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t),                             \
        {                                                                                          \
                __VA_ARGS__                                                                        \
        }

/* Layers 2 and 5 have no window, and heads of another shape. */
static const struct given base[] = {
        { "block_count", U32, LAYERS },
        { "embedding_length", U32, 64 },
        { "feed_forward_length", U32, 96 },
        { "context_length", U32, 1000 },
        { "vocab_size", U32, 300 },
        { "attention.head_count", U32, 8 },
        { "attention.head_count_kv", LIST(I32, 2, 2, 1, 2, 2, 1) },
        { "attention.key_length", U32, 16 },
        { "attention.value_length", U32, 16 },
        { "attention.key_length_swa", U32, 8 },
        { "attention.value_length_swa", U32, 8 },
        { "attention.layer_norm_rms_epsilon", F32, 0.125 },
        { "attention.sliding_window", U32, 7 },
        { "attention.sliding_window_pattern", LIST(BOOL, 1, 1, 0, 1, 1, 0) },
        { "attention.shared_kv_layers", U32, 0 },
        { "embedding_length_per_layer_input", U32, 0 },
        { "rope.dimension_count", U32, 16 },
        { "rope.dimension_count_swa", U32, 8 },
        { "rope.freq_base", F32, 1e6 },
};

static uint8_t bytes[8192];
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

static void put_text(const char *text)
{
        put_int(strlen(text), 8);
        put(text, strlen(text));
}

static void put_number(int type, double number)
{
        float real = (float)number;

        if (type == STRING)
                put_text("0");
        else if (type == F32)
                put(&real, 4);
        else
                put_int((uint64_t)(int64_t)number, type == BOOL ? 1 : 4);
}

static void put_pair(const struct given *pair)
{
        char key[128];

        snprintf(key, sizeof(key), "gemma4.%s", pair->key);
        put_text(key);
        put_int(pair->list_count ? ARRAY : (uint64_t)pair->type, 4);
        if (pair->list_count) {
                put_int((uint64_t)pair->type, 4);
                put_int(pair->list_count, 8);
        } else {
                put_number(pair->type, pair->number);
        }
        for (uint32_t i = 0; i < pair->list_count; i++)
                put_number(pair->type, (double)pair->list[i]);
}

/* The tensors of V, of layers whose bits are set: of one F32 each. */
static void put_tensors(uint32_t layers)
{
        uint32_t at = 0;

        for (uint32_t i = 0; i < LAYERS; i++)
                if (layers >> i & 1) {
                        char name[64];

                        snprintf(name, sizeof(name), "blk.%u.attn_v.weight", i);
                        put_text(name);
                        put_int(1, 4);
                        put_int(1, 8);
                        put_int(0, 4);
                        put_int(32 * (uint64_t)at++, 8);
                }
        while (count % 32)
                put_int(0, 1);
        for (uint32_t i = 0; i < 32 * at; i++)
                put_int(0, 1);
}

static bool replaced(const char *key, const struct given *pairs)
{
        for (size_t i = 0; i < PAIRS_MAX && pairs[i].key; i++)
                if (!strcmp(pairs[i].key, key))
                        return true;
        return false;
}

static int read_traits(const struct given *pairs, uint32_t v_layers, struct traits *ret, char *why,
                       size_t why_bytes)
{
        uint64_t pair_count = 1, tensor_count = (uint64_t)__builtin_popcount(v_layers);
        struct gguf *gguf;
        int r;

        count = 0;
        put("GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
        put_text("general.architecture");
        put_int(STRING, 4);
        put_text("gemma4");
        for (size_t i = 0; i < sizeof(base) / sizeof(*base); i++)
                if (!replaced(base[i].key, pairs)) {
                        put_pair(&base[i]);
                        pair_count++;
                }
        /* a pair without a number and a list is absent */
        for (size_t i = 0; i < PAIRS_MAX && pairs[i].key; i++)
                if (pairs[i].type) {
                        put_pair(&pairs[i]);
                        pair_count++;
                }
        put_tensors(v_layers);
        memcpy(bytes + 8, &tensor_count, 8);
        memcpy(bytes + 16, &pair_count, 8);
        r = gguf_parse(bytes, count, count, &gguf, why, why_bytes);
        if (r)
                fail_msg("the test's own file: %s", why);
        r = gguf_traits(gguf, ret, why, why_bytes);
        gguf_close(gguf);
        return r;
}

static const struct given nothing[PAIRS_MAX];

#define ALL_HAVE_V 0x3fu

static struct traits traits_of(const struct given *pairs)
{
        static struct traits t;
        char why[256] = "";

        if (read_traits(pairs, ALL_HAVE_V, &t, why, sizeof(why)))
                fail_msg("%s", why);
        return t;
}

static bool is_full(uint32_t layer)
{
        return layer == 2 || layer == 5;
}

static void layers_without_a_window_have_heads_of_another_shape(void **state)
{
        struct traits t = traits_of(nothing);

        (void)state;
        for (uint32_t i = 0; i < LAYERS; i++) {
                const struct layer_traits *l = &t.layer[i];

                assert_int_equal(l->window, is_full(i) ? 0 : 7);
                assert_int_equal(l->head_dim, is_full(i) ? 16 : 8);
                assert_int_equal(l->kv_heads, is_full(i) ? 1 : 2);
                assert_int_equal(l->ffn, 96);
                assert_true(!l->v_is_k && !l->kv_back);
                assert_int_equal(t.ropes[l->rope].dims, is_full(i) ? 16 : 8);
                assert_true(t.ropes[l->rope].base == (is_full(i) ? 1e6 : 1e4));
                assert_true(t.ropes[l->rope].pairing == ROPE_HALVES);
        }
        assert_true(t.head_dim == 16 && t.kv_heads == 2 && t.layer_input == 0);
        assert_true(t.embed_scale == 8 && t.attend_scale == 1 && t.head_softcap == 0 && t.v_norm &&
                    t.eps == 0.125f && t.act == ACT_GELU_TANH && t.pre_norms && t.post_norms &&
                    !t.norm_is_one_plus && t.qk_norm == MUST_BE_THERE &&
                    t.layer_scale != NOT_THERE && t.rope_table != NOT_THERE);
}

static void v_is_k_in_a_layer_without_a_matrix_for_v(void **state)
{
        static struct traits t;
        char why[256] = "";

        (void)state;
        assert_int_equal(read_traits(nothing, 0x1b, &t, why, sizeof(why)), 0);
        for (uint32_t i = 0; i < LAYERS; i++)
                assert_int_equal(t.layer[i].v_is_k, is_full(i));
}

static void a_number_of_heads_may_be_one_for_all_layers(void **state)
{
        static const struct given one[PAIRS_MAX] = { { "attention.head_count_kv", U32, 4 } };
        static const struct given list[PAIRS_MAX] = { { "attention.head_count_kv",
                                                        LIST(U32, 4, 4, 4, 4, 4, 4) } };

        (void)state;
        for (uint32_t i = 0; i < LAYERS; i++) {
                assert_int_equal(traits_of(one).layer[i].kv_heads, 4);
                assert_int_equal(traits_of(list).layer[i].kv_heads, 4);
        }
}

static void the_feed_forward_part_may_differ_in_each_layer(void **state)
{
        static const struct given list[PAIRS_MAX] = { { "feed_forward_length",
                                                        LIST(I32, 96, 1, 48, 1 << 20, 96, 192) } };
        struct traits t = traits_of(list);

        (void)state;
        for (uint32_t i = 0; i < LAYERS; i++)
                assert_int_equal(t.layer[i].ffn, list[0].list[i]);
        assert_int_equal(t.ffn, 1 << 20);
}

static void the_last_layers_share_keys_and_have_inputs(void **state)
{
        static const struct given pairs[PAIRS_MAX] = {
                { "attention.shared_kv_layers", U32, 3 },
                { "embedding_length_per_layer_input", U32, 24 },
                { "final_logit_softcapping", F32, 30 },
        };
        static const uint32_t from[LAYERS] = { 0, 1, 2, 1, 1, 2 };
        struct traits t = traits_of(pairs);

        (void)state;
        for (uint32_t i = 0; i < LAYERS; i++)
                assert_int_equal(traits_kv_layer(&t, i), from[i]);
        assert_int_equal(traits_split_max(&t), 1);
        assert_true(t.layer_input == 24 && t.head_softcap == 30);
}

/* A layer that shares keys has no matrix for v in some files, and its v is not k. */
static void a_layer_that_shares_keys_needs_no_matrix_for_v(void **state)
{
        static const struct given pairs[PAIRS_MAX] = { { "attention.shared_kv_layers", U32, 3 } };
        static struct traits t;
        char why[256] = "";

        (void)state;
        assert_int_equal(read_traits(pairs, 0x7, &t, why, sizeof(why)), 0);
        for (uint32_t i = 0; i < LAYERS; i++) {
                assert_int_equal(t.layer[i].kv_back > 0, i >= 3);
                assert_true(!t.layer[i].v_is_k || t.layer[i].kv_back);
        }
}

static const struct bad {
        struct given pair[3];
        const char *message;
} bads[] = {
        { { { "attention.head_count_kv", LIST(I32, 2, 2, 1, 2, 2) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(I32, 2, 2, 1, 2, 2, 1, 2) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(I32, 2) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(I32, 2, 2, 0, 2, 2, 1) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(I32, 0, 0, 0, 0, 0, 0) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(I32, 2, 2, 1, 2, 2, -1) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(U32, 2, 2, 1025, 2, 2, 1) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(U32, 2, 2, 4294967295, 2, 2, 1) } },
          "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(F32, 2, 2, 1, 2, 2, 1) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(STRING, 2, 2, 1, 2, 2, 1) } }, "head_count_kv'" },
        { { { "attention.head_count_kv", LIST(I32, 3, 3, 1, 3, 3, 1) } },
          "8 heads are not a multiple of 3 kv heads" },
        { { { "attention.head_count_kv", LIST(I32, 2, 2, 3, 2, 2, 3) } },
          "8 heads are not a multiple of 3 kv heads" },
        { { { "attention.head_count_kv", LIST(I32, 2, 4, 1, 2, 2, 1) } }, "another layer like it" },
        { { { "attention.head_count_kv", LIST(I32, 2, 2, 1, 2, 2, 2) } }, "another layer like it" },
        { { { "feed_forward_length", LIST(I32, 96, 96, 48, 96, 96) } }, "feed_forward_length'" },
        { { { "feed_forward_length", LIST(I32, 96, 96, 48, 96, 96, 96, 96) } },
          "feed_forward_length'" },
        /* of the same number, for too few layers or too many */
        { { { "feed_forward_length", LIST(I32, 96, 96, 96, 96, 96) } }, "feed_forward_length'" },
        { { { "feed_forward_length", LIST(I32, 96, 96, 96, 96, 96, 96, 96) } },
          "feed_forward_length'" },
        { { { "feed_forward_length", LIST(I32, 96, 96, 96, 0, 96, 96) } }, "feed_forward_length'" },
        { { { "feed_forward_length", LIST(I32, 96, 96, -96, 1, 96, 96) } },
          "feed_forward_length'" },
        { { { "feed_forward_length", LIST(U32, 96, 96, 96, 1048577, 96, 96) } },
          "feed_forward_length'" },
        { { { "feed_forward_length", LIST(U32, 96, 96, 96, 96, 96, 4294967295) } },
          "feed_forward_length'" },
        { { { "feed_forward_length", LIST(BOOL, 1, 1, 1, 1, 1, 1) } }, "feed_forward_length'" },
        { { { "attention.key_length_swa", U32, 0 } }, "key_length_swa' is 0, not 2 to 512" },
        { { { "attention.key_length_swa", U32, 513 } }, "key_length_swa' is 513, not 2 to 512" },
        { { { "attention.key_length_swa", U32, 4294967295 } }, "key_length_swa' is 4294967295" },
        { { { "attention.key_length_swa", U32, 7 }, { "attention.value_length_swa", U32, 7 } },
          "dimension_count_swa' is 8, not 0 to 7" },
        { { { "attention.key_length_swa", U32, 7 },
            { "attention.value_length_swa", U32, 7 },
            { "rope.dimension_count_swa" } },
          "7 numbers of a head" },
        { { { "attention.key_length_swa", I32, -8 } }, "key_length_swa'" },
        { { { "attention.key_length_swa", F32, 8 } }, "key_length_swa'" },
        { { { "attention.value_length_swa", U32, 16 } }, "value_length_swa' is 16, not 8 to 8" },
        { { { "attention.value_length", U32, 8 } }, "value_length' is 8, not 16 to 16" },
        { { { "rope.dimension_count_swa", U32, 7 } }, "7 numbers of a head" },
        { { { "rope.dimension_count_swa", U32, 10 } }, "dimension_count_swa' is 10, not 0 to 8" },
        { { { "rope.dimension_count", U32, 18 } }, "dimension_count' is 18, not 0 to 16" },
        { { { "rope.freq_base_swa", F32, 1 } }, "rope's base is 1" },
        { { { "rope.freq_base_swa", F32, -1e4 } }, "freq_base_swa'" },
        { { { "attention.shared_kv_layers", U32, 6 } }, "shared_kv_layers' is 6, not 0 to 5" },
        { { { "attention.shared_kv_layers", U32, 7 } }, "shared_kv_layers' is 7, not 0 to 5" },
        { { { "attention.shared_kv_layers", U32, 4294967295 } }, "shared_kv_layers' is 42949" },
        { { { "attention.shared_kv_layers", I32, -1 } }, "shared_kv_layers'" },
        /* There is no earlier layer without a window. */
        { { { "attention.shared_kv_layers", U32, 4 } }, "layer 2 shares the keys and values" },
        { { { "embedding_length_per_layer_input", U32, 2147483648 } },
          "embedding_length_per_layer_input'" },
        { { { "embedding_length_per_layer_input", U32, 174763 } },
          "embedding_length_per_layer_input' is 174763" },
        { { { "attention.sliding_window", U32, 0 } }, "another layer like it" },
        { { { "attention.sliding_window_pattern", LIST(BOOL, 1, 1, 0, 1, 1) } },
          "sliding_window_pattern'" },
        { { { "attention.sliding_window_pattern", LIST(BOOL, 1, 1, 0, 1, 1, 0, 1) } },
          "sliding_window_pattern'" },
        { { { "expert_count", U32, 8 } }, "expert_count'" },
        { { { "attn_logit_softcapping", F32, 50 } }, "attn_logit_softcapping'" },
        { { { "final_logit_softcapping", F32, -1 } }, "final_logit_softcapping' is -1" },
};

static void refuses_in_one_line_what_does_not_fit(void **state)
{
        static struct traits t;
        unsigned wrong = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
                struct given pairs[PAIRS_MAX] = { bads[i].pair[0], bads[i].pair[1],
                                                  bads[i].pair[2] };
                char why[256] = "";
                int r = read_traits(pairs, ALL_HAVE_V, &t, why, sizeof(why));

                if (r == -EINVAL && strstr(why, bads[i].message) && !strchr(why, '\n'))
                        continue;
                wrong++;
                print_error("%zu, %s: %d, \"%s\" does not say \"%s\"\n", i, pairs[0].key, r, why,
                            bads[i].message);
        }
        assert_int_equal(wrong, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(layers_without_a_window_have_heads_of_another_shape),
                cmocka_unit_test(v_is_k_in_a_layer_without_a_matrix_for_v),
                cmocka_unit_test(a_number_of_heads_may_be_one_for_all_layers),
                cmocka_unit_test(the_feed_forward_part_may_differ_in_each_layer),
                cmocka_unit_test(the_last_layers_share_keys_and_have_inputs),
                cmocka_unit_test(a_layer_that_shares_keys_needs_no_matrix_for_v),
                cmocka_unit_test(refuses_in_one_line_what_does_not_fit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
