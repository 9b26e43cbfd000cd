/* How sure a drafter is of its guesses, and what it learns when they were right or wrong. */
#include "tests/unit/drafter-rig.h"

static void begin_again(void)
{
        begin(2, NULL, 0);
        read_all();
}

static void a_longer_match_is_likelier_at_first(void **state)
{
        float last = 0;

        (void)state;
        for (uint32_t match = 1; match < 40; match++) {
                begin_match(match, 16);
                assert_true(draft.survival[0] >= last && draft.survival[0] < 1);
                last = draft.survival[0];
                /* The guess grows with the match. */
                assert_int_equal(draft.count, match < 15 ? 1 + match : 16);
        }
        assert_true(last > 0.5f);
}

/* A client expects most of its text, while a few tokens may repeat by chance. */
static void a_prediction_is_likelier_than_a_repeat_at_first(void **state)
{
        float last = 0;

        (void)state;
        for (uint32_t match = 1; match < 40; match++) {
                float predicted;

                begin_predicted_match(match);
                predicted = draft.survival[0];
                begin_match(match, 1);
                assert_true(predicted >= last && predicted < 1);
                assert_true(match < 5 ? predicted > draft.survival[0]
                                      : predicted >= draft.survival[0]);
                last = predicted;
        }
}

static void chances_move_towards_what_is_observed(void **state)
{
        float first;

        (void)state;
        begin_repeating(2);
        first = chance_of_first();
        for (uint32_t i = 0; i < 100; i++)
                be_right();
        assert_true(chance_of_first() > first && chance_of_first() > 0.99f);
        assert_true(draft.survival[1] > 0.98f);
        for (uint32_t i = 0; i < 60; i++)
                be_wrong();
        assert_true(chance_of_first() < 0.01f);
        for (uint32_t i = 0; i < 100; i++)
                be_right();
        assert_true(chance_of_first() > 0.99f);
}

/* Whether a guess is worth a row is decided by its chance, not here. */
static void wrong_drafts_lower_the_chance_and_never_stop(void **state)
{
        float last;

        (void)state;
        begin_repeating(4);
        last = chance_of_first();
        for (uint32_t i = 0; i < 200; i++) {
                be_wrong();
                assert_true(chance_of_first() < last);
                assert_int_equal(draft.count, 4);
                last = chance_of_first();
        }
        assert_true(last < 1e-6f);
        begin_predicted(LETTERS, 4);
        for (uint32_t i = 0; i < 200; i++) {
                assert_predicts(i, LETTERS, 4);
                drafter_learn(drafter, 4, 0);
                assert_true(i < 20 || draft.survival[0] < last);
                last = draft.survival[0];
                add(i);
        }
}

/* The second token counts only where the first was right. */
static void a_part_that_is_right_moves_its_part(void **state)
{
        (void)state;
        begin_repeating(3);
        for (uint32_t i = 0; i < 3000; i++) {
                assert_repeats();
                drafter_learn(drafter, 3, i % 4 ? 3 : 0);
                add(7);
        }
        assert_true(chance_of_first() > 0.6f && chance_of_first() < 0.95f);
        begin_repeating(1);
        for (uint32_t i = 0; i < 3000; i++) {
                assert_repeats();
                drafter_learn(drafter, 1, i % 2);
                add(7);
        }
        assert_true(chance_of_first() > 0.35f && chance_of_first() < 0.65f);
}

static void sources_and_texts_have_chances_of_their_own(void **state)
{
        float first, predicted;

        (void)state;
        begin_repeating(2);
        first = chance_of_first();
        for (uint32_t i = 0; i < 50; i++)
                be_right();
        begin_again();
        assert_true(chance_of_first() == first);
        begin(2, letters(), PREDICTED);
        propose();
        predicted = draft.survival[0];
        add_new();
        for (uint32_t i = 0; i < 50; i++)
                add(7);
        read_all();
        for (uint32_t i = 0; i < 50; i++)
                be_right();
        answer(20, 22);
        assert_predicts(22, PREDICTED, 2);
        assert_true(draft.survival[0] == predicted);
}

static void a_new_text_begins_with_first_chances(void **state)
{
        float first;

        (void)state;
        begin_repeating(2);
        first = chance_of_first();
        for (uint32_t i = 0; i < 50; i++)
                be_wrong();
        assert_true(chance_of_first() < first / 2);
        begin_again();
        assert_true(chance_of_first() == first);
        begin_predicted(PREDICTED, 1);
        assert_predicts(0, PREDICTED, 1);
        first = draft.survival[0];
        for (uint32_t i = 0; i < 50; i++) {
                drafter_learn(drafter, 1, 0);
                assert_predicts(0, PREDICTED, 1);
        }
        assert_true(draft.survival[0] < first / 2);
        begin(1, letters(), PREDICTED);
        assert_predicts(0, PREDICTED, 1);
        assert_true(draft.survival[0] == first);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_drafter)
        const struct CMUnitTest tests[] = {
                TEST(a_longer_match_is_likelier_at_first),
                TEST(a_prediction_is_likelier_than_a_repeat_at_first),
                TEST(chances_move_towards_what_is_observed),
                TEST(wrong_drafts_lower_the_chance_and_never_stop),
                TEST(a_part_that_is_right_moves_its_part),
                TEST(sources_and_texts_have_chances_of_their_own),
                TEST(a_new_text_begins_with_first_chances),
        };

        return cmocka_run_group_tests_name("drafter-chances", tests, NULL, NULL);
}
