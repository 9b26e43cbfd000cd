#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "daemon/rope.h"
#include "tests/unit/rope-table.h"

#define NEAR    1.2e-7 /* the error of rounding to a float */
#define CASES   (sizeof(rope_cases) / sizeof(*rope_cases))
#define CORNERS (sizeof(stretches) / sizeof(*stretches))

static void every_kind_of_scaling_is_as_published(void **state)
{
        float got[64];

        (void)state;
        for (size_t c = 0; c < CASES; c++) {
                const struct rope_case *one = &rope_cases[c];

                rope_frequencies(&one->shape, NULL, got);
                for (uint32_t i = 0; i < one->shape.dims / 2; i++)
                        if (!(fabs((double)got[i] / one->speeds[i] - 1) <= NEAR))
                                fail_msg("%s: pair %u turns at %.9g, not %.9g", one->name, i,
                                         (double)got[i], one->speeds[i]);
        }
}

static void a_table_of_the_file_slows_on_top(void **state)
{
        float slower[64], got[64];

        (void)state;
        for (size_t c = 0; c < CASES; c++) {
                const struct rope_case *one = &rope_cases[c];

                for (uint32_t i = 0; i < 64; i++)
                        got[i] = slower[i] = 1 + (float)i / 4;
                rope_frequencies(&one->shape, got, got); /* in place */
                for (uint32_t i = 0; i < one->shape.dims / 2; i++)
                        assert_true(fabs((double)got[i] * (double)slower[i] / one->speeds[i] - 1) <=
                                    2 * NEAR);
        }
}

static void yarn_sharpens_by_the_logarithm_of_the_stretch(void **state)
{
        (void)state;
        for (size_t i = 0; i < CORNERS; i++)
                assert_true(fabs(rope_attention(stretches[i].factor, stretches[i].mscale) -
                                 stretches[i].attention) < 1e-14);
}

static void no_dims_are_no_speeds(void **state)
{
        struct rope_shape none = { .base = 10000 };
        float untouched = 3;

        (void)state;
        rope_frequencies(&none, NULL, &untouched);
        assert_true(untouched == 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_kind_of_scaling_is_as_published),
                cmocka_unit_test(a_table_of_the_file_slows_on_top),
                cmocka_unit_test(yarn_sharpens_by_the_logarithm_of_the_stretch),
                cmocka_unit_test(no_dims_are_no_speeds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
