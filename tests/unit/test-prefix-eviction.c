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

static void open_limited(uint32_t blocks, uint32_t cached_max)
{
        struct prefix_conf conf = plain;

        conf.pins = 2;
        conf.cached_max = cached_max;
        assert_int_equal(prefix_init(&prefix, &conf, blocks), 0);
}

static void pin(uint32_t number, block_t block)
{
        prefix_set_pin(&prefix, number, block);
        prefix_check(&prefix);
}

/* Expects an eviction for a user that has nothing else and needs a block. */
static void expect_evicted(block_t block)
{
        assert_int_equal(prefix_allocate(&prefix, 77), block);
        prefix_check(&prefix);
}

static void expect_owned(uint64_t domain, uint32_t in_use, uint32_t cached)
{
        assert_int_equal(prefix_in_use_by(&prefix, domain), in_use);
        assert_int_equal(prefix_cached_by(&prefix, domain), cached);
}

static void a_block_belongs_to_its_user_when_it_is_taken(void **state)
{
        block_t block;

        (void)state;
        open_limited(2, 0);
        expect_owned(1, 0, 0);
        block = prefix_allocate(&prefix, 1);
        expect_owned(1, 1, 0);
        insert(1, BLOCK_NONE, block, "a");
        expect_owned(1, 1, 0);
        prefix_unref(&prefix, block);
        expect_owned(1, 0, 1);
        expect_owned(2, 0, 0);
        close_pool();
}

static void a_block_with_two_references_counts_once_for_its_owner(void **state)
{
        struct text text;

        (void)state;
        open_limited(4, 0);
        text = put(1, YOU "a");
        /* it takes the existing block, and for the part of a block one of its own */
        put(1, YOU "a");
        prefix_ref(&prefix, text.blocks[0]);
        expect_owned(1, 3, 0);
        close_pool();
}

/* In between it has no owner: it is free. */
static void an_unindexed_block_loses_its_owner_when_it_is_freed(void **state)
{
        block_t block;

        (void)state;
        open_limited(1, 0);
        block = prefix_allocate(&prefix, 1);
        prefix_unref(&prefix, block);
        expect_owned(1, 0, 0);
        assert_int_equal(prefix_allocate(&prefix, 2), block);
        expect_owned(1, 0, 0);
        expect_owned(2, 1, 0);
        close_pool();
}

static void an_evicted_block_belongs_to_the_user_that_takes_it(void **state)
{
        struct text text;

        (void)state;
        open_limited(1, 0);
        text = put_and_release(1, "a");
        expect_owned(1, 0, 1);
        expect_evicted(text.blocks[0]);
        expect_owned(1, 0, 0);
        expect_owned(77, 1, 0);
        close_pool();
}

/*
 * A referenced block keeps its owner, though it can no longer be found; a cached block becomes
 * free.
 */
static void invalidated_blocks_do_not_count_as_cached(void **state)
{
        struct text text;

        (void)state;
        open_limited(3, 0);
        text = put(1, YOU URN TEA);
        prefix_unref(&prefix, text.blocks[2]);
        expect_owned(1, 2, 1);
        prefix_invalidate(&prefix, text.blocks[0]);
        prefix_check(&prefix);
        expect_owned(1, 2, 0);
        expect_counts(1, 0, 2);
        close_pool();
}

/* Even though the other's block is older.  Then both keep one, and the older one goes. */
static void evicts_blocks_of_a_user_over_its_cache_limit_first(void **state)
{
        struct text older, one, two;

        (void)state;
        open_limited(3, 1);
        older = put_and_release(2, "older");
        one = put_and_release(1, "one");
        two = put_and_release(1, "two");
        expect_owned(1, 0, 2);
        expect_evicted(one.blocks[0]);
        expect_evicted(older.blocks[0]);
        expect_evicted(two.blocks[0]);
        close_pool();
}

static void evicts_nothing_while_a_block_is_free(void **state)
{
        struct text one, two;

        (void)state;
        open_limited(4, 1);
        one = put_and_release(1, "one");
        two = put_and_release(1, "two");
        prefix_allocate(&prefix, 2);
        prefix_allocate(&prefix, 2);
        expect_owned(1, 0, 2);
        expect_found(1, "one", &one, 0, 3);
        expect_found(1, "two", &two, 0, 3);
        assert_int_equal(prefix.evictions, 0);
        close_pool();
}

static void evicts_the_least_recently_released_block_without_a_limit(void **state)
{
        struct text older, one, two;

        (void)state;
        open_limited(3, 0);
        older = put_and_release(2, "older");
        one = put_and_release(1, "one");
        two = put_and_release(1, "two");
        expect_evicted(older.blocks[0]);
        expect_evicted(one.blocks[0]);
        expect_evicted(two.blocks[0]);
        close_pool();
}

/* Of two users above it, too. */
static void evicts_the_oldest_block_of_all_users_over_the_limit_first(void **state)
{
        struct text a, b, c, d, e;

        (void)state;
        open_limited(5, 1);
        e = put_and_release(3, "e");
        a = put_and_release(1, "a");
        b = put_and_release(2, "b");
        c = put_and_release(2, "c");
        d = put_and_release(1, "d");
        expect_evicted(a.blocks[0]); /* user 1 is not above it any more */
        expect_evicted(b.blocks[0]);
        expect_evicted(e.blocks[0]);
        expect_evicted(c.blocks[0]);
        expect_evicted(d.blocks[0]);
        close_pool();
}

/* Blocks that a user references do not count as cached. */
static void blocks_in_use_do_not_count_towards_the_cache_limit(void **state)
{
        struct text older, one, two;

        (void)state;
        open_limited(3, 1);
        older = put_and_release(2, "older");
        one = put_and_release(1, "one");
        two = put_and_release(1, "two");
        prefix_ref(&prefix, two.blocks[0]);
        expect_owned(1, 1, 1);
        expect_evicted(older.blocks[0]);
        prefix_unref(&prefix, two.blocks[0]);
        expect_evicted(one.blocks[0]);
        close_pool();
}

/*
 * User 1 keeps two blocks, and one of them is inner.  The leaf is evicted, and the user keeps
 * one.
 */
static void inner_blocks_count_towards_the_limit_and_leaves_are_evicted(void **state)
{
        struct text older, text;

        (void)state;
        open_limited(3, 1);
        older = put_and_release(2, "older");
        text = put_and_release(1, YOU "a");
        expect_evicted(text.blocks[1]);
        expect_evicted(older.blocks[0]);
        expect_evicted(text.blocks[0]);
        close_pool();
}

static void evicts_unpinned_blocks_before_a_pinned_one_over_the_limit(void **state)
{
        struct text pinned, newer, newest;

        (void)state;
        open_limited(4, 1);
        pinned = put_and_release(1, YOU "a");
        pin(1, pinned.blocks[1]);
        newer = put_and_release(2, "newer");
        newest = put_and_release(3, "newest");
        expect_owned(1, 0, 2);
        expect_evicted(newer.blocks[0]);
        expect_evicted(newest.blocks[0]);
        expect_evicted(pinned.blocks[1]);
        expect_evicted(pinned.blocks[0]);
        close_pool();
}

static void evicts_pinned_blocks_of_a_user_over_the_limit_first(void **state)
{
        struct text older, his;

        (void)state;
        open_limited(3, 1);
        older = put_and_release(2, "older");
        his = put_and_release(1, YOU "a");
        pin(1, older.blocks[0]);
        pin(2, his.blocks[1]);
        expect_evicted(his.blocks[1]); /* the pin rises, and its user keeps one block */
        expect_evicted(older.blocks[0]);
        expect_evicted(his.blocks[0]);
        close_pool();
}

static void public_blocks_have_no_cache_limit(void **state)
{
        struct text his, everyones;

        (void)state;
        open_limited(3, 1);
        his = put_and_release(1, "his");
        everyones = put_and_release(PREFIX_EVERYONE, YOU "a");
        expect_owned(PREFIX_EVERYONE, 0, 2);
        expect_evicted(his.blocks[0]);
        expect_evicted(everyones.blocks[1]);
        expect_evicted(everyones.blocks[0]);
        close_pool();
}

/* It hangs below a public block, and belongs to the user that wrote it. */
static void blocks_after_a_public_block_belong_to_the_user_that_wrote_them(void **state)
{
        struct text everyones, older;
        block_t his[2];

        (void)state;
        open_limited(5, 1);
        older = put_and_release(2, "older");
        everyones = put(PREFIX_EVERYONE, YOU);
        prefix_publish(&prefix, 1, everyones.blocks[0]);
        for (uint32_t i = 0; i < 2; i++) {
                his[i] = prefix_allocate(&prefix, 1);
                assert_int_equal(insert(1, everyones.blocks[0], his[i], i ? "b" : "a"), his[i]);
        }
        expect_owned(1, 2, 0);
        expect_owned(PREFIX_EVERYONE, 1, 0);
        prefix_unref(&prefix, his[0]);
        prefix_unref(&prefix, his[1]);
        release(&everyones);
        expect_owned(1, 0, 2);
        expect_owned(PREFIX_EVERYONE, 0, 1);
        prefix_allocate(&prefix, 77); /* was free */
        expect_evicted(his[0]);
        expect_evicted(older.blocks[0]);
        expect_evicted(his[1]);
        expect_evicted(everyones.blocks[0]);
        close_pool();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_block_belongs_to_its_user_when_it_is_taken),
                cmocka_unit_test(a_block_with_two_references_counts_once_for_its_owner),
                cmocka_unit_test(an_unindexed_block_loses_its_owner_when_it_is_freed),
                cmocka_unit_test(an_evicted_block_belongs_to_the_user_that_takes_it),
                cmocka_unit_test(invalidated_blocks_do_not_count_as_cached),
                cmocka_unit_test(evicts_blocks_of_a_user_over_its_cache_limit_first),
                cmocka_unit_test(evicts_nothing_while_a_block_is_free),
                cmocka_unit_test(evicts_the_least_recently_released_block_without_a_limit),
                cmocka_unit_test(evicts_the_oldest_block_of_all_users_over_the_limit_first),
                cmocka_unit_test(blocks_in_use_do_not_count_towards_the_cache_limit),
                cmocka_unit_test(inner_blocks_count_towards_the_limit_and_leaves_are_evicted),
                cmocka_unit_test(evicts_unpinned_blocks_before_a_pinned_one_over_the_limit),
                cmocka_unit_test(evicts_pinned_blocks_of_a_user_over_the_limit_first),
                cmocka_unit_test(public_blocks_have_no_cache_limit),
                cmocka_unit_test(blocks_after_a_public_block_belong_to_the_user_that_wrote_them),
        };

        return cmocka_run_group_tests_name("prefix-owners", tests, NULL, NULL);
}
