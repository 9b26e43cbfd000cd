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
        struct question_rig rig = question_rig_start(state);

        for (uint32_t i = 0; i < VARIANTS; i++) {
                struct smv_generate how = variant(i), asking = how;

                asking.ask = SMV_ASK_MASK;
                compare(rig.client, &how, &asking, answer_all_tokens, NULL);
                compare(rig.client, &how, &asking, NULL, NULL);
        }
        question_rig_stop(&rig);
}

/* Each of n streams is the same as the stream of its index that asks. */
static void each_of_several_answers_is_the_same_with_masks_of_all_tokens(void **state)
{
        struct question_rig rig = question_rig_start(state);
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
        question_rig_stop(&rig);
}

static void a_fixed_mask_is_a_list_of_allowed_tokens(void **state)
{
        static const uint32_t allowed[] = { 'a', 'e', 'i', ' ', 'n', 't', 's', '.', TOY_EOS };
        uint32_t mask[MASK_WORDS_MOST] = { 0 };
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++)
                mask_set(mask, allowed[i]);
        for (uint32_t i = 0; i < VARIANTS; i++) {
                struct smv_generate how = variant(i), asking = how;

                asking.ask = SMV_ASK_MASK;
                how.allowed_tokens = allowed;
                how.allowed_token_count = sizeof(allowed) / sizeof(*allowed);
                compare(rig.client, &how, &asking, answer_fixed, mask);
        }
        question_rig_stop(&rig);
}

static void a_mask_narrows_the_lists_of_the_request(void **state)
{
        static const uint32_t allowed[] = { 'a', 'e', 'n', 't' }, both[] = { 'n', 't' };
        static const uint32_t banned[] = { 'e' };
        uint32_t mask[MASK_WORDS_MOST] = { 0 };
        struct smv_generate how = plain(5), asking = how;
        struct question_rig rig = question_rig_start(state);

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
        question_rig_stop(&rig);
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
        struct question_rig rig = question_rig_start(state);

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
        question_rig_stop(&rig);
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
        struct question_rig rig = question_rig_start(state);

        for (uint64_t seed = 0; seed < 10; seed++) {
                struct smv_generate how = plain(seed);

                how.ask = SMV_ASK_MASK;
                asked_run(rig.client, &how, &asked);
                assert_true(asked.token_count > 0);
                for (uint32_t i = 0; i < asked.token_count; i++)
                        assert_true(is_legal(asked.first + i, asked.tokens[i]));
        }
        asked_free(&asked);
        question_rig_stop(&rig);
}

static void a_mask_without_a_legal_token_ends_the_stream(void **state)
{
        uint32_t mask[MASK_WORDS_MOST] = { 0 };
        struct asked asked = { .answer = answer_fixed, .arg = mask };
        struct smv_generate how = plain(1);
        struct question_rig rig = question_rig_start(state);

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
        question_rig_stop(&rig);
}

static void an_end_token_is_drawn_only_if_its_bit_is_set(void **state)
{
        static const uint32_t full_stop[] = { '.' };
        uint32_t only_end[MASK_WORDS_MOST] = { 0 }, no_end[MASK_WORDS_MOST];
        uint32_t only_stop[MASK_WORDS_MOST] = { 0 };
        struct asked asked = { .answer = answer_fixed, .arg = only_end };
        struct smv_generate how = plain(1);
        struct question_rig rig = question_rig_start(state);

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
        question_rig_stop(&rig);
}

/* ---- tokens ---- */

static void a_token_as_drawn_changes_nothing(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (uint32_t i = 0; i < VARIANTS; i++) {
                struct smv_generate how = variant(i), asking = how;

                asking.ask = SMV_ASK_TOKEN;
                compare(rig.client, &how, &asking, NULL, NULL);
        }
        question_rig_stop(&rig);
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
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
