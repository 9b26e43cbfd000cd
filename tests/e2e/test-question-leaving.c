/*
 * Open questions of clients that leave, and of a daemon that stops.
 */
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/e2e/question-client.h"

#define TOKENS 30u

static struct smv_generate asking(enum smv_ask ask)
{
        return (struct smv_generate){
                SMV_SIZE(smv_generate), .prompt = "Tea with", .max_tokens = TOKENS,
                .ignore_eos = 1,        .ask = ask,           .ask_ms = 600000
        };
}

/* Begins one stream of each kind and waits until both have an open question after some tokens. */
static void begin_both(struct smv_client *client, struct asked asked[2])
{
        for (size_t i = 0; i < 2; i++) {
                struct smv_generate how = asking(question_kinds[i]);

                how.whole_row = 1;
                asked[i] = (struct asked){ 0 };
                asked_begin(client, &how, &asked[i]);
        }
        while (asked[0].token_count < 5 || asked[1].token_count < 5) {
                const struct asked *one = asked_hear_one(client, asked, 2, TIMEOUT_MS);

                assert_non_null(one);
                if (one->token_count >= 5)
                        asked[one - asked].answer = answer_nothing;
        }
        while (!asked[0].is_open || !asked[1].is_open)
                assert_non_null(asked_hear_one(client, asked, 2, TIMEOUT_MS));
}

static void a_cancelled_question_frees_its_slot(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        struct asked asked[2];

        START_DAEMON(fixture, "--threads", "1");
        client = question_connect(fixture, 2, true);
        for (uint32_t round = 0; round < 5; round++) {
                begin_both(client, asked);
                for (size_t i = 0; i < 2; i++)
                        assert_int_equal(smv_cancel(client, asked[i].stream), 0);
                asked_hear(client, asked, 2);
                for (size_t i = 0; i < 2; i++) {
                        assert_int_equal(asked[i].end.reason, SMV_END_CANCELLED);
                        asked_free(&asked[i]);
                }
        }
        smv_close(client);
        fixture_stop(fixture);
}

static void clients_that_leave_open_questions_leave_nothing(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct asked asked[2];

        START_DAEMON(fixture, "--threads", "1", "--whole-row-streams", "2", MANY_CONNECTS);
        for (uint32_t round = 0; round < 5; round++) {
                struct smv_client *client = question_connect(fixture, 2, true);

                begin_both(client, asked);
                smv_close(client);
                asked_free(&asked[0]);
                asked_free(&asked[1]);
                /* The copies of whole rows are free again. */
                fixture_await_status(fixture, "requests.open", 0);
        }
        fixture_stop(fixture);
}

/* In a child, which dies with us. */
static void ask_and_wait(const struct daemon_fixture *fixture, int ready)
{
        struct smv_client *client = question_connect(fixture, 2, true);
        struct asked asked[2];

        begin_both(client, asked);
        if (write(ready, "x", 1) != 1)
                _exit(1);
        for (;;)
                pause();
}

static void killed_clients_leave_nothing(void **state)
{
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, "--threads", "1", "--whole-row-streams", "2", MANY_CONNECTS);
        for (uint32_t round = 0; round < 5; round++) {
                int ready[2];
                pid_t child;
                char byte;

                assert_int_equal(pipe(ready), 0);
                child = fork();
                assert_true(child >= 0);
                if (!child) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        setenv("CMOCKA_TEST_ABORT", "1", 1);
                        ask_and_wait(fixture, ready[1]);
                }
                close(ready[1]);
                assert_int_equal(read(ready[0], &byte, 1), 1);
                close(ready[0]);
                kill(child, SIGKILL);
                assert_int_equal(await_process(child), -SIGKILL);
                fixture_await_status(fixture, "requests.open", 0);
        }
        fixture_stop(fixture);
}

static void a_daemon_stops_although_questions_are_open(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        struct asked asked[2];

        START_DAEMON(fixture, "--threads", "1", "--drain-timeout-ms", "100");
        client = question_connect(fixture, 2, true);
        begin_both(client, asked);
        kill(fixture->pid, SIGTERM);
        asked_hear(client, asked, 2);
        assert_int_equal(fixture_await_exit(fixture), 0);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(asked[i].end.reason, SMV_END_ERROR);
                assert_int_equal(asked[i].end.code, SMV_SHUTTING_DOWN);
                asked_free(&asked[i]);
        }
        smv_close(client);
}

/* Until then it waits for the answers, as for everything that runs. */
static void a_daemon_that_stops_takes_answers(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        struct asked asked[2];

        START_DAEMON(fixture, "--threads", "1", "--drain-timeout-ms", "86400000");
        client = question_connect(fixture, 2, true);
        begin_both(client, asked);
        kill(fixture->pid, SIGTERM);
        asked[0].answer = asked[1].answer = NULL;
        assert_int_equal(smv_answer_mask(client, asked[0].stream, NULL, 0), 0);
        assert_int_equal(smv_answer_token(client, asked[1].stream, SMV_TOKEN_AS_DRAWN), 0);
        asked_hear(client, asked, 2);
        for (size_t i = 0; i < 2; i++) {
                assert_int_equal(asked[i].end.reason, SMV_END_LENGTH);
                assert_int_equal(asked[i].token_count, TOKENS);
                asked_free(&asked[i]);
        }
        smv_close(client);
        assert_int_equal(fixture_await_exit(fixture), 0);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_cancelled_question_frees_its_slot),
                DAEMON_TEST(clients_that_leave_open_questions_leave_nothing),
                DAEMON_TEST(killed_clients_leave_nothing),
                DAEMON_TEST(a_daemon_stops_although_questions_are_open),
                DAEMON_TEST(a_daemon_that_stops_takes_answers),
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
