/*
 * A daemon whose model lies in a GPU's memory.  The pool gets the memory that the model leaves, and
 * a model that does not fit is refused before a weight is read.  The GPU is the emulated one, and
 * has as much memory as SMV_DEVICE_MEMORY says.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/honest.h"

#define MIB (UINT64_C(1) << 20)

struct sums {
        double weights, activations, kv, scratch, left;
        unsigned blocks;
        unsigned long long block;
};

static void give_device(uint64_t bytes)
{
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64, bytes);
        setenv("SMV_DEVICE_MEMORY", text, 1);
}

static struct ran check(const struct house *house, const char *type, const char *kv_bytes)
{
        return RUN(house, NULL, given("SAMOVARD"), "--model", given("BABBLE"), "--check",
                   "--deterministic", "--backend", "cuda", "--backend-library",
                   given("SMV_TEST_CUDA_LIBRARY"), "--gpu-layers", "all", "--max-seqs", "40",
                   "--kv", type, "--kv-bytes", kv_bytes);
}

/* The daemon's plan of its memory, printed before it takes any. */
static struct sums plan_of(const struct house *house, const char *type, const char *kv_bytes)
{
        struct ran ran = check(house, type, kv_bytes);
        const char *line = strstr(ran.out, "weights ");
        struct sums sums;

        if (ran.status || !line)
                fail_msg("%d: %s%s", ran.status, ran.out, ran.err);
        assert_int_equal(
                sscanf(line,
                       "weights %lf MiB (%*f MiB more while they are read), activations %lf "
                       "MiB, KV %lf MiB (%u blocks of %llu bytes, %*f full sequences), "
                       "scratch %lf MiB, of %lf MiB that the backend has left;",
                       &sums.weights, &sums.activations, &sums.kv, &sums.blocks, &sums.block,
                       &sums.scratch, &sums.left),
                7);
        ran_free(&ran);
        return sums;
}

static struct sums plan(const struct house *house, const char *kv_bytes)
{
        return plan_of(house, "f16", kv_bytes);
}

static void refuses_of(const struct house *house, const char *type, const char *kv_bytes,
                       const char *words)
{
        struct ran ran = check(house, type, kv_bytes);

        assert_int_equal(ran.status, 1);
        if (!strstr(ran.err, words) || strchr(ran.err, '\n') != ran.err + strlen(ran.err) - 1)
                fail_msg("%s", ran.err);
        assert_string_equal(ran.out, ""); /* no plan was made */
        ran_free(&ran);
}

static void refuses(const struct house *house, const char *kv_bytes, const char *words)
{
        refuses_of(house, "f16", kv_bytes, words);
}

static void pool_follows_the_memory_of_the_gpu(void **state)
{
        struct house *house = *state;
        struct sums small, large, all;
        double more;

        give_device(5 * MIB);
        small = plan(house, "0");
        give_device(9 * MIB);
        large = plan(house, "0");
        more = ((double)large.blocks - small.blocks) * (double)large.block;
        if (more < 3.7 * MIB || more > 3.8 * MIB) /* 4, less a sixteenth that stays free */
                fail_msg("%u blocks, then %u of %llu bytes", small.blocks, large.blocks,
                         large.block);
        assert_true(large.weights > 0 && large.activations > 0 && large.scratch > 0);
        assert_true(large.left <= 9 && large.left > 8);
        more = large.left - large.weights - large.activations - large.scratch - large.left / 16;
        if (large.kv > more + 0.3 || large.kv < more - 0.3)
                fail_msg("%.1f MiB of KV, and room for %.1f", large.kv, more);
        give_device(UINT64_C(1) << 40);
        all = plan(house, "0");
        assert_int_equal(all.blocks % 40, 0); /* all sequences at full length */
        assert_true(all.blocks > large.blocks);
}

static void model_that_does_not_fit_is_refused_in_a_line(void **state)
{
        struct house *house = *state;

        give_device(2 * MIB);
        refuses(house, "0", "the model and a block of KV do not fit backend cuda: of 1.");
        refuses(house, "1M", "the model and a block of KV do not fit");
}

static void pool_that_was_asked_for_is_made_or_refused(void **state)
{
        struct house *house = *state;
        struct sums sums;

        give_device(9 * MIB);
        sums = plan(house, "4M");
        assert_int_equal(sums.blocks, 4 * MIB / sums.block);
        refuses(house, "60M", "--kv-bytes: 60.0 MiB do not fit backend cuda: of 8.");
}

static void blocks_are_counted_as_their_type_has_them(void **state)
{
        struct house *house = *state;
        struct sums halves, integers;

        give_device(9 * MIB);
        halves = plan(house, "4M");
        integers = plan_of(house, "int8", "4M");
        assert_int_equal(plan_of(house, "bf16", "4M").block, halves.block);
        assert_int_equal(plan_of(house, "fp8", "4M").block, integers.block);
        /* 16 positions of a head: 32 bytes for each number, or 16, and 64 for the scales */
        assert_true(integers.block > halves.block / 2 && integers.block < halves.block);
        assert_int_equal((integers.block - halves.block / 2) % 128, 0);
        assert_int_equal(integers.blocks, 4 * MIB / integers.block);
        refuses_of(house, "f32", "4M", "backend cuda has no keys and values of type f32 (--kv)");
}

/* The daemon can take everything that was planned, and what a first step takes besides. */
static void full_gpu_serves(void **state)
{
        struct house *house = *state;
        struct sums sums;
        struct talk *talk;

        give_device(5 * MIB);
        sums = plan(house, "0");
        HOUSE(house, "--gpu-layers", "all", "--max-seqs", "40", "--threads", "1");
        talk = talk_greet(house);
        assert_int_equal(talk_status(talk, "blocks.total"), sums.blocks);
        talk_close(talk);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(pool_follows_the_memory_of_the_gpu),
                STORY(model_that_does_not_fit_is_refused_in_a_line),
                STORY(pool_that_was_asked_for_is_made_or_refused),
                STORY(blocks_are_counted_as_their_type_has_them),
                STORY(full_gpu_serves),
        };

        unsetenv("SMV_DEVICE_SEED"); /* it is mentioned on stderr */
        need((const char *const[]){ "SAMOVARD", "BABBLE", "SMV_TEST_CUDA_LIBRARY", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
