/*
 * Which requests may ask their client, and how many at a time.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"

#define TOKENS 30u

static struct smv_generate asking(enum smv_ask ask)
{
        return (struct smv_generate){
                SMV_SIZE(smv_generate), .prompt = "Tea with", .max_tokens = TOKENS,
                .ignore_eos = 1,        .ask = ask,           .ask_ms = 600000
        };
}

static int generate(struct smv_client *client, const struct smv_generate *how)
{
        uint32_t stream;

        return smv_generate(client, how, &stream);
}

/* ---- hello ---- */

static struct reply *refused_hello(const struct daemon_fixture *fixture, const char *transport,
                                   const char *format, uint32_t slots)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };
        struct raw_client *client = raw_client_connect(fixture);
        struct reply *reply, *copy = calloc(1, sizeof(*copy));
        char fields[128];

        assert_non_null(copy);
        snprintf(fields, sizeof(fields), "op=s id=u versions=I transport=s %s", format);
        raw_client_send_frame(client, fields, "hello", 1u, versions, (size_t)2, transport, slots);
        reply = raw_client_await_reply(client, 1);
        assert_false(reply->ok);
        *copy = (struct reply){ .code = reply->code };
        snprintf(copy->field, sizeof(copy->field), "%s", reply->field);
        raw_client_close(client);
        return copy;
}

static void a_hello_asks_for_slots_of_a_ring(void **state)
{
        static const struct {
                const char *transport, *format;
                uint32_t value;
                enum smv_code code;
                const char *field;
        } cases[] = {
                { "ring", "ask_slots=u", 0, SMV_BAD_VALUE, "ask_slots" },
                { "ring", "ask_slots=u", 65, SMV_BAD_VALUE, "ask_slots" },
                { "socket", "ask_slots=u", 1, SMV_BAD_FIELD, "ask_slots" },
                { "ring", "whole_rows=y", 1, SMV_BAD_FIELD, "whole_rows" },
        };
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, "--threads", "1");
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct reply *reply =
                        refused_hello(fixture, cases[i].transport, cases[i].format, cases[i].value);

                assert_int_equal(reply->code, cases[i].code);
                assert_string_equal(reply->field, cases[i].field);
                free(reply);
        }
        fixture_stop(fixture);
}

static void slots_count_towards_the_memory_for_rings(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client, *none;
        struct smv_connect at = { SMV_SIZE(smv_connect), .transport = SMV_TRANSPORT_RING,
                                  .ring_bytes = SMV_RING_BYTES_MIN };
        uint64_t plain, with_slots;

        /* A ring takes 72 KiB; the 64 slots with rows take 80 KiB more. */
        START_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K", "--uid-ring-bytes", "128K");
        at.socket = fixture->socket;
        assert_int_equal(smv_connect(&at, &client), 0);
        plain = fixture_status(fixture, "users.0.ring_bytes");
        smv_close(client);
        fixture_await_status(fixture, "users.0.ring_bytes", 0);
        at.ask_slots = 8;
        assert_int_equal(smv_connect(&at, &client), 0);
        with_slots = fixture_status(fixture, "users.0.ring_bytes");
        assert_true(with_slots >= plain + 8u * 128);
        smv_close(client);
        fixture_await_status(fixture, "users.0.ring_bytes", 0);
        at.ask_slots = 64;
        at.whole_rows = 1;
        assert_true(smv_connect(&at, &none) < 0);
        assert_null(none);
        fixture_stop(fixture);
}

/* ---- refused requests ---- */

struct refusal {
        struct smv_generate how;
        enum smv_code code;
        const char *field;
};

/* What does not go together. */
static void fields_that_do_not_go_with_questions_are_refused(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        struct refusal all[24] = { 0 };
        size_t count = 0;

        START_DAEMON(fixture, "--threads", "1");
        client = question_connect(fixture, 2, true);
        for (size_t i = 0; i < 2; i++) {
                all[count] =
                        (struct refusal){ asking(question_kinds[i]), SMV_BAD_VALUE, "row_top" };
                all[count++].how.row_top = 257;
                all[count] = (struct refusal){ asking(question_kinds[i]), SMV_BAD_VALUE, "ask_ms" };
                all[count++].how.ask_ms = 600001;
        }
        all[count] = (struct refusal){ asking(SMV_ASK_TOKEN), SMV_BAD_FIELD, "logprobs" };
        all[count++].how.logprobs = 3;
        all[count] = (struct refusal){ asking(SMV_ASK_TOKEN), SMV_BAD_FIELD, "logprobs" };
        all[count++].how.set = SMV_SET_LOGPROBS;
        all[count] = (struct refusal){ asking(SMV_ASK_TOKEN), SMV_BAD_FIELD, "mirostat_tau" };
        all[count++].how.mirostat_tau = 3;
        all[count] = (struct refusal){ asking(SMV_ASK_NOTHING), SMV_BAD_FIELD, "ask_ms" };
        count++;
        all[count] = (struct refusal){ asking(SMV_ASK_NOTHING), SMV_BAD_FIELD, "ask_late" };
        all[count].how.ask_ms = 0;
        all[count++].how.late_draws = 1;
        all[count] = (struct refusal){ asking(SMV_ASK_NOTHING), SMV_BAD_FIELD, "whole_row" };
        all[count].how.ask_ms = 0;
        all[count++].how.whole_row = 1;
        for (size_t i = 0; i < count; i++)
                assert_refused(client, generate(client, &all[i].how), all[i].code, all[i].field);
        /* None of them has left a slot taken. */
        for (size_t i = 0; i < 2; i++) {
                const struct smv_generate how = asking(question_kinds[i]);
                struct asked asked = { 0 };

                asked_run(client, &how, &asked);
                assert_int_equal(asked.end.reason, SMV_END_LENGTH);
                asked_free(&asked);
        }
        smv_close(client);
        fixture_stop(fixture);
}

static void a_limit_of_reasoning_does_not_go_with_chosen_tokens(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate how = asking(SMV_ASK_TOKEN);
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = question_connect(fixture, 1, false);
        how.reasoning_max = 5;
        assert_refused(client, generate(client, &how), SMV_BAD_FIELD, "reasoning_max");
        smv_close(client);
        fixture_stop(fixture);
}

/* The daemon refuses it, and the library does so before. */
static void a_question_is_about_one_stream_of_one_connection(void **state)
{
        static const char *const kinds[] = { "mask", "token" };
        static const char *const fields[] = { "n", "keep_ms" };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        struct raw_client *raw;

        START_DAEMON(fixture, "--threads", "1");
        raw = raw_client_greet(fixture);
        client = question_connect(fixture, 2, true);
        for (size_t i = 0; i < 4; i++) {
                struct smv_generate how = asking(question_kinds[i / 2]);
                struct reply *reply;
                char format[64];

                snprintf(format, sizeof(format), "op=s prompt=s ask=s %s=u", fields[i % 2]);
                reply = raw_client_call(raw, format, "generate", "x", kinds[i / 2], 2u);
                assert_int_equal(reply->code, SMV_BAD_FIELD);
                assert_string_equal(reply->field, fields[i % 2]);
                how.n = i % 2 ? 0 : 2;
                how.keep_ms = i % 2 ? 1000 : 0;
                assert_refused(client, generate(client, &how), SMV_OK, fields[i % 2]);
        }
        raw_client_close(raw);
        smv_close(client);
        fixture_stop(fixture);
}

static void words_that_are_none_of_the_protocol_are_refused(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct reply *reply;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        reply = raw_client_call(client, "op=s prompt=s ask=s", "generate", "x", "logits");
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->field, "ask");
        reply = raw_client_call(client, "op=s prompt=s ask=s ask_late=s", "generate", "x", "mask",
                                "never");
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->field, "ask_late");
        reply = raw_client_call(client, "op=s prompt=s ask=s ask_ms=u", "generate", "x", "mask",
                                0u);
        assert_int_equal(reply->code, SMV_BAD_VALUE);
        assert_string_equal(reply->field, "ask_ms");
        reply = raw_client_call(client, "op=s prompt=s ask=s", "open", "x", "mask");
        assert_int_equal(reply->code, SMV_BAD_FIELD);
        assert_string_equal(reply->field, "ask");
        reply = raw_client_call(client, "op=s prompt=s row_top=u", "open", "x", 3u);
        assert_int_equal(reply->code, SMV_BAD_FIELD);
        assert_string_equal(reply->field, "row_top");
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_stream_asks_only_clients_that_have_slots(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_connect at = { SMV_SIZE(smv_connect), .transport = SMV_TRANSPORT_SOCKET };
        struct smv_client *clients[3];

        START_DAEMON(fixture, "--threads", "1");
        at.socket = fixture->socket;
        clients[0] = question_connect(fixture, 0, false);
        assert_int_equal(smv_connect(&at, &clients[1]), 0);
        clients[2] = question_connect(fixture, 1, false);
        for (size_t i = 0; i < 2; i++) {
                struct smv_generate how = asking(question_kinds[i]);

                assert_refused(clients[0], generate(clients[0], &how), SMV_BAD_VALUE, "ask");
                assert_refused(clients[1], generate(clients[1], &how), SMV_BAD_VALUE, "ask");
                how.whole_row = 1;
                assert_refused(clients[2], generate(clients[2], &how), SMV_BAD_VALUE, "whole_row");
        }
        for (size_t i = 0; i < 3; i++)
                smv_close(clients[i]);
        fixture_stop(fixture);
}

static void a_stream_that_asks_cannot_be_forked(void **state)
{
        const struct smv_fork fork = { SMV_SIZE(smv_fork), .count = 1 };
        struct daemon_fixture *fixture = *state;
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = question_connect(fixture, 1, false);
        for (size_t i = 0; i < 2; i++) {
                const struct smv_generate how = asking(question_kinds[i]);
                struct asked asked = { 0 };
                uint32_t forked;

                asked_begin(client, &how, &asked);
                while (asked.token_count < 5)
                        assert_non_null(asked_hear_one(client, &asked, 1, TIMEOUT_MS));
                assert_true(smv_fork(client, asked.stream, &fork, &forked) < 0);
                smv_error(client, &problem);
                assert_string_equal(problem.field, "stream");
                asked_hear(client, &asked, 1);
                assert_int_equal(asked.end.reason, SMV_END_LENGTH);
                asked_free(&asked);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- how many at a time ---- */

static void no_more_streams_ask_than_there_are_slots(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct asked asked[3] = { { 0 } };
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1");
        client = question_connect(fixture, 3, false);
        for (uint32_t round = 0; round < 4; round++) {
                struct smv_generate how = asking(question_kinds[round % 2]);

                for (size_t i = 0; i < 3; i++) {
                        asked[i].answer = answer_nothing;
                        asked_begin(client, &how, &asked[i]);
                }
                assert_refused(client, generate(client, &how), SMV_BUSY, "ask");
                /* The slot of the one that ends is the only free one. */
                assert_int_equal(smv_cancel(client, asked[1].stream), 0);
                while (!asked[1].ended)
                        assert_non_null(asked_hear_one(client, asked, 3, TIMEOUT_MS));
                assert_int_equal(asked[1].end.reason, SMV_END_CANCELLED);
                asked_begin(client, &how, &asked[1]);
                assert_refused(client, generate(client, &how), SMV_BUSY, "ask");
                for (size_t i = 0; i < 3; i++)
                        assert_int_equal(smv_cancel(client, asked[i].stream), 0);
                asked_hear(client, asked, 3);
                for (size_t i = 0; i < 3; i++)
                        assert_int_equal(asked[i].end.reason, SMV_END_CANCELLED);
        }
        for (size_t i = 0; i < 3; i++)
                asked_free(&asked[i]);
        smv_close(client);
        fixture_stop(fixture);
}

/* The setting is for all connections together. */
static void whole_rows_are_for_a_few_streams_of_all_clients(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate how = asking(SMV_ASK_TOKEN);
        struct asked asked[2] = { { .answer = answer_nothing }, { .answer = answer_nothing } };
        struct smv_client *clients[2];

        START_DAEMON(fixture, "--threads", "1", "--whole-row-streams", "2");
        clients[0] = question_connect(fixture, 4, true);
        clients[1] = question_connect(fixture, 4, true);
        how.whole_row = 1;
        for (uint32_t round = 0; round < 3; round++) {
                for (size_t i = 0; i < 2; i++)
                        asked_begin(clients[i], &how, &asked[i]);
                for (size_t i = 0; i < 2; i++)
                        assert_refused(clients[i], generate(clients[i], &how), SMV_BUSY,
                                       "whole_row");
                for (size_t i = 0; i < 2; i++) {
                        assert_int_equal(smv_cancel(clients[i], asked[i].stream), 0);
                        asked_hear(clients[i], &asked[i], 1);
                }
        }
        /* The refused ones have left no slot taken. */
        how.whole_row = 0;
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(generate(clients[0], &how), 0);
        assert_refused(clients[0], generate(clients[0], &how), SMV_BUSY, "ask");
        for (size_t i = 0; i < 2; i++) {
                asked_free(&asked[i]);
                smv_close(clients[i]);
        }
        fixture_stop(fixture);
}

static void a_daemon_may_show_no_whole_rows(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate how = asking(SMV_ASK_MASK);
        struct smv_client *client;

        START_DAEMON(fixture, "--threads", "1", "--whole-row-streams", "0");
        client = question_connect(fixture, 1, true);
        how.whole_row = 1;
        assert_refused(client, generate(client, &how), SMV_BAD_VALUE, "whole_row");
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_hello_asks_for_slots_of_a_ring),
                DAEMON_TEST(slots_count_towards_the_memory_for_rings),
                DAEMON_TEST(fields_that_do_not_go_with_questions_are_refused),
                DAEMON_TEST(a_limit_of_reasoning_does_not_go_with_chosen_tokens),
                DAEMON_TEST(a_question_is_about_one_stream_of_one_connection),
                DAEMON_TEST(words_that_are_none_of_the_protocol_are_refused),
                DAEMON_TEST(a_stream_asks_only_clients_that_have_slots),
                DAEMON_TEST(a_stream_that_asks_cannot_be_forked),
                DAEMON_TEST(no_more_streams_ask_than_there_are_slots),
                DAEMON_TEST(whole_rows_are_for_a_few_streams_of_all_clients),
                DAEMON_TEST(a_daemon_may_show_no_whole_rows),
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
