/*
 * Shared rings at the edge: hello hands them out, records are written to them, hang-ups take
 * them back.
 */
#include <stdatomic.h>

#include "tests/unit/house-ring.h"

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
        struct house *house = house_new();
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        for (size_t i = 0; i < 2; i++) {
                say_hello_with(house, &ringer, (struct greeting){ .transport = transports[i] });
                assert_non_null(ringer.ring);
                assert_int_equal(ringer.ring_bytes, SMV_RING_HEADER + (64 << 10));
                assert_int_equal(fcntl(ringer.fds[0], F_GETFL) & O_ACCMODE, O_RDONLY);
                assert_int_equal(fcntl(ringer.fds[1], F_GETFL) & O_ACCMODE, O_RDWR);
                for (unsigned j = 0; j < 2; j++)
                        assert_int_equal(fcntl(ringer.fds[j], F_GET_SEALS) & 0xf,
                                         F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
                assert_int_equal(charge_of(&ringer.client, "ring_bytes"), 64 << 10);
                ringer_close(&ringer);
                ENGINE_UNTIL(house, house->hangups == i + 1);
        }
        house_close(house);
}

static void who_asks_for_no_ring_gets_none(void **state)
{
        struct house *house = house_new();
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        for (int i = 0; i < 2; i++) {
                say_hello_with(house, &ringer, (struct greeting){ i ? "socket" : NULL, NULL, 0 });
                assert_null(ringer.ring);
                assert_int_equal(charge_of(&ringer.client, "ring_bytes"), 0);
                ringer_close(&ringer);
        }
        house_close(house);
}

static void ring_bytes_are_the_clients_choice(void **state)
{
        static const int64_t sizes[] = { 64 * KB, 128 * KB, 1024 * KB };
        struct house *house = house_new();
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        for (uint32_t i = 0; i < 3; i++) {
                const struct greeting greeting = { "auto", "futex", sizes[i] };

                say_hello_with(house, &ringer, greeting);
                assert_int_equal(ringer.ring_bytes, SMV_RING_HEADER + sizes[i]);
                assert_int_equal(ringer.reader.data_bytes, sizes[i]);
                assert_int_equal(charge_of(&ringer.client, "ring_bytes"), sizes[i]);
                ringer_close(&ringer);
                ENGINE_UNTIL(house, house->hangups == i + 1);
        }
        house_close(house);
}

static void what_cannot_be_is_refused_by_name(void **state)
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
        struct house *house = house_new();
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        ringer_open(house, &ringer);
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                refuses(&ringer, bad[i].greeting, bad[i].code, bad[i].field);
        ask_ring(&ringer.client, 9, (struct greeting){ "ring", "none", 0 });
        assert_int_equal(take_welcome(&ringer, 9), SMV_OK);
        assert_non_null(ringer.ring);
        refuses(&ringer, (struct greeting){ "ring", NULL, 0 }, SMV_NO_HELLO, "op");
        ringer_close(&ringer);
        house_close(house);
}

static void rings_of_a_user_are_bounded(void **state)
{
        struct house *house = house_new();
        struct ringer ringers[2], third;

        (void)state;
        house->config.uid_ring_bytes = 128 << 10;
        house_start(house, true);
        for (size_t i = 0; i < 2; i++)
                say_hello_with_ring(house, &ringers[i]);
        ringer_open(house, &third);
        refuses(&third, (struct greeting){ "ring", NULL, 0 }, SMV_QUOTA, NULL);
        ask_ring(&third.client, 2, (struct greeting){ "auto", NULL, 0 });
        assert_int_equal(take_welcome(&third, 2), SMV_OK);
        assert_null(third.ring);
        assert_int_equal(charge_of(&third.client, "ring_bytes"), 128 << 10);
        ringer_close(&third);

        ringer_close(&ringers[0]);
        ENGINE_UNTIL(house, house->hangups == 1);
        while (charge_of(&ringers[1].client, "ring_bytes") > 64 << 10)
                usleep(1000);
        say_hello_with_ring(house, &third); /* there is room again */
        ringer_close(&third);
        ringer_close(&ringers[1]);
        house_close(house);
}

static uint32_t descriptors(void)
{
        struct sys_holds holds;

        assert_int_equal(sys_holds(&holds), 0);
        return holds.descriptors;
}

/* The connection goes on without a ring, and no part of the failed ring is held. */
static void no_ring_this_time(struct house *house, struct client *watching, struct fault *fault,
                              const char *call, int skip)
{
        struct ringer ringer;
        uint32_t before;

        for (int again = 0; again < 2; again++) {
                ringer_open(house, &ringer);
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
                        ENGINE_UNTIL(house, house->live_count == 1);
                        end(house, house->live[0], SMV_END_EOS, SMV_OK);
                        expect_end(&ringer.client, 9);
                }
                before = house->hangups;
                ringer_close(&ringer);
                ENGINE_UNTIL(house, house->hangups == before + 1);
                while (charge_of(watching, "ring_bytes"))
                        usleep(1000);
        }
}

static void a_ring_that_cannot_be_given_is_a_socket_or_a_refusal(void **state)
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
        struct house *house = house_new();
        struct client watching;

        (void)state;
        sys_set_fault(fail_call, &fault);
        house_start(house, true);
        say_hello(house, &watching);
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
                fault.result = faults[i].result;
                no_ring_this_time(house, &watching, &fault, faults[i].call, faults[i].skip);
        }
        client_close(&watching);
        house_close(house);
        sys_set_fault(NULL, NULL);
}

/* ---- streams ---- */

static void records_stand_in_the_ring_and_nowhere_else(void **state)
{
        struct house *house = house_new();
        struct request *request;
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        request = generate(house, &ringer, 5);
        for (uint32_t i = 0; i < 3; i++)
                assert_true(say(house, request, 65 + i));
        end(house, request, SMV_END_EOS, SMV_OK);
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
        house_close(house);
}

/*
 * Publishes END and posts RETIRED, without MAIL_WAKE.  The loop must look at them before it
 * judges.
 */
static void end_silently(struct house *house, struct request *request)
{
        struct channel *channel = request->channel;

        put_end(house, request, SMV_END_EOS, SMV_OK);
        forget(house, request);
        mailbox_post(house->from_engine, &(struct mail){ .kind = MAIL_RETIRED, .what = request });
        ring_publish(&channel->writer);
        channel_show(channel);
}

static void who_has_read_an_end_finds_its_id_and_its_charges_free(void **state)
{
        struct house *house = house_new();
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        for (uint32_t i = 0; i < 100; i++) {
                struct request *request = generate(house, &ringer, 5);

                ask_generate(&ringer.client, 5);
                assert_int_equal(reply_code(&ringer.client, 5), SMV_DUP_ID);
                end_silently(house, request);
                expect_ring_end(&ringer, 5);
                ring_release(&ringer.reader);
                if (i % 2) {
                        assert_int_equal(charge_of(&ringer.client, "requests"), 0);
                        assert_int_equal(charge_of(&ringer.client, "prompt_bytes"), 0);
                }
        }
        ringer_close(&ringer);
        house_close(house);
}

static void a_cancel_that_crosses_retired_ends_once(void **state)
{
        struct house *house = house_new();
        struct ringer ringer;

        (void)state;
        house->lose_cancel = true;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        for (uint32_t i = 0; i < 20; i++) {
                generate(house, &ringer, 5);
                ask_cancel(&ringer.client, 6, 5);
                assert_int_equal(reply_code(&ringer.client, 6), SMV_OK);
                ENGINE_UNTIL(house, house->cancels == i + 1);
                expect_ring_end(&ringer, 5);
                ring_release(&ringer.reader);
                assert_int_equal(charge_of(&ringer.client, "requests"), 0);
        }
        ringer_close(&ringer);
        house_close(house);
}

static void many_nudges_are_one_and_none_if_nobody_waits(void **state)
{
        static const uint8_t frames[5 * 4];
        struct house *house = house_new();
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        generate(house, &ringer, 5);
        assert_int_equal(send(ringer.client.fd, frames, sizeof(frames), 0), sizeof(frames));
        assert_int_equal(charge_of(&ringer.client, "requests"), 1);
        assert_false(engine(house, 2));
        channel = house->live[0]->channel;
        for (uint32_t round = 1; round <= 20; round++) {
                assert_int_equal(ring_room(&channel->writer, 64, &(uint64_t){ 0 }), 0);
                assert_true(channel_stall(channel));
                assert_int_equal(send(ringer.client.fd, frames, sizeof(frames), 0), sizeof(frames));
                assert_int_equal(charge_of(&ringer.client, "requests"), 1); /* all were taken */
                ENGINE_UNTIL(house, house->rooms == round);
                assert_false(engine(house, 2));
                channel_resume(channel);
        }
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        ringer_close(&ringer);
        house_close(house);
}

/* ---- replies and rings on one socket ---- */

/* As the waker, when the loop has let go of it. */
static void take_line(struct channel *channel)
{
        while (atomic_load(&channel->line.word))
                usleep(100);
        assert_true(line_take(&channel->line, LINE_RING));
}

static void a_reply_waits_while_the_waker_rings(void **state)
{
        struct house *house = house_new();
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        channel = generate(house, &ringer, 5)->channel;
        take_line(channel);
        ask_plain(&ringer.client, "status", 6);
        assert_true(is_silent(&ringer.client, 50));
        assert_int_equal(line_let_go(&channel->line), LINE_CALL);
        assert_int_equal(line_let_go(&channel->line), 0);
        wake(house, channel);
        assert_int_equal(reply_code(&ringer.client, 6), SMV_OK);
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        ringer_close(&ringer);
        house_close(house);
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
static uint32_t rings_behind_replies(struct ringer *ringer, struct channel *channel)
{
        uint32_t replies = 0, rings = 0;

        for (uint32_t i = 0; i < REPLIES; i++)
                ask_plain(&ringer->client, "status", 6);
        for (uint32_t held = 0; held < 50; held++) { /* not for a moment: the socket is full */
                if (!(atomic_load(&channel->line.word) & LINE_TAKEN))
                        held = 0;
                usleep(1000);
        }
        assert_false(line_take(&channel->line, LINE_RING));
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

static void a_ring_waits_behind_the_reply_that_is_half_sent(void **state)
{
        struct house *house = house_new();
        uint32_t rings = 0;
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        house->config.reply_bytes = 4 << 20;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        channel = generate(house, &ringer, 5)->channel;
        for (uint32_t i = 0; i < 20 && !rings; i++)
                rings = rings_behind_replies(&ringer, channel);
        assert_int_equal(rings, 1);
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        ringer_close(&ringer);
        house_close(house);
}

/* It reads all that comes; nothing comes because the waker is slow to let the line go. */
static void a_slow_waker_is_not_held_against_the_client(void **state)
{
        struct house *house = house_new();
        struct channel *channel;
        struct ringer ringer;

        (void)state;
        house->config.reply_bytes = 4 << 10;
        house_start(house, true);
        say_hello_with_ring(house, &ringer);
        channel = generate(house, &ringer, 5)->channel;
        take_line(channel);
        for (uint32_t i = 0; i < 200; i++)
                ask_plain(&ringer.client, "status", 6);
        assert_true(is_silent(&ringer.client, 100));
        while (line_let_go(&channel->line))
                wake(house, channel);
        for (uint32_t i = 0; i < 200; i++)
                assert_int_equal(reply_code(&ringer.client, 6), SMV_OK);
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        ringer_close(&ringer);
        house_close(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(hello_passes_a_ring_and_its_control_page),
                cmocka_unit_test(who_asks_for_no_ring_gets_none),
                cmocka_unit_test(ring_bytes_are_the_clients_choice),
                cmocka_unit_test(what_cannot_be_is_refused_by_name),
                cmocka_unit_test(rings_of_a_user_are_bounded),
                cmocka_unit_test(a_ring_that_cannot_be_given_is_a_socket_or_a_refusal),
                cmocka_unit_test(records_stand_in_the_ring_and_nowhere_else),
                cmocka_unit_test(who_has_read_an_end_finds_its_id_and_its_charges_free),
                cmocka_unit_test(a_cancel_that_crosses_retired_ends_once),
                cmocka_unit_test(many_nudges_are_one_and_none_if_nobody_waits),
                cmocka_unit_test(a_reply_waits_while_the_waker_rings),
                cmocka_unit_test(a_ring_waits_behind_the_reply_that_is_half_sent),
                cmocka_unit_test(a_slow_waker_is_not_held_against_the_client),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
