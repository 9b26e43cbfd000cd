/*
 * Regular expressions of constraints: random ones compared with those of the C library, and which
 * ones are refused.
 */
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/constraint/regex-text.h"

#define PATTERNS 1500
#define TEXTS    12

static uint64_t random_state = 3;

static unsigned random_below(unsigned bound)
{
        random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
        return (random_state >> 33) % bound;
}

static void random_pattern(char *to, int depth)
{
        static const char *const atoms[] = { "a", "b", "c", "[ab]", "[^a]", ".", "[b-c]" };
        static const char *const counts[] = { "", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}" };
        unsigned parts = 1 + random_below(3);

        if (random_below(5) == 0)
                strcat(to, "^");
        for (unsigned i = 0; i < parts; i++) {
                if (depth > 0 && random_below(3) == 0) {
                        strcat(to, "(");
                        random_pattern(to, depth - 1);
                        strcat(to, ")");
                } else {
                        strcat(to, atoms[random_below(7)]);
                        strcat(to, counts[random_below(9)]);
                }
        }
        if (random_below(5) == 0)
                strcat(to, "$");
        if (depth > 0 && random_below(3) == 0) {
                strcat(to, "|");
                random_pattern(to, depth - 1);
        }
}

static bool matches(struct regex_pool *pool, uint32_t term, const char *text)
{
        for (; *text; text++)
                term = regex_derive(pool, term, *text);
        /* An expression that is alive matches something behind this text. */
        assert_true(!regex_nullable(pool, term) || regex_alive(pool, term));
        return regex_nullable(pool, term);
}

static void finds_what_the_c_library_finds(void **state)
{
        (void)state;
        for (int i = 0; i < PATTERNS; i++) {
                struct regex_pool *pool = regex_pool_new(20000);
                char pattern[1000] = "", why[200];
                regex_t reference;
                uint32_t term;

                random_pattern(pattern, 2);
                regex_refuel(pool, 1000000);
                assert_int_equal(regcomp(&reference, pattern, REG_EXTENDED | REG_NOSUB), 0);
                if (regex_text_read(pool, pattern, strlen(pattern), WRITING_PLAIN, REGEX_SEARCH,
                                    &term, why, sizeof(why)))
                        fail_msg("%s: %s", pattern, why);
                for (int j = 0; j < TEXTS; j++) {
                        char text[12] = "";
                        unsigned count = random_below(8);
                        bool wanted;

                        for (unsigned k = 0; k < count; k++)
                                text[k] = "abc"[random_below(3)];
                        wanted = regexec(&reference, text, 0, NULL, 0) == 0;
                        if (matches(pool, term, text) != wanted)
                                fail_msg("%s in '%s': not %d", pattern, text, wanted);
                }
                assert_int_equal(regex_spent(pool), REGEX_FINE);
                regfree(&reference);
                regex_pool_free(pool);
        }
}

static void check_refusal(const char *pattern, const char *sentence)
{
        struct regex_pool *pool = regex_pool_new(20000);
        char why[200] = "";
        uint32_t term;

        regex_refuel(pool, 1000000);
        assert_int_equal(regex_text_read(pool, pattern, strlen(pattern), WRITING_PLAIN, REGEX_WHOLE,
                                         &term, why, sizeof(why)),
                         -EINVAL);
        assert_string_equal(why, sentence);
        regex_pool_free(pool);
}

static void refuses_by_name_what_is_not_regular(void **state)
{
        (void)state;
#define AT(byte, what) "regular expression, byte " #byte ": " what
        check_refusal("a(?=b)", AT(2, "look-around is not supported"));
        check_refusal("(?<!b)a", AT(1, "look-around is not supported"));
        check_refusal("(a)\\1", AT(5, "back references are not supported"));
        check_refusal("(?<n>a)\\k<n>", AT(9, "back references are not supported"));
        check_refusal("\\bword", AT(2, "word boundaries (\\b) are not supported"));
        check_refusal("\\p{L}", AT(2, "properties of characters (\\p) are not supported"));
        check_refusal("(?i)a", AT(1, "flags of a group are not supported"));
        check_refusal("a++", AT(2, "possessive quantifiers are not supported"));
        check_refusal("(^a)*", AT(5, "an anchor cannot be repeated"));
        check_refusal("a)", AT(1, "a parenthesis closes no group"));
        check_refusal("(a", AT(2, "a group has no end"));
        check_refusal("[a", AT(2, "a class has no end"));
        check_refusal("*a", AT(0, "there is nothing to repeat"));
        check_refusal("a{3,2}", AT(6, "the counts are in the wrong order"));
        check_refusal("\xff", AT(0, "it is not UTF-8"));
}

static void check_match(const char *pattern, enum writing writing, const char *text, bool wanted)
{
        struct regex_pool *pool = regex_pool_new(20000);
        char why[200];
        uint32_t term;

        regex_refuel(pool, 1000000);
        if (regex_text_read(pool, pattern, strlen(pattern), writing, REGEX_WHOLE, &term, why,
                            sizeof(why)))
                fail_msg("%s: %s", pattern, why);
        if (matches(pool, term, text) != wanted)
                fail_msg("%s, '%s': not %d", pattern, text, wanted);
        regex_pool_free(pool);
}

static void characters_are_written_as_utf_8_or_as_json(void **state)
{
        (void)state;
        check_match("[à-ü]\\u{1f600}", WRITING_PLAIN, "é😀", true);
        check_match("[à-ü]", WRITING_PLAIN, "e", false);
        check_match("\\ud83d\\ude00", WRITING_PLAIN, "😀", true);
        check_match(".", WRITING_PLAIN, "\xc3", false);
        check_match(".", WRITING_PLAIN, "\xed\xa0\x80", false);
        check_match("\\x41\\u0042\\cJ", WRITING_PLAIN, "AB\n", true);
        check_match("[\\]\\\\-]", WRITING_PLAIN, "-", true);
        check_match("\"\\\\\\n", WRITING_JSON, "\\\"\\\\\\n", true);
        check_match("\\n", WRITING_JSON, "\\u000a", true);
        check_match("\\n", WRITING_JSON, "\n", false);
        check_match("[^a]", WRITING_JSON, "\"", false);
        check_match("\\s\\d\\w\\S\\D\\W", WRITING_PLAIN,
                    "\xc2\xa0"
                    "7_ab-",
                    true);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(finds_what_the_c_library_finds),
                cmocka_unit_test(refuses_by_name_what_is_not_regular),
                cmocka_unit_test(characters_are_written_as_utf_8_or_as_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
