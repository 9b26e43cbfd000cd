/* samovar inspect: the properties of a model, the memory it needs, and why it can not be served. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/talk.h"

#define SAMOVAR given("SAMOVAR")

/* Makes a model of known dimensions, in the house's folder. */
static const char *make(const struct house *house, const char *name, const char *more)
{
        static char path[512];
        char command[1024];
        struct ran ran;

        snprintf(path, sizeof(path), "%s/%s", house->directory, name);
        snprintf(command, sizeof(command),
                 "%s %s --layers 3 --width 48 --heads 6 --kv-heads 2 --head-dim 8 --ffn 64 "
                 "--vocab 300 --context 160 %s",
                 given("BABBLE_MAKER"), path, more);
        ran = RUN(house, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        return path;
}

static void expect(const struct house *house, const char *path, int status,
                   const char *const *lines)
{
        struct ran ran = RUN(house, NULL, SAMOVAR, "inspect", path);

        for (size_t i = 0; lines[i]; i++)
                if (!strstr(ran.out, lines[i]))
                        fail_msg("\"%s\" is not in:\n%s", lines[i], ran.out);
        assert_int_equal(ran.status, status);
        assert_string_equal(ran.err, "");
        ran_free(&ran);
}

#define EXPECT(house, path, status, ...)                                                           \
        expect(house, path, status, (const char *const[]){ __VA_ARGS__, NULL })

/*
 * A layer has q and o of 48 x 48, k and v of 16 x 48, three of 64 x 48 and two norms of 48:
 * 15456 numbers.  Three of them, embedding and head of 300 x 48 and a norm are 75216, of
 * which norms, always in F32, are 336: in BF16 74880 * 2 + 336 * 4 = 151104 bytes, 147.6 KiB.
 * A block's K and V are 3 * 2 * 8 * 2 * 16 numbers in F16, 3 KiB; 160 positions are ten blocks,
 * and a quarter of 64 sequences is 16 of them: 480 KiB.
 */
static void a_model_is_measured_without_being_loaded(void **state)
{
        struct house *house = *state;

        EXPECT(house, make(house, "small.gguf", "--type bf16"), 0,
               "file        GGUF, llama, 30 tensors: F32 1.3 KiB, BF16 146.2 KiB\n",
               "model       3 layers, width 48, 6 heads of 8 (2 of K and V), ffn 64, "
               "vocabulary 300, context 160\n",
               "tokenizer   bytes\n", "weights 147.6 KiB, ", "KV 480.0 KiB; ",
               "sequences   16.0 of 160 positions", "served      yes\n");
        EXPECT(house, make(house, "tied.gguf", "--type f32 --tied"), 0, "29 tensors",
               "context 160, head tied\n");
}

/*
 * Codes of 1288 rows of 128 are 161 KiB.  Their scales belong to 1160 rows and have 4640 bytes
 * more, because attention's output has rows of 256.
 */
static void weights_of_eight_bits_are_measured_with_their_scales(void **state)
{
        struct house *house = *state;
        char path[1024];

        snprintf(path, sizeof(path), "%s/tests/golden/fp8/rows", given("SOURCES"));
        EXPECT(house, path, 1,
               "file        safetensors, LlamaForCausalLM, 12 tensors: BF16 66.8 KiB, "
               "F8_E4M3 165.5 KiB\n",
               "model       1 layers", "served      no: ", "no tokenizer.json");
}

/* The properties that were found before the fault are printed, too. */
static void the_first_thing_in_the_way_is_named(void **state)
{
        struct house *house = *state;
        char command[1024];
        const char *path;
        struct ran ran;

        path = make(house, "other.gguf", "");
        snprintf(command, sizeof(command), "sed -i s/llama/gemma/g %s", path);
        ran = RUN(house, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        EXPECT(house, path, 1, "file        GGUF, gemma, 30 tensors",
               "served      no: ", "other.gguf: architecture 'gemma' is not served yet\n");

        path = make(house, "short.gguf", "");
        snprintf(command, sizeof(command), "sed -i s/blk.2.ffn_up/blk.2.ffn_op/ %s", path);
        ran = RUN(house, NULL, "/bin/sh", "-c", command);
        assert_int_equal(ran.status, 0);
        ran_free(&ran);
        EXPECT(house, path, 1, "model       3 layers",
               "served      no: ", "tensor 'blk.2.ffn_up.weight' is missing\n");
}

static void what_is_no_model_is_no_crash(void **state)
{
        struct house *house = *state;

        EXPECT(house, given("SAMOVARD"), 1, "served      no: ", "not a GGUF file");
        EXPECT(house, "/nowhere", 1, "served      no: /nowhere: No such file or directory\n");
        EXPECT(house, house->directory, 1, "served      no: ");
        EXPECT(house, "/dev/zero", 1, "served      no: ");
}

static void inspect_takes_one_path_and_no_flag(void **state)
{
        struct house *house = *state;
        struct ran ran = RUN(house, NULL, SAMOVAR, "inspect");

        assert_int_equal(ran.status, 2);
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "inspect", "one", "two");
        assert_int_equal(ran.status, 2);
        ran_free(&ran);
        ran = RUN(house, NULL, SAMOVAR, "inspect", "--json", "one");
        assert_int_equal(ran.status, 2);
        ran_free(&ran);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(a_model_is_measured_without_being_loaded),
                STORY(weights_of_eight_bits_are_measured_with_their_scales),
                STORY(the_first_thing_in_the_way_is_named),
                STORY(what_is_no_model_is_no_crash),
                STORY(inspect_takes_one_path_and_no_flag),
        };

        need((const char *const[]){ "SAMOVARD", "SAMOVAR", "BABBLE_MAKER", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
