#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/files/checkpoint.h"
#include "daemon/files/tensor-names.h"
#include "base/sys.h"
#include "tests/unit/gguf-maker.h"
#include "tests/unit/safetensors-maker.h"

#define WEIGHTS "model.safetensors"
#define INDEX   "model.safetensors.index.json"
#define ONE     "model-00001-of-00002.safetensors"
#define TWO     "model-00002-of-00002.safetensors"

#define NORM "model.norm.weight"
#define HEAD "lm_head.weight"
#define MAP  "\"" NORM "\":\"" ONE "\",\"x\":\"" ONE "\",\"" HEAD "\":\"" TWO "\""

static char folder[] = "/tmp/test-checkpoint-XXXXXX";
static char path[256], why[256];
static struct sys_resources before;

static const char *in_folder(const char *name)
{
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void write_bytes(const char *name, const void *bytes, size_t count)
{
        FILE *out = fopen(in_folder(name), "wb");

        assert_non_null(out);
        assert_int_equal(fwrite(bytes, 1, count, out), count);
        assert_int_equal(fclose(out), 0);
}

static void write_text(const char *name, const char *text)
{
        write_bytes(name, text, strlen(text));
}

/* Data counts up from `from`, so that it tells which file was read. */
static void write_weights(const char *name, const char *header, size_t data_bytes, unsigned from)
{
        struct made made;

        make_safetensors(&made, header, strlen(header), data_bytes, from);
        write_bytes(name, made.bytes, made.count);
}

static const char *const all[] = {
        "config.json", WEIGHTS, INDEX, ONE, TWO, "three.safetensors", "model.gguf",
};

static void clear(void)
{
        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
                if (unlink(in_folder(all[i])))
                        rmdir(in_folder(all[i]));
}

/* One: model.norm.weight and x; two: lm_head.weight. */
static void write_shards(void)
{
        clear();
        write_text("config.json", "{\"model_type\": \"llama\"}");
        write_text(INDEX, "{\"metadata\":{\"total_size\":64},\"weight_map\":{" MAP "}}");
        write_weights(ONE,
                      "{" MEMBER("x", "F16", "[2,4]", "[0,16]") "," MEMBER(NORM, "F32", "[4]",
                                                                           "[16,32]") "}",
                      32, 0);
        write_weights(TWO, "{" MEMBER(HEAD, "BF16", "[4,4]", "[0,32]") "}", 32, 100);
}

static int set_up(void **state)
{
        (void)state;
        return sys_resources(&before) || !mkdtemp(folder) ? -1 : 0;
}

static int tear_down(void **state)
{
        struct sys_resources after;

        (void)state;
        clear();
        assert_int_equal(sys_resources(&after), 0);
        assert_int_equal(after.descriptors, before.descriptors);
        return rmdir(folder);
}

static int open_path(const char *at, struct checkpoint **ret_checkpoint)
{
        memset(why, 0, sizeof(why));
        return checkpoint_open(at, ret_checkpoint, why, sizeof(why));
}

static void refuses(const char *at, int error, const char *message)
{
        struct checkpoint *c = NULL;
        int r = open_path(at, &c);

        if (r != error || !strstr(why, message))
                fail_msg("%d, \"%s\" does not say \"%s\"", r, why, message);
        assert_null(c);
}

static void presents_shards_as_one_table_of_tensors(void **state)
{
        const struct tensor *norm, *head;
        struct checkpoint *c = NULL;
        uint8_t bytes[8];

        (void)state;
        write_shards();
        assert_int_equal(open_path(folder, &c), 0);
        assert_null(checkpoint_gguf(c));
        assert_int_equal(json_kind(checkpoint_config(c), 0), JSON_OBJECT);
        assert_true(checkpoint_folder(c) >= 0);
        assert_int_equal(checkpoint_tensors(c)->count, 3);
        norm = checkpoint_tensor(c, "output_norm.weight");
        head = checkpoint_tensor(c, "output.weight");
        assert_non_null(checkpoint_tensor(c, "x"));
        assert_null(checkpoint_tensor(c, NORM));
        assert_true(norm->type == ROW_F32 && norm->rows == 1 && norm->columns == 4);
        assert_true(head->type == ROW_BF16 && head->rows == 4 && head->columns == 4);
        assert_int_not_equal(norm->file, head->file);
        assert_int_equal(checkpoint_read(c, norm, 4, bytes, 8, why, sizeof(why)), 0);
        assert_true(bytes[0] == 20 && bytes[7] == 27);
        assert_int_equal(checkpoint_read(c, head, 24, bytes, 8, why, sizeof(why)), 0);
        assert_true(bytes[0] == 124 && bytes[7] == 131);
        assert_int_equal(truncate(in_folder(TWO), 30), 0);
        assert_int_equal(checkpoint_read(c, head, 24, bytes, 8, why, sizeof(why)), -EIO);
        assert_non_null(strstr(why, "tensor 'output.weight': the file became shorter"));
        assert_null(checkpoint_close(c));
        assert_null(checkpoint_close(NULL));
}

static void opens_a_single_safetensors_file_without_an_index(void **state)
{
        struct checkpoint *c = NULL;

        (void)state;
        write_shards();
        write_weights(WEIGHTS, "{" MEMBER("only", "F32", "[4]", "[0,16]") "}", 16, 0);
        assert_int_equal(open_path(folder, &c), 0); /* as it is in front of shards elsewhere, too */
        assert_int_equal(checkpoint_tensors(c)->count, 1);
        assert_non_null(checkpoint_tensor(c, "only"));
        checkpoint_close(c);
        unlink(in_folder(INDEX));
        assert_int_equal(open_path(folder, &c), 0);
        checkpoint_close(c);
        assert_int_equal(open_path(in_folder(TWO), &c), 0);
        assert_int_equal(checkpoint_tensors(c)->count, 1);
        assert_non_null(checkpoint_tensor(c, "output.weight"));
        checkpoint_close(c);
}

static void opens_a_gguf_file_and_refuses_a_split_one(void **state)
{
        static const char split[] = "\x0b\0\0\0\0\0\0\0split.count\2\0\0\0\3\0";
        struct checkpoint *c = NULL;
        struct file f;

        (void)state;
        clear();
        make_gguf(&(struct recipe){ 0 }, &f);
        write_bytes("model.gguf", f.bytes, f.count);
        assert_int_equal(open_path(in_folder("model.gguf"), &c), 0);
        assert_non_null(checkpoint_gguf(c));
        assert_null(checkpoint_config(c));
        assert_int_equal(checkpoint_folder(c), -1);
        assert_int_equal(checkpoint_tensors(c)->count, 2);
        assert_non_null(checkpoint_tensor(c, "a"));
        checkpoint_close(c);

        make_gguf(&(struct recipe){ .pair = { split, sizeof(split) - 1 } }, &f);
        write_bytes("model.gguf", f.bytes, f.count);
        refuses(in_folder("model.gguf"), -EINVAL, "one of 3 pieces of a model");
        refuses(folder, -EINVAL, "config.json is missing");
        refuses(in_folder("no-such"), -ENOENT, "No such file");
        refuses(in_folder("no-such.safetensors"), -ENOENT, "No such file");
        write_text("config.json", "{}");
        refuses(in_folder(TWO), -ENOENT, "No such file");
        refuses("/no/such/folder/model.safetensors", -ENOENT, "No such file");
}

#define NO_FILE "model.safetensors.index.json: tensor 'lm_head.weight' is in "

static const struct {
        const char *message, *index; /* its members */
} indices[] = {
        { "'weight_map' is missing or not an object", "\"a\":1" },
        { "'weight_map' is missing or not an object", "\"weight_map\":\"" ONE "\"" },
        { "'weight_map' is missing or not an object", "\"weight_map\":[]" },
        { "0 tensors, not 1 to 65536", "\"weight_map\":{}" },
        { "duplicate key 'lm_head.weight'", "\"weight_map\":{" MAP ",\"" HEAD "\":\"" TWO "\"}" },
        { NO_FILE "no file", "\"weight_map\":{\"" HEAD "\":1}" },
        { NO_FILE "no file", "\"weight_map\":{\"" HEAD "\":null}" },
        { NO_FILE "no file", "\"weight_map\":{\"" HEAD "\":\"" TWO "\\u0000\"}" },
        { NO_FILE "'', which is not a", "\"weight_map\":{\"" HEAD "\":\"\"}" },
        { NO_FILE "'.', which is not a", "\"weight_map\":{\"" HEAD "\":\".\"}" },
        { NO_FILE "'..', which is not a", "\"weight_map\":{\"" HEAD "\":\"..\"}" },
        { NO_FILE "'../" TWO "', which", "\"weight_map\":{\"" HEAD "\":\"../" TWO "\"}" },
        { NO_FILE "'/etc/passwd', which", "\"weight_map\":{\"" HEAD "\":\"/etc/passwd\"}" },
        { NO_FILE "'a/" TWO "', which", "\"weight_map\":{\"" HEAD "\":\"a/" TWO "\"}" },
        { NO_FILE "'\?[0m/', which", "\"weight_map\":{\"" HEAD "\":\"\\u001b[0m/\"}" },
        { "the name of tensor 'a' contains a zero byte",
          "\"weight_map\":{\"a\\u0000b\":\"" TWO "\"}" },
        { ONE ": tensor 'x' is in this file, but",
          "\"weight_map\":{\"" NORM "\":\"" ONE "\",\"x\":\"" TWO "\",\"" HEAD "\":\"" TWO "\"}" },
        { ONE ": tensor 'lm_head.weight' is missing from this file",
          "\"weight_map\":{"
          "\"" NORM "\":\"" ONE "\",\"x\":\"" ONE "\",\"" HEAD "\":\"" ONE "\"}" },
        { ONE ": tensor 'x' is in this file, but",
          "\"weight_map\":{\"" NORM "\":\"" ONE "\",\"" HEAD "\":\"" TWO "\"}" },
        { ONE ": tensor 'y' is missing from this file",
          "\"weight_map\":{" MAP ",\"y\":\"" ONE "\"}" },
};

static void refuses_an_index_that_contradicts_its_files(void **state)
{
        char text[1024];

        (void)state;
        write_shards();
        for (size_t i = 0; i < sizeof(indices) / sizeof(*indices); i++) {
                snprintf(text, sizeof(text), "{%s}", indices[i].index);
                write_text(INDEX, text);
                refuses(folder, -EINVAL, indices[i].message);
        }
        write_text(INDEX, "{\"weight_map\":");
        refuses(folder, -EINVAL, INDEX ": byte 14: expected a value");
        write_text(INDEX, "{\"weight_map\":{" MAP ",\"y\":\"three.safetensors\"}}");
        refuses(folder, -ENOENT, "three.safetensors: No such file");
        assert_int_equal(mkfifo(in_folder("three.safetensors"), 0600), 0);
        refuses(folder, -EINVAL, "three.safetensors: not a regular file");
}

static void refuses_an_incomplete_folder_naming_the_file(void **state)
{
        (void)state;
        write_shards();
        write_weights(TWO, "{" MEMBER(HEAD, "BF16", "[4,4]", "[0,32]") "}", 31, 0);
        refuses(folder, -EINVAL, TWO ": tensor 'lm_head.weight': it ends at 32 of the data");
        write_shards();
        unlink(in_folder(INDEX));
        refuses(folder, -EINVAL, "neither model.safetensors nor model.safetensors.index.json");
        write_text("config.json", "model");
        refuses(folder, -EINVAL, "config.json: byte 0: expected a value");
        unlink(in_folder("config.json"));
        refuses(folder, -EINVAL, "config.json is missing");
        assert_int_equal(mkdir(in_folder("config.json"), 0700), 0);
        refuses(folder, -EINVAL, "config.json: not a regular file");
        clear();
        write_text("config.json", "{}");
        assert_int_equal(truncate(in_folder("config.json"), CHECKPOINT_CONFIG_MAX + 1), 0);
        refuses(folder, -EINVAL, "config.json: the file has 1048577 bytes, the limit is 1048576");
}

static void limits_the_number_of_shards(void **state)
{
        static char text[1 << 16];
        size_t n = (size_t)sprintf(text, "{\"weight_map\":{");

        (void)state;
        write_shards();
        for (unsigned i = 0; i <= CHECKPOINT_SHARDS_MAX; i++)
                n += (size_t)sprintf(text + n, "%s\"t%u\":\"f%u\"", i ? "," : "", i, i);
        sprintf(text + n, "}}");
        write_text(INDEX, text);
        refuses(folder, -EINVAL, "1001 files, more than 1000");
}

/* A name of each kind twice over is one tensor too many. */
static void refuses_two_names_of_the_same_tensor(void **state)
{
        (void)state;
        write_shards();
        write_weights(WEIGHTS,
                      "{" MEMBER(NORM, "F32", "[4]", "[0,16]") "," MEMBER(
                              "output_norm.weight", "F32", "[4]", "[16,32]") "}",
                      32, 0);
        refuses(folder, -EINVAL, "tensor 'output_norm.weight' occurs twice, under different");
}

static void skips_tensors_that_inference_does_not_need(void **state)
{
        struct checkpoint *c = NULL;

        (void)state;
        write_shards();
        write_weights(WEIGHTS,
                      "{" MEMBER("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", "[4]",
                                 "[0,16]") "," MEMBER(NORM, "F32", "[4]", "[16,32]") "}",
                      32, 0);
        assert_int_equal(open_path(folder, &c), 0);
        assert_int_equal(checkpoint_tensors(c)->count, 1);
        assert_string_equal(checkpoint_tensors(c)->tensors[0].name, "output_norm.weight");
        checkpoint_close(c);
}

static void translates_hugging_face_tensor_names_to_gguf_names(void **state)
{
        static const struct {
                const char *from, *to; /* NULL: left out */
        } names[] = {
                { "model.embed_tokens.weight", "token_embd.weight" },
                { "embed_tokens.weight", "token_embd.weight" },
                { "model.norm.weight", "output_norm.weight" },
                { "norm.weight", "output_norm.weight" },
                { "lm_head.weight", "output.weight" },
                { "model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight" },
                { "layers.0.input_layernorm.weight", "blk.0.attn_norm.weight" },
                { "model.layers.17.self_attn.q_proj.weight", "blk.17.attn_q.weight" },
                { "model.layers.17.self_attn.k_proj.bias", "blk.17.attn_k.bias" },
                { "model.layers.17.self_attn.v_proj.weight", "blk.17.attn_v.weight" },
                { "model.layers.17.self_attn.o_proj.weight", "blk.17.attn_output.weight" },
                { "model.layers.17.self_attn.q_norm.weight", "blk.17.attn_q_norm.weight" },
                { "model.layers.17.self_attn.k_norm.weight", "blk.17.attn_k_norm.weight" },
                { "model.layers.123.post_attention_layernorm.weight", "blk.123.ffn_norm.weight" },
                { "model.layers.5.mlp.gate_proj.weight", "blk.5.ffn_gate.weight" },
                { "model.layers.5.mlp.up_proj.weight", "blk.5.ffn_up.weight" },
                { "model.layers.5.mlp.down_proj.weight", "blk.5.ffn_down.weight" },
                { "model.layers.5.self_attn.rotary_emb.inv_freq", NULL },
                { "model.layers.5.mlp.up_proj.weight_scale", "blk.5.ffn_up.weight_scale" },
                { "layers.5.self_attn.q_proj.weight_scale_inv", "blk.5.attn_q.weight_scale_inv" },
                { "lm_head.weight_scale", "output.weight_scale" },
                { "model.layers.5.mlp.up_proj.weight_scale_in",
                  "model.layers.5.mlp.up_proj.weight_scale_in" },
                { "model.layers.5.mlp.up_proj.bias_scale",
                  "model.layers.5.mlp.up_proj.bias_scale" },
                { "model.layers.5.mlp.up.weight_scale", "model.layers.5.mlp.up.weight_scale" },
                { "model.layers.5.mlp.up_proj.weight_scale.weight_scale",
                  "model.layers.5.mlp.up_proj.weight_scale.weight_scale" },
                { "model.weight_scale", "model.weight_scale" },
                { "model.layers.5.weight_scale", "model.layers.5.weight_scale" },
                { "model.layers.5.mlp.up_proj.input_scale", NULL },
                { "model.layers.5.mlp.up_proj.activation_scale", NULL },
                { "model.layers.5.self_attn.k_proj.output_scale", NULL },
                { "model.layers.5.self_attn.k_proj.k_scale", NULL },
                { "model.layers.5.self_attn.v_scale", NULL },
                { "model.layers.5.self_attn.kv_scale", NULL },
                { "lm_head.input_scale", NULL },
                { "input_scale", "input_scale" },
                { "blk.0.attn_q.weight", "blk.0.attn_q.weight" },
                { "model.layers.05.mlp.up_proj.weight", "model.layers.05.mlp.up_proj.weight" },
                { "model.layers.-5.mlp.up_proj.weight", "model.layers.-5.mlp.up_proj.weight" },
                { "model.layers..mlp.up_proj.weight", "model.layers..mlp.up_proj.weight" },
                { "model.layers.5", "model.layers.5" },
                { "model.layers.5.", "model.layers.5." },
                { "model.layers.1234567890.mlp.up_proj.weight",
                  "model.layers.1234567890.mlp.up_proj.weight" },
                { "model.layers.5.mlp.experts.0.w1.weight",
                  "model.layers.5.mlp.experts.0.w1.weight" },
                { "model.model.norm.weight", "model.model.norm.weight" },
                { "x", "x" },
        };
        char name[256];

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                assert_int_equal(tensor_name_canonical(NAMING_LLAMA, names[i].from, name),
                                 !!names[i].to);
                if (names[i].to)
                        assert_string_equal(name, names[i].to);
        }
}

/* Names as published files have them. */
static void each_naming_has_names_of_its_own(void **state)
{
        static const struct {
                enum tensor_naming naming;
                const char *from, *to;
        } names[] = {
                { NAMING_LLAMA, "model.language_model.layers.0.mlp.up_proj.weight",
                  "blk.0.ffn_up.weight" },
                { NAMING_LLAMA, "language_model.lm_head.weight", "output.weight" },
                { NAMING_LLAMA, "model.vision_tower.transformer.layers.0.attention.k_proj.weight",
                  NULL },
                { NAMING_LLAMA, "multi_modal_projector.linear_1.weight", NULL },
                { NAMING_LLAMA, "model.layers.1.self_attn.W_pack.weight", "blk.1.attn_qkv.weight" },
                { NAMING_LLAMA, "model.layers.1.mlp.gate_up_proj.weight_scale_inv",
                  "blk.1.ffn_up.weight_scale_inv" },
                { NAMING_POST, "model.layers.1.post_attention_layernorm.weight",
                  "blk.1.post_attention_norm.weight" },
                { NAMING_GEMMA, "language_model.model.layers.2.pre_feedforward_layernorm.weight",
                  "blk.2.ffn_norm.weight" },
                { NAMING_GEMMA, "vision_tower.vision_model.encoder.layers.0.layer_norm1.bias",
                  NULL },
                { NAMING_GLM4, "model.layers.3.post_self_attn_layernorm.weight",
                  "blk.3.post_attention_norm.weight" },
                { NAMING_INTERNLM2, "model.layers.0.attention.wqkv.weight",
                  "blk.0.attn_qkv.weight" },
                { NAMING_GPT2, "h.11.attn.c_attn.weight", "blk.11.attn_qkv.weight" },
                { NAMING_GPT2, "h.11.attn.bias", NULL },
                { NAMING_GPT2, "transformer.wpe.weight", "position_embd.weight" },
                { NAMING_NEOX, "gpt_neox.layers.4.attention.query_key_value.bias",
                  "blk.4.attn_qkv.bias" },
                { NAMING_NEOX, "gpt_neox.layers.4.attention.rotary_emb.inv_freq", NULL },
                { NAMING_NEOX, "embed_out.weight", "output.weight" },
                { NAMING_FALCON, "transformer.h.5.ln_mlp.bias", "blk.5.attn_norm.bias" },
                { NAMING_BLOOM, "word_embeddings_layernorm.weight", "token_embd_norm.weight" },
                { NAMING_MPT, "transformer.blocks.6.ffn.up_proj.weight", "blk.6.ffn_up.weight" },
                { NAMING_OPT, "model.decoder.layers.7.final_layer_norm.weight",
                  "blk.7.ffn_norm.weight" },
                { NAMING_OPT, "model.decoder.final_layer_norm.weight", "output_norm.weight" },
                { NAMING_PHI, "model.layers.8.self_attn.dense.bias", "blk.8.attn_output.bias" },
                { NAMING_PHI, "model.layers.8.self_attn.q_layernorm.bias",
                  "blk.8.attn_q_norm.bias" },
                { NAMING_LLAMA, "model.layers.9.self_attn.k_layernorm.norms.31.weight",
                  "blk.9.attn_k_norm.norms.31.weight" },
                { NAMING_LLAMA, "model.layers.9.self_attn.k_layernorm.norms..weight",
                  "model.layers.9.self_attn.k_layernorm.norms..weight" },
                { NAMING_GPTJ, "transformer.h.10.attn.qkv_proj.weight", "blk.10.attn_qkv.weight" },
                { NAMING_GPTJ, "transformer.h.10.attn.causal_mask", NULL },
                { NAMING_QWEN, "transformer.h.11.mlp.w1.weight", "blk.11.ffn_up.weight" },
                { NAMING_QWEN, "transformer.visual.transformer.resblocks.0.ln_1.weight", NULL },
                { NAMING_QWEN, "transformer.visual.positional_embedding", NULL },
        };
        char name[256];

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                assert_int_equal(tensor_name_canonical(names[i].naming, names[i].from, name),
                                 !!names[i].to);
                if (names[i].to)
                        assert_string_equal(name, names[i].to);
        }
}

/* The call that is to fail, counted down. */
static int fail_at(const char *call, void *arg)
{
        (void)call;
        return (*(int *)arg)-- == 0 ? -EIO : 0;
}

static void returns_the_error_of_each_failing_system_call(void **state)
{
        struct checkpoint *c = NULL;
        int left, n = 0, r;

        (void)state;
        write_shards();
        do {
                left = n++;
                sys_set_fault(fail_at, &left);
                r = open_path(folder, &c);
                sys_set_fault(NULL, NULL);
                if (r) {
                        assert_int_equal(r, -EIO);
                        assert_true(why[0]);
                }
        } while (left < 0);
        assert_int_equal(r, 0);
        checkpoint_close(c);
        assert_true(n > 14);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(presents_shards_as_one_table_of_tensors),
                cmocka_unit_test(opens_a_single_safetensors_file_without_an_index),
                cmocka_unit_test(opens_a_gguf_file_and_refuses_a_split_one),
                cmocka_unit_test(refuses_an_index_that_contradicts_its_files),
                cmocka_unit_test(refuses_an_incomplete_folder_naming_the_file),
                cmocka_unit_test(limits_the_number_of_shards),
                cmocka_unit_test(refuses_two_names_of_the_same_tensor),
                cmocka_unit_test(each_naming_has_names_of_its_own),
                cmocka_unit_test(skips_tensors_that_inference_does_not_need),
                cmocka_unit_test(translates_hugging_face_tensor_names_to_gguf_names),
                cmocka_unit_test(returns_the_error_of_each_failing_system_call),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
