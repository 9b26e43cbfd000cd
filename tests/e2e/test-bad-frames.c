/*
 * Bytes that are no frame, or no map, or too much of one.  The client gets one reply that says so,
 * then the connection ends.  A frame is taken however its bytes were cut.  Other clients notice
 * nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"

static const uint32_t ours[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

static void put_frame(struct bytes_out *to, const void *body, size_t bytes)
{
        const uint8_t word[4] = { bytes & 255, bytes >> 8 & 255, bytes >> 16 & 255, bytes >> 24 };

        bytes_put(to, word, 4);
        bytes_put(to, body, bytes);
}

/* A client of its own sends the bytes: it gets one reply, BAD_FRAME, and the connection ends. */
static void assert_fatal(const struct daemon_fixture *fixture, const struct bytes_out *bytes,
                         uint64_t id, const char *words)
{
        struct raw_client *client = raw_client_greet(fixture);
        const struct reply *reply;

        raw_client_send(client, bytes->at, bytes->count);
        raw_client_await_hangup(client);
        assert_int_equal(client->reply_count, 2); /* the first one is hello's */
        reply = client->replies[1];
        if (reply->ok || reply->code != SMV_BAD_FRAME || reply->id != id ||
            !strstr(reply->message, words))
                fail_msg("%s: the reply is %u \"%s\" \"%s\"", words, (unsigned)reply->id,
                         reply->error, reply->message);
        assert_int_equal(client->stream_count, 0);
        raw_client_close(client);
}

static void a_frame_that_is_not_a_map_gets_one_reply_and_ends_the_connection(void **state)
{
        static const struct {
                const char *body, *words;
                size_t bytes;
                uint64_t id;
        } cases[] = {
#define CASE(id, words, body) { body, words, sizeof(body) - 1, id }
#define ID7                   "\xa2id\7"
                CASE(0, "map", "\x93\1\2\3"),
                CASE(0, "map", "\7"),
                CASE(0, "map", "\xa3map"),
                CASE(0, "map", "\xc0"),
                CASE(0, "map", "\xc1"),
                CASE(0, "follow", "\x80\x80"),
                CASE(7, "follow", "\x81" ID7 "\0"),
                CASE(0, "elements", "\x81"),
                CASE(7, "cut off", "\x82" ID7 "\xa2op\xd9"),
                CASE(7, "cut off", "\x82" ID7 "\xa2op\xa6sta"),
                CASE(7, "cut off", "\x82" ID7 "\xa2op\xcd\1"),
                CASE(7, "cut off",
                     "\x82" ID7 "\xa2op\xdb\xff\xff\xff\xff"
                     "a"),
                CASE(7, "cut off",
                     "\x82" ID7 "\xa2op\xc6\xff\xff\xff\xff"
                     "a"),
                CASE(7, "elements", "\x82" ID7 "\xa2op\xdd\xff\xff\xff\xff\1"),
                CASE(7, "elements", "\x82" ID7 "\xa2op\xdf\xff\xff\xff\xff\1\1"),
                CASE(7, "elements", "\x82" ID7 "\xa2op\xdf\x80\0\0\0\1\1"),
                CASE(0, "elements", "\xdf\xff\xff\xff\xff" ID7),
                CASE(0, "elements", "\xdf\x80\0\0\1" ID7),
                CASE(7, "extension", "\x82" ID7 "\xa2op\xd4\1\2"),
                CASE(7, "extension", "\x82" ID7 "\xa2op\xd8\1\2\2\2\2\2\2\2\2\2\2\2\2\2\2\2\2"),
                CASE(7, "extension", "\x82" ID7 "\xa2op\xc7\1\1\1"),
                CASE(7, "extension", "\x82" ID7 "\xa2op\xc9\xff\xff\xff\xff\1"),
                CASE(7, "extension", "\x82" ID7 "\xa2op\xd6\xff\0\0\0\0"), /* a timestamp */
                CASE(7, "c1", "\x82" ID7 "\xa2op\xc1"),
        };
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;

        START_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct bytes_out bytes = { 0 };

                put_frame(&bytes, cases[i].body, cases[i].bytes);
                assert_fatal(fixture, &bytes, cases[i].id, cases[i].words);
                free(bytes.at);
                honest_client_check(&honest);
        }
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* The length word alone is enough; the daemon never waits for the bytes that it announces. */
static void a_frame_that_is_too_long_is_refused_before_its_bytes_arrive(void **state)
{
        static const uint32_t lengths[] = { (64 << 10) + 1, 1 << 20, INT32_MAX, UINT32_MAX };
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;

        START_DAEMON(fixture, MANY_CONNECTS, "--frame-bytes", "64K");
        honest = honest_client_start(fixture);
        for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
                struct bytes_out bytes = { 0 };

                bytes_put(&bytes, &lengths[i], 4);
                assert_fatal(fixture, &bytes, 0, "65536");
                free(bytes.at);
                honest_client_check(&honest);
        }
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* A frame of exactly the limit is a frame: the prompt in it is too long. */
static void accepts_a_frame_of_exactly_the_maximum_size(void **state)
{
        static char text[64 << 10];
        struct bytes_out empty = { 0 }, frame = { 0 };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_DAEMON(fixture, MANY_CONNECTS, "--frame-bytes", "64K");
        client = raw_client_greet(fixture);
        memset(text, 'a', sizeof(text));
        frame_put(&empty, "op=s id=u prompt=t", "generate", 9u, text, (size_t)32768);
        frame_put(&frame, "op=s id=u prompt=t", "generate", 9u, text,
                  sizeof(text) - (empty.count - 4 - 32768));
        assert_int_equal(frame.count, sizeof(text) + 4);
        raw_client_send(client, frame.at, frame.count);
        assert_int_equal(raw_client_await_reply(client, 9)->code, SMV_TOO_LONG);
        free(empty.at);
        free(frame.at);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* 32 levels and 64 keys are read, and refused for their content; with one more it is no frame. */
static void refuses_one_level_or_one_key_more_than_allowed(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        struct raw_client *client;

        START_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        client = raw_client_greet(fixture);
        for (uint32_t levels = 31; levels <= 32; levels++) {
                struct bytes_out nest = { 0 }, frame = { 0 };

                for (uint32_t i = 0; i < levels - 1; i++)
                        bytes_put(&nest, "\x91", 1);
                bytes_put(&nest, "\x90", 1);
                frame_put(&frame, "op=s id=u nest=x", "status", 5u, nest.at, nest.count);
                if (levels == 31) { /* with the map these are 32 */
                        raw_client_send(client, frame.at, frame.count);
                        assert_int_equal(raw_client_await_reply(client, 5)->code, SMV_BAD_FIELD);
                } else {
                        assert_fatal(fixture, &frame, 5, "32");
                }
                free(nest.at);
                free(frame.at);
        }
        for (uint32_t keys = 64; keys <= 65; keys++) {
                struct bytes_out map = { 0 }, frame = { 0 };

                bytes_put(&map, (uint8_t[]){ 0xde, 0, keys }, 3);
                bytes_put(&map, "\xa2id\5\xa2op\xa6status", 14);
                for (uint32_t i = 2; i < keys; i++)
                        bytes_put(&map, (uint8_t[]){ 0xa2, 'k', 'A' + i, 1 }, 4);
                put_frame(&frame, map.at, map.count);
                if (keys == 64) {
                        raw_client_send(client, frame.at, frame.count);
                        assert_int_equal(raw_client_await_reply(client, 5)->code, SMV_BAD_FIELD);
                } else {
                        assert_fatal(fixture, &frame, 5, "64");
                }
                free(map.at);
                free(frame.at);
        }
        raw_client_close(client);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* A bomb: many arrays, each of which declares all the bytes that are left.  It must cost no more
 * than its bytes. */
static void deeply_nested_arrays_are_refused_within_seconds(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        uint8_t *body = malloc(1 << 20);
        struct bytes_out bytes = { 0 };
        uint64_t start;

        START_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        memset(body, 0x91, 1 << 20);
        body[0] = 0x81;
        put_frame(&bytes, body, 1 << 20);
        start = now_ms();
        assert_fatal(fixture, &bytes, 0, "32");
        assert_true(now_ms() - start < 5000);
        honest_client_check(&honest);
        free(body);
        free(bytes.at);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

static void invalid_keys_are_refused_and_escaped_in_the_reply(void **state)
{
        static const struct {
                const char *pair, *field;
                size_t bytes;
        } cases[] = {
                { "\7\1", "", 2 },
                { "\xc0\1", "", 2 },
                { "\xc4\2id\1", "", 5 },
                { "\x90\1", "", 2 },
                { "\xa3"
                  "a\nb\1",
                  "a\\x0ab", 5 },
                { "\xa2\xff\x1b\1", "\\xff\\x1b", 4 },
                { "\xa0\1", "", 2 },
        };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;

        START_DAEMON(fixture, MANY_CONNECTS);
        client = raw_client_greet(fixture);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct bytes_out map = { 0 }, frame = { 0 };
                const struct reply *reply;

                bytes_put(&map, "\x83\xa2op\xa6status\xa2id\5", 15);
                bytes_put(&map, cases[i].pair, cases[i].bytes);
                put_frame(&frame, map.at, map.count);
                raw_client_send(client, frame.at, frame.count);
                reply = raw_client_await_reply(client, 5);
                assert_int_equal(reply->code, SMV_BAD_FIELD);
                assert_string_equal(reply->field, cases[i].field);
                free(map.at);
                free(frame.at);
        }
        raw_client_close(client);
        fixture_stop(fixture);
}

/* A whole conversation, and the replies to it. */
static struct bytes_out conversation(void)
{
        struct bytes_out all = { 0 };

        frame_put(&all, "op=s id=u versions=I", "hello", 1u, ours, (size_t)2);
        bytes_put(&all, "\0\0\0\0", 4); /* a doorbell */
        frame_put(&all, "op=s id=u text=s", "tokenize", 2u, "hi");
        frame_put(&all, "op=s id=u prompt=s max_tokens=u temperature=f ignore_eos=y", "generate",
                  3u, "Tea", 5u, 0.0, 1);
        frame_put(&all, "op=s id=u stream=u", "cancel", 4u, 9u);
        return all;
}

static void assert_answered(struct raw_client *client, const struct stream *alone)
{
        assert_true(raw_client_await_reply(client, 1)->ok);
        assert_int_equal(reply_uint(raw_client_await_reply(client, 2), "tokens.1"), 'i');
        assert_true(raw_client_await_reply(client, 3)->ok);
        assert_true(raw_client_await_reply(client, 4)->ok);
        assert_same_stream(raw_client_await_end(client, 3), alone);
        assert_int_equal(client->reply_count, 4);
        assert_int_equal(client->stream_count, 1);
}

static void frames_may_arrive_split_at_any_byte(void **state)
{
        const struct want want = { .prompt = "Tea", .max_tokens = 5, .ignore_eos = true };
        struct bytes_out all = conversation();
        struct daemon_fixture *fixture = *state;
        struct stream *alone;
        struct honest_client honest;
        struct raw_client *client;

        START_DAEMON(fixture, MANY_CONNECTS);
        client = raw_client_greet(fixture);
        alone = stream_copy(raw_client_complete(client, &want));
        raw_client_close(client);
        honest = honest_client_start(fixture);
        for (size_t cut = 0; cut < all.count; cut++) {
                client = raw_client_connect(fixture);
                raw_client_send(client, all.at, cut);
                sleep_ms(1); /* so that it is read as it was cut */
                raw_client_send(client, all.at + cut, all.count - cut);
                assert_answered(client, alone);
                raw_client_close(client);
                honest_client_check(&honest);
        }
        client = raw_client_connect(fixture);
        for (size_t at = 0; at < all.count; at++) {
                raw_client_send(client, all.at + at, 1);
                honest_client_check_for(&honest, 1);
        }
        assert_answered(client, alone);
        raw_client_close(client);
        printf("# cut at %zu places\n", all.count);
        stream_free(alone);
        free(all.at);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

/* The same, but the client is gone after that byte. */
static void a_client_may_disconnect_after_any_byte(void **state)
{
        struct bytes_out all = conversation();
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;

        START_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        for (size_t cut = 0; cut <= all.count; cut++) {
                struct raw_client *client = raw_client_connect(fixture);

                raw_client_send(client, all.at, cut);
                if (cut & 1)
                        shutdown(client->fd, SHUT_WR);
                if (cut & 2)
                        sleep_ms(1);
                raw_client_close(client);
                honest_client_check(&honest);
        }
        free(all.at);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

static void corrupted_frames_do_not_harm_other_clients(void **state)
{
        uint32_t times = scaled(300, 10000);
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;

        START_DAEMON(fixture, MANY_CONNECTS);
        honest = honest_client_start(fixture);
        for (uint32_t i = 0; i < times; i++) {
                struct bytes_out all = conversation();
                struct raw_client *client = raw_client_connect(fixture);

                for (uint32_t flips = random_below(4); flips--;)
                        all.at[random_below((uint32_t)all.count)] ^= 1u << random_below(8);
                raw_client_send(client, all.at, random_below(8) ? all.count : random_below(64));
                if (random_below(2))
                        raw_client_poll(client, 5);
                raw_client_close(client);
                free(all.at);
                honest_client_check(&honest);
        }
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_frame_that_is_not_a_map_gets_one_reply_and_ends_the_connection),
                DAEMON_TEST(a_frame_that_is_too_long_is_refused_before_its_bytes_arrive),
                DAEMON_TEST(accepts_a_frame_of_exactly_the_maximum_size),
                DAEMON_TEST(refuses_one_level_or_one_key_more_than_allowed),
                DAEMON_TEST(deeply_nested_arrays_are_refused_within_seconds),
                DAEMON_TEST(invalid_keys_are_refused_and_escaped_in_the_reply),
                DAEMON_TEST(frames_may_arrive_split_at_any_byte),
                DAEMON_TEST(a_client_may_disconnect_after_any_byte),
                DAEMON_TEST(corrupted_frames_do_not_harm_other_clients),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
