/*
 * libsamovar and shared memory that another process made: which memory it accepts, which it
 * refuses, and what happens if the memory holds false values, is emptied, or its maker is gone.
 */
#include "tests/unit/client-ring-rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SMALL 4096u

enum fault {
        FAULT_NONE_CAME,
        FAULT_ONE_CAME,
        FAULT_SMALL,
        FAULT_SMALL_CONTROL,
        FAULT_NOT_SEALED,
        FAULT_CONTROL_NOT_SEALED,
        FAULT_NOT_MEMORY,
        FAULT_HUGE_PAGES,
        FAULT_READ_ONLY_CONTROL,
        FAULT_BAD_HEADER,
        FAULT_HEADER_SAYS_MORE,
        FAULT_TINY,
        FAULT_SWAPPED,
        FAULT_N,
};

static const char *const faults[FAULT_N] = {
        [FAULT_NONE_CAME] = "its file descriptors did not arrive",
        [FAULT_ONE_CAME] = "its file descriptors did not arrive",
        [FAULT_SMALL] = "a segment of it is smaller than the reply says",
        [FAULT_SMALL_CONTROL] = "a segment of it is smaller than the reply says",
        [FAULT_NOT_SEALED] = "a segment of it is not sealed against shrinking",
        [FAULT_CONTROL_NOT_SEALED] = "a segment of it is not sealed against shrinking",
        [FAULT_NOT_MEMORY] = "a segment of it is not shared memory",
        [FAULT_HUGE_PAGES] = "a segment of it is not shared memory",
        [FAULT_READ_ONLY_CONTROL] = "Permission denied",
        [FAULT_BAD_HEADER] = "its header has an unknown format",
        [FAULT_HEADER_SAYS_MORE] = "its header has an unknown format",
        [FAULT_TINY] = "a segment of it has an impossible size",
        [FAULT_SWAPPED] = "a segment of it is smaller than the reply says",
};

static void replace_fd(struct offer *offer, unsigned at, int fd)
{
        close(offer->fds[at]);
        offer->fds[at] = fd;
}

static void spoil(struct ringer *r, enum fault fault)
{
        size_t bytes = ring_segment_bytes(r->data_bytes);
        struct offer *offer = &r->offer;
        int fd;

        switch (fault) {
        case FAULT_NONE_CAME:
                close(offer->fds[--offer->fd_count]);
                close(offer->fds[--offer->fd_count]);
                break;
        case FAULT_ONE_CAME:
                close(offer->fds[--offer->fd_count]);
                break;
        case FAULT_SMALL:
                replace_fd(offer, 0, make_segment(bytes - 1, SEALS));
                break;
        case FAULT_SMALL_CONTROL:
                replace_fd(offer, 1, make_segment(100, SEALS));
                break;
        case FAULT_NOT_SEALED:
                replace_fd(offer, 0, make_segment(bytes, F_SEAL_GROW | F_SEAL_SEAL));
                break;
        case FAULT_CONTROL_NOT_SEALED:
                replace_fd(offer, 1, make_segment(4096, F_SEAL_GROW));
                break;
        case FAULT_NOT_MEMORY:
                replace_fd(offer, 0, eventfd(0, EFD_CLOEXEC));
                break;
        case FAULT_HUGE_PAGES: /* made without one of them; touching it may fail */
                fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
                replace_fd(offer, 0, fd < 0 ? eventfd(0, EFD_CLOEXEC) : fd);
                fcntl(offer->fds[0], F_ADD_SEALS, F_SEAL_SHRINK);
                break;
        case FAULT_READ_ONLY_CONTROL:
                replace_fd(offer, 1, read_only(r->control_fd));
                break;
        case FAULT_BAD_HEADER:
                r->writer.page->magic[0] = 'X';
                break;
        case FAULT_HEADER_SAYS_MORE:
                r->writer.page->data_bytes *= 2;
                break;
        case FAULT_TINY:
                offer->ring_bytes = 64;
                break;
        default:
                offer->ring_at = 1;
                offer->control_at = 0;
                break;
        }
}

static void does_not_map_memory_that_fails_a_check(void **state)
{
        unsigned before = open_fds();

        (void)state;
        for (enum fault fault = 0; fault < FAULT_N; fault++) {
                for (unsigned how = SMV_TRANSPORT_AUTO; how <= SMV_TRANSPORT_RING; how++) {
                        char why[200] = "";
                        struct smv_connect o = { .transport = how,
                                                 .message = why,
                                                 .message_bytes = sizeof(why) };
                        struct ringer r;

                        make_ring(&r, SMALL);
                        spoil(&r, fault);
                        assert_true(connect_ring(&r, &o) < 0);
                        assert_non_null(strstr(why, "the daemon's ring cannot be used: "));
                        assert_non_null(strstr(why, faults[fault]));
                        close_ring(&r);
                        assert_int_equal(open_fds(), before);
                }
        }
}

static void closes_descriptors_beyond_those_of_the_ring(void **state)
{
        unsigned before = open_fds();

        (void)state;
        for (unsigned count = 3; count <= 32; count++) {
                struct smv_connect o = { .transport = SMV_TRANSPORT_RING };
                unsigned with;
                struct ringer r;

                make_ring(&r, SMALL);
                while (r.offer.fd_count < count)
                        r.offer.fds[r.offer.fd_count++] = dup(0);
                assert_int_equal(connect_ring(&r, &o), 0);
                with = open_fds();
                send_fds(r.wire.daemon, "\0\0\0", 4, (int[]){ 0, 1 }, 2); /* too late */
                assert_int_equal(next_now(r.wire.client), -ENODATA);
                assert_int_equal(open_fds(), with);
                /* Both ends, and the daemon's own two: the library keeps none of the memory's. */
                assert_int_equal(with, before + 4);
                close_ring(&r);
                assert_int_equal(open_fds(), before);
        }
}

static void accepts_a_ring_only_if_it_asked_for_one(void **state)
{
        char why[200];
        struct smv_connect o = { .message = why, .message_bytes = sizeof(why) };
        struct smv_client *client;
        struct ringer r;
        int pair[2];

        (void)state;
        o.transport = SMV_TRANSPORT_SOCKET;
        make_ring(&r, SMALL);
        assert_int_equal(connect_ring(&r, &o), -EPROTO);
        assert_string_equal(why, "the daemon gave a ring, but the client asked for the socket");
        close_ring(&r);

        for (unsigned how = SMV_TRANSPORT_AUTO; how <= SMV_TRANSPORT_SOCKET + 1; how++) {
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
                begin();
                send_all(pair[0], script.at, script.count);
                o.size = sizeof(o);
                o.fd = pair[1];
                o.use_fd = 1;
                o.transport = how;
                if (how == SMV_TRANSPORT_RING) {
                        assert_int_equal(smv_connect(&o, &client), -EPROTO);
                        assert_string_equal(why, "the daemon gave no ring");
                } else if (how > SMV_TRANSPORT_SOCKET) {
                        assert_int_equal(smv_connect(&o, &client), -EINVAL);
                } else {
                        assert_int_equal(smv_connect(&o, &client), 0);
                        assert_int_equal(smv_transport_used(client), SMV_TRANSPORT_SOCKET);
                        assert_null(smv_socket_used(client));
                        smv_wake_after(client, 1000); /* means nothing here */
                        smv_close(client);
                }
                close(pair[0]);
        }
}

/* Serves two: to the first it promises a ring and hands nothing over. */
struct server {
        int listener;
        char asked[2][256];
        int fds[2];
};

static void *serve_two(void *arg)
{
        struct server *s = arg;
        struct ringer r;

        for (int turn = 0; turn < 2; turn++) {
                s->fds[turn] = accept(s->listener, NULL, NULL);
                recv(s->fds[turn], s->asked[turn], sizeof(s->asked[turn]), 0);
                if (turn) {
                        begin();
                        ok(&script, 2);
                        tokens_frame(&script, 2, 0, 0, 1, "the long way");
                        send_all(s->fds[turn], script.at, script.count);
                } else {
                        make_ring(&r, SMALL);
                        spoil(&r, FAULT_ONE_CAME);
                        send_offer(&r, s->fds[turn]);
                        r.wire = (struct wire){ .daemon = -1 };
                        close_ring(&r);
                }
        }
        return NULL;
}

static void transport_auto_falls_back_to_the_socket(void **state)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct smv_connect o = { SMV_SIZE(smv_connect), .socket = address.sun_path };
        char dir[] = "/tmp/samovar-test-XXXXXX";
        struct smv_client *client;
        struct server s;
        pthread_t thread;

        (void)state;
        memset(&s, 0, sizeof(s));
        assert_non_null(mkdtemp(dir));
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", dir);
        s.listener = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(bind(s.listener, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(s.listener, 4), 0);
        pthread_create(&thread, NULL, serve_two, &s);
        assert_int_equal(smv_connect(&o, &client), 0);
        pthread_join(thread, NULL);

        assert_non_null(memmem(s.asked[0], 256,
                               "\xa9transport\xa4"
                               "auto",
                               15));
        assert_non_null(memmem(s.asked[1], 256, "\xa9transport\xa6socket", 17));
        assert_null(memmem(s.asked[1], 256, "doorbell", 8));
        assert_int_equal(smv_transport_used(client), SMV_TRANSPORT_SOCKET);
        assert_int_equal(problem(client).code, SMV_OK);
        assert_int_equal(generate(client), 2);
        expect_tokens(client, 2, 0, 1, "the long way");
        smv_close(client);
        for (int i = 0; i < 2; i++)
                close(s.fds[i]);
        close(s.listener);
        unlink(address.sun_path);
        rmdir(dir);
}

static void delivers_published_records_before_it_reports_the_loss(void **state)
{
        (void)state;
        for (unsigned bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++) {
                for (int slept = 0; slept < 2; slept++) {
                        struct ringer r;

                        open_ring(&r, SMALL, 2, (struct smv_connect){ .doorbell = bell });
                        if (slept)
                                assert_int_equal(next_now(r.wire.client), 0);
                        put_token(&r, "last");
                        put_token(&r, "words");
                        show(&r);
                        put_token(&r, "never shown");
                        hang_up(&r.wire);
                        expect_tokens(r.wire.client, 2, 0, 1, "last");
                        expect_tokens(r.wire.client, 2, 1, 1, "words");
                        expect_lost(r.wire.client, 2);
                        close_ring(&r);
                }
        }
}

static void *die_before_the_bell(void *arg)
{
        struct ringer *r = arg;

        usleep(20000);
        assert_int_equal(ring_publish(&r->writer), true);
        hang_up(&r->wire);
        return NULL;
}

static void delivers_a_record_without_doorbell_before_the_loss(void **state)
{
        (void)state;
        for (unsigned bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++) {
                struct ringer r;
                pthread_t thread;

                open_ring(&r, SMALL, 1, (struct smv_connect){ .doorbell = bell });
                put_token(&r, "farewell");
                pthread_create(&thread, NULL, die_before_the_bell, &r);
                expect_tokens(r.wire.client, 2, 0, 1, "farewell");
                expect_lost(r.wire.client, 1);
                pthread_join(thread, NULL);
                close_ring(&r);
        }
}

static void *kill_later(void *arg)
{
        usleep(50000);
        kill(*(pid_t *)arg, SIGKILL);
        return NULL;
}

static void killing_the_daemon_wakes_a_client_that_sleeps_on_its_ring(void **state)
{
        (void)state;
        for (unsigned bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++) {
                struct smv_event e = { SMV_SIZE(smv_event) };
                pthread_t thread;
                struct ringer r;
                uint64_t begun;
                pid_t pid;

                open_ring(&r, SMALL, 1, (struct smv_connect){ .doorbell = bell });
                pid = fork();
                assert_true(pid >= 0);
                if (!pid) {
                        close(r.wire.client->connection.fd);
                        pause();
                        _exit(0);
                }
                hang_up(&r.wire);
                begun = monotonic_ns();
                pthread_create(&thread, NULL, kill_later, &pid);
                assert_int_equal(smv_next(r.wire.client, &e, -1), 1);
                assert_int_equal(e.code, SMV_LOST);
                assert_true(monotonic_ns() - begun >= 40000000);
                expect_lost(r.wire.client, 0);
                pthread_join(thread, NULL);
                waitpid(pid, NULL, 0);
                close_ring(&r);
        }
}

static void punch(int fd, size_t bytes)
{
        assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes),
                         0);
}

/* As a daemon does with the memory of a client that it hangs up on. */
static void a_hole_punched_in_the_ring_ends_streams_without_a_token(void **state)
{
        (void)state;
        for (int told = 0; told < 2; told++) {
                struct ringer r;

                open_ring(&r, SMALL, 2, (struct smv_connect){ 0 });
                put_token(&r, "read");
                put_token(&r, "punched away");
                show(&r);
                expect_tokens(r.wire.client, 2, 0, 1, "read");
                if (told) {
                        refusal(&script, 0, "timeout", SMV_TIMEOUT, NULL, "you were too slow");
                        send_script(&r.wire);
                        hang_up(&r.wire);
                }
                punch(r.ring_fd, r.offer.ring_bytes);
                punch(r.control_fd, 4096);
                expect_end(r.wire.client, 2, SMV_END_ERROR, SMV_LOST);
                expect_end(r.wire.client, 3, SMV_END_ERROR, SMV_LOST);
                assert_int_equal(next_now(r.wire.client), -ENOTCONN);
                assert_string_equal(
                        problem(r.wire.client).message,
                        told ? "you were too slow"
                             : "the daemon sent bytes that are not a frame of the protocol");
                close_ring(&r);
        }
}

enum lie {
        LIE_SIZE,
        LIE_HEAD,
        LIE_IDS,
        LIE_STREAM,
        LIE_GAP,
        LIE_MUST,
        LIE_REASON,
        LIE_TAIL_BACK,
        LIE_TAIL_FAR,
        LIE_TAIL_ODD,
        LIE_FRAME,
        LIE_N,
};

static void tell_lie(struct ringer *r, enum lie lie)
{
        uint8_t *at = (uint8_t *)r->ring + SMV_RING_HEADER + r->writer.tail;
        uint64_t tail = r->writer.tail;

        if (lie == LIE_REASON) {
                assert_int_equal(try_end(r, 2, r->sequence), 0);
                at[16] = 9;
        } else {
                put_token(r, "x");
        }
        publish(r);
        if (lie == LIE_SIZE)
                at[1] = 16;
        else if (lie == LIE_HEAD)
                at[10] = 8;
        else if (lie == LIE_IDS)
                at[20] = 2;
        else if (lie == LIE_STREAM)
                at[4] = 77;
        else if (lie == LIE_GAP)
                at[12]++;
        else if (lie == LIE_MUST)
                at[8] = 99, at[9] = SMV_RECORD_CRITICAL;
        else if (lie == LIE_TAIL_BACK)
                r->writer.page->tail = tail - 8;
        else if (lie == LIE_TAIL_FAR)
                r->writer.page->tail = tail + 2 * SMALL;
        else if (lie == LIE_TAIL_ODD)
                r->writer.page->tail = tail + 3;
}

static void an_invalid_ring_ends_streams_but_keeps_earlier_records(void **state)
{
        (void)state;
        for (enum lie lie = 0; lie < LIE_N; lie++) {
                struct ringer r;

                open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
                put_token(&r, "good");
                publish(&r);
                expect_tokens(r.wire.client, 2, 0, 1, "good");
                if (lie == LIE_FRAME) {
                        tokens_frame(&script, 2, 1, 1, 1, "not where records come");
                        send_script(&r.wire);
                } else {
                        tell_lie(&r, lie);
                }
                expect_lost(r.wire.client, 1);
                close_ring(&r);
        }
}

/* Whatever the bytes are: no crash, no hang, and one END for each stream that began. */
static void ends_every_stream_once_for_any_ring_contents(void **state)
{
        uint64_t draw = 20261121;

        (void)state;
        for (int turn = 0; turn < 3000; turn++) {
                struct smv_event e = { SMV_SIZE(smv_event) };
                struct ringer r;
                unsigned ends = 0;
                uint8_t *bytes;
                int got;

                open_ring(&r, SMALL, 2, (struct smv_connect){ 0 });
                for (int i = 0; i < 5; i++)
                        put_token(&r, "abcdefg");
                assert_int_equal(try_end(&r, 3, 0), 0);
                put_token(&r, "h");
                publish(&r);
                bytes = r.ring;
                for (int i = 0; i < 1 + turn % 4; i++) {
                        draw = draw * 6364136223846793005u + 1442695040888963407u;
                        bytes[turn % 8 ? SMV_RING_HEADER + (draw >> 33) % r.writer.tail
                                       : 0x80 + (draw >> 33) % 8] ^=
                                (uint8_t)(1u << (draw >> 29 & 7));
                }
                shutdown(r.wire.daemon, SHUT_WR);
                while ((got = smv_next(r.wire.client, &e, 1000)) > 0)
                        ends += e.kind == SMV_EVENT_END;
                assert_int_equal(got, -ENOTCONN);
                assert_int_equal(ends, 2);
                close_ring(&r);
        }
}

static void skips_a_record_of_unknown_type_in_a_ring(void **state)
{
        struct ringer r;
        void *at;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
        assert_int_equal(ring_put(&r.writer, 99, 0, 2, 0, 40, &at), 0);
        r.sequence = 1;
        put_token(&r, "known");
        show(&r);
        expect_tokens(r.wire.client, 2, 1, 1, "known");
        close_ring(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(does_not_map_memory_that_fails_a_check),
                cmocka_unit_test(closes_descriptors_beyond_those_of_the_ring),
                cmocka_unit_test(accepts_a_ring_only_if_it_asked_for_one),
                cmocka_unit_test(transport_auto_falls_back_to_the_socket),
                cmocka_unit_test(delivers_published_records_before_it_reports_the_loss),
                cmocka_unit_test(delivers_a_record_without_doorbell_before_the_loss),
                cmocka_unit_test(killing_the_daemon_wakes_a_client_that_sleeps_on_its_ring),
                cmocka_unit_test(a_hole_punched_in_the_ring_ends_streams_without_a_token),
                cmocka_unit_test(an_invalid_ring_ends_streams_but_keeps_earlier_records),
                cmocka_unit_test(ends_every_stream_once_for_any_ring_contents),
                cmocka_unit_test(skips_a_record_of_unknown_type_in_a_ring),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
