/* The sampling parameters and end tokens that the files of a model name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/files/generation-source.h"
#include "tests/unit/gguf-maker.h"
#include "tests/unit/good-folder.h"

#define GENERATION "generation_config.json"

static struct sampling_defaults defaults;
static struct traits traits;
static char left_out[128];

static int set_up(void **state)
{
        (void)state;
        return !good_folder();
}

static int tear_down(void **state)
{
        (void)state;
        unlink(in_folder(GENERATION));
        return remove_folder();
}

static unsigned read_from(const char *at)
{
        struct checkpoint *checkpoint;
        char why[256];
        unsigned count;

        if (checkpoint_open(at, &checkpoint, why, sizeof(why)))
                fail_msg("%s", why);
        defaults = SAMPLING_DEFAULTS_PLAIN;
        traits = (struct traits){ .vocab = 264, .eos_count = 1, .eos = { 2 } };
        count = generation_source_read(checkpoint, &defaults, &traits, left_out, sizeof(left_out));
        checkpoint_close(checkpoint);
        return count;
}

static unsigned read_json(const char *text)
{
        write_text(GENERATION, text);
        return read_from(folder);
}

static void assert_plain(void)
{
        assert_true(defaults.temperature == 1 && defaults.top_p == 1);
        assert_true(defaults.min_p == 0 && defaults.top_k == 0);
}

/* The file of Qwen2.5-7B-Instruct, and that of Llama-3.1-8B-Instruct. */
static void reads_the_files_of_well_known_models(void **state)
{
        (void)state;
        assert_int_equal(read_json("{\"bos_token_id\": 3, \"pad_token_id\": 3, \"do_sample\": true,"
                                   "\"eos_token_id\": [2, 3], \"repetition_penalty\": 1.05,"
                                   "\"temperature\": 0.7, \"top_p\": 0.8, \"top_k\": 20,"
                                   "\"transformers_version\": \"4.37.0\"}"),
                         1);
        assert_string_equal(left_out, "repetition_penalty");
        assert_true(defaults.temperature == 0.7f && defaults.top_p == 0.8f);
        assert_int_equal(defaults.top_k, 20);
        assert_true(defaults.min_p == 0);
        assert_int_equal(traits.eos_count, 2);
        assert_int_equal(traits.eos[1], 3);

        assert_int_equal(read_json("{\"bos_token_id\": 128, \"do_sample\": true, \"eos_token_id\": "
                                   "[129, 130, 131], \"temperature\": 0.6, \"top_p\": 0.9}"),
                         0);
        assert_true(defaults.temperature == 0.6f && defaults.top_p == 0.9f);
        assert_int_equal(traits.eos_count, 4);
        assert_int_equal(traits.eos[0], 2);
}

static void do_sample_false_takes_the_likeliest_token(void **state)
{
        (void)state;
        assert_int_equal(read_json("{\"do_sample\": false, \"temperature\": 0.7}"), 0);
        assert_true(defaults.temperature == 0);
        assert_int_equal(read_json("{\"eos_token_id\": 2}"), 0);
        assert_plain();
}

static void leaves_out_values_that_cannot_be_taken(void **state)
{
        (void)state;
        assert_int_equal(read_json("{\"temperature\": -1, \"top_p\": 0, \"min_p\": 2, "
                                   "\"top_k\": 1.5, \"eos_token_id\": [264, \"x\"]}"),
                         6);
        assert_string_equal(left_out, "temperature,top_p,min_p,top_k,eos_token_id,eos_token_id");
        assert_plain();
        assert_int_equal(traits.eos_count, 1);
        assert_int_equal(read_json("{\"temperature\": \"hot\", \"top_k\": null}"), 1);
        assert_string_equal(left_out, "temperature");
        assert_int_equal(read_json("{\"top_k\": -1}"), 0);
        assert_int_equal(read_json("{\"top_k\": 4096}"), 1);
        assert_int_equal(read_json("[1]"), 1);
        assert_int_equal(read_json("{"), 1);
        assert_string_equal(left_out, GENERATION);
        assert_plain();
}

static void a_folder_without_the_file_has_no_wishes(void **state)
{
        (void)state;
        unlink(in_folder(GENERATION));
        assert_int_equal(read_from(folder), 0);
        assert_plain();
}

/* Pairs of a GGUF file, as raw bytes. */
static void put_pair(struct file *pairs, const char *key, uint32_t type, uint32_t bits)
{
        file_number(pairs, key, type, bits, 4);
}

static void reads_the_keys_of_gguf(void **state)
{
        enum { I32 = 5, F32 = 6 };
        struct file pairs = { .count = 0 }, made;
        struct recipe recipe = { .pair_count = 7 + 6 };

        (void)state;
        put_pair(&pairs, "general.sampling.temp", F32, 0x3e99999a); /* 0.3 */
        put_pair(&pairs, "general.sampling.top_k", I32, 40);
        put_pair(&pairs, "general.sampling.top_p", F32, 0x3f733333); /* 0.95 */
        put_pair(&pairs, "general.sampling.min_p", F32, 0x3dcccccd); /* 0.1 */
        put_pair(&pairs, "general.sampling.penalty_repeat", F32, 0x3f8ccccd);
        put_pair(&pairs, "general.sampling.mirostat", I32, 0);
        recipe.pair = (struct raw){ (const char *)pairs.bytes, pairs.count };
        make_gguf(&recipe, &made);
        write_file(GGUF, made.bytes, made.count);
        assert_int_equal(read_from(in_folder(GGUF)), 1);
        assert_string_equal(left_out, "general.sampling.penalty_repeat");
        assert_true(defaults.temperature == 0.3f && defaults.top_p == 0.95f);
        assert_true(defaults.min_p == 0.1f);
        assert_int_equal(defaults.top_k, 40);

        pairs.count = 0;
        put_pair(&pairs, "general.sampling.top_k", I32, (uint32_t)-1);
        recipe = (struct recipe){ .pair = { (const char *)pairs.bytes, pairs.count } };
        make_gguf(&recipe, &made);
        write_file(GGUF, made.bytes, made.count);
        assert_int_equal(read_from(in_folder(GGUF)), 0);
        assert_plain();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_the_files_of_well_known_models),
                cmocka_unit_test(do_sample_false_takes_the_likeliest_token),
                cmocka_unit_test(leaves_out_values_that_cannot_be_taken),
                cmocka_unit_test(a_folder_without_the_file_has_no_wishes),
                cmocka_unit_test(reads_the_keys_of_gguf),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
