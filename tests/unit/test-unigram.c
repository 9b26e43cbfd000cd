/*
 * Scores: the path with the largest sum, worked out by hand.  Also that hostile entries and texts
 * take linear time.
 */
#include <errno.h>
#include <math.h>

#include "tests/unit/vocabulary-rig.h"

#include "daemon/text/trie.h"
#include "daemon/text/unigram.h"

static struct rig rig;

static void begin(bool bytes)
{
        rig_begin(&rig, VOCABULARY_UNIGRAM);
        for (unsigned b = 0; !bytes && b < 256; b++)
                rig.entries[b].kind = ENTRY_UNUSED;
        rig.v.unknown = rig_add(&rig, "<unk>", ENTRY_UNKNOWN, 0);
        rig.v.unknown_score = -20;
        rig.v.unknown_run = true;
}

static void expect(const char *text, const char *wanted)
{
        struct tokenizer *t = rig_open(&rig);

        rig_expect(t, text, true, wanted);
        tokenizer_close(t);
}

static void the_largest_sum_of_scores_wins(void **state)
{
        (void)state;
        begin(false);
        rig_add(&rig, "a", ENTRY_NORMAL, -1);
        rig_add(&rig, "b", ENTRY_NORMAL, -1);
        rig_add(&rig, "c", ENTRY_NORMAL, -4);
        rig_add(&rig, "ab", ENTRY_NORMAL, -3);
        rig_add(&rig, "bc", ENTRY_NORMAL, -2);
        rig_add(&rig, "abca", ENTRY_NORMAL, -3.5);
        expect("", "");
        expect("ab", "a|b");
        expect("abc", "a|bc");
        expect("abca", "abca");
        expect("abcab", "abca|b");
        expect("cabc", "c|a|bc");
}

static void of_equal_sums_the_first_path_wins(void **state)
{
        (void)state;
        begin(false);
        rig_add(&rig, "a", ENTRY_NORMAL, -1);
        rig_add(&rig, "aa", ENTRY_NORMAL, -2);
        rig_add(&rig, "aaa", ENTRY_NORMAL, -3);
        expect("aaa", "aaa");
        expect("aaaa", "a|aaa"); /* all sums are -4: the longest last entry was found first */
        expect("aaaaaaa", "a|aaa|aaa");
}

static void unknown_characters_become_one_token_or_bytes(void **state)
{
        (void)state;
        begin(false);
        rig_add(&rig, "a", ENTRY_NORMAL, -1);
        expect("a\xC3\xA9xy\xFFz", "a|[256]");
        expect("xax", "[256]|a|[256]");
        rig.v.unknown_run = false;
        expect("xxa", "[256]|a"); /* without a token for each, too, as the model joins them */
        begin(true);
        rig_add(&rig, "a", ENTRY_NORMAL, -1);
        expect("a\xC3\xA9x", "a|\xC3|\xA9|x");
        begin(true);
        rig_add(&rig, "xy", ENTRY_NORMAL, -60);
        expect("xy", "xy"); /* the characters alone score more, but together they are an entry */
        expect("xyx", "x|y|x");
}

static void controls_and_unscored_entries_are_not_made_of_text(void **state)
{
        struct tokenizer *t;

        (void)state;
        begin(false);
        rig_add(&rig, "</s>", ENTRY_CONTROL, 0);
        rig_add(&rig, "ab", ENTRY_NORMAL, -INFINITY);
        rig_add(&rig, "a", ENTRY_NORMAL, -1);
        rig_add(&rig, "b", ENTRY_UNUSED, 5);
        t = rig_open(&rig);
        rig_expect(t, "a</s>a", true, "a|[257]|a");
        rig_expect(t, "a</s>a", false, "a|[256]|a");
        rig_expect(t, "ab", false, "a|[256]");
        tokenizer_close(t);
}

static void a_byte_may_be_written_by_its_name(void **state)
{
        (void)state;
        begin(true);
        rig.v.spelt_bytes = true;
        expect("<0x41>", "A");
        rig.v.spelt_bytes = false;
        expect("<0x41>", "<|0|x|4|1|>");
}

static void single_sums_have_the_digits_of_a_float(void **state)
{
        (void)state;
        for (int single = 0; single < 2; single++) {
                begin(false);
                rig.v.single_sums = single;
                rig_add(&rig, "x", ENTRY_NORMAL, -16777216);
                rig_add(&rig, "ab", ENTRY_NORMAL, -1);
                rig_add(&rig, "a", ENTRY_NORMAL, -0.25);
                rig_add(&rig, "b", ENTRY_NORMAL, -0.25);
                /* As floats, both sums behind x are that of x: the first path wins. */
                expect("xab", single ? "x|ab" : "x|a|b");
        }
}

static void user_entries_compete_by_their_scores_in_single_sums(void **state)
{
        (void)state;
        for (int single = 0; single < 2; single++) {
                begin(false);
                rig.v.single_sums = single;
                rig_add(&rig, "ab", ENTRY_USER, -0.5);
                rig_add(&rig, "abc", ENTRY_NORMAL, -0.1);
                rig_add(&rig, "c", ENTRY_NORMAL, -1);
                expect("abc", single ? "abc" : "ab|c");
                expect("abab", "ab|ab");
        }
}

static void refuses_scores_without_an_unknown_token(void **state)
{
        struct tokenizer *t;

        (void)state;
        begin(true);
        rig.v.unknown = VOCABULARY_NONE;
        assert_int_equal(tokenizer_open(&rig.v, rig.v.entry_count, &t, rig.why, sizeof(rig.why)),
                         -EINVAL);
        assert_non_null(strstr(rig.why, "no unknown token"));
        begin(true);
        rig.v.unknown_score = NAN;
        assert_int_equal(tokenizer_open(&rig.v, rig.v.entry_count, &t, rig.why, sizeof(rig.why)),
                         -EINVAL);
        assert_non_null(strstr(rig.why, "not a number"));
}

static uint64_t steps_of(const struct tokenizer *t, const char *unit, size_t bytes)
{
        struct encoding how = { .control_count = 0 };
        char *text = malloc(bytes);
        size_t count, n = strlen(unit);

        for (size_t i = 0; i < bytes; i++)
                text[i] = unit[i % n];
        free(texts_encode(t, text, bytes, &how, &count));
        free(text);
        return how.steps;
}

static void encoding_takes_time_linear_in_the_text(void **state)
{
        static const char *const units[] = { "a", "ab", "b", "a b", "\xFF", "\xC3\xA9" };
        static char as[257];
        struct tokenizer *t;

        (void)state;
        begin(false);
        memset(as, 'a', 256);
        for (unsigned n = 1; n <= 256; n *= 2)
                rig_add(&rig, as + 256 - n, ENTRY_NORMAL, -1);
        t = rig_open(&rig);
        for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++) {
                uint64_t once = steps_of(t, units[u], 1u << 15);
                uint64_t twice = steps_of(t, units[u], 1u << 16);

                /* Each place follows the longest entry at most. */
                if (twice * 10 > once * 21 || twice > 260ull << 16)
                        fail_msg("'%s': %llu steps, and %llu for twice as much", units[u],
                                 (unsigned long long)once, (unsigned long long)twice);
        }
        tokenizer_close(t);
}

static void count_piece(void *arg, uint32_t id, const char *text, size_t bytes)
{
        size_t *count = arg;

        (void)id;
        (void)text;
        (void)bytes;
        ++*count;
}

static void a_long_text_of_short_words_needs_little_memory(void **state)
{
        struct unigram_work work = { 0 };
        struct encoding how = { .control_count = 0 };
        struct unigram *unigram;
        const size_t bytes = 1u << 20;
        char *text = malloc(bytes);
        size_t count = 0;

        (void)state;
        begin(false);
        rig_add(&rig, "ab", ENTRY_NORMAL, -1);
        for (size_t i = 0; i < bytes; i++)
                text[i] = "ab"[i % 2];
        assert_int_equal(unigram_new(&rig.v, &unigram), 0);
        assert_int_equal(unigram_run(unigram, &work, text, bytes, &how, count_piece, &count), 0);
        assert_int_equal(count, bytes / 2);
        assert_in_range(work.capacity, 1, 1024);
        unigram_work_deinit(&work);
        unigram_free(unigram);
        free(text);
}

static bool always(void *arg)
{
        (void)arg;
        return true;
}

static void an_encoding_can_be_cancelled(void **state)
{
        struct encoding how = { .cancelled = always };
        const size_t bytes = 1u << 20;
        char *text = malloc(bytes);
        struct tokenizer *t;
        uint32_t *ids;
        size_t count;

        (void)state;
        begin(false);
        rig_add(&rig, "aa", ENTRY_NORMAL, -1);
        memset(text, 'a', bytes);
        t = rig_open(&rig);
        ids = calloc(tokenizer_ids_max(t, bytes), sizeof(*ids));
        assert_int_equal(tokenizer_encode(t, text, bytes, &how, ids, &count), -ECANCELED);
        assert_in_range(how.steps, 1, 2 * bytes + (4u << 16));
        tokenizer_close(t);
        free(ids);
        free(text);
}

static void a_blank_may_go_behind_a_text(void **state)
{
        (void)state;
        begin(false);
        rig.v.blank = BLANK_LAST;
        rig_add(&rig, "a ", ENTRY_NORMAL, -1);
        rig_add(&rig, " ", ENTRY_NORMAL, -1);
        rig_add(&rig, "a", ENTRY_NORMAL, -1);
        rig_add(&rig, "<s>", ENTRY_CONTROL, 0);
        expect("a", "a ");
        expect("a a", "a |a ");
        expect("a<s>", "a |[260]");
        expect("", "");
}

static void every_white_space_may_count_as_a_blank(void **state)
{
        (void)state;
        begin(false);
        rig.v.blank = BLANK_EACH;
        rig.v.blank_once = rig.v.squeezes_all = true;
        rig_add(&rig, " ", ENTRY_NORMAL, -1);
        rig_add(&rig, "a", ENTRY_NORMAL, -1);
        expect("a", " |a");
        expect("\t a \n\xE3\x80\x80 a\t", " |a| |a");
        expect(" \n", "");
        expect("a \xE2\x96\x81"
               "a",
               " |a| |a"); /* a word that begins with a bar */
        expect("a\xE2\x96\x81 a", " |a| | |a");
}

/* ---- the trie ---- */

static void a_trie_finds_its_words(void **state)
{
        struct trie_word words[] = { { "abc", 3, 1 }, { "a", 1, 2 },    { "abd", 3, 3 },
                                     { "a", 1, 7 },   { "\xFF", 1, 4 }, { "b\0c", 3, 5 } };
        uint64_t steps = 0;
        struct trie *trie;
        uint32_t node;

        (void)state;
        assert_int_equal(trie_new(words, 6, &trie), 0);
        node = trie_step(trie, TRIE_ROOT, 'a');
        assert_int_equal(trie_value(trie, node), 7); /* of equal words the last one */
        node = trie_step(trie, node, 'b');
        assert_int_equal(trie_value(trie, node), TRIE_NONE);
        assert_int_equal(trie_value(trie, trie_step(trie, node, 'd')), 3);
        assert_int_equal(trie_step(trie, node, 'e'), TRIE_NONE);
        assert_int_equal(trie_longest(trie, "abx", 3, &steps), 1);
        assert_int_equal(trie_longest(trie, "abdx", 4, &steps), 3);
        assert_int_equal(trie_longest(trie, "b\0cd", 4, &steps), 3);
        assert_int_equal(trie_longest(trie, "x", 1, &steps), 0);
        assert_int_equal(trie_longest(trie, "", 0, &steps), 0);
        trie_free(trie);
        assert_int_equal(trie_new(words, 0, &trie), 0);
        assert_int_equal(trie_step(trie, TRIE_ROOT, 'a'), TRIE_NONE);
        trie_free(trie);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_largest_sum_of_scores_wins),
                cmocka_unit_test(of_equal_sums_the_first_path_wins),
                cmocka_unit_test(unknown_characters_become_one_token_or_bytes),
                cmocka_unit_test(controls_and_unscored_entries_are_not_made_of_text),
                cmocka_unit_test(a_byte_may_be_written_by_its_name),
                cmocka_unit_test(single_sums_have_the_digits_of_a_float),
                cmocka_unit_test(user_entries_compete_by_their_scores_in_single_sums),
                cmocka_unit_test(refuses_scores_without_an_unknown_token),
                cmocka_unit_test(encoding_takes_time_linear_in_the_text),
                cmocka_unit_test(a_long_text_of_short_words_needs_little_memory),
                cmocka_unit_test(an_encoding_can_be_cancelled),
                cmocka_unit_test(a_blank_may_go_behind_a_text),
                cmocka_unit_test(every_white_space_may_count_as_a_blank),
                cmocka_unit_test(a_trie_finds_its_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
