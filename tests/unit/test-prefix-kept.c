/*
 * The blocks that the prefix index caches and evicts, and the names that it takes away.  Also the
 * errors that abort it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/core/prefix.h"
#include "tests/unit/count-alloc.h"
#include "tests/unit/prefix-rig.h"

static void what_has_a_name_is_kept_and_held_again(void **state)
{
        struct text text;
        block_t nameless;

        (void)state;
        open_pool(4);
        text = put(1, YOU "l pot");
        nameless = prefix_take(&prefix, 1);
        expect_counts(1, 0, 3);
        prefix_drop(&prefix, nameless);
        let_go(&text);
        expect_counts(2, 2, 0);
        expect_found(1, YOU "l pot", &text, 1, 5);

        prefix_hold(&prefix, text.blocks[0]);
        expect_counts(2, 1, 1);
        prefix_hold(&prefix, text.blocks[1]);
        prefix_hold(&prefix, text.blocks[0]);
        prefix_hold(&prefix, text.blocks[1]);
        expect_counts(2, 0, 2);
        let_go(&text);
        expect_counts(2, 0, 2); /* one holder is left */
        let_go(&text);
        expect_counts(2, 2, 0);
        close_pool();
}

static void what_is_free_is_taken_before_anything_is_evicted(void **state)
{
        struct text text;

        (void)state;
        open_pool(4);
        text = put_and_let_go(1, YOU "l pot");
        prefix_take(&prefix, 1);
        prefix_take(&prefix, 1);
        assert_int_equal(prefix.evictions, 0);
        expect_counts(0, 2, 2);
        expect_found(1, YOU "l pot", &text, 1, 5);
        close_pool();
}

static void what_is_held_is_never_evicted(void **state)
{
        struct text held, kept;

        (void)state;
        open_pool(5);
        kept = put_and_let_go(1, YOU URN "ea");
        held = put(1, POT);
        prefix_hold(&prefix, kept.blocks[0]);
        expect_counts(1, 2, 2);
        while (prefix_left(&prefix)) {
                block_t block = prefix_take(&prefix, 1);

                assert_int_not_equal(block, held.blocks[0]);
                assert_int_not_equal(block, kept.blocks[0]);
                prefix_check(&prefix);
        }
        assert_int_equal(prefix.evictions, 2);
        expect_counts(0, 0, 5);
        expect_found(1, YOU URN, &kept, 1, 0);
        expect_found(1, POT, &held, 1, 0);
        close_pool();
}

static void the_leaf_that_was_dropped_longest_ago_goes_first(void **state)
{
        static const char *const words[] = { "one", "two", "three", "four", "five" };
        static const uint32_t drops[] = { 3, 0, 4, 2, 1 };
        struct text texts[5];

        (void)state;
        for (uint32_t again = 0; again < 5; again++) {
                open_pool(5);
                for (uint32_t i = 0; i < 5; i++)
                        texts[i] = put(1, words[i]);
                for (uint32_t i = 0; i < 5; i++)
                        let_go(&texts[drops[i]]);
                /* A block that is held again counts as dropped last. */
                prefix_hold(&prefix, texts[drops[again]].blocks[0]);
                let_go(&texts[drops[again]]);
                for (uint32_t i = 0; i < 5; i++)
                        if (i != again)
                                assert_int_equal(prefix_take(&prefix, 1),
                                                 texts[drops[i]].blocks[0]);
                assert_int_equal(prefix_take(&prefix, 1), texts[drops[again]].blocks[0]);
                close_pool();
        }
}

/* It is when the last holder drops it that counts. */
static void a_drop_by_one_of_two_does_not_count(void **state)
{
        struct text one, two;

        (void)state;
        open_pool(2);
        one = put(1, "one");
        two = put(1, "two");
        prefix_hold(&prefix, one.blocks[0]);
        let_go(&one);
        let_go(&two);
        let_go(&one);
        assert_int_equal(prefix_take(&prefix, 1), two.blocks[0]);
        close_pool();
}

static void the_end_of_a_text_goes_before_its_beginning(void **state)
{
        struct text one, two;

        (void)state;
        open_pool(6);
        one = put_and_let_go(1, YOU URN TEA);
        two = put_and_let_go(1, YOU CUP "e");
        expect_counts(1, 5, 0);
        prefix_take(&prefix, 1);
        assert_int_equal(prefix_take(&prefix, 1), one.blocks[2]);
        assert_int_equal(prefix_take(&prefix, 1), one.blocks[1]);
        assert_int_equal(prefix_take(&prefix, 1), two.blocks[2]);
        assert_int_equal(prefix_take(&prefix, 1), two.blocks[1]);
        expect_found(1, YOU URN, &one, 1, 0);
        assert_int_equal(prefix_take(&prefix, 1), one.blocks[0]);
        expect_counts(0, 0, 6);
        close_pool();
}

/* Not the block that was dropped longest ago, but the leaf. */
static void what_has_others_behind_it_waits_for_them(void **state)
{
        struct text one, two, three;

        (void)state;
        open_pool(4);
        one = put(1, YOU);
        two = put(1, YOU URN);
        three = put(1, POT);
        let_go(&one);
        let_go(&two); /* so the first block is older than POT, when both are leaves */
        let_go(&three);
        prefix_hold(&prefix, two.blocks[0]);
        prefix_hold(&prefix, two.blocks[1]);
        let_go(&two);
        prefix_take(&prefix, 1);
        assert_int_equal(prefix_take(&prefix, 1), three.blocks[0]);
        assert_int_equal(prefix_take(&prefix, 1), two.blocks[1]);
        assert_int_equal(prefix_take(&prefix, 1), two.blocks[0]);
        close_pool();
}

static void finding_holds_nothing(void **state)
{
        struct text one, two;

        (void)state;
        open_pool(2);
        one = put_and_let_go(1, "one");
        two = put_and_let_go(1, "two");
        expect_found(1, "one", &one, 0, 3);
        expect_counts(0, 2, 0);
        assert_int_equal(prefix_take(&prefix, 1), one.blocks[0]); /* nor does it make it newer */
        expect_found(1, "two", &two, 0, 3);
        close_pool();
}

static void spoiling_takes_the_names_of_all_that_follow(void **state)
{
        struct text kept, held, other;

        (void)state;
        open_pool(9);
        kept = put_and_let_go(1, YOU URN TEA " me");
        held = put(1, YOU CUP "ea");
        other = put(1, POT URN);
        expect_counts(1, 3, 5);
        prefix_spoil(&prefix, held.blocks[0]);
        expect_counts(4, 0, 5); /* a cached block becomes free, a held one stays held */
        expect_found(1, YOU URN, &other, 0, 10);
        expect_found(1, YOU CUP, &other, 0, 10);
        expect_found(1, POT URN, &other, 2, 0);

        let_go(&held);
        expect_counts(7, 0, 2); /* and not kept any more */
        let_go(&other);
        expect_counts(7, 2, 0);
        kept = put(1, YOU URN); /* and may be named anew */
        expect_found(1, YOU URN, &kept, 2, 0);
        close_pool();
}

static void what_comes_before_what_is_spoilt_keeps_its_name(void **state)
{
        struct text one, two;

        (void)state;
        open_pool(4);
        one = put_and_let_go(1, YOU URN "ea");
        two = put_and_let_go(1, YOU CUP);
        prefix_spoil(&prefix, one.blocks[1]);
        expect_counts(2, 2, 0);
        expect_found(1, YOU URN, &two, 1, 2);
        prefix_spoil(&prefix, two.blocks[1]);
        expect_counts(3, 1, 0);
        expect_found(1, YOU URN, &one, 1, 0);
        for (int i = 0; i < 4; i++) /* the remaining block is a leaf */
                prefix_take(&prefix, 1);
        assert_int_equal(prefix.evictions, 1);
        close_pool();
}

static void spoiling_what_has_no_name_does_nothing(void **state)
{
        struct text text;
        block_t nameless;

        (void)state;
        open_pool(4);
        text = put(1, YOU);
        nameless = prefix_take(&prefix, 1);
        for (block_t block = 0; block < 4; block++)
                if (block != text.blocks[0])
                        prefix_spoil(&prefix, block);
        expect_counts(2, 0, 2);
        prefix_drop(&prefix, nameless);
        expect_found(1, YOU, &text, 1, 0);
        close_pool();
}

static void once_it_is_there_nothing_is_allocated(void **state)
{
        unsigned long before;
        struct text text;

        (void)state;
        open_pool(4);
        before = alloc_count;
        text = put(1, YOU URN "ea");
        let_go(&text);
        text = put(2, POT URN TEA);
        prefix_spoil(&prefix, text.blocks[0]);
        expect_found(2, POT, NULL, 0, 0);
        prefix_check(&prefix);
        assert_int_equal(alloc_count, before);
        close_pool();
        open_pool(4);
        assert_true(alloc_count > before); /* they are counted */
        close_pool();
}

static void an_index_half_made_or_gone_is_no_trouble(void **state)
{
        (void)state;
        prefix_deinit(NULL);
        prefix = (struct prefix){ 0 };
        prefix_deinit(&prefix);
        open_pool(1);
        close_pool();
        assert_null(prefix.named);
        assert_null(prefix.owners);
        prefix_deinit(&prefix);
}

/*
 * Runs in a child, which an assert must kill.  "One" is held; YOU and the blocks behind it are
 * cached.
 */
static void dies(void (*what)(struct text *kept, struct text *held))
{
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (!child) {
                struct text kept, held;

                signal(SIGABRT, SIG_DFL);
                open_pool(6);
                held = put(1, "One");
                kept = put_and_let_go(1, YOU URN);
                put_and_let_go(1, YOU CUP);
                close(STDERR_FILENO);
                what(&kept, &held);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* The check would die of it, too. */
static void say(uint64_t domain, block_t parent, block_t block, const char *words, uint32_t count)
{
        uint32_t tokens[TEXT_MAX];

        tokens_of(words, tokens);
        prefix_name(&prefix, domain, parent, block, tokens, count);
}

static void name_by_others(struct text *kept, struct text *held)
{
        (void)kept;
        say(1, BLOCK_NONE, held->blocks[0], "Once", 4);
}

static void name_by_fewer(struct text *kept, struct text *held)
{
        (void)kept;
        say(1, BLOCK_NONE, held->blocks[0], "One", 2);
}

static void name_by_too_many(struct text *kept, struct text *held)
{
        (void)kept;
        say(1, BLOCK_NONE, held->blocks[0], "One more cup of t", 17);
}

static void name_by_none(struct text *kept, struct text *held)
{
        (void)kept;
        (void)held;
        say(1, BLOCK_NONE, prefix_take(&prefix, 1), "", 0);
}

static void name_for_another_domain(struct text *kept, struct text *held)
{
        (void)kept;
        say(2, BLOCK_NONE, held->blocks[0], "One m", 5);
}

static void name_after_another_parent(struct text *kept, struct text *held)
{
        prefix_hold(&prefix, kept->blocks[0]);
        say(1, kept->blocks[0], held->blocks[0], "One m", 5);
}

static void name_unheld(struct text *kept, struct text *held)
{
        (void)held;
        say(1, BLOCK_NONE, kept->blocks[0], YOU, 16);
}

static void name_after_unheld(struct text *kept, struct text *held)
{
        (void)held;
        say(1, kept->blocks[0], prefix_take(&prefix, 1), "la", 2);
}

static void take_too_many(struct text *kept, struct text *held)
{
        (void)kept;
        (void)held;
        for (int i = 0; i < 6; i++)
                prefix_take(&prefix, 1);
}

static void misuse_is_a_bug_and_dies(void **state)
{
        (void)state;
        dies(name_by_others);
        dies(name_by_fewer);
        dies(name_by_too_many);
        dies(name_by_none);
        dies(name_for_another_domain);
        dies(name_after_another_parent);
        dies(name_unheld);
        dies(name_after_unheld);
        dies(take_too_many);
}

static void wrong_token(struct text *kept, struct text *held)
{
        (void)held;
        prefix.named[kept->blocks[1]].tokens[7]++;
}

static void wrong_domain(struct text *kept, struct text *held)
{
        (void)held;
        prefix.named[kept->blocks[0]].domain++;
}

static void wrong_generation(struct text *kept, struct text *held)
{
        (void)held;
        prefix.named[kept->blocks[0]].generation++;
}

static void parent_in_part(struct text *kept, struct text *held)
{
        (void)held;
        prefix.named[kept->blocks[0]].filled--;
}

static void lost_name(struct text *kept, struct text *held)
{
        (void)held;
        prefix.named[kept->blocks[1]].filled = 0;
}

static void lost_child(struct text *kept, struct text *held)
{
        (void)held;
        prefix.named[kept->blocks[0]].child = BLOCK_NONE;
}

static void leaf_in_two_places(struct text *kept, struct text *held)
{
        (void)held;
        prefix.named[kept->blocks[1]].leaf_right = prefix.named[kept->blocks[1]].leaf_left;
}

static void leaves_out_of_order(struct text *kept, struct text *held)
{
        (void)held;
        prefix.named[kept->blocks[1]].dropped += 100;
}

static void lost_start(struct text *kept, struct text *held)
{
        (void)kept;
        (void)held;
        memset(prefix.starts, 0xff, (prefix.bucket_mask + 1) * sizeof(*prefix.starts));
}

static void lost_whole(struct text *kept, struct text *held)
{
        (void)kept;
        (void)held;
        memset(prefix.wholes, 0xff, (prefix.bucket_mask + 1) * sizeof(*prefix.wholes));
}

static void held_behind_what_is_not(struct text *kept, struct text *held)
{
        (void)held;
        prefix_hold(&prefix, kept->blocks[1]);
}

static void miscounted(struct text *kept, struct text *held)
{
        (void)kept;
        (void)held;
        prefix.pool.kept_count--;
}

static void lost_leaf(struct text *kept, struct text *held)
{
        (void)kept;
        (void)held;
        prefix.giver_count--;
}

typedef void damage_fn(struct text *kept, struct text *held);

static damage_fn *damage;

static void damage_and_check(struct text *kept, struct text *held)
{
        damage(kept, held);
        prefix_check(&prefix);
}

static void the_check_sees_every_kind_of_damage(void **state)
{
        static damage_fn *const kinds[] = {
                wrong_token, wrong_domain, wrong_generation,        parent_in_part,
                lost_name,   lost_child,   leaf_in_two_places,      leaves_out_of_order,
                lost_start,  lost_whole,   held_behind_what_is_not, miscounted,
                lost_leaf,
        };

        (void)state;
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                damage = kinds[i];
                dies(damage_and_check);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_has_a_name_is_kept_and_held_again),
                cmocka_unit_test(what_is_free_is_taken_before_anything_is_evicted),
                cmocka_unit_test(what_is_held_is_never_evicted),
                cmocka_unit_test(the_leaf_that_was_dropped_longest_ago_goes_first),
                cmocka_unit_test(a_drop_by_one_of_two_does_not_count),
                cmocka_unit_test(the_end_of_a_text_goes_before_its_beginning),
                cmocka_unit_test(what_has_others_behind_it_waits_for_them),
                cmocka_unit_test(finding_holds_nothing),
                cmocka_unit_test(spoiling_takes_the_names_of_all_that_follow),
                cmocka_unit_test(what_comes_before_what_is_spoilt_keeps_its_name),
                cmocka_unit_test(spoiling_what_has_no_name_does_nothing),
                cmocka_unit_test(once_it_is_there_nothing_is_allocated),
                cmocka_unit_test(an_index_half_made_or_gone_is_no_trouble),
                cmocka_unit_test(misuse_is_a_bug_and_dies),
                cmocka_unit_test(the_check_sees_every_kind_of_damage),
        };

        count_allocs();
        return cmocka_run_group_tests_name("prefix-kept", tests, NULL, NULL);
}
