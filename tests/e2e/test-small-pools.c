/*
 * Admission by need: requests begin when what they need now is there, and take blocks as they grow.
 * If the pool is too small for all of them after all, some are preempted, and no client sees that
 * in its tokens.
 */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define STREAMS 24u
/* The quick model has blocks of 512 bytes: 512 of them. */
#define POOL     "--kv-bytes", "256K", "--max-seqs", "64", "--ring-bytes", "64K"
#define ASK_MOST 3500u

static const struct want much = { .prompt = "The samovar",
                                  .max_tokens = ASK_MOST,
                                  .temperature = 1,
                                  .ignore_eos = true,
                                  .logprobs = LOGPROBS_MOST };

static void start(struct daemon_fixture *fixture, const char *admission)
{
        START_DAEMON(fixture, "--model", make_quick_model(fixture, "4096"), POOL, "--threads", "1",
                     "--admission-normal", admission);
}

/* The client does not read, so its streams make some tokens and then stall. */
static struct raw_client *ask_for_much(const struct daemon_fixture *fixture)
{
        struct raw_client *client = raw_client_greet(fixture);

        for (uint32_t i = 0; i < STREAMS; i++) {
                struct want want = much;

                want.seed = i;
                raw_client_generate(client, &want);
        }
        return client;
}

static void requests_that_ask_for_much_and_need_little_run_at_once(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        start(fixture, "learned");
        client = ask_for_much(fixture);
        fixture_await_status(fixture, "requests.running", STREAMS);
        assert_int_equal(fixture_status(fixture, "requests.waiting"), 0);
        assert_int_equal(fixture_status(fixture, "requests.blocks_lost"), 0);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* How many streams wait for this, by `list`. */
static uint32_t waiting_for(const struct daemon_fixture *fixture, const char *what, uint64_t needs)
{
        struct raw_client *client = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        struct reply *reply = raw_client_call(client, "op=s", "list");
        uint32_t count = 0;

        for (uint32_t i = 0; i < STREAMS; i++) {
                const msgpack_object *word;
                char path[64];

                snprintf(path, sizeof(path), "work.streams.%u.waits_for", i);
                word = reply_at(reply, path);
                assert_non_null(word);
                if (word->via.str.size != strlen(what) ||
                    memcmp(word->via.str.ptr, what, word->via.str.size))
                        continue;
                snprintf(path, sizeof(path), "work.streams.%u.needs", i);
                assert_int_equal(reply_uint(reply, path), needs);
                count++;
        }
        raw_client_close(client);
        return count;
}

static void requests_that_reserve_run_as_far_as_their_worst_cases_fit(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        start(fixture, "reserve");
        client = ask_for_much(fixture);
        fixture_await_status(fixture, "requests.stalled", 2);
        fixture_await_status(fixture, "requests.waiting", STREAMS - 2);
        assert_int_equal(fixture_status(fixture, "requests.running"), 2);
        assert_int_equal(waiting_for(fixture, "", 0), 2);
        assert_int_equal(waiting_for(fixture, "blocks", (12 + ASK_MOST - 1 + 15) / 16), 1);
        assert_int_equal(waiting_for(fixture, "turn", 0), STREAMS - 3);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* All of them run to their end, which needs ten times the pool. */
static void streams_that_outgrow_the_pool_are_preempted_and_lose_no_token(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct stream *alone[STREAMS];
        struct raw_client *client;
        uint32_t ids[STREAMS];
        struct want want = much;

        start(fixture, "learned");
        client = raw_client_greet(fixture);
        want.logprobs = 0;
        want.max_tokens = fixture->sanitized ? 1000 : 3500;
        for (uint32_t i = 0; i < STREAMS; i++) {
                want.seed = i;
                alone[i] = stream_copy(raw_client_complete(client, &want));
                assert_int_equal(alone[i]->token_count, want.max_tokens);
        }
        /* Another class, so the daemon knows no lengths of it. */
        want.priority = "background";
        for (uint32_t i = 0; i < STREAMS; i++) {
                want.seed = i;
                ids[i] = raw_client_generate(client, &want);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(raw_client_await_end(client, ids[i]), alone[i]);
        printf("# %u preemptions, %u of them because the pool was full\n",
               (unsigned)fixture_status(fixture, "requests.preemptions"),
               (unsigned)fixture_status(fixture, "requests.blocks_lost"));
        assert_true(fixture_status(fixture, "requests.blocks_lost") > 0);
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(requests_that_ask_for_much_and_need_little_run_at_once),
                DAEMON_TEST(requests_that_reserve_run_as_far_as_their_worst_cases_fit),
                DAEMON_TEST(streams_that_outgrow_the_pool_are_preempted_and_lose_no_token),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
