/* The drafter follows predictions, and edits of them. */
#include "tests/unit/drafter-rig.h"

#define NEAR 60u

static uint64_t dice;

static uint32_t below(uint32_t limit)
{
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(dice >> 33) % limit;
}

static void a_prediction_is_followed_from_its_beginning(void **state)
{
        (void)state;
        begin_predicted(PREDICTED, 8);
        for (uint32_t i = 0; i < PREDICTED; i++) {
                assert_predicts(i, PREDICTED, 8);
                add(i);
        }
        assert_no_draft();
        add_new();
        assert_no_draft();
}

/* Several tokens of the answer may come between two calls. */
static void several_tokens_may_come_at_once(void **state)
{
        (void)state;
        begin_predicted(PREDICTED, 5);
        assert_predicts(0, PREDICTED, 5);
        answer(0, 7);
        assert_predicts(7, PREDICTED, 5);
        answer(7, 30);
        add_new();
        answer(30, 33);
        assert_predicts(33, PREDICTED, 5);
}

/* A token that differs is taken to replace the one of the prediction. */
static void a_replacement_is_passed(void **state)
{
        float sure;

        (void)state;
        begin_predicted(PREDICTED, 8);
        answer(0, 20);
        assert_predicts(20, PREDICTED, 8);
        sure = draft.survival[0];
        add_new();
        assert_predicts(21, PREDICTED, 8);
        assert_true(draft.survival[0] < 0.6f * sure); /* a guess */
        add(21);
        assert_predicts(22, PREDICTED, 8);
        answer(22, 30);
        assert_predicts(30, PREDICTED, 8);
}

/* Two tokens that follow each other in the prediction show where the answer is. */
static void a_longer_replacement_is_passed(void **state)
{
        (void)state;
        begin_predicted(PREDICTED, 8);
        answer(0, 20);
        add_new();
        assert_predicts(21, PREDICTED, 8);
        add_new();
        assert_no_draft();
        add(22);
        assert_no_draft();
        add(23);
        assert_predicts(24, PREDICTED, 8);
}

static void an_insertion_is_passed(void **state)
{
        (void)state;
        begin_predicted(PREDICTED, 8);
        answer(0, 20);
        add_new();
        assert_predicts(21, PREDICTED, 8);
        for (uint32_t i = 0; i < 9; i++) {
                add_new();
                assert_no_draft();
        }
        answer(20, 21);
        assert_no_draft();
        answer(21, 22);
        assert_predicts(22, PREDICTED, 8);
}

static void a_deletion_is_passed(void **state)
{
        (void)state;
        begin_predicted(PREDICTED, 8);
        answer(0, 20);
        assert_predicts(20, PREDICTED, 8);
        answer(40, 41);
        assert_predicts(21, PREDICTED, 8);
        answer(41, 42);
        assert_predicts(42, PREDICTED, 8);
        /* And back: what was left out comes later. */
        answer(25, 27);
        assert_predicts(27, PREDICTED, 8);
}

static void the_beginning_may_be_left_out(void **state)
{
        (void)state;
        begin_predicted(PREDICTED, 8);
        assert_predicts(0, PREDICTED, 8);
        answer(11, 12);
        assert_predicts(1, PREDICTED, 8);
        answer(12, 13);
        assert_predicts(13, PREDICTED, 8);
}

/* The prompt's end says nothing about the place: its tokens may be those of the prediction. */
static void only_the_answer_shows_the_place(void **state)
{
        (void)state;
        open_drafter(TEXT_MAX);
        answer(30, 40);
        begin(8, letters(), PREDICTED);
        assert_predicts(0, PREDICTED, 8);
        answer(50, 51);
        assert_predicts(1, PREDICTED, 8);
        answer(51, 52);
        assert_predicts(52, PREDICTED, 8);
}

/*
 * An answer made of pieces of the prediction and of tokens that occur once.  Two tokens show the
 * place where it is near, and three wherever it is.  With fewer the drafter may guess, or not.
 */
static void any_edits_are_passed(void **state)
{
        (void)state;
        dice = 1;
        for (uint32_t i = 0; i < 300; i++) {
                uint32_t predicted = 2 + below(i % 2 ? NEAR - 1 : LETTERS - 2);
                uint32_t draft_max = 1 + below(DRAFT_MAX);
                uint32_t at = 0, run = 3; /* tokens that are known to be those before `at` */

                begin_predicted(predicted, draft_max);
                while (count < 200) {
                        propose();
                        if ((run >= 3 || (run == 2 && predicted <= NEAR)) && at < predicted)
                                assert_predicts(at, predicted, draft_max);
                        else if (draft.source == DRAFT_PREDICTION && draft.tokens[0] != at)
                                assert_true(draft.survival[0] < 0.6f);
                        if (below(10) && at < predicted) {
                                add(at++);
                                run++;
                        } else if (below(2)) {
                                add_new();
                                run = 0;
                        } else {
                                at = below(predicted);
                                run = at && tokens[count - 1] == at - 1 && count > prompt_count;
                                run = run ? 2 : 1;
                                add(at++);
                        }
                }
        }
}

/* Of places that are alike, the longest counts, and of equal ones the next. */
static void goes_on_at_the_place_that_is_most_alike(void **state)
{
        static const uint32_t prediction[] = { 1, 2, 3, 10, 2, 3, 11, 1, 2, 3, 12, 9, 2, 3, 13 };

        (void)state;
        open_drafter(TEXT_MAX);
        add_new();
        begin(1, prediction, sizeof(prediction) / sizeof(*prediction));
        add_new();
        add(2);
        add(3);
        propose();
        assert_int_equal(draft.tokens[0], 10);
        add_new();
        add(2);
        add(3);
        propose();
        assert_int_equal(draft.tokens[0], 11);
        add_new();
        add(9);
        add(2);
        add(3);
        propose();
        assert_int_equal(draft.source, DRAFT_PREDICTION);
        assert_int_equal(draft.tokens[0], 13);
}

static void predictions_may_be_short(void **state)
{
        (void)state;
        begin_predicted(1, 8);
        assert_predicts(0, 1, 8);
        add(0);
        assert_no_draft();
        begin_predicted(1, 8);
        add_new();
        assert_no_draft();
        add(0);
        assert_no_draft();
        begin_predicted(2, 8);
        assert_predicts(0, 2, 8);
        answer(0, 2);
        assert_no_draft();
        open_drafter(TEXT_MAX);
        add_new();
        begin(8, NULL, 0);
        assert_no_draft();
}

static void the_end_of_a_long_prediction_is_indexed_meanwhile(void **state)
{
        static uint32_t prediction[PREDICTION_INDEXED + 2000];
        uint32_t far = PREDICTION_INDEXED + 1000;

        (void)state;
        for (uint32_t i = 0; i < PREDICTION_INDEXED + 2000; i++)
                prediction[i] = i;
        open_drafter(TEXT_MAX);
        tokens[count++] = UINT32_MAX - 1;
        begin(8, prediction, PREDICTION_INDEXED + 2000);
        answer(PREDICTION_INDEXED - 100, PREDICTION_INDEXED - 97);
        assert_predicts(PREDICTION_INDEXED - 97, PREDICTION_INDEXED + 2000, 8);
        answer(0, 3);
        assert_predicts(3, PREDICTION_INDEXED + 2000, 8);
        answer(far, far + 3);
        assert_no_draft();
        for (uint32_t i = 0; i < 20; i++)
                propose();
        assert_predicts(far + 3, PREDICTION_INDEXED + 2000, 8);
}

/* Behind a prediction there are repeats. */
static void a_repeat_is_guessed_where_no_prediction_is(void **state)
{
        (void)state;
        begin_predicted(PREDICTED, 4);
        for (uint32_t i = 0; i < 30; i++)
                add(LETTERS + i % 3);
        propose();
        assert_int_equal(draft.source, DRAFT_REPEAT);
        assert_int_equal(draft.count, 4);
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(draft.tokens[i], LETTERS + i % 3);
        answer(10, 12);
        assert_predicts(12, PREDICTED, 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_drafter)
        const struct CMUnitTest tests[] = {
                TEST(a_prediction_is_followed_from_its_beginning),
                TEST(several_tokens_may_come_at_once),
                TEST(a_replacement_is_passed),
                TEST(a_longer_replacement_is_passed),
                TEST(an_insertion_is_passed),
                TEST(a_deletion_is_passed),
                TEST(the_beginning_may_be_left_out),
                TEST(only_the_answer_shows_the_place),
                TEST(any_edits_are_passed),
                TEST(goes_on_at_the_place_that_is_most_alike),
                TEST(predictions_may_be_short),
                TEST(the_end_of_a_long_prediction_is_indexed_meanwhile),
                TEST(a_repeat_is_guessed_where_no_prediction_is),
        };

        return cmocka_run_group_tests_name("drafter", tests, NULL, NULL);
}
