/*
 * Cuts derived by hand from the expressions in daemon/text/pretokenize.c: alternatives are tried in
 * order at each place, and the first that matches takes its match.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/text/pretokenize.h"

#define CUT '|' /* stands for a border in what is wanted; in no text here */

/* Splits `wanted` without its cuts, and expects these cuts. */
static void check(enum vocabulary_splitter splitter, const char *wanted)
{
        char text[256], got[512];
        size_t bytes = 0, used = 0;
        uint64_t steps = 0;

        for (const char *c = wanted; *c; c++)
                if (*c != CUT)
                        text[bytes++] = *c;
        for (size_t at = 0, n; at < bytes; at += n) {
                char *exact = malloc(bytes - at); /* not a byte more */

                memcpy(exact, text + at, bytes - at);
                n = pretokenize_next(splitter, exact, bytes - at, &steps);
                free(exact);
                assert_in_range(n, 1, bytes - at);
                if (at)
                        got[used++] = CUT;
                memcpy(got + used, text + at, n);
                used += n;
        }
        got[used] = '\0';
        assert_string_equal(got, wanted);
}

static void all(const char *wanted)
{
        check(SPLITTER_GPT2, wanted);
        check(SPLITTER_LLAMA3, wanted);
        check(SPLITTER_QWEN2, wanted);
}

static void modern(const char *wanted)
{
        check(SPLITTER_LLAMA3, wanted);
        check(SPLITTER_QWEN2, wanted);
}

static void a_word_includes_the_blank_before_it(void **state)
{
        (void)state;
        all("Hello| world");
        all(" a| b");
        all("\xC3\xA4\xD0\x96\xE6\x88\x91| x"); /* letters are letters */
        check(SPLITTER_NONE, "Hello world 12");
}

static void only_the_last_of_several_blanks_joins_the_word(void **state)
{
        (void)state;
        all("a|  | b");
        all("a|   | b");
        all("  | b");
        all("a|   "); /* nothing follows: all of them */
        all(" ");
        all("a|\t\t| b");
}

static void a_tab_or_no_break_space_joins_a_word_since_llama_3(void **state)
{
        (void)state;
        check(SPLITTER_GPT2, "a|\t|b|\xC2\xA0|c");
        modern("a|\tb|\xC2\xA0"
               "c");
        check(SPLITTER_GPT2, "(|a");
        modern("(a|)");
        modern("((|a"); /* two signs: the run of signs comes later, but its turn is at the first */
}

static void splits_contractions_in_lower_case_and_since_llama_3_in_any(void **state)
{
        (void)state;
        all("I|'m| he|'s| we|'ll| they|'ve| you|'re| can|'t| I|'d");
        check(SPLITTER_GPT2, "I|'|M");
        modern("I|'M| WE|'LL| we|'Ve");
        modern("a|'\xC5\xBF|b"); /* the long s is an s if case is ignored */
        check(SPLITTER_GPT2, "a|'|\xC5\xBF"
                             "b");
        all("'s|how"); /* it does not ask what is around it */
        modern("'s|hall");
        modern("'x|'le|'l");
        check(SPLITTER_GPT2, "'|x|'|le|'|l");
}

static void splits_numbers_into_runs_threes_or_single_digits(void **state)
{
        (void)state;
        check(SPLITTER_GPT2, "a| 12345| 6");
        check(SPLITTER_LLAMA3, "a| |123|45| |6");
        check(SPLITTER_QWEN2, "a| |1|2|3|4|5| |6");
        check(SPLITTER_LLAMA3,
              /* a half, Roman 8, Devanagari 5 */
              "\xC2\xBD\xE2\x85\xA7\xE0\xA5\xAB|1");
        check(SPLITTER_GPT2, "x|\xC2\xBD"
                             "1|y");
}

static void punctuation_takes_a_blank_before_and_since_llama_3_newlines_behind(void **state)
{
        (void)state;
        all("a| ...| b");
        check(SPLITTER_GPT2, "a|!!|\n|\n|b");
        modern("a|!!\n\n|b");
        modern("a| =>\r\n|b");
        all("\xF0\x9F\x9A\x80\xE2\x80\x8D."); /* what is neither letter, number nor blank */
        all("\xCC\x81");                      /* a mark alone is a sign */
        check(SPLITTER_GPT2, "e|\xCC\x81|t");
        modern("e|\xCC\x81t"); /* and leads a word */
}

static void newlines_end_a_run_of_blanks(void **state)
{
        (void)state;
        modern("a|  \n  \n|  | b");
        modern("a|\n\n|b");
        modern("a| \r\n|\tb");
        modern("\n| |1");
        check(SPLITTER_GPT2, "a|  \n  \n  | b");
        check(SPLITTER_GPT2, "a|\n|\n|b");
        check(SPLITTER_GPT2, "\n| 1");
}

static void treats_invalid_utf8_as_punctuation(void **state)
{
        (void)state;
        all("\xFF\x80\xED\xA0\x80\xC3");
        check(SPLITTER_GPT2, "a|\x80|b");
        modern("a|\x80"
               "b");
        all("\xE3\x80"); /* the beginning of a blank */
}

/* Whatever comes, a text twice as long costs no more than a little over twice as much. */
static void splitting_takes_linear_time(void **state)
{
        static const char *const units[] = { "a",  " ",   "\n",  " \n",      "'",   "1",
                                             "!",  "\t",  "!\n", " a",       "  ",  "'s",
                                             "a ", " \r", ".",   "\xCC\x81", "\xFF" };

        (void)state;
        for (int splitter = SPLITTER_GPT2; splitter < SPLITTER_N; splitter++)
                for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++) {
                        const size_t bytes = 1u << 18, unit = strlen(units[u]);
                        char *text = malloc(bytes);
                        uint64_t steps = 0;

                        for (size_t i = 0; i < bytes; i++)
                                text[i] = units[u][i % unit];
                        for (size_t at = 0, n; at < bytes; at += n)
                                n = pretokenize_next((enum vocabulary_splitter)splitter, text + at,
                                                     bytes - at, &steps);
                        assert_in_range(steps, 1, 6 * bytes);
                        free(text);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_word_includes_the_blank_before_it),
                cmocka_unit_test(only_the_last_of_several_blanks_joins_the_word),
                cmocka_unit_test(a_tab_or_no_break_space_joins_a_word_since_llama_3),
                cmocka_unit_test(splits_contractions_in_lower_case_and_since_llama_3_in_any),
                cmocka_unit_test(splits_numbers_into_runs_threes_or_single_digits),
                cmocka_unit_test(
                        punctuation_takes_a_blank_before_and_since_llama_3_newlines_behind),
                cmocka_unit_test(newlines_end_a_run_of_blanks),
                cmocka_unit_test(treats_invalid_utf8_as_punctuation),
                cmocka_unit_test(splitting_takes_linear_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
