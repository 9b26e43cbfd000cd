/*
 * Clients that take part in the draws of their streams.  An answer that leaves the daemon its
 * choice changes nothing, and any other answer has the effect that the same rule has in a request
 * that asks nothing.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"

#define TOKENS 60u

/* The toy model's ids are the bytes; then come these. */
#define TOY_BOS   256u
#define TOY_EOS   257u
#define TOY_VOCAB 258u

static const uint32_t end_tokens[] = { TOY_EOS };

static struct smv_generate plain(uint64_t seed)
{
        return (struct smv_generate){
                SMV_SIZE(smv_generate), .prompt = "Tea with",
                .max_tokens = TOKENS,   .temperature = 1,
                .seed = seed,           .set = SMV_SET_SEED | SMV_SET_TEMPERATURE
        };
}

/* The same request in variants: greedy, free draws, cuts, penalties, all of them, a stop. */
#define VARIANTS 8u
static struct smv_generate variant(uint32_t number)
{
        static const struct smv_bias biases[] = { { 'a', 2 }, { 'e', -3 }, { TOY_EOS, 1 } };
        static const char *const stops[] = { "o s", "ta" };
        struct smv_generate how = plain(number);

        switch (number) {
        case 0:
                how.temperature = 0;
                break;
        case 2:
                how.top_k = 3;
                how.top_p = 0.9f;
                break;
        case 3:
                how.repetition_penalty = 1.3f;
                how.presence_penalty = 0.5f;
                break;
        case 4:
                how.dry_multiplier = 0.8f;
                how.biases = biases;
                how.bias_count = 3;
                how.min_p = 0.02f;
                break;
        case 5:
                how.stops = stops;
                how.stop_count = 2;
                how.max_tokens = 400;
                break;
        case 6:
                how.no_repeat_ngram = 2;
                how.ignore_eos = 1;
                break;
        case 7:
                how.temperature = 1.5f;
                how.xtc_chance = 0.5f;
                how.typical = 0.9f;
                how.min_tokens = 20;
                how.max_tokens = 400;
                break;
        default:
                break;
        }
        return how;
}

struct rig {
        struct daemon_fixture *fixture;
        struct smv_client *client;
};

static struct rig rig_start(void **state)
{
        struct rig rig = { .fixture = *state };

        START_DAEMON(rig.fixture, "--threads", "1");
        rig.client = question_connect(rig.fixture, 1, false);
        return rig;
}

static void rig_stop(struct rig *rig)
{
        smv_close(rig->client);
        fixture_stop(rig->fixture);
}

/* The answer of the same request that asks nothing. */
static struct asked alone(struct smv_client *client, struct smv_generate how)
{
        struct asked asked = { 0 };

        how.ask = SMV_ASK_NOTHING;
        asked_run(client, &how, &asked);
        return asked;
}

/* Runs both requests, of which the second one asks, and compares. */
static void compare(struct smv_client *client, const struct smv_generate *free_one,
                    const struct smv_generate *asking, answer_fn *answer, const void *arg)
{
        struct asked expected = alone(client, *free_one), asked = { .answer = answer, .arg = arg };

        asked_run(client, asking, &asked);
        assert_same_answer(&expected, &asked);
        assert_int_equal(asked.questions, asked.token_count + (asked.end.code == SMV_NO_TOKEN));
        assert_int_equal(asked.end.late, 0);
        asked_free(&expected);
        asked_free(&asked);
}

/* ---- masks ---- */

static void a_mask_of_all_tokens_changes_nothing(void **state)
{
        struct rig rig = rig_start(state);

        for (uint32_t i = 0; i < VARIANTS; i++) {
                struct smv_generate how = variant(i), asking = how;

                asking.ask = SMV_ASK_MASK;
                compare(rig.client, &how, &asking, answer_all_tokens, NULL);
                compare(rig.client, &how, &asking, NULL, NULL);
        }
        rig_stop(&rig);
}

/* Each of n streams is the same as the stream of its index that asks. */
static void each_of_several_answers_is_the_same_with_masks_of_all_tokens(void **state)
{
        struct rig rig = rig_start(state);
        struct smv_generate how = plain(3);
        struct asked several[4] = { { 0 } }, asked = { .answer = answer_all_tokens };

        how.n = 4;
        asked_begin(rig.client, &how, &several[0]);
        for (uint32_t i = 1; i < 4; i++) {
                several[i] = several[0];
                several[i].stream += i;
        }
        asked_hear(rig.client, several, 4);
        how.n = 0;
        how.ask = SMV_ASK_MASK;
        for (how.sample_index = 0; how.sample_index < 4; how.sample_index++) {
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&several[how.sample_index], &asked);
                asked_free(&several[how.sample_index]);
        }
        asked_free(&asked);
        rig_stop(&rig);
}

static void a_fixed_mask_is_a_list_of_allowed_tokens(void **state)
{
        static const uint32_t allowed[] = { 'a', 'e', 'i', ' ', 'n', 't', 's', '.', TOY_EOS };
        uint32_t mask[MASK_WORDS_MOST] = { 0 };
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
                mask_set(mask, allowed[i]);
        for (uint32_t i = 0; i < VARIANTS; i++) {
                struct smv_generate how = variant(i), asking = how;

                asking.ask = SMV_ASK_MASK;
                how.allowed_tokens = allowed;
                how.allowed_token_count = sizeof(allowed) / sizeof(*allowed);
                compare(rig.client, &how, &asking, answer_fixed, mask);
        }
        rig_stop(&rig);
}

static void a_mask_narrows_the_lists_of_the_request(void **state)
{
        static const uint32_t allowed[] = { 'a', 'e', 'n', 't' }, both[] = { 'n', 't' };
        static const uint32_t banned[] = { 'e' };
        uint32_t mask[MASK_WORDS_MOST] = { 0 };
        struct smv_generate how = plain(5), asking = how;
        struct rig rig = rig_start(state);

        mask_set(mask, 'n');
        mask_set(mask, 't');
        mask_set(mask, 'e');
        asking.ask = SMV_ASK_MASK;
        asking.allowed_tokens = allowed;
        asking.allowed_token_count = 4;
        asking.banned_tokens = banned;
        asking.banned_token_count = 1;
        how.allowed_tokens = both;
        how.allowed_token_count = 2;
        compare(rig.client, &how, &asking, answer_fixed, mask);
        rig_stop(&rig);
}

/* Spells `arg`, over and over, with a mask of one token for each place. */
static void answer_spelling(struct smv_client *client, struct asked *asked,
                            const struct smv_event *event)
{
        const char *text = asked->arg;
        uint32_t mask[MASK_WORDS_MOST] = { 0 };

        mask_set(mask, (uint8_t)text[(event->position - asked->first) % strlen(text)]);
        assert_int_equal(
                smv_answer_mask(client, asked->stream, mask, mask_words(question_vocab(client))),
                0);
}

static void a_mask_of_one_token_draws_this_token(void **state)
{
        struct asked asked = { .answer = answer_spelling, .arg = "the red kettle! " };
        struct rig rig = rig_start(state);

        for (uint32_t i = 0; i < 5; i++) {
                struct smv_generate how = variant(i);

                how.ask = SMV_ASK_MASK;
                asked_run(rig.client, &how, &asked);
                assert_int_equal(asked.end.reason, SMV_END_LENGTH);
                assert_int_equal(asked.text_bytes, TOKENS);
                for (uint32_t j = 0; j < TOKENS; j++)
                        assert_int_equal(asked.text[j], "the red kettle! "[j % 16]);
        }
        asked_free(&asked);
        rig_stop(&rig);
}

/* Vowels at even places, and all other tokens at odd ones. */
static bool is_legal(uint32_t position, uint32_t token)
{
        bool vowel = token < 128 && strchr("aeiou", (int)token) && token;

        return vowel == (position % 2 == 0);
}

static void answer_by_place(struct smv_client *client, struct asked *asked,
                            const struct smv_event *event)
{
        uint32_t mask[MASK_WORDS_MOST] = { 0 };

        for (uint32_t i = 0; i < TOY_VOCAB; i++)
                if (is_legal(event->position, i))
                        mask_set(mask, i);
        assert_int_equal(smv_answer_mask(client, asked->stream, mask, mask_words(TOY_VOCAB)), 0);
}

static void each_place_has_its_own_mask(void **state)
{
        struct asked asked = { .answer = answer_by_place };
        struct rig rig = rig_start(state);

        for (uint64_t seed = 0; seed < 10; seed++) {
                struct smv_generate how = plain(seed);

                how.ask = SMV_ASK_MASK;
                asked_run(rig.client, &how, &asked);
                assert_true(asked.token_count > 0);
                for (uint32_t i = 0; i < asked.token_count; i++)
                        assert_true(is_legal(asked.first + i, asked.tokens[i]));
        }
        asked_free(&asked);
        rig_stop(&rig);
}

static void a_mask_without_a_legal_token_ends_the_stream(void **state)
{
        uint32_t mask[MASK_WORDS_MOST] = { 0 };
        struct asked asked = { .answer = answer_fixed, .arg = mask };
        struct smv_generate how = plain(1);
        struct rig rig = rig_start(state);

        how.ask = SMV_ASK_MASK;
        /* No bits; then only bits behind the vocabulary. */
        for (uint32_t i = 0; i < 2; i++) {
                asked_run(rig.client, &how, &asked);
                assert_int_equal(asked.end.reason, SMV_END_ERROR);
                assert_int_equal(asked.end.code, SMV_NO_TOKEN);
                assert_int_equal(asked.token_count, 0);
                assert_int_equal(asked.questions, 1);
                for (uint32_t bit = TOY_VOCAB; bit < mask_words(TOY_VOCAB) * 32; bit++)
                        mask_set(mask, bit);
        }
        asked_free(&asked);
        rig_stop(&rig);
}

static void an_end_token_is_drawn_only_if_its_bit_is_set(void **state)
{
        static const uint32_t full_stop[] = { '.' };
        uint32_t only_end[MASK_WORDS_MOST] = { 0 }, no_end[MASK_WORDS_MOST];
        uint32_t only_stop[MASK_WORDS_MOST] = { 0 };
        struct asked asked = { .answer = answer_fixed, .arg = only_end };
        struct smv_generate how = plain(1);
        struct rig rig = rig_start(state);

        mask_set(only_end, TOY_EOS);
        mask_set(only_stop, '.');
        memset(no_end, 0xff, sizeof(no_end));
        no_end[TOY_EOS / 32] &= ~(1u << TOY_EOS % 32);
        how.ask = SMV_ASK_MASK;
        asked_run(rig.client, &how, &asked);
        assert_int_equal(asked.end.reason, SMV_END_EOS);
        assert_int_equal(asked.token_count, 1);
        asked.arg = no_end;
        how.max_tokens = 1000;
        asked_run(rig.client, &how, &asked);
        assert_int_equal(asked.end.reason, SMV_END_LENGTH);
        asked.arg = only_stop;
        how.stop_tokens = full_stop;
        how.stop_token_count = 1;
        asked_run(rig.client, &how, &asked);
        assert_int_equal(asked.end.reason, SMV_END_STOP);
        assert_int_equal(asked.end.stopped_by, SMV_STOPPED_BY_TOKEN);
        assert_int_equal(asked.token_count, 1);
        asked_free(&asked);
        rig_stop(&rig);
}

/* ---- tokens ---- */

static void a_token_as_drawn_changes_nothing(void **state)
{
        struct rig rig = rig_start(state);

        for (uint32_t i = 0; i < VARIANTS; i++) {
                struct smv_generate how = variant(i), asking = how;

                asking.ask = SMV_ASK_TOKEN;
                compare(rig.client, &how, &asking, NULL, NULL);
        }
        rig_stop(&rig);
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
        struct rig rig = rig_start(state);

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
        rig_stop(&rig);
}

/* Chooses the tokens that `arg` points at, up to TOY_EOS, and repeats the last one. */
static void answer_list(struct smv_client *client, struct asked *asked,
                        const struct smv_event *event)
{
        const uint32_t *list = asked->arg;

        (void)event;
        assert_int_equal(smv_answer_token(client, asked->stream, list[asked->token_count]), 0);
}

static void a_chosen_end_token_ends_the_stream(void **state)
{
        static const uint32_t list[] = { 'o', 'n', 'e', TOY_EOS, 'b', 'y', 'e' };
        struct asked asked = { .answer = answer_list, .arg = list };
        struct smv_generate how = plain(1);
        struct rig rig = rig_start(state);

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
        rig_stop(&rig);
}

static void a_stop_string_of_chosen_tokens_ends_the_stream(void **state)
{
        static const uint32_t list[] = { 'a', ' ', 's', 't', 's', 't', 'o', 'p', '!', '!' };
        static const char *const stops[] = { "never", "stop" };
        struct asked asked = { .answer = answer_list, .arg = list };
        struct smv_generate how = plain(1);
        struct rig rig = rig_start(state);

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
        rig_stop(&rig);
}

/* They bind the daemon's own draws only. */
static void a_client_may_choose_tokens_that_the_lists_forbid(void **state)
{
        static const uint32_t list[] = { 'x', 0x00, TOY_BOS, TOY_EOS, 'x' };
        static const uint32_t allowed[] = { 'a', 'e' }, banned[] = { 'x', TOY_BOS };
        static const char *const texts[] = { "x" };
        struct asked asked = { .answer = answer_list, .arg = list };
        struct smv_generate how = plain(1);
        struct rig rig = rig_start(state);

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
        rig_stop(&rig);
}

/* Some bytes of characters that are not whole, and some that are no text. */
static void the_text_is_that_of_the_chosen_tokens(void **state)
{
        static const uint32_t list[] = { 0xc3, 0xa9, 't', 0xe2, 0x82, 0xac, '!' };
        struct asked asked = { .answer = answer_list, .arg = list };
        struct smv_generate how = plain(1);
        struct rig rig = rig_start(state);

        how.ask = SMV_ASK_TOKEN;
        how.max_tokens = 7;
        asked_run(rig.client, &how, &asked);
        assert_string_equal(asked.text, "\xc3\xa9t\xe2\x82\xac!");
        asked_free(&asked);
        rig_stop(&rig);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_mask_of_all_tokens_changes_nothing),
                DAEMON_TEST(each_of_several_answers_is_the_same_with_masks_of_all_tokens),
                DAEMON_TEST(a_fixed_mask_is_a_list_of_allowed_tokens),
                DAEMON_TEST(a_mask_narrows_the_lists_of_the_request),
                DAEMON_TEST(a_mask_of_one_token_draws_this_token),
                DAEMON_TEST(each_place_has_its_own_mask),
                DAEMON_TEST(a_mask_without_a_legal_token_ends_the_stream),
                DAEMON_TEST(an_end_token_is_drawn_only_if_its_bit_is_set),
                DAEMON_TEST(a_token_as_drawn_changes_nothing),
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
