/*
 * Streams and handles that outlive their connection.  At any moment a client may be killed, let go
 * of a stream, lose it to another client, or come back from any record.  In the end it has, bit for
 * bit, what it would have had in one connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/e2e/stream-log.h"

/* ---- kill -9 ---- */

/* Begins the stream or continues it, notes each record, and dies after `most` of them.  It runs in
 * a child, so it uses no cmocka. */
static int run_reader(const struct daemon_fixture *fixture, const struct smv_generate *ask,
                      struct stream_log *log, enum smv_doorbell doorbell, uint32_t most)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client = resumable_try_connect(fixture, doorbell);
        uint32_t stream;

        if (!client)
                return 2;
        if (log->resume_id) {
                if (smv_attach(client, log->resume_id, log->count, &stream))
                        return 3;
        } else {
                if (smv_generate(client, ask, &stream))
                        return 4;
                log->resume_id = smv_resume_id(client, stream);
        }
        do {
                if (smv_next(client, &event, 60000) != 1)
                        return 5;
                stream_log_add(log, &event);
                if (log->count >= most)
                        kill(getpid(), SIGKILL);
        } while (event.kind != SMV_EVENT_END);
        return 0;
}

/* Returns how often the reader was killed. */
static uint32_t read_with_kills(const struct daemon_fixture *fixture,
                                const struct smv_generate *ask, struct stream_log *log)
{
        uint32_t killed = 0;
        int status;

        do {
                uint32_t most = log->count + 1 + random_below(60);
                enum smv_doorbell doorbell = random_below(3);
                bool at_any_moment = !random_below(4);
                pid_t pid = fork();

                if (!pid) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        _exit(run_reader(fixture, ask, log, doorbell, most));
                }
                if (at_any_moment) {
                        usleep(random_below(20000));
                        kill(pid, SIGKILL);
                }
                status = await_process(pid);
                if (status && status != -SIGKILL)
                        fail_msg("a reader ended with %d", status);
                killed += status != 0;
        } while (status && log->resume_id && !log->ended);
        return killed;
}

static void a_stream_resumes_at_the_next_token_after_its_reader_is_killed(void **state)
{
        uint32_t times = scaled(60, 4000), killed = 0, unknown = 0, records = 0;
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;

        START_QUICK_FOR_RESUMING(fixture, MANY_RESUMABLE);
        client = resumable_connect(fixture);
        for (uint32_t i = 0; i < times; i++) {
                struct stream_log *whole = stream_log_new(), *parts = stream_log_new();
                struct smv_generate ask = resumable_draw();

                killed += read_with_kills(fixture, &ask, parts);
                if (parts->resume_id) {
                        stream_log_read_whole(client, &ask, whole);
                        assert_same_log(whole, parts);
                        resumable_stream_drop(client, parts->resume_id);
                        records += whole->count;
                } else {
                        /* The reader died before it was told the number; the stream lasts as long
                         * as its time. */
                        unknown++;
                }
                stream_log_free(whole);
                stream_log_free(parts);
        }
        printf("# %u streams of %u records, their readers killed %u times, %u before the first "
               "answer\n",
               times - unknown, records, killed, unknown);
        assert_true(killed > times / 2);
        smv_close(client);
        fixture_await_status(fixture, "resumable.open", 0);
        fixture_stop(fixture);
}

/* ---- attach, detach, take over ---- */

/* One reader with a few connections, which moves between them. */
struct moving_reader {
        const struct daemon_fixture *fixture;
        struct smv_client *clients[3];
        uint32_t streams[3]; /* 0: it is not attached there */
        uint64_t resume_id;
        struct stream_log *log;
};

/* The earlier connection still gets the records that it has not read; after them it is told of the
 * move. */
static void read_until_moved(struct moving_reader *r, uint32_t at)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        do {
                assert_int_equal(smv_next(r->clients[at], &event, 60000), 1);
                if (event.kind == SMV_EVENT_TOKENS || event.code != SMV_MOVED)
                        stream_log_add(r->log, &event);
        } while (event.kind != SMV_EVENT_END);
        /* The stream may have had its END before it was taken over. */
        assert_true(event.code == SMV_MOVED || event.code == SMV_OK);
        r->streams[at] = 0;
}

static uint32_t attached_at(const struct moving_reader *r)
{
        uint32_t at = 0;

        while (at < 3 && !r->streams[at])
                at++;
        return at;
}

static void attach_at(struct moving_reader *r, uint32_t at)
{
        uint32_t before = attached_at(r), from = random_below(r->log->count + 1);
        uint32_t stream;
        int error;

        if (random_below(2))
                from = r->log->count;
        if (r->log->ended && from == r->log->count)
                from--;
        error = smv_attach(r->clients[at], r->resume_id, from, &stream);
        assert_int_equal(error, 0);
        if (before == at) { /* taken over by the same connection */
                struct smv_event event = { SMV_SIZE(smv_event) };
                bool moved = false, gone = false;

                r->streams[at] = stream;
                while (!moved && !gone) {
                        assert_int_equal(smv_next(r->clients[at], &event, 60000), 1);
                        moved = event.kind == SMV_EVENT_END && event.code == SMV_MOVED;
                        if (!moved)
                                stream_log_add(r->log, &event);
                        gone = event.kind == SMV_EVENT_END && event.stream != stream && !moved;
                }
                return;
        }
        r->streams[at] = stream;
        if (before < 3)
                read_until_moved(r, before);
}

static void take_step(struct moving_reader *r)
{
        uint32_t at = attached_at(r);

        switch (random_below(at < 3 ? 6 : 1)) {
        case 0:
                attach_at(r, random_below(3));
                break;
        case 1:
                assert_int_equal(smv_detach(r->clients[at], r->streams[at]), 0);
                r->streams[at] = 0;
                break;
        case 2:
                smv_close(r->clients[at]);
                r->clients[at] = resumable_connect(r->fixture);
                r->streams[at] = 0;
                break;
        default:
                if (stream_log_read(r->clients[at], r->log, 1 + random_below(30)))
                        r->streams[at] = 0;
        }
}

static void move_reader(struct moving_reader *r, const struct smv_generate *ask)
{
        uint32_t at = random_below(3), steps = 2 + random_below(6);

        memset(r->streams, 0, sizeof(r->streams));
        assert_int_equal(smv_generate(r->clients[at], ask, &r->streams[at]), 0);
        r->resume_id = smv_resume_id(r->clients[at], r->streams[at]);
        while (!r->log->ended || steps--)
                take_step(r);
        for (at = 0; at < 3; at++)
                if (r->streams[at])
                        assert_int_equal(smv_detach(r->clients[at], r->streams[at]), 0);
        resumable_stream_drop(r->clients[0], r->resume_id);
        for (at = 0; at < 3; at++)
                assert_int_equal(
                        smv_next(r->clients[at], &(struct smv_event){ SMV_SIZE(smv_event) }, 0),
                        -ENODATA);
}

static void a_stream_is_the_same_when_readers_attach_detach_and_take_over(void **state)
{
        uint32_t times = scaled(100, 20000);
        struct daemon_fixture *fixture = *state;
        struct moving_reader r = { .fixture = fixture };
        struct smv_client *plain;

        START_QUICK_FOR_RESUMING(fixture, MANY_RESUMABLE);
        plain = resumable_connect(fixture);
        for (uint32_t i = 0; i < 3; i++)
                r.clients[i] = resumable_connect(fixture);
        for (uint32_t i = 0; i < times; i++) {
                struct stream_log *whole = stream_log_new();
                struct smv_generate ask = resumable_draw();

                r.log = stream_log_new();
                move_reader(&r, &ask);
                stream_log_read_whole(plain, &ask, whole);
                assert_same_log(whole, r.log);
                stream_log_free(whole);
                stream_log_free(r.log);
        }
        for (uint32_t i = 0; i < 3; i++)
                smv_close(r.clients[i]);
        smv_close(plain);
        assert_int_equal(fixture_status(fixture, "resumable.open"), 0);
        fixture_stop(fixture);
}

/* ---- handles ---- */

static void a_handle_with_keep_ms_outlives_its_connection(void **state)
{
        struct smv_generate open = { SMV_SIZE(smv_generate), .prompt = "Tea", .keep_ms = 2000 };
        struct smv_generate turn = { SMV_SIZE(smv_generate), .max_tokens = 10, .ignore_eos = 1 };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client, *other;
        uint64_t handle, forks[3], plain;
        struct stream_log *log = stream_log_new();
        uint32_t stream, named = 0;
        size_t length;
        uint64_t end;

        START_QUICK_FOR_RESUMING(fixture, "--pipeline-depth", "1");
        client = resumable_connect(fixture);
        other = resumable_connect(fixture);
        assert_int_equal(smv_handle_open(client, &open, &handle, &length), 0);
        assert_int_equal(length, 4);
        assert_int_equal(smv_handle_fork(client, handle, 1, &plain), 0);
        smv_close(client);
        fixture_await_status(fixture, "handles.open", 1); /* the fork is gone with its connection */
        assert_int_equal(fixture_status(fixture, "handles.expiring"), 1);
        assert_client_refused(other, smv_handle_close(other, plain), SMV_NO_HANDLE, "no handle");

        turn.handle = handle;
        assert_int_equal(smv_generate(other, &turn, &stream), 0);
        assert_true(stream_log_read(other, log, UINT32_MAX));
        assert_int_equal(smv_handle_append_text(other, handle, "!", 1, &length), 0);
        assert_int_equal(length, 15);
        for (end = now_ms() + 2500; now_ms() < end; named++) { /* longer than its time */
                sleep_ms(100);
                assert_int_equal(smv_handle_append_text(other, handle, "!", 1, &length), 0);
        }
        assert_int_equal(smv_handle_fork_keep(other, handle, 3, 60000, forks), 0);
        smv_close(other);
        /* The time of the first handle has passed, and not that of its forks. */
        fixture_await_status(fixture, "handles.open", 3);
        other = resumable_connect(fixture);
        for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(smv_handle_append_text(other, forks[i], "", 0, &length), 0);
                assert_int_equal(length, 15 + named);
                assert_int_equal(smv_handle_close(other, forks[i]), 0);
        }
        smv_close(other);
        stream_log_free(log);
        fixture_stop(fixture);
}

/* Stream and handle both outlive their connection.  A client that comes back gets the same stream
 * as in one connection. */
static void a_resumable_stream_on_a_handle_resumes_after_a_reconnect(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .keep_ms = 60000,
                                    .max_tokens = 300,      .ignore_eos = 1, .seed = 3 };
        struct smv_generate turn = ask;
        struct stream_log *log = stream_log_new(), *whole = stream_log_new();
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint64_t resume_id, handle;
        uint32_t stream;
        size_t length;

        START_QUICK_FOR_RESUMING(fixture, "--pipeline-depth", "1");
        client = resumable_connect(fixture);
        assert_int_equal(smv_handle_open(client, &ask, &handle, NULL), 0);
        turn.prompt = NULL;
        turn.handle = handle;
        resume_id = resumable_stream_begin(client, &turn);
        assert_false(stream_log_read(client, log, 20));
        smv_close(client);
        client = resumable_connect(fixture);
        assert_int_equal(smv_attach(client, resume_id, 20, &stream), 0);
        assert_true(stream_log_read(client, log, UINT32_MAX));
        assert_int_equal(smv_handle_append_text(client, handle, "", 0, &length), 0);
        assert_int_equal(length, 304);
        stream_log_read_whole(client, &ask, whole);
        assert_same_log(whole, log);
        resumable_stream_drop(client, resume_id);
        assert_int_equal(smv_handle_close(client, handle), 0);
        smv_close(client);
        stream_log_free(log);
        stream_log_free(whole);
        fixture_stop(fixture);
}

static void closing_a_handle_cancels_its_resumable_stream(void **state)
{
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Tea", .keep_ms = 60000,
                                    .max_tokens = ENDLESS, .ignore_eos = 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client;
        uint64_t resume_id;

        START_ENDLESS_FOR_RESUMING(fixture, "--pipeline-depth", "1");
        client = resumable_connect(fixture);
        assert_int_equal(smv_handle_open(client, &ask, &ask.handle, NULL), 0);
        ask.prompt = NULL;
        resume_id = resumable_stream_begin(client, &ask);
        assert_int_equal(smv_next(client, &event, 60000), 1);
        assert_int_equal(smv_handle_close(client, ask.handle), 0);
        while (event.kind != SMV_EVENT_END)
                assert_int_equal(smv_next(client, &event, 60000), 1);
        assert_int_equal(event.reason, SMV_END_CANCELLED);
        assert_true(event.output_tokens > 0);
        resumable_stream_drop(client, resume_id);
        smv_close(client);
        fixture_stop(fixture);
}

/* ---- the command ---- */

/* A pipe that takes nothing: a process that prints into it is not done until it is killed. */
static void make_full_pipe(int ends[2])
{
        char page[4096] = { 0 };

        assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        while (write(ends[1], page, sizeof(page)) > 0)
                ;
        assert_int_equal(errno, EAGAIN);
        assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
}

static void the_attach_command_resumes_the_stream_of_a_killed_command(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result whole, rest;
        char out[128], number[32] = "", *text, *err;
        unsigned long long resume_id = 0;
        int ends[2];
        uint64_t end;
        pid_t pid;

        START_DAEMON(fixture, MANY_CONNECTS, "--threads", "1");
        whole = RUN(fixture, NULL, env_path("SAMOVAR"), "complete", "--socket", fixture->socket,
                    "--temp", "1", "--seed", "5", "--max-tokens", "600", "Once");
        assert_int_equal(whole.status, 0);
        snprintf(out, sizeof(out), "%s/err", fixture->directory);
        make_full_pipe(ends);
        pid = fork();
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (!freopen(out, "w", stderr) || dup2(ends[1], STDOUT_FILENO) < 0)
                        _exit(9);
                execl(env_path("SAMOVAR"), "samovar", "complete", "--socket", fixture->socket,
                      "--temp", "1", "--seed", "5", "--max-tokens", "600", "--keep", "60", "Once",
                      (char *)NULL);
                _exit(9);
        }
        for (end = now_ms() + TIMEOUT_MS; !resume_id; sleep_ms(1)) {
                err = file_text(out);
                if (strchr(err, '\n'))
                        sscanf(err, "samovar: to resume: samovar attach %llu", &resume_id);
                free(err);
                assert_true(now_ms() < end);
        }
        kill(pid, SIGKILL);
        assert_int_equal(await_process(pid), -SIGKILL);
        close(ends[0]);
        close(ends[1]);
        snprintf(number, sizeof(number), "%llu", resume_id);
        rest = RUN(fixture, NULL, env_path("SAMOVAR"), "attach", "--socket", fixture->socket,
                   number);
        assert_int_equal(rest.status, 0);
        assert_string_equal(rest.out, whole.out);
        run_result_free(&rest);

        /* It was dropped, because all of it was printed. */
        rest = RUN(fixture, NULL, env_path("SAMOVAR"), "attach", "--socket", fixture->socket,
                   number);
        assert_int_equal(rest.status, 1);
        text = strstr(rest.err, "there is no resumable stream");
        assert_non_null(text);
        run_result_free(&rest);
        run_result_free(&whole);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_stream_resumes_at_the_next_token_after_its_reader_is_killed),
                DAEMON_TEST(a_stream_is_the_same_when_readers_attach_detach_and_take_over),
                DAEMON_TEST(a_handle_with_keep_ms_outlives_its_connection),
                DAEMON_TEST(a_resumable_stream_on_a_handle_resumes_after_a_reconnect),
                DAEMON_TEST(closing_a_handle_cancels_its_resumable_stream),
                DAEMON_TEST(the_attach_command_resumes_the_stream_of_a_killed_command),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
