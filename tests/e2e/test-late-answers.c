/*
 * Questions without an answer in time.  No test needs a client that is quick: those that may be
 * late are always late, or it makes no difference.
 */
#include <errno.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/question-client.h"

#define TOKENS 40u

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

static void assert_ended(const struct asked *asked, enum smv_code code, uint32_t tokens)
{
        assert_int_equal(asked->end.reason, SMV_END_ERROR);
        assert_int_equal(asked->end.code, code);
        assert_int_equal(asked->token_count, tokens);
}

static void a_stream_without_an_answer_ends(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked asked = { .answer = answer_nothing };
                struct smv_generate how = plain(1);

                how.ask = question_kinds[i];
                how.ask_ms = 1;
                asked_run(rig.client, &how, &asked);
                assert_ended(&asked, SMV_NO_ANSWER, 0);
                assert_int_equal(asked.questions, 1);
                assert_int_equal(asked.end.late, 0);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
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
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked asked = { .answer = answer_some, .arg = &count };
                struct smv_generate how = plain(1);
                uint64_t start = now_ms();

                how.ask = question_kinds[i];
                asked_run(rig.client, &how, &asked);
                assert_int_equal(asked.end.code, SMV_NO_ANSWER);
                if (asked.token_count == count)
                        assert_true(now_ms() - start >= SMV_ASK_MS - 1);
                assert_true(asked.token_count <= count);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

static void a_late_stream_may_be_drawn_by_the_daemon(void **state)
{
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { .answer = answer_nothing };
                struct smv_generate how = plain(i);

                asked_run(rig.client, &how, &alone);
                how.ask = question_kinds[i];
                how.ask_ms = 1;
                how.late_draws = 1;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.end.asked, TOKENS);
                assert_int_equal(asked.end.late, TOKENS);
                asked_free(&alone);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
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
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { .answer = answer_two_of_three };
                struct smv_generate how = plain(i);

                asked_run(rig.client, &how, &alone);
                how.ask = question_kinds[i];
                how.ask_ms = 20;
                how.late_draws = 1;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.end.asked, TOKENS);
                assert_in_range(asked.end.late, TOKENS / 3, TOKENS);
                asked_free(&alone);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
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
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { .answer = answer_nothing };
                struct smv_generate how = plain(i);

                asked_run(rig.client, &how, &alone);
                how.ask = question_kinds[i];
                how.ask_ms = 2;
                how.late_draws = 1;
                asked_begin(rig.client, &how, &asked);
                hear_and_answer_late(rig.client, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.end.late, TOKENS);
                asked_free(&alone);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

/* The slot of a stream that ended with an open question is that of the next one. */
static void an_answer_to_an_earlier_stream_is_none_to_the_next_one(void **state)
{
        static const uint32_t nothing[MASK_WORDS_MOST];
        struct question_rig rig = question_rig_start(state);

        for (size_t i = 0; i < 2; i++) {
                struct asked alone = { 0 }, asked = { .answer = answer_fixed, .arg = nothing };
                struct smv_generate how = plain(i);

                asked_run(rig.client, &how, &alone);
                how.ask = SMV_ASK_MASK;
                asked_run(rig.client, &how, &asked);
                assert_ended(&asked, SMV_NO_TOKEN, 0);
                how.ask = question_kinds[i];
                how.ask_ms = 1;
                how.late_draws = 1;
                asked.answer = answer_nothing;
                asked_run(rig.client, &how, &asked);
                assert_same_answer(&alone, &asked);
                assert_int_equal(asked.end.late, TOKENS);
                asked_free(&alone);
                asked_free(&asked);
        }
        question_rig_stop(&rig);
}

/* ---- answers that the library refuses ---- */

static void an_answer_needs_an_open_question_of_its_kind(void **state)
{
        uint32_t mask[MASK_WORDS_MOST] = { 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct question_rig rig = question_rig_start(state);
        size_t words = mask_words(question_vocab(rig.client));

        assert_int_equal(smv_answer_mask(rig.client, 1, mask, words), -EINVAL);
        assert_int_equal(smv_answer_token(rig.client, 1, 0), -EINVAL);
        assert_int_equal(smv_answer_mask(NULL, 1, mask, words), -EINVAL);
        assert_int_equal(smv_answer_token(NULL, 1, 0), -EINVAL);
        for (size_t i = 0; i < 2; i++) {
                struct smv_generate how = plain(1);
                uint32_t stream;

                how.ask = question_kinds[i];
                how.ask_ms = 600000;
                assert_int_equal(smv_generate(rig.client, &how, &stream), 0);
                assert_int_equal(smv_next(rig.client, &event, TIMEOUT_MS), 1);
                assert_int_equal(event.kind, SMV_EVENT_ASK);
                if (question_kinds[i] == SMV_ASK_MASK) {
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
        question_rig_stop(&rig);
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
        };

        require_env_paths(needed);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
