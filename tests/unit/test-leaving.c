/*
 * How a client that maps a ring leaves, or is left: the memory it keeps, and the memory that is
 * taken back, and when.
 */
#include "tests/unit/edge-client-ring.h"

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
static void clears_the_ring_at_hangup_and_keeps_its_fd_until_the_engine_is_done(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer, other;
        struct channel *channel;
        int socket;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &other);
        say_hello_with_ring(fixture, &ringer);
        channel = generate(fixture, &ringer, 5)->channel;
        socket = channel->socket;
        assert_true(say(fixture, fixture->live[0], 65));
        assert_int_equal(ring_record(&ringer)->stream, 5);
        ring_release(&ringer.reader);

        ringer_leave(&ringer);
        /* The second question comes after the loop has handled what was there at the first. */
        assert_int_equal(charge_of(&other.client, "connections"), 2);
        assert_int_equal(charge_of(&other.client, "connections"), 2);
        assert_true(is_open(socket));
        assert_int_equal(charge_of(&other.client, "ring_bytes"), 128 << 10);
        assert_false(ring_is_zero(&ringer));

        ENGINE_UNTIL(fixture, fixture->hangups == 1); /* the CANCEL before it ended the stream */
        assert_int_equal(fixture->cancels, 1);
        while (charge_of(&other.client, "ring_bytes") > 64 << 10)
                usleep(1000);
        assert_int_equal(charge_of(&other.client, "connections"), 1);
        assert_false(is_open(socket));
        assert_true(ring_is_zero(&ringer));
        ringer_close(&ringer);
        ringer_close(&other);
        edge_fixture_close(fixture);
}

static void a_hung_up_client_sees_the_hangup_at_once(void **state)
{
        static const uint8_t endless[] = { 0xff, 0xff, 0xff, 0xff };
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;
        int socket;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        socket = generate(fixture, &ringer, 5)->channel->socket;
        assert_int_equal(send(ringer.client.fd, endless, 4, 0), 4);
        expect_hang_up(&ringer); /* and the engine has taken no mail yet */
        assert_int_equal(fixture->hangups, 0);
        assert_true(is_open(socket));
        ENGINE_UNTIL(fixture, fixture->hangups == 1);
        while (is_open(socket))
                usleep(1000);
        assert_true(ring_is_zero(&ringer));
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

static void frees_a_ring_that_never_had_a_stream(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        for (uint32_t i = 1; i <= 100; i++) { /* rings, numbers and descriptors come back */
                say_hello_with_ring(fixture, &ringer);
                ringer_close(&ringer);
                ENGINE_UNTIL(fixture, fixture->hangups == i);
        }
        edge_fixture_close(fixture);
}

/* ---- it is half-closed ---- */

/* All its records are in the ring and it has read none of them; its writing half is shut. */
static void finish_unread(struct edge_fixture *fixture, struct ringer *ringer)
{
        say_hello_with_ring(fixture, ringer);
        generate(fixture, ringer, 5);
        assert_int_equal(shutdown(ringer->client.fd, SHUT_WR), 0);
        assert_true(say(fixture, fixture->live[0], 65));
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
}

static void a_half_closed_client_has_time_to_read_its_ring(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        finish_unread(fixture, &ringer);
        assert_true(is_silent(&ringer.client, 200));
        assert_int_equal(fixture->hangups, 0);
        assert_int_equal(ring_record(&ringer)->type, SMV_RECORD_TOKENS);
        expect_ring_end(&ringer, 5);
        ring_release(&ringer.reader);
        ringer_leave(&ringer);
        ENGINE_UNTIL(fixture, fixture->hangups == 1);
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

static void hangs_up_on_a_half_closed_client_after_stall_ms(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;
        uint64_t start;

        (void)state;
        fixture->config.stall_timeout_ms = 150;
        edge_fixture_start(fixture, true);
        start = sys_clock_ns();
        finish_unread(fixture, &ringer);
        expect_hang_up(&ringer);
        assert_true(sys_clock_ns() - start >= 150 * 1000000u);
        ENGINE_UNTIL(fixture, fixture->hangups == 1);
        while (!ring_is_zero(&ringer))
                usleep(1000);
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

static void hangs_up_on_a_half_closed_client_once_it_read_everything(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct request *request;
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        request = generate(fixture, &ringer, 5);
        channel = request->channel;
        assert_int_equal(shutdown(ringer.client.fd, SHUT_WR), 0);
        put_end(fixture, request, SMV_END_EOS, SMV_OK);
        ring_publish(&channel->writer);
        channel_show(channel);
        expect_ring_end(&ringer, 5);
        ring_release(&ringer.reader);
        assert_true(is_silent(&ringer.client, 50)); /* its request is not back yet */
        forget(fixture, request);
        retired(fixture, request);
        expect_hang_up(&ringer);
        ENGINE_UNTIL(fixture, fixture->hangups == 1);
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

/*
 * RETIRED is posted before its END is shown, and the loop may look in between: for a
 * client that has read all else, it is not over yet.
 */
static void does_not_hang_up_before_the_END_is_visible(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct request *request;
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        request = generate(fixture, &ringer, 5);
        channel = request->channel;
        assert_int_equal(shutdown(ringer.client.fd, SHUT_WR), 0);
        put_end(fixture, request, SMV_END_EOS, SMV_OK);
        forget(fixture, request);
        mailbox_post(fixture->from_engine, &(struct mail){ .kind = MAIL_RETIRED, .what = request });
        /* of the step before */
        if (channel_raise(&channel->draining))
                up(fixture, MAIL_WAKE, channel);
        assert_true(is_silent(&ringer.client, 100));
        wake(fixture, channel); /* now the step is shown */
        expect_ring_end(&ringer, 5);
        ring_release(&ringer.reader);
        ringer_close(&ringer);
        ENGINE_UNTIL(fixture, fixture->hangups == 1);
        edge_fixture_close(fixture);
}

/* ---- the daemon leaves ---- */

static void shutdown_leaves_unread_records_in_the_rings(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringers[3];

        (void)state;
        edge_fixture_start(fixture, true);
        for (uint32_t i = 0; i < 3; i++) {
                say_hello_with_ring(fixture, &ringers[i]);
                generate(fixture, &ringers[i], 5);
                assert_true(say(fixture, fixture->live[fixture->live_count - 1], 65 + i));
        }
        drain(fixture, 2); /* the streams end, as cancelled by it */
        assert_int_equal(edge_fixture_stop(fixture), 0);
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
                cmocka_unit_test(
                        clears_the_ring_at_hangup_and_keeps_its_fd_until_the_engine_is_done),
                cmocka_unit_test(a_hung_up_client_sees_the_hangup_at_once),
                cmocka_unit_test(frees_a_ring_that_never_had_a_stream),
                cmocka_unit_test(a_half_closed_client_has_time_to_read_its_ring),
                cmocka_unit_test(hangs_up_on_a_half_closed_client_after_stall_ms),
                cmocka_unit_test(hangs_up_on_a_half_closed_client_once_it_read_everything),
                cmocka_unit_test(does_not_hang_up_before_the_END_is_visible),
                cmocka_unit_test(shutdown_leaves_unread_records_in_the_rings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
