/* The costs of steps, against values counted by hand. */
#include "tests/unit/deal-rig.h"

static void nothing_is_known_at_first(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        for (uint32_t rows = 1; rows < 200; rows++)
                assert_near(step_costs_ns(&costs, rows), 0);
        /* As they are not kept, steps with more rows teach nothing. */
        measure(&costs, STEP_COSTS_ROWS + 1, 1000);
        measure(&costs, 4000, 1000);
        for (uint32_t rows = 1; rows < 200; rows++)
                assert_near(step_costs_ns(&costs, rows), 0);
}

static void one_measurement_holds_for_all(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        measure(&costs, 8, 5000);
        for (uint32_t rows = 1; rows < 200; rows++)
                assert_near(step_costs_ns(&costs, rows), 5000);
}

static void between_measurements_is_a_straight_line(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        measure(&costs, 14, 3200);
        measure(&costs, 4, 1200);
        measure(&costs, 6, 1200);
        for (uint32_t rows = 1; rows <= 6; rows++)
                assert_near(step_costs_ns(&costs, rows), 1200);
        for (uint32_t rows = 6; rows <= 14; rows++)
                assert_near(step_costs_ns(&costs, rows), 1200 + 250 * (rows - 6));
        /* Behind the largest that was measured a row costs nothing. */
        for (uint32_t rows = 14; rows <= STEP_COSTS_ROWS; rows++)
                assert_near(step_costs_ns(&costs, rows), 3200);
}

/* So two rows may cost less than one. */
static void means_are_taken_as_they_are(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        measure(&costs, 2, 2000);
        measure(&costs, 4, 1000);
        measure(&costs, 8, 4000);
        assert_near(step_costs_ns(&costs, 1), 2000);
        assert_near(step_costs_ns(&costs, 2), 2000);
        assert_near(step_costs_ns(&costs, 3), 1500);
        assert_near(step_costs_ns(&costs, 4), 1000);
        assert_near(step_costs_ns(&costs, 6), 2500);
        assert_near(step_costs_ns(&costs, 8), 4000);
        assert_near(step_costs_ns(&costs, 9), 4000);
        /* The first one that is measured may be any. */
        measure(&costs, 1, 9000);
        assert_near(step_costs_ns(&costs, 1), 9000);
        assert_near(step_costs_ns(&costs, 2), 2000);
}

/* What so many rows cost by those that were measured; 0: a number was not. */
static double line_through(const uint64_t *times, uint32_t rows)
{
        uint32_t from = rows, to = rows;

        while (from && !times[from])
                from--;
        while (to <= STEP_COSTS_ROWS && !times[to])
                to++;
        if (to > STEP_COSTS_ROWS)
                return (double)times[from];
        if (!from || from == to)
                return (double)times[to];
        return (double)times[from] +
               ((double)times[to] - (double)times[from]) * (rows - from) / (to - from);
}

static void any_means_are_joined_by_straight_lines(void **state)
{
        (void)state;
        dice = 1;
        for (uint32_t i = 0; i < 300; i++) {
                struct step_costs costs = { 0 };
                uint64_t times[STEP_COSTS_ROWS + 1] = { 0 };

                for (uint32_t j = 1 + below(40); j; j--) {
                        uint32_t rows = 1 + below(STEP_COSTS_ROWS);

                        if (times[rows])
                                continue;
                        times[rows] = 1 + below(1000000);
                        measure(&costs, rows, times[rows]);
                }
                for (uint32_t rows = 1; rows <= STEP_COSTS_ROWS; rows++)
                        assert_near(step_costs_ns(&costs, rows), line_through(times, rows));
                for (uint32_t rows = STEP_COSTS_ROWS; rows < 3 * STEP_COSTS_ROWS; rows++)
                        assert_true(step_costs_ns(&costs, rows) <= step_costs_ns(&costs, rows + 1));
        }
}

/* Else a step with very many rows would cost nothing, or less. */
static void more_rows_than_are_measured_never_cost_less(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        measure(&costs, STEP_COSTS_ROWS / 2, 5000);
        measure(&costs, STEP_COSTS_ROWS, 3000);
        assert_near(step_costs_ns(&costs, STEP_COSTS_ROWS * 3 / 4), 4000);
        for (uint32_t rows = STEP_COSTS_ROWS; rows < 500; rows++)
                assert_near(step_costs_ns(&costs, rows), 3000);
}

static void a_mean_moves_to_what_is_measured_now(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        measure(&costs, 3, 1000);
        for (uint32_t i = 0; i < 300; i++)
                measure(&costs, 3, 2000);
        assert_near(step_costs_ns(&costs, 3), 2000);
        step_costs_note(&costs, 3, 1000);
        assert_true(step_costs_ns(&costs, 3) > 1800 && step_costs_ns(&costs, 3) < 2000);
        for (uint32_t i = 0; i < 300; i++)
                measure(&costs, 3, 500);
        assert_near(step_costs_ns(&costs, 3), 500);
}

static void an_interrupted_step_counts_as_a_quarter_more_at_most(void **state)
{
        struct step_costs as_measured = { 0 }, a_quarter_more = { 0 };

        (void)state;
        measure(&as_measured, 3, 1000);
        step_costs_note(&as_measured, 3, UINT64_C(1000000000000));
        measure(&a_quarter_more, 3, 1000);
        step_costs_note(&a_quarter_more, 3, 1250);
        assert_near(step_costs_ns(&as_measured, 3), step_costs_ns(&a_quarter_more, 3));
        assert_true(step_costs_ns(&as_measured, 3) < 1500);
        /* A machine that is slow from now on is believed in the end. */
        for (uint32_t i = 0; i < 1000; i++)
                measure(&as_measured, 3, 900000);
        assert_near(step_costs_ns(&as_measured, 3), 900000);
}

static void more_rows_than_are_measured_go_on_as_steeply_as_the_curve_ends(void **state)
{
        struct step_costs costs = { 0 };

        (void)state;
        for (uint32_t rows = 1; rows <= STEP_COSTS_ROWS; rows++)
                measure(&costs, rows, rows <= 32 ? 1000 : 1000 + 50 * (rows - 32));
        for (uint32_t rows = 33; rows < 500; rows++)
                assert_near(step_costs_ns(&costs, rows), 1000 + 50 * (rows - 32));
        costs = (struct step_costs){ 0 };
        measure(&costs, 16, 1000);
        assert_near(step_costs_ns(&costs, 500), 1000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_known_at_first),
                cmocka_unit_test(one_measurement_holds_for_all),
                cmocka_unit_test(between_measurements_is_a_straight_line),
                cmocka_unit_test(means_are_taken_as_they_are),
                cmocka_unit_test(any_means_are_joined_by_straight_lines),
                cmocka_unit_test(more_rows_than_are_measured_never_cost_less),
                cmocka_unit_test(a_mean_moves_to_what_is_measured_now),
                cmocka_unit_test(an_interrupted_step_counts_as_a_quarter_more_at_most),
                cmocka_unit_test(more_rows_than_are_measured_go_on_as_steeply_as_the_curve_ends),
        };

        return cmocka_run_group_tests_name("step-costs", tests, NULL, NULL);
}
