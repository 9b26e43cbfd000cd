/* The suffix tree, against an oracle that compares all ends of the text with each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/draft/suffix-tree.h"

#define TEXT_MAX  4000u
#define DRAFT     24u
#define ALL       UINT32_MAX
#define TOKEN_MAX 300000u

static uint64_t dice;

static uint32_t below(uint32_t limit)
{
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(dice >> 33) % limit;
}

/* ---- the oracle ---- */

/*
 * Like the tree, it looks back to `from` only.  The ends of text[0..e) and of the whole text have
 * alike[e] tokens in common.
 */
struct oracle {
        uint32_t *text;
        uint32_t count, from, tokens_max;
        uint32_t alike[TEXT_MAX + 1];
};

static struct oracle oracle;
static struct suffix_tree *tree;

static int clear(void **state)
{
        (void)state;
        tree = suffix_tree_free(tree);
        free(oracle.text);
        oracle.text = NULL;
        return 0;
}

static void begin(uint32_t tokens_max)
{
        suffix_tree_begin(tree, tokens_max);
        oracle.count = oracle.from = 0;
        oracle.tokens_max = tokens_max;
}

static void open_tree(uint32_t tokens_max)
{
        assert_int_equal(suffix_tree_new(tokens_max, &tree), 0);
        begin(tokens_max);
}

/* The text always ends where its memory ends, so that a sanitizer sees what is read behind it. */
static void append(uint32_t token)
{
        uint32_t *longer = malloc((oracle.count + 1) * sizeof(*longer));

        assert_non_null(longer);
        assert_true(oracle.count < TEXT_MAX);
        if (oracle.count)
                memcpy(longer, oracle.text, oracle.count * sizeof(*longer));
        longer[oracle.count++] = token;
        free(oracle.text);
        oracle.text = longer;
        for (uint32_t e = oracle.count - 1; e; e--)
                oracle.alike[e] = longer[e - 1] == token ? oracle.alike[e - 1] + 1 : 0;
        oracle.alike[0] = 0;
}

/* The tree has all of the text now, or begins again with its last half. */
static void add_all(void)
{
        if (oracle.count - oracle.from > oracle.tokens_max)
                oracle.from = oracle.count - (oracle.tokens_max + 1) / 2;
        assert_int_equal(suffix_tree_add(tree, oracle.text, oracle.count, ALL), 0);
}

static uint32_t match_at(uint32_t e)
{
        uint32_t most = e - oracle.from;

        return oracle.alike[e] < most ? oracle.alike[e] : most;
}

static uint32_t longest_match(void)
{
        uint32_t longest = 0;

        for (uint32_t e = oracle.from + 1; e < oracle.count; e++)
                longest = match_at(e) > longest ? match_at(e) : longest;
        return longest;
}

/* From this place the text goes on as the draft does, and behind its end comes the draft. */
static bool goes_on(uint32_t e, const uint32_t *draft, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++, e++)
                if (draft[i] != (e < oracle.count ? oracle.text[e] : draft[e - oracle.count]))
                        return false;
        return true;
}

static bool is_of_a_place(uint32_t match, const uint32_t *draft, uint32_t count)
{
        for (uint32_t e = oracle.from + 1; e < oracle.count; e++)
                if (match_at(e) == match && goes_on(e, draft, count))
                        return true;
        return false;
}

/* Returns the match. */
static uint32_t check(void)
{
        uint32_t match = longest_match(), most = 1 + below(DRAFT);
        uint32_t *draft = malloc(most * sizeof(*draft));

        assert_non_null(draft);
        assert_int_equal(suffix_tree_match(tree), match);
        assert_int_equal(suffix_tree_draft(tree, oracle.text, most, draft), match ? most : 0);
        if (match)
                assert_true(is_of_a_place(match, draft, most));
        free(draft);
        return match;
}

/* ---- texts ---- */

/* A token of the alphabet, or of a copied piece that has `left` tokens more. */
struct source {
        uint32_t alphabet, copies_of_100, left, at;
};

static uint32_t next_token(struct source *source)
{
        if (!source->left && oracle.count && below(100) < source->copies_of_100) {
                source->left = 1 + below(40);
                source->at = below(oracle.count);
        }
        if (source->left && source->left--)
                return oracle.text[source->at++];
        return below(source->alphabet);
}

static void write_text(struct source source, uint32_t count)
{
        while (count--) {
                append(next_token(&source));
                add_all();
                check();
        }
}

/* Every token is seen with a step of its own, in an alphabet of each of these sizes. */
static const uint32_t alphabets[] = { 1, 2, 3, 4, 10, 100, TOKEN_MAX };
#define ALPHABETS (sizeof(alphabets) / sizeof(*alphabets))

static void finds_the_longest_end_that_occurs_earlier(void **state)
{
        (void)state;
        dice = 1;
        open_tree(600);
        for (uint32_t i = 0; i < ALPHABETS * 20; i++) {
                begin(600);
                write_text((struct source){ .alphabet = alphabets[i % ALPHABETS] }, 1 + below(600));
        }
}

static void finds_copied_pieces(void **state)
{
        (void)state;
        dice = 2;
        open_tree(600);
        for (uint32_t i = 0; i < ALPHABETS * 20; i++) {
                begin(600);
                write_text((struct source){ .alphabet = alphabets[i % ALPHABETS],
                                            .copies_of_100 = 2 + below(30) },
                           1 + below(600));
        }
}

/* A period with a wrong token now and then. */
static void finds_periods_with_faults(void **state)
{
        uint32_t period[50];

        (void)state;
        dice = 3;
        open_tree(500);
        for (uint32_t i = 0; i < 100; i++) {
                uint32_t length = 1 + below(50), alphabet = alphabets[below(ALPHABETS)],
                         faults_of_100 = below(4);

                begin(500);
                for (uint32_t j = 0; j < length; j++)
                        period[j] = below(alphabet);
                for (uint32_t j = 0; j < 400; j++) {
                        append(below(100) < faults_of_100 ? below(alphabet) : period[j % length]);
                        add_all();
                        check();
                }
        }
}

static void reads_on_behind_the_end_of_a_periodic_text(void **state)
{
        uint32_t period[20], draft[60];

        (void)state;
        dice = 4;
        open_tree(200);
        for (uint32_t i = 0; i < 300; i++) {
                uint32_t length = 1 + below(20), count = length + 1 + below(60);

                begin(200);
                for (uint32_t j = 0; j < length; j++)
                        period[j] = i % 2 ? j : below(3);
                for (uint32_t j = 0; j < count; j++)
                        append(period[j % length]);
                add_all();
                assert_int_equal(suffix_tree_draft(tree, oracle.text, 60, draft), 60);
                for (uint32_t j = 0; i % 2 && j < 60; j++)
                        assert_int_equal(draft[j], period[(count + j) % length]);
                assert_true(is_of_a_place(check(), draft, 60));
        }
}

/* ---- branches ---- */

static void add_words(const char *words)
{
        for (; *words; words++)
                append((uint32_t)*words);
        add_all();
}

static void assert_draft(const char *expected)
{
        uint32_t draft[DRAFT], count = (uint32_t)strlen(expected);

        assert_int_equal(suffix_tree_draft(tree, oracle.text, count, draft), count);
        for (uint32_t i = 0; i < count; i++)
                assert_int_equal(draft[i], expected[i]);
}

static void prefers_at_a_branch_what_was_used_last(void **state)
{
        (void)state;
        open_tree(100);
        add_words("ab1cab2dab");
        assert_draft("2dab");
        add_words("1eab");
        assert_draft("1eab");
        add_words("2fab");
        assert_draft("2fab");
        add_words("2gab");
        assert_draft("2gab");
        add_words("1hab");
        assert_draft("1hab");
}

/* Several branches follow each other in one draft. */
static void prefers_what_was_used_last_at_every_branch(void **state)
{
        (void)state;
        open_tree(100);
        add_words("ab1cab2dac3ea");
        assert_draft("c3ea");
        add_words("b");
        assert_draft("2dac3");
        add_words("1fa");
        assert_draft("b1fab1f");
        add_words("c4ga");
        assert_draft("c4g");
        add_words("b");
        assert_draft("1fac4g");
}

static void mostly_guesses_what_followed_the_last_time(void **state)
{
        uint32_t guesses = 0, last = 0, draft;

        (void)state;
        dice = 5;
        open_tree(1000);
        for (uint32_t i = 0; i < 3 * ALPHABETS; i++) {
                struct source source = { .alphabet = alphabets[i % ALPHABETS],
                                         .copies_of_100 = 5 * (i / ALPHABETS) };

                begin(1000);
                while (oracle.count < 1000) {
                        uint32_t match, e = oracle.count;

                        append(next_token(&source));
                        add_all();
                        match = longest_match();
                        if (!match)
                                continue;
                        while (match_at(e) != match)
                                e--;
                        assert_int_equal(suffix_tree_draft(tree, oracle.text, 1, &draft), 1);
                        last += draft == oracle.text[e];
                        guesses++;
                }
        }
        print_message("# %u of %u guesses are what followed the last time\n", last, guesses);
        assert_true(guesses > 10000 && last > guesses / 10 * 9);
}

/* ---- sizes ---- */

static void a_longer_text_is_looked_back_at_in_part(void **state)
{
        (void)state;
        dice = 6;
        open_tree(300);
        for (uint32_t i = 0; i < 60; i++) {
                begin(1 + below(i % 3 ? 300 : 8));
                write_text((struct source){ .alphabet = alphabets[i % ALPHABETS],
                                            .copies_of_100 = 10 * (i % 2) },
                           oracle.tokens_max * (1 + below(6)) + below(10));
        }
}

static void begins_again_with_another_size(void **state)
{
        (void)state;
        dice = 7;
        open_tree(1000);
        for (uint32_t i = 0; i < 200; i++) {
                begin(i % 10 ? 1 + below(1000) : 1000);
                write_text((struct source){ .alphabet = alphabets[below(ALPHABETS)],
                                            .copies_of_100 = below(20) },
                           1 + below(oracle.tokens_max < 100 ? oracle.tokens_max : 100));
        }
        assert_int_equal(suffix_tree_match(tree), longest_match());
        begin(1000);
        assert_int_equal(suffix_tree_match(tree), 0);
        assert_int_equal(suffix_tree_draft(tree, oracle.text, 1, &(uint32_t){ 0 }), 0);
}

/* Some tokens are missing for a while, and the text grows meanwhile. */
static void adds_in_small_portions(void **state)
{
        (void)state;
        dice = 8;
        open_tree(800);
        for (uint32_t i = 0; i < 100; i++) {
                struct source source = { .alphabet = alphabets[i % ALPHABETS],
                                         .copies_of_100 = below(20) };
                uint32_t missing = 0, grown, most;

                begin(800);
                while (oracle.count < 700) {
                        for (grown = below(60); grown; grown--, missing++)
                                append(next_token(&source));
                        most = below(50);
                        missing -= missing < most ? missing : most;
                        assert_int_equal(suffix_tree_add(tree, oracle.text, oracle.count, most),
                                         missing);
                        if (!missing)
                                check();
                }
                add_all();
                check();
        }
}

/* If it begins again while tokens are missing, it still gets the whole last half. */
static void begins_again_while_tokens_are_missing(void **state)
{
        (void)state;
        dice = 9;
        open_tree(100);
        for (uint32_t i = 0; i < 60; i++) {
                struct source source = { .alphabet = 2 + below(4), .copies_of_100 = 10 };

                begin(100);
                while (oracle.count < 500) {
                        uint32_t grown = 1 + below(20);

                        while (grown--)
                                append(next_token(&source));
                        if (oracle.count - oracle.from > oracle.tokens_max)
                                oracle.from = oracle.count - oracle.tokens_max / 2;
                        if (!suffix_tree_add(tree, oracle.text, oracle.count, 1 + below(25)))
                                check();
                }
                add_all();
                check();
        }
}

static void has_at_most_70_bytes_for_each_token(void **state)
{
        (void)state;
        for (uint32_t tokens = 1000; tokens <= 32768; tokens++)
                assert_true(suffix_tree_bytes(tokens) <= (size_t)70 * tokens);
        for (uint32_t tokens = 1; tokens < 1000; tokens++)
                assert_true(suffix_tree_bytes(tokens) <= (size_t)70 * tokens + 200);
}

/* Texts that need most nodes for their tokens, in a tree that is as small as it may be. */
static void every_text_has_space(void **state)
{
        (void)state;
        for (uint32_t tokens = 1; tokens < 40; tokens++)
                for (uint32_t alphabet = 1; alphabet < 5; alphabet++) {
                        dice = tokens;
                        open_tree(tokens);
                        for (uint32_t i = 0; i < 20; i++) {
                                begin(tokens);
                                write_text((struct source){ .alphabet = alphabet }, tokens);
                        }
                        clear(state);
                }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, clear)
        const struct CMUnitTest tests[] = {
                TEST(finds_the_longest_end_that_occurs_earlier),
                TEST(finds_copied_pieces),
                TEST(finds_periods_with_faults),
                TEST(reads_on_behind_the_end_of_a_periodic_text),
                TEST(prefers_at_a_branch_what_was_used_last),
                TEST(prefers_what_was_used_last_at_every_branch),
                TEST(mostly_guesses_what_followed_the_last_time),
                TEST(a_longer_text_is_looked_back_at_in_part),
                TEST(begins_again_with_another_size),
                TEST(adds_in_small_portions),
                TEST(begins_again_while_tokens_are_missing),
                TEST(has_at_most_70_bytes_for_each_token),
                TEST(every_text_has_space),
        };

        return cmocka_run_group_tests_name("suffix-tree", tests, NULL, NULL);
}
