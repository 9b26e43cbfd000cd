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

#include "tests/e2e/honest.h"
#include "tests/e2e/probe.h"
#include "tests/e2e/raw-ring.h"

#define STREAMS 4 /* each by itself is more than the smallest ring takes without a reader */

static struct want lengthy(uint32_t number)
{
        return (struct want){ .prompt = "Once upon a time",
                              .max_tokens = 400,
                              .told = TOLD_MOST,
                              .temperature = 1,
                              .seed = 100 + number,
                              .ignore_eos = true };
}

static void ask_all(struct talk *talk, uint32_t ids[STREAMS])
{
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = lengthy(i);

                ids[i] = talk_generate(talk, &want);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_true(talk_reply(talk, ids[i])->ok);
}

/* Records them one by one: each fits into a usual ring, so that a delayed reader does not stall
 * it. */
static void record_alone(const struct house *house, struct stream *alone[STREAMS])
{
        struct talk *talk = talk_greet(house);

        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = lengthy(i);

                alone[i] = stream_copy(talk_whole(talk, &want));
        }
        talk_close(talk);
}

static void forget_alone(struct stream *alone[STREAMS])
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
static pid_t start_reader(const struct house *house, const char *doorbell,
                          struct stream *alone[STREAMS], enum smv_reason reason)
{
        pid_t pid = child();
        uint32_t ids[STREAMS], count = 0;
        struct raw_ring *ring;

        if (pid)
                return pid;
        ring = raw_open(house, doorbell, RAW_RING_BYTES);
        ask_all(ring->talk, ids);
        while (count < 30)
                count += raw_read(ring, 1);
        raise(SIGSTOP);
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct stream *stream = raw_end(ring, ids[i]);

                assert_int_equal(stream->end.reason, reason);
                if (reason == SMV_END_STALLED)
                        assert_prefix_stream(stream, alone[i]);
                else
                        assert_same_stream(stream, alone[i]);
        }
        assert_int_equal(ring->talk->stream_count, STREAMS);
        _exit(0);
}

static void stop_in_mid_stream(struct house *house, const char *doorbell, enum smv_reason reason,
                               struct stream *alone[STREAMS])
{
        bool forever = reason == SMV_END_STALLED;
        uint64_t end = now_ms() + PATIENCE_MS;
        struct honest honest;
        struct probe *probe;
        int status;
        pid_t pid;

        honest = honest_begin(house);
        pid = start_reader(house, doorbell, alone, reason);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
        probe = probe_begin(house);
        /* The honest client asks for nothing more meanwhile. */
        for (honest_look_for(&honest, 400); forever && house_status(house, "requests.alive");
             sleep_ms(1))
                assert_true(now_ms() < end);
        while (!forever && house_status(house, "requests.stalled") < STREAMS) {
                assert_true(now_ms() < end);
                honest_look_for(&honest, 20);
        }
        probe_end(probe, "a stopped reader");
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        kill(pid, SIGCONT);
        assert_int_equal(process_wait(pid), 0);
        honest_end(&honest);
}

static void reader_that_was_stopped_finds_every_record_where_it_was(void **state)
{
        struct stream *alone[STREAMS];
        struct house *house = *state;

        QUICK_HOUSE(house, FAST, "--threads", "1");
        record_alone(house, alone);
        stop_in_mid_stream(house, "kick", SMV_END_LENGTH, alone);
        house_rest(house);
        stop_in_mid_stream(house, "futex", SMV_END_LENGTH, alone);
        forget_alone(alone);
        house_stop(house);
}

static void reader_that_is_stopped_for_too_long_finds_its_ends(void **state)
{
        struct stream *alone[STREAMS];
        struct house *house = *state;

        QUICK_HOUSE(house, FAST, "--threads", "1", "--stall-ms", "300");
        record_alone(house, alone);
        stop_in_mid_stream(house, "kick", SMV_END_STALLED, alone);
        forget_alone(alone);
        house_stop(house);
}

/* One client reads nothing at all, one reads a record a second: both get all their bells. */
static void readers_that_hardly_read_keep_nobody_waiting(void **state)
{
        struct raw_ring *never, *slow;
        struct stream *alone[STREAMS];
        struct house *house = *state;
        uint32_t ids[STREAMS];
        struct honest honest;
        struct probe *probe;

        QUICK_HOUSE(house, FAST, "--threads", "1");
        record_alone(house, alone);
        honest = honest_begin(house);
        probe_rest(house, 300);
        never = raw_open(house, "kick", RAW_RING_BYTES);
        slow = raw_open(house, "kick", RAW_RING_BYTES);
        never->own->wake_position = slow->own->wake_position = 0;
        ask_all(never->talk, ids);
        ask_all(slow->talk, ids);
        probe = probe_begin(house);
        for (int i = 0; i < 4; i++) {
                while (!raw_read(slow, 1))
                        honest_look(&honest);
                honest_look_for(&honest, 1000);
        }
        probe_end(probe, "those who hardly read");
        wait_status(house, "requests.stalled", 2 * STREAMS);
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(raw_end(slow, ids[i]), alone[i]);
        raw_close(never);
        raw_close(slow);
        honest_end(&honest);
        forget_alone(alone);
        house_stop(house);
}

/* ---- readers that send nothing ---- */

/*
 * Begins and cancels more streams than the ring has room for ENDs, so that ENDs wait for room.
 * Then the client reads them, which its head shows, and does not tell the daemon.
 */
static struct raw_ring *hold_ends_back(struct house *house)
{
        struct raw_ring *ring = raw_open(house, "kick", RAW_RING_BYTES);
        /* As ids: with the scribe the stream would be cancelled before it began. */
        const struct want want = {
                .prompt = "a", .as_ids = true, .max_tokens = 1, .ignore_eos = true
        };
        uint64_t end = now_ms() + PATIENCE_MS, waiting = 0;
        uint32_t count = 0;

        while (waiting < 16) {
                uint32_t ids[16];

                for (uint32_t i = 0; i < 16; i++) {
                        ids[i] = talk_generate(ring->talk, &want);
                        talk_say(ring->talk, "op=s id=u stream=u", "cancel", 4000000000u, ids[i]);
                }
                for (uint32_t i = 0; i < 16; i++)
                        count += talk_reply(ring->talk, ids[i])->ok;
                sleep_ms(10); /* those that find room end meanwhile */
                waiting = talk_status(ring->talk, "requests.alive");
                assert_true(now_ms() < end);
        }
        printf("# of %u streams %u wait for room for their ENDs\n", count, (unsigned)waiting);
        return ring;
}

static void reader_that_does_not_say_that_it_has_read_does_not_keep_the_daemon(void **state)
{
        struct house *house = *state;
        struct raw_ring *ring;
        uint64_t tail;

        QUICK_HOUSE(house, FAST, "--threads", "1", "--drain-ms", "100", "--uid-requests", "100");
        ring = hold_ends_back(house);
        tail = __atomic_load_n(&ring->page->tail, __ATOMIC_SEQ_CST);
        __atomic_store_n(&ring->own->head, tail, __ATOMIC_SEQ_CST);
        kill(house->pid, SIGTERM);
        for (uint64_t end = now_ms() + PATIENCE_MS; now_ms() < end && !ring->talk->hung_up;)
                talk_turn(ring->talk, 100);
        assert_true(ring->talk->hung_up);
        assert_int_equal(house_wait(house), 0);
        raw_close(ring);
        assert_no_process_left();
}

/* ---- the connection belongs to the process that holds it ---- */

/* For all the daemon knows, another process has the pid by then.  The process that holds the socket
 * is the client. */
static void connection_lives_as_long_as_its_socket_whoever_connected(void **state)
{
        struct stream *alone[STREAMS];
        struct house *house = *state;
        struct raw_ring *ring;
        uint32_t ids[STREAMS];
        int pair[2], status;
        pid_t pid;

        QUICK_HOUSE(house, FAST, "--threads", "1");
        record_alone(house, alone);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        pid = child();
        if (!pid) {
                struct talk *talk = talk_open(house);

                assert_int_equal(send_with(pair[1], "s", 1, &talk->fd, 1), 1);
                _exit(0);
        }
        waitpid(pid, &status, 0);
        assert_int_equal(status, 0);
        ring = raw_adopt(raw_receive(pair[0]), "kick", RAW_RING_BYTES);
        ask_all(ring->talk, ids);
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(raw_end(ring, ids[i]), alone[i]);
        raw_close(ring);
        close(pair[0]);
        close(pair[1]);
        forget_alone(alone);
        house_stop(house);
}

/* ---- the daemon's end ---- */

/* After the daemon is killed, no process wakes a waiter on the futex.  So the reader waits for a
 * second at most, and looks. */
static uint64_t sleep_on(const struct raw_ring *ring)
{
        const struct timespec most = { 1, 0 };
        const uint32_t *word = (const uint32_t *)&ring->page->tail;
        uint64_t start = now_ms();

        __atomic_store_n(&ring->own->wake_position, ring->head, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, word, FUTEX_WAIT, __atomic_load_n(word, __ATOMIC_SEQ_CST), &most);
        return now_ms() - start;
}

static void killed_daemon_leaves_what_it_published_and_a_hang_up(void **state)
{
        struct house *house = *state;
        struct raw_ring *kick, *futex;
        struct stream *alone[STREAMS];
        uint32_t ids[STREAMS], more[STREAMS];
        struct pollfd poll_fd;
        uint64_t slept;

        QUICK_HOUSE(house, FAST, "--threads", "1");
        record_alone(house, alone);
        kick = raw_open(house, "kick", RAW_RING_BYTES);
        futex = raw_open(house, "futex", RAW_RING_BYTES);
        ask_all(kick->talk, ids);
        ask_all(futex->talk, more);
        wait_status(house, "requests.stalled", 2 * STREAMS);
        kill(house->pid, SIGKILL);
        assert_int_equal(house_wait(house), -SIGKILL);
        poll_fd = (struct pollfd){ .fd = kick->talk->fd, .events = POLLIN | POLLRDHUP };
        assert_int_equal(poll(&poll_fd, 1, 1000), 1);
        assert_true(poll_fd.revents & POLLHUP);
        slept = sleep_on(futex);
        printf("# asleep on a dead daemon's futex for %u ms\n", (unsigned)slept);
        assert_in_range(slept, 900, 10000);
        talk_hangup(futex->talk);
        assert_true(raw_read(kick, UINT32_MAX) > 300);
        assert_true(raw_read(futex, UINT32_MAX) > 300);
        for (uint32_t i = 0; i < STREAMS; i++) {
                assert_prefix(talk_stream(kick->talk, ids[i]), alone[i]);
                assert_prefix(talk_stream(futex->talk, more[i]), alone[i]);
        }
        raw_close(kick);
        raw_close(futex);
        forget_alone(alone);
        assert_no_process_left();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(reader_that_was_stopped_finds_every_record_where_it_was),
                STORY(reader_that_is_stopped_for_too_long_finds_its_ends),
                STORY(readers_that_hardly_read_keep_nobody_waiting),
                STORY(reader_that_does_not_say_that_it_has_read_does_not_keep_the_daemon),
                STORY(connection_lives_as_long_as_its_socket_whoever_connected),
                STORY(killed_daemon_leaves_what_it_published_and_a_hang_up),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", "BABBLE_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
