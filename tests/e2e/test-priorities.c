/* Which request runs first, which is preempted and continues later, and which is refused because it
 * would be too late. */
#include <stdio.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

static const struct want lengthy = { .prompt = "Once upon a time there was a samovar",
                                     .max_tokens = 1500,
                                     .temperature = 1,
                                     .seed = 41,
                                     .ignore_eos = true,
                                     .priority = "background" };

static const struct want endless = { .prompt = "Once upon a time there was a samovar",
                                     .max_tokens = ENDLESS,
                                     .temperature = 1,
                                     .seed = 41,
                                     .ignore_eos = true,
                                     .priority = "background" };

static const struct want brief = { .prompt = "All the guests",
                                   .max_tokens = 5,
                                   .temperature = 1,
                                   .seed = 42,
                                   .ignore_eos = true,
                                   .priority = "interactive" };

static const struct stream *await_tokens(struct raw_client *client, uint32_t id, size_t count)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        for (;;) {
                const struct stream *stream = raw_client_stream(client, id);

                if (stream && stream->token_count >= count)
                        return stream;
                assert_true(now_ms() < end);
                raw_client_poll(client, 10);
        }
}

static const struct stream *cancel(struct raw_client *client, uint32_t id)
{
        assert_true(raw_client_call(client, "op=s stream=u", "cancel", id)->ok);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        return raw_client_stream(client, id);
}

/* The background stream has its place again when more tokens of it come; its earlier tokens come
 * before those of the other stream. */
static void a_preempted_background_stream_continues_with_the_same_tokens(void **state)
{
        const struct stream *stream, *alone;
        struct want again = endless;
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        size_t count = 0;
        uint32_t slow;

        START_ENDLESS_DAEMON(fixture, "--max-seqs", "1");
        client = raw_client_greet(fixture);
        slow = raw_client_generate(client, &endless);
        for (size_t i = 1; i <= 3; i++) {
                await_tokens(client, slow, count + 20);
                assert_int_equal(raw_client_complete(client, &brief)->token_count, 5);
                count = raw_client_stream(client, slow)->token_count;
                assert_int_equal(raw_client_status(client, "requests.preemptions"), i);
        }
        await_tokens(client, slow, count + 20);
        stream = cancel(client, slow);
        again.max_tokens = (uint32_t)stream->token_count;
        alone = raw_client_complete(client, &again);
        assert_int_equal(alone->token_count, stream->token_count);
        assert_memory_equal(alone->tokens, stream->tokens,
                            alone->token_count * sizeof(*alone->tokens));
        raw_client_close(client);
        fixture_stop(fixture);
}

/* While `quick` waits `slow` continues, until the test cancels it. */
static void expect_no_way_given(struct raw_client *client, uint32_t slow, const struct want *quick)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        uint32_t id = raw_client_generate(client, quick);

        while (raw_client_status(client, "requests.waiting") != 1)
                assert_true(now_ms() < end);
        await_tokens(client, slow, raw_client_stream(client, slow)->token_count + 100);
        assert_null(raw_client_stream(client, id));
        cancel(client, slow);
        assert_int_equal(raw_client_await_end(client, id)->token_count, 5);
}

static void a_request_is_preempted_at_most_max_preemptions_times(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t slow;

        START_ENDLESS_DAEMON(fixture, "--max-seqs", "1", "--max-preemptions", "1");
        client = raw_client_greet(fixture);
        slow = raw_client_generate(client, &endless);
        await_tokens(client, slow, 20);
        raw_client_complete(client, &brief);
        await_tokens(client, slow, raw_client_stream(client, slow)->token_count + 1);
        expect_no_way_given(client, slow, &brief);
        assert_int_equal(raw_client_status(client, "requests.preemptions"), 1);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_request_is_not_preempted_by_the_same_priority(void **state)
{
        struct want second = brief;
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t slow;

        START_ENDLESS_DAEMON(fixture, "--max-seqs", "1");
        client = raw_client_greet(fixture);
        slow = raw_client_generate(client, &endless);
        await_tokens(client, slow, 20);
        second.priority = "background";
        expect_no_way_given(client, slow, &second);
        assert_int_equal(raw_client_status(client, "requests.preemptions"), 0);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_stalled_stream_is_preempted_and_loses_no_token(void **state)
{
        struct want still = lengthy;
        struct daemon_fixture *fixture = *state;
        struct raw_client *sleeper, *other;
        struct stream *alone;
        uint64_t end = now_ms() + TIMEOUT_MS;
        uint32_t slow;

        START_QUICK_DAEMON(fixture, "--max-seqs", "1", "--ring-bytes", "64K", "--stall-preempt-ms",
                           "50");
        other = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        still.priority = "interactive"; /* an idle priority does not reserve a slot */
        still.max_tokens = 1900;
        alone = stream_copy(raw_client_complete(other, &still));
        sleeper = raw_client_greet_over(fixture, RAW_CLIENT_KICK);
        raw_client_generate(sleeper, &still);
        slow = raw_client_generate(sleeper, &still); /* there is not enough room left for it */
        while (!raw_client_status(other, "requests.stalled"))
                assert_true(now_ms() < end);
        assert_int_equal(raw_client_complete(other, &brief)->token_count, 5);
        assert_int_equal(raw_client_status(other, "requests.preemptions"), 1);
        assert_same_stream(raw_client_await_end(sleeper, slow), alone);
        raw_client_close(sleeper);
        raw_client_close(other);
        stream_free(alone);
        fixture_stop(fixture);
}

static void a_request_ends_at_its_deadline_with_a_correct_prefix(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct want again = endless;
        const struct stream *late, *alone;
        struct reply *reply;
        struct raw_client *client;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        reply = raw_client_call(client,
                                "op=s prompt=s max_tokens=u temperature=f seed=u ignore_eos=y "
                                "deadline_ms=u",
                                "generate", endless.prompt, endless.max_tokens, 1.0, 41, 1, 1500);
        assert_true(reply->ok);
        assert_int_equal(reply_uint(reply, "queue_position"), 0);
        late = raw_client_await_end(client, client->last_id);
        assert_int_equal(late->end.reason, SMV_END_ERROR);
        assert_int_equal(late->end.code, SMV_TIMEOUT);
        again.max_tokens = 100;
        alone = raw_client_complete(client, &again);
        if (late->token_count < alone->token_count)
                assert_prefix_stream(late, alone);
        else
                assert_prefix_stream(alone, late);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Twenty requests wait for one place, which does not become free.  A request that comes then with a
 * deadline of a millisecond is refused at once. */
static void refuses_a_request_that_would_miss_its_deadline(void **state)
{
        struct daemon_fixture *fixture = *state;
        const struct want waiting = { .prompt = "One of many",
                                      .max_tokens = 300,
                                      .ignore_eos = true };
        struct want first = endless;
        struct reply *reply;
        struct raw_client *client;
        uint32_t id, ids[20];

        START_ENDLESS_DAEMON(fixture, "--max-seqs", "1");
        client = raw_client_greet(fixture);
        raw_client_complete(client, &waiting); /* so that the daemon knows how long one takes */
        first.priority = "interactive";
        id = raw_client_generate(client, &first);
        await_tokens(client, id, 1);
        for (size_t i = 0; i < 20; i++)
                ids[i] = raw_client_generate(client, &waiting);
        reply = raw_client_call(client, "op=s prompt=s max_tokens=u deadline_ms=u", "generate",
                                "Quick", 5, 1);
        assert_false(reply->ok);
        assert_int_equal(reply->code, SMV_TIMEOUT);
        assert_string_equal(reply->field, "deadline_ms");
        assert_non_null(strstr(reply->message, "20 requests are ahead of it"));
        cancel(client, id);
        for (size_t i = 0; i < 20; i++)
                raw_client_await_end(client, ids[i]);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_preempted_background_stream_continues_with_the_same_tokens),
                DAEMON_TEST(a_request_is_preempted_at_most_max_preemptions_times),
                DAEMON_TEST(a_request_is_not_preempted_by_the_same_priority),
                DAEMON_TEST(a_stalled_stream_is_preempted_and_loses_no_token),
                DAEMON_TEST(a_request_ends_at_its_deadline_with_a_correct_prefix),
                DAEMON_TEST(refuses_a_request_that_would_miss_its_deadline),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
