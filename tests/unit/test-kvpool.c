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
                assert_int_equal(kvpool_take(&pool, &block), 0);
                assert_true(block < 37);
                assert_false(seen[block]);
                assert_int_equal(pool.holds[block], 1);
                seen[block] = true;
                kvpool_check(&pool);
        }
        kvpool_deinit(&pool);
}

static void an_empty_pool_says_so_and_writes_nothing(void **state)
{
        struct kvpool pool;
        block_t block = 77;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 1), 0);
        assert_int_equal(kvpool_take(&pool, &block), 0);
        assert_int_equal(block, 0);
        block = 77;
        assert_int_equal(kvpool_take(&pool, &block), KVPOOL_E_EMPTY);
        assert_int_equal(block, 77);
        assert_int_equal(pool.free_count, 0);
        kvpool_check(&pool);
        kvpool_drop(&pool, 0);
        assert_int_equal(kvpool_take(&pool, &block), 0);
        assert_int_equal(block, 0);
        kvpool_deinit(&pool);
}

static void the_last_drop_frees(void **state)
{
        struct kvpool pool;
        block_t block, other;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 2), 0);
        assert_int_equal(kvpool_take(&pool, &block), 0);
        kvpool_hold(&pool, block);
        kvpool_hold(&pool, block);
        assert_int_equal(pool.holds[block], 3);

        kvpool_drop(&pool, block);
        kvpool_drop(&pool, block);
        kvpool_check(&pool);
        assert_int_equal(pool.free_count, 1); /* one holder is left */
        assert_int_equal(kvpool_take(&pool, &other), 0);
        assert_int_not_equal(other, block);
        assert_int_equal(kvpool_take(&pool, &other), KVPOOL_E_EMPTY);

        kvpool_drop(&pool, block);
        kvpool_check(&pool);
        assert_int_equal(pool.free_count, 1);
        kvpool_deinit(&pool);
}

static void what_was_dropped_last_is_dealt_first(void **state)
{
        block_t blocks[4], again;
        struct kvpool pool;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 8), 0);
        for (int i = 0; i < 4; i++)
                assert_int_equal(kvpool_take(&pool, &blocks[i]), 0);
        for (int i = 0; i < 4; i++)
                kvpool_drop(&pool, blocks[i]);
        for (int i = 3; i >= 0; i--) {
                assert_int_equal(kvpool_take(&pool, &again), 0);
                assert_int_equal(again, blocks[i]);
        }
        kvpool_deinit(&pool);
}

/* Against an array of counts: whatever is done, in whatever order. */
static void random_holds_and_drops_add_up(void **state)
{
        uint32_t counts[23] = { 0 }, held = 0, random = 1;
        struct kvpool pool;
        block_t block;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 23), 0);
        for (int i = 0; i < 200000; i++) {
                random = random * 1664525u + 1013904223u;
                block = (random >> 8) % 23;
                /* Long spells of more takes than drops, and the other way round. */
                if ((random >> 24) % 8 < (i / 500 % 2 ? 3u : 5u)) {
                        block_t got = 99;

                        assert_int_equal(kvpool_take(&pool, &got), held == 23 ? KVPOOL_E_EMPTY : 0);
                        if (got != 99) {
                                assert_int_equal(counts[got], 0);
                                counts[got] = 1;
                                held++;
                        }
                } else if (counts[block] && random >> 31) {
                        kvpool_hold(&pool, block);
                        counts[block]++;
                } else if (counts[block]) {
                        kvpool_drop(&pool, block);
                        held -= --counts[block] == 0;
                }
                assert_int_equal(pool.free_count + held, 23);
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
                block_t block;

                if (kvpool_init(&pool, 4) || kvpool_take(&pool, &block) ||
                    kvpool_take(&pool, &block))
                        _exit(1);
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
                cmocka_unit_test(an_empty_pool_says_so_and_writes_nothing),
                cmocka_unit_test(the_last_drop_frees),
                cmocka_unit_test(what_was_dropped_last_is_dealt_first),
                cmocka_unit_test(random_holds_and_drops_add_up),
                cmocka_unit_test(blocks_are_counted_up),
                cmocka_unit_test(a_pool_half_made_or_gone_is_no_trouble),
                cmocka_unit_test(misuse_is_a_bug_and_dies),
                cmocka_unit_test(the_check_sees_every_kind_of_damage),
        };

        return cmocka_run_group_tests_name("kvpool", tests, NULL, NULL);
}
