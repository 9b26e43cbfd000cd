/*
 * How many blocks the pool has, by the settings and the memory it lies in.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/pool.h"

#define KIB   ((uint64_t)1 << 10)
#define MIB   ((uint64_t)1 << 20)
#define GIB   ((uint64_t)1 << 30)
#define BLOCK (16 * KIB)

static char why[512];

/* 64 sequences of 100 blocks each, on a machine of 16 GiB. */
static const struct pool_conf host = {
        .block = BLOCK, .blocks_one = 100, .sequences = 64, .machine = 16 * GIB
};

/* ... and a GPU of 1600 MiB: 100 stay free, 1000 are taken, so 500 are for the pool. */
static const struct pool_conf gpu = {
        .block = 4 * MIB,
        .blocks_one = 100,
        .sequences = 64,
        .machine = 16 * GIB,
        .backend = "gpu",
        .left = 1600 * MIB,
        .weights = 900 * MIB,
        .activations = 70 * MIB,
        .scratch = 30 * MIB,
};

static uint32_t plan(const struct pool_conf *conf)
{
        uint32_t blocks;
        int r;

        why[0] = '\0';
        r = pool_plan(conf, &blocks, why, sizeof(why));
        if (r)
                fail_msg("%d: %s", r, why);
        return blocks;
}

static void refuses(const struct pool_conf *conf, const char *words)
{
        uint32_t blocks;

        why[0] = '\0';
        assert_int_equal(pool_plan(conf, &blocks, why, sizeof(why)), -EINVAL);
        if (!strstr(why, words) || strchr(why, '\n'))
                fail_msg("%s", why);
}

static void host_gives_a_quarter_of_the_sequences_their_full_length(void **state)
{
        struct pool_conf conf = host;

        (void)state;
        assert_int_equal(plan(&conf), 1600);
        conf.sequences = 3;
        assert_int_equal(plan(&conf), 100);
        conf.sequences = 0;
        assert_int_equal(plan(&conf), 100);
}

static void host_gives_no_more_than_a_quarter_of_its_memory(void **state)
{
        struct pool_conf conf = host;

        (void)state;
        conf.machine = 4 * 50 * BLOCK + 5;
        assert_int_equal(plan(&conf), 50);
        conf.machine = 4 * BLOCK - 1;
        refuses(&conf, "one block of 16 positions alone takes 16384 bytes");
}

static void what_is_asked_for_is_what_the_host_gives(void **state)
{
        struct pool_conf conf = host;

        (void)state;
        conf.asked = 7 * BLOCK + 1;
        assert_int_equal(plan(&conf), 7);
        conf.asked = 1000 * GIB;
        assert_int_equal(plan(&conf), 1000 * GIB / BLOCK);
        conf.asked = BLOCK - 1;
        refuses(&conf, "--kv-bytes: one block");
        conf.asked = UINT64_MAX;
        assert_int_equal(plan(&conf), UINT32_MAX / 2);
}

static void pool_is_what_the_rest_leaves_of_a_backends_memory(void **state)
{
        struct pool_conf conf = gpu;

        (void)state;
        assert_int_equal(plan(&conf), 125);
        conf.machine = 0; /* is not asked */
        assert_int_equal(plan(&conf), 125);
        conf.scratch += 1;
        assert_int_equal(plan(&conf), 124);
        conf.weights -= 100 * MIB;
        conf.activations += 100 * MIB;
        assert_int_equal(plan(&conf), 124);
}

static void pool_is_no_larger_than_all_sequences_need(void **state)
{
        struct pool_conf conf = gpu;

        (void)state;
        conf.left = 1000 * GIB;
        assert_int_equal(plan(&conf), 6400);
        conf.asked = 500 * GIB;
        assert_int_equal(plan(&conf), 500 * GIB / (4 * MIB));
}

static void a_sixteenth_stays_free_and_a_gib_at_most(void **state)
{
        (void)state;
        assert_true(pool_spare(0) == 0);
        assert_true(pool_spare(1600 * MIB) == 100 * MIB);
        assert_true(pool_spare(16 * GIB - 16) == GIB - 1);
        assert_true(pool_spare(16 * GIB) == GIB);
        assert_true(pool_spare(139 * GIB) == GIB);
}

static void what_does_not_fit_a_backend_is_refused_with_the_numbers(void **state)
{
        struct pool_conf conf = gpu;

        (void)state;
        conf.weights += 496 * MIB;
        assert_int_equal(plan(&conf), 1);
        conf.weights += 1;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        refuses(&conf, "do not fit backend gpu: of 1600.0 MiB that are left there, weights take "
                       "1396.0, activations 70.0, scratch 30.0, and 100.0 stay free");
        conf.weights = UINT64_MAX;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        conf.weights = conf.activations = conf.scratch = UINT64_MAX / 2;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        conf.left = 0;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
}

static void what_is_asked_for_must_fit_a_backend(void **state)
{
        struct pool_conf conf = gpu;

        (void)state;
        conf.asked = 500 * MIB;
        assert_int_equal(plan(&conf), 125);
        conf.asked = 8 * MIB;
        assert_int_equal(plan(&conf), 2);
        conf.asked = 500 * MIB + 1;
        refuses(&conf, "--kv-bytes: 500.0 MiB do not fit backend gpu: of 1600.0 MiB");
        conf.asked = 4 * MIB - 1;
        refuses(&conf, "--kv-bytes: one block");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(host_gives_a_quarter_of_the_sequences_their_full_length),
                cmocka_unit_test(host_gives_no_more_than_a_quarter_of_its_memory),
                cmocka_unit_test(what_is_asked_for_is_what_the_host_gives),
                cmocka_unit_test(pool_is_what_the_rest_leaves_of_a_backends_memory),
                cmocka_unit_test(pool_is_no_larger_than_all_sequences_need),
                cmocka_unit_test(a_sixteenth_stays_free_and_a_gib_at_most),
                cmocka_unit_test(what_does_not_fit_a_backend_is_refused_with_the_numbers),
                cmocka_unit_test(what_is_asked_for_must_fit_a_backend),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
