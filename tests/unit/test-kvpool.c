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

static void takes_every_block_once(void **state)
{
        bool seen[37] = { false };
        struct kvpool pool;
        block_t block;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 37), 0);
        kvpool_check(&pool);
        for (uint32_t i = 0; i < 37; i++) {
                assert_int_equal(pool.free.count, 37 - i);
                block = kvpool_allocate(&pool);
                assert_true(block < 37);
                assert_false(seen[block]);
                assert_int_equal(pool.ref_counts[block], 1);
                seen[block] = true;
                kvpool_check(&pool);
        }
        kvpool_deinit(&pool);
}

static void give_back(struct kvpool *pool, block_t block)
{
        assert_true(kvpool_unref(pool, block));
        kvpool_free_cached(pool, block);
}

static void a_cached_block_is_neither_free_nor_in_use(void **state)
{
        struct kvpool pool;
        block_t block;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 1), 0);
        block = kvpool_allocate(&pool);
        assert_true(kvpool_unref(&pool, block));
        assert_int_equal(pool.free.count, 0);
        assert_int_equal(pool.cached_count, 1);
        assert_int_equal(kvpool_in_use(&pool), 0);
        kvpool_check(&pool);

        kvpool_ref(&pool, block);
        assert_int_equal(pool.cached_count, 0);
        assert_int_equal(kvpool_in_use(&pool), 1);
        kvpool_check(&pool);

        give_back(&pool, block);
        assert_int_equal(pool.free.count, 1);
        assert_int_equal(kvpool_allocate(&pool), block);
        kvpool_deinit(&pool);
}

static void unref_reports_the_last_reference(void **state)
{
        struct kvpool pool;
        block_t block;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 2), 0);
        block = kvpool_allocate(&pool);
        kvpool_ref(&pool, block);
        kvpool_ref(&pool, block);
        assert_int_equal(pool.ref_counts[block], 3);

        assert_false(kvpool_unref(&pool, block));
        assert_false(kvpool_unref(&pool, block));
        kvpool_check(&pool);
        assert_int_equal(pool.free.count, 1); /* one holder is left */
        assert_int_not_equal(kvpool_allocate(&pool), block);

        assert_true(kvpool_unref(&pool, block));
        kvpool_check(&pool);
        assert_int_equal(pool.free.count, 0);
        assert_int_equal(pool.cached_count, 1);
        kvpool_deinit(&pool);
}

static void takes_the_most_recently_freed_block_first(void **state)
{
        block_t blocks[4];
        struct kvpool pool;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 8), 0);
        for (int i = 0; i < 4; i++)
                blocks[i] = kvpool_allocate(&pool);
        for (int i = 0; i < 4; i++)
                give_back(&pool, blocks[i]);
        for (int i = 3; i >= 0; i--)
                assert_int_equal(kvpool_allocate(&pool), blocks[i]);
        kvpool_deinit(&pool);
}

/* Compared with arrays of counts and of cached blocks, for any operations in any order. */
static void random_refs_and_unrefs_match_a_model(void **state)
{
        uint32_t counts[23] = { 0 }, in_use = 0, keeps = 0, shared = 0, random = 1;
        bool cached[23] = { false };
        struct kvpool pool;

        (void)state;
        assert_int_equal(kvpool_init(&pool, 23), 0);
        for (int i = 0; i < 200000; i++) {
                block_t block;

                random = random * 1664525u + 1013904223u;
                block = (random >> 8) % 23;
                /* Long spells of more takes than releases, and the other way round. */
                if ((random >> 24) % 8 < (i / 500 % 2 ? 3u : 5u)) {
                        if (in_use + keeps == 23)
                                continue;
                        block = kvpool_allocate(&pool);
                        assert_true(!counts[block] && !cached[block]);
                        counts[block] = 1;
                        in_use++;
                } else if (cached[block]) {
                        cached[block] = false;
                        keeps--;
                        if (random >> 31) {
                                kvpool_ref(&pool, block);
                                counts[block] = 1;
                                in_use++;
                        } else {
                                kvpool_free_cached(&pool, block);
                        }
                } else if (counts[block] && random >> 31) {
                        kvpool_ref(&pool, block);
                        shared += ++counts[block] == 2;
                } else if (counts[block]) {
                        shared -= counts[block] == 2;
                        assert_int_equal(kvpool_unref(&pool, block), --counts[block] == 0);
                        cached[block] = counts[block] == 0;
                        keeps += cached[block];
                        in_use -= cached[block];
                }
                assert_int_equal(kvpool_in_use(&pool), in_use);
                assert_int_equal(pool.cached_count, keeps);
                assert_int_equal(pool.shared_count, shared);
                if (i % 64 == 0) {
                        kvpool_check(&pool);
                        assert_memory_equal(pool.ref_counts, counts, sizeof(counts));
                }
        }
        kvpool_deinit(&pool);
}

static void rounds_positions_up_to_blocks(void **state)
{
        (void)state;
        assert_int_equal(blocks_for(0), 0);
        assert_int_equal(blocks_for(1), 1);
        assert_int_equal(blocks_for(16), 1);
        assert_int_equal(blocks_for(17), 2);
        assert_int_equal(blocks_for(160), 10);
}

static void deinit_accepts_null_empty_and_repeated_calls(void **state)
{
        struct kvpool pool = { 0 };

        (void)state;
        kvpool_deinit(NULL);
        kvpool_deinit(&pool);
        assert_int_equal(kvpool_init(&pool, 3), 0);
        kvpool_deinit(&pool);
        assert_null(pool.ref_counts);
        assert_null(pool.free.numbers);
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
                kvpool_allocate(&pool);
                kvpool_allocate(&pool);
                close(STDERR_FILENO);
                what(&pool);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void unref_a_free_block(struct kvpool *pool)
{
        kvpool_unref(pool, 3);
}

static void unref_twice(struct kvpool *pool)
{
        kvpool_unref(pool, 0);
        kvpool_unref(pool, 0);
}

static void free_a_block_in_use(struct kvpool *pool)
{
        kvpool_free_cached(pool, 0);
}

static void take_from_an_empty_pool(struct kvpool *pool)
{
        for (int i = 0; i < 3; i++)
                kvpool_allocate(pool);
}

static void unref_an_unknown_block(struct kvpool *pool)
{
        kvpool_unref(pool, 4);
}

static void ref_a_free_block(struct kvpool *pool)
{
        kvpool_ref(pool, 2);
}

static void check_lost(struct kvpool *pool)
{
        pool->ref_counts[1] = 0; /* neither referenced nor on the stack */
        kvpool_check(pool);
}

static void check_twice_on_the_stack(struct kvpool *pool)
{
        pool->free.numbers[1] = pool->free.numbers[0];
        kvpool_check(pool);
}

static void check_in_use_and_free(struct kvpool *pool)
{
        pool->free.numbers[0] = 0;
        kvpool_check(pool);
}

static void check_miscounted(struct kvpool *pool)
{
        pool->free.count--;
        kvpool_check(pool);
}

static void asserts_on_misuse(void **state)
{
        (void)state;
        dies(unref_a_free_block);
        dies(unref_twice);
        dies(unref_an_unknown_block);
        dies(ref_a_free_block);
        dies(free_a_block_in_use);
        dies(take_from_an_empty_pool);
}

static void the_check_detects_every_kind_of_damage(void **state)
{
        (void)state;
        dies(check_lost);
        dies(check_twice_on_the_stack);
        dies(check_in_use_and_free);
        dies(check_miscounted);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(takes_every_block_once),
                cmocka_unit_test(a_cached_block_is_neither_free_nor_in_use),
                cmocka_unit_test(unref_reports_the_last_reference),
                cmocka_unit_test(takes_the_most_recently_freed_block_first),
                cmocka_unit_test(random_refs_and_unrefs_match_a_model),
                cmocka_unit_test(rounds_positions_up_to_blocks),
                cmocka_unit_test(deinit_accepts_null_empty_and_repeated_calls),
                cmocka_unit_test(asserts_on_misuse),
                cmocka_unit_test(the_check_detects_every_kind_of_damage),
        };

        return cmocka_run_group_tests_name("kvpool", tests, NULL, NULL);
}
