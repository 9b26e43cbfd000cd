/*
 * A model of which every second layer sees 40 positions: its keys and values are in blocks and in
 * window pages.  A pool that is too small to be divided has blocks only.  Tokens are the same with
 * both.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

/* Bytes of 16 positions: K and V of two heads of 32 halves, in four layers. */
#define WHOLE UINT64_C(4) * 2 * 2 * 32 * 16 * 2

static char text[1200];

static struct raw_client *start(struct daemon_fixture *fixture, uint64_t wholes, const char *seqs,
                                const char *depth)
{
        char pool[32];

        snprintf(pool, sizeof(pool), "%" PRIu64, wholes * WHOLE);
        START_DAEMON(fixture, "--model", env_path("TOY_MODEL_WINDOWS"), "--kv-bytes", pool,
                     "--max-seqs", seqs, "--step-tokens", "64", "--pipeline-depth", depth,
                     "--uid-cached-percent", "100");
        return raw_client_greet(fixture);
}

static void stop(struct daemon_fixture *fixture, struct raw_client *client)
{
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The tokens of a stream in a daemon without window pages, which has just begun. */
static struct stream *without_windows(struct daemon_fixture *fixture, const struct want *want)
{
        struct raw_client *client = start(fixture, 30, "4", "1");
        struct stream *stream;

        assert_int_equal(fixture_status(fixture, "blocks.windows_total"), 0);
        assert_int_equal(fixture_status(fixture, "blocks.total"), 30);
        stream = stream_copy(raw_client_complete(client, want));
        stop(fixture, client);
        return stream;
}

static void streams_make_the_tokens_of_a_pool_without_window_pages(void **state)
{
        const struct want want = {
                .prompt = text, .prompt_bytes = 150, .max_tokens = 300, .ignore_eos = true
        };
        struct stream *alone = without_windows(*state, &want);
        struct raw_client *client = start(*state, 300, "4", "2");

        assert_true(fixture_status(*state, "blocks.windows_total") > 0);
        assert_true(fixture_status(*state, "blocks.total") > 300);
        assert_same_stream(raw_client_complete(client, &want), alone);
        stream_free(alone);
        stop(*state, client);
}

/* 80 blocks with the windows of their layers would hold 1280 positions. */
static void a_stream_may_be_longer_than_a_pool_of_whole_blocks(void **state)
{
        const struct want want = {
                .prompt = text, .prompt_bytes = 100, .max_tokens = 1900, .ignore_eos = true
        };
        struct raw_client *client = start(*state, 80, "1", "1");
        const struct stream *stream = raw_client_complete(client, &want);

        assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        assert_int_equal(stream->token_count, 1900);
        assert_true(fixture_status(*state, "blocks.windows_total") < 64);
        assert_true(fixture_status(*state, "blocks.window_evictions") > 0);
        stop(*state, client);
}

static void a_prompt_is_found_with_the_window_pages_at_its_end(void **state)
{
        const struct want first = {
                .prompt = text, .prompt_bytes = 200, .max_tokens = 20, .ignore_eos = true
        };
        const struct want second = {
                .prompt = text, .prompt_bytes = 260, .max_tokens = 100, .ignore_eos = true
        };
        struct stream *alone = without_windows(*state, &second);
        struct raw_client *client = start(*state, 300, "4", "1");
        struct stream *stream;

        raw_client_complete(client, &first);
        stream = raw_client_complete(client, &second);
        assert_in_range(stream->end.cached_tokens, 192, 201);
        assert_same_stream(stream, alone);
        stream_free(alone);
        stop(*state, client);
}

#define STREAMS 12u

/* Window pages suffice for seven of twelve streams. */
static void more_streams_than_there_are_window_pages_for_make_the_same_tokens(void **state)
{
        struct raw_client *client = start(*state, 100, "12", "2");
        struct want want = { .prompt = text, .max_tokens = 90, .ignore_eos = true };
        struct stream *alone[STREAMS];
        uint32_t ids[STREAMS];

        assert_in_range(fixture_status(*state, "blocks.windows_total"), 30, 46);
        for (uint32_t i = 0; i < STREAMS; i++) {
                want.prompt = text + i;
                want.prompt_bytes = 100 + 7 * i;
                alone[i] = stream_copy(raw_client_complete(client, &want));
        }
        for (uint32_t round = 0; round < 5; round++) {
                for (uint32_t i = 0; i < STREAMS; i++) {
                        want.prompt = text + i;
                        want.prompt_bytes = 100 + 7 * i;
                        ids[i] = raw_client_generate(client, &want);
                }
                for (uint32_t i = 0; i < STREAMS; i++) {
                        struct stream *stream = raw_client_await_end(client, ids[i]);

                        assert_same_stream(stream, alone[i]);
                }
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
        stop(*state, client);
}

int main(void)
{
        static const char words[] = "once upon a time there was a samovar and all the guests ";
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(streams_make_the_tokens_of_a_pool_without_window_pages),
                DAEMON_TEST(a_stream_may_be_longer_than_a_pool_of_whole_blocks),
                DAEMON_TEST(a_prompt_is_found_with_the_window_pages_at_its_end),
                DAEMON_TEST(more_streams_than_there_are_window_pages_for_make_the_same_tokens),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL_WINDOWS", NULL });
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = words[(i + i / 40) % (sizeof(words) - 1)];
        return cmocka_run_group_tests(tests, NULL, NULL);
}
