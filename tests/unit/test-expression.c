/*
 * Regular expressions: which ones are refused, and what reading a text costs.
 *
 * tests/golden/test-expressions.c compares their matches with Oniguruma's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/text/expression.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void check_refusal(const char *pattern, const char *wanted)
{
        struct expression *expression = NULL;
        char why[256] = "";
        int r = expression_open(pattern, &expression, why, sizeof(why));

        if (r != -EINVAL || strcmp(why, wanted))
                fail_msg("%.80s: %d, '%s', not '%s'", pattern, r, why, wanted);
        assert_null(expression);
}

static void check_refusals(const char *const (*cases)[2], size_t count)
{
        for (size_t i = 0; i < count; i++)
                check_refusal(cases[i][0], cases[i][1]);
}

/* The text of the first match; NULL: there is none. */
static void check_match(const char *pattern, const char *text, const char *wanted)
{
        struct expression_search search = { 0 };
        struct expression *expression;
        size_t begin = 0, end = 0;
        uint64_t steps = 0;
        char why[256];
        int r;

        if (expression_open(pattern, &expression, why, sizeof(why)))
                fail_msg("%s: %s", pattern, why);
        assert_int_equal(expression_begin(&search, expression, text, strlen(text), &steps), 0);
        r = expression_next(&search, 0, &begin, &end);
        if (r != (wanted ? 1 : 0) ||
            (r && (strlen(wanted) != end - begin || memcmp(wanted, text + begin, end - begin))))
                fail_msg("%s: %d, '%.*s', not '%s'", pattern, r, (int)(end - begin), text + begin,
                         wanted ? wanted : "no match");
        expression_search_deinit(&search);
        expression_close(expression);
}

/* `head`, then `part` so often, then `tail`; freed by the next call. */
static const char *repeated(const char *head, const char *part, unsigned times, const char *tail)
{
        static char *text;
        char *to;

        free(text);
        text = malloc(strlen(head) + times * strlen(part) + strlen(tail) + 1);
        assert_non_null(text);
        to = stpcpy(text, head);
        while (times--)
                to = stpcpy(to, part);
        strcpy(to, tail);
        return text;
}

/* ---- refusals ---- */

static void refuses_what_an_automaton_cannot_do(void **state)
{
        static const char *const cases[][2] = {
                { "(a)\\1", "\\1 is not supported" },
                { "(?<n>a)\\k<n>", "\\k is not supported" },
                { "a\\G", "\\G is not supported" },
                { "a\\Kb", "\\K is not supported" },
                { "\\X", "\\X is not supported" },
                { "(?>a+)b", "an atomic group (?>...) is not supported" },
                { "(?(1)a|b)", "the group (?( is not supported" },
                { "(?~a)", "the group (?~ is not supported" },
                { "(?x) a", "the group (?x is not supported" },
                { "(?:ab)++", "a possessive quantifier behind a group is not supported" },
                { "(?<=ab)c", "a look behind of more than one character is not supported" },
                { "(?<!a|b)c", "a look behind of more than one character is not supported" },
                { "(?<=^)c", "a look behind of more than one character is not supported" },
                { "(?=aa)(?=ab)(?=ac)(?=ad)a",
                  "it looks ahead over more than one character 4 times; more than 3 are not "
                  "supported" },
                { "(?:a|\\b){2}", "a part that may be empty is repeated by a number; only *, + and "
                                  "? are supported there" },
                { "(?:a?b*){2,}", "a part that may be empty is repeated by a number; only *, + and "
                                  "? are supported there" },
        };

        (void)state;
        check_refusals(cases, COUNT(cases));
}

static void refuses_what_is_no_expression(void **state)
{
        static const char *const cases[][2] = {
                { "(a", "a group has no end" },
                { "(?=a", "a group has no end" },
                { "(?i", "a group has no end" },
                { "(?#a", "a group has no end" },
                { "(?#a\\)", "a group has no end" },
                { "(?<n", "the name of a group has no end" },
                { "a)", "a ')' has no '('" },
                { "*a", "there is nothing before '*' to repeat" },
                { "a|+", "there is nothing before '+' to repeat" },
                { "(?a)", "the group (?a is not supported" },
                { "(?\?)", "the group (?? is not supported" },
                { "{2}a", "there is nothing before '{' to repeat" },
                { "(?i)?", "there is nothing before '?' to repeat" },
                { "a\\", "it ends in '\\'" },
                { "\\x", "a character is written in hexadecimal, but it is none" },
                { "\\u12", "a character is written in hexadecimal, but it is none" },
                { "\\x{}", "\\x{ has no end, or is not hexadecimal" },
                { "\\x{110000}", "\\x{ has no end, or is not hexadecimal" },
                { "\\x{61 62}", "\\x{ has no end, or is not hexadecimal" },
                { "\\xE9", "\\xE9 is a byte, not a character; write \\x{E9} for the character" },
                { "\xC3(", "it is not UTF-8" },
                { "[\xFF]", "it is not UTF-8" },
                { "\\\xE4\xB8", "it is not UTF-8" },
        };

        (void)state;
        check_refusals(cases, COUNT(cases));
}

static void refuses_classes_that_are_none(void **state)
{
        static const char *const cases[][2] = {
                { "[a", "a class has no end" },
                { "[]", "a class has no end" },
                { "[^]", "a class has no end" },
                { "[a[b]", "a class has no end" },
                { "[a&&", "a class has no end" },
                { "[z-a]", "a range ends before it begins" },
                { "[a-\\d]", "a range ends in a class" },
                { "[[:greek:]]", "the class '[:greek:]' is not known" },
                { "[[:Alpha:]]", "the class '[:Alpha:]' is not known" },
                { "[\\B]", "\\B is not supported" },
                { "\\pL", "\\p is not followed by a name in braces" },
                { "\\p{L", "\\p is not followed by a name in braces" },
                { "\\p{}", "the property '' is not known" },
                { "\\p{Klingon}", "the property 'Klingon' is not known" },
                { "\\P{^Script=Greek}", "the property 'Script=Greek' is not known" },
        };

        (void)state;
        check_refusals(cases, COUNT(cases));
}

/* Under (?i) U+00DF equals "ss" in Oniguruma, and a set of characters cannot say that. */
static void refuses_a_character_that_equals_several_without_regard_to_case(void **state)
{
        static const char *const patterns[] = {
                "(?i)\xC3\x9F", "(?i)ss",          "(?i)f(?:i)",   "(?i)aFFL",
                "(?i)[\\p{L}]", "(?i)[k[^\\d]]|a", "(?i:S)(?i:t)", "(?i)[\xC3\x9F-\xC3\xA0]",
        };

        (void)state;
        for (size_t i = 0; i < COUNT(patterns); i++) {
                struct expression *expression;
                char why[256];

                assert_int_equal(expression_open(patterns[i], &expression, why, sizeof(why)),
                                 -EINVAL);
                assert_string_equal(why, "under (?i) it has a character that equals several "
                                         "letters, such as U+00DF and 'ss'; this is not supported");
        }
        check_match("(?i)s|s", "S", "S");
        check_match("(?i)s[s]", "Ss", "Ss");
        check_match("(?i)[^\\p{L}]", "a1", "1");
        check_match("(?i:s)s", "Ss", "Ss");
        check_match("(?i)s(?=s)", "sS", "s");
}

static void refuses_expressions_beyond_a_limit(void **state)
{
        static const char deep[] = "its groups are nested more than 64 deep";
        static const char repeats[] =
                "a part is repeated more than 1000 times, or less often than at least";
        static const char steps[] = "with its repeats it has more than 20000 steps";

        (void)state;
        check_refusal("a{1001}", repeats);
        check_refusal("a{0,1001}", repeats);
        check_refusal("a{99999999999999999999}", repeats);
        check_refusal("a{3,2}", repeats);
        check_refusal("(((a{1000}){1000}){1000})", steps);
        check_refusal("(?:(?:a{0,1000}b){0,1000}c){0,1000}", steps);
        check_refusal(repeated("", "(", 64, "a"), deep);
        check_refusal(repeated("", "[", 64, "a"), "its classes are nested more than 64 deep");
        check_refusal(repeated("", "(?i)", 64, "a"), deep);
        check_refusal(repeated("a", "*", 9, ""), "more than 8 quantifiers follow one another");
        check_refusal(repeated("", "a", 16385, ""), "it has 16385 bytes; the limit is 16384");
}

/* To unite so many ranges, one after another, would take minutes. */
static void refuses_a_class_of_a_million_ranges(void **state)
{
        static char pattern[4 * 1000000 + 16], wanted[64];
        char *to = pattern;

        (void)state;
        *to++ = '[';
        for (uint32_t code = 0x10000; code < 0x10000 + 2 * 480000; code += 2) {
                *to++ = (char)(0xF0 | code >> 18);
                *to++ = (char)(0x80 | (code >> 12 & 63));
                *to++ = (char)(0x80 | (code >> 6 & 63));
                *to++ = (char)(0x80 | (code & 63));
        }
        strcpy(to, "]");
        snprintf(wanted, sizeof(wanted), "it has %zu bytes; the limit is 16384", strlen(pattern));
        check_refusal(pattern, wanted);
}

static void refuses_classes_with_too_many_ranges_together(void **state)
{
        char pattern[16384], *to = pattern;

        (void)state;
        for (uint32_t code = 0x2190; code < 0x2190 + 2 * 1200; code += 2) /* all differ */
                to += sprintf(to, "[\\w%c%c%c]", 0xE0 | code >> 12, 0x80 | (code >> 6 & 63),
                              0x80 | (code & 63));
        check_refusal(pattern, "its classes have more than 131072 ranges of characters");
}

static void refuses_automata_that_explode(void **state)
{
        static const char states[] = "its automaton has more than 16384 states";
        static const char work[] = "its automaton takes too much work or memory to make";
        char pattern[16384], *to = pattern;

        (void)state;
        check_refusal("(a|b)*a(a|b){20}", states);
        check_refusal("x(?=(b|a)*(?:a(a|b){20}c)$)|(a|b)*a(a|b){20}", states);
        for (uint32_t code = 0x4E00; code < 0x4E00 + 240; code++)
                to += sprintf(to, "(?<=%c%c%c)|", 0xE0 | code >> 12, 0x80 | (code >> 6 & 63),
                              0x80 | (code & 63));
        check_refusal(repeated(pattern, ".{1000}", 19, ""), work);
        to = pattern;
        for (uint32_t code = 0x4E00; code < 0x4E00 + 251; code++)
                to += sprintf(to, "%c%c%c|", 0xE0 | code >> 12, 0x80 | (code >> 6 & 63),
                              0x80 | (code & 63));
        check_refusal(pattern, "it tells more than 250 classes of characters apart");
}

/* ---- cost ---- */

static char *text_of(const char *unit, size_t bytes)
{
        char *text = malloc(bytes);

        assert_non_null(text);
        for (size_t i = 0; i < bytes; i++)
                text[i] = unit[i % strlen(unit)];
        return text;
}

/* Steps to find all matches; each begins at the end of the one before, or behind an empty one. */
static uint64_t steps_of(const struct expression *expression, const char *unit, size_t bytes)
{
        struct expression_search search = { 0 };
        char *text = text_of(unit, bytes);
        size_t from = 0, begin, end;
        uint64_t steps = 0;

        assert_int_equal(expression_begin(&search, expression, text, bytes, &steps), 0);
        while (from <= bytes && expression_next(&search, from, &begin, &end) == 1) {
                assert_in_range(begin, from, bytes);
                assert_in_range(end, begin, bytes);
                from = end > begin ? end : end + 1;
        }
        expression_search_deinit(&search);
        free(text);
        return steps;
}

static void reading_takes_linear_time(void **state)
{
        static const char *const patterns[] = {
                "a*b|a",
                "\\d{1,3}(?=(?:\\d{3})*\\b)",
                "\\s*[\\r\\n]+",
                "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
                "(?=(\\d{3})+(?!\\d))",
                "(?:a|b)*c|(?:a|1)*d|[ab1]",
                "(?:\\s|\\d)*!|(?:a*)*b",
                "(?:aa|aaa)*b|a",
                "(?:a{7})*b|(?:a{5})*c|a",
                "(?:a{100})*b|a{50}",
                "(?=a*b)a|(?=[ab]*!)b|(?=.*\\d\\z)c|a",
                ".*?x|.*y|.",
                "\\b(?:\\w+\\s)*\\z|\\w",
                "(?:|a)*b",
                "a{300}b",
                "^a*$\\n|(?!a)\\s*x|a",
        };
        static const char *const units[] = { "a",  "1",     " ",   "\n",  "ab",       "a1",
                                             "a ", " \r\n", "aa ", "aab", "\xC3\xA4", "1 a!b" };

        (void)state;
        for (size_t i = 0; i < COUNT(patterns); i++) {
                struct expression *expression;
                char why[256];

                if (expression_open(patterns[i], &expression, why, sizeof(why)))
                        fail_msg("%s: %s", patterns[i], why);
                for (size_t k = 0; k < COUNT(units); k++) {
                        const size_t bytes = 16000;
                        uint64_t once = steps_of(expression, units[k], bytes);
                        uint64_t twice = steps_of(expression, units[k], 2 * bytes);

                        if (10 * twice > 22 * once)
                                fail_msg("%s on '%s': %llu steps, then %llu", patterns[i], units[k],
                                         (unsigned long long)once, (unsigned long long)twice);
                }
                expression_close(expression);
        }
}

/* Cutters read many small pieces behind a large one with the same search. */
static void a_small_text_costs_nothing_of_a_large_one_before(void **state)
{
        struct expression_search search = { 0 };
        char *large = text_of("a", 1u << 20), why[256];
        struct expression *expression;
        size_t begin, end, capacity;
        uint64_t steps = 0;

        (void)state;
        assert_int_equal(expression_open("a*b|a", &expression, why, sizeof(why)), 0);
        assert_int_equal(expression_begin(&search, expression, large, 1u << 20, &steps), 0);
        assert_int_equal(expression_next(&search, 0, &begin, &end), 1);
        capacity = search.dead_end_capacity;
        assert_in_range(capacity, (1u << 20) / 64, (1u << 20) / 8);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(expression_begin(&search, expression, large, 200, &steps), 0);
                assert_int_equal(expression_next(&search, 0, &begin, &end), 1);
        }
        assert_in_range(search.dead_end_capacity, 1, 64);
        expression_search_deinit(&search);
        expression_close(expression);
        free(large);
}

/* ---- corners that Oniguruma's pieces do not show ---- */

static void a_byte_that_is_no_character_has_no_property(void **state)
{
        (void)state;
        check_match(".", "\xFF", "\xFF");
        check_match("[^a]", "\x80", "\x80");
        check_match("\\P{L}", "\xC3", "\xC3");
        check_match("\\p{Cn}|\\p{Cs}|[[:print:]]|[\\x{0}-\\x{10FFFF}]", "\xED\xA0\x80", NULL);
        check_match("\\p{Any}|\\p{C}|\\w", "\xFF", NULL);
        check_match("(?<=\\W)a",
                    "\xC3\xA4\xA4"
                    "a",
                    "a");
}

static void a_round_that_reads_nothing_ends_the_repeating(void **state)
{
        (void)state;
        check_match("(?:|x)*(?:xyz|y)", "xxyz", "xxyz"); /* not xxy: the empty one comes first */
        check_match("(?:|a)+", "aa", "");
        check_match("(?:a|b?\?)*c?", "ab", "a");
        check_match("(?:(?:|a)*b)*c", "abaabc", "abaabc");
        check_match("(?:(?:a?\?)*?|b)*?c", "abac", "abac");
}

static void a_sign_behind_a_number_is_not_always_its_own(void **state)
{
        (void)state;
        check_match("a{2}?", "b", ""); /* (?:a{2})? */
        check_match("a{2,2}?", "baa", "aa");
        check_match("a{1,2}?", "aa", "a");
        check_match("a{1,2}+", "aaaa", "aaaa"); /* (?:a{1,2})+ */
        check_match("a{,2}b", "aab", "aab");
        check_match("a{,}", "a{,}", "a{,}");
}

static void flags_hold_up_to_the_end_of_their_group(void **state)
{
        (void)state;
        check_match("a(?i)b|c", "C", NULL); /* a(?i:b|c) */
        check_match("a(?i)b|c", "aC", "aC");
        check_match("(?:a(?i)b|c)d", "aCD", NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refuses_what_an_automaton_cannot_do),
                cmocka_unit_test(refuses_what_is_no_expression),
                cmocka_unit_test(refuses_classes_that_are_none),
                cmocka_unit_test(refuses_a_character_that_equals_several_without_regard_to_case),
                cmocka_unit_test(refuses_expressions_beyond_a_limit),
                cmocka_unit_test(refuses_a_class_of_a_million_ranges),
                cmocka_unit_test(refuses_classes_with_too_many_ranges_together),
                cmocka_unit_test(refuses_automata_that_explode),
                cmocka_unit_test(reading_takes_linear_time),
                cmocka_unit_test(a_small_text_costs_nothing_of_a_large_one_before),
                cmocka_unit_test(a_byte_that_is_no_character_has_no_property),
                cmocka_unit_test(a_round_that_reads_nothing_ends_the_repeating),
                cmocka_unit_test(a_sign_behind_a_number_is_not_always_its_own),
                cmocka_unit_test(flags_hold_up_to_the_end_of_their_group),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
