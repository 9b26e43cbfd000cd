/*
 * Guides along random lists of texts, compared with what the lists say: a token is legal if some
 * text goes on with it, an end token if the text is one of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/description-grammar.h"
#include "daemon/constraint/guide.h"

#define TOKENS  70u
#define CHOICES 6u
#define LONGEST 6u

/* Ids 5, 40 and 69 have no text; two of them end the stream. */
static const uint32_t ends[] = { 5, 69 };
static char texts[TOKENS][4];
static char choices[CHOICES][LONGEST + 1];
static uint64_t random_state;
static struct token_trie *trie;

static uint32_t below(uint32_t bound)
{
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(random_state >> 33) % bound;
}

static void random_text(char *ret_text, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++)
                ret_text[i] = "abc"[below(3)];
        ret_text[count] = 0;
}

static int set_up(void **state)
{
        struct token_text given[TOKENS];

        (void)state;
        random_state = 1;
        for (uint32_t i = 0; i < TOKENS; i++) {
                random_text(texts[i], i == 5 || i == 40 || i == 69 ? 0 : 1 + below(3));
                given[i] = (struct token_text){ texts[i], (uint32_t)strlen(texts[i]) };
        }
        trie = token_trie_new(given, TOKENS, NULL, 0);
        return trie ? 0 : -1;
}

static int tear_down(void **state)
{
        (void)state;
        trie = token_trie_free(trie);
        return 0;
}

static struct grammar *compile(const char *description, const struct grammar_limits *limits)
{
        struct grammar *grammar = NULL;
        char why[256] = "";

        if (description_grammar(description, strlen(description), limits, &grammar, why,
                                sizeof(why)))
                fail_msg("%s: %s", description, why);
        return grammar;
}

static struct grammar *random_choices(void)
{
        char description[256];
        size_t at = (size_t)snprintf(description, sizeof(description), "{\"choices\":[");

        for (uint32_t i = 0; i < CHOICES; i++) {
                random_text(choices[i], 1 + below(LONGEST));
                at += (size_t)snprintf(description + at, sizeof(description) - at, "%s\"%s\"",
                                       i ? "," : "", choices[i]);
        }
        snprintf(description + at, sizeof(description) - at, "]}");
        return compile(description, &grammar_limits_default);
}

static bool is_legal(const struct guide *guide, uint32_t token)
{
        return guide->mask[token >> 5] >> (token & 31) & 1;
}

static bool goes_on(const char *text, const char *more)
{
        for (uint32_t i = 0; i < CHOICES; i++)
                if (!strncmp(choices[i], text, strlen(text)) && choices[i][strlen(text)] &&
                    !strncmp(choices[i] + strlen(text), more, strlen(more)))
                        return true;
        return false;
}

static bool is_whole(const char *text)
{
        for (uint32_t i = 0; i < CHOICES; i++)
                if (!strcmp(choices[i], text))
                        return true;
        return false;
}

/* Checks the mask behind this text; returns a legal token with a text, or TOKENS. */
static uint32_t check(const struct guide *guide, const char *text)
{
        uint32_t found[TOKENS], count = 0;

        assert_int_equal(guide->state,
                         is_whole(text) && !goes_on(text, "") ? GUIDE_WHOLE : GUIDE_GOES_ON);
        for (uint32_t i = 0; i < TOKENS; i++) {
                bool legal = texts[i][0] ? goes_on(text, texts[i])
                                         : (i == ends[0] || i == ends[1]) && is_whole(text);

                if (is_legal(guide, i) != legal)
                        fail_msg("'%s' behind '%s': %d, not %d", texts[i], text, !legal, legal);
                if (legal && texts[i][0])
                        found[count++] = i;
        }
        return count ? found[below(count)] : TOKENS;
}

static void masks_have_the_tokens_that_go_on_and_end_tokens_where_the_text_may_end(void **state)
{
        (void)state;
        for (int round = 0; round < 300; round++) {
                struct grammar *grammar = random_choices();
                struct guide *guide = guide_new(grammar, trie, ends, 2, 0);
                char text[LONGEST + 4] = "";
                uint32_t token;

                assert_non_null(guide);
                guide_begin(guide);
                while ((token = check(guide, text)) < TOKENS) {
                        strcat(text, texts[token]);
                        guide_take(guide, token);
                }
                guide_begin(guide); /* once more from the beginning */
                check(guide, "");
                guide_free(guide);
                grammar_free(grammar);
        }
}

static void a_copy_goes_its_own_way(void **state)
{
        (void)state;
        for (int round = 0; round < 300; round++) {
                struct grammar *grammar = random_choices();
                struct guide *guide = guide_new(grammar, trie, ends, 2, 0);
                struct guide *copy = guide_new(grammar, trie, ends, 2, 0);
                char text[LONGEST + 4] = "", other[LONGEST + 4];
                uint32_t token;

                guide_begin(guide);
                token = check(guide, text);
                strcat(text, texts[token]);
                guide_take(guide, token);
                guide_copy(copy, guide);
                memcpy(other, text, sizeof(text));
                for (int i = 0; i < 6; i++) {
                        struct guide *one = i % 2 ? guide : copy;
                        char *its = i % 2 ? text : other;

                        token = check(one, its);
                        if (token == TOKENS)
                                continue;
                        strcat(its, texts[token]);
                        guide_take(one, token);
                }
                guide_free(copy);
                guide_free(guide);
                grammar_free(grammar);
        }
}

static void without_end_tokens_a_whole_text_has_an_empty_mask(void **state)
{
        struct grammar *grammar = compile("{\"choices\":[\"a\"]}", &grammar_limits_default);
        struct guide *guide = guide_new(grammar, trie, NULL, 0, 0);
        uint32_t token = 0;

        (void)state;
        guide_begin(guide);
        while (strcmp(texts[token], "a") != 0)
                token++;
        guide_take(guide, token);
        assert_int_equal(guide->state, GUIDE_WHOLE);
        for (uint32_t i = 0; i < TOKENS; i++)
                assert_false(is_legal(guide, i));
        guide_free(guide);
        grammar_free(grammar);
}

/* Nothing but a new beginning changes it, and a copy of it is spent, too. */
static void expect_spent(struct guide *guide, struct guide *copy, const char *why)
{
        assert_int_equal(guide->state, GUIDE_SPENT);
        if (why)
                assert_string_equal(guide->why, why);
        assert_non_null(guide->why);
        guide_take(guide, 0);
        assert_int_equal(guide->state, GUIDE_SPENT);
        guide_copy(copy, guide);
        assert_int_equal(copy->state, GUIDE_SPENT);
        assert_string_equal(copy->why, guide->why);
        guide_take(copy, 0);
        assert_int_equal(copy->state, GUIDE_SPENT);
        guide_begin(copy);
        assert_int_equal(copy->state, GUIDE_GOES_ON);
}

static void a_stream_whose_work_is_used_up_is_spent(void **state)
{
        struct grammar *grammar = compile("{\"regex\":\"[abc]*\"}", &grammar_limits_default);
        struct guide *guide = guide_new(grammar, trie, ends, 2, 0);
        struct guide *copy = guide_new(grammar, trie, ends, 2, 0);

        (void)state;
        guide_begin(guide);
        assert_in_range(guide->fuel, 1, GUIDE_FUEL - 1);
        for (int i = 0; i < 1000; i++)
                guide_take(guide, below(5));
        assert_int_equal(guide->state, GUIDE_GOES_ON);
        guide->fuel = 0 - GUIDE_FUEL_TOKEN; /* the next token brings it to nothing */
        guide_take(guide, 0);
        expect_spent(guide, copy, "the work for all masks of a stream");
        guide_free(copy);
        guide_free(guide);
        grammar_free(grammar);
}

/* Where each a stands in the last 15 letters is a state of its own. */
static void a_grammar_that_grows_too_large_is_spent(void **state)
{
        const struct grammar_limits limits = {
                .terms = 10000, .growth = 10000, .states = 200, .symbols = 10000, .fuel = 1000000
        };
        struct grammar *grammar = compile("{\"regex\":\"[abc]*a[abc]{14}\"}", &limits);
        struct guide *guide = guide_new(grammar, trie, ends, 2, 0);

        (void)state;
        guide_begin(guide);
        for (int i = 0; i < 10000 && guide->state != GUIDE_SPENT; i++) {
                uint32_t token = below(TOKENS);

                if (texts[token][0] && is_legal(guide, token))
                        guide_take(guide, token);
        }
        assert_int_equal(guide->state, GUIDE_SPENT);
        assert_non_null(guide->why);
        guide_take(guide, 0);
        assert_int_equal(guide->state, GUIDE_SPENT);
        guide_free(guide);
        grammar_free(grammar);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(masks_have_the_tokens_that_go_on_and_end_tokens_where_the_text_may_end),
                TEST(a_copy_goes_its_own_way),
                TEST(without_end_tokens_a_whole_text_has_an_empty_mask),
                TEST(a_stream_whose_work_is_used_up_is_spent),
                TEST(a_grammar_that_grows_too_large_is_spent),
        };

        return cmocka_run_group_tests_name("guide", tests, NULL, NULL);
}
