/*
 * Clients with a ring that stop, sleep, die, or send nothing: which records they lose, and that no
 * other client loses any.  The same for the daemon's own end.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"
#include "tests/e2e/latency-probe.h"
#include "tests/e2e/manual-ring.h"

#define STREAMS 4 /* each by itself is more than the smallest ring takes without a reader */

static struct want lengthy(uint32_t number)
{
        return (struct want){ .prompt = "Once upon a time",
                              .max_tokens = 400,
                              .logprobs = LOGPROBS_MOST,
                              .temperature = 1,
                              .seed = 100 + number,
                              .ignore_eos = true };
}

static void ask_all(struct raw_client *client, uint32_t ids[STREAMS])
{
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = lengthy(i);

                ids[i] = raw_client_generate(client, &want);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_true(raw_client_await_reply(client, ids[i])->ok);
}

/* Records them one by one: each fits into a usual ring, so that a delayed reader does not stall
 * it. */
static void record_reference(const struct daemon_fixture *fixture, struct stream *alone[STREAMS])
{
        struct raw_client *client = raw_client_greet(fixture);

        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = lengthy(i);

                alone[i] = stream_copy(raw_client_complete(client, &want));
        }
        raw_client_close(client);
}

static void free_reference(struct stream *alone[STREAMS])
{
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
}

/* For a stream that may have had no room at all. */
static void assert_prefix(const struct stream *stream, const struct stream *whole)
{
        if (stream)
                assert_prefix_stream(stream, whole);
}

/* ---- readers that stop ---- */

/* A child that reads some of its streams, is stopped, and reads the rest. */
static pid_t start_reader(const struct daemon_fixture *fixture, const char *doorbell,
                          struct stream *alone[STREAMS], enum smv_reason reason)
{
        pid_t pid = fork_child();
        uint32_t ids[STREAMS], count = 0;
        struct manual_ring *ring;

        if (pid)
                return pid;
        ring = manual_ring_open(fixture, doorbell, MANUAL_RING_BYTES);
        ask_all(ring->client, ids);
        while (count < 30)
                count += manual_ring_read(ring, 1);
        raise(SIGSTOP);
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct stream *stream = manual_ring_await_end(ring, ids[i]);

                assert_int_equal(stream->end.reason, reason);
                if (reason == SMV_END_STALLED)
                        assert_prefix_stream(stream, alone[i]);
                else
                        assert_same_stream(stream, alone[i]);
        }
        assert_int_equal(ring->client->stream_count, STREAMS);
        _exit(0);
}

static void stop_reader_in_stream(struct daemon_fixture *fixture, const char *doorbell,
                                  enum smv_reason reason, struct stream *alone[STREAMS])
{
        bool forever = reason == SMV_END_STALLED;
        uint64_t end = now_ms() + TIMEOUT_MS;
        struct honest_client honest;
        struct latency_probe *probe;
        int status;
        pid_t pid;

        honest = honest_client_start(fixture);
        pid = start_reader(fixture, doorbell, alone, reason);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
        probe = latency_probe_start(fixture);
        /* The honest client asks for nothing more meanwhile. */
        for (honest_client_check_for(&honest, 400);
             forever && fixture_status(fixture, "requests.open"); sleep_ms(1))
                assert_true(now_ms() < end);
        while (!forever && fixture_status(fixture, "requests.stalled") < STREAMS) {
                assert_true(now_ms() < end);
                honest_client_check_for(&honest, 20);
        }
        latency_probe_stop(probe, "a stopped reader");
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        kill(pid, SIGCONT);
        assert_int_equal(await_process(pid), 0);
        honest_client_stop(&honest);
}

static void a_stopped_reader_finds_every_record_when_continued(void **state)
{
        struct stream *alone[STREAMS];
        struct daemon_fixture *fixture = *state;

        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1");
        record_reference(fixture, alone);
        stop_reader_in_stream(fixture, "kick", SMV_END_LENGTH, alone);
        fixture_await_rest(fixture);
        stop_reader_in_stream(fixture, "futex", SMV_END_LENGTH, alone);
        free_reference(alone);
        fixture_stop(fixture);
}

static void a_reader_stopped_for_too_long_finds_its_streams_ended(void **state)
{
        struct stream *alone[STREAMS];
        struct daemon_fixture *fixture = *state;

        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--stall-timeout-ms", "300");
        record_reference(fixture, alone);
        stop_reader_in_stream(fixture, "kick", SMV_END_STALLED, alone);
        free_reference(alone);
        fixture_stop(fixture);
}

/* One client reads nothing at all, one reads a record a second: both get all their bells. */
static void slow_ring_readers_do_not_delay_other_clients(void **state)
{
        struct manual_ring *never, *slow;
        struct stream *alone[STREAMS];
        struct daemon_fixture *fixture = *state;
        uint32_t ids[STREAMS];
        struct honest_client honest;
        struct latency_probe *probe;

        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1");
        record_reference(fixture, alone);
        honest = honest_client_start(fixture);
        latency_probe_baseline(fixture, 300);
        never = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
        slow = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
        never->own->wake_position = slow->own->wake_position = 0;
        ask_all(never->client, ids);
        ask_all(slow->client, ids);
        probe = latency_probe_start(fixture);
        for (int i = 0; i < 4; i++) {
                while (!manual_ring_read(slow, 1))
                        honest_client_check(&honest);
                honest_client_check_for(&honest, 1000);
        }
        latency_probe_stop(probe, "slow readers");
        fixture_await_status(fixture, "requests.stalled", 2 * STREAMS);
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(manual_ring_await_end(slow, ids[i]), alone[i]);
        manual_ring_close(never);
        manual_ring_close(slow);
        honest_client_stop(&honest);
        free_reference(alone);
        fixture_stop(fixture);
}

/* ---- readers that send nothing ---- */

/*
 * Begins and cancels more streams than the ring has room for ENDs, so that ENDs wait for room.
 * Then the client reads them, which its head shows, and does not tell the daemon.
 */
static struct manual_ring *make_ends_wait(struct daemon_fixture *fixture)
{
        struct manual_ring *ring = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
        /* As ids: at the text worker the stream would be cancelled before it began. */
        const struct want want = {
                .prompt = "a", .as_ids = true, .max_tokens = 1, .ignore_eos = true
        };
        uint64_t end = now_ms() + TIMEOUT_MS, waiting = 0;
        uint32_t count = 0;

        while (waiting < 16) {
                uint32_t ids[16];

                for (uint32_t i = 0; i < 16; i++) {
                        ids[i] = raw_client_generate(ring->client, &want);
                        raw_client_send_frame(ring->client, "op=s id=u stream=u", "cancel",
                                              4000000000u, ids[i]);
                }
                for (uint32_t i = 0; i < 16; i++)
                        count += raw_client_await_reply(ring->client, ids[i])->ok;
                sleep_ms(10); /* those that find room end meanwhile */
                waiting = raw_client_status(ring->client, "requests.open");
                assert_true(now_ms() < end);
        }
        printf("# of %u streams %u wait for room for their ENDs\n", count, (unsigned)waiting);
        return ring;
}

static void a_reader_that_sends_no_resume_does_not_delay_shutdown(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        uint64_t tail;

        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1", "--drain-timeout-ms", "100",
                           "--uid-requests", "100");
        ring = make_ends_wait(fixture);
        tail = __atomic_load_n(&ring->page->tail, __ATOMIC_SEQ_CST);
        __atomic_store_n(&ring->own->head, tail, __ATOMIC_SEQ_CST);
        kill(fixture->pid, SIGTERM);
        for (uint64_t end = now_ms() + TIMEOUT_MS; now_ms() < end && !ring->client->hung_up;)
                raw_client_poll(ring->client, 100);
        assert_true(ring->client->hung_up);
        assert_int_equal(fixture_await_exit(fixture), 0);
        manual_ring_close(ring);
        assert_no_process_left();
}

/* ---- the connection belongs to the process that holds it ---- */

/* For all the daemon knows, another process has the pid by then.  The process that holds the socket
 * is the client. */
static void a_connection_survives_the_process_that_opened_it(void **state)
{
        struct stream *alone[STREAMS];
        struct daemon_fixture *fixture = *state;
        struct manual_ring *ring;
        uint32_t ids[STREAMS];
        int pair[2], status;
        pid_t pid;

        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1");
        record_reference(fixture, alone);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        pid = fork_child();
        if (!pid) {
                struct raw_client *client = raw_client_connect(fixture);

                assert_int_equal(send_with_fds(pair[1], "s", 1, &client->fd, 1), 1);
                _exit(0);
        }
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
        ring = manual_ring_adopt(receive_fd(pair[0]), "kick", MANUAL_RING_BYTES);
        ask_all(ring->client, ids);
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(manual_ring_await_end(ring, ids[i]), alone[i]);
        manual_ring_close(ring);
        close(pair[0]);
        close(pair[1]);
        free_reference(alone);
        fixture_stop(fixture);
}

/* ---- the daemon's end ---- */

/* After the daemon is killed, no process wakes a waiter on the futex.  So the reader waits for a
 * second at most, and looks. */
static uint64_t sleep_on_futex(const struct manual_ring *ring)
{
        const struct timespec most = { 1, 0 };
        const uint32_t *word = (const uint32_t *)&ring->page->tail;
        uint64_t start = now_ms();

        __atomic_store_n(&ring->own->wake_position, ring->head, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, word, FUTEX_WAIT, __atomic_load_n(word, __ATOMIC_SEQ_CST), &most);
        return now_ms() - start;
}

static void a_killed_daemon_leaves_its_records_readable_and_hangs_up(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct manual_ring *kick, *futex;
        struct stream *alone[STREAMS];
        uint32_t ids[STREAMS], more[STREAMS];
        struct pollfd poll_fd;
        uint64_t slept;

        START_QUICK_DAEMON(fixture, MANY_CONNECTS, "--threads", "1");
        record_reference(fixture, alone);
        kick = manual_ring_open(fixture, "kick", MANUAL_RING_BYTES);
        futex = manual_ring_open(fixture, "futex", MANUAL_RING_BYTES);
        ask_all(kick->client, ids);
        ask_all(futex->client, more);
        fixture_await_status(fixture, "requests.stalled", 2 * STREAMS);
        kill(fixture->pid, SIGKILL);
        assert_int_equal(fixture_await_exit(fixture), -SIGKILL);
        poll_fd = (struct pollfd){ .fd = kick->client->fd, .events = POLLIN | POLLRDHUP };
        assert_int_equal(poll(&poll_fd, 1, 1000), 1);
        assert_true(poll_fd.revents & POLLHUP);
        slept = sleep_on_futex(futex);
        printf("# asleep on a dead daemon's futex for %u ms\n", (unsigned)slept);
        assert_in_range(slept, 900, 10000);
        raw_client_await_hangup(futex->client);
        assert_true(manual_ring_read(kick, UINT32_MAX) > 300);
        assert_true(manual_ring_read(futex, UINT32_MAX) > 300);
        for (uint32_t i = 0; i < STREAMS; i++) {
                assert_prefix(raw_client_stream(kick->client, ids[i]), alone[i]);
                assert_prefix(raw_client_stream(futex->client, more[i]), alone[i]);
        }
        manual_ring_close(kick);
        manual_ring_close(futex);
        free_reference(alone);
        assert_no_process_left();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_stopped_reader_finds_every_record_when_continued),
                DAEMON_TEST(a_reader_stopped_for_too_long_finds_its_streams_ended),
                DAEMON_TEST(slow_ring_readers_do_not_delay_other_clients),
                DAEMON_TEST(a_reader_that_sends_no_resume_does_not_delay_shutdown),
                DAEMON_TEST(a_connection_survives_the_process_that_opened_it),
                DAEMON_TEST(a_killed_daemon_leaves_its_records_readable_and_hangs_up),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
