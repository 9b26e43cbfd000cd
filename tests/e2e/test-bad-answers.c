/*
 * Questions without a good answer: the client is late, says nothing, or says something that is not
 * legal.  No test needs a client that is quick: those that may be late are always late, or it makes
 * no difference.
 */
#include <errno.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"

#define TOKENS    40u
#define TOY_EOS   257u
#define TOY_VOCAB 258u

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

struct rig {
        struct daemon_fixture *fixture;
        struct smv_client *client;
};

static struct rig rig_start(void **state)
{
        struct rig rig = { .fixture = *state };

        START_DAEMON(rig.fixture, "--threads", "1", "--constraints-kept", "0");
        rig.client = question_connect(rig.fixture, 1, true);
        return rig;
}

static void rig_stop(struct rig *rig)
{
        smv_close(rig->client);
        fixture_stop(rig->fixture);
}

static const enum smv_ask kinds[] = { SMV_ASK_MASK, SMV_ASK_TOKEN };

static void assert_ended(const struct asked *asked, enum smv_code code, uint32_t tokens)
{
        assert_int_equal(asked->end.reason, SMV_END_ERROR);
        assert_int_equal(asked->end.code, code);
        assert_int_equal(asked->token_count, tokens);
}

/* ---- late ---- */

static void a_stream_without_an_answer_ends(void **state)
{
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked asked = { .answer = answer_nothing };
                struct smv_generate how = plain(1);

                how.ask = kinds[i];
                how.ask_ms = 1;
                asked_run(rig.client, &how, &asked);
                assert_ended(&asked, SMV_NO_ANSWER, 0);
                assert_int_equal(asked.questions, 1);
                assert_int_equal(asked.end.late, 0);
                asked_free(&asked);
        }
        rig_stop(&rig);
}

/* Answers the first so many questions. */
static void answer_some(struct smv_client *client, struct asked *asked,
                        const struct smv_event *event)
{
        const uint32_t *count = asked->arg;

        if (asked->questions > *count)
                return;
        if (event->ask == SMV_ASK_MASK)
                assert_int_equal(smv_answer_mask(client, asked->stream, NULL, 0), 0);
        else
                assert_int_equal(smv_answer_token(client, asked->stream, SMV_TOKEN_AS_DRAWN), 0);
}

/* The default time is a second, which is long enough to see that it is over. */
static void a_stream_ends_at_the_first_question_without_an_answer(void **state)
{
        static const uint32_t count = 7;
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked asked = { .answer = answer_some, .arg = &count };
                struct smv_generate how = plain(1);
                uint64_t start = now_ms();

                how.ask = kinds[i];
                asked_run(rig.client, &how, &asked);
                assert_int_equal(asked.end.code, SMV_NO_ANSWER);
                if (asked.token_count == count)
                        assert_true(now_ms() - start >= SMV_ASK_MS - 1);
                assert_true(asked.token_count <= count);
                asked_free(&asked);
        }
        rig_stop(&rig);
}

static void a_late_stream_may_be_drawn_by_the_daemon(void **state)
{
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { .answer = answer_nothing };
                struct smv_generate how = plain(i);

                asked_run(rig.client, &how, &alone);
                how.ask = kinds[i];
                how.ask_ms = 1;
                how.late_draws = 1;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.end.asked, TOKENS);
                assert_int_equal(asked.end.late, TOKENS);
                asked_free(&alone);
                asked_free(&asked);
        }
        rig_stop(&rig);
}

/* Every third question is left open; the others have an answer that may be late, too. */
static void answer_two_of_three(struct smv_client *client, struct asked *asked,
                                const struct smv_event *event)
{
        if (asked->questions % 3 == 0)
                return;
        if (event->ask == SMV_ASK_MASK)
                answer_all_tokens(client, asked, event);
        else
                assert_int_equal(smv_answer_token(client, asked->stream, SMV_TOKEN_AS_DRAWN), 0);
}

static void late_and_answered_questions_may_follow_each_other(void **state)
{
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { .answer = answer_two_of_three };
                struct smv_generate how = plain(i);

                asked_run(rig.client, &how, &alone);
                how.ask = kinds[i];
                how.ask_ms = 20;
                how.late_draws = 1;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.end.asked, TOKENS);
                assert_in_range(asked.end.late, TOKENS / 3, TOKENS);
                asked_free(&alone);
                asked_free(&asked);
        }
        rig_stop(&rig);
}

/*
 * Answers a question when its token has come already, with a mask of nothing, or a token that no
 * draw gives.  It would end the stream if it were taken for the answer to the next question.
 */
static void hear_and_answer_late(struct smv_client *client, struct asked *asked)
{
        static const uint32_t nothing[MASK_WORDS_MOST];

        while (!asked->ended) {
                bool open = asked->is_open;
                int r;

                assert_non_null(asked_hear_one(client, asked, 1, TIMEOUT_MS));
                if (!open || asked->is_open || asked->ended)
                        continue;
                r = asked->ask == SMV_ASK_MASK
                            ? smv_answer_mask(client, asked->stream, nothing, mask_words(TOY_VOCAB))
                            : smv_answer_token(client, asked->stream, TOY_VOCAB);
                assert_true(r == 0 || r == -EINVAL);
        }
}

static void a_late_answer_is_not_that_to_the_next_question(void **state)
{
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { .answer = answer_nothing };
                struct smv_generate how = plain(i);

                asked_run(rig.client, &how, &alone);
                how.ask = kinds[i];
                how.ask_ms = 2;
                how.late_draws = 1;
                asked_begin(rig.client, &how, &asked);
                hear_and_answer_late(rig.client, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.end.late, TOKENS);
                asked_free(&alone);
                asked_free(&asked);
        }
        rig_stop(&rig);
}

/* The slot of a stream that ended with an open question is that of the next one. */
static void an_answer_to_an_earlier_stream_is_none_to_the_next_one(void **state)
{
        static const uint32_t nothing[MASK_WORDS_MOST];
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { .answer = answer_fixed, .arg = nothing };
                struct smv_generate how = plain(i);

                asked_run(rig.client, &how, &alone);
                how.ask = SMV_ASK_MASK;
                asked_run(rig.client, &how, &asked);
                assert_ended(&asked, SMV_NO_TOKEN, 0);
                how.ask = kinds[i];
                how.ask_ms = 1;
                how.late_draws = 1;
                asked.answer = answer_nothing;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.end.late, TOKENS);
                asked_free(&alone);
                asked_free(&asked);
        }
        rig_stop(&rig);
}

/* ---- answers that the library refuses ---- */

static void an_answer_needs_an_open_question_of_its_kind(void **state)
{
        uint32_t mask[MASK_WORDS_MOST] = { 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct rig rig = rig_start(state);
        size_t words = mask_words(question_vocab(rig.client));

        assert_int_equal(smv_answer_mask(rig.client, 1, mask, words), -EINVAL);
        assert_int_equal(smv_answer_token(rig.client, 1, 0), -EINVAL);
        assert_int_equal(smv_answer_mask(NULL, 1, mask, words), -EINVAL);
        assert_int_equal(smv_answer_token(NULL, 1, 0), -EINVAL);
        for (size_t i = 0; i < 2; i++) {
                struct smv_generate how = plain(1);
                uint32_t stream;

                how.ask = kinds[i];
                how.ask_ms = 600000;
                assert_int_equal(smv_generate(rig.client, &how, &stream), 0);
                assert_int_equal(smv_next(rig.client, &event, TIMEOUT_MS), 1);
                assert_int_equal(event.kind, SMV_EVENT_ASK);
                if (kinds[i] == SMV_ASK_MASK) {
                        assert_int_equal(smv_answer_token(rig.client, stream, 1), -EINVAL);
                        assert_int_equal(smv_answer_mask(rig.client, stream, mask, words - 1),
                                         -EINVAL);
                        assert_int_equal(smv_answer_mask(rig.client, stream, mask, words + 1),
                                         -EINVAL);
                        assert_int_equal(smv_answer_mask(rig.client, stream, NULL, 0), 0);
                        assert_int_equal(smv_answer_mask(rig.client, stream, NULL, 0), -EINVAL);
                } else {
                        assert_int_equal(smv_answer_mask(rig.client, stream, NULL, 0), -EINVAL);
                        assert_int_equal(smv_answer_token(rig.client, stream, 'a'), 0);
                        assert_int_equal(smv_answer_token(rig.client, stream, 'a'), -EINVAL);
                }
                assert_int_equal(smv_cancel(rig.client, stream), 0);
                while (event.kind != SMV_EVENT_END)
                        assert_int_equal(smv_next(rig.client, &event, TIMEOUT_MS), 1);
                assert_int_equal(smv_answer_token(rig.client, stream, 'a'), -EINVAL);
        }
        rig_stop(&rig);
}

/* ---- tokens that are not legal ---- */

/* Chooses the tokens that `arg` points at. */
static void answer_list(struct smv_client *client, struct asked *asked,
                        const struct smv_event *event)
{
        const uint32_t *list = asked->arg;

        (void)event;
        assert_int_equal(smv_answer_token(client, asked->stream, list[asked->token_count]), 0);
}

static void a_token_that_does_not_exist_is_a_bad_answer(void **state)
{
        static const uint32_t bad[] = { TOY_VOCAB,  TOY_VOCAB + 1, 1u << 16,
                                        0x7fffffff, 0x80000000,    0xfffffffe };
        struct rig rig = rig_start(state);

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
        rig_stop(&rig);
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
        struct rig rig = rig_start(state);

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
        rig_stop(&rig);
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
        struct rig rig = rig_start(state);

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
        rig_stop(&rig);
}

/* A constraint under the mask is another constraint. */
static void a_mask_and_a_constraint_both_hold(void **state)
{
        uint32_t mask[MASK_WORDS_MOST];
        struct asked narrow = { 0 }, asked = { .answer = answer_fixed, .arg = mask };
        struct smv_generate how;
        struct rig rig = rig_start(state);

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
        rig_stop(&rig);
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
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                const struct smv_generate how = bound(cases[i].constraint, SMV_ASK_MASK);
                struct asked asked = { .answer = answer_fixed, .arg = mask };

                memset(mask, 0xff, sizeof(mask));
                mask[cases[i].forbidden / 32] &= ~(1u << cases[i].forbidden % 32);
                asked_run(rig.client, &how, &asked);
                assert_ended(&asked, SMV_NO_TOKEN, cases[i].taken);
                asked_free(&asked);
        }
        rig_stop(&rig);
}

/* Only the end may follow: without its bit there is no token. */
static void the_end_of_a_constrained_answer_needs_its_bit(void **state)
{
        const struct smv_generate how = bound("{\"choices\":[\"ab\"]}", SMV_ASK_MASK);
        uint32_t mask[MASK_WORDS_MOST];
        struct asked asked = { .answer = answer_fixed, .arg = mask };
        struct rig rig = rig_start(state);

        memset(mask, 0xff, sizeof(mask));
        mask[TOY_EOS / 32] &= ~(1u << TOY_EOS % 32);
        asked_run(rig.client, &how, &asked);
        assert_ended(&asked, SMV_NO_TOKEN, 2);
        asked_free(&asked);
        rig_stop(&rig);
}

/* A client that is late all the time gets what the constraint alone gives. */
static void a_constraint_holds_when_the_client_is_late(void **state)
{
        struct rig rig = rig_start(state);

        for (size_t i = 0; i < sizeof(constraints) / sizeof(*constraints); i++) {
                for (size_t j = 0; j < 2; j++) {
                        struct asked alone = { 0 }, asked = { .answer = answer_nothing };
                        struct smv_generate how = bound(constraints[i], SMV_ASK_NOTHING);

                        how.ask_ms = 0;
                        asked_run(rig.client, &how, &alone);
                        how.ask = kinds[j];
                        how.ask_ms = 1;
                        how.late_draws = 1;
                        asked_run(rig.client, &how, &asked);
                        assert_same_answer(&alone, &asked);
                        assert_int_equal(asked.end.late, asked.end.asked);
                        asked_free(&alone);
                        asked_free(&asked);
                }
        }
        rig_stop(&rig);
}

int main(void)
{
        static const char *const needed[] = { "SAMOVARD", "TOY_MODEL", NULL };
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_stream_without_an_answer_ends),
                DAEMON_TEST(a_stream_ends_at_the_first_question_without_an_answer),
                DAEMON_TEST(a_late_stream_may_be_drawn_by_the_daemon),
                DAEMON_TEST(late_and_answered_questions_may_follow_each_other),
                DAEMON_TEST(a_late_answer_is_not_that_to_the_next_question),
                DAEMON_TEST(an_answer_to_an_earlier_stream_is_none_to_the_next_one),
                DAEMON_TEST(an_answer_needs_an_open_question_of_its_kind),
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
