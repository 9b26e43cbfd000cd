/* samovar pull: how sources are written, and which files of a repository are taken. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cli/pull/choose.h"
#include "cli/pull/retry.h"
#include "cli/pull/source.h"

#define HUB "http://hub:1"

static void reads_sources_in_every_form(void **state)
{
        static const struct {
                const char *text;
                enum source_kind kind;
                const char *repository, *want, *revision, *place;
        } cases[] = {
                { "hf:a/b", SOURCE_HUB, "a/b", "", "", "" },
                { "hf:gpt2", SOURCE_HUB, "gpt2", "", "", "" },
                { "a/b", SOURCE_HUB, "a/b", "", "", "" },
                { "a/b:Q4_K_M", SOURCE_HUB, "a/b", "Q4_K_M", "", "" },
                { "a/b:x/y-Q8_0.gguf@v1", SOURCE_HUB, "a/b", "x/y-Q8_0.gguf", "v1", "" },
                { "a/b@refs/pr/1:Q8_0", SOURCE_HUB, "a/b", "Q8_0", "refs/pr/1", "" },
                { "hf.co/a/b:Q8_0", SOURCE_HUB, "a/b", "Q8_0", "", "" },
                { "https://huggingface.co/a/b", SOURCE_HUB, "a/b", "", "", "" },
                { "https://huggingface.co/a/b/tree/v2", SOURCE_HUB, "a/b", "", "v2", "" },
                { "https://huggingface.co/a/b/resolve/main/c/d.gguf?download=true", SOURCE_HUB,
                  "a/b", "c/d.gguf", "main", "" },
                { "https://huggingface.co/a/b/blob/main/d.gguf", SOURCE_HUB, "a/b", "d.gguf",
                  "main", "" },
                { HUB "/a/b/resolve/main/d.gguf", SOURCE_HUB, "a/b", "d.gguf", "main", "" },
                { HUB "/files/d.gguf", SOURCE_URL, "", "", "", HUB "/files/d.gguf" },
                { HUB "/files/d.gguf?x=1", SOURCE_URL, "", "", "", HUB "/files/d.gguf?x=1" },
                { "https://hf.co/a/b/blob/refs%2Fpr%2f1/c%20d.gguf", SOURCE_HUB, "a/b", "c d.gguf",
                  "refs/pr/1", "" },
                { "https://other/d.gguf?x=1", SOURCE_URL, "", "", "", "https://other/d.gguf?x=1" },
                { "./a/b", SOURCE_PATH, "", "", "", "./a/b" },
                { "/a/b.gguf", SOURCE_PATH, "", "", "", "/a/b.gguf" },
                { "file:///a/b.gguf", SOURCE_PATH, "", "", "", "/a/b.gguf" },
        };
        struct source source, again;
        char why[512], text[2304];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                assert_int_equal(source_read(cases[i].text, HUB, &source, why, sizeof(why)), 0);
                assert_int_equal(source.kind, cases[i].kind);
                assert_string_equal(source.repository, cases[i].repository);
                assert_string_equal(source.want, cases[i].want);
                assert_string_equal(source.revision, cases[i].revision);
                assert_string_equal(source.place, cases[i].place);
                source_write(&source, text, sizeof(text));
                assert_int_equal(source_read(text, HUB, &again, why, sizeof(why)), 0);
                if (source.kind == SOURCE_URL)
                        source.place[strcspn(source.place, "?")] = '\0'; /* it may be a secret */
                assert_int_equal(again.kind, source.kind);
                assert_string_equal(again.repository, source.repository);
                assert_string_equal(again.want, source.want);
                assert_string_equal(again.revision, source.revision);
                assert_string_equal(again.place, source.place);
        }
}

static void refuses_what_is_no_source(void **state)
{
        static const char *const cases[] = { "",
                                             "qwen",
                                             "a/b/c",
                                             "a/../b",
                                             "hf:",
                                             "a/b:",
                                             "a/b@",
                                             "a b/c",
                                             "ftp://a",
                                             "a/b:../../etc",
                                             "a/b@../x",
                                             "hf:a/b?x",
                                             "a/b:x\n",
                                             "hf:/a/b",
                                             "a//b",
                                             "https://hf.co/a/b/blob/main/%00",
                                             "https://hf.co/a/b/blob/main/%2e%2e/a",
                                             "https://hf.co/a/b/blob/main/%1b[31m",
                                             "https://hf.co/a/b/tree/%zz" };
        struct source source;
        char why[512];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                if (source_read(cases[i], HUB, &source, why, sizeof(why)) != -EINVAL)
                        fail_msg("'%s' was taken", cases[i]);
                assert_non_null(strstr(why, "OWNER/NAME"));
        }
}

static void writes_a_url_without_secrets(void **state)
{
        static const char *const cases[][2] = {
                { "https://host/a.gguf", "https://host/a.gguf" },
                { "https://host:8/a.gguf?key=1#2", "https://host:8/a.gguf" },
                { "https://ann:word@host/a@b.gguf", "https://host/a@b.gguf" },
                { "https://ann:w@rd@host/a.gguf", "https://host/a.gguf" },
                { "https://host?ann@host", "https://host" },
                { "https://host#https://ann@host", "https://host" },
                { "host/a", "host/a" },
                { "", "" },
        };
        char text[64];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                source_public_url(cases[i][0], text, sizeof(text));
                assert_string_equal(text, cases[i][1]);
        }
}

static void finds_the_quantisation_in_a_name(void **state)
{
        static const char *const cases[][2] = {
                { "a/Qwen3-0.6B-Q8_0.gguf", "Q8_0" },
                { "x.Q4_K_M.gguf", "Q4_K_M" },
                { "x-q4_k_m.gguf", "Q4_K_M" },
                { "x-IQ3_XXS.gguf", "IQ3_XXS" },
                { "x-UD-Q4_K_XL.gguf", "UD-Q4_K_XL" },
                { "x-BF16.gguf", "BF16" },
                { "x-f16.gguf", "F16" },
                { "gpt-oss-20b-MXFP4.gguf", "MXFP4" },
                { "x-Q8_0-00001-of-00002.gguf", "Q8_0" },
                { "model.gguf", "" },
                { "Q8_0/x-F32.gguf", "F32" },
                { "qwen.gguf", "" },
        };
        char found[32];

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                quantisation_of(cases[i][0], found);
                assert_string_equal(found, cases[i][1]);
        }
}

/* Takes files of these names, NULL-ended; "-" begins those that must be chosen, in order. */
static void expect_choice(const char *want, const char *name, const char *model,
                          const char *const *words)
{
        struct listing listing = { 0 };
        struct choice choice;
        char why[2048];
        size_t count = 0;

        while (strcmp(words[count], "-"))
                assert_int_equal(listing_add(&listing, words[count++], 5000, ""), 0);
        if (choose(&listing, "owner/Repo", want, &choice, why, sizeof(why)))
                fail_msg("%s: %s", want, why);
        assert_string_equal(choice.name, name);
        assert_string_equal(choice.model, model);
        words += count + 1;
        for (size_t i = 0; i < choice.count; i++) {
                assert_non_null(words[i]);
                assert_string_equal(listing.files[choice.files[i]].path, words[i]);
        }
        assert_null(words[choice.count]);
        choice_deinit(&choice);
        listing_deinit(&listing);
}
#define EXPECT_CHOICE(want, name, model, ...)                                                      \
        expect_choice(want, name, model, (const char *const[]){ __VA_ARGS__, NULL })

static void takes_the_best_known_quantisation(void **state)
{
        (void)state;
        EXPECT_CHOICE("", "m-Q4_K_M", "m-Q4_K_M.gguf", "README.md", "m-Q2_K.gguf", "m-Q4_K_M.gguf",
                      "m-Q8_0.gguf", "mmproj-m-Q4_K_M.gguf", "imatrix.gguf", "-", "m-Q4_K_M.gguf");
        EXPECT_CHOICE("", "m-Q8_0", "m-Q8_0.gguf", "m-F16.gguf", "m-Q8_0.gguf", "m-Q5_K_M.gguf",
                      "-", "m-Q8_0.gguf");
        EXPECT_CHOICE("q8_0", "m-Q8_0", "m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf", "-",
                      "m-Q8_0.gguf");
        EXPECT_CHOICE("", "strange", "strange.gguf", "strange.gguf", "config.json", "-",
                      "strange.gguf");
        EXPECT_CHOICE("b.gguf", "b", "b.gguf", "a.gguf", "x/b.gguf", "-", "x/b.gguf");
        EXPECT_CHOICE("", "m-UD", "m-UD.gguf", "m-UD.gguf", "model.safetensors", "config.json", "-",
                      "m-UD.gguf");
}

static void takes_all_pieces_in_order(void **state)
{
        (void)state;
        EXPECT_CHOICE("", "m-Q4_K_M", "m-Q4_K_M.gguf", "q/m-Q4_K_M-00002-of-00003.gguf",
                      "q/m-Q4_K_M-00001-of-00003.gguf", "q/m-Q4_K_M-00003-of-00003.gguf",
                      "m-Q8_0.gguf", "-", "q/m-Q4_K_M-00001-of-00003.gguf",
                      "q/m-Q4_K_M-00002-of-00003.gguf", "q/m-Q4_K_M-00003-of-00003.gguf");
}

static void takes_a_folder_of_safetensors_without_other_formats(void **state)
{
        (void)state;
        EXPECT_CHOICE("", "Repo", ".", "README.md", "config.json", "generation_config.json",
                      "model.safetensors", "pytorch_model.bin", "tokenizer.json",
                      "tokenizer_config.json", "onnx/model.onnx", "consolidated.safetensors",
                      "original/model.safetensors", "chat_template.jinja", "-", "config.json",
                      "generation_config.json", "model.safetensors", "tokenizer.json",
                      "tokenizer_config.json", "chat_template.jinja");
        EXPECT_CHOICE("", "Repo", ".", "config.json", "model-00001-of-00002.safetensors",
                      "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                      "consolidated.00.pth", "tokenizer.model", "-", "config.json",
                      "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                      "model.safetensors.index.json", "tokenizer.model");
        EXPECT_CHOICE("safetensors", "Repo", ".", "m-Q8_0.gguf", "config.json", "model.safetensors",
                      "-", "config.json", "model.safetensors");
        /* A listing that has a file twice. */
        EXPECT_CHOICE("", "Repo", ".", "config.json", "model.safetensors", "config.json", "-",
                      "config.json", "model.safetensors");
}

static void expect_refusal(const char *want, const char *said, const char *const *words)
{
        struct listing listing = { 0 };
        struct choice choice;
        char why[2048] = "";

        for (; *words; words++)
                assert_int_equal(listing_add(&listing, *words, 5000, ""), 0);
        assert_int_equal(choose(&listing, "owner/Repo", want, &choice, why, sizeof(why)), -ENOENT);
        if (!strstr(why, said))
                fail_msg("'%s' is not in: %s", said, why);
        listing_deinit(&listing);
}
#define EXPECT_REFUSAL(want, said, ...)                                                            \
        expect_refusal(want, said, (const char *const[]){ __VA_ARGS__, NULL })

static void says_what_there_is_instead(void **state)
{
        (void)state;
        EXPECT_REFUSAL("Q3_K_M", "there is no file or quantisation Q3_K_M; there are: Q4_K_M, Q8_0",
                       "m-Q4_K_M.gguf", "m-Q8_0.gguf");
        EXPECT_REFUSAL("",
                       "several files have the quantisation Q4_K_M; name one: a-Q4_K_M.gguf, "
                       "b-Q4_K_M.gguf",
                       "a-Q4_K_M.gguf", "b-Q4_K_M.gguf");
        EXPECT_REFUSAL("", "PyTorch's old format", "config.json", "pytorch_model.bin");
        EXPECT_REFUSAL("Q8_0", "leave out :Q8_0", "config.json", "model.safetensors");
        EXPECT_REFUSAL("", "no config.json", "model.safetensors");
        EXPECT_REFUSAL("", "piece 2 of 2 is missing, so there is no whole model: no m-Q8_0-00002",
                       "m-Q8_0-00001-of-00002.gguf", "old/m-Q8_0-00002-of-00002.gguf");
        EXPECT_REFUSAL("", "model-00002-of-00003.safetensors is missing", "config.json",
                       "model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors");
        EXPECT_REFUSAL("", "no GGUF file of a known quantisation; there are: a.gguf, b.gguf",
                       "a.gguf", "b.gguf");
        EXPECT_REFUSAL("", "no GGUF file", "README.md");
}

static void waits_as_long_as_a_server_says(void **state)
{
        char date[64];
        time_t then = time(NULL) + 100;
        uint32_t seconds;

        (void)state;
        assert_int_equal(retry_after_s(NULL, NULL), 0);
        assert_int_equal(retry_after_s("17", NULL), 17);
        assert_int_equal(retry_after_s("99999999999999999999", NULL), UINT32_MAX);
        assert_int_equal(retry_after_s("soon", NULL), 0);
        assert_int_equal(retry_after_s("Thu, 01 Jan 1970 00:00:10 GMT", NULL), 0);
        strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", gmtime(&then));
        seconds = retry_after_s(date, NULL);
        assert_in_range(seconds, 1, 100);
        /* The hub sends RateLimit with every answer; it means something if nothing remains. */
        assert_int_equal(retry_after_s(NULL, "\"api\";r=0;t=55"), 56);
        assert_int_equal(retry_after_s(NULL, "\"api\"; r=0; t=55"), 56);
        assert_int_equal(retry_after_s(NULL, "\"api\";r=3;t=55"), 0);
        assert_int_equal(retry_after_s(NULL, "\"api\";r=0"), 0);
        assert_int_equal(retry_after_s(NULL, "r=0;;;t="), 0);
        assert_int_equal(retry_after_s("7", "\"api\";r=0;t=55"), 7);
}

static void gives_up_after_so_many_failures_without_progress(void **state)
{
        struct retry retry = { .limit = 3 };

        (void)state;
        for (unsigned i = 0; i < 3; i++)
                assert_true(retry_later(&retry, 0));
        retry_progress(&retry);
        for (unsigned i = 0; i < 3; i++)
                assert_true(retry_later(&retry, 1));
        assert_false(retry_later(&retry, 0));
        retry_progress(&retry);
        assert_false(retry_later(&retry, RETRY_AFTER_MAX_S + 1));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_sources_in_every_form),
                cmocka_unit_test(refuses_what_is_no_source),
                cmocka_unit_test(writes_a_url_without_secrets),
                cmocka_unit_test(finds_the_quantisation_in_a_name),
                cmocka_unit_test(takes_the_best_known_quantisation),
                cmocka_unit_test(takes_all_pieces_in_order),
                cmocka_unit_test(takes_a_folder_of_safetensors_without_other_formats),
                cmocka_unit_test(says_what_there_is_instead),
                cmocka_unit_test(waits_as_long_as_a_server_says),
                cmocka_unit_test(gives_up_after_so_many_failures_without_progress),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
