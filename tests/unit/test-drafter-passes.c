/*
 * A drafter learns from guesses that get no row, or that the form of an answer changes, and expects
 * more or less of a draft model.
 */
#include "tests/unit/drafter-rig.h"

static void assert_about(float value, float about)
{
        if (!(value >= about - 0.01f && value <= about + 0.01f))
                fail_msg("%.4g, not about %.4g", (double)value, (double)about);
}

/* ---- guesses without a row ---- */

static void pass(uint32_t times)
{
        while (times--) {
                propose();
                assert_false(drafter_pass(drafter));
        }
        propose();
}

/*
 * Each pass goes 1/512 of the way, so half of it takes 355 passes.  Leaves the chance where it
 * ends.
 */
static void assert_returns(float first)
{
        float from, last;

        propose();
        from = last = draft.survival[0];
        for (uint32_t i = 0; i < 355; i++) {
                pass(1);
                if (from < first)
                        assert_true(draft.survival[0] > last && draft.survival[0] < first);
                else
                        assert_true(draft.survival[0] < last && draft.survival[0] > first);
                last = draft.survival[0];
        }
        assert_about((last - from) / (first - from), 0.5f);
        pass(355);
        assert_about((draft.survival[0] - from) / (first - from), 0.75f);
        pass(4000);
        assert_about((draft.survival[0] - from) / (first - from), 1);
}

static void chances_return_to_the_first_while_guesses_have_no_row(void **state)
{
        float first;

        (void)state;
        begin_repeating(2);
        first = chance_of_first();
        pass(1000);
        assert_true(draft.survival[0] == first);
        for (uint32_t i = 0; i < 30; i++)
                be_wrong();
        assert_returns(first);
        for (uint32_t i = 0; i < 100; i++)
                be_right();
        assert_returns(first);
}

static void chances_of_a_prediction_return_to_its_own_first_ones(void **state)
{
        float first;

        (void)state;
        for (uint32_t match = 1; match < 40; match++) {
                begin_predicted_match(match);
                first = draft.survival[0];
                for (uint32_t i = 0; i < 30; i++) {
                        drafter_learn(drafter, 1, 0);
                        propose();
                }
                assert_returns(first);
        }
}

/* Nothing is known of a token behind another that was not tried. */
static void only_the_first_token_of_a_guess_returns(void **state)
{
        float first, second;

        (void)state;
        begin_match(1, 2);
        for (uint32_t i = 0; i < 30; i++) {
                propose();
                drafter_learn(drafter, 2, i % 2);
        }
        propose();
        first = draft.survival[0];
        second = draft.survival[1] / first;
        pass(200);
        assert_true(draft.survival[0] < first - 0.02f);
        assert_true(draft.survival[1] / draft.survival[0] < second + 1e-5f);
        assert_true(draft.survival[1] / draft.survival[0] > second - 1e-5f);
}

static void other_guesses_do_not_return(void **state)
{
        float first;

        (void)state;
        begin_match(3, 1);
        for (uint32_t i = 0; i < 30; i++) {
                drafter_learn(drafter, 1, 0);
                propose();
        }
        first = draft.survival[0];
        /* Two letters that occur before, so the match is shorter. */
        add_new();
        answer(40, 42);
        pass(400);
        assert_int_equal(draft.tokens[0], 42);
        assert_true(draft.survival[0] > 2 * first);
        add(42);
        propose();
        assert_int_equal(draft.tokens[0], 43);
        assert_true(draft.survival[0] == first);
}

/* ---- the form of an answer ---- */

/* The form leaves `own` tokens of the guess, and adds one. */
static void form(uint32_t own, uint32_t sure)
{
        const uint32_t both[] = { 7, 8 };

        propose();
        drafter_form(
                drafter,
                &(struct draft_form){ .tokens = both, .count = own + 1, .forced = 1, .sure = sure },
                &draft);
        assert_int_equal(draft.count, own + 1);
        assert_int_equal(draft.source, own ? DRAFT_REPEAT : DRAFT_FORCED);
}

/* A stream that has no row in a plan is asked again, with the same masks along the same guess. */
static void what_was_passed_may_be_formed_again(void **state)
{
        const uint32_t both[] = { 7, 8 };
        const struct draft_form again = { .tokens = both, .count = 2, .forced = 1 };
        float passed;

        (void)state;
        begin_repeating(2);
        for (uint32_t i = 0; i < 30; i++) {
                form(1, 0);
                drafter_learn(drafter, 1, 0);
        }
        form(1, 0);
        assert_false(drafter_pass(drafter));
        assert_false(drafter_form(drafter, &again, &draft));
        passed = draft.survival[0];
        for (uint32_t i = 0; i < 10; i++) {
                assert_false(drafter_pass(drafter));
                assert_false(drafter_form(drafter, &again, &draft));
                assert_int_equal(draft.count, 2);
                assert_int_equal(draft.source, DRAFT_REPEAT);
                assert_true(draft.survival[0] == passed); /* it counts once */
        }
        form(1, 0);
        assert_false(drafter_pass(drafter));
        assert_false(drafter_form(drafter, &again, &draft));
        assert_true(draft.survival[0] > passed);
}

/* A model is blamed once for a guess that was not worth its masks, and of which nothing is left. */
static void a_passed_guess_of_a_model_counts_once(void **state)
{
        const struct draft_form empty = { .tokens = tokens };
        float before, expects;

        (void)state;
        begin_repeating(2);
        propose();
        drafter_take(drafter, 9, 0.5f, &draft);
        before = drafter_expects(drafter);
        assert_true(drafter_pass(drafter));
        expects = drafter_expects(drafter);
        assert_true(expects < before);
        assert_false(drafter_pass(drafter));
        assert_false(drafter_form(drafter, &empty, &draft));
        assert_true(drafter_expects(drafter) == expects);
        /* Without a pass, a guess of which nothing is legal is wrong. */
        propose();
        drafter_take(drafter, 9, 0.5f, &draft);
        before = drafter_expects(drafter);
        assert_true(drafter_form(drafter, &empty, &draft));
        assert_true(drafter_expects(drafter) < before);
        before = drafter_expects(drafter);
        assert_false(drafter_form(drafter, &empty, &draft));
        assert_true(drafter_expects(drafter) == before);
}

static void a_forced_token_returns_unless_it_is_sure(void **state)
{
        float first, low;

        (void)state;
        begin_repeating(2);
        form(0, 0);
        first = draft.survival[0];
        assert_true(first > 0 && first < 1);
        for (uint32_t i = 0; i < 30; i++) {
                form(0, 0);
                drafter_learn(drafter, 1, 0);
        }
        form(0, 0);
        low = draft.survival[0];
        assert_true(low < first / 2);
        for (uint32_t i = 0; i < 355; i++) {
                form(0, 1);
                assert_true(draft.survival[0] == 1);
                drafter_pass(drafter);
        }
        form(0, 0);
        assert_true(draft.survival[0] == low);
        for (uint32_t i = 0; i < 355; i++) {
                form(0, 0);
                drafter_pass(drafter);
        }
        form(0, 0);
        assert_about((draft.survival[0] - low) / (first - low), 0.5f);
}

/* A guess may be the only legal token, and then says nothing of its source. */
static void a_guess_that_is_sure_does_not_return(void **state)
{
        float low;

        (void)state;
        begin_repeating(2);
        for (uint32_t i = 0; i < 30; i++)
                be_wrong();
        low = chance_of_first();
        for (uint32_t i = 0; i < 100; i++) {
                form(1, 1);
                assert_true(draft.survival[0] == 1);
                drafter_pass(drafter);
        }
        assert_true(chance_of_first() == low);
        form(1, 2);
        drafter_pass(drafter);
        assert_true(chance_of_first() > low);
}

/* ---- a draft model ---- */

static void begin_model(float chance)
{
        open_drafter(TEXT_MAX);
        add_new();
        drafter_begin(drafter, &(struct drafter_text){ .prompt_count = count,
                                                       .tokens_max = TEXT_MAX,
                                                       .draft_max = 2,
                                                       .model_chance = chance });
        propose();
}

/* A model's guess for this text. */
static void take(void)
{
        assert_no_draft();
        drafter_take(drafter, 5, 0.9f, &draft);
        assert_int_equal(draft.source, DRAFT_MODEL);
}

static void a_model_that_gets_no_row_is_expected_to_get_none(void **state)
{
        float last, first, low;

        (void)state;
        begin_model(DRAFTER_HOPE);
        take();
        first = draft.survival[0];
        last = drafter_expects(drafter);
        assert_about(last, DRAFTER_HOPE);
        for (uint32_t i = 0; i < 20; i++) {
                assert_true(drafter_pass(drafter));
                assert_true(drafter_expects(drafter) < last);
                take();
                last = drafter_expects(drafter);
        }
        assert_true(draft.survival[0] == first && last < DRAFTER_HOPE / 5);
        /* The chance of the guess itself returns, too. */
        for (uint32_t i = 0; i < 30; i++) {
                assert_true(drafter_learn(drafter, 1, 0));
                take();
        }
        low = draft.survival[0];
        for (uint32_t i = 0; i < 355; i++) {
                assert_true(drafter_pass(drafter));
                take();
        }
        assert_about((draft.survival[0] - low) / (first - low), 0.5f);
}

/* It may be wrong as often as it likes: what is expected of it falls, and returns by and by. */
static void a_model_is_never_given_up(void **state)
{
        float last;

        (void)state;
        begin_model(DRAFTER_HOPE);
        for (uint32_t i = 0; i < 100; i++) {
                take();
                last = drafter_expects(drafter);
                assert_true(drafter_learn(drafter, 1, 0));
                assert_true(drafter_expects(drafter) > 0 && drafter_expects(drafter) < last);
                add_new();
        }
        last = drafter_expects(drafter);
        assert_true(last < 0.02f);
        for (uint32_t i = 0; i < 355; i++) {
                assert_no_draft();
                assert_true(drafter_expects(drafter) > last);
                last = drafter_expects(drafter);
        }
        assert_about(last, DRAFTER_HOPE / 2);
}

static void other_guesses_say_nothing_of_the_model(void **state)
{
        float expects;

        (void)state;
        begin_repeating(2);
        read_all();
        for (uint32_t i = 0; i < 20; i++) {
                assert_repeats();
                expects = drafter_expects(drafter);
                if (i % 2)
                        assert_false(drafter_pass(drafter));
                else
                        assert_false(drafter_learn(drafter, 1, 0));
                assert_true(drafter_expects(drafter) == expects);
        }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_drafter)
        const struct CMUnitTest tests[] = {
                TEST(chances_return_to_the_first_while_guesses_have_no_row),
                TEST(chances_of_a_prediction_return_to_its_own_first_ones),
                TEST(only_the_first_token_of_a_guess_returns),
                TEST(other_guesses_do_not_return),
                TEST(what_was_passed_may_be_formed_again),
                TEST(a_passed_guess_of_a_model_counts_once),
                TEST(a_forced_token_returns_unless_it_is_sure),
                TEST(a_guess_that_is_sure_does_not_return),
                TEST(a_model_that_gets_no_row_is_expected_to_get_none),
                TEST(a_model_is_never_given_up),
                TEST(other_guesses_say_nothing_of_the_model),
        };

        return cmocka_run_group_tests_name("drafter-passes", tests, NULL, NULL);
}
