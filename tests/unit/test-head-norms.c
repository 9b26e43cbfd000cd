/*
 * Norms of Q and K that a file has as a tensor for each head become one vector, in the order of
 * the heads.  A head without its tensor, and a tensor without its head, are refused by name.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/engine/tensors.h"
#include "daemon/engine/weights-rows.h"

#define HEADS    12u
#define KV_HEADS 3u
#define HEAD_DIM 4u
#define WIDTH    (HEADS * HEAD_DIM)
#define FFN      8u
#define VOCAB    16u
#define Q_NORM   "self_attn.q_layernorm.norms"
#define K_NORM   "self_attn.k_layernorm.norms"

static char folder[] = "/tmp/test-head-norms-XXXXXX";
static char why[256];

/* A file under way.  All its numbers are floats; those of tensor n are n. */
static char header[16384];
static float data[65536];
static unsigned tensors;
static size_t header_bytes, numbers;

static void put_file(const char *name, const void *bytes, size_t count, const char *mode)
{
        char path[256];
        FILE *out;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        out = fopen(path, mode);
        assert_non_null(out);
        assert_int_equal(fwrite(bytes, 1, count, out), count);
        assert_int_equal(fclose(out), 0);
}

static void add(const char *name, uint32_t rows, uint32_t columns)
{
        size_t first = numbers;
        char shape[32];

        assert_true(first + (size_t)rows * columns <= sizeof(data) / sizeof(*data));
        for (uint32_t i = 0; i < rows * columns; i++)
                data[numbers++] = (float)tensors;
        if (rows > 1)
                snprintf(shape, sizeof(shape), "%u,%u", rows, columns);
        else
                snprintf(shape, sizeof(shape), "%u", columns);
        header_bytes += (size_t)sprintf(
                header + header_bytes,
                "%c\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                tensors ? ',' : '{', name, shape, 4 * first, 4 * numbers);
        assert_true(header_bytes < sizeof(header) - 256);
        tensors++;
}

static void add_in_layer(const char *name, uint32_t rows, uint32_t columns)
{
        char whole[128];

        snprintf(whole, sizeof(whole), "model.layers.0.%s", name);
        add(whole, rows, columns);
}

/* Norms of `q` heads and `k`, those of Q backwards; one of them has this many columns. */
static void write_model(uint32_t q, uint32_t k, uint32_t columns)
{
        static const char config[] =
                "{\"architectures\":[\"StableLmForCausalLM\"],\"hidden_size\":48,"
                "\"intermediate_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":12,"
                "\"num_key_value_heads\":3,\"vocab_size\":16,\"max_position_embeddings\":64,"
                "\"partial_rotary_factor\":0.5,\"use_parallel_residual\":true,\"qk_layernorm\":"
                "true}";
        char name[64];
        uint64_t length;

        tensors = 0;
        header_bytes = numbers = 0;
        for (uint32_t i = q; i-- > 0;) {
                snprintf(name, sizeof(name), Q_NORM ".%u.weight", i);
                add_in_layer(name, 1, i ? HEAD_DIM : columns);
        }
        for (uint32_t i = 0; i < k; i++) {
                snprintf(name, sizeof(name), K_NORM ".%u.weight", i);
                add_in_layer(name, 1, HEAD_DIM);
        }
        add("model.embed_tokens.weight", VOCAB, WIDTH);
        add("lm_head.weight", VOCAB, WIDTH);
        add("model.norm.weight", 1, WIDTH);
        add("model.norm.bias", 1, WIDTH);
        add_in_layer("input_layernorm.weight", 1, WIDTH);
        add_in_layer("input_layernorm.bias", 1, WIDTH);
        add_in_layer("self_attn.q_proj.weight", WIDTH, WIDTH);
        add_in_layer("self_attn.k_proj.weight", KV_HEADS * HEAD_DIM, WIDTH);
        add_in_layer("self_attn.v_proj.weight", KV_HEADS * HEAD_DIM, WIDTH);
        add_in_layer("self_attn.o_proj.weight", WIDTH, WIDTH);
        add_in_layer("mlp.gate_proj.weight", FFN, WIDTH);
        add_in_layer("mlp.up_proj.weight", FFN, WIDTH);
        add_in_layer("mlp.down_proj.weight", WIDTH, FFN);
        header[header_bytes++] = '}';
        length = header_bytes;
        put_file("config.json", config, strlen(config), "wb");
        put_file("model.safetensors", &length, sizeof(length), "wb");
        put_file("model.safetensors", header, header_bytes, "ab");
        put_file("model.safetensors", data, numbers * sizeof(*data), "ab");
}

static int find(struct checkpoint **ret_checkpoint, struct tensors *ret_tensors)
{
        static struct traits traits;

        if (checkpoint_open(folder, ret_checkpoint, why, sizeof(why)) ||
            checkpoint_traits(*ret_checkpoint, &traits, why, sizeof(why)))
                fail_msg("the test's own model: %s", why);
        return tensors_find(*ret_checkpoint, &traits, ret_tensors, why, sizeof(why));
}

static void is_refused(const char *message)
{
        struct checkpoint *checkpoint;
        struct tensors found;

        assert_int_equal(find(&checkpoint, &found), -EINVAL);
        if (!strstr(why, message))
                fail_msg("\"%s\" does not say \"%s\"", why, message);
        checkpoint_close(checkpoint);
}

static void norms_of_heads_are_one_vector_in_the_order_of_the_heads(void **state)
{
        struct checkpoint *checkpoint;
        struct tensors found;
        float q[WIDTH], k[KV_HEADS * HEAD_DIM];

        (void)state;
        write_model(HEADS, KV_HEADS, HEAD_DIM);
        assert_int_equal(find(&checkpoint, &found), 0);
        assert_int_equal(found.layers[0].at[ATTN_Q_NORM]->columns, WIDTH);
        assert_int_equal(
                rows_read_floats(checkpoint, found.layers[0].at[ATTN_Q_NORM], q, why, sizeof(why)),
                0);
        assert_int_equal(
                rows_read_floats(checkpoint, found.layers[0].at[ATTN_K_NORM], k, why, sizeof(why)),
                0);
        for (uint32_t i = 0; i < WIDTH; i++)
                assert_true(q[i] == (float)(HEADS - 1 - i / HEAD_DIM));
        for (uint32_t i = 0; i < KV_HEADS * HEAD_DIM; i++)
                assert_true(k[i] == (float)(HEADS + i / HEAD_DIM));
        tensors_deinit(&found);
        checkpoint_close(checkpoint);
}

static void a_head_without_its_norm_is_refused(void **state)
{
        (void)state;
        write_model(HEADS - 1, KV_HEADS, HEAD_DIM);
        is_refused("tensor 'blk.0.attn_q_norm.norms.11.weight' is missing");
        write_model(HEADS, 0, HEAD_DIM);
        is_refused("tensor 'blk.0.attn_k_norm.weight' is missing");
}

static void a_norm_without_its_head_is_refused(void **state)
{
        (void)state;
        write_model(HEADS, KV_HEADS + 1, HEAD_DIM);
        is_refused("tensor 'blk.0.attn_k_norm.norms.3.weight' is unexpected");
}

static void a_norm_of_another_width_is_refused(void **state)
{
        (void)state;
        write_model(HEADS, KV_HEADS, HEAD_DIM + 1);
        is_refused("tensor 'blk.0.attn_q_norm.norms.0.weight' is 1 x 5, not 1 x 4");
}

static int set_up(void **state)
{
        (void)state;
        return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
        char path[256];

        (void)state;
        snprintf(path, sizeof(path), "%s/config.json", folder);
        unlink(path);
        snprintf(path, sizeof(path), "%s/model.safetensors", folder);
        unlink(path);
        return rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(norms_of_heads_are_one_vector_in_the_order_of_the_heads),
                cmocka_unit_test(a_head_without_its_norm_is_refused),
                cmocka_unit_test(a_norm_without_its_head_is_refused),
                cmocka_unit_test(a_norm_of_another_width_is_refused),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
