/* Tokens that know the border of words: WordPiece, and BPE with a mark. */
#include <errno.h>

#include "tests/unit/vocabulary-rig.h"

static const struct vocabulary_cut blanks[] = { { "\\s+", CUT_DROP, false, false } };

static void begin_words(struct rig *rig)
{
        rig_begin(rig, VOCABULARY_WORDPIECE);
        for (unsigned b = 0; b < 256; b++)
                rig->entries[b] = (struct entry){ "", 0, 0, ENTRY_UNUSED, 0 };
        rig->v.border = BORDER_FRONT;
        rig->v.cuts = blanks;
        rig->v.cut_count = 1;
        rig->v.unknown = rig_add(rig, "[UNK]", ENTRY_CONTROL, 0);
}

static void a_word_is_the_longest_entries_from_its_begin_on(void **state)
{
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        begin_words(&rig);
        rig_add(&rig, " tea", ENTRY_NORMAL, 0);
        rig_add(&rig, " teap", ENTRY_NORMAL, 0);
        rig_add(&rig, "pot", ENTRY_NORMAL, 0);
        rig_add(&rig, "ot", ENTRY_NORMAL, 0);
        rig_add(&rig, "s", ENTRY_NORMAL, 0);
        rig_add(&rig, " ", ENTRY_NORMAL, 0);
        t = rig_open(&rig);
        rig_expect(t, "tea  teas\n", false, " tea| tea|s");
        rig_expect(t, "teapots", false, " teap|ot|s"); /* not tea and pot */
        rig_expect(t, "teapo tea s pot", false, "[256]| tea|[256]|[256]");
        rig_expect(t, "", false, "");
        assert_true(tokenizer_adds_blank(t));
        tokenizer_close(t);
}

static void a_word_that_is_too_long_is_unknown(void **state)
{
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        begin_words(&rig);
        rig_add(&rig, " \xC3\xA9", ENTRY_NORMAL, 0);
        rig_add(&rig, "\xC3\xA9", ENTRY_NORMAL, 0);
        rig.v.word_max = 3;
        t = rig_open(&rig);
        rig_expect(t, "\xC3\xA9\xC3\xA9\xC3\xA9", false, " \xC3\xA9|\xC3\xA9|\xC3\xA9");
        rig_expect(t, "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", false, "[256]");
        tokenizer_close(t);
        rig.v.unknown = VOCABULARY_NONE;
        t = rig_open(&rig);
        rig_expect(t, "x \xC3\xA9 \xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", false, " \xC3\xA9");
        tokenizer_close(t);
}

static void a_mark_in_the_text_begins_a_word_like_another_spelling(void **state)
{
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        begin_words(&rig);
        rig_add(&rig, " #", ENTRY_NORMAL, 0);
        rig_add(&rig, "ing", ENTRY_NORMAL, 0);
        rig.v.mark = "##";
        rig.v.mark_bytes = 2;
        t = rig_open(&rig);
        rig_expect(t, "##ing #ing ing", false, "ing| #|ing|[256]");
        tokenizer_close(t);
}

static void pieces_leave_out_the_blank_before_a_sign(void **state)
{
        static struct rig rig;
        struct tokenizer *t;
        uint32_t user, joined;
        size_t bytes;

        (void)state;
        begin_words(&rig);
        rig_add(&rig, " tea", ENTRY_NORMAL, 0);
        rig.entries[rig_add(&rig, " .", ENTRY_NORMAL, 0)].matching = ENTRY_JOINS;
        user = rig_add(&rig, "<b>", ENTRY_USER, 0);
        joined = rig_add(&rig, ".x", ENTRY_USER, 0);
        rig.entries[joined].matching = ENTRY_JOINS;
        t = rig_open(&rig);
        rig_expect(t, "tea . tea<b>tea .x", false, " tea|.| tea| <b>| tea|.x");
        assert_memory_equal(tokenizer_spelling(t, user, &bytes), "<b>", 3);
        assert_int_equal(bytes, 3);
        assert_int_equal(tokenizer_piece_max(t), 5);
        tokenizer_close(t);
        rig.entries[user].kind = ENTRY_NORMAL;
        rig.entries[user].matching = ENTRY_JOINS;
        assert_int_equal(tokenizer_open(&rig.v, rig.v.entry_count, &t, rig.why, sizeof(rig.why)),
                         -EINVAL);
        assert_string_equal(rig.why, "token 259 has no blank in front to leave out");
}

static void dividing_takes_time_linear_in_the_text(void **state)
{
        static char longest[VOCABULARY_ENTRY_BYTES_MAX + 1];
        static struct rig rig;
        struct tokenizer *t;
        uint64_t steps[2];

        (void)state;
        memset(longest, 'a', sizeof(longest) - 1);
        longest[sizeof(longest) - 2] = 'b';
        begin_words(&rig);
        rig_add(&rig, " a", ENTRY_NORMAL, 0);
        rig_add(&rig, "a", ENTRY_NORMAL, 0);
        rig_add(&rig, longest, ENTRY_NORMAL, 0); /* each place looks like its begin */
        t = rig_open(&rig);
        for (unsigned i = 0; i < 2; i++) {
                struct encoding how = { 0 };
                size_t bytes = (size_t)1 << (17 + i), count;
                char *text = malloc(bytes);

                memset(text, 'a', bytes);
                free(texts_encode(t, text, bytes, &how, &count));
                assert_int_equal(count, bytes);
                steps[i] = how.steps;
                free(text);
        }
        assert_in_range(steps[1], 1, 2 * steps[0] + 1000);
        assert_in_range(steps[1], 1, 10u << 18);
        tokenizer_close(t);
}

static void begin_bytes(struct rig *rig, enum vocabulary_border border)
{
        rig_begin(rig, VOCABULARY_CHARACTERS);
        for (unsigned b = 0; b < 256; b++)
                rig->entries[b] = (struct entry){ "", 0, 0, ENTRY_UNUSED, 0 };
        rig->v.cuts = blanks;
        rig->v.cut_count = 1;
        rig->v.keeps_bars = true;
        rig->v.by_score = false;
        rig->v.border = border;
}

static void the_last_character_of_a_word_is_another_symbol(void **state)
{
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        begin_bytes(&rig, BORDER_BEHIND);
        rig_add(&rig, "t", ENTRY_NORMAL, 0);
        rig_add(&rig, "e", ENTRY_NORMAL, 0);
        rig_add(&rig, "a ", ENTRY_NORMAL, 0);
        rig_merge(&rig, "e+a ", "ea ");
        t = rig_open(&rig);
        rig_expect(t, "tea tea", false, "t|ea |t|ea ");
        rig_expect(t, "teae", false, "t|e"); /* no symbol is 'a', and none is 'e' at the end */
        tokenizer_close(t);
        rig.v.unknown = rig_add(&rig, "[UNK]", ENTRY_CONTROL, 0);
        t = rig_open(&rig);
        rig_expect(t, "teae", false, "t|e|[260]|[260]");
        tokenizer_close(t);
}

static void the_first_character_of_a_word_is_another_symbol(void **state)
{
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        begin_bytes(&rig, BORDER_FRONT);
        rig_add(&rig, " t", ENTRY_NORMAL, 0);
        rig_add(&rig, "e", ENTRY_NORMAL, 0);
        rig_merge(&rig, " t+e", " te");
        t = rig_open(&rig);
        rig_expect(t, "te tee et", false, " te| te|e");
        tokenizer_close(t);
}

/* As `tokenizers` reads these texts. */
static void a_word_whose_border_is_dropped_has_none(void **state)
{
        static const struct vocabulary_cut semicolons = { ";", CUT_DROP, false, false };
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig.v.cuts = &semicolons;
        rig.v.cut_count = 1;
        rig.v.border = BORDER_BEHIND;
        rig_add(&rig, "a ", ENTRY_NORMAL, 0);
        t = rig_open(&rig);
        rig_expect(t, "a;a !;a;b;a b a", false, "a |a| |a |a| |b| |a ");
        tokenizer_close(t);

        begin_bytes(&rig, BORDER_FRONT);
        rig.v.cuts = &semicolons;
        rig_add(&rig, " b", ENTRY_NORMAL, 0);
        rig_add(&rig, "b", ENTRY_NORMAL, 0);
        rig_add(&rig, " ", ENTRY_NORMAL, 0);
        t = rig_open(&rig);
        rig_expect(t, "b;x b;b b", false, " b| |b| b| |b");
        tokenizer_close(t);
}

/* As `tokenizers` reads these texts. */
static void a_dropped_character_does_not_part_those_beside_it(void **state)
{
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        begin_bytes(&rig, BORDER_NONE);
        rig_add(&rig, "a", ENTRY_NORMAL, 0);
        rig_add(&rig, "b", ENTRY_NORMAL, 0);
        rig_merge(&rig, "a+b", "ab");
        t = rig_open(&rig);
        rig_expect(t, "a?b?ba ?? a?b?ba", false, "ab|b|a|ab|b|a");
        tokenizer_close(t);
}

static void a_blank_behind_the_text_is_not_the_one_before_a_word(void **state)
{
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        begin_bytes(&rig, BORDER_FRONT);
        rig.v.cut_count = 0;
        rig.v.blank = BLANK_LAST;
        rig_add(&rig, " b", ENTRY_NORMAL, 0);
        rig_add(&rig, " ", ENTRY_NORMAL, 0);
        rig.v.unknown = rig_add(&rig, "[UNK]", ENTRY_CONTROL, 0);
        t = rig_open(&rig);
        rig_expect(t, "b", false, " b| ");
        tokenizer_close(t);
}

static void runs_of_unknown_characters_end_with_the_word(void **state)
{
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        begin_bytes(&rig, BORDER_NONE);
        rig_add(&rig, "a", ENTRY_NORMAL, 0);
        rig_add(&rig, "aa", ENTRY_NORMAL, 0); /* nothing merges without merges */
        rig_add(&rig, "\xE2\x96\x81", ENTRY_NORMAL, 0);
        rig.v.unknown = rig_add(&rig, "[UNK]", ENTRY_CONTROL, 0);
        rig.v.unknown_run = true;
        t = rig_open(&rig);
        rig_expect(t, "xxaax xx x", false, "[259]|a|a|[259]|[259]|[259]");
        rig_expect(t, "\xE2\x96\x81 a", false, "\xE2\x96\x81|a");
        tokenizer_close(t);
        rig.v.unknown = VOCABULARY_NONE;
        t = rig_open(&rig);
        rig_expect(t, "xax", false, "a");
        tokenizer_close(t);
}

static void a_cut_of_letters_divides_a_character_whose_letter_is_a_number(void **state)
{
        static const struct vocabulary_cut cuts[] = {
                { "\\s+", CUT_DROP, false, false },
                { "\\p{N}", CUT_RUNS, false, true },
        };
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig.v.cuts = cuts;
        rig.v.cut_count = 2;
        rig_merge(&rig, "1+2", "12");
        rig_merge(&rig, "a+1", "a1");
        rig_merge(&rig, "\xC3+\xB2", "\xC3\xB2"); /* B2 is the letter of a raised 2 */
        rig_merge(&rig, "\xC3+\xB1", "\xC3\xB1");
        t = rig_open(&rig);
        rig_expect(t, "a12 1\xC3\xB1", false, "a|12|1|\xC3\xB1");
        rig_expect(t, "\xC3\xB2", false, "\xC3|\xB2");
        tokenizer_close(t);
        rig.v.cut_count = 1;
        t = rig_open(&rig);
        rig_expect(t, "a12\xC3\xB2", false, "a|12|\xC3\xB2");
        tokenizer_close(t);
}

static void refuses_borders_that_do_not_fit_the_kind(void **state)
{
        static const struct {
                enum vocabulary_kind kind;
                enum vocabulary_border border;
        } cases[] = { { VOCABULARY_WORDPIECE, BORDER_NONE },
                      { VOCABULARY_WORDPIECE, BORDER_BEHIND },
                      { VOCABULARY_BYTE_LEVEL, BORDER_FRONT },
                      { VOCABULARY_CHARACTERS, 3 } };
        static struct rig rig;
        struct tokenizer *t;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
                rig.v.kind = cases[i].kind;
                rig.v.border = cases[i].border;
                assert_int_equal(tokenizer_open(&rig.v, 256, &t, rig.why, sizeof(rig.why)),
                                 -EINVAL);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_word_is_the_longest_entries_from_its_begin_on),
                cmocka_unit_test(a_word_that_is_too_long_is_unknown),
                cmocka_unit_test(a_mark_in_the_text_begins_a_word_like_another_spelling),
                cmocka_unit_test(pieces_leave_out_the_blank_before_a_sign),
                cmocka_unit_test(dividing_takes_time_linear_in_the_text),
                cmocka_unit_test(the_last_character_of_a_word_is_another_symbol),
                cmocka_unit_test(the_first_character_of_a_word_is_another_symbol),
                cmocka_unit_test(a_word_whose_border_is_dropped_has_none),
                cmocka_unit_test(a_dropped_character_does_not_part_those_beside_it),
                cmocka_unit_test(a_blank_behind_the_text_is_not_the_one_before_a_word),
                cmocka_unit_test(runs_of_unknown_characters_end_with_the_word),
                cmocka_unit_test(a_cut_of_letters_divides_a_character_whose_letter_is_a_number),
                cmocka_unit_test(refuses_borders_that_do_not_fit_the_kind),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
