/* The facts about a model; its digest follows its tensors and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

#include "daemon/files/checkpoint.h"
#include "tests/unit/good-folder.h"

static struct model_facts facts_at(const char *where)
{
        struct checkpoint *checkpoint;
        struct model_facts facts;
        char why[256] = "";

        assert_int_equal(checkpoint_open(where, &checkpoint, why, sizeof(why)), 0);
        assert_int_equal(checkpoint_facts(checkpoint, &facts, why, sizeof(why)), 0);
        checkpoint_close(checkpoint);
        return facts;
}

static void write_config(const char *first)
{
        char config[1024];

        snprintf(config, sizeof(config), "{%s%s", first, good_config + 1);
        write_text(CONFIG, config);
}

static void says_the_architecture_as_the_files_name_it(void **state)
{
        (void)state;
        assert_string_equal(facts_at(folder).architecture, "");
        assert_string_equal(facts_at(folder).format, "safetensors");
        write_config("\"model_type\":\"llama\",");
        assert_string_equal(facts_at(folder).architecture, "llama");
        mend();
}

/* It goes to terminals, and into messages that must be UTF-8. */
static void leaves_out_an_architecture_that_is_no_plain_name(void **state)
{
        static const char *const names[] = {
                "\\u001b[31m",
                "a b",
                "\\u00e9t\\u00e9",
                "a\\n",
                "a_name_that_takes_more_bytes_than_there_are",
        };
        char first[128];

        (void)state;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                snprintf(first, sizeof(first), "\"model_type\":\"%s\",", names[i]);
                write_config(first);
                assert_string_equal(facts_at(folder).architecture, "");
        }
        mend();
}

static void counts_the_numbers_of_all_tensors(void **state)
{
        uint64_t parameters = 0;

        (void)state;
        for (size_t i = 0; i < TENSORS; i++)
                parameters += tensors[i].columns * (tensors[i].rows ? tensors[i].rows : 1);
        assert_int_equal(facts_at(folder).parameters, parameters);
}

static void says_when_the_weights_were_written(void **state)
{
        const struct timespec times[2] = { { .tv_sec = 5 }, { .tv_sec = 1234567890 } };

        (void)state;
        assert_int_equal(utimensat(0, in_folder(WEIGHTS), times, 0), 0);
        assert_int_equal(facts_at(folder).modified_s, 1234567890);
        mend();
}

static void the_digest_is_that_of_the_tensors_wherever_they_are(void **state)
{
        struct model_facts before = facts_at(folder);
        char other[sizeof(folder) + 8];

        (void)state;
        assert_int_equal(strlen(before.digest), MODEL_DIGEST_CHARS);
        assert_int_equal(strspn(before.digest, "0123456789abcdef"), MODEL_DIGEST_CHARS);
        write_config("\"model_type\":\"llama\",");
        assert_string_equal(facts_at(folder).digest, before.digest);
        mend();
        snprintf(other, sizeof(other), "%s-moved", folder);
        assert_int_equal(rename(folder, other), 0);
        assert_string_equal(facts_at(other).digest, before.digest);
        assert_int_equal(rename(other, folder), 0);
}

static void another_tensor_gives_another_digest(void **state)
{
        struct model_facts before = facts_at(folder);
        size_t at = weights_header;

        (void)state;
        for (size_t i = 0; i < TENSORS; i++) {
                size_t bytes = 4 * tensors[i].columns * (tensors[i].rows ? tensors[i].rows : 1);

                for (size_t part = 0; part < 2; part++) {
                        size_t changed = at + part * (bytes / 2);

                        weights[changed] ^= 1;
                        write_file(WEIGHTS, weights, weights_bytes);
                        assert_string_not_equal(facts_at(folder).digest, before.digest);
                        weights[changed] ^= 1;
                }
                at += bytes;
        }
        mend();
        assert_string_equal(facts_at(folder).digest, before.digest);
}

static void refuses_weights_that_became_shorter_meanwhile(void **state)
{
        struct checkpoint *checkpoint;
        struct model_facts facts;
        char why[256] = "";

        (void)state;
        assert_int_equal(checkpoint_open(folder, &checkpoint, why, sizeof(why)), 0);
        assert_int_equal(truncate(in_folder(WEIGHTS), (off_t)weights_header), 0);
        assert_int_equal(checkpoint_facts(checkpoint, &facts, why, sizeof(why)), -EIO);
        assert_non_null(strstr(why, "tensor"));
        checkpoint_close(checkpoint);
        mend();
}

static int begin(void **state)
{
        (void)state;
        return good_folder() ? 0 : -1;
}

static int end(void **state)
{
        (void)state;
        return remove_folder();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(says_the_architecture_as_the_files_name_it),
                cmocka_unit_test(leaves_out_an_architecture_that_is_no_plain_name),
                cmocka_unit_test(counts_the_numbers_of_all_tensors),
                cmocka_unit_test(says_when_the_weights_were_written),
                cmocka_unit_test(the_digest_is_that_of_the_tensors_wherever_they_are),
                cmocka_unit_test(another_tensor_gives_another_digest),
                cmocka_unit_test(refuses_weights_that_became_shorter_meanwhile),
        };

        return cmocka_run_group_tests(tests, begin, end);
}
