#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/free-numbers.h"

static void gives_out_the_lowest_number_first(void **state)
{
        struct free_numbers numbers;
        uint32_t memory[4];

        (void)state;
        free_numbers_init(&numbers, memory, 1, 4);
        for (uint32_t i = 1; i <= 4; i++) {
                assert_int_equal(free_numbers_next(&numbers), i);
                assert_int_equal(free_numbers_take(&numbers), i);
        }
        assert_int_equal(numbers.count, 0);
        assert_int_equal(numbers.max, 4);
}

static void gives_out_next_what_came_back_last(void **state)
{
        struct free_numbers numbers;
        uint32_t memory[3];

        (void)state;
        free_numbers_init(&numbers, memory, 0, 3);
        assert_int_equal(free_numbers_take(&numbers), 0);
        assert_int_equal(free_numbers_take(&numbers), 1);
        free_numbers_give_back(&numbers, 1);
        free_numbers_give_back(&numbers, 0);
        assert_int_equal(numbers.count, 3);
        assert_int_equal(free_numbers_take(&numbers), 0);
        assert_int_equal(free_numbers_take(&numbers), 1);
        assert_int_equal(free_numbers_take(&numbers), 2);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                cmocka_unit_test(gives_out_the_lowest_number_first),
                cmocka_unit_test(gives_out_next_what_came_back_last),
        };

        return cmocka_run_group_tests_name("free-numbers", stories, NULL, NULL);
}
