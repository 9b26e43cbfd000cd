/*
 * Public names in the prefix index: who finds a published text, who owns which part of it, and
 * which blocks go when it is revoked.  Users are 1 and 2; EVERYONE and STAFF are public.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"
#include "tests/unit/prefix-rig.h"

#define EVERYONE PREFIX_EVERYONE
#define STAFF    PREFIX_GROUP(1)

static void open_public(uint32_t blocks)
{
        struct prefix_conf conf = plain;

        conf.anchors = 4;
        assert_int_equal(prefix_init(&prefix, &conf, blocks), 0);
}

/* A text that is published with this anchor, and not held. */
static struct text publish(uint64_t domain, const char *words, uint32_t anchor)
{
        struct text text = put(domain, words);

        prefix_publish(&prefix, anchor, text.blocks[text.count - 1]);
        let_go(&text);
        return text;
}

static void revoke(uint32_t anchor)
{
        prefix_anchor(&prefix, anchor, BLOCK_NONE);
        prefix_check(&prefix);
}

static struct prefix_hit find(const struct prefix_reader *reader, const char *words,
                              block_t *ret_blocks)
{
        uint32_t tokens[TEXT_MAX], count = tokens_of(words, tokens);
        struct prefix_hit hit;

        prefix_find(&prefix, reader, tokens, count, ret_blocks, &hit);
        return hit;
}

static void expect(const struct prefix_reader *reader, const char *words, uint32_t positions)
{
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        struct prefix_hit hit = find(reader, words, blocks);

        assert_int_equal(prefix_positions(&hit), positions);
}

/*
 * A user continues behind the blocks that it found.  It holds all of them, and the rest is its
 * own.
 */
static struct text go_on(const struct prefix_reader *reader, const char *words)
{
        uint32_t tokens[TEXT_MAX], count = tokens_of(words, tokens);
        struct prefix_hit hit;
        struct text text;

        prefix_find(&prefix, reader, tokens, count, text.blocks, &hit);
        text.count = hit.whole_count;
        for (uint32_t i = 0; i < text.count; i++)
                prefix_hold(&prefix, text.blocks[i]);
        while (text.count * BLOCK_POSITIONS < count) {
                uint32_t at = text.count * BLOCK_POSITIONS;
                block_t own = prefix_take(&prefix, reader->domains[0]);

                prefix_name(&prefix, reader->domains[0],
                            at ? text.blocks[text.count - 1] : BLOCK_NONE, own, tokens + at,
                            count - at < BLOCK_POSITIONS ? count - at : BLOCK_POSITIONS);
                text.blocks[text.count++] = own;
        }
        prefix_check(&prefix);
        return text;
}

static void what_is_published_is_found_by_whom_it_is_published_to(void **state)
{
        (void)state;
        open_public(8);
        publish(EVERYONE, YOU URN "ea", 1);
        publish(STAFF, TEA POT, 2);
        expect(READER(2, STAFF, EVERYONE), YOU URN "east", 34);
        expect(READER(2, EVERYONE), YOU URN "east", 34);
        expect(READER(2), YOU URN "east", 0);
        expect(READER(2, STAFF, EVERYONE), TEA POT, 32);
        expect(READER(2, EVERYONE), TEA POT, 0);
        expect(READER(2, PREFIX_GROUP(2), EVERYONE), TEA POT, 0);
        close_pool();
}

static void what_is_not_published_yet_is_found_by_nobody_else(void **state)
{
        struct text text;

        (void)state;
        open_public(8);
        text = put(EVERYONE, YOU URN "ea");
        expect(READER(2, EVERYONE), YOU URN "ea", 0);
        expect(READER(EVERYONE), YOU URN "ea", 34); /* the publisher, too */
        prefix_publish(&prefix, 1, text.blocks[1]);
        expect(READER(2, EVERYONE), YOU URN "ea", 32);
        prefix_publish(&prefix, 2, text.blocks[2]);
        expect(READER(2, EVERYONE), YOU URN "ea", 34);
        let_go(&text);
        close_pool();
}

/* Behind a public block each user has blocks of its own. */
static void what_follows_a_public_block_is_its_users_own(void **state)
{
        struct text his, hers;

        (void)state;
        open_public(12);
        publish(EVERYONE, YOU URN, 1);
        his = go_on(READER(1, EVERYONE), YOU URN TEA "!");
        let_go(&his);
        expect(READER(1, EVERYONE), YOU URN TEA "!", 49);
        expect(READER(2, EVERYONE), YOU URN TEA "!", 32);
        /* it hangs below blocks that the user must not see */
        expect(READER(1), YOU URN TEA "!", 0);
        hers = go_on(READER(2, EVERYONE), YOU URN TEA "?");
        let_go(&hers);
        assert_int_not_equal(his.blocks[2], hers.blocks[2]);
        expect(READER(2, EVERYONE), YOU URN TEA "?", 49);
        expect(READER(1, EVERYONE), YOU URN TEA "?", 48);
        close_pool();
}

static void the_longest_way_counts_and_of_equal_ones_his_own(void **state)
{
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        struct text own, public, staff;
        struct prefix_hit hit;

        (void)state;
        open_public(12);
        own = put_and_let_go(1, YOU URN "e");
        public = publish(EVERYONE, YOU URN TEA, 1);
        staff = publish(STAFF, YOU, 2);
        hit = find(READER(1, STAFF, EVERYONE), YOU URN, blocks);
        assert_int_equal(hit.whole_count, 2);
        assert_int_equal(blocks[1], own.blocks[1]);
        hit = find(READER(1, STAFF, EVERYONE), YOU URN TEA, blocks);
        assert_int_equal(hit.whole_count, 3);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(blocks[i], public.blocks[i]);
        hit = find(READER(2, STAFF, EVERYONE), YOU "zzz", blocks);
        assert_int_equal(blocks[0], staff.blocks[0]);
        close_pool();
}

/*
 * The public names go, and so do those of users that had continued behind them.  A user's own
 * copy stays.
 */
static void what_is_revoked_is_found_by_nobody(void **state)
{
        struct text his;

        (void)state;
        open_public(12);
        put_and_let_go(1, YOU URN TEA);
        publish(EVERYONE, YOU URN TEA, 1);
        his = go_on(READER(2, EVERYONE), YOU URN TEA "!");
        revoke(1);
        expect(READER(2, EVERYONE), YOU URN TEA "!", 0);
        expect(READER(1, EVERYONE), YOU URN TEA "!", 48);
        let_go(&his);
        expect(READER(2, EVERYONE), YOU URN TEA "!", 0);
        expect_counts(9, 3, 0);
        close_pool();
}

/*
 * One text begins with the other: the part that both have published stays until both have
 * revoked it.
 */
static void what_two_have_published_stays_until_both_revoke(void **state)
{
        (void)state;
        open_public(8);
        publish(EVERYONE, YOU URN, 1);
        publish(EVERYONE, YOU URN TEA, 2);
        publish(EVERYONE, YOU CUP, 3);
        expect_counts(4, 4, 0);
        revoke(2);
        expect(READER(2, EVERYONE), YOU URN TEA, 32);
        revoke(1);
        expect(READER(2, EVERYONE), YOU URN TEA, 18); /* "l " is of CUP */
        expect(READER(2, EVERYONE), YOU CUP, 32);
        revoke(3);
        expect_counts(8, 0, 0);

        publish(EVERYONE, YOU URN TEA, 2);
        publish(EVERYONE, YOU, 1);
        revoke(2);
        expect(READER(2, EVERYONE), YOU URN TEA, 16);
        revoke(1);
        expect_counts(8, 0, 0);
        close_pool();
}

/* If a text was evicted in part, only the remaining part is published, and revoked. */
static void what_is_evicted_needs_no_revoking(void **state)
{
        struct text text;

        (void)state;
        open_public(3);
        text = publish(EVERYONE, YOU URN TEA, 1);
        assert_int_equal(prefix_take(&prefix, 1), text.blocks[2]);
        prefix_check(&prefix);
        expect(READER(2, EVERYONE), YOU URN TEA, 32);
        revoke(1);
        expect(READER(2, EVERYONE), YOU URN TEA, 0);
        expect_counts(2, 0, 1);

        publish(EVERYONE, YOU URN, 1);
        prefix_take(&prefix, 1);
        prefix_take(&prefix, 1);
        prefix_check(&prefix);
        revoke(1);
        close_pool();
}

/* The result is the same whether or not another user has anything behind it. */
static void nobody_is_told_what_others_have_behind_it(void **state)
{
        struct prefix_hit before, after;
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        struct text text;

        (void)state;
        open_public(40);
        publish(EVERYONE, YOU URN "ea", 1);
        before = find(READER(2, EVERYONE), YOU URN TEA, blocks);
        assert_int_equal(before.diverged_at, 0);
        for (uint32_t i = 0; i < 2; i++) {
                text = go_on(READER(1, EVERYONE), i ? YOU URN "early" : YOU URN "ea made up.");
                let_go(&text);
                after = find(READER(2, EVERYONE), YOU URN TEA, blocks);
                assert_memory_equal(&before, &after, sizeof(before));
        }
        /* A user is told about the published text itself, and about its own. */
        after = find(READER(2, EVERYONE), YOU URN "early", blocks);
        assert_int_equal(prefix_positions(&after), 34);
        assert_int_equal(after.diverged_at, 0);
        after = find(READER(2, EVERYONE), YOU URN "eb", blocks);
        assert_int_equal(after.diverged_at, 33);
        assert_int_equal(after.known_token, 'a');
        text = go_on(READER(2, EVERYONE), YOU URN "x-rays");
        let_go(&text);
        after = find(READER(2, EVERYONE), YOU URN "x-eyes", blocks);
        assert_int_equal(after.diverged_at, 34);
        assert_int_equal(after.known_token, 'r');
        after = find(READER(1, EVERYONE), YOU URN "x-eyes", blocks);
        assert_int_equal(prefix_positions(&after), 32);
        assert_int_equal(after.diverged_at, 0);
        close_pool();
}

static void where_both_go_on_otherwise_what_is_public_says_so(void **state)
{
        block_t blocks[TEXT_MAX / BLOCK_POSITIONS];
        struct prefix_hit hit;
        struct text text;

        (void)state;
        open_public(40);
        publish(EVERYONE, YOU URN "ea", 1);
        text = go_on(READER(2, EVERYONE), YOU URN "egg");
        let_go(&text);
        hit = find(READER(2, EVERYONE), YOU URN "eye", blocks);
        assert_int_equal(hit.diverged_at, 33);
        assert_int_equal(hit.known_token, 'a'); /* though the other was named later */
        hit = find(READER(2, EVERYONE), YOU URN "ego", blocks);
        assert_int_equal(hit.diverged_at, 34); /* ... unless the user's own text is longer */
        assert_int_equal(hit.known_token, 'g');
        close_pool();
}

/* A thousand other texts behind one public block do not make a user's own text harder to find. */
static void others_behind_a_public_block_are_in_nobodys_way(void **state)
{
        struct text text;

        (void)state;
        open_public(400);
        publish(EVERYONE, YOU, 1);
        text = go_on(READER(1, EVERYONE), YOU URN "mine");
        let_go(&text);
        for (uint64_t user = 100; user < 230; user++) {
                text = go_on(READER(user, EVERYONE), YOU URN "mine");
                let_go(&text);
        }
        expect(READER(1, EVERYONE), YOU URN "mine", 36);
        expect(READER(3, EVERYONE), YOU URN "mine", 16);
        close_pool();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_published_is_found_by_whom_it_is_published_to),
                cmocka_unit_test(what_is_not_published_yet_is_found_by_nobody_else),
                cmocka_unit_test(what_follows_a_public_block_is_its_users_own),
                cmocka_unit_test(the_longest_way_counts_and_of_equal_ones_his_own),
                cmocka_unit_test(what_is_revoked_is_found_by_nobody),
                cmocka_unit_test(what_two_have_published_stays_until_both_revoke),
                cmocka_unit_test(what_is_evicted_needs_no_revoking),
                cmocka_unit_test(nobody_is_told_what_others_have_behind_it),
                cmocka_unit_test(where_both_go_on_otherwise_what_is_public_says_so),
                cmocka_unit_test(others_behind_a_public_block_are_in_nobodys_way),
        };

        return cmocka_run_group_tests_name("prefix-public", tests, NULL, NULL);
}
