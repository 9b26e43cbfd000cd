/*
 * Predictions in requests: which ones are refused, how they are charged, and the command's flag.
 * test-predictions.c has what they do to answers.
 */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/chat-model.h"
#include "tests/e2e/draft-requests.h"
#include "tests/e2e/honest-client.h"

static void start(struct daemon_fixture *fixture, const char *draft)
{
        START_DAEMON(fixture, "--threads", "1", "--ctx", DRAFT_CONTEXT, "--draft", draft);
}

/* ---- refusals ---- */

static void refuse(struct raw_client *client, const struct reply *reply, const char *code,
                   const char *words)
{
        assert_false(reply->ok);
        assert_string_equal(reply->error, code);
        assert_string_equal(reply->field, "prediction");
        if (!strstr(reply->message, words))
                fail_msg("'%s' is not in: %s", words, reply->message);
        assert_false(client->hung_up);
}

#define CALL_WITH(client, format, ...)                                                             \
        raw_client_call(client, "op=s prompt=s max_tokens=u " format, "generate", "tea", 20u,      \
                        __VA_ARGS__)

static void predictions_of_a_wrong_type_or_length_are_refused(void **state)
{
        struct daemon_fixture *fixture = *state;
        static char big[SMV_PREDICTION_BYTES_MAX + 2];
        struct raw_client *client;
        struct reply *reply;

        memset(big, 'a', SMV_PREDICTION_BYTES_MAX + 1);
        start(fixture, "always");
        client = raw_client_greet(fixture);
        refuse(client, CALL_WITH(client, "prediction=u", 7u), "bad_value", "text");
        refuse(client, CALL_WITH(client, "prediction=y", 1), "bad_value", "text");
        refuse(client, CALL_WITH(client, "prediction=b", "abc", (size_t)3), "bad_value", "text");
        refuse(client, CALL_WITH(client, "prediction=s", ""), "bad_value", "1048576");
        refuse(client, CALL_WITH(client, "prediction=t", big, (size_t)SMV_PREDICTION_BYTES_MAX + 1),
               "bad_value", "1048576");
        refuse(client, CALL_WITH(client, "prediction=s", "ab\xff"), "bad_value", "UTF-8");
        /* The longest is taken. */
        reply = CALL_WITH(client, "prediction=t", big, (size_t)SMV_PREDICTION_BYTES_MAX);
        assert_true(reply->ok);
        raw_client_await_end(client, (uint32_t)reply->id);
        reply = raw_client_call(client, "op=s text=s prediction=s", "tokenize", "a", "b");
        assert_false(reply->ok);
        assert_string_equal(reply->field, "prediction");
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Its text and the tokens that it may become: five bytes for each of these. */
static void a_prediction_counts_as_bytes_of_the_prompt(void **state)
{
        struct daemon_fixture *fixture = *state;
        static char text[40000];
        struct raw_client *client;
        struct reply *reply;

        memset(text, 'a', sizeof(text));
        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--draft", "always",
                     "--uid-prompt-bytes", "100K");
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < 8; i++) {
                reply = CALL_WITH(client, "prediction=t", text, sizeof(text));
                assert_false(reply->ok);
                assert_string_equal(reply->error, "quota");
                assert_int_equal(raw_client_status(client, "users.0.prompt_bytes"), 0);
                reply = CALL_WITH(client, "prediction=t n=u", text, (size_t)15000, 2u);
                assert_true(reply->ok);
                raw_client_await_end(client, (uint32_t)reply->id);
                raw_client_await_end(client, (uint32_t)reply->id + 1);
                client->last_id++;
        }
        raw_client_close(client);
        fixture_stop(fixture);
}

/* ---- the command ---- */

#define COMPLETE env_path("SAMOVAR"), "complete", "tea", "--temp", "0", "--max-tokens", "60"

static void expect_error(struct run_result ran, int status, const char *words)
{
        if (!strstr(ran.err, words))
                fail_msg("'%s' is not in: %s", words, ran.err);
        assert_int_equal(ran.status, status);
        assert_string_equal(ran.out, "");
        run_result_free(&ran);
}

static void expect_text(struct run_result ran, const struct run_result *wanted, const char *words)
{
        assert_int_equal(ran.status, 0);
        assert_int_equal(ran.out_bytes, wanted->out_bytes);
        assert_memory_equal(ran.out, wanted->out, ran.out_bytes);
        if (!strstr(ran.err, words))
                fail_msg("'%s' is not in: %s", words, ran.err);
        run_result_free(&ran);
}

static void the_command_takes_a_prediction(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128], empty[128], line[200];
        struct run_result plain, counted;

        start(fixture, "off");
        plain = RUN(fixture, NULL, COMPLETE);
        assert_int_equal(plain.status, 0);
        fixture_stop(fixture);
        write_chat_file(fixture, "expected", plain.out, path);
        write_chat_file(fixture, "empty", "", empty);
        start(fixture, "always");
        expect_text(RUN(fixture, NULL, COMPLETE, "--prediction", path, "--stats"), &plain,
                    " guessed tokens right, in ");
        expect_text(RUN(fixture, plain.out, COMPLETE, "--prediction", "-", "--stats"), &plain,
                    "; by depth ");
        expect_text(RUN(fixture, NULL, COMPLETE, "--prediction", empty), &plain, "");
        counted = RUN(fixture, NULL, COMPLETE, "--prediction", path, "--json");
        assert_int_equal(counted.status, 0);
        assert_non_null(strstr(counted.out, "\"drafted\":"));
        assert_null(strstr(counted.out, "\"predicted\":0,"));
        assert_non_null(strstr(counted.out, "\"predictions_right\":"));
        assert_non_null(strstr(counted.out, "\"draft_steps\":"));
        assert_non_null(strstr(counted.out, "\"drafted_by_depth\":["));
        assert_non_null(strstr(counted.out, "\"drafts_right_by_depth\":["));
        run_result_free(&counted);
        counted = RUN(fixture, NULL, COMPLETE, "--stats", "--mirostat-tau", "3");
        assert_non_null(strstr(counted.err, "drafts: none, because mirostat learns"));
        run_result_free(&counted);
        snprintf(line, sizeof(line), "%s/missing: No such file or directory", fixture->directory);
        snprintf(path, sizeof(path), "%s/missing", fixture->directory);
        expect_error(RUN(fixture, NULL, COMPLETE, "--prediction", path), 1, line);
        run_result_free(&plain);
        fixture_stop(fixture);
}

static void the_command_refuses_files_that_are_no_prediction(void **state)
{
        struct daemon_fixture *fixture = *state;
        static char big[SMV_PREDICTION_BYTES_MAX + 2];
        char path[128];

        start(fixture, "always");
        memset(big, 'a', SMV_PREDICTION_BYTES_MAX + 1);
        write_chat_file(fixture, "big", big, path);
        expect_error(RUN(fixture, NULL, COMPLETE, "--prediction", path), 2,
                     "has 1048577 bytes; it may have 1048576");
        write_chat_file(fixture, "bytes", "ab\xff", path);
        expect_error(RUN(fixture, NULL, COMPLETE, "--prediction", path), 1,
                     "prediction is not valid UTF-8 at byte 2");
        expect_error(RUN(fixture, NULL, COMPLETE, "--prediction", fixture->directory), 1,
                     "Is a directory");
        expect_error(RUN(fixture, NULL, env_path("SAMOVAR"), "tokenize", "a", "--prediction", path),
                     2, "tokenize has no flag --prediction");
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(predictions_of_a_wrong_type_or_length_are_refused),
                DAEMON_TEST(a_prediction_counts_as_bytes_of_the_prompt),
                DAEMON_TEST(the_command_takes_a_prediction),
                DAEMON_TEST(the_command_refuses_files_that_are_no_prediction),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
