/* The quotas of one user and that they are given back; and how long one client may take. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"

#define ENDS     1200 /* of 64 bytes each: more than the smallest ring */
#define FIRST    10   /* the first of their ids */
#define HELLO_MS 1500 /* a client that says hello may not be held up this long */
#define FRAME_MS 200

static const struct want endless = { .prompt = "Once", .max_tokens = ENDLESS, .ignore_eos = true };

/* The one reply without an id with which the daemon refuses a client or hangs up. */
static void assert_refused_and_closed(struct raw_client *client, enum smv_code code,
                                      const char *words)
{
        const struct reply *reply;

        raw_client_await_hangup(client);
        assert_true(client->reply_count > 0);
        reply = client->replies[client->reply_count - 1];
        if (reply->ok || reply->code != code || reply->id || !strstr(reply->message, words))
                fail_msg("wanted %d \"%s\": %u %d \"%s\"", (int)code, words, (unsigned)reply->id,
                         (int)reply->code, reply->message);
        raw_client_close(client);
}

static void limits_connections_of_a_user(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *clients[5];

        START_DAEMON(fixture, MANY_CONNECTS, "--uid-connections", "5");
        for (size_t i = 0; i < 5; i++)
                clients[i] = raw_client_greet(fixture);
        assert_int_equal(raw_client_status(clients[0], "users.0.connections"), 5);
        for (int i = 0; i < 3; i++)
                assert_refused_and_closed(raw_client_connect(fixture), SMV_QUOTA, "connections");
        assert_int_equal(raw_client_status(clients[0], "users.0.connections"), 5);
        assert_true(raw_client_status(clients[0], "connections.refused") >= 3);
        for (size_t i = 1; i < 5; i++)
                raw_client_close(clients[i]);
        while (raw_client_status(clients[0], "connections.open") > 1)
                sleep_ms(5);
        raw_client_close(raw_client_greet(fixture)); /* there is room again */
        raw_client_close(clients[0]);
        fixture_stop(fixture);
}

static void limits_connections_of_all_users(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *clients[4];

        START_DAEMON(fixture, MANY_CONNECTS, "--connections", "4");
        for (size_t i = 0; i < 4; i++)
                clients[i] = raw_client_greet(fixture);
        assert_refused_and_closed(raw_client_connect(fixture), SMV_BUSY, "connections");
        for (size_t i = 0; i < 4; i++)
                raw_client_close(clients[i]);
        sleep_ms(100);
        fixture_stop(fixture);
}

static void limits_requests_of_a_user_over_all_connections(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *a, *b;
        const struct reply *reply;
        uint32_t first, id = 0;

        START_ENDLESS_DAEMON(fixture, MANY_CONNECTS, "--uid-requests", "10", "--max-seqs", "4");
        a = raw_client_greet(fixture);
        b = raw_client_greet(fixture);
        first = a->last_id + 1;
        for (int i = 0; i < 5; i++) {
                id = raw_client_generate(a, &endless);
                assert_true(raw_client_await_reply(a, id)->ok);
                id = raw_client_generate(b, &endless);
                assert_true(raw_client_await_reply(b, id)->ok);
        }
        assert_int_equal(raw_client_status(a, "users.0.requests"), 10);
        assert_true(raw_client_status(a, "users.0.prompt_bytes") > 10 * UINT64_C(4) * ENDLESS);
        assert_int_equal(raw_client_status(a, "users.0.ring_bytes"), a->ring ? 2 * 256 << 10 : 0);
        /* An accepted request is not seen by the engine at once. */
        for (int i = 0; i < 2000 && raw_client_status(a, "requests.waiting") != 6; i++)
                sleep_ms(2);
        assert_int_equal(raw_client_status(a, "requests.running"), 4);
        assert_int_equal(raw_client_status(a, "requests.waiting"), 6);
        for (int i = 0; i < 3; i++) {
                id = raw_client_generate(i & 1 ? a : b, &endless);
                reply = raw_client_await_reply(i & 1 ? a : b, id);
                assert_int_equal(reply->code, SMV_QUOTA);
                assert_non_null(strstr(reply->message, "10"));
                assert_non_null(strstr(reply->message, "requests"));
        }
        /* One that waits and one that runs are cancelled, so there is room for two. */
        raw_client_call(a, "op=s stream=u", "cancel", first);
        assert_int_equal(raw_client_await_end(a, first)->end.reason, SMV_END_CANCELLED);
        raw_client_call(a, "op=s stream=u", "cancel", first + 4);
        assert_int_equal(raw_client_await_end(a, first + 4)->end.reason, SMV_END_CANCELLED);
        while (raw_client_status(a, "users.0.requests") > 8)
                sleep_ms(2);
        raw_client_close(b);
        raw_client_close(a);
        fixture_stop(fixture);
}

static void limits_requests_of_all_users(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, MANY_CONNECTS, "--requests", "6");
        client = raw_client_greet(fixture);
        for (int i = 0; i < 6; i++) {
                id = raw_client_generate(client, &endless);
                assert_true(raw_client_await_reply(client, id)->ok);
        }
        id = raw_client_generate(client, &endless);
        assert_int_equal(raw_client_await_reply(client, id)->code, SMV_BUSY);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void limits_prompt_bytes_of_a_user(void **state)
{
        static char text[200 << 10];
        struct daemon_fixture *fixture = *state;
        const struct reply *reply;
        struct raw_client *client;
        uint32_t id;

        START_DAEMON(fixture, MANY_CONNECTS, "--uid-prompt-bytes", "100K");
        client = raw_client_greet(fixture);
        memset(text, 'a', sizeof(text));
        id = ++client->last_id; /* its ids alone would be more than allowed */
        raw_client_send_frame(client, "op=s id=u prompt=t", "generate", id, text, (size_t)40000);
        reply = raw_client_await_reply(client, id);
        assert_int_equal(reply->code, SMV_QUOTA);
        assert_non_null(strstr(reply->message, "102400"));
        assert_int_equal(raw_client_status(client, "users.0.prompt_bytes"), 0);
        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u prompt=t max_tokens=u", "generate", id, text,
                              (size_t)1000, 10u);
        assert_true(raw_client_await_reply(client, id)->ok);
        raw_client_await_end(client, id);
        raw_client_close(client);

        /* The length of this frame is over the limit on waiting bytes. */
        client = raw_client_greet(fixture);
        raw_client_send_frame(client, "op=s id=u text=t", "tokenize", 7u, text, sizeof(text));
        assert_refused_and_closed(client, SMV_QUOTA, "102400");
        fixture_stop(fixture);
}

/* A private ring, whose reader is the daemon itself, comes with the connection. */
static void a_private_ring_takes_no_ring_bytes(void **state)
{
        const struct want want = { .prompt = "Once", .max_tokens = 5, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *clients[3];

        START_DAEMON(fixture, MANY_CONNECTS, "--ring-bytes", "64K", "--uid-ring-bytes", "64K");
        for (size_t i = 0; i < 3; i++)
                clients[i] = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(raw_client_complete(clients[i], &want)->token_count, 5);
        assert_int_equal(raw_client_status(clients[0], "users.0.ring_bytes"), 0);
        for (size_t i = 0; i < 3; i++)
                raw_client_close(clients[i]);
        fixture_stop(fixture);
}

/* A shared ring is made with hello, so the bound applies there. */
static void limits_shared_rings_of_a_user(void **state)
{
        static const uint32_t versions[] = { 0, 0 };
        const struct want want = { .prompt = "Once", .max_tokens = 5, .ignore_eos = true };
        struct raw_client *first, *second, *refused, *content;
        struct daemon_fixture *fixture = *state;
        const struct reply *reply;

        START_DAEMON(fixture, MANY_CONNECTS, "--ring-bytes", "64K", "--uid-ring-bytes", "128K");
        first = raw_client_greet(fixture);
        second = raw_client_greet(fixture);
        assert_int_equal(raw_client_status(first, "users.0.ring_bytes"), 128 << 10);
        refused = raw_client_connect(fixture);
        reply = raw_client_hello(refused, raw_client_transport());
        assert_int_equal(reply->code, SMV_QUOTA);
        assert_string_equal(reply->message,
                            "you have 131072 bytes of rings, the limit (uid_ring_bytes)");
        raw_client_close(refused);
        content = raw_client_connect(fixture);
        reply = raw_client_call(content, "op=s versions=I transport=s", "hello", versions,
                                (size_t)2, "auto");
        assert_true(reply->ok && !content->ring);
        assert_int_equal(raw_client_complete(content, &want)->token_count, 5);

        raw_client_close(first);
        while (raw_client_status(content, "users.0.ring_bytes") > 64 << 10)
                sleep_ms(2);
        first = raw_client_greet(fixture); /* there is room again */
        assert_int_equal(raw_client_complete(first, &want)->token_count, 5);
        assert_int_equal(raw_client_complete(second, &want)->token_count, 5);
        raw_client_close(first);
        raw_client_close(second);
        raw_client_close(content);
        fixture_stop(fixture);
}

static void disconnects_a_client_that_sends_no_hello_in_time(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct raw_client *silent, *slow;
        uint64_t start;

        START_DAEMON(fixture, MANY_CONNECTS, "--hello-timeout-ms", "1500");
        honest = honest_client_start(fixture);
        start = now_ms();
        silent = raw_client_connect(fixture);
        slow = raw_client_connect(fixture);
        raw_client_send(slow, "\x40\x1f\0\0", 4); /* a byte at a time is no hello */
        while (!slow->hung_up && raw_client_send(slow, "\0", 1)) {
                honest_client_check_for(&honest, 20);
                raw_client_poll(slow, 0);
                if (slow->reply_count)
                        break;
        }
        raw_client_await_hangup(slow);
        raw_client_close(slow);
        assert_refused_and_closed(silent, SMV_TIMEOUT, "1500");
        assert_true(now_ms() - start >= HELLO_MS - 10);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

static void disconnects_a_client_that_sends_a_frame_too_slowly(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bytes_out frame = { 0 };
        struct honest_client honest;
        struct raw_client *client, *idle;
        uint64_t start;
        size_t at = 0;

        START_DAEMON(fixture, MANY_CONNECTS, "--frame-timeout-ms", "200");
        honest = honest_client_start(fixture);
        idle = raw_client_greet(fixture); /* between frames a client may take any time */
        client = raw_client_greet(fixture);
        frame_put(&frame, "op=s id=u text=s", "tokenize", 5u,
                  "a text that is long enough for a byte every twenty milliseconds to be too slow");
        for (start = now_ms(); at < frame.count && client->reply_count == 1; at++) {
                if (!raw_client_send(client, frame.at + at, 1))
                        break;
                honest_client_check_for(&honest, 20);
                raw_client_poll(client, 0);
        }
        assert_true(now_ms() - start >= FRAME_MS - 10);
        assert_refused_and_closed(client, SMV_TIMEOUT, "200");
        honest_client_check_for(&honest, 300);
        assert_true(raw_client_call(idle, "op=s", "status")->ok);
        raw_client_close(idle);
        free(frame.at);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

static void disconnects_a_client_that_does_not_read_its_replies(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bytes_out asks = { 0 };
        struct honest_client honest;
        struct raw_client *client;
        uint32_t asked = 0;

        START_DAEMON(fixture, MANY_CONNECTS, "--reply-bytes", "16K");
        honest = honest_client_start(fixture);
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < 100; i++)
                frame_put(&asks, "op=s id=u", "status", 10u);
        while (asked < 1000000 && send(client->fd, asks.at, asks.count, MSG_NOSIGNAL) > 0) {
                asked += 100;
                honest_client_check(&honest);
        }
        printf("# hung up after %u questions\n", asked);
        assert_true(asked < 1000000);
        raw_client_await_hangup(client);
        raw_client_close(client);
        free(asks.at);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/*
 * A ring that is not read fills with ENDs.  Those that find no room wait, and nothing else does:
 * slots and blocks are free, and other clients are served.  A socket takes more than a ring, so
 * with a socket perhaps no END has to wait.  Two streams have both places until all are cancelled,
 * otherwise one might be done before.
 */
static void ends_wait_for_space_in_an_unread_ring_and_block_nothing_else(void **state)
{
        static const uint32_t prompt[] = { 'h', 'i' };
        const struct want small = { .prompt = "Tea", .max_tokens = 5, .ignore_eos = true };
        uint64_t end = now_ms() + TIMEOUT_MS, before, waiting;
        struct daemon_fixture *fixture = *state;
        struct bytes_out asks = { 0 };
        struct raw_client *client, *other;
        uint32_t first[2];

        START_ENDLESS_DAEMON(fixture, MANY_CONNECTS, "--ring-bytes", "64K", "--uid-requests",
                             "2000", "--requests", "2000", "--max-seqs", "2", "--reply-bytes", "1M",
                             "--stall-preempt-ms", "3600000");
        client = raw_client_greet(fixture);
        other = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        for (size_t i = 0; i < 2; i++) {
                first[i] = raw_client_generate(other, &endless);
                while (!raw_client_stream(other, first[i]))
                        raw_client_poll(other, 100);
        }
        before = raw_client_status(other, "streams_ended");
        for (uint32_t id = FIRST; id < FIRST + 2 * ENDS; id += 2) {
                frame_put(&asks, "op=s id=u tokens=I max_tokens=u ignore_eos=y", "generate", id,
                          prompt, (size_t)2, 1000, 1);
                frame_put(&asks, "op=s id=u stream=u", "cancel", id + 1, id);
        }
        /* Not with raw_client_send(), which reads. */
        assert_int_equal(send(client->fd, asks.at, asks.count, MSG_NOSIGNAL), asks.count);
        free(asks.at);
        while (raw_client_status(other, "streams_ended") - before < ENDS) {
                assert_true(now_ms() < end);
                sleep_ms(10);
        }
        for (size_t i = 0; i < 2; i++) {
                raw_client_call(other, "op=s stream=u", "cancel", first[i]);
                assert_int_equal(raw_client_await_end(other, first[i])->end.reason,
                                 SMV_END_CANCELLED);
        }
        waiting = raw_client_status(other, "requests.ends_unsent");
        printf("# %u ENDs wait\n", (unsigned)waiting);
        assert_true(waiting > 0 || !client->ring);
        while (raw_client_status(other, "blocks.in_use")) /* they are counted a moment later */
                assert_true(now_ms() < end);
        assert_int_equal(raw_client_complete(other, &small)->token_count, 5);
        for (uint32_t id = FIRST; id < FIRST + 2 * ENDS; id += 2) {
                assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
                assert_true(raw_client_await_reply(client, id)->ok);
        }
        assert_int_equal(client->stream_count, ENDS);
        raw_client_close(other);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(limits_connections_of_a_user),
                DAEMON_TEST(limits_connections_of_all_users),
                DAEMON_TEST(limits_requests_of_a_user_over_all_connections),
                DAEMON_TEST(limits_requests_of_all_users),
                DAEMON_TEST(limits_prompt_bytes_of_a_user),
                DAEMON_TEST(a_private_ring_takes_no_ring_bytes),
                DAEMON_TEST(disconnects_a_client_that_sends_no_hello_in_time),
                DAEMON_TEST(disconnects_a_client_that_sends_a_frame_too_slowly),
                DAEMON_TEST(disconnects_a_client_that_does_not_read_its_replies),
                DAEMON_TEST(ends_wait_for_space_in_an_unread_ring_and_block_nothing_else),
        };
        /* Limits on connecting and on the beginnings of frames belong to the socket, whatever
         * carries records. */
        const struct CMUnitTest with_a_ring[] = {
                DAEMON_TEST(limits_connections_of_a_user),
                DAEMON_TEST(limits_requests_of_a_user_over_all_connections),
                DAEMON_TEST(limits_requests_of_all_users),
                DAEMON_TEST(limits_shared_rings_of_a_user),
                DAEMON_TEST(disconnects_a_client_that_does_not_read_its_replies),
                DAEMON_TEST(ends_wait_for_space_in_an_unread_ring_and_block_nothing_else),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        if (raw_client_transport() != RAW_CLIENT_SOCKET)
                return cmocka_run_group_tests(with_a_ring, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
