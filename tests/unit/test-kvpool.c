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

#include "daemon/core/kvpool.h"

static void every_block_is_dealt_once(void **state)
{
        bool seen[37] = { false };
        struct kvpool pool;
        block_t block;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 37), 0);
        kvpool_check(&pool);
        for (uint32_t i = 0; i < 37; i++) {
                assert_int_equal(pool.free_count, 37 - i);
                block = kvpool_take(&pool);
                assert_true(block < 37);
                assert_false(seen[block]);
                assert_int_equal(pool.holds[block], 1);
                seen[block] = true;
                kvpool_check(&pool);
        }
        kvpool_deinit(&pool);
}

static void give_back(struct kvpool *pool, block_t block)
{
        assert_true(kvpool_drop(pool, block));
        kvpool_give_up(pool, block);
}

static void what_is_kept_is_neither_free_nor_held(void **state)
{
        struct kvpool pool;
        block_t block;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 1), 0);
        block = kvpool_take(&pool);
        assert_true(kvpool_drop(&pool, block));
        assert_int_equal(pool.free_count, 0);
        assert_int_equal(pool.kept_count, 1);
        assert_int_equal(kvpool_held(&pool), 0);
        kvpool_check(&pool);

        kvpool_hold(&pool, block);
        assert_int_equal(pool.kept_count, 0);
        assert_int_equal(kvpool_held(&pool), 1);
        kvpool_check(&pool);

        give_back(&pool, block);
        assert_int_equal(pool.free_count, 1);
        assert_int_equal(kvpool_take(&pool), block);
        kvpool_deinit(&pool);
}

static void the_last_drop_says_so(void **state)
{
        struct kvpool pool;
        block_t block;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 2), 0);
        block = kvpool_take(&pool);
        kvpool_hold(&pool, block);
        kvpool_hold(&pool, block);
        assert_int_equal(pool.holds[block], 3);

        assert_false(kvpool_drop(&pool, block));
        assert_false(kvpool_drop(&pool, block));
        kvpool_check(&pool);
        assert_int_equal(pool.free_count, 1); /* one holder is left */
        assert_int_not_equal(kvpool_take(&pool), block);

        assert_true(kvpool_drop(&pool, block));
        kvpool_check(&pool);
        assert_int_equal(pool.free_count, 0);
        assert_int_equal(pool.kept_count, 1);
        kvpool_deinit(&pool);
}

static void what_was_given_up_last_is_dealt_first(void **state)
{
        block_t blocks[4];
        struct kvpool pool;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 8), 0);
        for (int i = 0; i < 4; i++)
                blocks[i] = kvpool_take(&pool);
        for (int i = 0; i < 4; i++)
                give_back(&pool, blocks[i]);
        for (int i = 3; i >= 0; i--)
                assert_int_equal(kvpool_take(&pool), blocks[i]);
        kvpool_deinit(&pool);
}

/* Compared with arrays of counts and of cached blocks, for any operations in any order. */
static void random_holds_and_drops_add_up(void **state)
{
        uint32_t counts[23] = { 0 }, held = 0, keeps = 0, random = 1;
        bool kept[23] = { false };
        struct kvpool pool;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 23), 0);
        for (int i = 0; i < 200000; i++) {
                block_t block;

                random = random * 1664525u + 1013904223u;
                block = (random >> 8) % 23;
                /* Long spells of more takes than drops, and the other way round. */
                if ((random >> 24) % 8 < (i / 500 % 2 ? 3u : 5u)) {
                        if (held + keeps == 23)
                                continue;
                        block = kvpool_take(&pool);
                        assert_true(!counts[block] && !kept[block]);
                        counts[block] = 1;
                        held++;
                } else if (kept[block]) {
                        kept[block] = false;
                        keeps--;
                        if (random >> 31) {
                                kvpool_hold(&pool, block);
                                counts[block] = 1;
                                held++;
                        } else {
                                kvpool_give_up(&pool, block);
                        }
                } else if (counts[block] && random >> 31) {
                        kvpool_hold(&pool, block);
                        counts[block]++;
                } else if (counts[block]) {
                        assert_int_equal(kvpool_drop(&pool, block), --counts[block] == 0);
                        kept[block] = counts[block] == 0;
                        keeps += kept[block];
                        held -= kept[block];
                }
                assert_int_equal(kvpool_held(&pool), held);
                assert_int_equal(pool.kept_count, keeps);
                if (i % 64 == 0) {
                        kvpool_check(&pool);
                        assert_memory_equal(pool.holds, counts, sizeof(counts));
                }
        }
        kvpool_deinit(&pool);
}

static void blocks_are_counted_up(void **state)
{
        (void)state;
        assert_int_equal(blocks_for(0), 0);
        assert_int_equal(blocks_for(1), 1);
        assert_int_equal(blocks_for(16), 1);
        assert_int_equal(blocks_for(17), 2);
        assert_int_equal(blocks_for(160), 10);
}

static void a_pool_half_made_or_gone_is_no_trouble(void **state)
{
        struct kvpool pool = { 0 };

        (void)state;
        kvpool_deinit(NULL);
        kvpool_deinit(&pool);
        assert_int_equal(kvpool_init(&pool, 3), 0);
        kvpool_deinit(&pool);
        assert_null(pool.holds);
        assert_null(pool.free_stack);
        kvpool_deinit(&pool);
}

/* In a child, which must be killed by an assert. */
static void dies(void (*what)(struct kvpool *pool))
{
        int status;
        pid_t child = fork();

        assert_true(child >= 0);
        if (!child) {
                struct kvpool pool;

                if (kvpool_init(&pool, 4))
                        _exit(1);
                kvpool_take(&pool);
                kvpool_take(&pool);
                close(STDERR_FILENO);
                what(&pool);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void drop_free(struct kvpool *pool)
{
        kvpool_drop(pool, 3);
}

static void drop_twice(struct kvpool *pool)
{
        kvpool_drop(pool, 0);
        kvpool_drop(pool, 0);
}

static void give_up_held(struct kvpool *pool)
{
        kvpool_give_up(pool, 0);
}

static void take_of_none(struct kvpool *pool)
{
        for (int i = 0; i < 3; i++)
                kvpool_take(pool);
}

static void drop_foreign(struct kvpool *pool)
{
        kvpool_drop(pool, 4);
}

static void hold_free(struct kvpool *pool)
{
        kvpool_hold(pool, 2);
}

static void check_lost(struct kvpool *pool)
{
        pool->holds[1] = 0; /* neither held nor on the stack */
        kvpool_check(pool);
}

static void check_twice_on_the_stack(struct kvpool *pool)
{
        pool->free_stack[1] = pool->free_stack[0];
        kvpool_check(pool);
}

static void check_held_and_free(struct kvpool *pool)
{
        pool->free_stack[0] = 0;
        kvpool_check(pool);
}

static void check_miscounted(struct kvpool *pool)
{
        pool->free_count--;
        kvpool_check(pool);
}

static void misuse_is_a_bug_and_dies(void **state)
{
        (void)state;
        dies(drop_free);
        dies(drop_twice);
        dies(drop_foreign);
        dies(hold_free);
        dies(give_up_held);
        dies(take_of_none);
}

static void the_check_sees_every_kind_of_damage(void **state)
{
        (void)state;
        dies(check_lost);
        dies(check_twice_on_the_stack);
        dies(check_held_and_free);
        dies(check_miscounted);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_block_is_dealt_once),
                cmocka_unit_test(what_is_kept_is_neither_free_nor_held),
                cmocka_unit_test(the_last_drop_says_so),
                cmocka_unit_test(what_was_given_up_last_is_dealt_first),
                cmocka_unit_test(random_holds_and_drops_add_up),
                cmocka_unit_test(blocks_are_counted_up),
                cmocka_unit_test(a_pool_half_made_or_gone_is_no_trouble),
                cmocka_unit_test(misuse_is_a_bug_and_dies),
                cmocka_unit_test(the_check_sees_every_kind_of_damage),
        };

        return cmocka_run_group_tests_name("kvpool", tests, NULL, NULL);
}
