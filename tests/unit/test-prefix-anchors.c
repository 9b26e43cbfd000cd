/*
 * Anchors in the prefix index: anchored blocks stay longer than all others, and never block an
 * eviction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"
#include "tests/unit/prefix-rig.h"

static void open_anchored(uint32_t blocks, uint32_t anchors)
{
        struct prefix_conf conf = plain;

        conf.anchors = anchors;
        assert_int_equal(prefix_init(&prefix, &conf, blocks), 0);
}

static void anchor(uint32_t number, block_t block)
{
        prefix_anchor(&prefix, number, block);
        prefix_check(&prefix);
}

static void expect_taken(block_t block)
{
        assert_int_equal(prefix_take(&prefix, 1), block);
        prefix_check(&prefix);
}

/* One anchor at its end; the text was dropped first, and goes last, from its end on. */
static void a_text_with_an_anchor_is_evicted_after_all_others(void **state)
{
        struct text held, one, two;

        (void)state;
        open_anchored(7, 1);
        held = put_and_let_go(1, YOU URN TEA);
        anchor(1, held.blocks[2]);
        one = put_and_let_go(1, YOU CUP "e");
        two = put_and_let_go(2, "two");
        prefix_hold(&prefix, one.blocks[1]); /* used once more, so after "two" */
        prefix_hold(&prefix, one.blocks[2]);
        prefix_drop(&prefix, one.blocks[2]);
        prefix_drop(&prefix, one.blocks[1]);
        prefix_take(&prefix, 1); /* was free */
        expect_taken(two.blocks[0]);
        expect_taken(one.blocks[2]);
        expect_taken(one.blocks[1]);
        expect_found(1, YOU URN TEA, &held, 3, 0);
        expect_taken(held.blocks[2]);
        expect_taken(held.blocks[1]);
        expect_taken(held.blocks[0]);
        close_pool();
}

/* The remaining part of an anchored text is still evicted after texts without an anchor. */
static void an_anchor_rises_when_its_block_goes(void **state)
{
        struct text held, other;

        (void)state;
        open_anchored(4, 1);
        held = put_and_let_go(1, YOU URN TEA);
        anchor(1, held.blocks[2]);
        prefix_take(&prefix, 1);
        expect_taken(held.blocks[2]); /* there is nothing else */
        prefix_drop(&prefix, held.blocks[2]);
        other = put_and_let_go(1, "other");
        expect_taken(other.blocks[0]);
        expect_found(1, YOU URN TEA, &held, 2, 0);
        expect_taken(held.blocks[1]);
        expect_taken(held.blocks[0]);
        anchor(1, BLOCK_NONE); /* it was nowhere */
        close_pool();
}

static void without_its_anchor_a_text_is_as_all_others(void **state)
{
        struct text held, other;

        (void)state;
        open_anchored(2, 2);
        held = put_and_let_go(1, "held");
        anchor(1, held.blocks[0]);
        anchor(2, held.blocks[0]);
        other = put_and_let_go(1, "other");
        anchor(1, BLOCK_NONE);
        expect_taken(other.blocks[0]); /* the second still binds */
        prefix_drop(&prefix, other.blocks[0]);
        other = put_and_let_go(1, "other");
        anchor(2, BLOCK_NONE);
        expect_taken(held.blocks[0]);
        expect_taken(other.blocks[0]);
        close_pool();
}

static void an_anchor_that_is_set_anew_leaves_where_it_was(void **state)
{
        struct text one, two;

        (void)state;
        open_anchored(2, 3);
        one = put_and_let_go(1, "one");
        two = put_and_let_go(1, "two");
        for (uint32_t number = 1; number <= 3; number++)
                anchor(number, one.blocks[0]);
        for (uint32_t number = 1; number <= 3; number++)
                anchor(number, two.blocks[0]);
        anchor(2, two.blocks[0]); /* where it is */
        expect_taken(one.blocks[0]);
        expect_taken(two.blocks[0]);
        close_pool();
}

/* Among texts with anchors the oldest is evicted first, whichever user set an anchor last. */
static void among_anchored_ones_the_oldest_goes_first(void **state)
{
        struct text one, two;

        (void)state;
        open_anchored(2, 2);
        one = put_and_let_go(1, "one");
        two = put_and_let_go(1, "two");
        anchor(1, two.blocks[0]);
        anchor(2, one.blocks[0]);
        expect_taken(one.blocks[0]);
        expect_taken(two.blocks[0]);
        close_pool();
}

static void what_is_spoilt_has_no_anchor_any_more(void **state)
{
        struct text held, other;

        (void)state;
        open_anchored(4, 2);
        held = put_and_let_go(1, YOU URN TEA);
        anchor(1, held.blocks[2]);
        anchor(2, held.blocks[1]);
        prefix_spoil(&prefix, held.blocks[1]);
        prefix_check(&prefix);
        expect_found(1, YOU URN TEA, &held, 1, 0);
        other = put_and_let_go(1, "other");
        prefix_take(&prefix, 1);
        prefix_take(&prefix, 1);
        expect_taken(other.blocks[0]); /* both are at the first block now */
        anchor(1, BLOCK_NONE);
        anchor(2, BLOCK_NONE);
        close_pool();
}

/* As many blocks can be had as without anchors, and as soon. */
static void an_anchor_takes_nothing_from_anybody(void **state)
{
        struct text held;

        (void)state;
        open_anchored(3, 1);
        held = put_and_let_go(1, YOU URN TEA);
        anchor(1, held.blocks[2]);
        expect_counts(0, 3, 0);
        for (uint32_t i = 0; i < 3; i++)
                prefix_take(&prefix, 1);
        expect_counts(0, 0, 3);
        close_pool();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_text_with_an_anchor_is_evicted_after_all_others),
                cmocka_unit_test(an_anchor_rises_when_its_block_goes),
                cmocka_unit_test(without_its_anchor_a_text_is_as_all_others),
                cmocka_unit_test(an_anchor_that_is_set_anew_leaves_where_it_was),
                cmocka_unit_test(among_anchored_ones_the_oldest_goes_first),
                cmocka_unit_test(what_is_spoilt_has_no_anchor_any_more),
                cmocka_unit_test(an_anchor_takes_nothing_from_anybody),
        };

        return cmocka_run_group_tests_name("prefix-anchors", tests, NULL, NULL);
}
