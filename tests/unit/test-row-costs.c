/* The costs of rows, by which the time of a step is divided among its users. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/prefill-budget.h"

#define MS UINT64_C(1000000)

/* The time of a step of decodes: 2 ms, 0.1 ms for each, and 5 us for each position before it. */
#define SHARED_NS (2 * MS)
#define ROW_NS    (MS / 10)
#define FAR_NS    UINT64_C(5000)

static struct prefill_budget budget;
static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
        random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
        return (uint32_t)(random_state >> 33) % limit;
}

static void decode(uint32_t rows, uint64_t positions)
{
        const struct prefill_step step = { .decode_rows = rows, .decode_positions = positions };

        prefill_budget_learn(&budget, &step, SHARED_NS + rows * ROW_NS + positions * FAR_NS);
}

static void assert_within(uint64_t number, uint64_t of, uint32_t percent)
{
        assert_in_range(number, of - of * percent / 100, of + of * percent / 100);
}

static void learns_what_context_adds_to_a_decode(void **state)
{
        (void)state;
        prefill_budget_init(&budget, 50 * MS);
        random_state = 1;
        for (int i = 0; i < 2000; i++)
                decode(4, below(8000));
        assert_within(budget.decode_far_ns, FAR_NS * PREFILL_FAR, 5);
        assert_within(prefill_budget_decode_cost(&budget, 4, 0), SHARED_NS / 4 + ROW_NS, 25);
        assert_within(prefill_budget_decode_cost(&budget, 4, 3000),
                      SHARED_NS / 4 + ROW_NS + 3000 * FAR_NS, 10);
}

/* Contexts grow by a position a step, and begin anew. */
static void learns_it_from_streams_that_come_and_go(void **state)
{
        uint64_t at[8] = { 0 };

        (void)state;
        prefill_budget_init(&budget, 50 * MS);
        random_state = 2;
        for (int step = 0; step < 20000; step++) {
                uint64_t sum = 0;

                for (int i = 0; i < 8; i++) {
                        at[i] = below(500) ? at[i] + 1 : below(4000);
                        sum += at[i];
                }
                decode(8, sum);
        }
        assert_within(budget.decode_far_ns, FAR_NS * PREFILL_FAR, 15);
}

static void without_a_difference_context_costs_nothing(void **state)
{
        (void)state;
        prefill_budget_init(&budget, 50 * MS);
        for (int i = 0; i < 100; i++)
                prefill_budget_learn(&budget,
                                     &(struct prefill_step){ .decode_rows = 2,
                                                             .decode_positions = 100u * (i % 50) },
                                     3 * MS);
        assert_int_equal(budget.decode_far_ns, 0);
        assert_int_equal(prefill_budget_decode_cost(&budget, 2, 0),
                         prefill_budget_decode_cost(&budget, 2, 4000));
}

static void rows_cost_the_same_until_a_step_has_run(void **state)
{
        (void)state;
        prefill_budget_init(&budget, 50 * MS);
        assert_int_equal(prefill_budget_decode_cost(&budget, 4, 1000), 1);
        assert_int_equal(prefill_budget_prompt_cost(&budget, 1000, 7), 7);
}

static void a_prompt_row_costs_what_it_adds(void **state)
{
        (void)state;
        prefill_budget_init(&budget, 50 * MS);
        budget.row_ns = 1000;
        budget.far_ns = 500;
        assert_int_equal(prefill_budget_prompt_cost(&budget, 0, 10), 10 * 1000);
        assert_int_equal(prefill_budget_prompt_cost(&budget, 2 * PREFILL_FAR, 10), 10 * 2000);
}

/* The longest steps, of as many positions as there can be, or of hardly any. */
static void no_cost_is_above_a_step(void **state)
{
        (void)state;
        for (uint64_t positions = 16; positions < UINT64_C(1) << 34; positions *= 64) {
                prefill_budget_init(&budget, 50 * MS);
                for (int i = 0; i < 1000; i++)
                        prefill_budget_learn(
                                &budget,
                                &(struct prefill_step){ .decode_rows = 1024,
                                                        .decode_positions = i % 2 ? positions : 0 },
                                i % 2 ? PREFILL_STEP_NS_MAX : 0);
                assert_in_range(budget.decode_far_ns, 0, PREFILL_STEP_NS_MAX);
                assert_in_range(prefill_budget_decode_cost(&budget, 1024, UINT32_MAX), 1,
                                PREFILL_STEP_NS_MAX);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(learns_what_context_adds_to_a_decode),
                cmocka_unit_test(learns_it_from_streams_that_come_and_go),
                cmocka_unit_test(without_a_difference_context_costs_nothing),
                cmocka_unit_test(rows_cost_the_same_until_a_step_has_run),
                cmocka_unit_test(a_prompt_row_costs_what_it_adds),
                cmocka_unit_test(no_cost_is_above_a_step),
        };

        return cmocka_run_group_tests_name("row-costs", tests, NULL, NULL);
}
