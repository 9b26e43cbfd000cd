/* Places in a text, the pool of finished answers, and drafts that are taken from it. */
#include "tests/unit/drafter-rig.h"

#include <stdlib.h>

#define USER  1000u
#define OTHER 1001u
#define SIZE  1024u /* tokens of a ring */

static struct answers *answers;
static struct places *places;
static uint64_t dice;

static uint32_t below(uint32_t limit)
{
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t)(dice >> 33) % limit;
}

static int close_all(void **state)
{
        answers = answers_free(answers);
        places = places_free(places);
        return close_drafter(state);
}

static void index_all(void)
{
        while (answers_index(answers, 64))
                ;
}

static void open_answers(void)
{
        assert_int_equal(answers_new(SIZE, &answers), 0);
}

/* Tokens from this number on, each one more than the one before. */
static void add_answer(uint64_t domain, uint32_t from, uint32_t tokens_count)
{
        uint32_t *text = malloc(tokens_count * sizeof(*text));

        for (uint32_t i = 0; i < tokens_count; i++)
                text[i] = from + i;
        answers_add(answers, domain, text, tokens_count);
        free(text);
        index_all();
}

static void begin_as(uint64_t domain)
{
        open_drafter(TEXT_MAX);
        add_new();
        drafter_begin(drafter, &(struct drafter_text){ .prompt_count = 1,
                                                       .tokens_max = TEXT_MAX,
                                                       .draft_max = 8,
                                                       .answers = answers,
                                                       .domain = domain });
}

static void assert_goes_on(uint32_t from, uint32_t tokens_count)
{
        propose();
        assert_int_equal(draft.source, DRAFT_ANSWERS);
        assert_int_equal(draft.count, tokens_count);
        for (uint32_t i = 0; i < tokens_count; i++)
                assert_int_equal(draft.tokens[i], from + i);
}

/* ---- places ---- */

/* Compares with a search through all tokens of the ring. */
static void a_place_has_the_tokens_that_are_alike(void **state)
{
        enum { LENGTH = 64, TOKENS = 5000 };
        static uint32_t text[TOKENS];
        uint32_t found = 0, longest = 0;

        (void)state;
        dice = 3;
        assert_int_equal(places_new(LENGTH, &places), 0);
        places_begin(places, UINT64_C(0xFFFFF800)); /* low parts of positions overflow */
        for (uint32_t i = 0; i < TOKENS; i++) {
                uint64_t begin = places_end(places) - i, position;
                uint32_t from = i < LENGTH ? 0 : i - LENGTH, alike, best = 0;

                alike = i ? places_find(places, text + i, i, UINT64_MAX, &position) : 0;
                for (uint32_t at = from + 1; at < i; at++) {
                        uint32_t n = 0;

                        while (n < PLACES_ALIKE && at > from + n &&
                               text[at - 1 - n] == text[i - 1 - n])
                                n++;
                        best = n > best ? n : best;
                        if (alike && position == begin + at)
                                assert_int_equal(n, alike);
                }
                if (alike && position < places_end(places))
                        assert_true(alike >= PLACES_SHORT && alike <= best);
                found += alike && position < places_end(places);
                longest += best >= PLACES_SHORT;
                text[i] = below(3);
                places_append(places, text + i, 1);
                if (i % 7 == 0)
                        assert_int_equal(places_index(places, 7), 0);
        }
        assert_true(found > longest / 2);
}

static void the_next_place_ahead_counts(void **state)
{
        static const uint32_t text[] = { 1, 2, 3, 10, 1, 2, 3, 11, 1, 2, 3, 12 };
        uint64_t position;

        (void)state;
        assert_int_equal(places_new(12, &places), 0);
        places_append(places, text, 12);
        places_index(places, 12);
        assert_int_equal(places_find(places, text + 3, 3, UINT64_MAX, &position), 3);
        assert_int_equal(position, 11);
        assert_int_equal(places_find(places, text + 3, 3, 0, &position), 3);
        assert_int_equal(position, 3);
        assert_int_equal(places_find(places, text + 3, 3, 3, &position), 3);
        assert_int_equal(position, 7);
        assert_int_equal(places_find(places, text + 3, 2, 0, &position), 0);
}

/* ---- answers ---- */

static void an_answer_is_guessed_again(void **state)
{
        (void)state;
        open_answers();
        add_answer(USER, 100, 50);
        begin_as(USER);
        answer(100, 102);
        assert_no_draft();
        answer(102, 103);
        assert_goes_on(103, 4);
        answer(103, 120);
        assert_goes_on(120, 8);
        add_new();
        assert_no_draft();
        answer(140, 147);
        assert_goes_on(147, 3); /* to its end */
        answer(147, 150);
        assert_no_draft();
}

static void other_users_find_nothing(void **state)
{
        (void)state;
        open_answers();
        add_answer(USER, 100, 50);
        for (int i = 0; i < 2; i++) {
                begin_as(OTHER);
                answer(100, 120);
                assert_no_draft();
                add_answer(OTHER, 500, 50);
        }
}

/* Its ring is of another user then, and its place there is stale. */
static void the_user_that_was_least_recently_used_gives_way(void **state)
{
        (void)state;
        open_answers();
        add_answer(USER, 100, 50);
        begin_as(USER);
        answer(100, 110);
        assert_goes_on(110, 8);
        for (uint32_t i = 0; i + 1 < ANSWERS_DOMAINS; i++)
                add_answer(2000 + i, 100, 50);
        assert_goes_on(110, 8); /* which is a use */
        add_answer(3000, 100, 50);
        assert_goes_on(110, 8);
        assert_null(answers_of(answers, 2000));
        for (uint32_t i = 0; i < ANSWERS_DOMAINS; i++)
                add_answer(4000 + i, 100, 50);
        assert_null(answers_of(answers, USER));
        assert_no_draft();
        add_answer(USER, 900, 50);
        assert_no_draft();
}

static void a_place_that_was_overwritten_is_stale(void **state)
{
        (void)state;
        open_answers();
        add_answer(USER, 100, 500);
        begin_as(USER);
        answer(100, 110);
        assert_goes_on(110, 8);
        add_answer(USER, 10000, SIZE - 100);
        assert_no_draft();
        add_answer(USER, 20000, 10 * SIZE); /* of which the ring has the end */
        assert_no_draft();
        answer(20000 + 9 * SIZE + 2, 20000 + 9 * SIZE + 12);
        assert_goes_on(20000 + 9 * SIZE + 12, 8);
}

static void an_answer_is_indexed_in_parts(void **state)
{
        uint32_t text[500], calls = 0;

        (void)state;
        open_answers();
        for (uint32_t i = 0; i < 500; i++)
                text[i] = i;
        answers_add(answers, USER, text, 500);
        begin_as(USER);
        answer(400, 410);
        assert_no_draft();
        while (answers_index(answers, 100))
                calls++;
        assert_int_equal(calls, 6);
        assert_goes_on(410, 8);
}

static void the_longer_match_of_repeat_and_answers_counts(void **state)
{
        (void)state;
        open_answers();
        add_answer(USER, 100, 50);
        begin_as(USER);
        answer(100, 106);
        assert_goes_on(106, 7);
        add_new();
        answer(104, 106); /* which was in this answer, too: a match of 2 */
        propose();
        assert_int_equal(draft.source, DRAFT_REPEAT);
        answer(106, 109); /* a match of 5 in the answers; the text itself went on otherwise */
        assert_goes_on(109, 6);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_all)
        const struct CMUnitTest tests[] = {
                TEST(a_place_has_the_tokens_that_are_alike),
                TEST(the_next_place_ahead_counts),
                TEST(an_answer_is_guessed_again),
                TEST(other_users_find_nothing),
                TEST(the_user_that_was_least_recently_used_gives_way),
                TEST(a_place_that_was_overwritten_is_stale),
                TEST(an_answer_is_indexed_in_parts),
                TEST(the_longer_match_of_repeat_and_answers_counts),
        };

        return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
