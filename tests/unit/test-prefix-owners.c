/*
 * Owners of blocks, and the order of eviction when the blocks that a user may keep are limited.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"
#include "tests/unit/prefix-rig.h"

static void open_limited(uint32_t blocks, uint32_t keeps)
{
        struct prefix_conf conf = plain;

        conf.anchors = 2;
        conf.keeps = keeps;
        assert_int_equal(prefix_init(&prefix, &conf, blocks), 0);
}

static void anchor(uint32_t number, block_t block)
{
        prefix_anchor(&prefix, number, block);
        prefix_check(&prefix);
}

/* Expects an eviction for a user that has nothing else and needs a block. */
static void expect_evicted(block_t block)
{
        assert_int_equal(prefix_take(&prefix, 77), block);
        prefix_check(&prefix);
}

static void expect_owned(uint64_t domain, uint32_t held, uint32_t kept)
{
        assert_int_equal(prefix_held_by(&prefix, domain), held);
        assert_int_equal(prefix_kept_by(&prefix, domain), kept);
}

static void a_block_is_ones_own_from_when_it_is_dealt(void **state)
{
        block_t block;

        (void)state;
        open_limited(2, 0);
        expect_owned(1, 0, 0);
        block = prefix_take(&prefix, 1);
        expect_owned(1, 1, 0);
        name(1, BLOCK_NONE, block, "a");
        expect_owned(1, 1, 0);
        prefix_drop(&prefix, block);
        expect_owned(1, 0, 1);
        expect_owned(2, 0, 0);
        close_pool();
}

static void what_two_hold_counts_once(void **state)
{
        struct text text;

        (void)state;
        open_limited(4, 0);
        text = put(1, YOU "a");
        /* it takes the existing block, and for the part of a block one of its own */
        put(1, YOU "a");
        prefix_hold(&prefix, text.blocks[0]);
        expect_owned(1, 3, 0);
        close_pool();
}

/* In between it has no owner: it is free. */
static void what_had_no_name_is_nobodys_when_it_is_dropped(void **state)
{
        block_t block;

        (void)state;
        open_limited(1, 0);
        block = prefix_take(&prefix, 1);
        prefix_drop(&prefix, block);
        expect_owned(1, 0, 0);
        assert_int_equal(prefix_take(&prefix, 2), block);
        expect_owned(1, 0, 0);
        expect_owned(2, 1, 0);
        close_pool();
}

static void what_is_evicted_is_who_takes_its(void **state)
{
        struct text text;

        (void)state;
        open_limited(1, 0);
        text = put_and_let_go(1, "a");
        expect_owned(1, 0, 1);
        expect_evicted(text.blocks[0]);
        expect_owned(1, 0, 0);
        expect_owned(77, 1, 0);
        close_pool();
}

/* A held block keeps its owner, though it can no longer be found; a cached block becomes free. */
static void what_is_spoilt_is_kept_no_more(void **state)
{
        struct text text;

        (void)state;
        open_limited(3, 0);
        text = put(1, YOU URN TEA);
        prefix_drop(&prefix, text.blocks[2]);
        expect_owned(1, 2, 1);
        prefix_spoil(&prefix, text.blocks[0]);
        prefix_check(&prefix);
        expect_owned(1, 2, 0);
        expect_counts(1, 0, 2);
        close_pool();
}

/* Even though the other's block is older.  Then both keep one, and the older one goes. */
static void who_keeps_more_than_his_part_gives_way_first(void **state)
{
        struct text older, one, two;

        (void)state;
        open_limited(3, 1);
        older = put_and_let_go(2, "older");
        one = put_and_let_go(1, "one");
        two = put_and_let_go(1, "two");
        expect_owned(1, 0, 2);
        expect_evicted(one.blocks[0]);
        expect_evicted(older.blocks[0]);
        expect_evicted(two.blocks[0]);
        close_pool();
}

static void as_long_as_there_is_a_free_block_nobody_gives_way(void **state)
{
        struct text one, two;

        (void)state;
        open_limited(4, 1);
        one = put_and_let_go(1, "one");
        two = put_and_let_go(1, "two");
        prefix_take(&prefix, 2);
        prefix_take(&prefix, 2);
        expect_owned(1, 0, 2);
        expect_found(1, "one", &one, 0, 3);
        expect_found(1, "two", &two, 0, 3);
        assert_int_equal(prefix.evictions, 0);
        close_pool();
}

static void with_no_limit_who_was_dropped_first_goes_first(void **state)
{
        struct text older, one, two;

        (void)state;
        open_limited(3, 0);
        older = put_and_let_go(2, "older");
        one = put_and_let_go(1, "one");
        two = put_and_let_go(1, "two");
        expect_evicted(older.blocks[0]);
        expect_evicted(one.blocks[0]);
        expect_evicted(two.blocks[0]);
        close_pool();
}

/* Of two users above it, too. */
static void among_those_above_the_limit_the_oldest_goes_first(void **state)
{
        struct text a, b, c, d, e;

        (void)state;
        open_limited(5, 1);
        e = put_and_let_go(3, "e");
        a = put_and_let_go(1, "a");
        b = put_and_let_go(2, "b");
        c = put_and_let_go(2, "c");
        d = put_and_let_go(1, "d");
        expect_evicted(a.blocks[0]); /* user 1 is not above it any more */
        expect_evicted(b.blocks[0]);
        expect_evicted(e.blocks[0]);
        expect_evicted(c.blocks[0]);
        expect_evicted(d.blocks[0]);
        close_pool();
}

/* Blocks that a user holds do not count as kept. */
static void what_is_held_again_does_not_count(void **state)
{
        struct text older, one, two;

        (void)state;
        open_limited(3, 1);
        older = put_and_let_go(2, "older");
        one = put_and_let_go(1, "one");
        two = put_and_let_go(1, "two");
        prefix_hold(&prefix, two.blocks[0]);
        expect_owned(1, 1, 1);
        expect_evicted(older.blocks[0]);
        prefix_drop(&prefix, two.blocks[0]);
        expect_evicted(one.blocks[0]);
        close_pool();
}

/*
 * User 1 keeps two blocks, and one of them is inner.  The leaf is evicted, and the user keeps
 * one.
 */
static void inner_blocks_count_and_the_leaf_goes(void **state)
{
        struct text older, text;

        (void)state;
        open_limited(3, 1);
        older = put_and_let_go(2, "older");
        text = put_and_let_go(1, YOU "a");
        expect_evicted(text.blocks[1]);
        expect_evicted(older.blocks[0]);
        expect_evicted(text.blocks[0]);
        close_pool();
}

static void an_anchored_one_of_his_stays_longer_than_others_without(void **state)
{
        struct text anchored, newer, newest;

        (void)state;
        open_limited(4, 1);
        anchored = put_and_let_go(1, YOU "a");
        anchor(1, anchored.blocks[1]);
        newer = put_and_let_go(2, "newer");
        newest = put_and_let_go(3, "newest");
        expect_owned(1, 0, 2);
        expect_evicted(newer.blocks[0]);
        expect_evicted(newest.blocks[0]);
        expect_evicted(anchored.blocks[1]);
        expect_evicted(anchored.blocks[0]);
        close_pool();
}

static void of_anchored_ones_his_go_first(void **state)
{
        struct text older, his;

        (void)state;
        open_limited(3, 1);
        older = put_and_let_go(2, "older");
        his = put_and_let_go(1, YOU "a");
        anchor(1, older.blocks[0]);
        anchor(2, his.blocks[1]);
        expect_evicted(his.blocks[1]); /* the anchor rises, and its user keeps one block */
        expect_evicted(older.blocks[0]);
        expect_evicted(his.blocks[0]);
        close_pool();
}

static void what_is_public_is_above_no_limit(void **state)
{
        struct text his, everyones;

        (void)state;
        open_limited(3, 1);
        his = put_and_let_go(1, "his");
        everyones = put_and_let_go(PREFIX_EVERYONE, YOU "a");
        expect_owned(PREFIX_EVERYONE, 0, 2);
        expect_evicted(his.blocks[0]);
        expect_evicted(everyones.blocks[1]);
        expect_evicted(everyones.blocks[0]);
        close_pool();
}

/* It hangs below a public block, and belongs to the user that wrote it. */
static void what_follows_a_public_block_is_the_users_own(void **state)
{
        struct text everyones, older;
        block_t his[2];

        (void)state;
        open_limited(5, 1);
        older = put_and_let_go(2, "older");
        everyones = put(PREFIX_EVERYONE, YOU);
        prefix_publish(&prefix, 1, everyones.blocks[0]);
        for (uint32_t i = 0; i < 2; i++) {
                his[i] = prefix_take(&prefix, 1);
                assert_int_equal(name(1, everyones.blocks[0], his[i], i ? "b" : "a"), his[i]);
        }
        expect_owned(1, 2, 0);
        expect_owned(PREFIX_EVERYONE, 1, 0);
        prefix_drop(&prefix, his[0]);
        prefix_drop(&prefix, his[1]);
        let_go(&everyones);
        expect_owned(1, 0, 2);
        expect_owned(PREFIX_EVERYONE, 0, 1);
        prefix_take(&prefix, 77); /* was free */
        expect_evicted(his[0]);
        expect_evicted(older.blocks[0]);
        expect_evicted(his[1]);
        expect_evicted(everyones.blocks[0]);
        close_pool();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_block_is_ones_own_from_when_it_is_dealt),
                cmocka_unit_test(what_two_hold_counts_once),
                cmocka_unit_test(what_had_no_name_is_nobodys_when_it_is_dropped),
                cmocka_unit_test(what_is_evicted_is_who_takes_its),
                cmocka_unit_test(what_is_spoilt_is_kept_no_more),
                cmocka_unit_test(who_keeps_more_than_his_part_gives_way_first),
                cmocka_unit_test(as_long_as_there_is_a_free_block_nobody_gives_way),
                cmocka_unit_test(with_no_limit_who_was_dropped_first_goes_first),
                cmocka_unit_test(among_those_above_the_limit_the_oldest_goes_first),
                cmocka_unit_test(what_is_held_again_does_not_count),
                cmocka_unit_test(inner_blocks_count_and_the_leaf_goes),
                cmocka_unit_test(an_anchored_one_of_his_stays_longer_than_others_without),
                cmocka_unit_test(of_anchored_ones_his_go_first),
                cmocka_unit_test(what_is_public_is_above_no_limit),
                cmocka_unit_test(what_follows_a_public_block_is_the_users_own),
        };

        return cmocka_run_group_tests_name("prefix-owners", tests, NULL, NULL);
}
