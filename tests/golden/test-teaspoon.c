/*
 * Compares the shipped model with transformers, which read the same file by itself.
 *
 * contrib/reference/shipped.py made the logits and the greedy answers.  SOURCES is the project's
 * root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/golden/golden.h"

#define TEXTS 20u

/* The logits are no larger than 40; with f32 they must be within 1e-3 of transformers'. */
/* About three times the errors that we measured. */
static const struct nearness full_rounded = { KV_F32, 3e-2, 2e-1, 0.9, NULL },
                             half_rounded = { KV_F16, 3e-2, 2e-1, 0.9, NULL };
static const struct nearness full = { KV_F32, 2.5e-5, 1e-3, 0.9, &full_rounded },
                             half = { KV_F16, 5e-3, 5e-2, 0.9, &half_rounded };

static struct text texts[TEXTS_MAX];
static char model[512];

static void check(const char *backend, const struct nearness *near)
{
        struct sum sum = { 0 };

        texts_check(model, backend, texts, TEXTS, near, &sum);
        print_message("# %s: logits differ by %.2g of the largest at most\n", backend, sum.worst);
        assert_true(sum.clear >= near->share * sum.tokens);
}

static void ref_backend_answers_as_transformers_does(void **state)
{
        (void)state;
        check("ref", &full);
}

static void cpu_backend_answers_as_transformers_does(void **state)
{
        (void)state;
        check("cpu", &full);
}

static void cpu_backend_with_an_f16_cache_answers_nearly_the_same(void **state)
{
        (void)state;
        check("cpu", &half);
}

static int set_up(void **state)
{
        char name[512];
        FILE *in;

        (void)state;
        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", getenv("SOURCES"));
        snprintf(name, sizeof(name), "%s/tests/golden/shipped/teaspoon.txt", getenv("SOURCES"));
        in = fopen(name, "r");
        if (!in) {
                print_error("%s is not there\n", name);
                return -1;
        }
        assert_int_equal(texts_read(in, texts), TEXTS);
        fclose(in);
        return 0;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(ref_backend_answers_as_transformers_does),
                cmocka_unit_test(cpu_backend_answers_as_transformers_does),
                cmocka_unit_test(cpu_backend_with_an_f16_cache_answers_nearly_the_same),
        };

        if (!getenv("SOURCES")) {
                puts("skipped: SOURCES does not say where the goldens are");
                return 77;
        }
        return cmocka_run_group_tests(tests, set_up, NULL);
}
