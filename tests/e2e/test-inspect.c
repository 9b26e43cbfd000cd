/* samovar inspect: the properties of a model, the memory it needs, and why it can not be served. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

/* Makes a model of known dimensions, in the fixture's folder. */
static const char *make(const struct daemon_fixture *fixture, const char *name, const char *more)
{
        static char path[512];
        char command[1024];
        struct run_result ran;

        snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
        snprintf(command, sizeof(command),
                 "%s %s --layers 3 --width 48 --heads 6 --kv-heads 2 --head-dim 8 --ffn 64 "
                 "--vocab 300 --context 160 %s",
                 env_path("TOY_MODEL_MAKER"), path, more);
        ran = RUN(fixture, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        return path;
}

static void expect(const struct daemon_fixture *fixture, const char *path, int status,
                   const char *const *lines)
{
        struct run_result ran = RUN(fixture, NULL, SAMOVAR, "inspect", path);

        for (size_t i = 0; lines[i]; i++)
                if (!strstr(ran.out, lines[i]))
                        fail_msg("\"%s\" is not in:\n%s", lines[i], ran.out);
        assert_int_equal(ran.status, status);
        assert_string_equal(ran.err, "");
        run_result_free(&ran);
}

#define EXPECT(fixture, path, status, ...)                                                         \
        expect(fixture, path, status, (const char *const[]){ __VA_ARGS__, NULL })

/*
 * A layer has q and o of 48 x 48, k and v of 16 x 48, three of 64 x 48 and two norms of 48:
 * 15456 numbers.  Three of them, embedding and head of 300 x 48 and a norm are 75216, of
 * which norms, always in F32, are 336: in BF16 74880 * 2 + 336 * 4 = 151104 bytes, 147.6 KiB.
 * A block's K and V are 3 * 2 * 8 * 2 * 16 numbers in F16, 3 KiB; 160 positions are ten blocks,
 * and a quarter of 64 sequences is 16 of them: 480 KiB.
 */
static void prints_shapes_and_memory_without_loading_the_model(void **state)
{
        struct daemon_fixture *fixture = *state;

        EXPECT(fixture, make(fixture, "small.gguf", "--type bf16"), 0,
               "file        GGUF, llama, 30 tensors: F32 1.3 KiB, BF16 146.2 KiB\n",
               "model       3 layers, width 48, 6 heads of 8 (2 of K and V), ffn 64, "
               "vocabulary 300, context 160, 75216 parameters\n",
               "tokenizer   bytes\n", "weights 147.6 KiB, ", "KV 480.0 KiB; ",
               "sequences   16.0 of 160 positions", "served      yes\n");
        EXPECT(fixture, make(fixture, "tied.gguf", "--type f32 --tied"), 0, "29 tensors",
               "context 160, head tied, 60816 parameters\n");
}

/*
 * Codes of 1288 rows of 128 are 161 KiB.  Their scales belong to 1160 rows and have 4640 bytes
 * more, because attention's output has rows of 256.
 */
static void counts_the_scales_of_fp8_weights(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[1024];

        snprintf(path, sizeof(path), "%s/tests/golden/fp8/rows", env_path("SOURCES"));
        EXPECT(fixture, path, 1,
               "file        safetensors, LlamaForCausalLM, 12 tensors: BF16 66.8 KiB, "
               "F8_E4M3 165.5 KiB\n",
               "model       1 layers", "served      no: ", "no tokenizer.json");
}

/* The properties that were found before the fault are printed, too. */
static void names_the_first_reason_why_a_model_cannot_be_served(void **state)
{
        struct daemon_fixture *fixture = *state;
        char command[1024];
        const char *path;
        struct run_result ran;

        path = make(fixture, "other.gguf", "");
        snprintf(command, sizeof(command), "sed -i s/llama/mamba/g %s", path);
        ran = RUN(fixture, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        EXPECT(fixture, path, 1, "file        GGUF, mamba, 30 tensors",
               "served      no: ", "other.gguf: architecture 'mamba' is not supported yet\n");

        path = make(fixture, "short.gguf", "");
        snprintf(command, sizeof(command), "sed -i s/blk.2.ffn_up/blk.2.ffn_op/ %s", path);
        ran = RUN(fixture, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        EXPECT(fixture, path, 1, "model       3 layers",
               "served      no: ", "tensor 'blk.2.ffn_up.weight' is missing\n");
}

static void refuses_paths_that_are_not_models(void **state)
{
        struct daemon_fixture *fixture = *state;

        EXPECT(fixture, env_path("SAMOVARD"), 1, "served      no: ", "not a GGUF file");
        EXPECT(fixture, "/nowhere", 1, "served      no: /nowhere: No such file or directory\n");
        EXPECT(fixture, fixture->directory, 1, "served      no: ");
        EXPECT(fixture, "/dev/zero", 1, "served      no: ");
}

/* The number after this text. */
static uint64_t number_after(const char *text, const char *before)
{
        const char *at = strstr(text, before);

        if (!at)
                fail_msg("\"%s\" is not in:\n%s", before, text);
        return strtoull(at + strlen(before), NULL, 10);
}

/*
 * random-weights mixes types as quantising programs do: its files are as large as estimated, but
 * for 32 rope factors.
 */
static void estimates_what_a_quantised_file_takes(void **state)
{
        static const char *const recipes[] = { "q4_0", "q4_k_m", "q5_k_m", "q6_k", "q8_0", "bf16" };
        struct daemon_fixture *fixture = *state;
        struct run_result made, ran;
        char path[128], before[64];
        uint64_t estimated[6];

        for (size_t i = 0; i < 6; i++) {
                snprintf(path, sizeof(path), "%s/tiny-%s.gguf", fixture->directory, recipes[i]);
                made = RUN(fixture, NULL, env_path("RANDOM_WEIGHTS_MAKER"), path, "tiny", "--type",
                           recipes[i]);
                assert_int_equal(made.status, 0);
                run_result_free(&made);
                ran = RUN(fixture, NULL, SAMOVAR, "inspect", "--json", path);
                assert_int_equal(ran.status, 0);
                /* Every file gives the same estimates. */
                for (size_t j = 0; j < 6; j++) {
                        snprintf(before, sizeof(before),
                                 "{\"name\":\"%s\",\"weights\":", recipes[j]);
                        if (!i)
                                estimated[j] = number_after(ran.out, before);
                        assert_int_equal(number_after(ran.out, before), estimated[j]);
                }
                assert_int_equal(number_after(ran.out, "\"memory\":{\"weights\":"),
                                 estimated[i] + 32 * sizeof(float));
                run_result_free(&ran);
        }
}

/* A position takes 16 KiB in each layer: a TiB for this context. */
static void names_the_positions_that_fit_if_not_all_do(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char path[128];

        EXPECT(fixture, make(fixture, "small.gguf", ""), 0,
               "quantised   with KV of 160 positions, in the ", " we may have: q4_0 ", ", bf16 ");
        snprintf(path, sizeof(path), "%s/long.gguf", fixture->directory);
        ran = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), path, "--layers", "16", "--width",
                  "64", "--heads", "64", "--kv-heads", "64", "--head-dim", "64", "--type", "bf16",
                  "--context", "4194304");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        EXPECT(fixture, path, 0, "quantised   with KV of 4194304 positions", " TiB (only ",
               " positions fit), ");
        ran = RUN(fixture, NULL, SAMOVAR, "inspect", "--json", path);
        assert_non_null(strstr(ran.out, "\"fits\":false,\"positions\":"));
        run_result_free(&ran);
}

static void a_setting_says_how_calls_are_written(void **state)
{
        struct daemon_fixture *fixture = *state;
        const char *path = make(fixture, "small.gguf", "--type bf16");
        const char *samovard = env_path("SAMOVARD");
        struct run_result ran = RUN(fixture, NULL, samovard, "--inspect", "--model", path,
                                    "--tool-dialect", "glm-4");

        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "\ntool calls  as glm-4, by setting\n"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, samovard, "--inspect", "--json", "--model", path, "--tool-dialect",
                  "none");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, ",\"tool_dialect\":\"\",\"tool_dialect_by\":\"setting\","));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, samovard, "--inspect", "--model", path, "--tool-dialect", "glm");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.out, "tool_dialect is glm, which is not known; protocol.md "
                                        "lists the names"));
        run_result_free(&ran);
}

/* The numbers are those of the text above; the block of KV has 3 KiB. */
static void json_has_all_that_the_text_has(void **state)
{
        static const char *const json_parts[] = {
                "/small.gguf\",\"served\":true,\"name\":\"small\",",
                "\"file\":{\"format\":\"GGUF\",\"architecture\":\"llama\",\"tensors\":30,"
                "\"tensors_not_taken\":0,\"quantisation\":\"BF16\","
                "\"types\":{\"F32\":1344,\"BF16\":149760}},",
                "\"model\":{\"parameters\":75216,\"layers\":3,\"width\":48,\"heads\":6,"
                "\"kv_heads\":2,\"head_dim\":8,\"ffn\":64,\"vocab\":300,\"context\":160,"
                "\"tied\":false},",
                "\"tokenizer\":{\"kind\":\"bytes\",\"entries\":",
                "\"chat\":false,\"chat_why\":\"",
                "\"memory\":{\"weights\":151104,\"activations\":",
                ",\"kv\":491520,\"swap\":0,\"rings_at_most\":67108864,\"sequences\":16},",
                "\"context\":160,\"kv_of_context\":30720,\"quantised\":[{\"name\":\"q4_0\",",
                "{\"name\":\"bf16\",\"weights\":151104,\"needs\":",
        };
        struct daemon_fixture *fixture = *state;
        struct run_result ran = RUN(fixture, NULL, SAMOVAR, "inspect", "--json",
                                    make(fixture, "small.gguf", "--type bf16"));

        assert_string_equal(ran.err, "");
        assert_int_equal(ran.status, 0);
        for (size_t i = 0; i < sizeof(json_parts) / sizeof(*json_parts); i++)
                if (!strstr(ran.out, json_parts[i]))
                        fail_msg("\"%s\" is not in:\n%s", json_parts[i], ran.out);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "inspect", "/nowhere", "--json");
        assert_string_equal(ran.out, "{\"path\":\"/nowhere\",\"served\":false,\"why\":"
                                     "\"/nowhere: No such file or directory\"}\n");
        assert_int_equal(ran.status, 1);
        run_result_free(&ran);
}

/* A block has 3 KiB.  No GPU is needed to see that. */
static void shows_the_swap_and_refuses_one_without_a_block(void **state)
{
        struct daemon_fixture *fixture = *state;
        const char *path = make(fixture, "small.gguf", "--type bf16");
        struct run_result ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--inspect", "--model",
                                    path, "--backend", "cuda", "--swap-bytes", "8000");

        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "KV 480.0 KiB; for the swap of a GPU's pool, 6.0 KiB; "));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--inspect", "--json", "--model", path,
                  "--backend", "cuda", "--swap-bytes", "8000");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, ",\"kv\":491520,\"swap\":6144,"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--inspect", "--model", path, "--backend",
                  "cuda", "--swap-bytes", "3071");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.out, "served      no: swap_bytes is 3071; one block of 16 "
                                        "positions takes 3072 bytes\n"));
        run_result_free(&ran);
}

static void inspect_takes_one_path_and_no_socket(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran = RUN(fixture, NULL, SAMOVAR, "inspect");

        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "inspect", "one", "two");
        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "inspect", "--socket", "/x", "one");
        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(prints_shapes_and_memory_without_loading_the_model),
                DAEMON_TEST(counts_the_scales_of_fp8_weights),
                DAEMON_TEST(names_the_first_reason_why_a_model_cannot_be_served),
                DAEMON_TEST(refuses_paths_that_are_not_models),
                DAEMON_TEST(estimates_what_a_quantised_file_takes),
                DAEMON_TEST(names_the_positions_that_fit_if_not_all_do),
                DAEMON_TEST(a_setting_says_how_calls_are_written),
                DAEMON_TEST(json_has_all_that_the_text_has),
                DAEMON_TEST(shows_the_swap_and_refuses_one_without_a_block),
                DAEMON_TEST(inspect_takes_one_path_and_no_socket),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL_MAKER",
                                                 "RANDOM_WEIGHTS_MAKER", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
