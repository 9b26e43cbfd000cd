/*
 * A token whose embedding is not a number, and clients that share a daemon with one that sends this
 * token.  The model is made so that everything computed after the token is not a number either.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/e2e/raw-client.h"

#define BAD_TOKEN "1"
#define HONEST    4u
#define BAD_N     6u
#define GOOD      "a prompt that is as long as some blocks of the pool are, and good as far as this"
#define BAD       GOOD "\x01 and then there is more of it"
/* the cached tokens of any text: the beginning that all texts share, which the warm-up has left */
#define BEGUN    1u
#define LOGPROBS 5u

static const char *const honest_prompts[HONEST] = { "Once", "upon a time there was", GOOD,
                                                    "what an honest man would say" };

static const char *make_bad_model(const struct daemon_fixture *fixture)
{
        static char path[96];
        struct run_result ran;

        snprintf(path, sizeof(path), "%s/bad.gguf", fixture->directory);
        ran = RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), path, "--layers",
                  getenv("SMV_TEST_GPU_LAYERS") ? "2" : "1", "--width", "32", "--heads", "2",
                  "--kv-heads", "1", "--head-dim", "32", "--ffn", "32", "--bad-token", BAD_TOKEN);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        return path;
}

/* Prompts take several steps, so blocks are shown to others before it is known that they are
 * bad. */
#define START(fixture)                                                                             \
        START_DAEMON(fixture, "--model", make_bad_model(fixture), "--max-seqs", "16",              \
                     "--step-tokens", "24")

/* The daemon is not at rest: it has counted faults. */
static void stop(struct daemon_fixture *fixture, uint64_t faults)
{
        assert_int_equal(fixture_status(fixture, "numeric_faults"), faults);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
        assert_no_process_left();
}

static struct want honest_want(uint32_t i)
{
        return (struct want){ .prompt = honest_prompts[i],
                              .max_tokens = 200,
                              .ignore_eos = true,
                              .temperature = i % 2,
                              .seed = i,
                              .logprobs = LOGPROBS };
}

static void begin_honest(struct raw_client *client, uint32_t *ret_ids)
{
        for (uint32_t i = 0; i < HONEST; i++) {
                struct want want = honest_want(i);

                ret_ids[i] = raw_client_generate(client, &want);
        }
}

static const struct stream *assert_numeric(struct raw_client *client, uint32_t id)
{
        const struct stream *stream = raw_client_await_end(client, id);

        assert_int_equal(stream->end.reason, SMV_END_ERROR);
        assert_int_equal(stream->end.code, SMV_NUMERIC);
        assert_int_equal(stream->token_count, 0);
        return stream;
}

static void a_non_finite_request_leaves_other_streams_unchanged(void **state)
{
        static const struct want bad = { .prompt = BAD, .max_tokens = 20 };
        struct daemon_fixture *fixture = *state;
        struct stream *alone[HONEST];
        uint32_t ids[HONEST], bad_ids[BAD_N];
        struct raw_client *client;

        START(fixture);
        client = raw_client_greet(fixture);
        begin_honest(client, ids);
        for (uint32_t i = 0; i < HONEST; i++)
                alone[i] = stream_copy(raw_client_await_end(client, ids[i]));
        raw_client_close(client);
        stop(fixture, 0);

        START(fixture);
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < BAD_N / 2; i++)
                bad_ids[i] = raw_client_generate(client, &bad);
        begin_honest(client, ids);
        for (uint32_t i = BAD_N / 2; i < BAD_N; i++)
                bad_ids[i] = raw_client_generate(client, &bad);
        for (uint32_t i = 0; i < BAD_N; i++)
                assert_numeric(client, bad_ids[i]);
        for (uint32_t i = 0; i < HONEST; i++) {
                assert_int_equal(raw_client_await_end(client, ids[i])->logprobs_each, LOGPROBS);
                assert_same_stream(raw_client_stream(client, ids[i]), alone[i]);
                stream_free(alone[i]);
        }
        raw_client_close(client);
        stop(fixture, BAD_N);
}

/* No sound client has sent this text before, so everything that it could find is left by the bad
 * one. */
static void blocks_of_a_non_finite_request_are_never_reused(void **state)
{
        static const struct want bad = { .prompt = BAD, .max_tokens = 20 };
        const struct want good = honest_want(2);
        struct daemon_fixture *fixture = *state;
        const struct stream *again;
        struct stream *alone;
        struct raw_client *client;

        START(fixture);
        client = raw_client_greet(fixture);
        alone = stream_copy(raw_client_complete(client, &good));
        raw_client_close(client);
        stop(fixture, 0);

        START(fixture);
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < 2; i++) {
                again = assert_numeric(client, raw_client_generate(client, &bad));
                assert_int_equal(again->end.cached_tokens, BEGUN);
        }
        again = raw_client_complete(client, &good);
        assert_same_stream(again, alone);
        assert_int_equal(again->end.cached_tokens, BEGUN);
        assert_int_equal(again->end.diverged_at, alone->end.diverged_at);
        again = raw_client_complete(client, &good);
        assert_same_stream(again, alone);
        assert_true(again->end.cached_tokens > sizeof(GOOD) / 2);
        raw_client_close(client);
        stop(fixture, 2);
        stream_free(alone);
}

/* It has the scores up to the bad token, and its blocks are not shared. */
static void a_prompt_that_is_scored_ends_at_its_first_bad_score(void **state)
{
        const struct want good = honest_want(2);
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t id;

        START(fixture);
        client = raw_client_greet(fixture);
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=s max_tokens=u prompt_logprobs=u",
                              "generate", id, BAD, 0, 0);
        assert_int_equal(assert_numeric(client, id)->score_count, sizeof(GOOD));
        assert_int_equal(raw_client_complete(client, &good)->end.cached_tokens, BEGUN);
        raw_client_close(client);
        stop(fixture, 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_non_finite_request_leaves_other_streams_unchanged),
                DAEMON_TEST(blocks_of_a_non_finite_request_are_never_reused),
                DAEMON_TEST(a_prompt_that_is_scored_ends_at_its_first_bad_score),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
