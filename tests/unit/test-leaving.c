/*
 * How a client that maps a ring leaves, or is left: the memory it keeps, and the memory that is
 * taken back, and when.
 */
#include "tests/unit/house-ring.h"

static bool is_open(int fd)
{
        return fcntl(fd, F_GETFD) >= 0;
}

/* The rest of the bytes sent to it, then the end. */
static void expect_hang_up(struct ringer *ringer)
{
        msgpack_unpacked frame;

        while (next_frame(&ringer->client, &frame))
                drop_frame(&ringer->client, &frame);
}

/* ---- it leaves ---- */

/* Until the engine has let the channel go, no other client gets its descriptor's number. */
static void a_hung_up_ring_is_emptied_and_its_number_is_not_reused_before(void **state)
{
        struct house *house = house_new();
        struct ringer ringer, other;
        struct channel *channel;
        int socket;

        (void)state;
        house_start(house, true);
        say_hello_with_ring(house, &other);
        say_hello_with_ring(house, &ringer);
        channel = generate(house, &ringer, 5)->channel;
        socket = channel->socket;
        assert_true(say(house, house->live[0], 65));
        assert_int_equal(ring_record(&ringer)->stream, 5);
        ring_release(&ringer.reader);

        ringer_leave(&ringer);
        while (charge_of(&other.client, "connections") > 1)
                usleep(1000);
        assert_true(is_open(socket));
        assert_int_equal(charge_of(&other.client, "ring_bytes"), 128 << 10);
        assert_false(ring_is_zero(&ringer));

        ENGINE_UNTIL(house, house->hangups == 1); /* the CANCEL before it ended the stream */
        assert_int_equal(house->cancels, 1);
        while (charge_of(&other.client, "ring_bytes") > 64 << 10)
                usleep(1000);
        assert_false(is_open(socket));
        assert_true(ring_is_zero(&ringer));
        ringer_close(&ringer);
        ringer_close(&other);
        house_close(house);
}

static void who_is_hung_up_sees_the_end_at_once(void **state)
{
        static const uint8_t endless[] = { 0xff, 0xff, 0xff, 0xff };
        struct house *house = house_new();
        struct ringer ringer;
        int socket;

        (void)state;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        socket = generate(house, &ringer, 5)->channel->socket;
        assert_int_equal(send(ringer.client.fd, endless, 4, 0), 4);
        expect_hang_up(&ringer); /* and the engine has taken no mail yet */
        assert_int_equal(house->hangups, 0);
        assert_true(is_open(socket));
        ENGINE_UNTIL(house, house->hangups == 1);
        while (is_open(socket))
                usleep(1000);
        assert_true(ring_is_zero(&ringer));
        ringer_close(&ringer);
        house_close(house);
}

static void who_never_asked_for_a_stream_leaves_as_others_do(void **state)
{
        struct house *house = house_new();
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        for (uint32_t i = 1; i <= 100; i++) { /* rings, numbers and descriptors come back */
                say_hello_with_ring(house, &ringer);
                ringer_close(&ringer);
                ENGINE_UNTIL(house, house->hangups == i);
        }
        house_close(house);
}

/* ---- it is half-closed ---- */

/* All its records are in the ring and it has read none of them; its writing half is shut. */
static void finish_unread(struct house *house, struct ringer *ringer)
{
        say_hello_with_ring(house, ringer);
        generate(house, ringer, 5);
        assert_int_equal(shutdown(ringer->client.fd, SHUT_WR), 0);
        assert_true(say(house, house->live[0], 65));
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
}

static void a_half_closed_client_has_time_to_read_its_ring(void **state)
{
        struct house *house = house_new();
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        finish_unread(house, &ringer);
        assert_true(is_silent(&ringer.client, 200));
        assert_int_equal(house->hangups, 0);
        assert_int_equal(ring_record(&ringer)->type, SMV_RECORD_TOKENS);
        expect_ring_end(&ringer, 5);
        ring_release(&ringer.reader);
        ringer_leave(&ringer);
        ENGINE_UNTIL(house, house->hangups == 1);
        ringer_close(&ringer);
        house_close(house);
}

static void but_not_for_ever(void **state)
{
        struct house *house = house_new();
        struct ringer ringer;
        uint64_t start;

        (void)state;
        house->config.stall_ms = 150;
        house_start(house, true);
        start = sys_clock_ns();
        finish_unread(house, &ringer);
        expect_hang_up(&ringer);
        assert_true(sys_clock_ns() - start >= 150 * 1000000u);
        ENGINE_UNTIL(house, house->hangups == 1);
        while (!ring_is_zero(&ringer))
                usleep(1000);
        ringer_close(&ringer);
        house_close(house);
}

static void who_has_read_all_is_let_go_at_once(void **state)
{
        struct house *house = house_new();
        struct request *request;
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        request = generate(house, &ringer, 5);
        channel = request->channel;
        assert_int_equal(shutdown(ringer.client.fd, SHUT_WR), 0);
        put_end(house, request, SMV_END_EOS, SMV_OK);
        ring_publish(&channel->writer);
        channel_show(channel);
        expect_ring_end(&ringer, 5);
        ring_release(&ringer.reader);
        assert_true(is_silent(&ringer.client, 50)); /* its request is not back yet */
        forget(house, request);
        retired(house, request);
        expect_hang_up(&ringer);
        ENGINE_UNTIL(house, house->hangups == 1);
        ringer_close(&ringer);
        house_close(house);
}

/*
 * RETIRED is posted before its END is shown, and the loop may look in between: for a
 * client that has read all else, it is not over yet.
 */
static void nobody_is_let_go_before_its_end_is_shown(void **state)
{
        struct house *house = house_new();
        struct request *request;
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        request = generate(house, &ringer, 5);
        channel = request->channel;
        assert_int_equal(shutdown(ringer.client.fd, SHUT_WR), 0);
        put_end(house, request, SMV_END_EOS, SMV_OK);
        forget(house, request);
        mailbox_post(house->from_engine, &(struct mail){ .kind = MAIL_RETIRED, .what = request });
        /* of the step before */
        if (channel_raise(&channel->draining))
                up(house, MAIL_WAKE, channel);
        assert_true(is_silent(&ringer.client, 100));
        wake(house, channel); /* now the step is shown */
        expect_ring_end(&ringer, 5);
        ring_release(&ringer.reader);
        ringer_close(&ringer);
        ENGINE_UNTIL(house, house->hangups == 1);
        house_close(house);
}

/* ---- the daemon leaves ---- */

static void a_daemon_that_stops_leaves_what_was_not_read(void **state)
{
        struct house *house = house_new();
        struct ringer ringers[3];

        (void)state;
        house_start(house, true);
        for (uint32_t i = 0; i < 3; i++) {
                say_hello_with_ring(house, &ringers[i]);
                generate(house, &ringers[i], 5);
                assert_true(say(house, house->live[house->live_count - 1], 65 + i));
        }
        drain(house, 2); /* the streams end, as cancelled by it */
        assert_int_equal(house_stop(house), 0);
        for (uint32_t i = 0; i < 3; i++) {
                const struct smv_record *record = ring_record(&ringers[i]);

                expect_hang_up(&ringers[i]);
                assert_int_equal(((const uint8_t *)record)[record->size - 1], 65 + i);
                expect_ring_end(&ringers[i], 5);
                ringer_close(&ringers[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_hung_up_ring_is_emptied_and_its_number_is_not_reused_before),
                cmocka_unit_test(who_is_hung_up_sees_the_end_at_once),
                cmocka_unit_test(who_never_asked_for_a_stream_leaves_as_others_do),
                cmocka_unit_test(a_half_closed_client_has_time_to_read_its_ring),
                cmocka_unit_test(but_not_for_ever),
                cmocka_unit_test(who_has_read_all_is_let_go_at_once),
                cmocka_unit_test(nobody_is_let_go_before_its_end_is_shown),
                cmocka_unit_test(a_daemon_that_stops_leaves_what_was_not_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
