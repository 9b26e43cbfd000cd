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

#include "tests/e2e/honest.h"

static const uint32_t ours[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

static void put_frame(struct bytes_out *to, const void *body, size_t bytes)
{
        const uint8_t word[4] = { bytes & 255, bytes >> 8 & 255, bytes >> 16 & 255, bytes >> 24 };

        bytes_put(to, word, 4);
        bytes_put(to, body, bytes);
}

/* A client of its own sends the bytes: it gets one reply, BAD_FRAME, and the connection ends. */
static void assert_fatal(const struct house *house, const struct bytes_out *bytes, uint64_t id,
                         const char *words)
{
        struct talk *talk = talk_greet(house);
        const struct reply *reply;

        talk_send(talk, bytes->at, bytes->count);
        talk_hangup(talk);
        assert_int_equal(talk->reply_count, 2); /* the first one is hello's */
        reply = talk->replies[1];
        if (reply->ok || reply->code != SMV_BAD_FRAME || reply->id != id ||
            !strstr(reply->message, words))
                fail_msg("%s: the reply is %u \"%s\" \"%s\"", words, (unsigned)reply->id,
                         reply->error, reply->message);
        assert_int_equal(talk->stream_count, 0);
        talk_close(talk);
}

static void what_is_no_map_ends_the_connection_after_one_reply(void **state)
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
        struct house *house = *state;
        struct honest honest;

        HOUSE(house, FAST);
        honest = honest_begin(house);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct bytes_out bytes = { 0 };

                put_frame(&bytes, cases[i].body, cases[i].bytes);
                assert_fatal(house, &bytes, cases[i].id, cases[i].words);
                free(bytes.at);
                honest_look(&honest);
        }
        honest_end(&honest);
        house_stop(house);
}

/* The length word alone is enough; the daemon never waits for the bytes that it announces. */
static void frame_too_long_is_refused_from_its_length_alone(void **state)
{
        static const uint32_t lengths[] = { (64 << 10) + 1, 1 << 20, INT32_MAX, UINT32_MAX };
        struct house *house = *state;
        struct honest honest;

        HOUSE(house, FAST, "--frame-bytes", "64K");
        honest = honest_begin(house);
        for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
                struct bytes_out bytes = { 0 };

                bytes_put(&bytes, &lengths[i], 4);
                assert_fatal(house, &bytes, 0, "65536");
                free(bytes.at);
                honest_look(&honest);
        }
        honest_end(&honest);
        house_stop(house);
}

/* A frame of exactly the limit is a frame: the prompt in it is too long. */
static void frame_of_the_whole_limit_is_taken(void **state)
{
        static char text[64 << 10];
        struct bytes_out empty = { 0 }, frame = { 0 };
        struct house *house = *state;
        struct talk *talk;

        HOUSE(house, FAST, "--frame-bytes", "64K");
        talk = talk_greet(house);
        memset(text, 'a', sizeof(text));
        frame_put(&empty, "op=s id=u prompt=t", "generate", 9u, text, (size_t)32768);
        frame_put(&frame, "op=s id=u prompt=t", "generate", 9u, text,
                  sizeof(text) - (empty.count - 4 - 32768));
        assert_int_equal(frame.count, sizeof(text) + 4);
        talk_send(talk, frame.at, frame.count);
        assert_int_equal(talk_reply(talk, 9)->code, SMV_TOO_LONG);
        free(empty.at);
        free(frame.at);
        talk_close(talk);
        house_stop(house);
}

/* 32 levels and 64 keys are read, and refused for their content; with one more it is no frame. */
static void depth_and_keys_have_their_limits_to_the_one(void **state)
{
        struct house *house = *state;
        struct honest honest;
        struct talk *talk;

        HOUSE(house, FAST);
        honest = honest_begin(house);
        talk = talk_greet(house);
        for (uint32_t levels = 31; levels <= 32; levels++) {
                struct bytes_out nest = { 0 }, frame = { 0 };

                for (uint32_t i = 0; i < levels - 1; i++)
                        bytes_put(&nest, "\x91", 1);
                bytes_put(&nest, "\x90", 1);
                frame_put(&frame, "op=s id=u nest=x", "status", 5u, nest.at, nest.count);
                if (levels == 31) { /* with the map these are 32 */
                        talk_send(talk, frame.at, frame.count);
                        assert_int_equal(talk_reply(talk, 5)->code, SMV_BAD_FIELD);
                } else {
                        assert_fatal(house, &frame, 5, "32");
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
                        talk_send(talk, frame.at, frame.count);
                        assert_int_equal(talk_reply(talk, 5)->code, SMV_BAD_FIELD);
                } else {
                        assert_fatal(house, &frame, 5, "64");
                }
                free(map.at);
                free(frame.at);
        }
        talk_close(talk);
        honest_end(&honest);
        house_stop(house);
}

/* A bomb: many arrays, each of which declares all the bytes that are left.  It must cost no more
 * than its bytes. */
static void nested_claims_cost_nothing(void **state)
{
        struct house *house = *state;
        struct honest honest;
        uint8_t *body = malloc(1 << 20);
        struct bytes_out bytes = { 0 };
        uint64_t start;

        HOUSE(house, FAST);
        honest = honest_begin(house);
        memset(body, 0x91, 1 << 20);
        body[0] = 0x81;
        put_frame(&bytes, body, 1 << 20);
        start = now_ms();
        assert_fatal(house, &bytes, 0, "32");
        assert_true(now_ms() - start < 5000);
        honest_look(&honest);
        free(body);
        free(bytes.at);
        honest_end(&honest);
        house_stop(house);
}

static void keys_that_are_no_names_are_refused_and_shown_safely(void **state)
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
        struct house *house = *state;
        struct talk *talk;

        HOUSE(house, FAST);
        talk = talk_greet(house);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct bytes_out map = { 0 }, frame = { 0 };
                const struct reply *reply;

                bytes_put(&map, "\x83\xa2op\xa6status\xa2id\5", 15);
                bytes_put(&map, cases[i].pair, cases[i].bytes);
                put_frame(&frame, map.at, map.count);
                talk_send(talk, frame.at, frame.count);
                reply = talk_reply(talk, 5);
                assert_int_equal(reply->code, SMV_BAD_FIELD);
                assert_string_equal(reply->field, cases[i].field);
                free(map.at);
                free(frame.at);
        }
        talk_close(talk);
        house_stop(house);
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

static void assert_answered(struct talk *talk, const struct stream *alone)
{
        assert_true(talk_reply(talk, 1)->ok);
        assert_int_equal(reply_uint(talk_reply(talk, 2), "tokens.1"), 'i');
        assert_true(talk_reply(talk, 3)->ok);
        assert_true(talk_reply(talk, 4)->ok);
        assert_same_stream(talk_end(talk, 3), alone);
        assert_int_equal(talk->reply_count, 4);
        assert_int_equal(talk->stream_count, 1);
}

static void conversation_may_be_cut_anywhere(void **state)
{
        const struct want want = { .prompt = "Tea", .max_tokens = 5, .ignore_eos = true };
        struct bytes_out all = conversation();
        struct house *house = *state;
        struct stream *alone;
        struct honest honest;
        struct talk *talk;

        HOUSE(house, FAST);
        talk = talk_greet(house);
        alone = stream_copy(talk_whole(talk, &want));
        talk_close(talk);
        honest = honest_begin(house);
        for (size_t cut = 0; cut < all.count; cut++) {
                talk = talk_open(house);
                talk_send(talk, all.at, cut);
                sleep_ms(1); /* so that it is read as it was cut */
                talk_send(talk, all.at + cut, all.count - cut);
                assert_answered(talk, alone);
                talk_close(talk);
                honest_look(&honest);
        }
        talk = talk_open(house);
        for (size_t at = 0; at < all.count; at++) {
                talk_send(talk, all.at + at, 1);
                honest_look_for(&honest, 1);
        }
        assert_answered(talk, alone);
        talk_close(talk);
        printf("# cut at %zu places\n", all.count);
        stream_free(alone);
        free(all.at);
        honest_end(&honest);
        house_stop(house);
}

/* The same, but the client is gone after that byte. */
static void conversation_may_end_anywhere(void **state)
{
        struct bytes_out all = conversation();
        struct house *house = *state;
        struct honest honest;

        HOUSE(house, FAST);
        honest = honest_begin(house);
        for (size_t cut = 0; cut <= all.count; cut++) {
                struct talk *talk = talk_open(house);

                talk_send(talk, all.at, cut);
                if (cut & 1)
                        shutdown(talk->fd, SHUT_WR);
                if (cut & 2)
                        sleep_ms(1);
                talk_close(talk);
                honest_look(&honest);
        }
        free(all.at);
        honest_end(&honest);
        house_stop(house);
}

static void random_bytes_do_no_harm(void **state)
{
        uint32_t times = scaled(300, 10000);
        struct house *house = *state;
        struct honest honest;

        HOUSE(house, FAST);
        honest = honest_begin(house);
        for (uint32_t i = 0; i < times; i++) {
                struct bytes_out all = conversation();
                struct talk *talk = talk_open(house);

                for (uint32_t flips = random_below(4); flips--;)
                        all.at[random_below((uint32_t)all.count)] ^= 1u << random_below(8);
                talk_send(talk, all.at, random_below(8) ? all.count : random_below(64));
                if (random_below(2))
                        talk_turn(talk, 5);
                talk_close(talk);
                free(all.at);
                honest_look(&honest);
        }
        honest_end(&honest);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(what_is_no_map_ends_the_connection_after_one_reply),
                STORY(frame_too_long_is_refused_from_its_length_alone),
                STORY(frame_of_the_whole_limit_is_taken),
                STORY(depth_and_keys_have_their_limits_to_the_one),
                STORY(nested_claims_cost_nothing),
                STORY(keys_that_are_no_names_are_refused_and_shown_safely),
                STORY(conversation_may_be_cut_anywhere),
                STORY(conversation_may_end_anywhere),
                STORY(random_bytes_do_no_harm),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
