/*
 * Constraints beside one other feature that other servers have got wrong: each test is a fault that
 * users have reported of some engine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"
#include "tests/e2e/combination.h"
#include "tests/e2e/raw-client.h"

static const struct smv_message hello[] = { { "user", "Hello", 0 } };

static void start_teaspoon(struct daemon_fixture *fixture)
{
        char model[256];

        combination_write_model(fixture->directory, model);
        START_DAEMON(fixture, "--model", model, "--threads", "1", "--constraints-kept", "0");
}

static struct smv_client *connect_to(const struct daemon_fixture *fixture)
{
        const struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket };
        struct smv_client *client;

        assert_int_equal(smv_connect(&at, &client), 0);
        return client;
}

static void hear(struct smv_client *client, const struct smv_generate *ask, struct outcome *outcome)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream;

        memset(outcome, 0, sizeof(*outcome));
        assert_int_equal(smv_generate(client, ask, &stream), 0);
        while (!outcome->end.reason) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                outcome_add(outcome, &event);
        }
}

static struct smv_generate with(const char *constraint)
{
        return (struct smv_generate){ SMV_SIZE(smv_generate), .messages = hello,
                                      .message_count = 1,     .max_tokens = COMBINATION_TOKENS,
                                      .set = SMV_SET_SEED,    .constraint = constraint };
}

/* Where the text must end, min_tokens does not count. */
static void a_whole_answer_ends_before_its_least_tokens(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = with("{\"schema\":{\"type\":\"boolean\"}}");
        struct outcome outcome;
        struct smv_client *client;

        start_teaspoon(fixture);
        client = connect_to(fixture);
        ask.min_tokens = 64;
        for (ask.seed = 0; ask.seed < 8; ask.seed++) {
                hear(client, &ask, &outcome);
                assert_int_equal(outcome.end.reason, SMV_END_EOS);
                assert_int_equal(outcome.end.code, SMV_OK);
                assert_true(!strcmp(outcome.text, "true") || !strcmp(outcome.text, "false"));
        }
        smv_close(client);
        fixture_stop(fixture);
}

static bool is_blank(const struct smv_piece *piece)
{
        for (uint32_t i = 0; i < piece->count; i++)
                if (!strchr(" \t\r\n", piece->bytes[i]))
                        return false;
        return piece->count;
}

/* Raises all tokens that are white space. */
static size_t want_blanks(struct smv_client *client, struct smv_bias *biases, size_t most)
{
        const struct smv_piece *pieces;
        size_t count, vocab, blanks = 0;

        assert_int_equal(smv_vocabulary(client, NULL, 0, 0, &pieces, &count, &vocab), 0);
        for (size_t i = 0; i < count && blanks < most; i++)
                if (is_blank(&pieces[i]))
                        biases[blanks++] = (struct smv_bias){ (uint32_t)i, 100 };
        return blanks;
}

static void a_model_that_only_wants_blanks_still_ends(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = with(
                "{\"schema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"},"
                "\"b\":{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2,"
                "\"maxItems\":2}},\"required\":[\"a\",\"b\"],\"additionalProperties\":false}}");
        struct json_document *json = NULL;
        struct smv_bias biases[64];
        struct outcome outcome;
        struct smv_client *client;
        char why[80];

        start_teaspoon(fixture);
        client = connect_to(fixture);
        ask.biases = biases;
        ask.bias_count = want_blanks(client, biases, 64);
        assert_true(ask.bias_count > 1);
        ask.max_tokens = COMBINATION_TOKENS;
        hear(client, &ask, &outcome);
        assert_int_equal(outcome.end.reason, SMV_END_EOS);
        assert_int_equal(json_parse(outcome.text, outcome.text_bytes, 100, &json, why, sizeof(why)),
                         0);
        assert_int_equal(json_count(json, 0), 2);
        json_free(json);
        smv_close(client);
        fixture_stop(fixture);
}

static void a_stop_string_ends_a_constrained_answer(void **state)
{
        static const char *const stops[] = { "le" };
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = with("{\"choices\":[\"an apple is red\"]}");
        struct outcome outcome;
        struct smv_client *client;

        start_teaspoon(fixture);
        client = connect_to(fixture);
        ask.stops = stops;
        ask.stop_count = 1;
        hear(client, &ask, &outcome);
        assert_int_equal(outcome.end.reason, SMV_END_STOP);
        assert_string_equal(outcome.text, "an app");
        smv_close(client);
        fixture_stop(fixture);
}

/* Bans that leave no token end the stream with a code, and never with a token that is illegal. */
static void bans_that_leave_nothing_end_the_answer(void **state)
{
        static const char *const texts[] = { "ed" };
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = with("{\"choices\":[\"red\"]}");
        struct outcome outcome;
        struct smv_client *client;

        start_teaspoon(fixture);
        client = connect_to(fixture);
        ask.banned_texts = texts;
        ask.banned_text_count = 1;
        hear(client, &ask, &outcome);
        assert_int_equal(outcome.end.reason, SMV_END_ERROR);
        assert_int_equal(outcome.end.code, SMV_NO_TOKEN);
        assert_true(!strncmp("re", outcome.text, outcome.text_bytes));
        ask.banned_text_count = 0;
        hear(client, &ask, &outcome);
        assert_string_equal(outcome.text, "red");
        smv_close(client);
        fixture_stop(fixture);
}

/* Reasoning is free, and the answer behind it obeys the schema. */
static void an_answer_behind_reasoning_obeys_its_schema(void **state)
{
        static const struct smv_message messages[] = { { "user", "Is it cold?", 0 },
                                                       { "assistant", "<think>\n", 0 } };
        struct daemon_fixture *fixture = *state;
        struct smv_generate ask = with("{\"schema\":{\"type\":\"boolean\"}}");
        struct outcome outcome;
        struct smv_client *client;
        const char *answer;

        start_teaspoon(fixture);
        client = connect_to(fixture);
        ask.messages = messages;
        ask.message_count = 2;
        ask.continue_final_message = 1;
        ask.parts = 1;
        ask.set |= SMV_SET_REASONING_MAX;
        ask.reasoning_end = " Enough of that.";
        for (ask.reasoning_max = 0; ask.reasoning_max < 12; ask.reasoning_max++) {
                hear(client, &ask, &outcome);
                assert_int_equal(outcome.end.reason, SMV_END_EOS);
                assert_true(outcome.end.reasoning_tokens >= ask.reasoning_max);
                answer = strstr(outcome.text, " Enough of that.");
                assert_non_null(answer);
                answer += strlen(" Enough of that.");
                answer += strspn(answer, "\n");
                assert_true(!strcmp(answer, "true") || !strcmp(answer, "false"));
                /* The first part is reasoning, the last one is text. */
                assert_int_equal(outcome.shown[0], 'A' + SMV_PART_REASONING);
                assert_int_equal(outcome.shown[outcome.shown_bytes - 1], 'A' + SMV_PART_TEXT);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* It takes the text worker a while. */
static char *slow_constraint(uint32_t number)
{
        char *text = malloc(200000);
        size_t n = (size_t)sprintf(text, "{\"schema\":{\"anyOf\":[");

        for (int i = 0; i < 400; i++)
                n += (size_t)sprintf(text + n,
                                     "%s{\"type\":\"object\",\"properties\":{\"k%d\":{},\"x\":"
                                     "{\"const\":%u%d}},\"required\":[\"x\"]}",
                                     i ? "," : "", i, number, i);
        sprintf(text + n, "]}}");
        return text;
}

/* A generate on a handle, whose constraint is still being compiled when the handle goes. */
static uint64_t begin_on_handle(struct raw_client *client, uint32_t number)
{
        static const uint32_t ids[] = { 72, 73 };
        char *constraint = slow_constraint(number);
        const struct reply *reply;
        uint64_t handle;

        raw_client_send_frame(client, "op=s id=u tokens=I", "open", 2, ids, (size_t)2);
        reply = raw_client_await_reply(client, 2);
        assert_true(reply->ok);
        handle = reply_uint(reply, "handle");
        raw_client_send_frame(client, "op=s id=u handle=q max_tokens=u constraint=s", "generate", 3,
                              handle, 20, constraint);
        free(constraint);
        return handle;
}

static void a_handle_that_closes_while_a_constraint_is_compiled_ends_the_stream(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint64_t handle;

        start_teaspoon(fixture);
        for (uint32_t i = 0; i < 6; i++) {
                client = raw_client_greet_over(fixture, RAW_CLIENT_KICK);
                handle = begin_on_handle(client, i);
                raw_client_send_frame(client, "op=s id=u handle=q", "close", 4, handle);
                assert_true(raw_client_await_reply(client, 4)->ok);
                raw_client_await_reply(client, 3);
                raw_client_send_frame(client, "op=s id=u", "status", 5);
                assert_true(raw_client_await_reply(client, 5)->ok);
                raw_client_close(client);
        }
        for (uint32_t i = 0; i < 6; i++) {
                client = raw_client_greet_over(fixture, RAW_CLIENT_KICK);
                begin_on_handle(client, 10 + i);
                raw_client_close(client);
        }
        raw_client_close(raw_client_greet_over(fixture, RAW_CLIENT_KICK));
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_whole_answer_ends_before_its_least_tokens),
                DAEMON_TEST(a_model_that_only_wants_blanks_still_ends),
                DAEMON_TEST(a_stop_string_ends_a_constrained_answer),
                DAEMON_TEST(an_answer_behind_reasoning_obeys_its_schema),
                DAEMON_TEST(a_handle_that_closes_while_a_constraint_is_compiled_ends_the_stream),
                DAEMON_TEST(bans_that_leave_nothing_end_the_answer),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
