/*
 * Cuts derived by hand from the expressions in daemon/files/splitters.c: alternatives are tried in
 * order at each place, and the first that matches takes its match.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/splitters.h"
#include "daemon/text/cutter.h"

#define CUT '|' /* stands for a border in what is wanted; in no text here */

/* Splits `wanted` without its cuts by these cuts, and expects its cuts. */
static void check_cuts(const struct vocabulary_cut *cuts, uint32_t count, const char *wanted)
{
        char text[256], got[512], why[256];
        size_t bytes = 0, used = 0, begin, end, last = 0;
        struct cutting cutting = { 0 };
        struct cutter cutter;
        uint64_t steps = 0;
        char *exact;

        for (const char *c = wanted; *c; c++)
                if (*c != CUT)
                        text[bytes++] = *c;
        exact = malloc(bytes); /* not a byte more */
        memcpy(exact, text, bytes);
        assert_int_equal(cutter_open(&cutter, cuts, count, why, sizeof(why)), 0);
        assert_int_equal(cutting_begin(&cutting, &cutter, exact, bytes, &steps), 0);
        while (cutting_next(&cutting, &begin, &end) == 1) {
                assert_int_equal(begin, last);
                assert_in_range(end, begin + 1, bytes);
                if (begin)
                        got[used++] = CUT;
                memcpy(got + used, text + begin, end - begin);
                used += end - begin;
                last = end;
        }
        assert_int_equal(last, bytes);
        got[used] = '\0';
        assert_string_equal(got, wanted);
        cutting_deinit(&cutting);
        cutter_close(&cutter);
        free(exact);
}

static void check(const char *name, const char *wanted)
{
        const struct splitter *splitter = splitter_named(name);

        assert_non_null(splitter);
        check_cuts(splitter->cuts, splitter->cut_count, wanted);
}

static void all(const char *wanted)
{
        check("gpt2", wanted);
        check("llama3", wanted);
        check("qwen2", wanted);
}

static void modern(const char *wanted)
{
        check("llama3", wanted);
        check("qwen2", wanted);
}

static void a_word_includes_the_blank_before_it(void **state)
{
        (void)state;
        all("Hello| world");
        all(" a| b");
        all("\xC3\xA4\xD0\x96\xE6\x88\x91| x"); /* letters are letters */
        check("none", "Hello world 12");
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
        check("gpt2", "a|\t|b|\xC2\xA0|c");
        modern("a|\tb|\xC2\xA0"
               "c");
        check("gpt2", "(|a");
        modern("(a|)");
        modern("((|a"); /* two signs: the run of signs comes later, but its turn is at the first */
}

static void splits_contractions_in_lower_case_and_since_llama_3_in_any(void **state)
{
        (void)state;
        all("I|'m| he|'s| we|'ll| they|'ve| you|'re| can|'t| I|'d");
        check("gpt2", "I|'|M");
        modern("I|'M| WE|'LL| we|'Ve");
        modern("a|'\xC5\xBF|b"); /* the long s is an s if case is ignored */
        check("gpt2", "a|'|\xC5\xBF"
                      "b");
        all("'s|how"); /* it does not ask what is around it */
        modern("'s|hall");
        modern("'x|'le|'l");
        check("gpt2", "'|x|'|le|'|l");
}

static void splits_numbers_into_runs_threes_or_single_digits(void **state)
{
        (void)state;
        check("gpt2", "a| 12345| 6");
        check("llama3", "a| |123|45| |6");
        check("qwen2", "a| |1|2|3|4|5| |6");
        check("llama3",
              /* a half, Roman 8, Devanagari 5 */
              "\xC2\xBD\xE2\x85\xA7\xE0\xA5\xAB|1");
        check("gpt2", "x|\xC2\xBD"
                      "1|y");
}

static void punctuation_takes_a_blank_before_and_since_llama_3_newlines_behind(void **state)
{
        (void)state;
        all("a| ...| b");
        check("gpt2", "a|!!|\n|\n|b");
        modern("a|!!\n\n|b");
        modern("a| =>\r\n|b");
        all("\xF0\x9F\x9A\x80\xE2\x80\x8D."); /* what is neither letter, number nor blank */
        all("\xCC\x81");                      /* a mark alone is a sign */
        check("gpt2", "e|\xCC\x81|t");
        modern("e|\xCC\x81t"); /* and leads a word */
}

static void newlines_end_a_run_of_blanks(void **state)
{
        (void)state;
        modern("a|  \n  \n|  | b");
        modern("a|\n\n|b");
        modern("a| \r\n|\tb");
        modern("\n| |1");
        check("gpt2", "a|  \n  \n  | b");
        check("gpt2", "a|\n|\n|b");
        check("gpt2", "\n| 1");
}

static void treats_invalid_utf8_as_punctuation(void **state)
{
        (void)state;
        all("\xFF\x80\xED\xA0\x80\xC3");
        check("gpt2", "a|\x80|b");
        modern("a|\x80"
               "b");
        all("\xE3\x80"); /* the beginning of a blank */
}

/* ---- what becomes of matches ---- */

static void keep(enum cut_kind kind, bool inverted, const char *expression, const char *wanted)
{
        const struct vocabulary_cut cut = { expression, (uint8_t)kind, inverted };

        check_cuts(&cut, 1, wanted);
}

/* The pieces of "__a_b__", as the library `tokenizers` gives them. */
static void a_match_is_a_piece_or_joins_a_neighbour(void **state)
{
        (void)state;
        keep(CUT_APART, false, "_", "_|_|a|_|b|_|_");
        keep(CUT_RUNS, false, "_", "__|a|_|b|__");
        keep(CUT_TO_LAST, false, "_", "_|_|a_|b_|_");
        keep(CUT_TO_NEXT, false, "_", "_|_a|_b|_|_");
        keep(CUT_APART, true, "[ab]", "__|a|_|b|__");
        keep(CUT_RUNS, true, "a", "__|a|_b__");
}

static void a_dropped_match_is_in_no_piece(void **state)
{
        static const struct vocabulary_cut cut = { "\\s+", CUT_DROP, false };
        struct cutting cutting = { 0 };
        struct cutter cutter;
        size_t begin, end;
        uint64_t steps = 0;
        char why[256];

        (void)state;
        assert_int_equal(cutter_open(&cutter, &cut, 1, why, sizeof(why)), 0);
        assert_int_equal(cutting_begin(&cutting, &cutter, "  ab c ", 7, &steps), 0);
        assert_int_equal(cutting_next(&cutting, &begin, &end), 1);
        assert_true(begin == 2 && end == 4);
        assert_int_equal(cutting_next(&cutting, &begin, &end), 1);
        assert_true(begin == 5 && end == 6);
        assert_int_equal(cutting_next(&cutting, &begin, &end), 0);
        cutting_deinit(&cutting);
        cutter_close(&cutter);
}

static void an_empty_match_is_a_border(void **state)
{
        (void)state;
        keep(CUT_APART, false, "(?=(\\d{3})+(?!\\d))", "a1|234|567b");
        keep(CUT_APART, false, "(?<=b)", "ab|b|c");
}

static void later_cuts_divide_the_pieces_of_earlier_ones(void **state)
{
        (void)state;
        check("falcon", "a|+=|b| |123|45");
        check("starcoder", "a| |1|2|b");
        check("deepseek-v3", "x|123|4|\xE6\x88\x91\xE3\x81\x82|y");
}

static void an_expression_that_is_not_supported_is_named(void **state)
{
        static const struct vocabulary_cut cut = { "(a)\\1", CUT_APART, false };
        struct cutter cutter;
        char why[256];

        (void)state;
        assert_int_equal(cutter_open(&cutter, &cut, 1, why, sizeof(why)), -EINVAL);
        assert_string_equal(why, "it splits by the expression '(a)\\\\1': \\1 is not supported");
}

/* Whatever comes, a text twice as long costs no more than a little over twice as much. */
static void splitting_takes_linear_time(void **state)
{
        static const char *const units[] = { "a",  " ",   "\n",  " \n",      "'",   "1",
                                             "!",  "\t",  "!\n", " a",       "  ",  "'s",
                                             "a ", " \r", ".",   "\xCC\x81", "\xFF" };
        static const char *const names[] = { "gpt2",   "llama3",      "qwen2", "gpt-4o",
                                             "falcon", "deepseek-v3", "bloom", "superbpe",
                                             "tekken", "deepseek-llm" };

        (void)state;
        for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
                for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++) {
                        const struct splitter *splitter = splitter_named(names[k]);
                        const size_t bytes = 1u << 16, unit = strlen(units[u]);
                        char *text = malloc(bytes), why[256];
                        struct cutting cutting = { 0 };
                        struct cutter cutter;
                        uint64_t steps = 0;
                        size_t begin, end;

                        for (size_t i = 0; i < bytes; i++)
                                text[i] = units[u][i % unit];
                        assert_int_equal(cutter_open(&cutter, splitter->cuts, splitter->cut_count,
                                                     why, sizeof(why)),
                                         0);
                        assert_int_equal(cutting_begin(&cutting, &cutter, text, bytes, &steps), 0);
                        while (cutting_next(&cutting, &begin, &end) == 1)
                                ;
                        assert_in_range(steps, 1, 6 * splitter->cut_count * bytes);
                        cutting_deinit(&cutting);
                        cutter_close(&cutter);
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
                cmocka_unit_test(a_match_is_a_piece_or_joins_a_neighbour),
                cmocka_unit_test(a_dropped_match_is_in_no_piece),
                cmocka_unit_test(an_empty_match_is_a_border),
                cmocka_unit_test(later_cuts_divide_the_pieces_of_earlier_ones),
                cmocka_unit_test(an_expression_that_is_not_supported_is_named),
                cmocka_unit_test(splitting_takes_linear_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
