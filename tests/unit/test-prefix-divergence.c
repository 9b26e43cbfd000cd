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
        assert_int_equal(hit.diverged_cached_token, known);
        assert_true(words[at] != known);
}

static void expect_none(uint64_t domain, const char *words)
{
        assert_int_equal(find(domain, words).diverged_at, 0);
}

static void reports_no_divergence_where_the_index_has_no_text(void **state)
{
        (void)state;
        open_pool(8);
        expect_none(1, YOU);
        prefix_allocate(&prefix, 1); /* it has no name */
        expect_none(1, YOU);
        put(1, YOU);
        expect_none(1, YOU URN);   /* it goes on where nothing is known */
        expect_none(1, "Me, too"); /* nothing before the first position is known */
        expect_none(1, "X" YOU);
        close_pool();
}

static void reports_no_divergence_for_a_known_text(void **state)
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

static void finds_a_single_different_token_at_any_position(void **state)
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

static void finds_a_divergence_inside_a_partial_block(void **state)
{
        (void)state;
        open_pool(8);
        put(1, YOU "l pot, a cup.");
        expect_diverged(1, YOU "l pot and a cup.", 21, ',');
        expect_diverged(1, YOU "l pot!", 21, ',');
        expect_none(1, YOU "l pot, a cup. And more, and more");
        close_pool();
}

static void finds_a_divergence_at_a_block_boundary(void **state)
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
static void reports_the_divergence_from_the_longer_of_two_partial_blocks(void **state)
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

static void reports_the_divergence_from_the_longest_match(void **state)
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

static void reports_the_newest_of_several_equal_matches(void **state)
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
                        put_and_release(1, inside);
                        put_and_release(1, border);
                        expect_diverged(1, YOU "l.", 17, insides[which][1]);
                        expect_diverged(1, POT ".", 16, borders[which][0]);
                }
                close_pool();
        }
}

/* It is in the index when its first positions are inserted, however many it has later. */
static void extending_a_block_does_not_make_it_newer(void **state)
{
        struct text old;

        (void)state;
        open_pool(8);
        old = put(1, YOU "a");
        put(1, YOU "b");
        expect_diverged(1, YOU ".", 16, 'b');
        insert(1, old.blocks[0], old.blocks[1], "all");
        expect_diverged(1, YOU ".", 16, 'b');
        insert(1, old.blocks[0], old.blocks[1], "all is well here");
        expect_diverged(1, YOU ".", 16, 'b');
        expect_diverged(1, YOU "al.", 18, 'l');
        close_pool();
}

static void reports_nothing_of_evicted_or_invalidated_blocks(void **state)
{
        struct text urn, cup, text;

        (void)state;
        open_pool(3);
        urn = put(1, YOU URN);
        cup = put(1, YOU CUP);
        release(&urn);
        release(&cup);
        expect_diverged(1, YOU "l tea", 18, 'c');
        expect_diverged(1, YOU ".", 16, 'l');
        assert_int_equal(prefix_allocate(&prefix, 1), urn.blocks[1]);
        expect_diverged(1, YOU URN, 18, 'c');
        assert_int_equal(prefix_allocate(&prefix, 1), cup.blocks[1]);
        expect_none(1, YOU URN);
        expect_none(1, YOU ".");
        close_pool();

        open_pool(4);
        text = put(1, YOU URN);
        put(1, YOU CUP);
        prefix_invalidate(&prefix, text.blocks[1]);
        expect_diverged(1, YOU URN, 18, 'c');
        prefix_invalidate(&prefix, text.blocks[0]);
        expect_none(1, YOU URN);
        close_pool();
}

/* A text behind another generation of a block is a text behind another block. */
static void ignores_children_of_an_older_generation_of_a_block(void **state)
{
        struct text text;

        (void)state;
        open_pool(4);
        text = put(1, YOU URN);
        prefix.nodes[text.blocks[0]].generation++;
        expect_none(1, YOU ".");
        expect_none(1, YOU "l cup");
        prefix.nodes[text.blocks[0]].generation--;
        expect_diverged(1, YOU ".", 16, 'l');
        close_pool();
}

/* However many follow, only the newest are examined, and one of them is reported. */
static void reports_the_newest_of_very_many_children(void **state)
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
static void the_reason_of_a_miss_reveals_nothing_of_another_domain(void **state)
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
                        assert_int_equal(with[i].diverged_cached_token,
                                         without[i].diverged_cached_token);
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reports_no_divergence_where_the_index_has_no_text),
                cmocka_unit_test(reports_no_divergence_for_a_known_text),
                cmocka_unit_test(finds_a_single_different_token_at_any_position),
                cmocka_unit_test(finds_a_divergence_inside_a_partial_block),
                cmocka_unit_test(finds_a_divergence_at_a_block_boundary),
                cmocka_unit_test(reports_the_divergence_from_the_longer_of_two_partial_blocks),
                cmocka_unit_test(reports_the_divergence_from_the_longest_match),
                cmocka_unit_test(reports_the_newest_of_several_equal_matches),
                cmocka_unit_test(extending_a_block_does_not_make_it_newer),
                cmocka_unit_test(reports_nothing_of_evicted_or_invalidated_blocks),
                cmocka_unit_test(ignores_children_of_an_older_generation_of_a_block),
                cmocka_unit_test(reports_the_newest_of_very_many_children),
                cmocka_unit_test(the_reason_of_a_miss_reveals_nothing_of_another_domain),
        };

        return cmocka_run_group_tests_name("prefix-miss", tests, NULL, NULL);
}
