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

#include "daemon/model/kv-size.h"

#define KIB   ((uint64_t)1 << 10)
#define MIB   ((uint64_t)1 << 20)
#define GIB   ((uint64_t)1 << 30)
#define BLOCK (16 * KIB)

static char why[512];

/* 64 sequences of 100 blocks each, on a machine of 16 GiB. */
static const struct kv_size_conf host = {
        .blocks_per_sequence = 100,
        .sequences = 64,
        .host = { .block = BLOCK, .available = 16 * GIB },
};

/* ... and a GPU of 1600 MiB: 100 stay reserved, 1000 are taken, so 500 are for the pool. */
static const struct kv_size_conf gpu = {
        .blocks_per_sequence = 100,
        .sequences = 64,
        .host = { .available = 16 * GIB },
        .backend = "gpu",
        .own = { .block = 4 * MIB,
                 .available = 1600 * MIB,
                 .weights = 900 * MIB,
                 .activations = 70 * MIB,
                 .scratch = 30 * MIB },
};

/*
 * ... and beside it a machine of 8000 MiB, with a third of the layers, and 2000 MiB of other
 * memory.
 */
static struct kv_size_conf both(void)
{
        struct kv_size_conf conf = gpu;

        conf.host = (struct kv_size_memory){ .block = 2 * MIB,
                                             .available = 8000 * MIB,
                                             .weights = 1900 * MIB,
                                             .activations = 100 * MIB };
        return conf;
}

static uint32_t plan(const struct kv_size_conf *conf)
{
        struct kv_size size;
        int r;

        why[0] = '\0';
        r = kv_size_plan(conf, &size, why, sizeof(why));
        if (r)
                fail_msg("%d: %s", r, why);
        assert_int_equal(size.windows, 0);
        return size.blocks;
}

static void refuses(const struct kv_size_conf *conf, const char *words)
{
        struct kv_size size;

        why[0] = '\0';
        assert_int_equal(kv_size_plan(conf, &size, why, sizeof(why)), -EINVAL);
        if (!strstr(why, words) || strchr(why, '\n'))
                fail_msg("%s", why);
}

static void the_default_pool_holds_a_quarter_of_the_sequences_at_full_length(void **state)
{
        struct kv_size_conf conf = host;

        (void)state;
        assert_int_equal(plan(&conf), 1600);
        conf.sequences = 3;
        assert_int_equal(plan(&conf), 100);
        conf.sequences = 0;
        assert_int_equal(plan(&conf), 100);
}

static void the_default_pool_takes_at_most_a_quarter_of_host_memory(void **state)
{
        struct kv_size_conf conf = host;

        (void)state;
        conf.host.available = 4 * 50 * BLOCK + 5;
        assert_int_equal(plan(&conf), 50);
        conf.host.available = 4 * BLOCK - 1;
        refuses(&conf, "one block of 16 positions takes 16384 bytes");
}

static void kv_bytes_sets_the_size_of_the_pool_in_host_memory(void **state)
{
        struct kv_size_conf conf = host;

        (void)state;
        conf.requested = 7 * BLOCK + 1;
        assert_int_equal(plan(&conf), 7);
        conf.requested = 16 * GIB;
        assert_int_equal(plan(&conf), 16 * GIB / BLOCK);
        conf.requested = BLOCK - 1;
        refuses(&conf, "kv_bytes: one block");
        conf.requested = UINT64_MAX;
        conf.host.available = UINT64_MAX;
        assert_int_equal(plan(&conf), UINT32_MAX / 2);
}

static void refuses_a_pool_that_does_not_fit_host_memory(void **state)
{
        struct kv_size_conf conf = host;

        (void)state;
        conf.requested = 16 * GIB + BLOCK;
        refuses(&conf, "kv_bytes: 16384.0 MiB do not fit in memory: of 16384.0 MiB available, "
                       "weights take 0.0 and activations 0.0; 0.0 MiB are missing");
        conf.host.weights = 15 * GIB;
        conf.host.activations = 1000 * MIB;
        conf.requested = 25 * MIB;
        refuses(&conf, "kv_bytes: 25.0 MiB do not fit in memory");
        conf.requested = 24 * MIB;
        assert_int_equal(plan(&conf), 24 * MIB / BLOCK);
        conf.requested = 0;
        assert_int_equal(plan(&conf), 24 * MIB / BLOCK); /* less than a quarter */
        conf.host.activations = GIB;
        refuses(&conf,
                "the model and a block of KV do not fit in memory: of 16384.0 MiB available, "
                "weights take 15360.0 and activations 1024.0; ");
        conf.host.weights = UINT64_MAX;
        refuses(&conf, "the model and a block of KV do not fit in memory");
}

static void on_a_gpu_the_pool_takes_the_memory_that_is_left(void **state)
{
        struct kv_size_conf conf = gpu;

        (void)state;
        assert_int_equal(plan(&conf), 125);
        conf.host.available = 0; /* is not asked */
        assert_int_equal(plan(&conf), 125);
        conf.own.scratch += 1;
        assert_int_equal(plan(&conf), 124);
        conf.own.weights -= 100 * MIB;
        conf.own.activations += 100 * MIB;
        assert_int_equal(plan(&conf), 124);
}

static void on_a_gpu_the_pool_is_at_most_all_sequences_at_full_length(void **state)
{
        struct kv_size_conf conf = gpu;

        (void)state;
        conf.own.available = 1000 * GIB;
        assert_int_equal(plan(&conf), 6400);
        conf.requested = 500 * GIB;
        assert_int_equal(plan(&conf), 500 * GIB / (4 * MIB));
}

static void a_sixteenth_of_gpu_memory_up_to_one_gib_stays_free(void **state)
{
        (void)state;
        assert_true(kv_size_reserve(0) == 0);
        assert_true(kv_size_reserve(1600 * MIB) == 100 * MIB);
        assert_true(kv_size_reserve(16 * GIB - 16) == GIB - 1);
        assert_true(kv_size_reserve(16 * GIB) == GIB);
        assert_true(kv_size_reserve(139 * GIB) == GIB);
}

static void refuses_a_model_that_does_not_fit_gpu_memory_with_the_numbers(void **state)
{
        struct kv_size_conf conf = gpu;

        (void)state;
        conf.own.weights += 496 * MIB;
        assert_int_equal(plan(&conf), 1);
        conf.own.weights += 1;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        refuses(&conf,
                "do not fit backend gpu: of 1600.0 MiB that are free there, weights take "
                "1396.0, activations 70.0, scratch 30.0, and 100.0 stay reserved; 0.0 MiB are "
                "missing");
        conf.own.weights += 20 * MIB;
        refuses(&conf, "and 100.0 stay reserved; 20.0 MiB are missing");
        conf.own.weights = UINT64_MAX;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        conf.own.weights = conf.own.activations = conf.own.scratch = UINT64_MAX / 2;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
        conf.own.available = 0;
        refuses(&conf, "the model and a block of KV do not fit backend gpu: of ");
}

static void refuses_kv_bytes_that_do_not_fit_gpu_memory(void **state)
{
        struct kv_size_conf conf = gpu;

        (void)state;
        conf.requested = 500 * MIB;
        assert_int_equal(plan(&conf), 125);
        conf.requested = 8 * MIB;
        assert_int_equal(plan(&conf), 2);
        conf.requested = 504 * MIB;
        refuses(&conf, "kv_bytes: 504.0 MiB do not fit backend gpu: of 1600.0 MiB");
        refuses(&conf, "; 4.0 MiB are missing");
        conf.requested = 4 * MIB - 1;
        refuses(&conf, "kv_bytes: one block");
}

/* ---- the swap ---- */

/* Memory of drafts is not there for the pool. */
static void drafts_count_in_the_memory_of_the_host(void **state)
{
        struct kv_size_conf conf = host;

        (void)state;
        conf.requested = 15 * GIB;
        assert_int_equal(plan(&conf), 15 * GIB / BLOCK);
        conf.drafts = GIB;
        assert_int_equal(plan(&conf), 15 * GIB / BLOCK);
        conf.drafts = GIB + MIB;
        refuses(&conf,
                "weights take 0.0 and activations 0.0 and drafts 1025.0; 1.0 MiB are missing");
}

static uint32_t plan_swap(const struct kv_size_conf *conf)
{
        uint32_t blocks;

        why[0] = '\0';
        if (kv_size_swap(conf, &blocks, why, sizeof(why)))
                fail_msg("%s", why);
        return blocks;
}

static void refuses_swap(const struct kv_size_conf *conf, const char *words)
{
        uint32_t blocks;

        why[0] = '\0';
        assert_int_equal(kv_size_swap(conf, &blocks, why, sizeof(why)), -EINVAL);
        if (!strstr(why, words) || strchr(why, '\n'))
                fail_msg("%s", why);
}

static void the_swap_has_as_many_whole_blocks_as_swap_bytes_hold(void **state)
{
        struct kv_size_conf conf = gpu;

        (void)state;
        assert_int_equal(plan_swap(&conf), 0);
        conf.swap = 12 * MIB - 1;
        assert_int_equal(plan_swap(&conf), 2);
        conf.swap = 16 * GIB + 4 * MIB - 1; /* rounded down it fits */
        assert_int_equal(plan_swap(&conf), 4096);
        assert_int_equal(plan(&conf), 125); /* of the GPU's memory nothing is taken */
        conf.swap = 4 * MIB - 1;
        refuses_swap(&conf, "swap_bytes is 4194303; one block of 16 positions takes 4194304 bytes");
        conf.swap = conf.host.available = UINT64_MAX;
        assert_int_equal(plan_swap(&conf), UINT32_MAX / 2);
}

static void refuses_a_swap_that_does_not_fit_host_memory(void **state)
{
        struct kv_size_conf conf = gpu;

        (void)state;
        conf.swap = 16 * GIB + 4 * MIB;
        refuses_swap(&conf, "swap_bytes: 16388.0 MiB do not fit in memory: of 16384.0 MiB "
                            "available, weights take 0.0 and activations 0.0 and the swap "
                            "16388.0; 4.0 MiB are missing");
        conf = both();
        conf.swap = 6001 * MIB; /* 1000 blocks, in both memories */
        assert_int_equal(plan_swap(&conf), 1000);
        conf.swap = 6006 * MIB;
        refuses_swap(&conf, "weights take 1900.0 and activations 100.0 and the swap 6006.0; 6.0 ");
}

/* The host's part of the pool gets what the swap leaves. */
static void the_swap_takes_host_memory_before_the_pool(void **state)
{
        struct kv_size_conf conf = both();

        (void)state;
        conf.swap = 5940 * MIB;
        assert_int_equal(plan(&conf), 30);
        conf.requested = 6 * 30 * MIB;
        assert_int_equal(plan(&conf), 30);
        conf.requested = 6 * 31 * MIB;
        refuses(&conf,
                "kv_bytes: 186.0 MiB do not fit in memory: of 8000.0 MiB available, weights "
                "take 1900.0 and activations 100.0 and the swap 5940.0; 2.0 MiB are missing");
}

/* ---- layers in both ---- */

static void with_layers_on_both_the_smaller_memory_limits_the_pool(void **state)
{
        struct kv_size_conf conf = both();

        (void)state;
        assert_int_equal(plan(&conf), 125); /* of the GPU */
        conf.host.available = 800 * MIB;    /* a quarter of it */
        conf.host.weights = 300 * MIB;
        assert_int_equal(plan(&conf), 100);
        conf.host.weights = 560 * MIB; /* the rest of it */
        assert_int_equal(plan(&conf), 70);
        conf.own.weights += 300 * MIB;
        assert_int_equal(plan(&conf), 50);
        conf = both();
        /* all sequences at full length, if the machine had the memory */
        conf.own.available = 1000 * GIB;
        assert_int_equal(plan(&conf), 1000);
        conf.host.available = 1000 * GIB;
        assert_int_equal(plan(&conf), 6400);
}

static void refuses_kv_bytes_that_do_not_fit_gpu_or_host_memory(void **state)
{
        struct kv_size_conf conf = both();

        (void)state;
        conf.requested = 6 * 125 * MIB + 5;
        assert_int_equal(plan(&conf), 125);
        conf.requested = 6 * 126 * MIB;
        refuses(&conf, "kv_bytes: 756.0 MiB do not fit backend gpu: of 1600.0 MiB that are free");
        refuses(&conf, "; 4.0 MiB are missing");
        conf.own.available = 1000 * GIB;
        assert_int_equal(plan(&conf), 126);
        /* all that is left of the machine: an explicit --kv-bytes may have it */
        conf.requested = 6 * 3000 * MIB;
        assert_int_equal(plan(&conf), 3000);
        conf.requested = 6 * 3001 * MIB;
        refuses(&conf,
                "kv_bytes: 18006.0 MiB do not fit in memory: of 8000.0 MiB available, weights "
                "take 1900.0 and activations 100.0; 2.0 MiB are missing");
        conf.requested = 6 * MIB - 1;
        refuses(&conf, "one block of 16 positions takes 6291456 bytes");
}

static void names_the_memory_that_is_too_small(void **state)
{
        struct kv_size_conf conf = both();

        (void)state;
        conf.host.weights = 7899 * MIB;
        refuses(&conf,
                "the layers planned for it and a block of KV do not fit in memory: "
                "of 8000.0 MiB available, weights take 7899.0 and activations 100.0; 1.0 MiB are "
                "missing");
        conf.own.weights = 1400 * MIB;
        refuses(&conf, "the layers planned for it and a block of KV do not fit backend gpu");
}

static void layers_fit_a_gpu_only_with_room_for_a_usable_pool(void **state)
{
        struct kv_size_conf conf = both();

        (void)state;
        assert_int_equal(kv_size_fits_backend(&conf, why, sizeof(why)), 0);
        conf.own.weights += 100 * MIB;
        assert_int_equal(kv_size_fits_backend(&conf, why, sizeof(why)), 0);
        conf.own.weights += 1;
        assert_int_equal(kv_size_fits_backend(&conf, why, sizeof(why)), -EINVAL);
        assert_non_null(strstr(why, "a sequence's blocks of KV do not fit backend gpu"));
        assert_int_equal(plan(&conf), 99); /* it could be done all the same */
        conf.requested = 6 * 99 * MIB;     /* an explicit --kv-bytes of less is granted */
        assert_int_equal(kv_size_fits_backend(&conf, why, sizeof(why)), 0);
        conf.requested = 6 * 100 * MIB;
        assert_int_equal(kv_size_fits_backend(&conf, why, sizeof(why)), -EINVAL);
        conf.host.available = 0; /* is not asked */
        conf.requested = 0;
        conf.own.available = 6 * GIB;
        conf.blocks_per_sequence = 100000; /* 512 are enough */
        assert_int_equal(kv_size_fits_backend(&conf, why, sizeof(why)), 0);
        conf.own.weights = 6 * GIB / 16 * 15 - 100 * MIB - 511 * 4 * MIB;
        assert_int_equal(kv_size_fits_backend(&conf, why, sizeof(why)), -EINVAL);
}

/* ---- window pages ---- */

static struct kv_size divided(const struct kv_size_conf *conf)
{
        struct kv_size size;

        why[0] = '\0';
        if (kv_size_plan(conf, &size, why, sizeof(why)))
                fail_msg("%s", why);
        return size;
}

/* One layer of six has no window. */
static struct kv_size_conf windowed(void)
{
        struct kv_size_conf conf = host;

        conf.host.block = 2 * KIB;
        conf.host.window = 10 * KIB;
        conf.sequences = 4;
        conf.blocks_per_sequence = 2048;
        conf.windows_least = 4 * 35;
        return conf;
}

static void four_blocks_have_a_window_page(void **state)
{
        struct kv_size_conf conf = windowed();
        struct kv_size size;

        (void)state;
        conf.requested = 1000 * 12 * KIB;
        size = divided(&conf);
        /* 2667 * 2 + 666 * 10 = 11994 KiB of 12000 */
        assert_int_equal(size.blocks, 2667);
        assert_int_equal(size.windows, 666);
}

static void there_are_as_many_window_pages_as_some_sequences_need(void **state)
{
        struct kv_size_conf conf = windowed();
        struct kv_size size;

        (void)state;
        conf.requested = 1000 * 12 * KIB;
        conf.windows_least = 900;
        size = divided(&conf);
        assert_int_equal(size.blocks, 1500);
        assert_int_equal(size.windows, 900);
        conf.windows_least = 1000; /* nothing would be gained */
        size = divided(&conf);
        assert_int_equal(size.blocks, 1000);
        assert_int_equal(size.windows, 0);
}

static void window_pages_take_what_all_sequences_leave(void **state)
{
        struct kv_size_conf conf = windowed();
        struct kv_size size;

        (void)state;
        conf.host.available = 4 * 6000 * (12 * KIB);
        conf.sequences = 4; /* a quarter of them has 2048 blocks */
        size = divided(&conf);
        /* The memory of 2048 blocks with window pages: 24576 KiB. */
        assert_int_equal(size.blocks, 5463);
        assert_int_equal(size.windows, 1365);
        conf.sequences = 16; /* 6000 * 12 = 72000 KiB; of 32768 blocks 16000 fit */
        size = divided(&conf);
        assert_int_equal(size.blocks, 16000);
        assert_int_equal(size.windows, 4000);
}

static void a_model_of_windows_only_has_blocks_without_bytes(void **state)
{
        struct kv_size_conf conf = windowed();
        struct kv_size size;

        (void)state;
        conf.host.block = 0;
        conf.requested = 1000 * 10 * KIB;
        size = divided(&conf);
        assert_int_equal(size.windows, 1000);
        assert_int_equal(size.blocks, 4003); /* 4003 / 4 = 1000 */
        conf.requested = 8000 * 10 * KIB;    /* hardly less than all sequences need */
        size = divided(&conf);
        assert_int_equal(size.blocks, 8000);
        assert_int_equal(size.windows, 0);
        conf.sequences = 8;
        size = divided(&conf);
        assert_int_equal(size.blocks, 16384);
        assert_int_equal(size.windows, 8000);
}

static void both_memories_have_space_for_their_part_of_blocks_and_windows(void **state)
{
        struct kv_size_conf conf = both();
        struct kv_size size;

        (void)state;
        conf.own.block = MIB;
        conf.own.window = 3 * MIB; /* 500 MiB */
        conf.host.block = 0;
        conf.host.window = 2 * MIB; /* 250 MiB of these 125 wholes */
        conf.windows_least = 20;
        size = divided(&conf);
        assert_true(size.blocks * 1 + size.windows * 3 <= 500 && size.windows <= 125);
        assert_int_equal(size.blocks, 287);
        assert_int_equal(size.windows, 71);
}

static void windows_do_not_change_a_pool_without_them(void **state)
{
        struct kv_size_conf conf = host;

        (void)state;
        conf.windows_least = 140;
        assert_int_equal(plan(&conf), 1600);
        conf.host.available = 4 * 50 * BLOCK + 5;
        assert_int_equal(plan(&conf), 50);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_default_pool_holds_a_quarter_of_the_sequences_at_full_length),
                cmocka_unit_test(the_default_pool_takes_at_most_a_quarter_of_host_memory),
                cmocka_unit_test(kv_bytes_sets_the_size_of_the_pool_in_host_memory),
                cmocka_unit_test(refuses_a_pool_that_does_not_fit_host_memory),
                cmocka_unit_test(on_a_gpu_the_pool_takes_the_memory_that_is_left),
                cmocka_unit_test(on_a_gpu_the_pool_is_at_most_all_sequences_at_full_length),
                cmocka_unit_test(a_sixteenth_of_gpu_memory_up_to_one_gib_stays_free),
                cmocka_unit_test(refuses_a_model_that_does_not_fit_gpu_memory_with_the_numbers),
                cmocka_unit_test(refuses_kv_bytes_that_do_not_fit_gpu_memory),
                cmocka_unit_test(the_swap_has_as_many_whole_blocks_as_swap_bytes_hold),
                cmocka_unit_test(refuses_a_swap_that_does_not_fit_host_memory),
                cmocka_unit_test(the_swap_takes_host_memory_before_the_pool),
                cmocka_unit_test(with_layers_on_both_the_smaller_memory_limits_the_pool),
                cmocka_unit_test(refuses_kv_bytes_that_do_not_fit_gpu_or_host_memory),
                cmocka_unit_test(names_the_memory_that_is_too_small),
                cmocka_unit_test(layers_fit_a_gpu_only_with_room_for_a_usable_pool),
                cmocka_unit_test(four_blocks_have_a_window_page),
                cmocka_unit_test(there_are_as_many_window_pages_as_some_sequences_need),
                cmocka_unit_test(window_pages_take_what_all_sequences_leave),
                cmocka_unit_test(a_model_of_windows_only_has_blocks_without_bytes),
                cmocka_unit_test(both_memories_have_space_for_their_part_of_blocks_and_windows),
                cmocka_unit_test(windows_do_not_change_a_pool_without_them),
                cmocka_unit_test(drafts_count_in_the_memory_of_the_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
