/*
 * Answers that are not legal, and answers beside a constraint, which holds whatever they say.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"

#define TOKENS 40u

#define YES_OR_NO "{\"choices\":[\"yes\",\"no\"]}"

static struct smv_generate plain(uint64_t seed)
{
        return (struct smv_generate){ SMV_SIZE(smv_generate),
                                      .prompt = "Tea with",
                                      .max_tokens = TOKENS,
                                      .temperature = 1,
                                      .seed = seed,
                                      .ignore_eos = 1,
                                      .set = SMV_SET_SEED | SMV_SET_TEMPERATURE };
}

static struct smv_generate bound(const char *constraint, enum smv_ask ask)
{
        struct smv_generate how = plain(3);

        how.ignore_eos = 0;
        how.constraint = constraint;
        how.ask = ask;
        how.ask_ms = 600000;
        return how;
}

static void assert_ended(const struct asked *asked, enum smv_code code, uint32_t tokens)
{
        assert_int_equal(asked->end.reason, SMV_END_ERROR);
        assert_int_equal(asked->end.code, code);
        assert_int_equal(asked->token_count, tokens);
}

/* ---- tokens that are not legal ---- */

static void a_token_that_does_not_exist_is_a_bad_answer(void **state)
{
        static const uint32_t bad[] = { TOY_VOCAB,  TOY_VOCAB + 1, 1u << 16,
                                        0x7fffffff, 0x80000000,    0xfffffffe };
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                const uint32_t list[] = { 'a', SMV_TOKEN_AS_DRAWN, bad[i] };
                struct asked asked = { .answer = answer_list, .arg = list };
                struct smv_generate how = plain(1);

                how.ask = SMV_ASK_TOKEN;
                how.row_top = 5;
                asked_run(rig.client, &how, &asked);
                assert_ended(&asked, SMV_BAD_ANSWER, 2);
                assert_int_equal(asked.tokens[0], 'a');
                assert_int_equal(asked.questions, 3);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

static void a_token_that_the_constraint_forbids_is_a_bad_answer(void **state)
{
        static const struct {
                uint32_t list[5], taken;
                enum smv_code code;
        } cases[] = {
                { { 'x' }, 0, SMV_BAD_ANSWER },
                { { TOY_EOS }, 0, SMV_BAD_ANSWER },
                { { 'y', 'e', 'a' }, 2, SMV_BAD_ANSWER },
                { { 'n', 'o', 'o' }, 2, SMV_BAD_ANSWER },
                { { 'y', 'e', 's', TOY_EOS }, 4, SMV_OK },
                { { 'n', 'o', SMV_TOKEN_AS_DRAWN }, 3, SMV_OK },
        };
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct asked asked = { .answer = answer_list, .arg = cases[i].list };
                const struct smv_generate how = bound(YES_OR_NO, SMV_ASK_TOKEN);

                asked_run(rig.client, &how, &asked);
                if (cases[i].code)
                        assert_ended(&asked, cases[i].code, cases[i].taken);
                assert_int_equal(asked.end.reason, cases[i].code ? SMV_END_ERROR : SMV_END_EOS);
                assert_int_equal(asked.token_count, cases[i].taken);
                assert_int_equal(asked.end.code, cases[i].code);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

/* ---- beside a constraint ---- */

static const char *const constraints[] = {
        YES_OR_NO,
        "{\"regex\":\"[a-f]{3,9}( [0-9]{2}){2,5}\"}",
        "{\"json\":true}",
        "{\"schema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},"
        "\"required\":[\"n\"],\"additionalProperties\":false}}",
};

static void an_answer_that_leaves_the_choice_changes_nothing_beside_a_constraint(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < sizeof(constraints) / sizeof(*constraints); i++) {
                struct asked alone = { 0 }, asked = { 0 };
                struct smv_generate how = bound(constraints[i], SMV_ASK_NOTHING);

                how.ask_ms = 0;
                asked_run(rig.client, &how, &alone);
                how = bound(constraints[i], SMV_ASK_TOKEN);
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                how.ask = SMV_ASK_MASK;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                asked.answer = answer_all_tokens;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                asked_free(&alone);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

/* A narrower constraint allows the same tokens as the mask and the constraint together. */
static void a_mask_and_a_constraint_both_hold(void **state)
{
        uint32_t mask[MASK_WORDS_MOST];
        struct asked narrow = { 0 }, asked = { .answer = answer_fixed, .arg = mask };
        struct smv_generate how;
        struct question_rig rig = question_rig_start(state);

        memset(mask, 0xff, sizeof(mask));
        mask['b' / 32] &= ~(1u << 'b' % 32);
        mask['d' / 32] &= ~(1u << 'd' % 32);
        mask['1' / 32] &= ~(1u << '1' % 32);
        for (uint64_t seed = 0; seed < 10; seed++) {
                how = bound("{\"regex\":\"[acef]{3,9}( [02-9]{2}){2,5}\"}", SMV_ASK_NOTHING);
                how.ask_ms = 0;
                how.seed = seed;
                asked_run(rig.client, &how, &narrow);
                how = bound("{\"regex\":\"[a-f]{3,9}( [0-9]{2}){2,5}\"}", SMV_ASK_MASK);
                how.seed = seed;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&narrow, &asked);
                assert_int_equal(asked.end.reason, SMV_END_EOS);
        }
        asked_free(&narrow);
        asked_free(&asked);
        question_rig_stop(&rig);
}

/* After two letters only "!" may come, which the mask forbids. */
static void a_mask_that_leaves_nothing_of_a_constraint_ends_the_stream(void **state)
{
        static const struct {
                const char *constraint;
                char forbidden;
                uint32_t taken;
        } cases[] = {
                { "{\"choices\":[\"ab!c\"]}", '!', 2 },
                { "{\"choices\":[\"ab!c\"]}", 'a', 0 },
                { "{\"regex\":\"[x-z]{5}\\\\?\"}", '?', 5 },
        };
        uint32_t mask[MASK_WORDS_MOST];
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                const struct smv_generate how = bound(cases[i].constraint, SMV_ASK_MASK);
                struct asked asked = { .answer = answer_fixed, .arg = mask };

                memset(mask, 0xff, sizeof(mask));
                mask[cases[i].forbidden / 32] &= ~(1u << cases[i].forbidden % 32);
                asked_run(rig.client, &how, &asked);
                assert_ended(&asked, SMV_NO_TOKEN, cases[i].taken);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

/* Only the end may follow: without its bit there is no token. */
static void the_end_of_a_constrained_answer_needs_its_bit(void **state)
{
        const struct smv_generate how = bound("{\"choices\":[\"ab\"]}", SMV_ASK_MASK);
        uint32_t mask[MASK_WORDS_MOST];
        struct asked asked = { .answer = answer_fixed, .arg = mask };
        struct question_rig rig = question_rig_start(state);

        memset(mask, 0xff, sizeof(mask));
        mask[TOY_EOS / 32] &= ~(1u << TOY_EOS % 32);
        asked_run(rig.client, &how, &asked);
        assert_ended(&asked, SMV_NO_TOKEN, 2);
        asked_free(&asked);
        question_rig_stop(&rig);
}

/* A client that is late all the time gets what the constraint alone gives. */
static void a_constraint_holds_when_the_client_is_late(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < sizeof(constraints) / sizeof(*constraints); i++) {
                for (size_t j = 0; j < 2; j++) {
                        struct asked alone = { 0 }, asked = { .answer = answer_nothing };
                        struct smv_generate how = bound(constraints[i], SMV_ASK_NOTHING);

                        how.ask_ms = 0;
                        asked_run(rig.client, &how, &alone);
                        how.ask = question_kinds[j];
                        how.ask_ms = 1;
                        how.late_draws = 1;
                        asked_run(rig.client, &how, &asked);
                        assert_same_answer(&alone, &asked);
                        assert_int_equal(asked.end.late, asked.end.asked);
                        asked_free(&alone);
                        asked_free(&asked);
                }
        }
        question_rig_stop(&rig);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_token_that_does_not_exist_is_a_bad_answer),
                DAEMON_TEST(a_token_that_the_constraint_forbids_is_a_bad_answer),
                DAEMON_TEST(an_answer_that_leaves_the_choice_changes_nothing_beside_a_constraint),
                DAEMON_TEST(a_mask_and_a_constraint_both_hold),
                DAEMON_TEST(a_mask_that_leaves_nothing_of_a_constraint_ends_the_stream),
                DAEMON_TEST(the_end_of_a_constrained_answer_needs_its_bit),
                DAEMON_TEST(a_constraint_holds_when_the_client_is_late),
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
