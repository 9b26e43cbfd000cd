/*
 * Added tokens in a text, worked out by hand: the leftmost, there the longest; control tokens
 * only where they are allowed.
 */
#include "tests/unit/vocabulary-rig.h"

static struct rig rig;
static uint32_t end, start;

/* Bytes, "ab" by a merge, two controls, and users' "<b>" and "<b>x". */
static void begin(void)
{
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig_merge(&rig, "a+b", "ab");
        end = rig_add(&rig, "<e>", ENTRY_CONTROL, 0);
        start = rig_add(&rig, "<s>", ENTRY_CONTROL, 0);
        rig_add(&rig, "<b>", ENTRY_USER, 0);
        rig_add(&rig, "<b>x", ENTRY_USER, 0);
}

static void control_tokens_in_a_text_are_plain_text_unless_allowed(void **state)
{
        struct tokenizer *t;
        char wanted[64];

        (void)state;
        begin();
        t = rig_open(&rig);
        rig_expect(t, "ab<e>ab", false, "ab|<|e|>|ab");
        snprintf(wanted, sizeof(wanted), "ab|[%u]|ab|[%u]|[%u]", end, start, end);
        rig_expect(t, "ab<e>ab<s><e>", true, wanted);
        rig_expect(t, "<e", true, "<|e");
        tokenizer_close(t);
}

static void finds_user_tokens_everywhere_and_the_longest_first(void **state)
{
        struct tokenizer *t;

        (void)state;
        begin();
        t = rig_open(&rig);
        for (int controls = 0; controls < 2; controls++) {
                rig_expect(t, "a<b>b", controls, "a|<b>|b"); /* and no merge crosses it */
                rig_expect(t, "<b>xx", controls, "<b>x|x");
                rig_expect(t, "<<b>", controls, "<|<b>");
                rig_expect(t, "<b><b>x<b", controls, "<b>|<b>x|<|b");
        }
        tokenizer_close(t);
}

/* Text written by a template is in brackets here; the rest is a client's text. */
static void parts_expect(struct tokenizer *t, const char *marked, const char *wanted)
{
        struct text_part parts[8] = { { 0, 0 } };
        char text[64];
        size_t bytes = 0, count = 0;

        for (; *marked; marked++) {
                if (*marked == '[')
                        parts[count].begin = bytes;
                else if (*marked == ']')
                        parts[count++].end = bytes;
                else
                        text[bytes++] = *marked;
        }
        text[bytes] = '\0';
        rig_expect_parts(t, text, parts, count, wanted);
}

static void finds_control_tokens_only_wholly_inside_the_allowed_parts(void **state)
{
        struct tokenizer *t;
        char wanted[64];

        (void)state;
        begin();
        t = rig_open(&rig);
        snprintf(wanted, sizeof(wanted), "[%u]|x|<|e|>|[%u]", start, end);
        parts_expect(t, "[<s>]x<e>[<e>]", wanted);
        parts_expect(t, "[<s>x]<e>[<e>]", wanted);
        /*
         * If one half is a template's and the other a client's, it is not a token, whichever half
         * is whose.
         */
        snprintf(wanted, sizeof(wanted), "a|<|e|>|[%u]", end);
        parts_expect(t, "a[<]e>[<e>]", wanted);
        parts_expect(t, "a<[e>][<e>]", wanted);
        parts_expect(t, "a[<]e[>][<e>]", wanted);
        parts_expect(t, "[a<e]>[<e>]", wanted);
        tokenizer_close(t);
}

static void encodes_text_between_control_tokens_across_part_boundaries(void **state)
{
        struct tokenizer *t;
        char wanted[64];

        (void)state;
        begin();
        t = rig_open(&rig);
        snprintf(wanted, sizeof(wanted), "[%u]|ab|ab|[%u]", start, end);
        parts_expect(t, "[<s>a]bab[<e>]", wanted);
        parts_expect(t, "[<s>a]b[a]b[<e>]", wanted);
        parts_expect(t, "[<s>]a[b]a[b<e>]", wanted);
        tokenizer_close(t);
}

static void finds_user_tokens_across_part_boundaries(void **state)
{
        struct tokenizer *t;
        char wanted[64];

        (void)state;
        begin();
        rig_add(&rig, "<s>y", ENTRY_USER, 0);
        t = rig_open(&rig);
        parts_expect(t, "[a<]b[>]x", "a|<b>x");
        parts_expect(t, "[<b>]x", "<b>x");
        /* The longer of both, and where it is shorter than a control the control. */
        parts_expect(t, "[<s>]y", "<s>y");
        snprintf(wanted, sizeof(wanted), "[%u]|x", start);
        parts_expect(t, "[<s>]x", wanted);
        parts_expect(t, "<s>[y]", "<s>y");
        tokenizer_close(t);
}

static void finds_the_leftmost_of_overlapping_tokens(void **state)
{
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig_add(&rig, "xy", ENTRY_USER, 0);
        rig_add(&rig, "yzw", ENTRY_USER, 0);
        rig_add(&rig, "zw", ENTRY_USER, 0);
        t = rig_open(&rig);
        rig_expect(t, "xyzw", false, "xy|zw");
        rig_expect(t, "yzw", false, "yzw");
        rig_expect(t, "xxyyzw", false, "x|xy|yzw");
        tokenizer_close(t);
}

static void stripping_tokens_take_the_blanks_beside_them(void **state)
{
        struct tokenizer *t;
        char wanted[64];

        (void)state;
        begin();
        rig.entries[end].matching = ENTRY_STRIPS_LEFT | ENTRY_STRIPS_RIGHT;
        rig.entries[start].matching = ENTRY_STRIPS_RIGHT;
        t = rig_open(&rig);
        snprintf(wanted, sizeof(wanted), "a|[%u]|b", end);
        rig_expect(t, "a \n\xE3\x80\x80<e>\t b", true, wanted);
        snprintf(wanted, sizeof(wanted), "a| |[%u]|[%u]|b", start, end);
        rig_expect(t, "a <s>  <e> b", true, wanted); /* what the first took, the second does not */
        snprintf(wanted, sizeof(wanted), "\x80|[%u]", end);
        rig_expect(t, "\x80 <e>", true, wanted);
        tokenizer_close(t);
}

static void puts_a_blank_before_each_fragment_or_only_the_first(void **state)
{
        struct tokenizer *t;
        char wanted[64];
        uint32_t id;

        (void)state;
        rig_begin(&rig, VOCABULARY_CHARACTERS);
        rig_add(&rig, " ", ENTRY_NORMAL, -9);
        rig_add(&rig, "a", ENTRY_NORMAL, -9);
        rig_add(&rig, " a", ENTRY_NORMAL, -1);
        id = rig_add(&rig, "<e>", ENTRY_CONTROL, 0);
        rig.v.blank = BLANK_EACH;
        t = rig_open(&rig);
        snprintf(wanted, sizeof(wanted), " a|[%u]| a|[%u]", id, id);
        rig_expect(t, "a<e>a<e>", true, wanted);
        tokenizer_close(t);
        rig.v.blank = BLANK_FIRST;
        t = rig_open(&rig);
        snprintf(wanted, sizeof(wanted), " a|[%u]|a|[%u]", id, id);
        rig_expect(t, "a<e>a<e>", true, wanted);
        tokenizer_close(t);
}

/* The most ids a text can have: every fragment gets a blank that has an id of its own. */
static void ids_max_is_exact_for_a_text_with_the_most_ids(void **state)
{
        struct encoding how = { .controls = &text_whole, .control_count = 1 };
        struct tokenizer *t;
        size_t count;

        (void)state;
        rig_begin(&rig, VOCABULARY_CHARACTERS);
        rig_add(&rig, "x", ENTRY_CONTROL, 0);
        rig.v.blank = BLANK_EACH;
        t = rig_open(&rig);
        for (size_t bytes = 0; bytes < 40; bytes++) {
                char text[40];

                for (size_t i = 0; i < bytes; i++)
                        text[i] = i % 2 ? 'x' : 'a';
                free(texts_encode(t, text, bytes, &how, &count));
                assert_int_equal(count, bytes + (bytes + 1) / 2);
                how.steps = how.looked = 0;
        }
        tokenizer_close(t);
}

/* A stream shows the piece; a client that asks for the token itself gets its spelling. */
static void a_token_that_is_not_text_has_a_spelling_and_a_kind(void **state)
{
        static const struct {
                const char *text;
                enum entry_kind kind;
        } all[] = { { "<|end_of_turn|>", ENTRY_CONTROL },
                    { "<unk>", ENTRY_UNKNOWN },
                    { "<tool>", ENTRY_USER },
                    { "spare", ENTRY_UNUSED },
                    { "word", ENTRY_NORMAL },
                    { "", ENTRY_CONTROL } };
        struct tokenizer *tokenizer;
        size_t bytes;

        (void)state;
        rig_begin(&rig, VOCABULARY_CHARACTERS);
        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
                rig_add(&rig, all[i].text, all[i].kind, 0);
        assert_int_equal(tokenizer_open(&rig.v, 300, &tokenizer, rig.why, sizeof(rig.why)), 0);
        assert_int_equal(tokenizer_piece_max(tokenizer), strlen("<|end_of_turn|>"));
        for (uint32_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
                bool is_text = all[i].kind != ENTRY_CONTROL && all[i].kind != ENTRY_UNKNOWN;
                const char *spelling = tokenizer_spelling(tokenizer, 256 + i, &bytes);

                assert_int_equal(tokenizer_kind(tokenizer, 256 + i), all[i].kind);
                assert_int_equal(bytes, strlen(all[i].text));
                assert_memory_equal(spelling, all[i].text, bytes);
                tokenizer_piece(tokenizer, 256 + i, &bytes);
                assert_int_equal(bytes, is_text ? strlen(all[i].text) : 0);
        }
        assert_int_equal(tokenizer_kind(tokenizer, 0xe2), ENTRY_BYTE);
        assert_int_equal((uint8_t)*tokenizer_spelling(tokenizer, 0xe2, &bytes), 0xe2);
        assert_int_equal(bytes, 1);
        assert_int_equal(tokenizer_kind(tokenizer, 299), ENTRY_UNUSED);
        tokenizer_spelling(tokenizer, 299, &bytes);
        assert_int_equal(bytes, 0);
        tokenizer_close(tokenizer);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_token_that_is_not_text_has_a_spelling_and_a_kind),
                cmocka_unit_test(control_tokens_in_a_text_are_plain_text_unless_allowed),
                cmocka_unit_test(finds_user_tokens_everywhere_and_the_longest_first),
                cmocka_unit_test(finds_control_tokens_only_wholly_inside_the_allowed_parts),
                cmocka_unit_test(encodes_text_between_control_tokens_across_part_boundaries),
                cmocka_unit_test(finds_user_tokens_across_part_boundaries),
                cmocka_unit_test(finds_the_leftmost_of_overlapping_tokens),
                cmocka_unit_test(stripping_tokens_take_the_blanks_beside_them),
                cmocka_unit_test(puts_a_blank_before_each_fragment_or_only_the_first),
                cmocka_unit_test(ids_max_is_exact_for_a_text_with_the_most_ids),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
