/*
 * Behaviour that Jinja2 does not define: the origin of text, refusals by name, and budgets.
 */
#include "tests/unit/template-rig.h"

#include <pthread.h>
#include <time.h>

/* ---- whose text it is ---- */

/* Spans as text: text from the values stands in angle brackets. */
static void marks_are(const char *text, const char *values, const char *expected)
{
        char got[1024] = "";
        size_t at = 0, used = 0;
        struct outcome out;

        rig_run(text, values, &out);
        if (out.r)
                fail_msg("%s: %s", text, out.why);
        for (size_t i = 0; i < out.rendered.span_count; i++) {
                const struct rendered_span *s = &out.rendered.spans[i];
                bool given = s->origin == TEXT_GIVEN;

                assert_true(s->bytes);
                assert_true(!i || s[-1].origin != s->origin);
                used += (size_t)snprintf(got + used, sizeof(got) - used, "%s%.*s%s",
                                         given ? "<" : "", (int)s->bytes, out.rendered.text + at,
                                         given ? ">" : "");
                at += s->bytes;
        }
        assert_int_equal(at, out.rendered.bytes);
        assert_string_equal(got, expected);
        rendered_free(&out.rendered);
}

static void distinguishes_template_text_from_untrusted_values(void **state)
{
        const char *v =
                "{\"u\": \"Ab cD\", \"l\": [\"x\", \"y\"], \"m\": {\"k\": \"v\"}, \"n\": 5}";

        (void)state;
        marks_are("[{{ u }}]", v, "[<Ab cD>]");
        marks_are("{{ '[' + u + ']' }}", v, "[<Ab cD>]");
        marks_are("{{ '[' ~ u ~ n ~ ']' }}", v, "[<Ab cD>5]");
        marks_are("{{ ('[' + u + ']')[0:3] }}", v, "[<Ab>");
        marks_are("{{ ('[' + u + ']')[::-1] }}", v, "]<Dc bA>[");
        marks_are("{{ ('  ' + u + ']  ').strip() }}", v, "<Ab cD>]");
        marks_are("{{ ('[' + u + ']')|upper }}", v, "[<AB CD>]");
        marks_are("{{ ('[' + u)|replace('b', '-') }}", v, "[<A>-< cD>");
        marks_are("{{ ('a b')|replace(' ', u) }}", v, "a<Ab cD>b");
        marks_are("{{ l|join('-') }}", v, "<x>-<y>");
        marks_are("{{ ('a' + u).split(' ')|join('+') }}", v, "a<Ab>+<cD>");
        marks_are("{% for c in 'a' + l[0] %}{{ c }}{% endfor %}", v, "a<x>");
        marks_are("{% set x %}[{{ u }}]{% endset %}{{ x }}", v, "[<Ab cD>]");
        marks_are("{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m(u) }}", v, "[<Ab cD>]");
        marks_are("{{ '%s!' % u }}{{ '%s'|format(u) }}", v, "<Ab cD>!<Ab cD>");
        marks_are("{{ (u + '\\n.')|indent(2) }}", v, "<Ab cD>\n  .");
        marks_are("{{ u * 2 }}{{ 'a' * 2 }}", v, "<Ab cDAb cD>aa");
        marks_are("{% for k, w in m.items() %}{{ k }}={{ w }}{% endfor %}", v, "<k>=<v>");
        marks_are("{{ n }}{{ true }}{{ none }}{{ 1.5 }}", v, "5TrueNone1.5");
}

static void text_made_of_both_origins_is_untrusted_as_a_whole(void **state)
{
        const char *v = "{\"u\": \"a\", \"m\": {\"k\": 1}}";

        (void)state;
        marks_are("{{ {'x': u}|tojson }}.", v, "<{\"x\": \"a\"}>.");
        marks_are("{{ {'x': 'y'}|tojson }}.", v, "{\"x\": \"y\"}.");
        marks_are("{{ m }}{{ [1, 'a'] }}", v, "<{'k': 1}>[1, 'a']");
        marks_are("{{ ['b', u] }}{{ m|tojson }}", v, "<['b', 'a']{\"k\": 1}>");
}

static void values_marked_as_trusted_count_as_template_text(void **state)
{
        static const char text[] = "{{ bos_token }}{{ '<|' + role + '|>' }}";
        const struct template_limits limits = template_limits(0);
        struct value globals, word;
        struct arena *arena;
        struct outcome out;

        (void)state;
        assert_int_equal(arena_new(1u << 20, &arena), 0);
        assert_int_equal(value_map(arena, 2, &globals), 0);
        assert_int_equal(value_string(arena, "<s>", 3, TEXT_OURS, &word), 0);
        assert_int_equal(value_map_name(arena, &globals, "bos_token", word), 0);
        assert_int_equal(value_string(arena, "user", 4, TEXT_OURS, &word), 0);
        assert_int_equal(value_map_name(arena, &globals, "role", word), 0);
        assert_int_equal(value_map_end(arena, &globals), 0);
        rig_render(text, strlen(text), globals, &limits, &out);
        assert_int_equal(out.r, 0);
        assert_string_equal(out.rendered.text, "<s><|user|>");
        assert_int_equal(out.rendered.span_count, 1);
        assert_int_equal(out.rendered.spans[0].origin, TEXT_OURS);
        rendered_free(&out.rendered);
        arena_free(arena);
}

/* ---- refusals ---- */

static void refused(const char *text, bool opened, const char *why)
{
        struct outcome out;

        rig_run(text, "{\"l\": [1], \"s\": \"a\", \"big\": 9223372036854775807}", &out);
        assert_int_equal(out.r, -EINVAL);
        assert_int_equal(out.opened, opened);
        assert_string_equal(out.why, why);
}

static void refuses_an_unknown_feature_by_name_at_parse_time(void **state)
{
        (void)state;
        refused("a\n\n{{ s|foo }}", false, "filter 'foo' is not supported (line 3)");
        refused("{{ s is foo }}", false, "test 'foo' is not supported (line 1)");
        refused("{% include 'x' %}", false, "tag 'include' is not supported (line 1)");
        refused("\n{% for x in l recursive %}", false,
                "a 'recursive' loop is not supported (line 2)");
        refused("{% if s %}", false, "expected 'endif', found the end of the template (line 1)");
        refused("{% if %}", false, "expected an expression, found '%}' (line 1)");
        refused("{{ s t }}", false, "expected '}}', found 't' (line 1)");
        refused("{{ [1 2] }}", false, "expected ',', found an integer (line 1)");
        refused("{% 5 %}", false, "expected a name, found an integer (line 1)");
}

static void refuses_an_unknown_feature_by_name_at_run_time(void **state)
{
        (void)state;
        refused("\n{{ s.format(1) }}", true,
                "method of strings 'format' is not supported (line 2)");
        refused("{{ l.append(1) }}", true, "templates may not change a list (line 1)");
        refused("{{ x.y }}", true, "'x' is undefined (line 1)");
        refused("{{ s.y.z }}", true, "a str has no attribute 'y' (line 1)");
        refused("{{ s['it\\'s'].z }}", true, "a str has no attribute 'it\\'s' (line 1)");
        refused("{{ s['a\\\\b'].z }}", true, "a str has no attribute 'a\\\\b' (line 1)");
        refused("{{ lipsum() }}", true, "function 'lipsum' is not supported (line 1)");
        refused("{{ {((1,), 2): 1} }}", true,
                "this kind of tuple is not supported as a key (line 1)");
        refused("{{ big + 1 }}", true, "an integer has more than 64 bits (line 1)");
        refused("{{ big * 2 }}", true, "an integer has more than 64 bits (line 1)");
        refused("{{ 2 ** 64 }}", true, "an integer has more than 64 bits (line 1)");
        refused("{{ l|map('foo')|list }}", true, "filter 'foo' is not supported (line 1)");
}

static void raise_exception_passes_its_message_on(void **state)
{
        (void)state;
        refused("{{ raise_exception('Roles must alternate!') }}", true, "Roles must alternate!");
}

/* ---- budgets ---- */

/* Ends with that sentence's beginning, and soon. */
static void spends(const char *text, const char *why)
{
        struct timespec begin, end;
        struct outcome out;
        double seconds;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        rig_run(text, "{}", &out);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        seconds =
                (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
        if (!out.r || strncmp(out.why, why, strlen(why)) != 0)
                fail_msg("%.60s: '%s', not '%s'", text, out.why, why);
        if (seconds > 10)
                fail_msg("%.60s: %f s", text, seconds);
        rendered_free(&out.rendered);
}

#define FUEL   "the template ran out of fuel"
#define MEMORY "the template ran out of memory"
#define OUTPUT "the template's output is too long"
#define MANY   "{% for a in range(100000) %}{% for b in range(100000) %}"
#define DONE   "{% endfor %}{% endfor %}"

static void a_template_that_works_too_long_runs_out_of_fuel(void **state)
{
        (void)state;
        spends(MANY DONE, FUEL);
        spends("{{ 'x' * 10000000000 }}", FUEL);
        spends("{{ [1] * 1000000000 }}", FUEL);
        spends("{% set n = namespace(s='x' * 100000) %}" MANY "{% if 'y' in n.s %}{% endif %}" DONE,
               FUEL);
        spends("{% set s = 'ab' * 50000 %}" MANY "{{ s.rfind('b' * 1000) }}" DONE, FUEL);
        spends("{% set s = 'ab' * 50000 %}" MANY "{% set x = s.strip('abcdef') %}" DONE, FUEL);
        spends("{% set s = 'ab' * 50000 %}" MANY "{% set x = s|length %}" DONE, FUEL);
        spends("{% set l = range(100000)|list %}" MANY "{% set x = l|sort %}" DONE, FUEL);
        spends("{% set l = range(100000)|list %}" MANY "{% set x = -1 in l %}" DONE, FUEL);
        spends("{{ range(100000)|unique|list|length }}", FUEL);
        spends("{{ 'x'.center(10000000000) }}", FUEL);
        spends("{% set k = 'x' * 100000 %}{{ dict([[k, 1]] * 100000) }}", FUEL);
        spends("{% set n = namespace(t=(1,)) %}{% for i in range(60) %}{% set n.t = (n.t, n.t) %}"
               "{% endfor %}{{ n.t == n.t[0:2] }}",
               FUEL);
        spends("{{ '%1000s' % 'x' * 100000000 }}", FUEL);
}

static void a_template_that_allocates_too_much_runs_out_of_memory(void **state)
{
        (void)state;
        spends("{% set n = namespace(s='xxxxxxxxxxxxxxxx') %}{% for a in range(64) %}"
               "{% set n.s = n.s + n.s %}{% endfor %}",
               MEMORY);
        spends("{% set n = namespace(s='x') %}{% for a in range(100000) %}"
               "{% set n.s = n.s + 'xxxxxxxxxx' %}{% endfor %}",
               MEMORY);
}

static void limits_the_output_of_a_template(void **state)
{
        (void)state;
        spends("{% for a in range(100000) %}{{ 'x' * 1000 }}{% endfor %}", OUTPUT);
        spends("{{ 'x' * 2000000 }}", OUTPUT);
}

static void limits_the_depth_of_macros_and_values_and_the_size_of_ranges(void **state)
{
        (void)state;
        spends("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "macros call each other deeper");
        spends("{% set n = namespace(l=[]) %}{% for a in range(1000) %}{% set n.l = [n.l] %}"
               "{% endfor %}",
               "values nest deeper than");
        spends("{{ range(1000000000) }}", "a range has more than 100000 numbers");
}

/* `unit`, many times. */
static char *repeated(const char *begin, const char *unit, size_t times, const char *end)
{
        size_t bytes = strlen(unit), first = strlen(begin);
        char *text = malloc(first + bytes * times + strlen(end) + 1);

        assert_non_null(text);
        memcpy(text, begin, first);
        for (size_t i = 0; i < times; i++)
                memcpy(text + first + i * bytes, unit, bytes);
        memcpy(text + first + times * bytes, end, strlen(end) + 1);
        return text;
}

/* On a thread with little stack. */
static void *open_nested(void *state)
{
        static const char *const units[] = {
                "(",
                "[",
                "{1:",
                "a[",
                "f(",
                "a|default(",
                "- ",
                "not ",
                "1 if 1 else ",
                "1 if 2 if ",
                "{% if 1 %}",
                "{% for a in b %}",
                "{% set a %}",
                "{% macro a() %}",
        };

        (void)state;
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
                char *text = repeated(units[i][1] == '%' ? "" : "{{ ", units[i], 3000, "");
                struct template *template;
                char why[256] = "";

                assert_int_equal(template_open(text, strlen(text), &template, why, sizeof(why)),
                                 -EINVAL);
                if (!strstr(why, "deeper than"))
                        fail_msg("%s: %s", units[i], why);
                free(text);
        }
        return NULL;
}

static void refuses_deep_nesting_without_overflowing_a_small_stack(void **state)
{
        pthread_attr_t attributes;
        pthread_t thread;

        (void)state;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 1u << 20);
        assert_int_equal(pthread_create(&thread, &attributes, open_nested, NULL), 0);
        pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
}

static void renders_a_long_template_without_nesting(void **state)
{
        char *many = repeated("", "{% if x %}a{% elif y %}b{% endif %}{{ 1 + 1 }}", 2000, "");
        char *sum = repeated("{{ ", "1 + ", 3000, "1 }}");
        struct outcome out;

        (void)state;
        rig_run(many, "{\"y\": 1}", &out);
        assert_int_equal(out.r, 0);
        assert_int_equal(out.rendered.bytes, 4000);
        rendered_free(&out.rendered);
        rig_run(sum, "{}", &out);
        assert_int_equal(out.r, 0);
        assert_string_equal(out.rendered.text, "3001");
        rendered_free(&out.rendered);
        free(sum);
        free(many);
}

static void refuses_a_template_that_is_too_long_or_not_utf8(void **state)
{
        char *text = repeated("", "x", TEMPLATE_BYTES_MAX + 1, ""), why[256];
        struct template *template;

        (void)state;
        assert_int_equal(template_open(text, strlen(text), &template, why, sizeof(why)), -EINVAL);
        assert_string_equal(why, "the template has 1048577 bytes, the limit is 1048576");
        assert_int_equal(template_open("a\xFF", 2, &template, why, sizeof(why)), -EINVAL);
        assert_string_equal(why, "the template is not valid UTF-8 at byte 1");
        free(text);
}

static void passes_invalid_utf8_values_through(void **state)
{
        static const char text[] = "{{ s }}{{ s|upper }}{{ s[::-1] }}{{ s|length }}{{ s|tojson }}";
        const struct template_limits limits = template_limits(16);
        struct value globals, s;
        struct arena *arena;
        struct outcome out;

        (void)state;
        assert_int_equal(arena_new(1u << 20, &arena), 0);
        assert_int_equal(value_map(arena, 1, &globals), 0);
        assert_int_equal(value_string(arena, "a\xFF\0\xE2\x82", 5, TEXT_GIVEN, &s), 0);
        assert_int_equal(value_map_name(arena, &globals, "s", s), 0);
        assert_int_equal(value_map_end(arena, &globals), 0);
        rig_render(text, strlen(text), globals, &limits, &out);
        assert_int_equal(out.r, 0);
        assert_memory_equal(out.rendered.text,
                            "a\xFF\0\xE2\x82"
                            "A\xFF\0\xE2\x82",
                            10);
        rendered_free(&out.rendered);
        arena_free(arena);
}

/* ---- threads ---- */

#define THREADS 4u
#define TURNS   50u

struct shared {
        const struct template *template;
        struct value globals;
};

static void *render_often(void *state)
{
        const struct template_limits limits = template_limits(64);
        const struct shared *shared = state;
        struct rendered rendered;
        char why[256];

        for (unsigned i = 0; i < TURNS; i++) {
                assert_int_equal(template_render(shared->template, shared->globals, &limits,
                                                 &rig_day, &rendered, why, sizeof(why)),
                                 0);
                assert_string_equal(rendered.text, "[a][b]{\"l\": [\"a\", \"b\"]}");
                rendered_free(&rendered);
        }
        return NULL;
}

static void several_threads_can_render_one_template_at_once(void **state)
{
        static const char text[] =
                "{% macro m(x) %}[{{ x }}]{% endmacro %}{% set n = namespace() %}"
                "{% for x in l %}{% set n.x = x %}{{ m(n.x) }}{% endfor %}"
                "{{ {'l': l}|tojson }}";
        static const char values[] = "{\"l\": [\"a\", \"b\"]}";
        pthread_t threads[THREADS];
        struct template *template;
        struct shared shared;
        struct arena *arena;
        char why[256];

        (void)state;
        assert_int_equal(template_open(text, strlen(text), &template, why, sizeof(why)), 0);
        assert_int_equal(arena_new(1u << 20, &arena), 0);
        rig_values(arena, values, strlen(values), &shared.globals);
        shared.template = template;
        for (unsigned i = 0; i < THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, render_often, &shared), 0);
        for (unsigned i = 0; i < THREADS; i++)
                pthread_join(threads[i], NULL);
        arena_free(arena);
        template_close(template);
}

/* ---- values ---- */

static void the_last_value_of_a_duplicate_key_wins(void **state)
{
        struct value map, key;
        struct arena *arena;
        char name[8];

        (void)state;
        assert_int_equal(arena_new(1u << 20, &arena), 0);
        assert_int_equal(value_map(arena, 40, &map), 0);
        for (int i = 0; i < 40; i++) {
                snprintf(name, sizeof(name), "k%d", i % 20);
                assert_int_equal(value_map_name(arena, &map, name, value_integer(i)), 0);
        }
        assert_int_equal(value_map_end(arena, &map), VALUE_E_TWICE);
        assert_int_equal(map.map->count, 20);
        assert_int_equal(value_member(map, "k0")->integer, 20);
        assert_int_equal(value_member(map, "k19")->integer, 39);
        assert_int_equal(map.map->entries[0].value.integer, 20);
        assert_null(value_member(map, "k20"));
        assert_null(value_member(value_none(), "k20"));
        key = value_integer(1);
        assert_null(value_map_find(map.map, key));
        arena_free(arena);
}

static void keeps_integers_and_floats_of_json_distinct(void **state)
{
        static const char bad[] = "[1e999]", large[] = "[9223372036854775808]";
        struct arena *arena;
        struct outcome out;
        struct value value;
        struct json_document *json;
        char why[128];

        (void)state;
        rig_run("{{ l }}", "{\"l\": [1, -5, 1.0, 1e2, -0, 9223372036854775807]}", &out);
        assert_string_equal(out.rendered.text, "[1, -5, 1.0, 100.0, 0, 9223372036854775807]");
        rendered_free(&out.rendered);
        assert_int_equal(arena_new(1u << 20, &arena), 0);
        assert_int_equal(json_parse(bad, strlen(bad), 9, &json, why, sizeof(why)), 0);
        assert_int_equal(value_from_json(arena, json, 0, TEXT_GIVEN, &value), -ERANGE);
        json_free(json);
        assert_int_equal(json_parse(large, strlen(large), 9, &json, why, sizeof(why)), 0);
        assert_int_equal(value_from_json(arena, json, 0, TEXT_GIVEN, &value), -ERANGE);
        json_free(json);
        arena_free(arena);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(distinguishes_template_text_from_untrusted_values),
                cmocka_unit_test(text_made_of_both_origins_is_untrusted_as_a_whole),
                cmocka_unit_test(values_marked_as_trusted_count_as_template_text),
                cmocka_unit_test(refuses_an_unknown_feature_by_name_at_parse_time),
                cmocka_unit_test(refuses_an_unknown_feature_by_name_at_run_time),
                cmocka_unit_test(raise_exception_passes_its_message_on),
                cmocka_unit_test(a_template_that_works_too_long_runs_out_of_fuel),
                cmocka_unit_test(a_template_that_allocates_too_much_runs_out_of_memory),
                cmocka_unit_test(limits_the_output_of_a_template),
                cmocka_unit_test(limits_the_depth_of_macros_and_values_and_the_size_of_ranges),
                cmocka_unit_test(refuses_deep_nesting_without_overflowing_a_small_stack),
                cmocka_unit_test(renders_a_long_template_without_nesting),
                cmocka_unit_test(refuses_a_template_that_is_too_long_or_not_utf8),
                cmocka_unit_test(passes_invalid_utf8_values_through),
                cmocka_unit_test(several_threads_can_render_one_template_at_once),
                cmocka_unit_test(the_last_value_of_a_duplicate_key_wins),
                cmocka_unit_test(keeps_integers_and_floats_of_json_distinct),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
