/*
 * Serves checkpoints with weights of eight bits: the daemon generates the same as transformers.
 *
 * tests/golden/fp8 has one for each form, and the tokens that transformers chose, always the
 * likeliest.  The checkpoints have no vocabulary of their own; a vocabulary of bytes is lent to
 * them. Where the two likeliest tokens are so near each other that rounding may decide, the tokens
 * after it follow another text, and are not compared.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"
#include "tests/golden/golden.h"

#define FORMS 7u
#define CLEAR 1e-3 /* the cpu does not round x for these weights */
#define LEAST 120u /* of all tokens: at least this many are to be compared */

#define CLEAR_GPU 0.1 /* ... a GPU rounds them to bfloats */
#define LEAST_GPU 40u

static glob_t forms;

static bool by_gpu(void)
{
        return getenv("SMV_TEST_CUDA_LIBRARY");
}

static double clear(void)
{
        return by_gpu() ? CLEAR_GPU : CLEAR;
}

static unsigned compare(struct raw_client *client, const struct text *text)
{
        struct reply *reply = raw_client_call(
                client, "op=s tokens=I max_tokens=u temperature=f ignore_eos=y", "generate",
                text->prompt, (size_t)text->prompt_count, text->greedy_count, 0.0, true);
        const struct stream *stream;
        uint32_t i = 0;

        if (!reply->ok)
                fail_msg("generate was refused: %s", reply->message);
        stream = raw_client_await_end(client, client->last_id);
        assert_int_equal(stream->token_count, text->greedy_count);
        for (; i < text->greedy_count && text->margin[i] > clear(); i++)
                if (stream->tokens[i] != text->greedy[i])
                        fail_msg("token %u is %u, and not %u", i, stream->tokens[i],
                                 text->greedy[i]);
        return i;
}

/* Serves the form and compares it with its list of texts. */
static unsigned serve(struct daemon_fixture *fixture, const char *name)
{
        static struct text texts[TEXTS_MAX];
        FILE *in = fopen(name, "r");
        unsigned count, compared = 0;
        char folder[512];
        struct raw_client *client;

        assert_non_null(in);
        assert_int_equal(fscanf(in, "files %*s -"), 0);
        count = texts_read(in, texts);
        fclose(in);
        snprintf(folder, sizeof(folder), "%.*s", (int)(strlen(name) - strlen(".txt")), name);

        START_DAEMON(fixture, "--model", folder, "--tokenizer", env_path("TOY_MODEL"), "--kv",
                     by_gpu() ? "f16" : "f32");
        client = raw_client_greet(fixture);
        for (unsigned i = 0; i < count; i++)
                compared += compare(client, &texts[i]);
        raw_client_close(client);
        fixture_stop(fixture);
        return compared;
}

static void fp8_checkpoints_generate_the_tokens_of_transformers(void **state)
{
        struct daemon_fixture *fixture = *state;
        unsigned compared = 0;

        assert_int_equal(forms.gl_pathc, FORMS);
        for (size_t i = 0; i < forms.gl_pathc; i++)
                compared += serve(fixture, forms.gl_pathv[i]);
        print_message("%u tokens compared\n", compared);
        assert_true(compared >= (by_gpu() ? LEAST_GPU : LEAST));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(fp8_checkpoints_generate_the_tokens_of_transformers),
        };
        char pattern[512];
        int failed;

        snprintf(pattern, sizeof(pattern), "%s/tests/golden/fp8/*.txt", env_path("SOURCES"));
        assert(glob(pattern, 0, NULL, &forms) == 0);
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        globfree(&forms);
        return failed;
}
