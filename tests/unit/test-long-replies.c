/*
 * Replies that the loop does not make itself: they wait for one another, and delay no other
 * work.
 */
#include "tests/unit/house-scribe.h"

static void long_replies_wait_for_one_another_and_small_ones_come_between(void **state)
{
        struct house *house = house_new();
        uint32_t longs = 0, smalls = 0, between = 0, asked = 0, reads = 0;
        struct client client;

        (void)state;
        house->config.frame_bytes = 4 << 20;
        house_start(house, true);
        say_hello(house, &client);
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
        ENGINE_UNTIL(house, charge_of(&client, "requests") == 0);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        house_close(house);
}

static void a_client_that_goes_with_long_replies_unread_leaves_nothing(void **state)
{
        struct house *house = house_new();
        struct client client, other;

        (void)state;
        house->config.frame_bytes = 4 << 20;
        house_start(house, true);
        say_hello(house, &other);
        say_hello(house, &client);
        for (uint32_t id = 2; id < 7; id++)
                ask_letters(&client, "tokenize", id, LONG_TEXT);
        assert_true(fill(&client));
        while (charge_of(&other, "requests") != 4) /* one is on its way, four wait for it */
                usleep(1000);
        assert_true(charge_of(&other, "prompt_bytes") > 4 * LONG_TEXT);
        ask_cancel(&client, 9, 6); /* which was made already, and is not wanted now */
        client_close(&client);
        ENGINE_UNTIL(house, charge_of(&other, "requests") == 0);
        assert_int_equal(charge_of(&other, "prompt_bytes"), 0);
        client_close(&other);
        house_close(house);
}

static void a_long_reply_that_waits_can_be_cancelled_and_keeps_its_id(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house->config.frame_bytes = 4 << 20;
        house_start(house, false);
        say_hello(house, &client);
        for (uint32_t id = 2; id < 4; id++) {
                ask_letters(&client, "tokenize", id, LONG_TEXT);
                do_job(house);
                do_job(house);
        }
        ask_text(&client, "tokenize", 3, "text", "hello", 5);
        ask_cancel(&client, 5, 3);
        expect_ids(&client, 2, LONG_TEXT);
        assert_int_equal(reply_code(&client, 3), SMV_DUP_ID);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_int_equal(reply_code(&client, 3), SMV_CANCELLED);
        expect_nothing_held(house, &client);
        client_close(&client);
        house_close(house);
}

/* The waker rings just now, for longer than it ever would: nothing of ours goes into its bell. */
static void a_long_reply_waits_for_the_waker_to_have_rung(void **state)
{
        struct house *house = house_new();
        struct channel *channel;
        struct ringer ringer;
        struct client other;

        (void)state;
        house->config.frame_bytes = 4 << 20;
        house_start(house, true);
        say_hello(house, &other);
        say_hello_with(house, &ringer,
                       (struct greeting){ .transport = "ring", .doorbell = "kick" });
        channel = generate(house, &ringer, 5)->channel;
        for (uint32_t i = 0; i < 3; i++) {
                while (atomic_load(&channel->line.word)) /* the loop has the last reply to let go */
                        usleep(100);
                assert_true(line_take(&channel->line, LINE_RING));
                ask_letters(&ringer.client, "tokenize", 7, LONG_TEXT);
                ask_plain(&ringer.client, "status", 8);
                while (charge_of(&other, "requests") != 1)
                        usleep(1000);
                assert_true(is_silent(&ringer.client, 20));
                assert_int_equal(send(channel->socket, "\0\0\0\0", 4, 0), 4);
                assert_int_equal(line_let_go(&channel->line), LINE_CALL);
                assert_int_equal(line_let_go(&channel->line), 0);
                wake(house, channel);
                while (!buffer_count(&ringer.client.in))
                        assert_true(fill(&ringer.client));
                assert_memory_equal(ringer.client.in.bytes + ringer.client.in.start, "\0\0\0\0", 4);
                buffer_take(&ringer.client.in, 4);
                assert_int_equal(reply_code(&ringer.client, 8), SMV_OK);
                expect_ids(&ringer.client, 7, LONG_TEXT);
        }
        end(house, house->live[0], SMV_END_LENGTH, SMV_OK);
        while (charge_of(&other, "requests"))
                usleep(1000);
        expect_ring_end(&ringer, 5);
        ringer_close(&ringer);
        client_close(&other);
        house_close(house);
}

/* Made one behind another while the first is unread: each must find its way without being asked. */
static void long_replies_follow_each_other_on_a_ring_that_is_kicked(void **state)
{
        struct house *house = house_new();
        struct ringer ringer;
        struct client other;

        (void)state;
        house->config.frame_bytes = 4 << 20;
        house_start(house, true);
        say_hello(house, &other);
        say_hello_with(house, &ringer,
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
        house_close(house);
}

static void replies_that_wait_are_sent_to_who_has_shut_his_sending_side(void **state)
{
        struct house *house = house_new();
        struct client client, other;

        (void)state;
        house->config.frame_bytes = 4 << 20;
        house_start(house, true);
        say_hello(house, &other);
        say_hello(house, &client);
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
        expect_nothing_held(house, &other);
        client_close(&other);
        house_close(house);
}

/* Over a socket a stream's records have to get through between long replies, too. */
static void records_go_between_long_replies(void **state)
{
        struct house *house = house_new();
        struct client client, other;
        uint32_t longs = 0;

        (void)state;
        house->config.frame_bytes = 4 << 20;
        house_start(house, false);
        say_hello(house, &other);
        say_hello(house, &client);
        ask_generate(&client, 50);
        assert_int_equal(reply_code(&client, 50), SMV_OK);
        ENGINE_UNTIL(house, house->live_count == 1);
        for (uint32_t id = 2; id < 6; id++) {
                ask_letters(&client, "tokenize", id, LONG_TEXT);
                do_job(house);
                do_job(house);
        }
        while (charge_of(&other, "requests") != 4) /* the stream, and three that wait */
                usleep(1000);
        assert_true(say(house, house->live[0], 65));
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
        end(house, house->live[0], SMV_END_LENGTH, SMV_OK);
        assert_int_equal(expect_end(&client, 50)->reason, SMV_END_LENGTH);
        client_close(&client);
        expect_nothing_held(house, &other);
        client_close(&other);
        house_close(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(long_replies_wait_for_one_another_and_small_ones_come_between),
                cmocka_unit_test(a_client_that_goes_with_long_replies_unread_leaves_nothing),
                cmocka_unit_test(a_long_reply_that_waits_can_be_cancelled_and_keeps_its_id),
                cmocka_unit_test(a_long_reply_waits_for_the_waker_to_have_rung),
                cmocka_unit_test(long_replies_follow_each_other_on_a_ring_that_is_kicked),
                cmocka_unit_test(replies_that_wait_are_sent_to_who_has_shut_his_sending_side),
                cmocka_unit_test(records_go_between_long_replies),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
