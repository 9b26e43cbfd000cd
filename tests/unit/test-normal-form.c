/*
 * Composition by the rules of UAX #15, on its own examples.  Also bytes that are no text, and
 * so many marks that ordering them pair by pair would not end.
 */
#include "tests/unit/texts.h"

#include "daemon/text/normal-form.h"

static void check_form(enum normal_form form, const char *text, const char *wanted)
{
        uint64_t steps = 0;
        size_t bytes;
        char *made;

        assert_int_equal(normal_form_make(form, text, strlen(text), &made, &bytes, &steps), 0);
        assert_int_equal(bytes, strlen(wanted));
        assert_memory_equal(made, wanted, bytes);
        free(made);
}

static void check(const char *text, const char *wanted)
{
        check_form(FORM_NFC, text, wanted);
}

static void composes_letters_and_marks(void **state)
{
        (void)state;
        check("", "");
        check("plain \xC3\xA9", "plain \xC3\xA9");
        check("e\xCC\x81", "\xC3\xA9");
        check("\xE2\x84\xAB", "\xC3\x85");     /* the sign for Angstrom is A with a ring */
        check("\xE2\x84\xA6", "\xCE\xA9");     /* the sign for Ohm is Omega */
        check("\xEF\xAC\x81", "\xEF\xAC\x81"); /* a ligature is only compatible with its letters */
        check("\xE1\xB8\xA9", "\xE1\xB8\xA9"); /* h with a cedilla stays */
}

static void orders_marks_and_lets_them_block_composition(void **state)
{
        (void)state;
        /* s, dot above (230), dot below (220): the one below comes first, both compose. */
        check("s\xCC\x87\xCC\xA3", "\xE1\xB9\xA9");
        check("\xE1\xB9\xA1\xCC\xA3", "\xE1\xB9\xA9");
        /* d with dot below; dot above stays a mark behind it, for no letter has both. */
        check("\xE1\xB8\x8B\xCC\xA3", "\xE1\xB8\x8D\xCC\x87");
        /* Two marks of one class: the first, which composes with nothing, blocks the second. */
        check("a\xCC\x95\xCC\x80", "\xC3\xA0\xCC\x95");  /* classes 232 and 230: reordered */
        check("a\xCC\x85\xCC\x80", "a\xCC\x85\xCC\x80"); /* both 230: blocked */
        /* A letter between them blocks. */
        check("e"
              "b\xCC\x81",
              "eb\xCC\x81");
}

static void keeps_composition_exclusions_decomposed(void **state)
{
        (void)state;
        check("\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"); /* Devanagari qa */
        check("\xE0\xA4\x95\xE0\xA4\xBC", "\xE0\xA4\x95\xE0\xA4\xBC");
        check("\xF0\x9D\x85\x9E", "\xF0\x9D\x85\x97\xF0\x9D\x85\xA5"); /* a half note */
        check("\xCD\x84", "\xCC\x88\xCC\x81");
}

static void composes_hangul_syllables(void **state)
{
        (void)state;
        check("\xE1\x84\x80\xE1\x85\xA1", "\xEA\xB0\x80");             /* ga */
        check("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81"); /* gag */
        check("\xEA\xB0\x80\xE1\x86\xA8", "\xEA\xB0\x81");
        check("\xEA\xB0\x81\xE1\x86\xA8", "\xEA\xB0\x81\xE1\x86\xA8"); /* has its tail */
        check("\xED\x9E\xA3", "\xED\x9E\xA3");                         /* the last one */
        check("\xE1\x86\xA8\xE1\x85\xA1", "\xE1\x86\xA8\xE1\x85\xA1");
}

static void replaces_characters_that_only_look_like_others(void **state)
{
        (void)state;
        check_form(FORM_NFKC, "plain", "plain");
        check_form(FORM_NFKC, "\xEF\xAC\x81", "fi");
        check_form(FORM_NFKC, "\xC2\xBD",
                   "1\xE2\x81\x84"
                   "2");
        check_form(FORM_NFKC, "\xEF\xBD\xB6\xEF\xBE\x9E", "\xE3\x82\xAC"); /* half-width ga */
        check_form(FORM_NFKD, "\xEF\xBD\xB6\xEF\xBE\x9E", "\xE3\x82\xAB\xE3\x82\x99");
        /* The long s with a dot is first taken apart, and then it is an s. */
        check_form(FORM_NFKC, "\xE1\xBA\x9B\xCC\xA3", "\xE1\xB9\xA9");
        check_form(FORM_NFKD, "\xE1\xBA\x9B\xCC\xA3", "s\xCC\xA3\xCC\x87");
        check_form(FORM_NFKD, "\xC3\xA9\xEA\xB0\x80\xFF", "e\xCC\x81\xE1\x84\x80\xE1\x85\xA1\xFF");
        check_form(FORM_NFC, "\xE1\xBA\x9B\xCC\xA3", "\xE1\xBA\x9B\xCC\xA3");
}

static void keeps_invalid_utf8_unchanged(void **state)
{
        (void)state;
        check("\xFF"
              "e\xCC\x81\x80\xCC\x81\xE1\x84",
              "\xFF\xC3\xA9\x80\xCC\x81\xE1\x84");
        check("\xED\xA0\x80", "\xED\xA0\x80");
}

static void orders_a_long_run_of_marks_in_linear_time(void **state)
{
        static const char *const marks[] = { "\xCC\x81", "\xCC\xA3", "\xCC\xA7", "\xCC\xB4" };
        const size_t count = 1u << 19;
        char *text = malloc(2 * count + 1), *made;
        uint64_t steps = 0, seed = 1;
        size_t bytes;

        (void)state;
        text[0] = 'x';
        for (size_t i = 0; i < count; i++)
                memcpy(text + 1 + 2 * i, marks[texts_random(&seed) % 4], 2);
        assert_int_equal(normal_form_make(FORM_NFC, text, 2 * count + 1, &made, &bytes, &steps), 0);
        assert_int_equal(bytes, 2 * count + 1);
        /* Overlays (1), attached below (202), below (220), above (230). */
        for (size_t i = 0, rank = 0; i < count; i++) {
                static const char *const order[] = { "\xCC\xB4", "\xCC\xA7", "\xCC\xA3",
                                                     "\xCC\x81" };

                while (rank < 4 && memcmp(made + 1 + 2 * i, order[rank], 2))
                        rank++;
                assert_in_range(rank, 0, 3);
        }
        assert_in_range(steps, 1, 8 * count);
        free(made);
        free(text);
}

static void no_character_grows_beyond_FORM_GROWTH(void **state)
{
        (void)state;
        for (uint32_t code = 1; code < 0x110000; code++) {
                char text[4], *made;
                unsigned n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
                uint64_t steps = 0;
                size_t bytes;

                if (n == 1)
                        text[0] = (char)code;
                else
                        for (unsigned i = n, rest = code; i--; rest >>= 6)
                                text[i] = (char)(i ? 0x80 | (rest & 0x3F)
                                                   : (0xF00u >> n & 0xFF) | rest);
                for (int form = FORM_NFD; form <= FORM_NFKC; form++) {
                        assert_int_equal(normal_form_make((enum normal_form)form, text, n, &made,
                                                          &bytes, &steps),
                                         0);
                        assert_in_range(bytes, 1,
                                        (form < FORM_NFKD ? FORM_GROWTH : FORM_GROWTH_LIKE) * n);
                        free(made);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(composes_letters_and_marks),
                cmocka_unit_test(orders_marks_and_lets_them_block_composition),
                cmocka_unit_test(keeps_composition_exclusions_decomposed),
                cmocka_unit_test(composes_hangul_syllables),
                cmocka_unit_test(replaces_characters_that_only_look_like_others),
                cmocka_unit_test(keeps_invalid_utf8_unchanged),
                cmocka_unit_test(orders_a_long_run_of_marks_in_linear_time),
                cmocka_unit_test(no_character_grows_beyond_FORM_GROWTH),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
