/*
 * The number of blocks in the pool, by the settings and the available memory.
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
        .blocks_one = 100,
        .sequences = 64,
        .host = { .block = BLOCK, .there = 16 * GIB },
};

/* ... and a GPU of 1600 MiB: 100 stay free, 1000 are taken, so 500 are for the pool. */
static const struct pool_conf gpu = {
        .blocks_one = 100,
        .sequences = 64,
        .host = { .there = 16 * GIB },
        .backend = "gpu",
        .own = { .block = 4 * MIB,
                 .there = 1600 * MIB,
                 .weights = 900 * MIB,
                 .activations = 70 * MIB,
                 .scratch = 30 * MIB },
};

/*
 * ... and beside it a machine of 8000 MiB, with a third of the layers, and 2000 MiB of other
 * memory.
 */
static struct pool_conf both(void)
{
        struct pool_conf conf = gpu;

        conf.host = (struct pool_memory){ .block = 2 * MIB,
                                          .there = 8000 * MIB,
                                          .weights = 1900 * MIB,
                                          .activations = 100 * MIB };
        return conf;
}

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
        conf.host.there = 4 * 50 * BLOCK + 5;
        assert_int_equal(plan(&conf), 50);
        conf.host.there = 4 * BLOCK - 1;
        refuses(&conf, "one block of 16 positions alone takes 16384 bytes");
}

static void what_is_asked_for_is_what_the_host_gives(void **state)
{
        struct pool_conf conf = host;

        (void)state;
        conf.asked = 7 * BLOCK + 1;
        assert_int_equal(plan(&conf), 7);
        conf.asked = 16 * GIB;
        assert_int_equal(plan(&conf), 16 * GIB / BLOCK);
        conf.asked = BLOCK - 1;
        refuses(&conf, "--kv-bytes: one block");
        conf.asked = UINT64_MAX;
        conf.host.there = UINT64_MAX;
        assert_int_equal(plan(&conf), UINT32_MAX / 2);
}

static void what_the_host_has_no_memory_for_is_refused(void **state)
{
        struct pool_conf conf = host;

        (void)state;
        conf.asked = 16 * GIB + BLOCK;
        refuses(&conf, "--kv-bytes: 16384.0 MiB do not fit in memory: of 16384.0 MiB for us, "
                       "weights take 0.0 and activations 0.0; 0.0 MiB are missing");
        conf.host.weights = 15 * GIB;
        conf.host.activations = 1000 * MIB;
        conf.asked = 25 * MIB;
        refuses(&conf, "--kv-bytes: 25.0 MiB do not fit in memory");
        conf.asked = 24 * MIB;
        assert_int_equal(plan(&conf), 24 * MIB / BLOCK);
        conf.asked = 0;
        assert_int_equal(plan(&conf), 24 * MIB / BLOCK); /* less than a quarter */
        conf.host.activations = GIB;
        refuses(&conf, "the model and a block of KV do not fit in memory: of 16384.0 MiB for us, "
                       "weights take 15360.0 and activations 1024.0; ");
        conf.host.weights = UINT64_MAX;
        refuses(&conf, "the model and a block of KV do not fit in memory");
}

static void pool_is_what_the_rest_leaves_of_a_backends_memory(void **state)
{
        struct pool_conf conf = gpu;

        (void)state;
        assert_int_equal(plan(&conf), 125);
        conf.host.there = 0; /* is not asked */
        assert_int_equal(plan(&conf), 125);
        conf.own.scratch += 1;
        assert_int_equal(plan(&conf), 124);
        conf.own.weights -= 100 * MIB;
        conf.own.activations += 100 * MIB;
        assert_int_equal(plan(&conf), 124);
}

static void pool_is_no_larger_than_all_sequences_need(void **state)
{
        struct pool_conf conf = gpu;

        (void)state;
        conf.own.there = 1000 * GIB;
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
        conf.own.weights += 496 * MIB;
        assert_int_equal(plan(&conf), 1);
        conf.own.weights += 1;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        refuses(&conf, "do not fit backend gpu: of 1600.0 MiB that are left there, weights take "
                       "1396.0, activations 70.0, scratch 30.0, and 100.0 stay free; 0.0 MiB are "
                       "missing");
        conf.own.weights += 20 * MIB;
        refuses(&conf, "and 100.0 stay free; 20.0 MiB are missing");
        conf.own.weights = UINT64_MAX;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        conf.own.weights = conf.own.activations = conf.own.scratch = UINT64_MAX / 2;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        conf.own.there = 0;
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
        conf.asked = 504 * MIB;
        refuses(&conf, "--kv-bytes: 504.0 MiB do not fit backend gpu: of 1600.0 MiB");
        refuses(&conf, "; 4.0 MiB are missing");
        conf.asked = 4 * MIB - 1;
        refuses(&conf, "--kv-bytes: one block");
}

/* ---- layers in both ---- */

static void layers_in_both_have_as_many_blocks_as_either_has_room_for(void **state)
{
        struct pool_conf conf = both();

        (void)state;
        assert_int_equal(plan(&conf), 125); /* of the GPU */
        conf.host.there = 800 * MIB;        /* a quarter of it */
        conf.host.weights = 300 * MIB;
        assert_int_equal(plan(&conf), 100);
        conf.host.weights = 560 * MIB; /* the rest of it */
        assert_int_equal(plan(&conf), 70);
        conf.own.weights += 300 * MIB;
        assert_int_equal(plan(&conf), 50);
        conf = both();
        /* all sequences at full length, if the machine had the memory */
        conf.own.there = 1000 * GIB;
        assert_int_equal(plan(&conf), 1000);
        conf.host.there = 1000 * GIB;
        assert_int_equal(plan(&conf), 6400);
}

static void what_is_asked_for_is_had_in_both_or_refused(void **state)
{
        struct pool_conf conf = both();

        (void)state;
        conf.asked = 6 * 125 * MIB + 5;
        assert_int_equal(plan(&conf), 125);
        conf.asked = 6 * 126 * MIB;
        refuses(&conf, "--kv-bytes: 756.0 MiB do not fit backend gpu: of 1600.0 MiB that are left");
        refuses(&conf, "; 4.0 MiB are missing");
        conf.own.there = 1000 * GIB;
        assert_int_equal(plan(&conf), 126);
        /* all that is left of the machine: an explicit --kv-bytes may have it */
        conf.asked = 6 * 3000 * MIB;
        assert_int_equal(plan(&conf), 3000);
        conf.asked = 6 * 3001 * MIB;
        refuses(&conf,
                "--kv-bytes: 18006.0 MiB do not fit in memory: of 8000.0 MiB for us, weights "
                "take 1900.0 and activations 100.0; 2.0 MiB are missing");
        conf.asked = 6 * MIB - 1;
        refuses(&conf, "one block of 16 positions alone takes 6291456 bytes");
}

static void which_memory_is_too_small_is_said(void **state)
{
        struct pool_conf conf = both();

        (void)state;
        conf.host.weights = 7899 * MIB;
        refuses(&conf,
                "the layers that are to be there and a block of KV do not fit in memory: "
                "of 8000.0 MiB for us, weights take 7899.0 and activations 100.0; 1.0 MiB are "
                "missing");
        conf.own.weights = 1400 * MIB;
        refuses(&conf, "the layers that are to be there and a block of KV do not fit backend gpu");
}

static void layers_fit_a_backend_with_a_pool_to_work_with(void **state)
{
        struct pool_conf conf = both();

        (void)state;
        assert_int_equal(pool_fits_backend(&conf, why, sizeof(why)), 0);
        conf.own.weights += 100 * MIB;
        assert_int_equal(pool_fits_backend(&conf, why, sizeof(why)), 0);
        conf.own.weights += 1;
        assert_int_equal(pool_fits_backend(&conf, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "a sequence's blocks of KV do not fit backend gpu"));
        assert_int_equal(plan(&conf), 99); /* it could be done all the same */
        conf.asked = 6 * 99 * MIB;         /* an explicit --kv-bytes of less is granted */
        assert_int_equal(pool_fits_backend(&conf, why, sizeof(why)), 0);
        conf.asked = 6 * 100 * MIB;
        assert_int_equal(pool_fits_backend(&conf, why, sizeof(why)), -EINVAL);
        conf.host.there = 0; /* is not asked */
        conf.asked = 0;
        conf.own.there = 6 * GIB;
        conf.blocks_one = 100000; /* 512 are enough */
        assert_int_equal(pool_fits_backend(&conf, why, sizeof(why)), 0);
        conf.own.weights = 6 * GIB / 16 * 15 - 100 * MIB - 511 * 4 * MIB;
        assert_int_equal(pool_fits_backend(&conf, why, sizeof(why)), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(host_gives_a_quarter_of_the_sequences_their_full_length),
                cmocka_unit_test(host_gives_no_more_than_a_quarter_of_its_memory),
                cmocka_unit_test(what_is_asked_for_is_what_the_host_gives),
                cmocka_unit_test(what_the_host_has_no_memory_for_is_refused),
                cmocka_unit_test(pool_is_what_the_rest_leaves_of_a_backends_memory),
                cmocka_unit_test(pool_is_no_larger_than_all_sequences_need),
                cmocka_unit_test(a_sixteenth_stays_free_and_a_gib_at_most),
                cmocka_unit_test(what_does_not_fit_a_backend_is_refused_with_the_numbers),
                cmocka_unit_test(what_is_asked_for_must_fit_a_backend),
                cmocka_unit_test(layers_in_both_have_as_many_blocks_as_either_has_room_for),
                cmocka_unit_test(what_is_asked_for_is_had_in_both_or_refused),
                cmocka_unit_test(which_memory_is_too_small_is_said),
                cmocka_unit_test(layers_fit_a_backend_with_a_pool_to_work_with),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
