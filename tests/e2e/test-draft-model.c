/*
 * The shipped draft model guesses what teaspoon generates.  The guesses are compared, token by
 * token, with the answers that transformers computed for teaspoon (contrib/reference/shipped.py).
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/daemon-fixture.h"

#define TOKENS_MAX 256u

static size_t read_tokens(FILE *in, uint32_t *tokens)
{
        size_t count = 0;

        assert_int_equal(fscanf(in, "%zu", &count), 1);
        assert_true(count <= TOKENS_MAX);
        for (size_t i = 0; i < count; i++)
                assert_int_equal(fscanf(in, "%u", &tokens[i]), 1);
        return count;
}

/* The token that the draft would generate next. */
static uint32_t guess(struct smv_client *client, const uint32_t *tokens, size_t count)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .tokens = tokens, .token_count = count,
                                    .max_tokens = 1, .set = SMV_SET_TEMPERATURE };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream, token = UINT32_MAX;

        assert_int_equal(smv_generate(client, &ask, &stream), 0);
        while (smv_next(client, &event, -1) > 0 && event.kind != SMV_EVENT_END)
                if (event.token_count)
                        token = *event.tokens;
        assert_int_equal(event.code, SMV_OK);
        return token;
}

static void the_draft_model_guesses_three_of_four_tokens_right(void **state)
{
        uint32_t tokens[2 * TOKENS_MAX], answer[TOKENS_MAX];
        unsigned texts = 0, guesses = 0, right = 0;
        struct smv_connect at = { SMV_SIZE(smv_connect) };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        size_t count = 0, said;
        char path[512], word[16];
        FILE *in;

        snprintf(path, sizeof(path), "%s/tests/golden/shipped/teaspoon.txt", env_path("SOURCES"));
        in = fopen(path, "r");
        assert_non_null(in);
        START_DAEMON(fixture, NULL);
        at.socket = fixture->socket;
        assert_int_equal(smv_connect(&at, &client), 0);
        while (fscanf(in, "%15s", word) == 1) {
                if (!strcmp(word, "prompt")) {
                        count = read_tokens(in, tokens);
                        texts++;
                } else if (!strcmp(word, "greedy")) {
                        said = read_tokens(in, answer);
                        for (size_t i = 0; i < said; i++) {
                                right += guess(client, tokens, count) == answer[i];
                                guesses++;
                                tokens[count++] = answer[i];
                        }
                }
        }
        fclose(in);
        print_message("# of %u guesses in %u answers %u are right\n", guesses, texts, right);
        assert_int_equal(texts, 20);
        assert_true(right * 4 >= guesses * 3);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_draft_model_guesses_three_of_four_tokens_right),
        };
        char path[512];

        require_env_paths((const char *const[]){ "SAMOVARD", "SOURCES", NULL });
        snprintf(path, sizeof(path), "%s/models/pinch-q8_0.gguf", env_path("SOURCES"));
        setenv("TOY_MODEL", path, 1);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
