/* libsamovar over a ring: its promises to programs, for every way of waking. */
#include "tests/unit/client-ring-rig.h"

#include <pthread.h>

#include "tests/unit/count-alloc.h"

#define SMALL  4096u /* the smallest ring: its end is met again and again */
#define TOKENS 4000u

/* A daemon that writes a given number of tokens, and waits when there is no room. */
struct teller {
        struct ringer *ringer;
        uint32_t count;
        uint64_t draw;
        unsigned stalls;
};

static uint32_t draw(struct teller *t, uint32_t below)
{
        t->draw = t->draw * 6364136223846793005u + 1442695040888963407u;
        return (uint32_t)(t->draw >> 33) % below;
}

static const char *words_of(uint32_t n)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

        return letters + n * 7 % (sizeof(letters) - 1);
}

static void wait_for_resume(struct ringer *r)
{
        struct pollfd p = { .fd = r->wire.daemon, .events = POLLIN };
        uint32_t length = 1;

        assert_int_equal(poll(&p, 1, 10000), 1);
        assert_int_equal(recv(r->wire.daemon, &length, 4, MSG_WAITALL), 4);
        assert_int_equal(length, 0);
}

static void wait_for_room(struct teller *t)
{
        struct ringer *r = t->ringer;
        uint64_t room;

        if (r->writer.published != r->writer.tail)
                show(r);
        assert_int_equal(ring_free_bytes(&r->writer, 128, &room), 0);
        if (room >= 256 || ring_stall(&r->writer))
                return;
        t->stalls++;
        wait_for_resume(r);
        ring_resume(&r->writer);
}

static void *tell(void *arg)
{
        struct teller *t = arg;
        struct ringer *r = t->ringer;

        for (uint32_t i = 0; i < t->count; i++) {
                while (try_tokens(r, 2, i, i, 1, words_of(i)))
                        wait_for_room(t);
                if (draw(t, 3))
                        continue;
                show(r);
                if (!draw(t, 16))
                        usleep(draw(t, 300));
        }
        while (try_end(r, 2, t->count))
                wait_for_room(t);
        show(r);
        return NULL;
}

/* The event as it should be, and nothing given back below it. */
static void expect_token(struct ringer *r, const struct smv_event *e, uint32_t n)
{
        const struct shared_ring *ring = &r->wire.client->ring;

        assert_int_equal(e->kind, SMV_EVENT_TOKENS);
        assert_int_equal(e->stream, 2);
        assert_int_equal(e->position, 10 + n);
        assert_int_equal(e->token_count, 1);
        assert_int_equal(e->tokens[0], n);
        assert_true(__atomic_load_n(&r->control->head, __ATOMIC_RELAXED) <= ring->taken_at);
        assert_in_range((uintptr_t)e->text, (uintptr_t)ring->segment + SMV_RING_HEADER,
                        (uintptr_t)ring->segment + ring->segment_bytes);
        assert_int_equal(e->text_bytes, strlen(words_of(n)));
        assert_memory_equal(e->text, words_of(n), e->text_bytes);
}

/* Reads the whole scenario; `timeout` 0 polls in turns. */
static unsigned read_story(struct smv_connect o, size_t batch, int timeout)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct ringer r;
        struct teller t = { .ringer = &r, .count = TOKENS, .draw = batch + o.spin_us + 1 };
        pthread_t thread;
        int got;

        open_ring(&r, SMALL, 1, o);
        smv_wake_after(r.wire.client, batch);
        pthread_create(&thread, NULL, tell, &t);
        for (uint32_t n = 0; n <= TOKENS; n++) {
                while (!(got = smv_next(r.wire.client, &e, timeout)))
                        assert_true(timeout >= 0);
                assert_int_equal(got, 1);
                if (n < TOKENS)
                        expect_token(&r, &e, n);
        }
        assert_int_equal(e.kind, SMV_EVENT_END);
        assert_int_equal(e.reason, SMV_END_LENGTH);
        assert_int_equal(next_now(r.wire.client), -ENODATA);
        pthread_join(thread, NULL);
        close_ring(&r);
        return t.stalls;
}

static void every_reader_mode_receives_all_records_in_order(void **state)
{
        static const int timeouts[] = { -1, 0, 3 };
        unsigned stalls = 0;

        (void)state;
        for (unsigned bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++)
                for (uint32_t spin = 0; spin <= 100; spin += 100)
                        for (size_t batch = 0; batch <= 700; batch += 700)
                                for (unsigned i = 0; i < 3; i++)
                                        stalls +=
                                                read_story((struct smv_connect){ .doorbell = bell,
                                                                                 .spin_us = spin },
                                                           batch, timeouts[i]);
        assert_true(stalls > 0);
}

static void hello_sends_the_transport_doorbell_and_ring_size_given(void **state)
{
        struct smv_connect o = { .transport = SMV_TRANSPORT_RING,
                                 .doorbell = SMV_DOORBELL_FUTEX,
                                 .ring_bytes = 65536 };
        uint8_t sent[4096];
        struct ringer r;
        size_t n;

        (void)state;
        make_ring(&r, SMALL);
        assert_int_equal(connect_ring(&r, &o), 0);
        n = sent_so_far(&r.wire, sent, sizeof(sent));
        assert_non_null(memmem(sent, n, "\xa9transport\xa4ring", 15));
        assert_non_null(memmem(sent, n,
                               "\xa8"
                               "doorbell\xa5"
                               "futex",
                               15));
        assert_non_null(memmem(sent, n, "\xaaring_bytes\xce\0\1\0\0", 16));
        close_ring(&r);
}

static void the_fd_wakes_a_poll_after_smv_next_returned_0(void **state)
{
        struct pollfd p = { .events = POLLIN };
        struct ringer r;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ .doorbell = SMV_DOORBELL_KICK });
        p.fd = smv_fd(r.wire.client);
        for (int turn = 0; turn < 300; turn++) {
                assert_false(is_asleep(&r));
                assert_int_equal(next_now(r.wire.client), 0);
                assert_true(is_asleep(&r));
                assert_int_equal(poll(&p, 1, 0), 0);
                put_token(&r, "x");
                show(&r);
                assert_int_equal(poll(&p, 1, 1000), 1);
                put_token(&r, "y"); /* a reader need not be woken twice */
                assert_false(publish(&r));
                assert_int_equal(next(r.wire.client).position, 10 + 2 * turn);
                assert_false(is_asleep(&r));
                assert_int_equal(next(r.wire.client).position, 11 + 2 * turn);
        }
        assert_int_equal(r.rung, 300);
        assert_int_equal(next_now(r.wire.client), 0);
        hang_up(&r.wire);
        assert_int_equal(poll(&p, 1, 1000), 1);
        expect_lost(r.wire.client, 1);
        close_ring(&r);
}

/* A reader that will not sleep on the descriptor costs the daemon nothing. */
static void a_polling_reader_needs_no_doorbell(void **state)
{
        (void)state;
        for (unsigned bell = SMV_DOORBELL_FUTEX; bell <= SMV_DOORBELL_NONE; bell++) {
                struct ringer r;

                open_ring(&r, SMALL, 1, (struct smv_connect){ .doorbell = bell });
                for (int turn = 0; turn < 300; turn++) {
                        assert_int_equal(next_now(r.wire.client), 0);
                        assert_false(is_asleep(&r));
                        put_token(&r, "x");
                        assert_false(publish(&r));
                        assert_int_equal(next(r.wire.client).token_count, 1);
                }
                close_ring(&r);
        }
}

static void *show_later(void *arg)
{
        usleep(20000);
        show(arg);
        return NULL;
}

static void a_spinning_reader_needs_no_doorbell(void **state)
{
        struct ringer r;
        pthread_t thread;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ .spin_us = 4000000 });
        put_token(&r, "quick");
        pthread_create(&thread, NULL, show_later, &r);
        assert_int_equal(next(r.wire.client).token_count, 1);
        pthread_join(thread, NULL);
        assert_int_equal(r.rung, 0);
        close_ring(&r);
}

static void smv_next_returns_at_its_timeout(void **state)
{
        (void)state;
        for (unsigned bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++) {
                for (uint32_t spin = 0; spin <= 60000000; spin += 60000000) {
                        struct smv_event e = { SMV_SIZE(smv_event) };
                        struct ringer r;
                        uint64_t begun;

                        open_ring(&r, SMALL, 1,
                                  (struct smv_connect){ .doorbell = bell, .spin_us = spin });
                        begun = monotonic_ns();
                        assert_int_equal(smv_next(r.wire.client, &e, 30), 0);
                        assert_in_range(monotonic_ns() - begun, 30000000, 59000000000u);
                        close_ring(&r);
                }
        }
}

static void a_batch_reader_sleeps_until_its_bytes_or_an_end_arrive(void **state)
{
        struct ringer r;
        unsigned bytes;

        (void)state;
        open_ring(&r, 65536, 1, (struct smv_connect){ 0 });
        smv_wake_after(r.wire.client, 1000);
        assert_int_equal(next_now(r.wire.client), 0);
        for (bytes = 0; bytes < 1000; bytes += 32) {
                put_token(&r, "1234");
                assert_int_equal(publish(&r), bytes + 32 > 1000);
        }
        for (uint32_t n = 0; n < r.sequence; n++)
                assert_int_equal(next(r.wire.client).position, 10 + n);

        assert_int_equal(next_now(r.wire.client), 0);
        put_token(&r, "last");
        assert_false(publish(&r));
        assert_int_equal(try_end(&r, 2, r.sequence), 0);
        assert_true(publish(&r));
        assert_int_equal(next(r.wire.client).kind, SMV_EVENT_TOKENS);
        assert_int_equal(next(r.wire.client).kind, SMV_EVENT_END);
        close_ring(&r);
}

static void a_batch_reader_gets_an_incomplete_batch_at_the_timeout(void **state)
{
        (void)state;
        for (unsigned bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++) {
                struct smv_event e = { SMV_SIZE(smv_event) };
                struct ringer r;
                pthread_t thread;

                open_ring(&r, 65536, 1, (struct smv_connect){ .doorbell = bell });
                smv_wake_after(r.wire.client, SIZE_MAX);
                put_token(&r, "early");
                pthread_create(&thread, NULL, show_later, &r);
                assert_int_equal(smv_next(r.wire.client, &e, 100), 1);
                assert_int_equal(e.kind, SMV_EVENT_TOKENS);
                pthread_join(thread, NULL);
                assert_int_equal(r.rung, 0);
                close_ring(&r);
        }
}

static unsigned fill(struct ringer *r)
{
        unsigned count = 0;

        while (!try_tokens(r, 2, r->sequence, r->sequence, 1, words_of(r->sequence))) {
                r->sequence++;
                count++;
        }
        show(r);
        return count;
}

static void frees_ring_bytes_by_the_quarter_and_resumes_a_stalled_daemon(void **state)
{
        uint64_t room, before = 0, after;
        unsigned count, steps = 0;
        uint8_t sent[64];
        struct ringer r;
        size_t n;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
        count = fill(&r);
        assert_int_equal(ring_free_bytes(&r.writer, 128, &room), 0);
        assert_false(ring_stall(&r.writer));
        for (unsigned i = 0; i < count; i++) {
                struct smv_event e = next(r.wire.client);

                expect_token(&r, &e, i);
                after = __atomic_load_n(&r.control->head, __ATOMIC_RELAXED);
                assert_true(after == before || after - before >= SMALL / 4);
                steps += after != before;
                before = after;
        }
        assert_in_range(steps, 2, 4);
        assert_int_equal(next_now(r.wire.client), 0);
        assert_int_equal(r.control->head, r.writer.tail);
        n = sent_so_far(&r.wire, sent, sizeof(sent));
        assert_in_range(n, 4, 20);
        assert_int_equal(n % 4, 0);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(sent[i], 0);

        ring_resume(&r.writer);
        fill(&r);
        next(r.wire.client);
        assert_int_equal(sent_so_far(&r.wire, sent, sizeof(sent)), 0);
        close_ring(&r);
}

/* The daemon reads nothing for a while: messages to it wait, and go out when there is room. */
static void resume_waits_until_the_socket_accepts_it(void **state)
{
        static uint8_t sent[1u << 22];
        uint64_t room;
        struct ringer r;
        size_t n;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
        while (!r.wire.client->connection.out.count)
                assert_int_equal(smv_cancel(r.wire.client, 2), 0);
        fill(&r);
        assert_int_equal(ring_free_bytes(&r.writer, 128, &room), 0);
        assert_false(ring_stall(&r.writer));
        while (next_now(r.wire.client) == 1)
                ;
        assert_true(r.wire.client->connection.out.count > 0);
        n = sent_so_far(&r.wire, sent, sizeof(sent));
        assert_int_equal(next_now(r.wire.client), 0);
        n += sent_so_far(&r.wire, sent + n, sizeof(sent) - n);
        assert_int_equal(r.wire.client->connection.out.count, 0);
        assert_memory_equal(sent + n - 4, "\0\0\0", 4);
        close_ring(&r);
}

static void a_call_frees_the_ring_bytes_of_the_last_event(void **state)
{
        const uint32_t *ids;
        struct ringer r;
        size_t count;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
        put_token(&r, "x");
        assert_false(publish(&r));
        next(r.wire.client);
        assert_int_equal(r.control->head, 0);
        ok_begin(&script, 3, 1);
        text(&script, "tokens");
        byte(&script, 0x90);
        frame_end(&script);
        send_script(&r.wire);
        assert_int_equal(smv_tokenize(r.wire.client, NULL, "x", 1, &ids, &count), 0);
        assert_int_equal(r.control->head, r.writer.tail);
        close_ring(&r);
}

static void records_that_precede_their_reply_wait_in_the_ring(void **state)
{
        struct ringer r;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
        put_token(&r, "a");
        assert_int_equal(try_tokens(&r, 3, 0, 0, 1, "A"), 0);
        put_token(&r, "b");
        assert_int_equal(try_end(&r, 3, 1), 0);
        assert_false(publish(&r));
        for (int i = 0; i < 5; i++)
                doorbell(&script);
        ok(&script, 3);
        doorbell(&script);
        send_script(&r.wire);
        assert_int_equal(generate(r.wire.client), 3);
        expect_tokens(r.wire.client, 2, 0, 1, "a");
        expect_tokens(r.wire.client, 3, 0, 1, "A");
        expect_tokens(r.wire.client, 2, 1, 1, "b");
        expect_end(r.wire.client, 3, SMV_END_LENGTH, SMV_OK);
        close_ring(&r);
}

static void kicks_between_replies_do_not_grow_the_buffer(void **state)
{
        struct ringer r;
        const char *json;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
        for (uint32_t id = 3; id < 20; id++) {
                for (int i = 0; i < 30000; i++)
                        doorbell(&script);
                ok_begin(&script, id, 1);
                text(&script, "status");
                byte(&script, 0x80);
                frame_end(&script);
                send_script(&r.wire);
                assert_int_equal(smv_status(r.wire.client, &json), 0);
        }
        assert_true(r.wire.client->connection.in.size <= 65536);
        close_ring(&r);
}

static void reading_a_token_from_a_ring_allocates_nothing(void **state)
{
        unsigned long before = 0;
        struct ringer r;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
        for (int turn = 0; turn < 4096; turn++) {
                if (turn == 16)
                        before = alloc_count;
                assert_int_equal(next_now(r.wire.client), 0);
                put_token(&r, "some words");
                show(&r);
                assert_int_equal(next(r.wire.client).token_count, 1);
        }
        assert_true(before > 0);
        assert_int_equal(alloc_count, before);
        close_ring(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_reader_mode_receives_all_records_in_order),
                cmocka_unit_test(hello_sends_the_transport_doorbell_and_ring_size_given),
                cmocka_unit_test(the_fd_wakes_a_poll_after_smv_next_returned_0),
                cmocka_unit_test(a_polling_reader_needs_no_doorbell),
                cmocka_unit_test(a_spinning_reader_needs_no_doorbell),
                cmocka_unit_test(smv_next_returns_at_its_timeout),
                cmocka_unit_test(a_batch_reader_sleeps_until_its_bytes_or_an_end_arrive),
                cmocka_unit_test(a_batch_reader_gets_an_incomplete_batch_at_the_timeout),
                cmocka_unit_test(frees_ring_bytes_by_the_quarter_and_resumes_a_stalled_daemon),
                cmocka_unit_test(resume_waits_until_the_socket_accepts_it),
                cmocka_unit_test(a_call_frees_the_ring_bytes_of_the_last_event),
                cmocka_unit_test(records_that_precede_their_reply_wait_in_the_ring),
                cmocka_unit_test(kicks_between_replies_do_not_grow_the_buffer),
                cmocka_unit_test(reading_a_token_from_a_ring_allocates_nothing),
        };

        count_allocs();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
