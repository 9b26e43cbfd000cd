/*
 * The swap: blocks that the pool of a GPU has no space for wait in the host's memory.  Streams that
 * were preempted go on from there, and prompts that others evicted are found there.  The GPU is the
 * emulated one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define STREAMS 6u
#define TOKENS  112u
#define LESSONS 20u /* so many answers, and the forecast counts on their length */
/* Of the pool.  The streams need 48. */
#define BLOCKS 20u

/* A block of the toy models has K and V of 16 positions, of a head of 32 halves in each layer. */
static uint64_t block_bytes(void)
{
        return (getenv("SMV_TEST_GPU_LAYERS") ? 3 : 1) * 2 * 16 * 32 * 2;
}

static void start(struct daemon_fixture *fixture, uint32_t swap_blocks, const char *depth)
{
        char pool[32], swap[32];

        snprintf(pool, sizeof(pool), "%" PRIu64, BLOCKS * block_bytes());
        snprintf(swap, sizeof(swap), "%" PRIu64, swap_blocks * block_bytes() + 1);
        START_DAEMON(fixture, "--kv-bytes", pool, "--swap-bytes", swap, "--pipeline-depth", depth,
                     "--threads", "1", "--uid-cached-percent", "100");
        assert_int_equal(fixture_status(fixture, "blocks.total"), BLOCKS);
        assert_int_equal(fixture_status(fixture, "blocks.swap_total"), swap_blocks);
}

/* Short answers, so that long ones are expected to be short, and all begin. */
static void teach_short_answers(struct raw_client *client, const char *priority)
{
        const struct want want = {
                .prompt = "Tea", .max_tokens = 3, .ignore_eos = true, .priority = priority
        };
        uint32_t ids[LESSONS];

        for (uint32_t i = 0; i < LESSONS; i++)
                ids[i] = raw_client_generate(client, &want);
        for (uint32_t i = 0; i < LESSONS; i++)
                raw_client_await_end(client, ids[i]);
}

static void start_and_preempt_streams(struct daemon_fixture *fixture, uint32_t swap_blocks,
                                      const char *depth)
{
        struct want want = {
                .prompt = "The samovar", .max_tokens = TOKENS, .temperature = 1, .ignore_eos = true
        };
        struct stream *alone[STREAMS];
        struct raw_client *client;
        uint32_t ids[STREAMS];

        start(fixture, swap_blocks, depth);
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < STREAMS; i++) {
                want.seed = i;
                alone[i] = stream_copy(raw_client_complete(client, &want));
                assert_int_equal(alone[i]->token_count, TOKENS);
        }
        want.priority = "background";
        teach_short_answers(client, want.priority);
        for (uint32_t i = 0; i < STREAMS; i++) {
                want.seed = i;
                ids[i] = raw_client_generate(client, &want);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(raw_client_await_end(client, ids[i]), alone[i]);
        printf("# %u preemptions, %u blocks out, %u in, %u tokens restored, %u recomputed\n",
               (unsigned)fixture_status(fixture, "requests.blocks_lost"),
               (unsigned)fixture_status(fixture, "blocks.swapped_out"),
               (unsigned)fixture_status(fixture, "blocks.swapped_in"),
               (unsigned)fixture_status(fixture, "tokens_restored"),
               (unsigned)fixture_status(fixture, "tokens_recomputed"));
        assert_true(fixture_status(fixture, "requests.blocks_lost") > 0);
        assert_true(fixture_status(fixture, "blocks.swapped_out") > 0);
        assert_in_range(fixture_status(fixture, "blocks.swap_used"), 1, swap_blocks);
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
        raw_client_close(client);
}

static void some_came_back(struct daemon_fixture *fixture)
{
        assert_true(fixture_status(fixture, "blocks.swapped_in") > 0);
        assert_true(fixture_status(fixture, "tokens_restored") > 0);
        fixture_stop(fixture);
}

static void preempted_streams_go_on_as_alone(void **state)
{
        start_and_preempt_streams(*state, 200, "1");
        some_came_back(*state);
}

static void preempted_streams_go_on_as_alone_with_two_plans_in_flight(void **state)
{
        start_and_preempt_streams(*state, 200, "2");
        some_came_back(*state);
}

/* Most blocks are dropped, and computed again. */
static void streams_lose_no_token_if_the_swap_is_full(void **state)
{
        start_and_preempt_streams(*state, 8, "1");
        assert_true(fixture_status(*state, "tokens_recomputed") > 0);
        fixture_stop(*state);
}

/* A prompt of `count` letters that begins like no other. */
static struct want prompt_of(char letter, size_t count, char text[256])
{
        for (size_t i = 0; i < count; i++)
                text[i] = i % 7 ? letter : (char)('0' + i % 10);
        return (struct want){ .prompt = text,
                              .prompt_bytes = count,
                              .max_tokens = 14,
                              .temperature = 1,
                              .ignore_eos = true };
}

static void a_prompt_that_others_evicted_is_found_in_the_swap(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct stream *first, *again;
        uint64_t swapped_in;
        struct want want;
        char text[256];

        start(fixture, 64, "1");
        client = raw_client_greet(fixture);
        want = prompt_of('a', 160, text);
        first = stream_copy(raw_client_complete(client, &want));
        for (char letter = 'b'; letter <= 'e'; letter++) {
                want = prompt_of(letter, 160, text);
                raw_client_complete(client, &want);
        }
        assert_true(fixture_status(fixture, "blocks.swapped_out") >= 10);
        swapped_in = fixture_status(fixture, "blocks.swapped_in");
        want = prompt_of('a', 160, text);
        again = raw_client_complete(client, &want);
        assert_true(again->end.cached_tokens >= 144);
        assert_true(fixture_status(fixture, "blocks.swapped_in") >= swapped_in + 9);
        assert_int_equal(again->token_count, first->token_count);
        assert_memory_equal(again->tokens, first->tokens,
                            first->token_count * sizeof(*first->tokens));
        stream_free(first);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(preempted_streams_go_on_as_alone),
                DAEMON_TEST(preempted_streams_go_on_as_alone_with_two_plans_in_flight),
                DAEMON_TEST(streams_lose_no_token_if_the_swap_is_full),
                DAEMON_TEST(a_prompt_that_others_evicted_is_found_in_the_swap),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "SMV_TEST_CUDA_LIBRARY", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
