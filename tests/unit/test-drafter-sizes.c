/* A drafter reads long texts in parts, works with small ones, and has bounded memory. */
#include "tests/unit/drafter-rig.h"

static void a_long_prompt_is_read_over_several_calls(void **state)
{
        uint32_t calls = 1;

        (void)state;
        open_drafter(TEXT_MAX);
        for (uint32_t i = 0; i < 5000; i++)
                add(i % 50);
        begin(8, letters(), 4);
        assert_predicts(0, 4, 8); /* it needs nothing of the prompt */
        add_new();
        for (add(OTHERS - 1); count < 6000; calls++) {
                propose();
                if (draft.source == DRAFT_REPEAT)
                        break;
                add(OTHERS - 1);
        }
        assert_true(calls > 10 && calls < 5000 / 16);
        for (uint32_t i = 0; i < draft.count; i++)
                assert_int_equal(draft.tokens[i], OTHERS - 1);
}

/* The half of it that is looked back at is read again each time. */
static void a_very_long_text_is_looked_back_at_in_part(void **state)
{
        uint32_t guesses = 0;

        (void)state;
        open_drafter(TEXT_MAX);
        for (uint32_t i = 0; i < 40000; i++)
                add(i % 9);
        begin(DRAFT_MAX, NULL, 0);
        while (count < TEXT_MAX) {
                propose();
                for (uint32_t i = 0; i < draft.count; i++)
                        assert_int_equal(draft.tokens[i], (count + i) % 9);
                guesses += draft.count == DRAFT_MAX;
                for (uint32_t i = 0; i < 5 && count < TEXT_MAX; i++)
                        add(count % 9);
        }
        assert_true(guesses > 5000);
}

static void the_smallest_drafter_works(void **state)
{
        (void)state;
        open_drafter(1);
        tokens[0] = 5;
        for (uint32_t i = 0; i < 3; i++) {
                drafter_begin(drafter, &(struct drafter_text){ .tokens_max = 1, .draft_max = 1 });
                count = 0;
                assert_no_draft();
                count = 1;
                assert_no_draft();
        }
}

static void memory_ends_at_the_longest_text(void **state)
{
        (void)state;
        for (uint32_t context = 1; context < DRAFTER_TOKENS_MAX; context = context * 3 + 1)
                assert_true(drafter_bytes(context) <= 70 * (size_t)context + 1000);
        assert_int_equal(drafter_bytes(DRAFTER_TOKENS_MAX), drafter_bytes(10000000));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_drafter)
        const struct CMUnitTest tests[] = {
                TEST(a_long_prompt_is_read_over_several_calls),
                TEST(a_very_long_text_is_looked_back_at_in_part),
                TEST(the_smallest_drafter_works),
                TEST(memory_ends_at_the_longest_text),
        };

        return cmocka_run_group_tests_name("drafter-sizes", tests, NULL, NULL);
}
