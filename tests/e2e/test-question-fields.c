/*
 * Questions beside other fields of a request: parts, handles, scores of the prompt, deadlines; and
 * questions of streams that wait for a slot.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"
#include "tests/e2e/told.h"

#define TOKENS 30u

#define PROMPT 9u /* tokens of "Tea with" */

static struct smv_generate asking(enum smv_ask ask)
{
        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .prompt = "Tea with",
                                      .max_tokens = TOKENS,
                                      .temperature = 1,
                                      .seed = 3,
                                      .ignore_eos = 1,
                                      .set = SMV_SET_SEED | SMV_SET_TEMPERATURE,
                                      .ask = ask,
                                      .ask_ms = ask ? 600000 : 0 };
}

/* ---- parts ---- */

#define CALL_TEXT                                                                                  \
        "Well.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"place\": \"Rome\"}}\n"      \
        "</tool_call>"

/* [{type: function, function: {name: weather, parameters: {type: object}}}] in msgpack */
static const char tools[] = "\x91\x82\xa4type\xa8"
                            "function\xa8"
                            "function\x82\xa4name\xa7weather\xaaparameters\x81\xa4type\xa6object";

/* Makes the model write these tokens, by choosing them or by masks of one bit. */
static void spell(struct smv_client *client, const struct smv_event *event, uint32_t stream,
                  uint32_t token)
{
        uint32_t mask[MASK_WORDS_MOST] = { 0 };

        mask_set(mask, token);
        if (event->ask == SMV_ASK_TOKEN)
                assert_int_equal(smv_answer_token(client, stream, token), 0);
        else
                assert_int_equal(
                        smv_answer_mask(client, stream, mask, mask_words(question_vocab(client))),
                        0);
}

static void check_spelled(struct smv_client *client, struct smv_generate how,
                          const uint32_t *tokens, size_t count, const char *parts)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct told told = { 0 };
        uint32_t stream;

        how.parts = 1;
        how.max_tokens = (uint32_t)count + 5;
        assert_int_equal(smv_generate(client, &how, &stream), 0);
        while (!told.end.kind) {
                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                if (event.kind == SMV_EVENT_ASK)
                        spell(client, &event, stream, tokens[told.token_count]);
                else
                        tell(&told, &event);
        }
        assert_int_equal(told.end.reason, SMV_END_EOS);
        assert_int_equal(told.token_count, count);
        assert_memory_equal(told.tokens, tokens, count * sizeof(*tokens));
        assert_string_equal(told.rig.shown, parts);
        assert_int_equal(told.end.calls, 1);
        free_told(&told);
}

/* A call that the client writes is a call as the model would have written it. */
static void parts_divide_the_text_of_chosen_tokens(void **state)
{
        static const struct smv_message message = { "user", "Is it warm in Rome?", 0 };
        struct smv_model about = { SMV_SIZE(smv_model) };
        struct daemon_fixture *fixture = *state;
        const uint32_t *ids;
        uint32_t tokens[400];
        struct smv_client *client;
        char model[256];
        size_t count;

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", model, "--threads", "1", "--constraints-kept", "0");
        client = question_connect(fixture, 1, false);
        assert_int_equal(smv_model(client, 0, &about), 0);
        assert_int_equal(smv_tokenize(client, NULL, CALL_TEXT, 0, &ids, &count), 0);
        assert_in_range(count, 1, 398);
        memcpy(tokens, ids, count * sizeof(*ids));
        tokens[count++] = about.end_tokens[0];
        for (size_t i = 0; i < 2; i++) {
                struct smv_generate how = asking(question_kinds[i]);

                how.prompt = NULL;
                how.messages = &message;
                how.message_count = 1;
                how.packed_tools = (struct smv_packed){ tools, sizeof(tools) - 1 };
                how.ignore_eos = 0;
                check_spelled(client, how, tokens, count,
                              "T\"Well.\"C0\"weather\"A0\"{\"place\": \"Rome\"}\"E0");
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- handles ---- */

static void the_history_of_a_handle_has_the_chosen_tokens(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked first = { 0 }, next = { 0 }, alone = { 0 };
                const struct smv_generate start = { SMV_SIZE(smv_generate), .prompt = "Tea with" };
                struct smv_generate how = asking(question_kinds[i]);
                uint32_t tokens[PROMPT + TOKENS] = { TOY_BOS };
                uint64_t handle;
                size_t length;

                assert_int_equal(smv_handle_open(rig.client, &start, &handle, &length), 0);
                assert_int_equal(length, PROMPT);
                how.prompt = NULL;
                how.handle = handle;
                asked_run(rig.client, &how, &first);
                assert_int_equal(first.token_count, TOKENS);
                how.seed = 4;
                asked_run(rig.client, &how, &next);
                for (uint32_t j = 1; j < PROMPT; j++)
                        tokens[j] = (uint8_t) "Tea with"[j - 1];
                memcpy(tokens + PROMPT, first.tokens, TOKENS * sizeof(*tokens));
                how = asking(SMV_ASK_NOTHING);
                how.prompt = NULL;
                how.tokens = tokens;
                how.token_count = PROMPT + TOKENS;
                how.seed = 4;
                asked_run(rig.client, &how, &alone);
                assert_same_answer(&alone, &next);
                assert_int_equal(smv_handle_close(rig.client, handle), 0);
                asked_free(&first);
                asked_free(&next);
                asked_free(&alone);
        }
        question_rig_stop(&rig);
}

/* ---- before the first token ---- */

static void scores_and_progress_of_the_prompt_come_before_the_tokens(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { 0 };
                struct smv_generate how = asking(SMV_ASK_NOTHING);

                how.prompt_logprobs = 2;
                how.progress = 1;
                asked_run(rig.client, &how, &alone);
                how.ask = question_kinds[i];
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.score_count, PROMPT - 1);
                assert_int_equal(alone.score_count, PROMPT - 1);
                asked_free(&alone);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

/* No token follows, so there is nothing to ask for. */
static void a_stream_without_tokens_cannot_ask(void **state)
{
        struct question_rig rig = question_rig_start(state);
        uint32_t stream;

        for (size_t i = 0; i < 2; i++) {
                struct smv_generate how = asking(question_kinds[i]);

                how.max_tokens = 0;
                how.set |= SMV_SET_MAX_TOKENS | SMV_SET_PROMPT_LOGPROBS;
                assert_refused(rig.client, smv_generate(rig.client, &how, &stream), SMV_BAD_FIELD,
                               "ask");
        }
        question_rig_stop(&rig);
}

static void a_deadline_ends_a_stream_with_an_open_question(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 4; i++) {
                struct asked asked = { .answer = answer_nothing };
                struct smv_generate how = asking(question_kinds[i % 2]);

                how.deadline_ms = 500;
                how.late_draws = i >= 2;
                asked_run(rig.client, &how, &asked);
                assert_int_equal(asked.end.reason, SMV_END_ERROR);
                assert_int_equal(asked.end.code, SMV_TIMEOUT);
                assert_int_equal(asked.token_count, 0);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

/* ---- waiting for a slot ---- */

/* A stream that has the only slot of the scheduler; it is not read, so it cannot end. */
static struct smv_client *take_the_slot(const struct daemon_fixture *fixture, uint32_t *ret_stream)
{
        struct smv_client *client = question_connect(fixture, 0, false);
        struct smv_generate how = asking(SMV_ASK_NOTHING);
        struct smv_event event = { SMV_SIZE(smv_event) };

        how.max_tokens = ENDLESS;
        assert_int_equal(smv_generate(client, &how, ret_stream), 0);
        assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
        return client;
}

static void a_mask_may_be_given_long_before_the_stream_has_a_slot(void **state)
{
        struct daemon_fixture *fixture = *state;
        uint32_t mask[MASK_WORDS_MOST] = { 0 }, stream;
        struct asked asked = { .answer = answer_fixed, .arg = mask };
        struct smv_generate how = asking(SMV_ASK_MASK);
        struct smv_client *client, *other;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--max-seqs", "1", "--stall-preempt-ms",
                             "86400000");
        client = question_connect(fixture, 1, false);
        other = take_the_slot(fixture, &stream);
        mask_set(mask, 'x');
        /* The time is that of an answer, and not that of the stream. */
        how.ask_ms = 3000;
        how.late_draws = 1;
        asked_begin(client, &how, &asked);
        assert_non_null(asked_hear_one(client, &asked, 1, TIMEOUT_MS));
        assert_int_equal(asked.questions, 1);
        assert_null(asked_hear_one(client, &asked, 1, 3500));
        smv_close(other);
        asked_hear(client, &asked, 1);
        assert_int_equal(asked.end.reason, SMV_END_LENGTH);
        for (uint32_t i = 0; i < TOKENS && !asked.end.late; i++)
                assert_int_equal(asked.tokens[i], 'x');
        asked_free(&asked);
        smv_close(client);
        fixture_stop(fixture);
}

static void a_stream_that_waits_for_a_slot_ends_without_its_first_mask(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct asked asked = { .answer = answer_nothing };
        struct smv_generate how = asking(SMV_ASK_MASK);
        struct smv_client *client, *other;
        uint32_t stream;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--max-seqs", "1", "--stall-preempt-ms",
                             "86400000");
        client = question_connect(fixture, 1, false);
        other = take_the_slot(fixture, &stream);
        how.ask_ms = 1;
        asked_run(client, &how, &asked);
        assert_int_equal(asked.end.code, SMV_NO_ANSWER);
        asked_free(&asked);
        smv_close(client);
        smv_close(other);
        fixture_stop(fixture);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", "SOURCES",
                                              NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(parts_divide_the_text_of_chosen_tokens),
                DAEMON_TEST(the_history_of_a_handle_has_the_chosen_tokens),
                DAEMON_TEST(scores_and_progress_of_the_prompt_come_before_the_tokens),
                DAEMON_TEST(a_stream_without_tokens_cannot_ask),
                DAEMON_TEST(a_deadline_ends_a_stream_with_an_open_question),
                DAEMON_TEST(a_mask_may_be_given_long_before_the_stream_has_a_slot),
                DAEMON_TEST(a_stream_that_waits_for_a_slot_ends_without_its_first_mask),
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
