#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/reader.h"

#define NODES 1000u

static char why[256];

/* Parses from memory that ends where the text ends, so that reading one more byte is noticed. */
static int parse_bytes(const char *text, size_t bytes, uint32_t nodes_max,
                       struct json_document **ret_json)
{
        char *exact = malloc(bytes + !bytes);
        int r;

        assert_non_null(exact);
        memcpy(exact, text, bytes);
        memset(why, 0, sizeof(why));
        r = json_parse(exact, bytes, nodes_max, ret_json, why, sizeof(why));
        free(exact);
        return r;
}

static struct json_document *parsed(const char *text)
{
        struct json_document *json = NULL;

        if (parse_bytes(text, strlen(text), NODES, &json))
                fail_msg("%s: %s", text, why);
        return json;
}

static const struct {
        const char *text, *message; /* must be in it */
        size_t bytes;               /* 0: as C counts them */
} faults[] = {
        { "", "byte 0: expected a value" },
        { " ", "byte 1: expected a value" },
        { "\0", "byte 0: expected a value", 1 },
        { "1\0", "byte 1: unexpected text after the value", 2 },
        { "\xef\xbb\xbf{}", "byte 0: expected a value" },
        { "nul", "byte 0: expected a value" },
        { "nulll", "byte 4: unexpected text after the value" },
        { "True", "byte 0: expected a value" },
        { "NaN", "byte 0: expected a value" },
        { "Infinity", "byte 0: expected a value" },
        { "-Infinity", "byte 1: a digit is missing in a number" },
        { "'a'", "byte 0: expected a value" },
        { "1 2", "byte 2: unexpected text after the value" },
        { "{}{", "byte 2: unexpected text after the value" },
        { "// a\n1", "byte 0: expected a value" },
        { "[1/**/]", "byte 2: expected ',' or ']'" },
        { "[", "byte 1: expected a value" },
        { "[1", "byte 2: expected ',' or ']'" },
        { "[1,", "byte 3: expected a value" },
        { "[1,]", "byte 3: expected a value" },
        { "[,1]", "byte 1: expected a value" },
        { "[1 2]", "byte 3: expected ',' or ']'" },
        { "[1}", "byte 2: expected ',' or ']'" },
        { "[}", "byte 1: expected a value" },
        { "{", "byte 1: expected a key" },
        { "{]", "byte 1: expected a key" },
        { "{a:1}", "byte 1: expected a key" },
        { "{1:1}", "byte 1: expected a key" },
        { "{\"a\"", "byte 4: expected ':'" },
        { "{\"a\" 1}", "byte 5: expected ':'" },
        { "{\"a\":", "byte 5: expected a value" },
        { "{\"a\":}", "byte 5: expected a value" },
        { "{\"a\":1", "byte 6: expected ',' or '}'" },
        { "{\"a\":1,", "byte 7: expected a key" },
        { "{\"a\":1,}", "byte 7: expected a key" },
        { "{\"a\":1]", "byte 6: expected ',' or '}'" },
        { "{\"a\":1,\"b\":2,\"a\":3}", "duplicate key 'a'" },
        { "[{\"\":{\"x\":0,\"\\u0078\":1}}]", "duplicate key 'x'" },
        { "{\"\\u001b[\":1,\"\\u001b[\":1}", "duplicate key '?['" },
        { "{\"\":1,\"\":1}", "duplicate key ''" },
        { "-", "byte 1: a digit is missing in a number" },
        { "+1", "byte 0: expected a value" },
        { ".5", "byte 0: expected a value" },
        { "01", "byte 1: unexpected text after the value" },
        { "-01", "byte 2: unexpected text after the value" },
        { "1.", "byte 2: a digit is missing in a number" },
        { "1.e1", "byte 2: a digit is missing in a number" },
        { "1e", "byte 2: a digit is missing in a number" },
        { "1e+", "byte 3: a digit is missing in a number" },
        { "0x1", "byte 1: unexpected text after the value" },
        { "1_0", "byte 1: unexpected text after the value" },
        { "\"", "byte 1: the text ends inside a string" },
        { "\"a", "byte 2: the text ends inside a string" },
        { "\"a\n\"", "byte 2: a control character" },
        { "\"\0\"", "byte 1: a control character", 3 },
        { "\"\\", "byte 2: an unknown escape" },
        { "\"\\a\"", "byte 2: an unknown escape" },
        { "\"\\\0\"", "byte 2: an unknown escape", 4 },
        { "\"\\'\"", "byte 2: an unknown escape" },
        { "\"\\U0041\"", "byte 2: an unknown escape" },
        { "\"\\u", "byte 3: \\u without" },
        { "\"\\u12\"", "byte 5: \\u without" },
        { "\"\\u12g4\"", "byte 5: \\u without" },
        { "\"\\u-123\"", "byte 3: \\u without" },
        { "\"\\udc00\"", "the second half of a surrogate pair" },
        { "\"\\ud800\"", "the first half of a surrogate pair" },
        { "\"\\ud800\\", "the first half of a surrogate pair" },
        { "\"\\ud800\\n\"", "the first half of a surrogate pair" },
        { "\"\\ud800\\ud800\"", "the first half of a surrogate pair" },
        { "\"\\ud800\\u0041\"", "the first half of a surrogate pair" },
        { "\"\x80\"", "byte 1: a string is not valid UTF-8" },
        { "\"\xc3", "byte 1: a string is not valid UTF-8" },
        { "\"\xc3\"", "byte 1: a string is not valid UTF-8" },
        { "\"\xc0\x80\"", "byte 1: a string is not valid UTF-8" },
        { "\"\xe0\x80\x80\"", "byte 1: a string is not valid UTF-8" },
        { "\"\xed\xa0\x80\"", "byte 1: a string is not valid UTF-8" },
        { "\"\xf4\x90\x80\x80\"", "byte 1: a string is not valid UTF-8" },
        { "\"\xff\"", "byte 1: a string is not valid UTF-8" },
        { "{\"\xff\":1}", "byte 2: a string is not valid UTF-8" },
        { "\x7f", "byte 0: expected a value" },
        { "[1\v]", "byte 2: expected ','" },
        { "[1\xc2\xa0]", "byte 2: expected ','" },
};

static void refuses_each_malformed_text_with_the_byte_offset(void **state)
{
        struct json_document *json = NULL;
        unsigned bad = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
                size_t bytes = faults[i].bytes ? faults[i].bytes : strlen(faults[i].text);
                int r = parse_bytes(faults[i].text, bytes, NODES, &json);

                if (r == -EINVAL && strstr(why, faults[i].message))
                        continue;
                bad++;
                print_error("%s: %d, \"%s\" does not say \"%s\"\n", faults[i].text, r, why,
                            faults[i].message);
        }
        assert_int_equal(bad, 0);
        assert_null(json);
}

static const char whole_text[] =
        " {\"a\": [1, -2.5e1, true, null, {}, []], \"b\": {\"c\": \"x\", \"d\": false}, \"\": 0}\n";

static void parses_a_text_into_a_tree(void **state)
{
        struct json_document *json = parsed(whole_text);
        uint32_t a = json_member(json, 0, "a"), b = json_member(json, 0, "b"), i, n = 0;
        static const enum json_kind kinds[] = {
                JSON_NUMBER, JSON_NUMBER, JSON_BOOL, JSON_NULL, JSON_OBJECT, JSON_ARRAY,
        };
        uint64_t whole;
        double real;
        size_t bytes;
        bool yes;

        (void)state;
        assert_int_equal(json_kind(json, 0), JSON_OBJECT);
        assert_int_equal(json_count(json, 0), 3);
        assert_null(json_key(json, 0, NULL));
        assert_int_equal(json_first(json, 0), a);
        assert_int_equal(json_next(json, a), b);
        assert_int_equal(json_next(json, json_next(json, b)), JSON_NONE);
        assert_int_equal(json_next(json, 0), JSON_NONE);
        assert_string_equal(json_key(json, a, &bytes), "a");
        assert_int_equal(bytes, 1);

        assert_int_equal(json_count(json, a), 6);
        for (i = json_first(json, a); i != JSON_NONE; i = json_next(json, i), n++) {
                assert_int_equal(json_kind(json, i), kinds[n]);
                assert_null(json_key(json, i, NULL));
        }
        assert_int_equal(n, 6);
        i = json_first(json, a);
        assert_true(json_whole(json, i, &whole) && whole == 1);
        assert_true(json_real(json, i, &real) && real == 1);
        i = json_next(json, i);
        assert_false(json_whole(json, i, &whole));
        assert_true(json_real(json, i, &real) && real == -25);
        i = json_next(json, i);
        assert_true(json_bool(json, i, &yes) && yes);
        assert_int_equal(json_first(json, json_next(json, json_next(json, i))), JSON_NONE);

        assert_string_equal(json_string(json, json_member(json, b, "c"), &bytes), "x");
        assert_int_equal(bytes, 1);
        assert_true(json_bool(json, json_member(json, b, "d"), &yes) && !yes);
        assert_true(json_whole(json, json_member(json, 0, ""), &whole) && whole == 0);
        assert_null(json_free(json));
        assert_null(json_free(NULL));
}

static void returns_nothing_for_absent_members_and_wrong_kinds(void **state)
{
        struct json_document *json = parsed(whole_text);
        uint32_t a = json_member(json, 0, "a");
        uint64_t whole = 7;
        double real = 7;
        bool yes = true;

        (void)state;
        assert_int_equal(json_member(json, 0, "c"), JSON_NONE);
        assert_int_equal(json_member(json, a, "a"), JSON_NONE);
        assert_int_equal(json_member(json, JSON_NONE, "a"), JSON_NONE);
        assert_int_equal(json_kind(json, JSON_NONE), JSON_ABSENT);
        assert_int_equal(json_count(json, JSON_NONE), 0);
        assert_int_equal(json_first(json, JSON_NONE), JSON_NONE);
        assert_int_equal(json_next(json, JSON_NONE), JSON_NONE);
        assert_null(json_key(json, JSON_NONE, NULL));
        assert_null(json_string(json, JSON_NONE, NULL));
        assert_null(json_string(json, a, NULL));
        assert_false(json_whole(json, JSON_NONE, &whole) || json_whole(json, 0, &whole));
        assert_false(json_real(json, JSON_NONE, &real) || json_real(json, 0, &real));
        assert_false(json_bool(json, JSON_NONE, &yes) || json_bool(json, 0, &yes));
        assert_true(whole == 7 && real == 7 && yes);
        json_free(json);
}

static void unescapes_strings(void **state)
{
        static const struct {
                const char *text, *string;
                size_t bytes;
        } cases[] = {
                { "\"\"", "", 0 },
                { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8 },
                { "\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac", 6 },
                { "\"\\uD834\\udd1e\"", "\xf0\x9d\x84\x9e", 4 }, /* RFC 8259, section 7 */
                { "\"\\uDBFF\\uDFFF\\uFFFF\"", "\xf4\x8f\xbf\xbf\xef\xbf\xbf", 7 },
                { "\"\\u007f\\u0080\\u07ff\\u0800\"", "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80", 8 },
                { "\"a\\u0000b\"", "a\0b", 3 },
                { "\"\x7f \xc3\xa9 \xf0\x9d\x84\x9e x\"", "\x7f \xc3\xa9 \xf0\x9d\x84\x9e x", 11 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct json_document *json = parsed(cases[i].text);
                size_t bytes;
                const char *string = json_string(json, 0, &bytes);

                assert_int_equal(bytes, cases[i].bytes);
                assert_memory_equal(string, cases[i].string, bytes + 1);
                if (strlen(cases[i].string) == bytes)
                        assert_ptr_equal(json_string(json, 0, NULL), string);
                else
                        assert_null(json_string(json, 0, NULL));
                json_free(json);
        }
}

static void does_not_match_a_key_with_a_nul_by_its_prefix(void **state)
{
        struct json_document *json = parsed("{\"a\\u0000b\": 1, \"a\": 2}");
        uint32_t first = json_first(json, 0);
        size_t bytes;

        (void)state;
        assert_int_equal(json_member(json, 0, "a"), json_next(json, first));
        assert_memory_equal(json_key(json, first, &bytes), "a\0b", 4);
        assert_int_equal(bytes, 3);
        json_free(json);
}

static void parses_numbers_exactly(void **state)
{
        static const struct {
                const char *text;
                bool is_whole, is_real;
                uint64_t whole;
                double real;
        } cases[] = {
                { "0", true, true, 0, 0 },
                { "18446744073709551615", true, true, UINT64_MAX, 18446744073709551616.0 },
                { "18446744073709551616", false, true, 0, 18446744073709551616.0 },
                { "184467440737095516150", false, true, 0, 184467440737095516160.0 },
                { "9223372036854775808", true, true, 1ull << 63, 9223372036854775808.0 },
                { "-1", false, true, 0, -1 },
                { "-0", false, true, 0, 0 },
                { "1.0", false, true, 0, 1 },
                { "1e3", false, true, 0, 1000 },
                { "1E+2", false, true, 0, 100 },
                { "25e-2", false, true, 0, 0.25 },
                { "0.5", false, true, 0, 0.5 },
                { "1e400", false, false, 0, 0 },
                { "-1e400", false, false, 0, 0 },
                { "1e-400", false, true, 0, 0 },
                { "1e99999999999999999999", false, false, 0, 0 },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct json_document *json = parsed(cases[i].text);
                uint64_t whole = 0;
                double real = 0;

                assert_int_equal(json_kind(json, 0), JSON_NUMBER);
                assert_int_equal(json_whole(json, 0, &whole), cases[i].is_whole);
                assert_int_equal(json_real(json, 0, &real), cases[i].is_real);
                assert_true(whole == cases[i].whole && real == cases[i].real);
                json_free(json);
        }
}

static void refuses_input_truncated_at_any_byte(void **state)
{
        static const char text[] =
                "{\"k\\u00e9\\ud834\\udd1e\xc3\xa9\": [1.5e-3, null, true, false, {\"a\": -7}]}";
        struct json_document *json = NULL;

        (void)state;
        for (size_t n = 0; n < sizeof(text) - 1; n++) {
                assert_int_equal(parse_bytes(text, n, NODES, &json), -EINVAL);
                assert_true(why[0]);
        }
        assert_null(json);
        assert_int_equal(parse_bytes(text, sizeof(text) - 1, NODES, &json), 0);
        json_free(json);
}

static void limits_the_nesting_depth(void **state)
{
        static char text[2 << 20];
        struct json_document *json = NULL;

        (void)state;
        for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
                memset(text, '[', depth);
                memset(text + depth, ']', depth);
                assert_int_equal(parse_bytes(text, 2 * depth, NODES, &json),
                                 depth > JSON_DEPTH_MAX ? -EINVAL : 0);
                json = json_free(json);
        }
        assert_non_null(strstr(why, "byte 64: nested deeper than 64"));
        memset(text, '[', sizeof(text));
        assert_int_equal(parse_bytes(text, sizeof(text), UINT32_MAX, &json), -EINVAL);
        assert_null(json);
}

static void limits_the_number_of_values(void **state)
{
        struct json_document *json = NULL;

        (void)state;
        assert_int_equal(parse_bytes("[1,{\"a\":2}]", 11, 4, &json), 0);
        json = json_free(json);
        assert_int_equal(parse_bytes("[1,{\"a\":2}]", 11, 3, &json), -EINVAL);
        assert_non_null(strstr(why, "byte 9: more than 3 values"));
        assert_int_equal(parse_bytes("1", 1, 0, &json), -EINVAL);
        assert_null(json);
}

static void cuts_the_message_to_a_short_buffer(void **state)
{
        struct json_document *json = NULL;
        char small[8];

        (void)state;
        for (size_t n = 1; n <= sizeof(small); n++) {
                memset(small, 'x', sizeof(small));
                assert_int_equal(json_parse("[1,]", 4, NODES, &json, small, n), -EINVAL);
                assert_int_equal(strlen(small), n - 1);
        }
        assert_null(json);
}

#define KEYS 300000u

/* As a large vocabulary is, and long beginnings in common; it would take minutes by pairs. */
static void parses_an_object_of_300000_keys_quickly(void **state)
{
        static char text[KEYS * 32];
        struct json_document *json = NULL;
        uint64_t whole;
        size_t n = 0;

        (void)state;
        for (uint32_t i = 0; i < KEYS; i++)
                n += (size_t)sprintf(text + n, "%c\"the same %06u\":%u", i ? ',' : '{', i, i);
        text[n] = '}';
        assert_int_equal(parse_bytes(text, n + 1, KEYS + 1, &json), 0);
        assert_int_equal(json_count(json, 0), KEYS);
        assert_true(json_whole(json, json_member(json, 0, "the same 299999"), &whole));
        assert_int_equal(whole, KEYS - 1);
        json = json_free(json);

        n += (size_t)sprintf(text + n, ",\"the same 000000\":0}");
        assert_int_equal(parse_bytes(text, n, KEYS + 2, &json), -EINVAL);
        assert_string_equal(why, "duplicate key 'the same 000000'");
        assert_null(json);
}

static void an_object_of_a_name_may_have_a_key_twice(void **state)
{
        static const char good[] = "{\"v\":{\"a\":1,\"a\":2},\"x\":1}";
        static const char *const bad[] = { "{\"v\":{},\"v\":1}", "{\"w\":{\"a\":1,\"a\":2}}",
                                           "{\"v\":{\"b\":{\"a\":1,\"a\":2}}}" };
        struct json_document *json = NULL;

        (void)state;
        assert_int_equal(json_parse_repeating(good, strlen(good), "v", 9, &json, why, sizeof(why)),
                         0);
        assert_int_equal(json_count(json, json_member(json, 0, "v")), 2);
        json_free(json);
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                assert_int_equal(json_parse_repeating(bad[i], strlen(bad[i]), "v", 9, &json, why,
                                                      sizeof(why)),
                                 -EINVAL);
                assert_non_null(strstr(why, "duplicate key"));
        }
}

static void numbers_of_python_have_no_value_and_are_refused_elsewhere(void **state)
{
        static const char good[] = "[NaN,Infinity,-Infinity,-1,{\"a\":NaN }]";
        static const char *const bad[] = { "-NaN", "+Infinity",  "nan",         "Inf",
                                           "NaN1", "- Infinity", "[Infinity,]", "{NaN:1}",
                                           "-",    "Nan",        "-Infinit" };
        struct json_document *json = NULL;
        uint64_t whole;
        double real;

        (void)state;
        assert_int_equal(json_parse(good, strlen(good), 9, &json, why, sizeof(why)), -EINVAL);
        assert_string_equal(why, "byte 1: expected a value");
        assert_int_equal(json_parse_python(good, strlen(good), 9, &json, why, sizeof(why)), 0);
        assert_int_equal(json_count(json, 0), 5);
        for (uint32_t i = 1; i < 4; i++) {
                assert_int_equal(json_kind(json, i), JSON_NUMBER);
                assert_false(json_real(json, i, &real));
                assert_false(json_whole(json, i, &whole));
        }
        assert_string_equal(json_number(json, 3), "-Infinity");
        assert_true(json_real(json, 4, &real) && real == -1);
        json_free(json);
        json = NULL;
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                assert_int_equal(
                        json_parse_python(bad[i], strlen(bad[i]), 9, &json, why, sizeof(why)),
                        -EINVAL);
                assert_null(json);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parses_a_text_into_a_tree),
                cmocka_unit_test(returns_nothing_for_absent_members_and_wrong_kinds),
                cmocka_unit_test(unescapes_strings),
                cmocka_unit_test(does_not_match_a_key_with_a_nul_by_its_prefix),
                cmocka_unit_test(parses_numbers_exactly),
                cmocka_unit_test(numbers_of_python_have_no_value_and_are_refused_elsewhere),
                cmocka_unit_test(refuses_each_malformed_text_with_the_byte_offset),
                cmocka_unit_test(refuses_input_truncated_at_any_byte),
                cmocka_unit_test(limits_the_nesting_depth),
                cmocka_unit_test(limits_the_number_of_values),
                cmocka_unit_test(cuts_the_message_to_a_short_buffer),
                cmocka_unit_test(parses_an_object_of_300000_keys_quickly),
                cmocka_unit_test(an_object_of_a_name_may_have_a_key_twice),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
