/*
 * Opens and renders a template, each time with another allocation that fails: the call returns a
 * sentence and -ENOMEM, and leaves nothing behind.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/text/template.h"
#include "tests/e2e/fault-injection.h"
#include "tests/e2e/daemon-fixture.h"

#define TEMPLATE                                                                                   \
        "{% macro m(a, b=1) %}{{ a|upper }}{{ caller() if caller else b }}{% endmacro %}"          \
        "{% for x in l|sort if x %}{% set y %}{{ m(x) }}{% endset %}{{ y|tojson }}"                \
        "{{ loop.index ~ s.split(' ')|join(s) }}{% endfor %}{{ {'a': l, 'b': [1, 2][::-1]} }}"     \
        "{% call m(s) %}x{% endcall %}{{ '%s' % s }}{{ namespace(a=1).a }}"
#define VALUES "{\"l\": [\"b\", \"a\", \"\"], \"s\": \"one two\"}"
#define MOST   2000u

/* Returns 0, or the error of the failed step. */
static int go(void)
{
        const struct template_limits limits = template_limits(1u << 10);
        const struct tm day = { .tm_year = 125, .tm_mday = 1 };
        struct template *template = NULL;
        struct rendered rendered = { .text = NULL };
        struct arena *arena = NULL;
        struct json_document *json = NULL;
        struct value globals;
        char why[256] = "";
        int r = template_open(TEMPLATE, strlen(TEMPLATE), &template, why, sizeof(why));

        if (!r)
                r = json_parse(VALUES, strlen(VALUES), 100, &json, why, sizeof(why));
        if (!r)
                r = arena_new(1u << 20, &arena);
        if (!r)
                r = value_from_json(arena, json, 0, TEXT_GIVEN, &globals);
        if (!r) {
                *why = '\0';
                r = template_render(template, globals, &limits, &day, &rendered, why, sizeof(why));
                assert_true(!r == !*why);
        }
        rendered_free(&rendered);
        arena_free(arena);
        json_free(json);
        template_close(template);
        return r;
}

static void rendering_a_template_survives_each_failed_allocation(void **state)
{
        uint32_t n;

        (void)state;
        for (n = 0; n < MOST; n++) {
                const struct fault_plan plan = { .kind = FAULT_ALLOC, .first = n, .count = 1 };
                uint32_t failed;
                int r;

                faults_arm(&plan);
                r = go();
                failed = faults_failed();
                faults_disarm();
                if (!failed) {
                        assert_int_equal(r, 0);
                        break;
                }
                assert_int_equal(r, -ENOMEM);
        }
        assert_in_range(n, 8, MOST - 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rendering_a_template_survives_each_failed_allocation),
        };

        faults_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
