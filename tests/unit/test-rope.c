#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/model/rope.h"
#include "tests/unit/rope-table.h"

#define NEAR    1.2e-7 /* the error of rounding to a float */
#define CASES   (sizeof(rope_cases) / sizeof(*rope_cases))
#define CORNERS (sizeof(stretches) / sizeof(*stretches))

static void every_scaling_matches_published_frequencies(void **state)
{
        float got[64];

        (void)state;
        for (size_t c = 0; c < CASES; c++) {
                const struct rope_case *one = &rope_cases[c];

                rope_frequencies(&one->shape, 0, NULL, got);
                for (uint32_t i = 0; i < one->shape.dims / 2; i++)
                        if (!(fabs((double)got[i] / one->speeds[i] - 1) <= NEAR))
                                fail_msg("%s: pair %u turns at %.9g, not %.9g", one->name, i,
                                         (double)got[i], one->speeds[i]);
        }
}

static void a_frequency_table_of_the_file_applies_on_top(void **state)
{
        float slower[64], got[64];

        (void)state;
        for (size_t c = 0; c < CASES; c++) {
                const struct rope_case *one = &rope_cases[c];

                for (uint32_t i = 0; i < 64; i++)
                        got[i] = slower[i] = 1 + (float)i / 4;
                rope_frequencies(&one->shape, 0, got, got); /* in place */
                for (uint32_t i = 0; i < one->shape.dims / 2; i++)
                        assert_true(fabs((double)got[i] * (double)slower[i] / one->speeds[i] - 1) <=
                                    2 * NEAR);
        }
}

static void yarn_scales_attention_by_the_log_of_the_factor(void **state)
{
        (void)state;
        for (size_t i = 0; i < CORNERS; i++)
                assert_true(fabs(rope_attention(stretches[i].factor, stretches[i].mscale) -
                                 stretches[i].attention) < 1e-14);
}

static void zero_dimensions_write_nothing(void **state)
{
        struct rope_shape none = { .base = 10000 };
        float untouched = 3;

        (void)state;
        rope_frequencies(&none, 0, NULL, &untouched);
        assert_true(untouched == 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_scaling_matches_published_frequencies),
                cmocka_unit_test(a_frequency_table_of_the_file_applies_on_top),
                cmocka_unit_test(yarn_scales_attention_by_the_log_of_the_factor),
                cmocka_unit_test(zero_dimensions_write_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
