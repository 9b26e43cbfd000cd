/* A client that does not read delays only itself, and for a limited time. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"

#define QUIET_MS 200
#define STREAMS  2 /* each by itself is more than a ring and a socket take without a reader */

static struct want lengthy(uint32_t number)
{
        return (struct want){ .prompt = "Once upon a time",
                              .max_tokens = LONG_LOGPROBS,
                              .logprobs = LOGPROBS_MOST,
                              .temperature = 1,
                              .seed = 100 + number,
                              .ignore_eos = true };
}

static struct stream *alone[STREAMS];

/* Records the streams one by one, read as they come; once for all tests, because the daemons
 * answer the same. */
static void record_reference(const struct daemon_fixture *fixture)
{
        struct raw_client *client;

        if (alone[0])
                return;
        client = raw_client_greet(fixture);
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = lengthy(i);

                alone[i] = stream_copy(raw_client_complete(client, &want));
        }
        raw_client_close(client);
}

static void free_reference(void)
{
        for (uint32_t i = 0; i < STREAMS; i++)
                stream_free(alone[i]);
}

/* Begins all streams, and reads nothing. */
static struct raw_client *ask_all(const struct daemon_fixture *fixture, uint32_t *ids)
{
        struct raw_client *client = raw_client_greet(fixture);

        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct want want = lengthy(i);

                ids[i] = raw_client_generate(client, &want);
        }
        return client;
}

/* Waits until status reports that all of them stall, and nothing is computed any more. */
static struct raw_client *stall_streams(const struct daemon_fixture *fixture, uint32_t *ids)
{
        struct raw_client *client = ask_all(fixture, ids),
                          *asking = raw_client_greet_over(fixture, RAW_CLIENT_SOCKET);
        uint64_t end = now_ms() + TIMEOUT_MS, steps = 0, before;

        do {
                assert_true(now_ms() < end);
                before = steps;
                sleep_ms(QUIET_MS);
                steps = raw_client_status(asking, "steps");
        } while (raw_client_status(asking, "requests.stalled") < STREAMS || steps != before);
        raw_client_close(asking);
        return client;
}

static void a_stalled_reader_finds_every_token_in_order(void **state)
{
        struct daemon_fixture *fixture = *state;
        uint32_t ids[STREAMS];
        struct raw_client *client;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K");
        record_reference(fixture);
        client = stall_streams(fixture, ids);
        assert_int_equal(fixture_status(fixture, "requests.running"), STREAMS);
        for (uint32_t i = 0; i < STREAMS; i++) {
                assert_same_stream(raw_client_await_end(client, ids[i]), alone[i]);
                assert_true(raw_client_await_reply(client, ids[i])->ok);
        }
        assert_int_equal(client->stream_count, STREAMS);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The client reads bit by bit, with pauses: it stalls and wakes many times. */
static void a_reader_that_stalls_often_loses_no_token(void **state)
{
        struct daemon_fixture *fixture = *state;
        uint32_t ids[STREAMS];
        struct raw_client *client;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K", "--pipeline-depth",
                           "2");
        record_reference(fixture);
        client = stall_streams(fixture, ids);
        for (uint32_t i = 0; i < 40; i++) {
                raw_client_poll(client, 10);
                sleep_ms(5);
        }
        for (uint32_t i = 0; i < STREAMS; i++)
                assert_same_stream(raw_client_await_end(client, ids[i]), alone[i]);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The work of the daemon for a stream whose prompt it has in the cache. */
struct cost {
        uint64_t ms, steps, rows;
};

static struct cost cost_of(struct raw_client *client, const struct want *want,
                           const struct stream *same)
{
        uint64_t start = now_ms(), steps = raw_client_status(client, "steps"),
                 rows = raw_client_status(client, "rows");

        assert_same_stream(raw_client_complete(client, want), same);
        return (struct cost){ now_ms() - start, raw_client_status(client, "steps") - steps,
                              raw_client_status(client, "rows") - rows };
}

static void stalled_streams_add_no_steps_to_other_streams(void **state)
{
        const struct want want = lengthy(1);
        struct daemon_fixture *fixture = *state;
        struct cost before, beside;
        struct raw_client *sleeper, *client;
        struct stream *first;
        uint32_t ids[STREAMS];

        /* Guesses would make the number of steps depend on how long steps take. */
        START_QUICK_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K", "--draft", "off");
        client = raw_client_greet(fixture);
        first = stream_copy(raw_client_complete(client, &want));
        before = cost_of(client, &want, first);
        sleeper = stall_streams(fixture, ids);
        beside = cost_of(client, &want, first);
        printf("# a stream takes %u ms alone, %u ms beside %u stalled ones\n", (unsigned)before.ms,
               (unsigned)beside.ms, STREAMS);
        assert_int_equal(raw_client_status(client, "requests.stalled"), STREAMS);
        assert_int_equal(beside.steps, before.steps);
        assert_int_equal(beside.rows, before.rows);
        raw_client_close(sleeper);
        raw_client_close(client);
        stream_free(first);
        fixture_stop(fixture);
}

static void ends_a_stream_that_stalls_for_too_long(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        uint32_t ids[STREAMS];
        struct raw_client *client;
        uint64_t end;
        size_t count = 0;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K", "--stall-timeout-ms",
                           "300");
        record_reference(fixture);
        honest = honest_client_start(fixture);
        client = ask_all(fixture, ids);
        honest_client_check_for(&honest, 400);
        honest_client_stop(&honest);
        for (end = now_ms() + TIMEOUT_MS; fixture_status(fixture, "requests.submitted");
             sleep_ms(100))
                assert_true(now_ms() < end);
        for (uint32_t i = 0; i < STREAMS; i++) {
                const struct stream *stream = raw_client_await_end(client, ids[i]);

                assert_int_equal(stream->end.reason, SMV_END_STALLED);
                assert_prefix_stream(stream, alone[i]);
                count += stream->token_count;
        }
        assert_true(count > 100);
        assert_int_equal(raw_client_complete(client, &(struct want){ .prompt = "a",
                                                                     .max_tokens = 3,
                                                                     .ignore_eos = true })
                                 ->token_count,
                         3);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void frees_everything_when_a_stalled_client_disconnects(void **state)
{
        struct daemon_fixture *fixture = *state;
        uint32_t ids[STREAMS];

        START_QUICK_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K");
        for (uint32_t i = 0; i < 3; i++) {
                raw_client_close(stall_streams(fixture, ids));
                fixture_await_rest(fixture);
        }
        fixture_stop(fixture);
}

/* Drops the bytes that can not be sent at once; true while the daemon listens. */
static bool send_until_refused(int fd, const struct bytes_out *bytes)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
        size_t at = 0;

        while (at < bytes->count) {
                ssize_t n =
                        send(fd, bytes->at + at, bytes->count - at, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n > 0)
                        at += (size_t)n;
                else if (errno != EAGAIN)
                        return false;
                else if (poll(&poll_fd, 1, 10000) <= 0)
                        fail_msg("%s", "the daemon neither listens nor hangs up");
        }
        return true;
}

static uint64_t resident_kib(pid_t pid)
{
        char path[64], *text, *at;
        uint64_t kib;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        text = file_text(path);
        at = strstr(text, "VmRSS:");
        kib = at ? strtoull(at + 6, NULL, 10) : 0;
        free(text);
        return kib;
}

static void disconnects_a_client_that_asks_and_never_reads(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        uint64_t before, after, most = 0;
        struct raw_client *client;
        uint32_t pairs = 0;
        bool listens = true;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K");
        honest = honest_client_start(fixture);
        before = resident_kib(fixture->pid);
        client = raw_client_greet(fixture);
        while (listens && pairs < 1000000) {
                struct bytes_out all = { 0 };

                for (uint32_t i = 0; i < 20; i++, pairs++) {
                        frame_put(&all, "op=s id=u prompt=s", "generate", 10 + 2 * pairs, "Once");
                        frame_put(&all, "op=s id=u stream=u", "cancel", 11 + 2 * pairs,
                                  10 + 2 * pairs);
                }
                listens = send_until_refused(client->fd, &all);
                free(all.at);
                honest_client_check(&honest);
                after = resident_kib(fixture->pid);
                most = after > most ? after : most;
        }
        printf("# hung up after %u pairs; %u MiB more at most\n", pairs,
               (unsigned)((most > before ? most - before : 0) >> 10));
        assert_false(listens);
        raw_client_await_hangup(client); /* everything sent before is whole frames, as always */
        raw_client_close(client);
        honest_client_stop(&honest);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_stalled_reader_finds_every_token_in_order),
                DAEMON_TEST(a_reader_that_stalls_often_loses_no_token),
                DAEMON_TEST(stalled_streams_add_no_steps_to_other_streams),
                DAEMON_TEST(ends_a_stream_that_stalls_for_too_long),
                DAEMON_TEST(frees_everything_when_a_stalled_client_disconnects),
                DAEMON_TEST(disconnects_a_client_that_asks_and_never_reads),
        };

        int failed;

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        free_reference();
        return failed;
}
