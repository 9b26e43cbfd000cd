/*
 * Replies that the loop does not make itself: they wait for one another, and delay no other
 * work.
 */
#include "tests/unit/edge-text-worker.h"

static void long_replies_queue_while_short_replies_pass_between(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        uint32_t longs = 0, smalls = 0, between = 0, asked = 0, reads = 0;
        struct client client;

        (void)state;
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        for (uint32_t id = 2; id < 7; id++)
                ask_letters(&client, "tokenize", id, LONG_TEXT);
        while (longs < 5 || smalls < asked) {
                struct buffer *in = &client.in;
                struct wire_problem problem;
                const uint8_t *body;
                size_t bytes;
                ssize_t n;

                while (buffer_count(in) && !wire_frame(in->bytes + in->start, buffer_count(in),
                                                       64 << 20, &bytes, &body, &problem)) {
                        uint32_t id = wire_peek_id(body, bytes - 4);

                        if (id < 100) {
                                assert_int_equal(id, 2 + longs);
                                longs++;
                                expect_ids(&client, id, LONG_TEXT);
                                continue;
                        }
                        assert_int_equal(id, 100 + smalls);
                        smalls++;
                        between += longs > 0 && longs < 5;
                        buffer_take(in, bytes);
                }
                if (longs == 5 && smalls == asked)
                        break;
                if (reads++ % 64 == 0 && longs < 5)
                        ask_plain(&client, "status", 100 + asked++);
                assert_int_equal(
                        poll(&(struct pollfd){ .fd = client.fd, .events = POLLIN }, 1, WAIT_MS), 1);
                assert_int_equal(buffer_reserve(in, 5000), 0);
                n = read(client.fd, in->bytes + in->end, 5000);
                assert_true(n > 0);
                in->end += (size_t)n;
        }
        assert_true(between > 0);
        ENGINE_UNTIL(fixture, charge_of(&client, "requests") == 0);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void frees_unread_long_replies_if_the_client_disconnects(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;

        (void)state;
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &other);
        say_hello(fixture, &client);
        for (uint32_t id = 2; id < 7; id++)
                ask_letters(&client, "tokenize", id, LONG_TEXT);
        assert_true(fill(&client));
        while (charge_of(&other, "requests") != 4) /* one is on its way, four wait for it */
                usleep(1000);
        assert_true(charge_of(&other, "prompt_bytes") > 4 * LONG_TEXT);
        ask_cancel(&client, 9, 6); /* which was made already, and is not wanted now */
        client_close(&client);
        ENGINE_UNTIL(fixture, charge_of(&other, "requests") == 0);
        assert_int_equal(charge_of(&other, "prompt_bytes"), 0);
        client_close(&other);
        edge_fixture_close(fixture);
}

static void can_cancel_a_queued_long_reply_which_keeps_its_id(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        for (uint32_t id = 2; id < 4; id++) {
                ask_letters(&client, "tokenize", id, LONG_TEXT);
                do_job(fixture);
                do_job(fixture);
        }
        ask_text(&client, "tokenize", 3, "text", "hello", 5);
        ask_cancel(&client, 5, 3);
        expect_ids(&client, 2, LONG_TEXT);
        assert_int_equal(reply_code(&client, 3), SMV_DUP_ID);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_int_equal(reply_code(&client, 3), SMV_CANCELLED);
        expect_nothing_held(fixture, &client);
        client_close(&client);
        edge_fixture_close(fixture);
}

/* The waker rings just now, for longer than it ever would: nothing of ours goes into its bell. */
static void a_long_reply_waits_until_the_waker_releases_the_send_lock(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct channel *channel;
        struct ringer ringer;
        struct client other;

        (void)state;
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &other);
        say_hello_with(fixture, &ringer,
                       (struct greeting){ .transport = "ring", .doorbell = "kick" });
        channel = generate(fixture, &ringer, 5)->channel;
        for (uint32_t i = 0; i < 3; i++) {
                while (atomic_load(
                        &channel->send_lock.word)) /* the loop has the last reply to let go */
                        usleep(100);
                assert_true(send_lock_take(&channel->send_lock, SEND_LOCK_RING));
                ask_letters(&ringer.client, "tokenize", 7, LONG_TEXT);
                ask_plain(&ringer.client, "status", 8);
                while (charge_of(&other, "requests") != 1)
                        usleep(1000);
                assert_true(is_silent(&ringer.client, 20));
                assert_int_equal(send(channel->socket, "\0\0\0\0", 4, 0), 4);
                assert_int_equal(send_lock_release(&channel->send_lock), SEND_LOCK_CALL);
                assert_int_equal(send_lock_release(&channel->send_lock), 0);
                wake(fixture, channel);
                while (!buffer_count(&ringer.client.in))
                        assert_true(fill(&ringer.client));
                assert_memory_equal(ringer.client.in.bytes + ringer.client.in.start, "\0\0\0\0", 4);
                buffer_take(&ringer.client.in, 4);
                assert_int_equal(reply_code(&ringer.client, 8), SMV_OK);
                expect_ids(&ringer.client, 7, LONG_TEXT);
        }
        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
        while (charge_of(&other, "requests"))
                usleep(1000);
        expect_ring_end(&ringer, 5);
        ringer_close(&ringer);
        client_close(&other);
        edge_fixture_close(fixture);
}

/* Made one behind another while the first is unread: each must find its way without being asked. */
static void sends_queued_long_replies_one_after_another_with_kick_doorbells(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;
        struct client other;

        (void)state;
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &other);
        say_hello_with(fixture, &ringer,
                       (struct greeting){ .transport = "ring", .doorbell = "kick" });
        ask_letters(&ringer.client, "tokenize", 2, LONG_TEXT);
        for (uint32_t id = 3; id < 9; id++)
                ask_letters(&ringer.client, "tokenize", id, id % 2 ? 5 : LONG_TEXT);
        while (charge_of(&other, "requests") != 6)
                usleep(1000);
        for (uint32_t id = 2; id < 9; id++)
                expect_ids(&ringer.client, id, id == 2 || id % 2 == 0 ? LONG_TEXT : 5);
        while (charge_of(&other, "requests"))
                usleep(1000);
        assert_int_equal(charge_of(&other, "prompt_bytes"), 0);
        ringer_close(&ringer);
        client_close(&other);
        edge_fixture_close(fixture);
}

static void sends_queued_replies_to_a_half_closed_client(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;

        (void)state;
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &other);
        say_hello(fixture, &client);
        ask_letters(&client, "tokenize", 2, LONG_TEXT);
        for (uint32_t id = 3; id < 9; id++)
                ask_letters(&client, "tokenize", id, 5);
        shutdown(client.fd, SHUT_WR);
        while (charge_of(&other, "requests") != 6)
                usleep(1000);
        for (uint32_t id = 2; id < 9; id++)
                expect_ids(&client, id, id == 2 ? LONG_TEXT : 5);
        assert_true(is_closed(&client));
        client_close(&client);
        expect_nothing_held(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

/* Over a socket a stream's records have to get through between long replies, too. */
static void sends_records_of_a_stream_between_long_replies(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;
        uint32_t longs = 0;

        (void)state;
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &other);
        say_hello(fixture, &client);
        ask_generate(&client, 50);
        assert_int_equal(reply_code(&client, 50), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        for (uint32_t id = 2; id < 6; id++) {
                ask_letters(&client, "tokenize", id, LONG_TEXT);
                do_job(fixture);
                do_job(fixture);
        }
        while (charge_of(&other, "requests") != 4) /* the stream, and three that wait */
                usleep(1000);
        assert_true(say(fixture, fixture->live[0], 65));
        for (;;) {
                struct wire_problem problem;
                struct buffer *in = &client.in;
                const uint8_t *body;
                size_t bytes;

                while (!buffer_count(in) || wire_frame(in->bytes + in->start, buffer_count(in),
                                                       64 << 20, &bytes, &body, &problem))
                        assert_true(fill(&client));
                if (body[0] == 0x81) /* {records} */
                        break;
                expect_ids(&client, 2 + longs++, LONG_TEXT);
        }
        assert_int_equal(longs, 1);
        assert_int_equal(next_record(&client)->stream, 50);
        while (longs < 4)
                expect_ids(&client, 2 + longs++, LONG_TEXT);
        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
        assert_int_equal(expect_end(&client, 50)->reason, SMV_END_LENGTH);
        client_close(&client);
        expect_nothing_held(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(long_replies_queue_while_short_replies_pass_between),
                cmocka_unit_test(frees_unread_long_replies_if_the_client_disconnects),
                cmocka_unit_test(can_cancel_a_queued_long_reply_which_keeps_its_id),
                cmocka_unit_test(a_long_reply_waits_until_the_waker_releases_the_send_lock),
                cmocka_unit_test(sends_queued_long_replies_one_after_another_with_kick_doorbells),
                cmocka_unit_test(sends_queued_replies_to_a_half_closed_client),
                cmocka_unit_test(sends_records_of_a_stream_between_long_replies),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
