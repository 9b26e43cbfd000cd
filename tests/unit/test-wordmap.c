#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/wordmap.h"

#define STRINGS 5000u

static void keeps_the_first_number_of_each_string(void **state)
{
        static char strings[STRINGS][24];
        struct wordmap *map;

        (void)state;
        assert_int_equal(wordmap_new(STRINGS, &map), 0);
        for (uint32_t i = 0; i < STRINGS; i++) {
                int n = snprintf(strings[i], sizeof(strings[i]), "%u-%0*u", i, (int)(i % 15), i);

                assert_int_equal(wordmap_get(map, strings[i], (size_t)n), WORDMAP_NONE);
                assert_int_equal(wordmap_put(map, strings[i], (size_t)n, i), i);
        }
        for (uint32_t i = 0; i < STRINGS; i++) {
                char copy[24];

                memcpy(copy, strings[i], sizeof(copy));
                assert_int_equal(wordmap_get(map, copy, strlen(copy)), i);
                assert_int_equal(wordmap_put(map, copy, strlen(copy), 77), i);
        }
        wordmap_free(map);
}

/* A string is its bytes and their count, including the empty string and strings with NULs. */
static void distinguishes_strings_by_length_and_every_byte(void **state)
{
        static const char text[] = "abc\0def\0\0gh";
        struct wordmap *map;

        (void)state;
        assert_int_equal(wordmap_new(sizeof(text), &map), 0);
        for (uint32_t n = 0; n < sizeof(text); n++)
                assert_int_equal(wordmap_put(map, text, n, n), n);
        for (uint32_t n = 0; n < sizeof(text); n++)
                assert_int_equal(wordmap_get(map, text, n), n);
        assert_int_equal(wordmap_get(map, text + 1, 2), WORDMAP_NONE);
        assert_int_equal(wordmap_get(map, "abc\0dEf", 7), WORDMAP_NONE);
        wordmap_free(map);
        assert_null(wordmap_free(NULL));
}

static void a_string_may_get_another_number(void **state)
{
        struct wordmap *map;

        (void)state;
        assert_int_equal(wordmap_new(2, &map), 0);
        assert_int_equal(wordmap_put(map, "a", 1, 1), 1);
        assert_int_equal(wordmap_put(map, "b", 1, 2), 2);
        wordmap_replace(map, "a", 1, 3);
        assert_int_equal(wordmap_get(map, "a", 1), 3);
        assert_int_equal(wordmap_get(map, "b", 1), 2);
        wordmap_free(map);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(keeps_the_first_number_of_each_string),
                cmocka_unit_test(distinguishes_strings_by_length_and_every_byte),
                cmocka_unit_test(a_string_may_get_another_number),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
