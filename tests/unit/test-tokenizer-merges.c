/*
 * The results of merges, worked out by hand.  Of all neighbouring pairs that merge, the best
 * one is merged, and the leftmost of equals.  This repeats until none is left.
 */
#include <errno.h>

#include "tests/unit/vocabulary-rig.h"

static struct rig rig;
static const struct vocabulary_normal nfc = { .kind = NORMAL_NFC };

static void applies_merges_in_the_order_of_the_list(void **state)
{
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig_merge(&rig, "b+c", "bc");
        rig_merge(&rig, "a+b", "ab");
        rig_merge(&rig, "ab+c", "abc");
        t = rig_open(&rig);
        rig_expect(t, "abc", false, "a|bc"); /* bc goes first, and then there is no ab */
        rig_expect(t, "ab", false, "ab");
        rig_expect(t, "abab", false, "ab|ab");
        rig_expect(t, "", false, "");
        rig_expect(t, "xbcx", false, "x|bc|x");
        tokenizer_close(t);
}

static void applies_the_leftmost_of_equal_merges_first(void **state)
{
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig_merge(&rig, "a+a", "aa");
        rig_merge(&rig, "aa+aa", "aaaa");
        t = rig_open(&rig);
        rig_expect(t, "aaa", false, "aa|a");
        rig_expect(t, "aaaaa", false, "aaaa|a");
        rig_expect(t, "aaaaaaa", false, "aaaa|aa|a");
        rig_expect(t, "baab", false, "b|aa|b");
        tokenizer_close(t);
}

static void a_duplicate_merge_has_its_first_rank(void **state)
{
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig_merge(&rig, "a+b", "ab");
        rig_merge(&rig, "b+c", "bc");
        rig_merge(&rig, "a+b", "ab");
        t = rig_open(&rig);
        rig_expect(t, "abc", false, "ab|c");
        tokenizer_close(t);
}

static void an_entry_without_a_merge_matches_only_a_whole_pre_token(void **state)
{
        struct tokenizer *t;

        (void)state;
        for (int whole = 0; whole < 2; whole++) {
                rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
                rig_split(&rig, "llama3");
                rig.v.whole_wins = whole;
                rig_merge(&rig, "t+e", "te");
                rig_add(&rig, " tea", ENTRY_NORMAL, 0);
                rig_add(&rig, "tea", ENTRY_UNUSED, 0);
                t = rig_open(&rig);
                rig_expect(t, "a tea", false, whole ? "a| tea" : "a| |te|a");
                rig_expect(t, "tea", false, "te|a"); /* an unused entry is never made of text */
                rig_expect(t, " teas", false, " |te|a|s");
                tokenizer_close(t);
        }
}

static void a_byte_without_a_token_is_unknown_or_has_no_id(void **state)
{
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig.entries['q'].kind = ENTRY_UNUSED;
        t = rig_open(&rig);
        rig_expect(t, "aqqb", false, "a|b");
        tokenizer_close(t);
        rig.v.unknown = rig_add(&rig, "<unk>", ENTRY_UNKNOWN, 0);
        t = rig_open(&rig);
        rig_expect(t, "aqqb", false, "a|[256]|[256]|b");
        tokenizer_close(t);
        rig.v.unknown_run = true;
        t = rig_open(&rig);
        rig_expect(t, "aqqb", false, "a|[256]|b");
        tokenizer_close(t);
}

static void no_merge_crosses_a_pre_token(void **state)
{
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig_merge(&rig, "a+ ", "a ");
        rig_merge(&rig, " +b", " b");
        rig_split(&rig, "gpt2");
        t = rig_open(&rig);
        rig_expect(t, "a b", false, "a| b");
        tokenizer_close(t);
        rig_split(&rig, "none");
        t = rig_open(&rig);
        rig_expect(t, "a b", false, "a |b");
        tokenizer_close(t);
}

static void applies_the_merge_with_the_highest_score_first(void **state)
{
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_CHARACTERS);
        for (const char *const *c = (const char *const[]){ "a", "b", "c", " ", NULL }; *c; c++)
                rig_add(&rig, *c, ENTRY_NORMAL, -100);
        rig_add(&rig, "ab", ENTRY_NORMAL, -2);
        rig_add(&rig, "bc", ENTRY_NORMAL, -1);
        rig_add(&rig, "abc", ENTRY_NORMAL, -3);
        rig_add(&rig, "aa", ENTRY_NORMAL, -1); /* the same as bc: the place decides */
        t = rig_open(&rig);
        rig_expect(t, "abc", false, "abc"); /* bc, and then a and bc */
        rig_expect(t, "aab", false, "aa|b");
        rig_expect(t, "aabc", false, "aa|bc");
        rig_expect(t, "abab", false, "ab|ab");
        tokenizer_close(t);
}

static void encodes_a_character_without_an_entry_as_bytes_or_unknown(void **state)
{
        struct tokenizer *t;
        uint32_t unknown;
        char wanted[64];

        (void)state;
        rig_begin(&rig, VOCABULARY_CHARACTERS);
        rig_add(&rig, "a", ENTRY_NORMAL, 0);
        rig_add(&rig, "n\xC3\xA9", ENTRY_NORMAL,
                /* made of two characters that are no entries */
                0);
        t = rig_open(&rig);
        rig_expect(t, "a\xC3\xA9\xFF", false, "a|\xC3|\xA9|\xFF");
        rig_expect(t, "n\xC3\xA9", false, "n\xC3\xA9");
        tokenizer_close(t);

        rig.v.entry_count = 258;
        for (unsigned b = 0; b < 256; b++)
                rig.entries[b] = (struct entry){ "", 0, 0, ENTRY_UNUSED, 0 };
        unknown = rig_add(&rig, "<unk>", ENTRY_UNKNOWN, 0);
        rig.v.unknown = unknown;
        snprintf(wanted, sizeof(wanted), "a|[%u]|[%u]|a|[%u]", unknown, unknown, unknown);
        t = rig_open(&rig);
        rig_expect(t, "abcad", false, wanted);
        tokenizer_close(t);
        rig.v.unknown_run = true;
        snprintf(wanted, sizeof(wanted), "a|[%u]|a|[%u]", unknown, unknown);
        t = rig_open(&rig);
        rig_expect(t, "abcad", false, wanted);
        tokenizer_close(t);
}

static void adds_or_squeezes_blanks_as_the_vocabulary_says(void **state)
{
        struct tokenizer *t;

        (void)state;
        rig_begin(&rig, VOCABULARY_CHARACTERS);
        rig_add(&rig, " ", ENTRY_NORMAL, -9);
        rig_add(&rig, "a", ENTRY_NORMAL, -9);
        rig_add(&rig, " a", ENTRY_NORMAL, -1);
        t = rig_open(&rig);
        assert_false(tokenizer_adds_blank(t));
        rig_expect(t, "a a", false, "a| a");
        rig_expect(t,
                   "a\xE2\x96\x81"
                   "a",
                   false, "a| a"); /* a bar is a blank */
        tokenizer_close(t);

        rig.v.blank = BLANK_FIRST;
        t = rig_open(&rig);
        assert_true(tokenizer_adds_blank(t));
        rig_expect(t, "a a", false, " a| a");
        rig_expect(t, " a", false, " | a");
        rig_expect(t, "", false, "");
        tokenizer_close(t);

        rig.v.squeezes = true;
        t = rig_open(&rig);
        rig_expect(t, "  a   a  ", false, " a| a");
        rig_expect(t, "   ", false, "");
        tokenizer_close(t);
}

/* The best list of merges for making every heap work: each makes the next possible. */
static void open_deep(struct vocabulary **ret, enum vocabulary_kind kind)
{
        static char as[1024];
        static const char *const pairs[] = { "a+a", "aa+aa", "aaaa+aaaa", "aaaaaaaa+aaaaaaaa" };
        static const char *const made[] = { "aa", "aaaa", "aaaaaaaa", "aaaaaaaaaaaaaaaa" };

        memset(as, 'a', sizeof(as) - 1);
        rig_begin(&rig, kind);
        rig_add(&rig, "a", ENTRY_NORMAL, 0);
        rig_add(&rig, " ", ENTRY_NORMAL, 0);
        for (unsigned i = 0; i < 4; i++) {
                if (kind == VOCABULARY_BYTE_LEVEL)
                        rig_merge(&rig, pairs[i], made[i]);
                else
                        rig_add(&rig, made[i], ENTRY_NORMAL, (float)i);
        }
        rig_add(&rig, "  ", ENTRY_NORMAL, 9);
        *ret = &rig.v;
}

static uint64_t steps_of(const struct tokenizer *t, const char *unit, size_t bytes)
{
        struct encoding how = { .controls = &text_whole, .control_count = 1 };
        char *text = malloc(bytes);
        size_t count, n = strlen(unit);

        for (size_t i = 0; i < bytes; i++)
                text[i] = unit[i % n];
        free(texts_encode(t, text, bytes, &how, &count));
        free(text);
        return how.steps;
}

/* A pre-token may be a megabyte: of one letter, of blanks, of marks, of what almost merges. */
static void encoding_takes_n_log_n_time(void **state)
{
        static const char *const units[] = {
                "a", " ", "ab", "aaab", "\xCC\x81", "\xFF", "a ", "'"
        };

        (void)state;
        for (int kind = VOCABULARY_BYTE_LEVEL; kind <= VOCABULARY_CHARACTERS; kind++) {
                struct vocabulary *v;
                struct tokenizer *t;

                open_deep(&v, (enum vocabulary_kind)kind);
                rig_split(&rig, kind == VOCABULARY_BYTE_LEVEL ? "llama3" : "none");
                v->normals = &nfc;
                v->normal_count = kind == VOCABULARY_BYTE_LEVEL;
                t = rig_open(&rig);
                for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++) {
                        uint64_t once = steps_of(t, units[u], 1u << 17);
                        uint64_t twice = steps_of(t, units[u], 1u << 18);

                        if (twice * 10 > once * 23 || twice > 80ull << 18)
                                fail_msg("'%s': %llu steps, and %llu for twice as much", units[u],
                                         (unsigned long long)once, (unsigned long long)twice);
                }
                tokenizer_close(t);
        }
}

struct cancel_countdown {
        unsigned left;
};

static bool is_cancelled_by_now(void *arg)
{
        struct cancel_countdown *p = arg;

        return !p->left-- ? (p->left = 0, true) : false;
}

static void encoding_a_long_text_stops_soon_after_a_cancel(void **state)
{
        static const char *const units[] = { "a", "ab ", "\xFF" };
        const size_t bytes = 1u << 19;
        char *text = malloc(bytes);
        uint32_t *ids = malloc(4 * (bytes + 1));
        struct vocabulary *v;
        struct tokenizer *t;

        (void)state;
        open_deep(&v, VOCABULARY_BYTE_LEVEL);
        t = rig_open(&rig);
        for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++) {
                struct cancel_countdown p = { 2 };
                struct encoding how = { .cancelled = is_cancelled_by_now, .arg = &p };
                size_t count = 77;

                for (size_t i = 0; i < bytes; i++)
                        text[i] = units[u][i % strlen(units[u])];
                assert_int_equal(tokenizer_encode(t, text, bytes, &how, ids, &count), -ECANCELED);
                assert_int_equal(count, 77);
                assert_in_range(how.steps, 1, 2 * bytes + (6u << 16));
        }
        tokenizer_close(t);
        free(ids);
        free(text);
}

static void decoding_restores_any_bytes(void **state)
{
        static const char *const splitters[] = { "none",  "gpt2",   "llama3",
                                                 "qwen2", "gpt-4o", "deepseek-llm" };
        uint64_t seed = 5;

        (void)state;
        for (int kind = VOCABULARY_BYTE_LEVEL; kind <= VOCABULARY_CHARACTERS; kind++)
                for (size_t i = 0; i < sizeof(splitters) / sizeof(*splitters); i++) {
                        struct vocabulary *v;
                        struct tokenizer *t;

                        open_deep(&v, (enum vocabulary_kind)kind);
                        rig_split(&rig, splitters[i]);
                        v->blank = kind == VOCABULARY_CHARACTERS ? BLANK_EACH : BLANK_NEVER;
                        t = rig_open(&rig);
                        for (unsigned k = 0; k < 4000; k++) {
                                char text[100];

                                texts_come_back(t, text, texts_any(text, sizeof(text), &seed));
                        }
                        tokenizer_close(t);
                }
}

#define WORDS 40000u

/* A blank and a word; the nth word of a long text is one of some hundred, or a new one. */
static size_t write_word(char *to, uint64_t *seed)
{
        static const char *const letters[] = { "a", "a", "a", "a", "a", "a",        "b",    "b",
                                               "b", "b", "b", "b", "c", "\xC3\xA9", "\xFF", "d" };
        uint64_t own = texts_random(seed) % 3 ? texts_random(seed) % 300 : texts_random(seed);
        const unsigned kinds = texts_random(&own) % 4 ? 16 : 4; /* of letters; 4: a word of one */
        size_t n = 1, count = 1 + texts_random(&own) % (texts_random(&own) % 2 ? 6 : 30);

        to[0] = ' ';
        for (size_t i = 0; i < count; i++) {
                const char *letter = letters[texts_random(&own) % kinds];

                memcpy(to + n, letter, strlen(letter));
                n += strlen(letter);
        }
        return n;
}

/*
 * No merge crosses a blank there, so each word has the ids that it has alone.  A word alone
 * repeats nothing, so no cache is involved.
 */
static void expect_ids_of_words(const struct tokenizer *t, uint64_t seed)
{
        char *text = malloc(WORDS * 64);
        uint32_t *all;
        size_t bytes = 0, done = 0, count;
        uint64_t again = seed;

        for (unsigned i = 0; i < WORDS; i++)
                bytes += write_word(text + bytes, &seed);
        all = texts_encode(t, text, bytes, NULL, &count);
        for (unsigned i = 0; i < WORDS; i++) {
                char word[64];
                size_t few, length = write_word(word, &again);
                uint32_t *ids = texts_encode(t, word, length, NULL, &few);

                assert_true(done + few <= count);
                assert_memory_equal(all + done, ids, few * sizeof(*ids));
                done += few;
                free(ids);
        }
        assert_int_equal(done, count);
        free(all);
        free(text);
}

/* Characters that are no entries are unknown, and a run of them is one unknown token. */
static void only_unknown(struct vocabulary *v)
{
        for (unsigned b = 0; b < 256; b++)
                rig.entries[b] = (struct entry){ "", 0, 0, ENTRY_UNUSED, 0 };
        v->unknown = rig_add(&rig, "<unk>", ENTRY_UNKNOWN, 0);
        v->unknown_run = true;
}

static void words_of_a_long_text_have_the_same_ids_as_alone(void **state)
{
        static const struct {
                enum vocabulary_kind kind;
                const char *splitter;
                bool whole_wins, unknown;
        } ways[] = {
                { VOCABULARY_BYTE_LEVEL, "gpt2", false, false },
                { VOCABULARY_BYTE_LEVEL, "llama3", true, false },
                { VOCABULARY_CHARACTERS, "none", false, false },
                { VOCABULARY_CHARACTERS, "none", false, true },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
                struct vocabulary *v;
                struct tokenizer *t;

                open_deep(&v, ways[i].kind);
                rig_split(&rig, ways[i].splitter);
                v->whole_wins = ways[i].whole_wins;
                rig_add(&rig, " abba", ENTRY_NORMAL, 3);
                if (ways[i].kind == VOCABULARY_BYTE_LEVEL)
                        rig_merge(&rig, "aa+b", "aab");
                if (ways[i].unknown)
                        only_unknown(v);
                t = rig_open(&rig);
                expect_ids_of_words(t, i);
                tokenizer_close(t);
        }
}

static void refused(const char *said)
{
        struct tokenizer *t = NULL;

        rig.why[0] = '\0';
        assert_int_equal(tokenizer_open(&rig.v, rig.v.entry_count, &t, rig.why, sizeof(rig.why)),
                         -EINVAL);
        assert_null(t);
        if (!strstr(rig.why, said))
                fail_msg("'%s' is not said in: %s", said, rig.why);
}

static void begin_good(void)
{
        rig_begin(&rig, VOCABULARY_BYTE_LEVEL);
        rig_merge(&rig, "a+b", "ab");
        rig_add(&rig, "<s>", ENTRY_CONTROL, 0);
}

static void refuses_a_vocabulary_that_encoding_cannot_rely_on(void **state)
{
        struct tokenizer *t = NULL;

        (void)state;
        begin_good();
        tokenizer_close(rig_open(&rig));
        rig.merges[0].right = rig.v.entry_count;
        refused("merge 0 has token 258 of 258");
        begin_good();
        rig.merges[0].result = 'a';
        refused("merge 0 gives token 97, whose bytes differ");
        begin_good();
        rig.merges[0].left = 257;
        refused("merge 0 has token 257, which has no text of its own");
        begin_good();
        rig.entries[256].kind = ENTRY_KIND_N;
        refused("unknown kind");
        begin_good();
        rig.entries[256].count = VOCABULARY_ENTRY_BYTES_MAX + 1;
        refused("token 256 has 1025 bytes");
        begin_good();
        rig.entries[256].score = __builtin_nanf("");
        refused("score of token 256");
        begin_good();
        rig.entries[256].kind = ENTRY_BYTE;
        refused("token 256 is a byte");
        begin_good();
        rig.v.bos = 258;
        refused("the bos token is 258");
        begin_good();
        rig.v.cut_count = VOCABULARY_CUTS_MAX + 1;
        refused("9 ways to split");
        begin_good();
        rig.v.entry_count = 0;
        refused("a vocabulary of 0 tokens");
        rig_begin(&rig, VOCABULARY_CHARACTERS);
        rig.v.normal_count = VOCABULARY_NORMALS_MAX + 1;
        refused("17 steps that normalise");
        rig_begin(&rig, VOCABULARY_CHARACTERS);
        for (unsigned b = 0; b < 256; b++)
                rig.entries[b].kind = ENTRY_UNUSED;
        refused("neither tokens for bytes nor an unknown");

        begin_good();
        assert_int_equal(tokenizer_open(&rig.v, 257, &t, rig.why, sizeof(rig.why)), -EINVAL);
        assert_non_null(strstr(rig.why, "258 tokens for a model of 257"));
        assert_int_equal(tokenizer_open(&rig.v, 300, &t, rig.why, sizeof(rig.why)), 0);
        assert_int_equal(tokenizer_vocab(t), 300);
        for (uint32_t id = 257; id < 300; id++) {
                size_t bytes;

                tokenizer_piece(t, id, &bytes);
                assert_int_equal(bytes, 0);
        }
        tokenizer_close(t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(applies_merges_in_the_order_of_the_list),
                cmocka_unit_test(applies_the_leftmost_of_equal_merges_first),
                cmocka_unit_test(a_duplicate_merge_has_its_first_rank),
                cmocka_unit_test(an_entry_without_a_merge_matches_only_a_whole_pre_token),
                cmocka_unit_test(a_byte_without_a_token_is_unknown_or_has_no_id),
                cmocka_unit_test(no_merge_crosses_a_pre_token),
                cmocka_unit_test(applies_the_merge_with_the_highest_score_first),
                cmocka_unit_test(encodes_a_character_without_an_entry_as_bytes_or_unknown),
                cmocka_unit_test(adds_or_squeezes_blanks_as_the_vocabulary_says),
                cmocka_unit_test(encoding_takes_n_log_n_time),
                cmocka_unit_test(encoding_a_long_text_stops_soon_after_a_cancel),
                cmocka_unit_test(decoding_restores_any_bytes),
                cmocka_unit_test(words_of_a_long_text_have_the_same_ids_as_alone),
                cmocka_unit_test(refuses_a_vocabulary_that_encoding_cannot_rely_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
