/* Histograms and rates of the daemon: what a reader gets from what one thread has counted. */
#include "daemon/ipc/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

static void bounds_are_five_for_each_power_of_ten(void **state)
{
        (void)state;
        assert_int_equal(histogram_bound_ns(0), 1000);
        assert_int_equal(histogram_bound_ns(1), 1600);
        assert_int_equal(histogram_bound_ns(15), MS);
        assert_int_equal(histogram_bound_ns(29), 630 * MS);
        assert_int_equal(histogram_bound_ns(HISTOGRAM_BOUNDS - 1), 1000 * SECOND);
        for (uint32_t i = 1; i < HISTOGRAM_BOUNDS; i++)
                assert_true(histogram_bound_ns(i) > histogram_bound_ns(i - 1));
}

/* A duration that equals a bound counts for it, as Prometheus' `le` says. */
static void counts_are_cumulative(void **state)
{
        struct histogram histogram = { 0 };
        uint64_t counts[HISTOGRAM_BOUNDS];

        (void)state;
        assert_int_equal(histogram_read(&histogram, counts), 0);
        histogram_add(&histogram, 0);
        histogram_add(&histogram, MS);
        histogram_add(&histogram, MS + 1);
        histogram_add(&histogram, 1000 * SECOND);
        histogram_add(&histogram, 1000 * SECOND + 1);
        histogram_add(&histogram, UINT64_C(1) << 60);
        assert_int_equal(histogram_read(&histogram, counts), 6);
        assert_int_equal(counts[0], 1);
        assert_int_equal(counts[14], 1);
        assert_int_equal(counts[15], 2);
        assert_int_equal(counts[16], 3);
        assert_int_equal(counts[HISTOGRAM_BOUNDS - 2], 3);
        assert_int_equal(counts[HISTOGRAM_BOUNDS - 1], 4);
        assert_int_equal(counter_get(&histogram.sum_ns),
                         2 * MS + 1 + 2000 * SECOND + 1 + (UINT64_C(1) << 60));
}

static void each_bound_has_its_own_bucket(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
                struct histogram histogram = { 0 };

                histogram_add(&histogram, histogram_bound_ns(i));
                assert_int_equal(counter_get(&histogram.buckets[i]), 1);
                histogram_add(&histogram, histogram_bound_ns(i) + 1);
                assert_int_equal(counter_get(&histogram.buckets[i + 1]), 1);
        }
}

static void many_equal_durations_count_as_many(void **state)
{
        struct histogram histogram = { 0 };
        uint64_t counts[HISTOGRAM_BOUNDS];

        (void)state;
        histogram_add_many(&histogram, 5 * MS, 7);
        assert_int_equal(histogram_read(&histogram, counts), 7);
        assert_int_equal(counter_get(&histogram.sum_ns), 35 * MS);
}

static void steps_are_counted_by_powers_of_two(void **state)
{
        struct step_histogram histogram = { 0 };
        uint64_t counts[STEP_BOUNDS];

        (void)state;
        step_histogram_add(&histogram, 1);
        step_histogram_add(&histogram, 2);
        step_histogram_add(&histogram, 3);
        step_histogram_add(&histogram, 4);
        step_histogram_add(&histogram, 16384);
        step_histogram_add(&histogram, 16385);
        assert_int_equal(step_histogram_read(&histogram, counts), 6);
        assert_int_equal(step_bound(STEP_BOUNDS - 1), 16384);
        assert_int_equal(counts[0], 1);
        assert_int_equal(counts[1], 2);
        assert_int_equal(counts[2], 4);
        assert_int_equal(counts[STEP_BOUNDS - 2], 4);
        assert_int_equal(counts[STEP_BOUNDS - 1], 5);
}

static void a_rate_is_that_of_the_last_ten_seconds(void **state)
{
        struct rate rate = { 0 };

        (void)state;
        for (uint64_t s = 100; s < 200; s++)
                rate_add(&rate, s * SECOND, s < 150 ? 7 : 50);
        /* nine seconds and a half, and all but the last second had their 50 */
        rate_add(&rate, 200 * SECOND, 25);
        assert_true(rate_per_s(&rate, 200 * SECOND + SECOND / 2, 0) == 475 / 9.5);
        /* the same at once after a start in this window */
        assert_true(rate_per_s(&rate, 200 * SECOND, 195 * SECOND) == 475 / 5.0);
        /* half of it is over, then all */
        assert_true(rate_per_s(&rate, 205 * SECOND, 0) == 225 / 9.0);
        assert_true(rate_per_s(&rate, 210 * SECOND, 0) == 0);
        /* A slot that is used again does not bring old events back. */
        rate_add(&rate, 216 * SECOND, 1);
        assert_true(rate_per_s(&rate, 216 * SECOND, 0) == 1 / 9.0);
}

static void a_rate_of_the_first_second_is_not_blown_up(void **state)
{
        struct rate rate = { 0 };

        (void)state;
        assert_true(rate_per_s(&rate, 5, 5) == 0);
        rate_add(&rate, 2 * MS, 3);
        assert_true(rate_per_s(&rate, 2 * MS, MS) == 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(bounds_are_five_for_each_power_of_ten),
                cmocka_unit_test(counts_are_cumulative),
                cmocka_unit_test(each_bound_has_its_own_bucket),
                cmocka_unit_test(many_equal_durations_count_as_many),
                cmocka_unit_test(steps_are_counted_by_powers_of_two),
                cmocka_unit_test(a_rate_is_that_of_the_last_ten_seconds),
                cmocka_unit_test(a_rate_of_the_first_second_is_not_blown_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
