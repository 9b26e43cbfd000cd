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

static void indexed_blocks_stay_cached_and_can_be_referenced_again(void **state)
{
        struct text text;
        block_t nameless;

        (void)state;
        open_pool(4);
        text = put(1, YOU "l pot");
        nameless = prefix_allocate(&prefix, 1);
        expect_counts(1, 0, 3);
        prefix_unref(&prefix, nameless);
        release(&text);
        expect_counts(2, 2, 0);
        expect_found(1, YOU "l pot", &text, 1, 5);

        prefix_ref(&prefix, text.blocks[0]);
        expect_counts(2, 1, 1);
        prefix_ref(&prefix, text.blocks[1]);
        prefix_ref(&prefix, text.blocks[0]);
        prefix_ref(&prefix, text.blocks[1]);
        expect_counts(2, 0, 2);
        release(&text);
        expect_counts(2, 0, 2); /* one holder is left */
        release(&text);
        expect_counts(2, 2, 0);
        close_pool();
}

static void takes_free_blocks_before_it_evicts(void **state)
{
        struct text text;

        (void)state;
        open_pool(4);
        text = put_and_release(1, YOU "l pot");
        prefix_allocate(&prefix, 1);
        prefix_allocate(&prefix, 1);
        assert_int_equal(prefix.evictions, 0);
        expect_counts(0, 2, 2);
        expect_found(1, YOU "l pot", &text, 1, 5);
        close_pool();
}

static void never_evicts_a_block_in_use(void **state)
{
        struct text in_use, cached;

        (void)state;
        open_pool(5);
        cached = put_and_release(1, YOU URN "ea");
        in_use = put(1, POT);
        prefix_ref(&prefix, cached.blocks[0]);
        expect_counts(1, 2, 2);
        while (prefix_available(&prefix)) {
                block_t block = prefix_allocate(&prefix, 1);

                assert_int_not_equal(block, in_use.blocks[0]);
                assert_int_not_equal(block, cached.blocks[0]);
                prefix_check(&prefix);
        }
        assert_int_equal(prefix.evictions, 2);
        expect_counts(0, 0, 5);
        expect_found(1, YOU URN, &cached, 1, 0);
        expect_found(1, POT, &in_use, 1, 0);
        close_pool();
}

static void evicts_the_least_recently_released_leaf_first(void **state)
{
        static const char *const words[] = { "one", "two", "three", "four", "five" };
        static const uint32_t releases[] = { 3, 0, 4, 2, 1 };
        struct text texts[5];

        (void)state;
        for (uint32_t again = 0; again < 5; again++) {
                open_pool(5);
                for (uint32_t i = 0; i < 5; i++)
                        texts[i] = put(1, words[i]);
                for (uint32_t i = 0; i < 5; i++)
                        release(&texts[releases[i]]);
                /* A block that is referenced again counts as released last. */
                prefix_ref(&prefix, texts[releases[again]].blocks[0]);
                release(&texts[releases[again]]);
                for (uint32_t i = 0; i < 5; i++)
                        if (i != again)
                                assert_int_equal(prefix_allocate(&prefix, 1),
                                                 texts[releases[i]].blocks[0]);
                assert_int_equal(prefix_allocate(&prefix, 1), texts[releases[again]].blocks[0]);
                close_pool();
        }
}

/* It is when the last reference is removed that counts. */
static void only_the_last_unref_counts_as_a_use(void **state)
{
        struct text one, two;

        (void)state;
        open_pool(2);
        one = put(1, "one");
        two = put(1, "two");
        prefix_ref(&prefix, one.blocks[0]);
        release(&one);
        release(&two);
        release(&one);
        assert_int_equal(prefix_allocate(&prefix, 1), two.blocks[0]);
        close_pool();
}

static void evicts_the_end_of_a_text_before_its_beginning(void **state)
{
        struct text one, two;

        (void)state;
        open_pool(6);
        one = put_and_release(1, YOU URN TEA);
        two = put_and_release(1, YOU CUP "e");
        expect_counts(1, 5, 0);
        prefix_allocate(&prefix, 1);
        assert_int_equal(prefix_allocate(&prefix, 1), one.blocks[2]);
        assert_int_equal(prefix_allocate(&prefix, 1), one.blocks[1]);
        assert_int_equal(prefix_allocate(&prefix, 1), two.blocks[2]);
        assert_int_equal(prefix_allocate(&prefix, 1), two.blocks[1]);
        expect_found(1, YOU URN, &one, 1, 0);
        assert_int_equal(prefix_allocate(&prefix, 1), one.blocks[0]);
        expect_counts(0, 0, 6);
        close_pool();
}

/* Not the block that was released longest ago, but the leaf. */
static void never_evicts_a_block_before_its_children(void **state)
{
        struct text one, two, three;

        (void)state;
        open_pool(4);
        one = put(1, YOU);
        two = put(1, YOU URN);
        three = put(1, POT);
        release(&one);
        release(&two); /* so the first block is older than POT, when both are leaves */
        release(&three);
        prefix_ref(&prefix, two.blocks[0]);
        prefix_ref(&prefix, two.blocks[1]);
        release(&two);
        prefix_allocate(&prefix, 1);
        assert_int_equal(prefix_allocate(&prefix, 1), three.blocks[0]);
        assert_int_equal(prefix_allocate(&prefix, 1), two.blocks[1]);
        assert_int_equal(prefix_allocate(&prefix, 1), two.blocks[0]);
        close_pool();
}

static void a_lookup_takes_no_reference_and_does_not_count_as_a_use(void **state)
{
        struct text one, two;

        (void)state;
        open_pool(2);
        one = put_and_release(1, "one");
        two = put_and_release(1, "two");
        expect_found(1, "one", &one, 0, 3);
        expect_counts(0, 2, 0);
        /* To find a block does not make it newer. */
        assert_int_equal(prefix_allocate(&prefix, 1), one.blocks[0]);
        expect_found(1, "two", &two, 0, 3);
        close_pool();
}

static void invalidating_a_block_invalidates_all_its_descendants(void **state)
{
        struct text cached, in_use, other;

        (void)state;
        open_pool(9);
        cached = put_and_release(1, YOU URN TEA " me");
        in_use = put(1, YOU CUP "ea");
        other = put(1, POT URN);
        expect_counts(1, 3, 5);
        prefix_invalidate(&prefix, in_use.blocks[0]);
        expect_counts(4, 0, 5); /* a cached block becomes free, a referenced one stays referenced */
        expect_found(1, YOU URN, &other, 0, 10);
        expect_found(1, YOU CUP, &other, 0, 10);
        expect_found(1, POT URN, &other, 2, 0);

        release(&in_use);
        expect_counts(7, 0, 2); /* and not cached any more */
        release(&other);
        expect_counts(7, 2, 0);
        cached = put(1, YOU URN); /* and may be inserted anew */
        expect_found(1, YOU URN, &cached, 2, 0);
        close_pool();
}

static void invalidating_a_block_keeps_its_ancestors(void **state)
{
        struct text one, two;

        (void)state;
        open_pool(4);
        one = put_and_release(1, YOU URN "ea");
        two = put_and_release(1, YOU CUP);
        prefix_invalidate(&prefix, one.blocks[1]);
        expect_counts(2, 2, 0);
        expect_found(1, YOU URN, &two, 1, 2);
        prefix_invalidate(&prefix, two.blocks[1]);
        expect_counts(3, 1, 0);
        expect_found(1, YOU URN, &one, 1, 0);
        for (int i = 0; i < 4; i++) /* the remaining block is a leaf */
                prefix_allocate(&prefix, 1);
        assert_int_equal(prefix.evictions, 1);
        close_pool();
}

static void invalidating_an_unindexed_block_does_nothing(void **state)
{
        struct text text;
        block_t nameless;

        (void)state;
        open_pool(4);
        text = put(1, YOU);
        nameless = prefix_allocate(&prefix, 1);
        for (block_t block = 0; block < 4; block++)
                if (block != text.blocks[0])
                        prefix_invalidate(&prefix, block);
        expect_counts(2, 0, 2);
        prefix_unref(&prefix, nameless);
        expect_found(1, YOU, &text, 1, 0);
        close_pool();
}

static void allocates_nothing_after_init(void **state)
{
        unsigned long before;
        struct text text;

        (void)state;
        open_pool(4);
        before = alloc_count;
        text = put(1, YOU URN "ea");
        release(&text);
        text = put(2, POT URN TEA);
        prefix_invalidate(&prefix, text.blocks[0]);
        expect_found(2, POT, NULL, 0, 0);
        prefix_check(&prefix);
        assert_int_equal(alloc_count, before);
        close_pool();
        open_pool(4);
        assert_true(alloc_count > before); /* they are counted */
        close_pool();
}

static void deinit_accepts_null_empty_and_repeated_calls(void **state)
{
        (void)state;
        prefix_deinit(NULL);
        prefix = (struct prefix){ 0 };
        prefix_deinit(&prefix);
        open_pool(1);
        close_pool();
        assert_null(prefix.nodes);
        assert_null(prefix.owners);
        prefix_deinit(&prefix);
}

/*
 * Runs in a child, which an assert must kill.  "One" is in use; YOU and the blocks behind it are
 * cached.
 */
static void dies(void (*what)(struct text *cached, struct text *in_use))
{
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (!child) {
                struct text cached, in_use;

                signal(SIGABRT, SIG_DFL);
                open_pool(6);
                in_use = put(1, "One");
                cached = put_and_release(1, YOU URN);
                put_and_release(1, YOU CUP);
                close(STDERR_FILENO);
                what(&cached, &in_use);
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
        prefix_insert(&prefix, domain, parent, block, tokens, count);
}

static void insert_other_tokens(struct text *cached, struct text *in_use)
{
        (void)cached;
        say(1, BLOCK_NONE, in_use->blocks[0], "Once", 4);
}

static void insert_fewer_tokens(struct text *cached, struct text *in_use)
{
        (void)cached;
        say(1, BLOCK_NONE, in_use->blocks[0], "One", 2);
}

static void insert_too_many_tokens(struct text *cached, struct text *in_use)
{
        (void)cached;
        say(1, BLOCK_NONE, in_use->blocks[0], "One more cup of t", 17);
}

static void insert_no_tokens(struct text *cached, struct text *in_use)
{
        (void)cached;
        (void)in_use;
        say(1, BLOCK_NONE, prefix_allocate(&prefix, 1), "", 0);
}

static void insert_for_another_domain(struct text *cached, struct text *in_use)
{
        (void)cached;
        say(2, BLOCK_NONE, in_use->blocks[0], "One m", 5);
}

static void insert_after_another_parent(struct text *cached, struct text *in_use)
{
        prefix_ref(&prefix, cached->blocks[0]);
        say(1, cached->blocks[0], in_use->blocks[0], "One m", 5);
}

static void insert_an_unreferenced_block(struct text *cached, struct text *in_use)
{
        (void)in_use;
        say(1, BLOCK_NONE, cached->blocks[0], YOU, 16);
}

static void insert_after_an_unreferenced_block(struct text *cached, struct text *in_use)
{
        (void)in_use;
        say(1, cached->blocks[0], prefix_allocate(&prefix, 1), "la", 2);
}

static void take_too_many(struct text *cached, struct text *in_use)
{
        (void)cached;
        (void)in_use;
        for (int i = 0; i < 6; i++)
                prefix_allocate(&prefix, 1);
}

static void asserts_on_misuse(void **state)
{
        (void)state;
        dies(insert_other_tokens);
        dies(insert_fewer_tokens);
        dies(insert_too_many_tokens);
        dies(insert_no_tokens);
        dies(insert_for_another_domain);
        dies(insert_after_another_parent);
        dies(insert_an_unreferenced_block);
        dies(insert_after_an_unreferenced_block);
        dies(take_too_many);
}

static void wrong_token(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix.nodes[cached->blocks[1]].tokens[7]++;
}

static void wrong_domain(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix.nodes[cached->blocks[0]].domain++;
}

static void wrong_generation(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix.nodes[cached->blocks[0]].generation++;
}

static void parent_in_part(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix.nodes[cached->blocks[0]].filled--;
}

static void lost_name(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix.nodes[cached->blocks[1]].filled = 0;
}

static void lost_child(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix.nodes[cached->blocks[0]].child = BLOCK_NONE;
}

static void leaf_in_two_places(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix.nodes[cached->blocks[1]].leaf.right = prefix.nodes[cached->blocks[1]].leaf.left;
}

static void leaves_out_of_order(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix.nodes[cached->blocks[1]].unref_at += 100;
}

static void lost_start(struct text *cached, struct text *in_use)
{
        (void)cached;
        (void)in_use;
        memset(prefix.start_buckets, 0xff,
               (prefix.bucket_mask + 1) * sizeof(*prefix.start_buckets));
}

static void lost_whole(struct text *cached, struct text *in_use)
{
        (void)cached;
        (void)in_use;
        memset(prefix.hash_buckets, 0xff, (prefix.bucket_mask + 1) * sizeof(*prefix.hash_buckets));
}

static void in_use_behind_a_cached_block(struct text *cached, struct text *in_use)
{
        (void)in_use;
        prefix_ref(&prefix, cached->blocks[1]);
}

static void miscounted(struct text *cached, struct text *in_use)
{
        (void)cached;
        (void)in_use;
        prefix.pool.cached_count--;
}

static void lost_leaf(struct text *cached, struct text *in_use)
{
        (void)cached;
        (void)in_use;
        prefix.owner_heaps[PREFIX_POOL].count--;
}

typedef void damage_fn(struct text *cached, struct text *in_use);

static damage_fn *damage;

static void damage_and_check(struct text *cached, struct text *in_use)
{
        damage(cached, in_use);
        prefix_check(&prefix);
}

static void the_check_detects_every_kind_of_damage(void **state)
{
        static damage_fn *const kinds[] = {
                wrong_token,
                wrong_domain,
                wrong_generation,
                parent_in_part,
                lost_name,
                lost_child,
                leaf_in_two_places,
                leaves_out_of_order,
                lost_start,
                lost_whole,
                in_use_behind_a_cached_block,
                miscounted,
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
                cmocka_unit_test(indexed_blocks_stay_cached_and_can_be_referenced_again),
                cmocka_unit_test(takes_free_blocks_before_it_evicts),
                cmocka_unit_test(never_evicts_a_block_in_use),
                cmocka_unit_test(evicts_the_least_recently_released_leaf_first),
                cmocka_unit_test(only_the_last_unref_counts_as_a_use),
                cmocka_unit_test(evicts_the_end_of_a_text_before_its_beginning),
                cmocka_unit_test(never_evicts_a_block_before_its_children),
                cmocka_unit_test(a_lookup_takes_no_reference_and_does_not_count_as_a_use),
                cmocka_unit_test(invalidating_a_block_invalidates_all_its_descendants),
                cmocka_unit_test(invalidating_a_block_keeps_its_ancestors),
                cmocka_unit_test(invalidating_an_unindexed_block_does_nothing),
                cmocka_unit_test(allocates_nothing_after_init),
                cmocka_unit_test(deinit_accepts_null_empty_and_repeated_calls),
                cmocka_unit_test(asserts_on_misuse),
                cmocka_unit_test(the_check_detects_every_kind_of_damage),
        };

        count_allocs();
        return cmocka_run_group_tests_name("prefix-cached", tests, NULL, NULL);
}
