/*
 * Shared rings at the edge: hello hands them out, records are written to them, hang-ups take
 * them back.
 */
#include <stdatomic.h>

#include "tests/unit/edge-client-ring.h"

#define KB      (INT64_C(1) << 10)
#define REPLIES 1000u /* more than a socket takes */

/* One system call that fails, armed while the house is running. */
struct fault {
        _Atomic(const char *) call;
        atomic_int skip, hits;
        int result;
};

static int fail_call(const char *call, void *arg)
{
        struct fault *fault = arg;
        const char *wanted = atomic_load(&fault->call);

        if (!wanted || strcmp(call, wanted) || atomic_fetch_sub(&fault->skip, 1) != 0)
                return 0;
        atomic_fetch_add(&fault->hits, 1);
        return fault->result;
}

static void refuses(struct ringer *ringer, struct greeting greeting, enum smv_code code,
                    const char *field)
{
        msgpack_unpacked reply;

        ask_ring(&ringer->client, 7, greeting);
        assert_true(next_reply(&ringer->client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), 7);
        assert_null(get(&reply.data, "ok"));
        assert_int_equal(get_uint(&reply.data, "code"), code);
        if (field)
                assert_true(is_text(get(&reply.data, "field"), field));
        drop_frame(&ringer->client, &reply);
}

/* ---- hello ---- */

static void hello_passes_a_ring_and_its_control_page(void **state)
{
        static const char *const transports[] = { "ring", "auto" };
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        for (size_t i = 0; i < 2; i++) {
                say_hello_with(fixture, &ringer, (struct greeting){ .transport = transports[i] });
                assert_non_null(ringer.ring);
                assert_int_equal(ringer.ring_bytes, SMV_RING_HEADER + (64 << 10));
                assert_int_equal(fcntl(ringer.fds[0], F_GETFL) & O_ACCMODE, O_RDONLY);
                assert_int_equal(fcntl(ringer.fds[1], F_GETFL) & O_ACCMODE, O_RDWR);
                for (unsigned j = 0; j < 2; j++)
                        assert_int_equal(fcntl(ringer.fds[j], F_GET_SEALS) & 0xf,
                                         F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
                assert_int_equal(charge_of(&ringer.client, "ring_bytes"), 64 << 10);
                ringer_close(&ringer);
                ENGINE_UNTIL(fixture, fixture->hangups == i + 1);
        }
        edge_fixture_close(fixture);
}

static void gives_no_ring_to_a_client_that_asks_for_none(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        for (int i = 0; i < 2; i++) {
                say_hello_with(fixture, &ringer, (struct greeting){ i ? "socket" : NULL, NULL, 0 });
                assert_null(ringer.ring);
                assert_int_equal(charge_of(&ringer.client, "ring_bytes"), 0);
                ringer_close(&ringer);
        }
        edge_fixture_close(fixture);
}

static void the_client_chooses_the_ring_size(void **state)
{
        static const int64_t sizes[] = { 64 * KB, 128 * KB, 1024 * KB };
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        for (uint32_t i = 0; i < 3; i++) {
                const struct greeting greeting = { "auto", "futex", sizes[i] };

                say_hello_with(fixture, &ringer, greeting);
                assert_int_equal(ringer.ring_bytes, SMV_RING_HEADER + sizes[i]);
                assert_int_equal(ringer.reader.data_bytes, sizes[i]);
                assert_int_equal(charge_of(&ringer.client, "ring_bytes"), sizes[i]);
                ringer_close(&ringer);
                ENGINE_UNTIL(fixture, fixture->hangups == i + 1);
        }
        edge_fixture_close(fixture);
}

static void refuses_invalid_ring_settings_by_name(void **state)
{
        static const struct {
                struct greeting greeting;
                enum smv_code code;
                const char *field;
        } bad[] = {
                { { "ring", NULL, 64 * KB + 1 }, SMV_BAD_VALUE, "ring_bytes" },
                { { "ring", NULL, 96 * KB }, SMV_BAD_VALUE, "ring_bytes" },
                { { "ring", NULL, 32 * KB }, SMV_BAD_VALUE, "ring_bytes" },
                { { "auto", NULL, 8192 * KB }, SMV_BAD_VALUE, "ring_bytes" },
                { { "ring", "bell", 0 }, SMV_BAD_VALUE, "doorbell" },
                { { "ring", "", 0 }, SMV_BAD_VALUE, "doorbell" },
                { { "shm", NULL, 0 }, SMV_BAD_VALUE, "transport" },
                { { "rings", NULL, 0 }, SMV_BAD_VALUE, "transport" },
                { { "socket", "kick", 0 }, SMV_BAD_FIELD, "doorbell" },
                { { NULL, "none", 0 }, SMV_BAD_FIELD, "doorbell" },
                { { "socket", NULL, 64 * KB }, SMV_BAD_FIELD, "ring_bytes" },
                { { NULL, NULL, 64 * KB }, SMV_BAD_FIELD, "ring_bytes" },
        };
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        ringer_open(fixture, &ringer);
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                refuses(&ringer, bad[i].greeting, bad[i].code, bad[i].field);
        ask_ring(&ringer.client, 9, (struct greeting){ "ring", "none", 0 });
        assert_int_equal(take_welcome(&ringer, 9), SMV_OK);
        assert_non_null(ringer.ring);
        refuses(&ringer, (struct greeting){ "ring", NULL, 0 }, SMV_NO_HELLO, "op");
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

static void limits_the_ring_bytes_of_a_user(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringers[2], third;

        (void)state;
        fixture->config.uid_ring_bytes = 128 << 10;
        edge_fixture_start(fixture, true);
        for (size_t i = 0; i < 2; i++)
                say_hello_with_ring(fixture, &ringers[i]);
        ringer_open(fixture, &third);
        refuses(&third, (struct greeting){ "ring", NULL, 0 }, SMV_QUOTA, NULL);
        ask_ring(&third.client, 2, (struct greeting){ "auto", NULL, 0 });
        assert_int_equal(take_welcome(&third, 2), SMV_OK);
        assert_null(third.ring);
        assert_int_equal(charge_of(&third.client, "ring_bytes"), 128 << 10);
        ringer_close(&third);

        ringer_close(&ringers[0]);
        ENGINE_UNTIL(fixture, fixture->hangups == 1);
        while (charge_of(&ringers[1].client, "ring_bytes") > 64 << 10)
                usleep(1000);
        say_hello_with_ring(fixture, &third); /* there is room again */
        ringer_close(&third);
        ringer_close(&ringers[1]);
        edge_fixture_close(fixture);
}

static uint32_t descriptors(void)
{
        struct sys_resources holds;

        assert_int_equal(sys_resources(&holds), 0);
        return holds.descriptors;
}

/* The connection goes on without a ring, and no part of the failed ring is held. */
static void fail_the_next_ring(struct edge_fixture *fixture, struct client *watching,
                               struct fault *fault, const char *call, int skip)
{
        struct ringer ringer;
        uint32_t before;

        for (int again = 0; again < 2; again++) {
                ringer_open(fixture, &ringer);
                ask_ring(&ringer.client, 5, (struct greeting){ "shm", NULL, 0 });
                assert_int_equal(reply_code(&ringer.client, 5), SMV_BAD_VALUE); /* it is let in */
                before = descriptors();
                atomic_store(&fault->skip, skip);
                atomic_store(&fault->hits, 0);
                atomic_store(&fault->call, call);
                if (again) {
                        ask_ring(&ringer.client, 6, (struct greeting){ "auto", "kick", 0 });
                        assert_int_equal(take_welcome(&ringer, 6), SMV_OK);
                        assert_null(ringer.ring);
                } else {
                        refuses(&ringer, (struct greeting){ "ring", NULL, 0 }, SMV_BUSY,
                                "transport");
                }
                atomic_store(&fault->call, NULL);
                assert_int_equal(atomic_load(&fault->hits), 1);
                assert_int_equal(descriptors(), before);
                if (!again) {
                        ask_ring(&ringer.client, 8, (struct greeting){ "ring", NULL, 0 });
                        assert_int_equal(take_welcome(&ringer, 8), SMV_OK);
                        assert_non_null(ringer.ring);
                        assert_int_equal(charge_of(&ringer.client, "ring_bytes"), 64 << 10);
                } else {
                        assert_int_equal(charge_of(&ringer.client, "ring_bytes"), 0);
                        ask_generate(&ringer.client, 9);
                        assert_int_equal(reply_code(&ringer.client, 9), SMV_OK);
                        ENGINE_UNTIL(fixture, fixture->live_count == 1);
                        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
                        expect_end(&ringer.client, 9);
                }
                before = fixture->hangups;
                ringer_close(&ringer);
                ENGINE_UNTIL(fixture, fixture->hangups == before + 1);
                while (charge_of(watching, "ring_bytes"))
                        usleep(1000);
        }
}

static void a_failed_ring_falls_back_to_the_socket_or_is_refused(void **state)
{
        static const struct {
                const char *call;
                int result, skip;
        } faults[] = {
                { "memfd_create", -EMFILE, 0 },  { "memfd_create", -ENFILE, 1 },
                { "ftruncate", -ENOMEM, 0 },     { "fallocate", -ENOSPC, 1 },
                { "fchmod", -EPERM, 0 },         { "fcntl", -EPERM, 1 },
                { "mmap", -ENOMEM, 0 },          { "mmap", -ENOMEM, 1 },
                { "reopen", -EMFILE, 0 },        { "reopen", -ENOENT, 1 },
                { "sendmsg", -ETOOMANYREFS, 0 }, { "sendmsg", -EAGAIN, 0 },
                { "sendmsg", -ENOBUFS, 0 },
        };
        struct fault fault = { .call = NULL };
        struct edge_fixture *fixture = edge_fixture_new();
        struct client watching;

        (void)state;
        sys_set_fault(fail_call, &fault);
        edge_fixture_start(fixture, true);
        say_hello(fixture, &watching);
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
                fault.result = faults[i].result;
                fail_the_next_ring(fixture, &watching, &fault, faults[i].call, faults[i].skip);
        }
        client_close(&watching);
        edge_fixture_close(fixture);
        sys_set_fault(NULL, NULL);
}

/* ---- streams ---- */

static void writes_records_only_to_the_ring(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct request *request;
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        request = generate(fixture, &ringer, 5);
        for (uint32_t i = 0; i < 3; i++)
                assert_true(say(fixture, request, 65 + i));
        end(fixture, request, SMV_END_EOS, SMV_OK);
        for (uint32_t i = 0; i < 3; i++) {
                const struct smv_record *record = ring_record(&ringer);

                assert_int_equal(record->type, SMV_RECORD_TOKENS);
                assert_int_equal(record->stream, 5);
                assert_int_equal(((const uint8_t *)record)[record->size - 1], 65 + i);
        }
        expect_ring_end(&ringer, 5);
        ring_release(&ringer.reader);
        assert_true(is_silent(&ringer.client, 50));
        assert_int_equal(charge_of(&ringer.client, "requests"), 0);
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

/*
 * Publishes END and posts RETIRED, without MAIL_WAKE.  The loop must look at them before it
 * judges.
 */
static void end_silently(struct edge_fixture *fixture, struct request *request)
{
        struct channel *channel = request->channel;

        put_end(fixture, request, SMV_END_EOS, SMV_OK);
        forget(fixture, request);
        mailbox_post(fixture->from_engine, &(struct mail){ .kind = MAIL_RETIRED, .what = request });
        ring_publish(&channel->writer);
        channel_show(channel);
}

static void id_and_charges_are_free_once_the_END_was_read(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        for (uint32_t i = 0; i < 100; i++) {
                struct request *request = generate(fixture, &ringer, 5);

                ask_generate(&ringer.client, 5);
                assert_int_equal(reply_code(&ringer.client, 5), SMV_DUP_ID);
                end_silently(fixture, request);
                expect_ring_end(&ringer, 5);
                ring_release(&ringer.reader);
                if (i % 2) {
                        assert_int_equal(charge_of(&ringer.client, "requests"), 0);
                        assert_int_equal(charge_of(&ringer.client, "prompt_bytes"), 0);
                }
        }
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

static void a_cancel_that_crosses_RETIRED_ends_the_stream_once(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct ringer ringer;

        (void)state;
        fixture->lose_cancel = true;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        for (uint32_t i = 0; i < 20; i++) {
                generate(fixture, &ringer, 5);
                ask_cancel(&ringer.client, 6, 5);
                assert_int_equal(reply_code(&ringer.client, 6), SMV_OK);
                ENGINE_UNTIL(fixture, fixture->cancels == i + 1);
                expect_ring_end(&ringer, 5);
                ring_release(&ringer.reader);
                assert_int_equal(charge_of(&ringer.client, "requests"), 0);
        }
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

static void merges_resume_frames_and_ignores_them_if_no_stream_is_stalled(void **state)
{
        static const uint8_t frames[5 * 4];
        struct edge_fixture *fixture = edge_fixture_new();
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        generate(fixture, &ringer, 5);
        assert_int_equal(send(ringer.client.fd, frames, sizeof(frames), 0), sizeof(frames));
        assert_int_equal(charge_of(&ringer.client, "requests"), 1);
        assert_false(engine(fixture, 2));
        channel = fixture->live[0]->channel;
        for (uint32_t round = 1; round <= 20; round++) {
                assert_int_equal(ring_free_bytes(&channel->writer, 64, &(uint64_t){ 0 }), 0);
                assert_true(channel_stall(channel));
                assert_int_equal(send(ringer.client.fd, frames, sizeof(frames), 0), sizeof(frames));
                assert_int_equal(charge_of(&ringer.client, "requests"), 1); /* all were taken */
                ENGINE_UNTIL(fixture, fixture->rooms == round);
                assert_false(engine(fixture, 2));
                channel_resume(channel);
        }
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

/* ---- replies and rings on one socket ---- */

/* As the waker, when the loop has let go of it. */
static void take_send_lock(struct channel *channel)
{
        while (atomic_load(&channel->send_lock.word))
                usleep(100);
        assert_true(send_lock_take(&channel->send_lock, SEND_LOCK_RING));
}

static void a_reply_waits_while_the_waker_holds_the_send_lock(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        channel = generate(fixture, &ringer, 5)->channel;
        take_send_lock(channel);
        ask_plain(&ringer.client, "status", 6);
        assert_true(is_silent(&ringer.client, 50));
        assert_int_equal(send_lock_release(&channel->send_lock), SEND_LOCK_CALL);
        assert_int_equal(send_lock_release(&channel->send_lock), 0);
        wake(fixture, channel);
        assert_int_equal(reply_code(&ringer.client, 6), SMV_OK);
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

/* Reads the next frame, whole: true if it is a reply, false if it is a ring. */
static bool next_is_reply(struct ringer *ringer)
{
        struct buffer *in = &ringer->client.in;
        uint32_t length;

        while (buffer_count(in) < 4)
                assert_true(fill(&ringer->client));
        memcpy(&length, in->bytes + in->start, 4);
        while (buffer_count(in) < 4 + length)
                assert_true(fill(&ringer->client));
        buffer_take(in, 4 + length);
        return length > 0;
}

/* How often it rings after replies that fill the socket: once, or never if they still do. */
static uint32_t kicks_behind_replies(struct ringer *ringer, struct channel *channel)
{
        uint32_t replies = 0, rings = 0;

        for (uint32_t i = 0; i < REPLIES; i++)
                ask_plain(&ringer->client, "status", 6);
        for (uint32_t held = 0; held < 50; held++) { /* not for a moment: the socket is full */
                if (!(atomic_load(&channel->send_lock.word) & SEND_LOCK_TAKEN))
                        held = 0;
                usleep(1000);
        }
        assert_false(send_lock_take(&channel->send_lock, SEND_LOCK_RING));
        /* Whole, both; requests of a later turn may follow. */
        while (replies < REPLIES || buffer_count(&ringer->client.in) ||
               !is_silent(&ringer->client, 50)) {
                if (next_is_reply(ringer))
                        replies++;
                else
                        rings++;
                assert_true(replies || !rings);
        }
        assert_int_equal(replies, REPLIES);
        assert_true(rings <= 1);
        return rings;
}

static void a_kick_waits_until_a_half_sent_reply_is_complete(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        uint32_t rings = 0;
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        fixture->config.reply_bytes = 4 << 20;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        channel = generate(fixture, &ringer, 5)->channel;
        for (uint32_t i = 0; i < 20 && !rings; i++)
                rings = kicks_behind_replies(&ringer, channel);
        assert_int_equal(rings, 1);
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

/* It reads all that comes; nothing comes because the waker is slow to release the send lock. */
static void does_not_hang_up_on_a_client_because_the_waker_is_slow(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        fixture->config.reply_bytes = 4 << 10;
        edge_fixture_start(fixture, true);
        say_hello_with_ring(fixture, &ringer);
        channel = generate(fixture, &ringer, 5)->channel;
        take_send_lock(channel);
        /* More than may wait, and less than the socket takes before the client reads. */
        for (uint32_t i = 0; i < 40; i++)
                ask_plain(&ringer.client, "status", 6);
        assert_true(is_silent(&ringer.client, 100));
        while (send_lock_release(&channel->send_lock))
                wake(fixture, channel);
        for (uint32_t i = 0; i < 40; i++)
                assert_int_equal(reply_code(&ringer.client, 6), SMV_OK);
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        ringer_close(&ringer);
        edge_fixture_close(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(hello_passes_a_ring_and_its_control_page),
                cmocka_unit_test(gives_no_ring_to_a_client_that_asks_for_none),
                cmocka_unit_test(the_client_chooses_the_ring_size),
                cmocka_unit_test(refuses_invalid_ring_settings_by_name),
                cmocka_unit_test(limits_the_ring_bytes_of_a_user),
                cmocka_unit_test(a_failed_ring_falls_back_to_the_socket_or_is_refused),
                cmocka_unit_test(writes_records_only_to_the_ring),
                cmocka_unit_test(id_and_charges_are_free_once_the_END_was_read),
                cmocka_unit_test(a_cancel_that_crosses_RETIRED_ends_the_stream_once),
                cmocka_unit_test(merges_resume_frames_and_ignores_them_if_no_stream_is_stalled),
                cmocka_unit_test(a_reply_waits_while_the_waker_holds_the_send_lock),
                cmocka_unit_test(a_kick_waits_until_a_half_sent_reply_is_complete),
                cmocka_unit_test(does_not_hang_up_on_a_client_because_the_waker_is_slow),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
