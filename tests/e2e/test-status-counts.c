/* The counts of `status`: each is that of what was done before. */
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define BLOCK 16u

static const struct want endless = { .prompt = "a prompt of more than three blocks, so that its "
                                               "forks have some of them together",
                                     .max_tokens = ENDLESS,
                                     .temperature = 1,
                                     .seed = 3,
                                     .ignore_eos = true };

/* Begins a stream and waits until its first token has come. */
static uint32_t begin_endless(struct raw_client *client)
{
        uint32_t id = raw_client_generate(client, &endless);

        assert_true(raw_client_await_reply(client, id)->ok);
        while (!raw_client_stream(client, id))
                raw_client_poll(client, 100);
        return id;
}

static void cancel(struct raw_client *client, uint32_t id)
{
        assert_true(raw_client_call(client, "op=s stream=u", "cancel", id)->ok);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
}

static void forks_and_the_blocks_that_they_share_are_counted(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t parent, first;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        parent = begin_endless(client);
        assert_int_equal(raw_client_status(client, "requests.forks"), 0);
        assert_int_equal(raw_client_status(client, "blocks.shared"), 0);
        first = client->last_id + 1;
        client->last_id += 3;
        raw_client_send_frame(client, "op=s id=u stream=u count=u", "fork", first, parent, 3u);
        assert_true(raw_client_await_reply(client, first)->ok);
        fixture_await_status(fixture, "requests.running", 4);
        assert_int_equal(raw_client_status(client, "requests.forks"), 3);
        assert_true(raw_client_status(client, "blocks.shared") >= strlen(endless.prompt) / BLOCK);
        for (uint32_t i = 0; i < 3; i++)
                cancel(client, first + i);
        fixture_await_status(fixture, "blocks.shared", 0);
        cancel(client, parent);
        assert_int_equal(raw_client_status(client, "requests.forks"), 3);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The client of a ring takes nothing, so its stream stalls once, and goes on when it reads. */
static void a_stall_is_counted_once(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *asking;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K");
        client = raw_client_greet_over(fixture, RAW_CLIENT_FUTEX);
        asking = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        assert_int_equal(raw_client_status(asking, "requests.stalls"), 0);
        id = raw_client_generate(client, &endless);
        fixture_await_status(fixture, "requests.stalled", 1);
        sleep_ms(100);
        assert_int_equal(raw_client_status(asking, "requests.stalls"), 1);
        cancel(client, id);
        assert_int_equal(raw_client_status(asking, "requests.stalls"), 1);
        raw_client_close(asking);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The number at this place of an array. */
static uint64_t element(const struct reply *reply, const char *path, uint32_t index)
{
        const msgpack_object *array = reply_at(reply, path);

        assert_non_null(array);
        assert_int_equal(array->type, MSGPACK_OBJECT_ARRAY);
        assert_true(index < array->via.array.size);
        return array->via.array.ptr[index].via.u64;
}

/* A prompt of 100 tokens is one step, and each token behind the first one is another. */
static void steps_are_counted_by_their_rows(void **state)
{
        static const char prompt[] = "0123456789012345678901234567890123456789"
                                     "01234567890123456789012345678901234567890123456789012345678";
        const struct want want = { .prompt = prompt, .max_tokens = 6, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct reply *reply;
        uint64_t ones, many, steps;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--draft", "off");
        client = raw_client_greet(fixture);
        reply = raw_client_call(client, "op=s", "status");
        steps = reply_uint(reply, "status.step_rows.count");
        assert_int_equal(steps, reply_uint(reply, "status.steps"));
        ones = element(reply, "status.step_rows.buckets", 0);
        many = element(reply, "status.step_rows.buckets", 7);
        raw_client_complete(client, &want);
        reply = raw_client_call(client, "op=s", "status");
        assert_int_equal(reply_uint(reply, "status.step_rows.count"), steps + 6);
        assert_int_equal(element(reply, "status.step_rows.le", 6), 64);
        assert_int_equal(element(reply, "status.step_rows.buckets", 0), ones + 5);
        assert_int_equal(element(reply, "status.step_rows.buckets", 6), many + 5);
        assert_int_equal(element(reply, "status.step_rows.buckets", 7), many + 6);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void each_token_is_delivered_once(void **state)
{
        const struct want want = { .prompt = "some", .max_tokens = 50, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint64_t tokens;

        START_QUICK_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < 3; i++)
                raw_client_complete(client, &want);
        tokens = raw_client_status(client, "tokens_out");
        assert_true(tokens >= 150);
        /* The client may be told before that is counted. */
        fixture_await_status(fixture, "latency.token_delivery_seconds.count", tokens);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void refusals_are_counted_by_their_error(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_QUICK_DAEMON(fixture, NULL);
        client = raw_client_greet(fixture);
        for (int i = 0; i < 2; i++)
                assert_int_equal(raw_client_call(client, "op=s model=s prompt=s max_tokens=u",
                                                 "generate", "other", "x", 1u)
                                         ->code,
                                 SMV_NO_MODEL);
        assert_int_equal(
                raw_client_call(client, "op=s prompt=s max_tokens=u", "generate", "x", 100000u)
                        ->code,
                SMV_TOO_LONG);
        assert_int_equal(raw_client_status(client, "refusals.no_model"), 2);
        assert_int_equal(raw_client_status(client, "refusals.too_long"), 1);
        assert_int_equal(raw_client_status(client, "refusals.quota"), 0);
        assert_int_equal(raw_client_status(client, "requests.refused"), 3);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(forks_and_the_blocks_that_they_share_are_counted),
                DAEMON_TEST(a_stall_is_counted_once),
                DAEMON_TEST(steps_are_counted_by_their_rows),
                DAEMON_TEST(each_token_is_delivered_once),
                DAEMON_TEST(refusals_are_counted_by_their_error),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
