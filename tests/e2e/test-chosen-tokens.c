/*
 * Clients that choose the tokens of their streams: a stream goes on from what was chosen, and ends
 * as if the model had drawn it.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"

#define TOKENS 60u

static const uint32_t end_tokens[] = { TOY_EOS };

static struct smv_generate plain(uint64_t seed)
{
        return (struct smv_generate){
                SMV_SIZE(smv_generate), .prompt = "Tea with",
                .max_tokens = TOKENS,   .temperature = 1,
                .seed = seed,           .set = SMV_SET_SEED | SMV_SET_TEMPERATURE
        };
}

/* Takes one of the entries of the row, at random, and keeps its log-probability. */
static float chosen_logprobs[TOKENS];

static void answer_any_entry(struct smv_client *client, struct asked *asked,
                             const struct smv_event *event)
{
        const struct smv_row *row = event->row;
        const struct smv_logprob *chosen;

        assert_non_null(row);
        do
                chosen = &row->entries[random_below(1 + (uint32_t)row->top_count)];
        while (chosen->token == TOY_EOS);
        chosen_logprobs[event->position - asked->first] = chosen->logprob;
        assert_int_equal(smv_answer_token(client, asked->stream, chosen->token), 0);
}

/* The log-probabilities of the tokens of a prompt, without an answer. */
static void score(struct smv_client *client, const uint32_t *tokens, size_t count, float *scores)
{
        const struct smv_generate how = { SMV_SIZE(smv_generate), .tokens = tokens,
                                          .token_count = count, .temperature = 1,
                                          .set = SMV_SET_TEMPERATURE | SMV_SET_MAX_TOKENS |
                                                 SMV_SET_PROMPT_LOGPROBS };
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream;

        assert_int_equal(smv_generate(client, &how, &stream), 0);
        while (smv_next(client, &event, TIMEOUT_MS) == 1 && event.kind != SMV_EVENT_END) {
                assert_int_equal(event.kind, SMV_EVENT_PROMPT_LOGPROBS);
                for (size_t i = 0; i < event.token_count; i++)
                        scores[event.position + i] = event.logprobs[i].logprob;
        }
        assert_int_equal(event.kind, SMV_EVENT_END);
        assert_int_equal(event.reason, SMV_END_LENGTH);
}

/* A fresh request whose prompt is all of these tokens computes the same rows. */
static void a_stream_goes_on_from_the_tokens_that_were_chosen(void **state)
{
        struct asked asked = { .answer = answer_any_entry };
        uint32_t tokens[8 + TOKENS] = { 'T', 'e', 'a', ' ', 'w', 'i', 't', 'h' };
        float scores[8 + TOKENS];
        struct question_rig rig = question_rig_start(state);

        for (uint64_t seed = 0; seed < 5; seed++) {
                struct smv_generate how = plain(seed);

                how.prompt = NULL;
                how.tokens = tokens;
                how.token_count = 8;
                how.ask = SMV_ASK_TOKEN;
                how.row_top = 50;
                asked_run(rig.client, &how, &asked);
                assert_int_equal(asked.token_count, TOKENS);
                assert_int_equal(asked.first, 8);
                memcpy(tokens + 8, asked.tokens, TOKENS * sizeof(*tokens));
                score(rig.client, tokens, 8 + TOKENS, scores);
                assert_memory_equal(scores + 8, chosen_logprobs, sizeof(chosen_logprobs));
        }
        asked_free(&asked);
        question_rig_stop(&rig);
}

static void a_chosen_end_token_ends_the_stream(void **state)
{
        static const uint32_t list[] = { 'o', 'n', 'e', TOY_EOS, 'b', 'y', 'e' };
        struct asked asked = { .answer = answer_list, .arg = list };
        struct smv_generate how = plain(1);
        struct question_rig rig = question_rig_start(state);

        how.ask = SMV_ASK_TOKEN;
        how.max_tokens = 7;
        asked_run(rig.client, &how, &asked);
        assert_int_equal(asked.end.reason, SMV_END_EOS);
        assert_int_equal(asked.token_count, 4);
        assert_string_equal(asked.text, "one");
        how.ignore_eos = 1;
        asked_run(rig.client, &how, &asked);
        assert_int_equal(asked.end.reason, SMV_END_LENGTH);
        assert_int_equal(asked.token_count, 7);
        assert_memory_equal(asked.tokens, list, sizeof(list));
        how.stop_tokens = end_tokens;
        how.stop_token_count = 1;
        asked_run(rig.client, &how, &asked);
        assert_int_equal(asked.end.reason, SMV_END_STOP);
        assert_int_equal(asked.end.stopped_by, SMV_STOPPED_BY_TOKEN);
        assert_int_equal(asked.token_count, 4);
        asked_free(&asked);
        question_rig_stop(&rig);
}

static void a_stop_string_of_chosen_tokens_ends_the_stream(void **state)
{
        static const uint32_t list[] = { 'a', ' ', 's', 't', 's', 't', 'o', 'p', '!', '!' };
        static const char *const stops[] = { "never", "stop" };
        struct asked asked = { .answer = answer_list, .arg = list };
        struct smv_generate how = plain(1);
        struct question_rig rig = question_rig_start(state);

        how.ask = SMV_ASK_TOKEN;
        how.stops = stops;
        how.stop_count = 2;
        how.max_tokens = 10;
        asked_run(rig.client, &how, &asked);
        assert_int_equal(asked.end.reason, SMV_END_STOP);
        assert_int_equal(asked.end.stopped_by, SMV_STOPPED_BY_STRING);
        assert_int_equal(asked.end.stop_index, 1);
        assert_int_equal(asked.token_count, 8);
        assert_string_equal(asked.text, "a st");
        asked_free(&asked);
        question_rig_stop(&rig);
}

/* They bind the daemon's own draws only. */
static void a_client_may_choose_tokens_that_the_lists_forbid(void **state)
{
        static const uint32_t list[] = { 'x', 0x00, TOY_BOS, TOY_EOS, 'x' };
        static const uint32_t allowed[] = { 'a', 'e' }, banned[] = { 'x', TOY_BOS };
        static const char *const texts[] = { "x" };
        struct asked asked = { .answer = answer_list, .arg = list };
        struct smv_generate how = plain(1);
        struct question_rig rig = question_rig_start(state);

        how.ask = SMV_ASK_TOKEN;
        how.allowed_tokens = allowed;
        how.allowed_token_count = 2;
        how.banned_tokens = banned;
        how.banned_token_count = 2;
        how.banned_texts = texts;
        how.banned_text_count = 1;
        how.min_tokens = 10;
        how.max_tokens = 5;
        how.ignore_eos = 1;
        asked_run(rig.client, &how, &asked);
        assert_int_equal(asked.end.reason, SMV_END_LENGTH);
        assert_int_equal(asked.token_count, 5);
        assert_memory_equal(asked.tokens, list, sizeof(list));
        asked_free(&asked);
        question_rig_stop(&rig);
}

/* Some bytes of characters that are not whole, and some that are no text. */
static void the_text_is_that_of_the_chosen_tokens(void **state)
{
        static const uint32_t list[] = { 0xc3, 0xa9, 't', 0xe2, 0x82, 0xac, '!' };
        struct asked asked = { .answer = answer_list, .arg = list };
        struct smv_generate how = plain(1);
        struct question_rig rig = question_rig_start(state);

        how.ask = SMV_ASK_TOKEN;
        how.max_tokens = 7;
        asked_run(rig.client, &how, &asked);
        assert_string_equal(asked.text, "\xc3\xa9t\xe2\x82\xac!");
        asked_free(&asked);
        question_rig_stop(&rig);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_stream_goes_on_from_the_tokens_that_were_chosen),
                DAEMON_TEST(a_chosen_end_token_ends_the_stream),
                DAEMON_TEST(a_stop_string_of_chosen_tokens_ends_the_stream),
                DAEMON_TEST(a_client_may_choose_tokens_that_the_lists_forbid),
                DAEMON_TEST(the_text_is_that_of_the_chosen_tokens),
        };

        require_env_paths(needed);
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
