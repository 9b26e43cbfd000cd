/*
 * Why a prompt was found no further: where the known text diverges, and how.  The positions and
 * tokens here are counted by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"
#include "tests/unit/prefix-rig.h"

static struct prefix_hit find(uint64_t domain, const char *words)
{
        uint32_t tokens[TEXT_MAX], count = tokens_of(words, tokens);
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS + 1];
        struct prefix_hit hit;

        prefix_find(&prefix, READER(domain), tokens, count, blocks, &hit);
        return hit;
}

/* Up to there all is known; there, something known has this token, and the words another one. */
static void expect_diverged(uint64_t domain, const char *words, uint32_t at, char known)
{
        struct prefix_hit hit = find(domain, words);

        assert_int_equal(hit.diverged_at, at);
        assert_int_equal(hit.whole_count * BLOCK_POSITIONS + hit.tail_count, at);
        assert_int_equal(hit.known_token, known);
        assert_true(words[at] != known);
}

static void expect_none(uint64_t domain, const char *words)
{
        assert_int_equal(find(domain, words).diverged_at, 0);
}

static void what_is_not_known_is_no_divergence(void **state)
{
        (void)state;
        open_pool(8);
        expect_none(1, YOU);
        prefix_take(&prefix, 1); /* it has no name */
        expect_none(1, YOU);
        put(1, YOU);
        expect_none(1, YOU URN);   /* it goes on where nothing is known */
        expect_none(1, "Me, too"); /* nothing before the first position is known */
        expect_none(1, "X" YOU);
        close_pool();
}

static void a_text_that_ends_or_is_known_diverges_nowhere(void **state)
{
        (void)state;
        open_pool(8);
        put(1, YOU URN "ea?");
        expect_none(1, "");
        expect_none(1, "Y");
        expect_none(1, "You are");
        expect_none(1, YOU);
        expect_none(1, YOU "l urn");
        expect_none(1, YOU URN);
        expect_none(1, YOU URN "e");
        expect_none(1, YOU URN "ea?");
        expect_none(1, YOU URN "ea? Now say");
        close_pool();
}

static void one_other_token_is_found_wherever_it_stands(void **state)
{
        const char *words = YOU URN "ea made of";

        (void)state;
        open_pool(8);
        put(1, words);
        for (uint32_t at = 0; at < strlen(words); at++) {
                char other[] = YOU URN "ea made of? Tell me all";

                other[at] = '#';
                if (at)
                        expect_diverged(1, other, at, words[at]);
                else
                        expect_none(1, other);
                other[at + 1] = 0; /* the last one that it has */
                if (at)
                        expect_diverged(1, other, at, words[at]);
                other[at] = 0; /* it ends before it */
                expect_none(1, other);
        }
        close_pool();
}

static void a_tail_of_thirteen_is_left_at_its_sixth(void **state)
{
        (void)state;
        open_pool(8);
        put(1, YOU "l pot, a cup.");
        expect_diverged(1, YOU "l pot and a cup.", 21, ',');
        expect_diverged(1, YOU "l pot!", 21, ',');
        expect_none(1, YOU "l pot, a cup. And more, and more");
        close_pool();
}

static void blocks_that_follow_with_other_first_tokens_are_known(void **state)
{
        (void)state;
        open_pool(8);
        put(1, YOU URN);
        expect_diverged(1, YOU "! Now, what is a", 16, 'l');
        expect_diverged(1, YOU "!", 16, 'l');
        put(1, YOU URN TEA);
        expect_diverged(1, YOU URN "in made of? Tell", 32, 'e');
        expect_diverged(1, YOU URN "in", 32, 'e');
        close_pool();
}

/* A part of a block says nothing about the text behind it. */
static void where_a_part_ends_another_may_go_on(void **state)
{
        (void)state;
        for (int turned = 0; turned < 2; turned++) {
                open_pool(8);
                put(1, turned ? YOU "l pond" : YOU "l po");
                if (!turned)
                        expect_none(1, YOU "l pox");
                put(1, turned ? YOU "l po" : YOU "l pond");
                expect_diverged(1, YOU "l pox", 20, 'n');
                close_pool();
        }
}

static void what_is_alike_the_longest_counts(void **state)
{
        (void)state;
        open_pool(16);
        put(1, YOU "l urn");
        put(1, YOU "lamp");
        put(1, YOU "! Say so");
        put(1, POT);
        expect_diverged(1, YOU CUP, 18, 'u');
        expect_diverged(1, YOU "lake", 18, 'm');
        expect_diverged(1, YOU "? Say so", 16, '!');
        expect_diverged(1, "You are a heron", 12, 'l');
        close_pool();
}

static void of_several_the_one_named_last_is_told(void **state)
{
        static const char *const insides[] = { "l1", "l2", "l3", "l4" };
        static const char *const borders[] = { "1", "2", "3", "4" };

        (void)state;
        for (uint32_t last = 0; last < 4; last++) {
                open_pool(16);
                for (uint32_t i = 0; i < 4; i++) {
                        char inside[TEXT_MAX] = YOU, border[TEXT_MAX] = POT;
                        uint32_t which = (last + 1 + i) % 4;

                        strcat(inside, insides[which]);
                        strcat(border, borders[which]);
                        put_and_let_go(1, inside);
                        put_and_let_go(1, border);
                        expect_diverged(1, YOU "l.", 17, insides[which][1]);
                        expect_diverged(1, POT ".", 16, borders[which][0]);
                }
                close_pool();
        }
}

/* Its name begins when its first positions are named, however many it has later. */
static void a_block_that_was_named_further_is_no_newer(void **state)
{
        struct text old;

        (void)state;
        open_pool(8);
        old = put(1, YOU "a");
        put(1, YOU "b");
        expect_diverged(1, YOU ".", 16, 'b');
        name(1, old.blocks[0], old.blocks[1], "all");
        expect_diverged(1, YOU ".", 16, 'b');
        name(1, old.blocks[0], old.blocks[1], "all is well here");
        expect_diverged(1, YOU ".", 16, 'b');
        expect_diverged(1, YOU "al.", 18, 'l');
        close_pool();
}

static void what_was_evicted_or_spoilt_is_not_told(void **state)
{
        struct text urn, cup, text;

        (void)state;
        open_pool(3);
        urn = put(1, YOU URN);
        cup = put(1, YOU CUP);
        let_go(&urn);
        let_go(&cup);
        expect_diverged(1, YOU "l tea", 18, 'c');
        expect_diverged(1, YOU ".", 16, 'l');
        assert_int_equal(prefix_take(&prefix, 1), urn.blocks[1]);
        expect_diverged(1, YOU URN, 18, 'c');
        assert_int_equal(prefix_take(&prefix, 1), cup.blocks[1]);
        expect_none(1, YOU URN);
        expect_none(1, YOU ".");
        close_pool();

        open_pool(4);
        text = put(1, YOU URN);
        put(1, YOU CUP);
        prefix_spoil(&prefix, text.blocks[1]);
        expect_diverged(1, YOU URN, 18, 'c');
        prefix_spoil(&prefix, text.blocks[0]);
        expect_none(1, YOU URN);
        close_pool();
}

/* A text behind another generation of a block is a text behind another block. */
static void a_parent_of_another_generation_has_nothing_to_tell(void **state)
{
        struct text text;

        (void)state;
        open_pool(4);
        text = put(1, YOU URN);
        prefix.named[text.blocks[0]].generation++;
        expect_none(1, YOU ".");
        expect_none(1, YOU "l cup");
        prefix.named[text.blocks[0]].generation--;
        expect_diverged(1, YOU ".", 16, 'l');
        close_pool();
}

/* However many follow, only the newest are examined, and one of them is reported. */
static void of_very_many_the_newest_is_told(void **state)
{
        (void)state;
        open_pool(1024);
        for (unsigned i = 0; i < 150; i++) {
                char inside[TEXT_MAX], border[TEXT_MAX];

                snprintf(inside, sizeof(inside), YOU "l%c%u", 'a' + i % 26, i);
                snprintf(border, sizeof(border), POT "%c%u", 'a' + i % 26, i);
                put(1, inside);
                put(1, border);
                expect_diverged(1, YOU "l.", 17, inside[17]);
                expect_diverged(1, POT ".", 16, border[16]);
        }
        close_pool();
}

enum { ASKED = 12 };

/* All queries that may reveal the contents of another user's blocks. */
static void ask_all(struct prefix_hit hits[ASKED])
{
        static const char *const asked[ASKED] = {
                "Y", "You are a h!", YOU,         YOU "l",     YOU "l p!",   YOU ".",
                POT, POT "!",        YOU URN TEA, YOU CUP ".", YOU URN "e!", "My secret is 7",
        };

        for (uint32_t i = 0; i < ASKED; i++)
                hits[i] = find(1, asked[i]);
}

/*
 * The reason for a miss is an answer, too, and could reveal another user's prompts token by
 * token.  So every answer must be the same, whatever another domain holds.
 */
static void nothing_is_told_of_another_domain(void **state)
{
        static const char *const secrets[] = {
                "You are a hermit",
                YOU "l pad 4711",
                YOU URN TEA "me",
                POT "!!",
                "My secret is 42.",
                YOU CUP "ears",
                "Y",
        };

        (void)state;
        for (int colliding = 0; colliding < 2; colliding++) {
                uint64_t mask = colliding ? 0 : UINT64_MAX;
                struct prefix_hit without[ASKED], with[ASKED];

                for (int others = 0; others < 2; others++) {
                        open_with(64, mask, mask);
                        put(1, YOU "l pot");
                        put(1, POT "?");
                        for (size_t i = 0; others && i < sizeof(secrets) / sizeof(*secrets); i++) {
                                put(2, secrets[i]);
                                put(1 + (UINT64_C(1) << 32), secrets[i]);
                        }
                        ask_all(others ? with : without);
                        expect_diverged(1, YOU "l pad", 19, 'o');
                        expect_none(1, "My secret is 7");
                        if (others)
                                expect_diverged(2, "My secret is 7", 13, '4');
                        close_pool();
                }
                for (uint32_t i = 0; i < ASKED; i++) {
                        assert_int_equal(with[i].whole_count, without[i].whole_count);
                        assert_int_equal(with[i].tail_count, without[i].tail_count);
                        assert_int_equal(with[i].diverged_at, without[i].diverged_at);
                        assert_int_equal(with[i].known_token, without[i].known_token);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_not_known_is_no_divergence),
                cmocka_unit_test(a_text_that_ends_or_is_known_diverges_nowhere),
                cmocka_unit_test(one_other_token_is_found_wherever_it_stands),
                cmocka_unit_test(a_tail_of_thirteen_is_left_at_its_sixth),
                cmocka_unit_test(blocks_that_follow_with_other_first_tokens_are_known),
                cmocka_unit_test(where_a_part_ends_another_may_go_on),
                cmocka_unit_test(what_is_alike_the_longest_counts),
                cmocka_unit_test(of_several_the_one_named_last_is_told),
                cmocka_unit_test(a_block_that_was_named_further_is_no_newer),
                cmocka_unit_test(what_was_evicted_or_spoilt_is_not_told),
                cmocka_unit_test(a_parent_of_another_generation_has_nothing_to_tell),
                cmocka_unit_test(of_very_many_the_newest_is_told),
                cmocka_unit_test(nothing_is_told_of_another_domain),
        };

        return cmocka_run_group_tests_name("prefix-miss", tests, NULL, NULL);
}
