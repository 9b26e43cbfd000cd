/*
 * Pins in the prefix index: pinned blocks stay longer than all others, and never block an
 * eviction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"
#include "tests/unit/prefix-rig.h"

static void open_anchored(uint32_t blocks, uint32_t pins)
{
        struct prefix_conf conf = plain;

        conf.pins = pins;
        assert_int_equal(prefix_init(&prefix, &conf, blocks), 0);
}

static void pin(uint32_t number, block_t block)
{
        prefix_set_pin(&prefix, number, block);
        prefix_check(&prefix);
}

static void expect_taken(block_t block)
{
        assert_int_equal(prefix_allocate(&prefix, 1), block);
        prefix_check(&prefix);
}

/* One pin at its end; the text was released first, and goes last, from its end on. */
static void evicts_a_pinned_text_after_all_others(void **state)
{
        struct text in_use, one, two;

        (void)state;
        open_anchored(7, 1);
        in_use = put_and_release(1, YOU URN TEA);
        pin(1, in_use.blocks[2]);
        one = put_and_release(1, YOU CUP "e");
        two = put_and_release(2, "two");
        prefix_ref(&prefix, one.blocks[1]); /* used once more, so after "two" */
        prefix_ref(&prefix, one.blocks[2]);
        prefix_unref(&prefix, one.blocks[2]);
        prefix_unref(&prefix, one.blocks[1]);
        prefix_allocate(&prefix, 1); /* was free */
        expect_taken(two.blocks[0]);
        expect_taken(one.blocks[2]);
        expect_taken(one.blocks[1]);
        expect_found(1, YOU URN TEA, &in_use, 3, 0);
        expect_taken(in_use.blocks[2]);
        expect_taken(in_use.blocks[1]);
        expect_taken(in_use.blocks[0]);
        close_pool();
}

/* The remaining part of a pinned text is still evicted after texts without a pin. */
static void a_pin_moves_to_the_parent_of_an_evicted_block(void **state)
{
        struct text in_use, other;

        (void)state;
        open_anchored(4, 1);
        in_use = put_and_release(1, YOU URN TEA);
        pin(1, in_use.blocks[2]);
        prefix_allocate(&prefix, 1);
        expect_taken(in_use.blocks[2]); /* there is nothing else */
        prefix_unref(&prefix, in_use.blocks[2]);
        other = put_and_release(1, "other");
        expect_taken(other.blocks[0]);
        expect_found(1, YOU URN TEA, &in_use, 2, 0);
        expect_taken(in_use.blocks[1]);
        expect_taken(in_use.blocks[0]);
        pin(1, BLOCK_NONE); /* it was nowhere */
        close_pool();
}

static void evicts_an_unpinned_text_like_any_other(void **state)
{
        struct text in_use, other;

        (void)state;
        open_anchored(2, 2);
        in_use = put_and_release(1, "referenced");
        pin(1, in_use.blocks[0]);
        pin(2, in_use.blocks[0]);
        other = put_and_release(1, "other");
        pin(1, BLOCK_NONE);
        expect_taken(other.blocks[0]); /* the second still binds */
        prefix_unref(&prefix, other.blocks[0]);
        other = put_and_release(1, "other");
        pin(2, BLOCK_NONE);
        expect_taken(in_use.blocks[0]);
        expect_taken(other.blocks[0]);
        close_pool();
}

static void a_pin_that_is_set_again_leaves_its_old_block(void **state)
{
        struct text one, two;

        (void)state;
        open_anchored(2, 3);
        one = put_and_release(1, "one");
        two = put_and_release(1, "two");
        for (uint32_t number = 1; number <= 3; number++)
                pin(number, one.blocks[0]);
        for (uint32_t number = 1; number <= 3; number++)
                pin(number, two.blocks[0]);
        pin(2, two.blocks[0]); /* where it is */
        expect_taken(one.blocks[0]);
        expect_taken(two.blocks[0]);
        close_pool();
}

/* Among texts with pins the oldest is evicted first, whichever user set a pin last. */
static void evicts_the_oldest_of_several_pinned_texts_first(void **state)
{
        struct text one, two;

        (void)state;
        open_anchored(2, 2);
        one = put_and_release(1, "one");
        two = put_and_release(1, "two");
        pin(1, two.blocks[0]);
        pin(2, one.blocks[0]);
        expect_taken(one.blocks[0]);
        expect_taken(two.blocks[0]);
        close_pool();
}

static void invalidating_a_block_moves_its_pins_to_the_parent(void **state)
{
        struct text in_use, other;

        (void)state;
        open_anchored(4, 2);
        in_use = put_and_release(1, YOU URN TEA);
        pin(1, in_use.blocks[2]);
        pin(2, in_use.blocks[1]);
        prefix_invalidate(&prefix, in_use.blocks[1]);
        prefix_check(&prefix);
        expect_found(1, YOU URN TEA, &in_use, 1, 0);
        other = put_and_release(1, "other");
        prefix_allocate(&prefix, 1);
        prefix_allocate(&prefix, 1);
        expect_taken(other.blocks[0]); /* both are at the first block now */
        pin(1, BLOCK_NONE);
        pin(2, BLOCK_NONE);
        close_pool();
}

/* As many blocks can be had as without pins, and as soon. */
static void a_pinned_block_can_still_be_evicted(void **state)
{
        struct text in_use;

        (void)state;
        open_anchored(3, 1);
        in_use = put_and_release(1, YOU URN TEA);
        pin(1, in_use.blocks[2]);
        expect_counts(0, 3, 0);
        for (uint32_t i = 0; i < 3; i++)
                prefix_allocate(&prefix, 1);
        expect_counts(0, 0, 3);
        close_pool();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(evicts_a_pinned_text_after_all_others),
                cmocka_unit_test(a_pin_moves_to_the_parent_of_an_evicted_block),
                cmocka_unit_test(evicts_an_unpinned_text_like_any_other),
                cmocka_unit_test(a_pin_that_is_set_again_leaves_its_old_block),
                cmocka_unit_test(evicts_the_oldest_of_several_pinned_texts_first),
                cmocka_unit_test(invalidating_a_block_moves_its_pins_to_the_parent),
                cmocka_unit_test(a_pinned_block_can_still_be_evicted),
        };

        return cmocka_run_group_tests_name("prefix-pins", tests, NULL, NULL);
}
