/*
 * A daemon whose model lies in a GPU's memory.  The pool gets the memory that the model leaves, and
 * a model that does not fit is refused before a weight is read.  The GPU is the emulated one, and
 * has as much memory as SMV_DEVICE_MEMORY says.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/honest-client.h"

#define MIB (UINT64_C(1) << 20)

struct sums {
        double weights, activations, kv, scratch, left;
        unsigned blocks;
        unsigned long long block;
};

static void set_device_memory(uint64_t bytes)
{
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64, bytes);
        setenv("SMV_DEVICE_MEMORY", text, 1);
}

static struct run_result check(const struct daemon_fixture *fixture, const char *type,
                               const char *kv_bytes)
{
        return RUN(fixture, NULL, env_path("SAMOVARD"), "--model", env_path("TOY_MODEL"), "--check",
                   "--deterministic", "--backend", "cuda", "--backend-library",
                   env_path("SMV_TEST_CUDA_LIBRARY"), "--gpu-layers", "all", "--max-seqs", "40",
                   "--kv", type, "--kv-bytes", kv_bytes);
}

/* The daemon's plan of its memory, printed before it takes any. */
static struct sums plan_of(const struct daemon_fixture *fixture, const char *type,
                           const char *kv_bytes)
{
        struct run_result ran = check(fixture, type, kv_bytes);
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
        run_result_free(&ran);
        return sums;
}

static struct sums plan(const struct daemon_fixture *fixture, const char *kv_bytes)
{
        return plan_of(fixture, "f16", kv_bytes);
}

static void refuses_of(const struct daemon_fixture *fixture, const char *type, const char *kv_bytes,
                       const char *words)
{
        struct run_result ran = check(fixture, type, kv_bytes);

        assert_int_equal(ran.status, 1);
        if (!strstr(ran.err, words) || strchr(ran.err, '\n') != ran.err + strlen(ran.err) - 1)
                fail_msg("%s", ran.err);
        assert_string_equal(ran.out, ""); /* no plan was made */
        run_result_free(&ran);
}

static void refuses(const struct daemon_fixture *fixture, const char *kv_bytes, const char *words)
{
        refuses_of(fixture, "f16", kv_bytes, words);
}

static void the_pool_gets_the_gpu_memory_that_the_model_leaves(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct sums small, large, all;
        double more;

        set_device_memory(5 * MIB);
        small = plan(fixture, "0");
        set_device_memory(9 * MIB);
        large = plan(fixture, "0");
        more = ((double)large.blocks - small.blocks) * (double)large.block;
        if (more < 3.7 * MIB || more > 3.8 * MIB) /* 4, less a sixteenth that stays free */
                fail_msg("%u blocks, then %u of %llu bytes", small.blocks, large.blocks,
                         large.block);
        assert_true(large.weights > 0 && large.activations > 0 && large.scratch > 0);
        assert_true(large.left <= 9 && large.left > 8);
        more = large.left - large.weights - large.activations - large.scratch - large.left / 16;
        if (large.kv > more + 0.3 || large.kv < more - 0.3)
                fail_msg("%.1f MiB of KV, and room for %.1f", large.kv, more);
        set_device_memory(UINT64_C(1) << 40);
        all = plan(fixture, "0");
        assert_int_equal(all.blocks % 40, 0); /* all sequences at full length */
        assert_true(all.blocks > large.blocks);
}

static void refuses_a_model_larger_than_the_gpu_memory(void **state)
{
        struct daemon_fixture *fixture = *state;

        set_device_memory(2 * MIB);
        refuses(fixture, "0", "the model and a block of KV do not fit backend cuda: of 1.");
        refuses(fixture, "1M", "the model and a block of KV do not fit");
}

static void makes_a_pool_of_the_given_size_or_refuses_it(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct sums sums;

        set_device_memory(9 * MIB);
        sums = plan(fixture, "4M");
        assert_int_equal(sums.blocks, 4 * MIB / sums.block);
        refuses(fixture, "60M", "kv_bytes: 60.0 MiB do not fit backend cuda: of 8.");
}

static void the_block_size_follows_the_kv_type(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct sums halves, integers;

        set_device_memory(9 * MIB);
        halves = plan(fixture, "4M");
        integers = plan_of(fixture, "int8", "4M");
        assert_int_equal(plan_of(fixture, "bf16", "4M").block, halves.block);
        assert_int_equal(plan_of(fixture, "fp8", "4M").block, integers.block);
        /* 16 positions of a head: 32 bytes for each number, or 16, and 64 for the scales */
        assert_true(integers.block > halves.block / 2 && integers.block < halves.block);
        assert_int_equal((integers.block - halves.block / 2) % 128, 0);
        assert_int_equal(integers.blocks, 4 * MIB / integers.block);
        refuses_of(fixture, "f32", "4M",
                   "kv is f32; backend cuda has no keys and values of this type");
}

static struct run_result check_swap(const struct daemon_fixture *fixture, const char *swap_bytes)
{
        return RUN(fixture, NULL, env_path("SAMOVARD"), "--model", env_path("TOY_MODEL"), "--check",
                   "--backend", "cuda", "--backend-library", env_path("SMV_TEST_CUDA_LIBRARY"),
                   "--kv-bytes", "1M", "--swap-bytes", swap_bytes);
}

/* It takes nothing of the GPU's memory, which is the same as without a swap. */
static void the_swap_is_in_the_memory_of_the_host(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        set_device_memory(5 * MIB);
        ran = check_swap(fixture, "64M");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "; swap on the host 64.0 MiB (32768 blocks); "));
        assert_non_null(strstr(ran.err, " swap blocks=32768 copy_us="));
        run_result_free(&ran);
        ran = check_swap(fixture, "0");
        assert_int_equal(ran.status, 0);
        assert_null(strstr(ran.out, "swap"));
        run_result_free(&ran);
}

static void refuses_a_swap_of_no_block_or_more_than_the_host_has(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        set_device_memory(5 * MIB);
        ran = check_swap(fixture, "2047");
        assert_int_equal(ran.status, 1);
        assert_string_equal(ran.err, "samovard: swap_bytes is 2047; one block of 16 positions "
                                     "takes 2048 bytes\n");
        run_result_free(&ran);
        ran = check_swap(fixture, "4096G");
        assert_int_equal(ran.status, 1);
        if (!strstr(ran.err, "samovard: swap_bytes: 4194304.0 MiB do not fit in memory: of "))
                fail_msg("%s", ran.err);
        run_result_free(&ran);
}

/* Without a GPU the pool is in the host's memory already. */
static void auto_refuses_a_swap_if_it_can_only_use_the_cpu(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--model",
                                    env_path("TOY_MODEL"), "--check", "--backend", "auto",
                                    "--backend-library", "/nowhere", "--swap-bytes", "1M");

        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "samovard: swap_bytes is for pools on a GPU, but backend "
                                        "auto could use only the cpu; "));
        run_result_free(&ran);
}

/* The daemon can take everything that was planned, and what a first step takes besides. */
static void serves_with_the_gpu_memory_full(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct sums sums;
        struct raw_client *client;

        set_device_memory(5 * MIB);
        sums = plan(fixture, "0");
        START_DAEMON(fixture, "--gpu-layers", "all", "--max-seqs", "40", "--threads", "1");
        client = raw_client_greet(fixture);
        assert_int_equal(raw_client_status(client, "blocks.total"), sums.blocks);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_pool_gets_the_gpu_memory_that_the_model_leaves),
                DAEMON_TEST(refuses_a_model_larger_than_the_gpu_memory),
                DAEMON_TEST(makes_a_pool_of_the_given_size_or_refuses_it),
                DAEMON_TEST(the_block_size_follows_the_kv_type),
                DAEMON_TEST(the_swap_is_in_the_memory_of_the_host),
                DAEMON_TEST(refuses_a_swap_of_no_block_or_more_than_the_host_has),
                DAEMON_TEST(auto_refuses_a_swap_if_it_can_only_use_the_cpu),
                DAEMON_TEST(serves_with_the_gpu_memory_full),
        };

        unsetenv("SMV_DEVICE_SEED"); /* it is mentioned on stderr */
        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "SMV_TEST_CUDA_LIBRARY", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
