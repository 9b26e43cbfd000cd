/* The quotas of one user and that they are given back; and how long one client may take. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/honest.h"

#define ENDS     1200 /* of 64 bytes each: more than the smallest ring */
#define FIRST    10   /* the first of their ids */
#define HELLO_MS 1500 /* a client that says hello may not be held up this long */
#define FRAME_MS 200

static const struct want endless = { .prompt = "Once", .max_tokens = ENDLESS, .ignore_eos = true };

/* The one reply without an id with which the daemon refuses a client or hangs up. */
static void assert_turned_away(struct talk *talk, enum smv_code code, const char *words)
{
        const struct reply *reply;

        talk_hangup(talk);
        assert_true(talk->reply_count > 0);
        reply = talk->replies[talk->reply_count - 1];
        if (reply->ok || reply->code != code || reply->id || !strstr(reply->message, words))
                fail_msg("wanted %d \"%s\": %u %d \"%s\"", (int)code, words, (unsigned)reply->id,
                         (int)reply->code, reply->message);
        talk_close(talk);
}

static void connections_of_a_user_are_bounded(void **state)
{
        struct house *house = *state;
        struct talk *talks[5];

        HOUSE(house, FAST, "--uid-connections", "5");
        for (size_t i = 0; i < 5; i++)
                talks[i] = talk_greet(house);
        assert_int_equal(talk_status(talks[0], "charges.0.connections"), 5);
        for (int i = 0; i < 3; i++)
                assert_turned_away(talk_open(house), SMV_QUOTA, "connections");
        assert_int_equal(talk_status(talks[0], "charges.0.connections"), 5);
        assert_true(talk_status(talks[0], "connections.refused") >= 3);
        for (size_t i = 1; i < 5; i++)
                talk_close(talks[i]);
        while (talk_status(talks[0], "connections.open") > 1)
                sleep_ms(5);
        talk_close(talk_greet(house)); /* there is room again */
        talk_close(talks[0]);
        house_stop(house);
}

static void connections_of_all_are_bounded(void **state)
{
        struct house *house = *state;
        struct talk *talks[4];

        HOUSE(house, FAST, "--connections", "4");
        for (size_t i = 0; i < 4; i++)
                talks[i] = talk_greet(house);
        assert_turned_away(talk_open(house), SMV_BUSY, "connections");
        for (size_t i = 0; i < 4; i++)
                talk_close(talks[i]);
        sleep_ms(100);
        house_stop(house);
}

/* Twelve connects at once and four a second, however long the test takes to make twenty. */
static void connecting_too_often_is_refused_for_a_while(void **state)
{
        struct house *house = *state;
        struct talk *talks[20];
        uint32_t refused = 0;
        uint64_t begin;

        HOUSE(house, "--uid-connects-burst", "12", "--uid-connects-per-s", "4");
        begin = now_ms();
        for (size_t i = 0; i < 20; i++)
                talks[i] = talk_open(house);
        for (size_t i = 0; i < 20; i++) {
                static const uint32_t versions[] = { 0, 0 };

                talk_say(talks[i], "op=s id=u versions=I", "hello", 1u, versions, (size_t)2);
                while (!talks[i]->reply_count)
                        assert_true(talk_turn(talks[i], 10000));
                refused += !talks[i]->replies[0]->ok;
                if (!talks[i]->replies[0]->ok)
                        assert_int_equal(talks[i]->replies[0]->code, SMV_QUOTA);
        }
        printf("# %u of 20 were refused\n", refused);
        assert_in_range(20 - refused, 1, 12 + (now_ms() - begin) * 4 / 1000 + 1);
        for (size_t i = 0; i < 20; i++)
                talk_close(talks[i]);
        sleep_ms(1500); /* the bucket fills: six more */
        for (size_t i = 0; i < 3; i++)
                talk_close(talk_greet(house));
        sleep_ms(1000);
        house_stop(house);
}

static void requests_of_a_user_are_bounded_over_his_connections(void **state)
{
        struct house *house = *state;
        struct talk *a, *b;
        const struct reply *reply;
        uint32_t first, id = 0;

        ENDLESS_HOUSE(house, FAST, "--uid-requests", "10", "--max-seqs", "4");
        a = talk_greet(house);
        b = talk_greet(house);
        first = a->last_id + 1;
        for (int i = 0; i < 5; i++) {
                id = talk_generate(a, &endless);
                assert_true(talk_reply(a, id)->ok);
                id = talk_generate(b, &endless);
                assert_true(talk_reply(b, id)->ok);
        }
        assert_int_equal(talk_status(a, "charges.0.requests"), 10);
        assert_true(talk_status(a, "charges.0.prompt_bytes") > 10 * UINT64_C(4) * ENDLESS);
        assert_int_equal(talk_status(a, "charges.0.ring_bytes"), 2 * 256 << 10);
        /* An accepted request is not seen by the engine at once. */
        for (int i = 0; i < 2000 && talk_status(a, "requests.waiting") != 6; i++)
                sleep_ms(2);
        assert_int_equal(talk_status(a, "requests.running"), 4);
        assert_int_equal(talk_status(a, "requests.waiting"), 6);
        for (int i = 0; i < 3; i++) {
                id = talk_generate(i & 1 ? a : b, &endless);
                reply = talk_reply(i & 1 ? a : b, id);
                assert_int_equal(reply->code, SMV_QUOTA);
                assert_non_null(strstr(reply->message, "10"));
                assert_non_null(strstr(reply->message, "requests"));
        }
        /* One that waits and one that runs are cancelled, so there is room for two. */
        talk_ask(a, "op=s stream=u", "cancel", first);
        assert_int_equal(talk_end(a, first)->end.reason, SMV_END_CANCELLED);
        talk_ask(a, "op=s stream=u", "cancel", first + 4);
        assert_int_equal(talk_end(a, first + 4)->end.reason, SMV_END_CANCELLED);
        while (talk_status(a, "charges.0.requests") > 8)
                sleep_ms(2);
        talk_close(b);
        talk_close(a);
        house_stop(house);
}

static void requests_of_all_are_bounded(void **state)
{
        struct house *house = *state;
        struct talk *talk;
        uint32_t id;

        ENDLESS_HOUSE(house, FAST, "--requests", "6");
        talk = talk_greet(house);
        for (int i = 0; i < 6; i++) {
                id = talk_generate(talk, &endless);
                assert_true(talk_reply(talk, id)->ok);
        }
        id = talk_generate(talk, &endless);
        assert_int_equal(talk_reply(talk, id)->code, SMV_BUSY);
        talk_close(talk);
        house_stop(house);
}

static void prompt_bytes_of_a_user_are_bounded(void **state)
{
        static char text[200 << 10];
        struct house *house = *state;
        const struct reply *reply;
        struct talk *talk;
        uint32_t id;

        HOUSE(house, FAST, "--uid-prompt-bytes", "100K");
        talk = talk_greet(house);
        memset(text, 'a', sizeof(text));
        id = ++talk->last_id; /* its ids alone would be more than allowed */
        talk_say(talk, "op=s id=u prompt=t", "generate", id, text, (size_t)40000);
        reply = talk_reply(talk, id);
        assert_int_equal(reply->code, SMV_QUOTA);
        assert_non_null(strstr(reply->message, "102400"));
        assert_int_equal(talk_status(talk, "charges.0.prompt_bytes"), 0);
        id = ++talk->last_id;
        talk_say(talk, "op=s id=u prompt=t max_tokens=u", "generate", id, text, (size_t)1000, 10u);
        assert_true(talk_reply(talk, id)->ok);
        talk_end(talk, id);
        talk_close(talk);

        /* The length of this frame is over the limit on waiting bytes. */
        talk = talk_greet(house);
        talk_say(talk, "op=s id=u text=t", "tokenize", 7u, text, sizeof(text));
        assert_turned_away(talk, SMV_QUOTA, "102400");
        house_stop(house);
}

/* A private ring, whose reader is the daemon itself, is made with the first stream. */
static void rings_of_a_user_are_bounded(void **state)
{
        const struct want want = { .prompt = "Once", .max_tokens = 5, .ignore_eos = true };
        struct house *house = *state;
        struct talk *talks[3];
        uint32_t id;

        HOUSE(house, FAST, "--ring-bytes", "64K", "--uid-ring-bytes", "128K");
        for (size_t i = 0; i < 3; i++)
                talks[i] = talk_greet_by(house, TALK_SOCKET);
        assert_int_equal(talk_whole(talks[0], &want)->token_count, 5);
        assert_int_equal(talk_whole(talks[1], &want)->token_count, 5);
        id = talk_generate(talks[2], &want);
        assert_int_equal(talk_reply(talks[2], id)->code, SMV_QUOTA);
        talk_close(talks[0]);
        while (talk_status(talks[2], "charges.0.ring_bytes") > 64 << 10)
                sleep_ms(2);
        assert_int_equal(talk_whole(talks[2], &want)->token_count, 5);
        talk_close(talks[1]);
        talk_close(talks[2]);
        house_stop(house);
}

/* A shared ring is made with hello, so the bound applies there. */
static void shared_rings_of_a_user_are_bounded(void **state)
{
        static const uint32_t versions[] = { 0, 0 };
        const struct want want = { .prompt = "Once", .max_tokens = 5, .ignore_eos = true };
        struct talk *first, *second, *refused, *content;
        struct house *house = *state;
        const struct reply *reply;

        HOUSE(house, FAST, "--ring-bytes", "64K", "--uid-ring-bytes", "128K");
        first = talk_greet(house);
        second = talk_greet(house);
        assert_int_equal(talk_status(first, "charges.0.ring_bytes"), 128 << 10);
        refused = talk_open(house);
        reply = talk_hello(refused, talk_transport());
        assert_int_equal(reply->code, SMV_QUOTA);
        assert_non_null(strstr(reply->message, "131072"));
        talk_close(refused);
        content = talk_open(house);
        reply = talk_ask(content, "op=s versions=I transport=s", "hello", versions, (size_t)2,
                         "auto");
        assert_true(reply->ok && !content->ring);
        assert_int_equal(talk_reply(content, talk_generate(content, &want))->code, SMV_QUOTA);

        talk_close(first);
        while (talk_status(content, "charges.0.ring_bytes") > 64 << 10)
                sleep_ms(2);
        first = talk_greet(house); /* there is room again */
        assert_int_equal(talk_whole(first, &want)->token_count, 5);
        assert_int_equal(talk_whole(second, &want)->token_count, 5);
        talk_close(first);
        talk_close(second);
        talk_close(content);
        house_stop(house);
}

static void hello_that_does_not_come_is_not_waited_for(void **state)
{
        struct house *house = *state;
        struct honest honest;
        struct talk *silent, *slow;
        uint64_t start;

        HOUSE(house, FAST, "--hello-ms", "1500");
        honest = honest_begin(house);
        start = now_ms();
        silent = talk_open(house);
        slow = talk_open(house);
        talk_send(slow, "\x40\x1f\0\0", 4); /* a byte at a time is no hello */
        while (!slow->hung_up && talk_send(slow, "\0", 1)) {
                honest_look_for(&honest, 20);
                talk_turn(slow, 0);
                if (slow->reply_count)
                        break;
        }
        talk_hangup(slow);
        talk_close(slow);
        assert_turned_away(silent, SMV_TIMEOUT, "1500");
        assert_true(now_ms() - start >= HELLO_MS - 10);
        honest_end(&honest);
        house_stop(house);
}

static void frame_that_dribbles_is_not_waited_for(void **state)
{
        struct house *house = *state;
        struct bytes_out frame = { 0 };
        struct honest honest;
        struct talk *talk, *idle;
        uint64_t start;
        size_t at = 0;

        HOUSE(house, FAST, "--frame-ms", "200");
        honest = honest_begin(house);
        idle = talk_greet(house); /* between frames a client may take any time */
        talk = talk_greet(house);
        frame_put(&frame, "op=s id=u text=s", "tokenize", 5u,
                  "a text that is long enough for a byte every twenty milliseconds to be too slow");
        for (start = now_ms(); at < frame.count && talk->reply_count == 1; at++) {
                if (!talk_send(talk, frame.at + at, 1))
                        break;
                honest_look_for(&honest, 20);
                talk_turn(talk, 0);
        }
        assert_true(now_ms() - start >= FRAME_MS - 10);
        assert_turned_away(talk, SMV_TIMEOUT, "200");
        honest_look_for(&honest, 300);
        assert_true(talk_ask(idle, "op=s", "status")->ok);
        talk_close(idle);
        free(frame.at);
        honest_end(&honest);
        house_stop(house);
}

static void replies_that_are_not_read_end_the_connection(void **state)
{
        struct house *house = *state;
        struct bytes_out asks = { 0 };
        struct honest honest;
        struct talk *talk;
        uint32_t asked = 0;

        HOUSE(house, FAST, "--reply-bytes", "16K");
        honest = honest_begin(house);
        talk = talk_greet(house);
        for (uint32_t i = 0; i < 100; i++)
                frame_put(&asks, "op=s id=u", "status", 10u);
        while (asked < 1000000 && send(talk->fd, asks.at, asks.count, MSG_NOSIGNAL) > 0) {
                asked += 100;
                honest_look(&honest);
        }
        printf("# hung up after %u questions\n", asked);
        assert_true(asked < 1000000);
        talk_hangup(talk);
        talk_close(talk);
        free(asks.at);
        honest_end(&honest);
        house_stop(house);
}

/*
 * A ring that is not read fills with ENDs.  Those that find no room wait, and nothing else does:
 * slots and blocks are free, and other clients are served.  A socket takes more than a ring, so
 * with a socket perhaps no END has to wait.  Two streams have both places until all are cancelled,
 * otherwise one might be done before.
 */
static void ends_that_find_no_room_wait_to_be_read(void **state)
{
        static const uint32_t prompt[] = { 'h', 'i' };
        const struct want small = { .prompt = "Tea", .max_tokens = 5, .ignore_eos = true };
        uint64_t end = now_ms() + PATIENCE_MS, before, waiting;
        struct house *house = *state;
        struct bytes_out asks = { 0 };
        struct talk *talk, *other;
        uint32_t first[2];

        ENDLESS_HOUSE(house, FAST, "--ring-bytes", "64K", "--uid-requests", "2000", "--requests",
                      "2000", "--max-seqs", "2", "--reply-bytes", "1M", "--grace-ms", "3600000");
        talk = talk_greet(house);
        other = talk_greet_by(house, TALK_SOCKET);
        for (size_t i = 0; i < 2; i++) {
                first[i] = talk_generate(other, &endless);
                while (!talk_stream(other, first[i]))
                        talk_turn(other, 100);
        }
        before = talk_status(other, "ends");
        for (uint32_t id = FIRST; id < FIRST + 2 * ENDS; id += 2) {
                frame_put(&asks, "op=s id=u tokens=I max_tokens=u ignore_eos=y", "generate", id,
                          prompt, (size_t)2, 1000, 1);
                frame_put(&asks, "op=s id=u stream=u", "cancel", id + 1, id);
        }
        /* Not with talk_send(), which reads. */
        assert_int_equal(send(talk->fd, asks.at, asks.count, MSG_NOSIGNAL), asks.count);
        free(asks.at);
        while (talk_status(other, "ends") - before < ENDS) {
                assert_true(now_ms() < end);
                sleep_ms(10);
        }
        for (size_t i = 0; i < 2; i++) {
                talk_ask(other, "op=s stream=u", "cancel", first[i]);
                assert_int_equal(talk_end(other, first[i])->end.reason, SMV_END_CANCELLED);
        }
        waiting = talk_status(other, "requests.ends_waiting");
        printf("# %u ENDs wait\n", (unsigned)waiting);
        assert_true(waiting > 0 || !talk->ring);
        while (talk_status(other, "blocks.held")) /* they are counted a moment later */
                assert_true(now_ms() < end);
        assert_int_equal(talk_whole(other, &small)->token_count, 5);
        for (uint32_t id = FIRST; id < FIRST + 2 * ENDS; id += 2) {
                assert_int_equal(talk_end(talk, id)->end.reason, SMV_END_CANCELLED);
                assert_true(talk_reply(talk, id)->ok);
        }
        assert_int_equal(talk->stream_count, ENDS);
        talk_close(other);
        talk_close(talk);
        house_stop(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(connections_of_a_user_are_bounded),
                STORY(connections_of_all_are_bounded),
                STORY(connecting_too_often_is_refused_for_a_while),
                STORY(requests_of_a_user_are_bounded_over_his_connections),
                STORY(requests_of_all_are_bounded),
                STORY(prompt_bytes_of_a_user_are_bounded),
                STORY(rings_of_a_user_are_bounded),
                STORY(hello_that_does_not_come_is_not_waited_for),
                STORY(frame_that_dribbles_is_not_waited_for),
                STORY(replies_that_are_not_read_end_the_connection),
                STORY(ends_that_find_no_room_wait_to_be_read),
        };
        /* Limits on connecting and on the beginnings of frames belong to the socket, whatever
         * carries records. */
        const struct CMUnitTest with_a_ring[] = {
                STORY(connections_of_a_user_are_bounded),
                STORY(requests_of_a_user_are_bounded_over_his_connections),
                STORY(requests_of_all_are_bounded),
                STORY(shared_rings_of_a_user_are_bounded),
                STORY(replies_that_are_not_read_end_the_connection),
                STORY(ends_that_find_no_room_wait_to_be_read),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        if (talk_transport() != TALK_SOCKET)
                return cmocka_run_group_tests(with_a_ring, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
