/*
 * Clients are processes, and die as processes do.  Whatever happens to one, the others' text is the
 * same as without it, and after its death the daemon holds nothing of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/honest-client.h"

#define TOKENS LONG_LOGPROBS /* with their log-probabilities more than is taken without a reader */
#define STOPS  20            /* after this many events */

/* ---- a child: libsamovar, the text of one stream into a file ---- */

static struct smv_connect where(const char *socket)
{
        enum raw_client_transport transport = raw_client_transport();

        return (struct smv_connect){
                SMV_SIZE(smv_connect),
                .socket = socket,
                .transport =
                        transport == RAW_CLIENT_SOCKET ? SMV_TRANSPORT_SOCKET : SMV_TRANSPORT_RING,
                .doorbell = transport == RAW_CLIENT_FUTEX ? SMV_DOORBELL_FUTEX : SMV_DOORBELL_KICK,
        };
}

/* Stops itself after `stops` events; 0: never. */
static int stream_into_file(const char *socket, const char *prompt, uint32_t tokens, uint32_t stops,
                            int out)
{
        struct smv_connect at = where(socket);
        struct smv_generate ask = { SMV_SIZE(smv_generate),        .prompt = prompt,
                                    .max_tokens = tokens,          .set = SMV_SET_TEMPERATURE,
                                    .logprobs = LOGPROBS_MOST - 1, .ignore_eos = 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint32_t stream;

        if (smv_connect(&at, &client) || smv_generate(client, &ask, &stream))
                return 2;
        while (smv_next(client, &event, -1) > 0 && event.kind != SMV_EVENT_END) {
                if (write(out, event.text, event.text_bytes) != (ssize_t)event.text_bytes)
                        return 3;
                if (stops && !--stops)
                        raise(SIGSTOP);
        }
        smv_close(client);
        return event.reason == SMV_END_LENGTH ? 0 : 10 + (int)event.reason;
}

static pid_t start_stream(const struct daemon_fixture *fixture, const char *prompt,
                          const char *name, uint32_t tokens, uint32_t stops, char path[96])
{
        pid_t pid;
        int out;

        snprintf(path, 96, "%s/%s", fixture->directory, name);
        out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        pid = fork();
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(stream_into_file(fixture->socket, prompt, tokens, stops, out));
        }
        close(out);
        return pid;
}

static size_t file_bytes(const char *path)
{
        struct stat file;

        return stat(path, &file) ? 0 : (size_t)file.st_size;
}

static void wait_bytes(const char *path, size_t bytes)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (file_bytes(path) < bytes) {
                assert_true(now_ms() < end);
                sleep_ms(1);
        }
}

static void wait_stopped(pid_t pid)
{
        int status;

        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
}

static void killed_and_stopped_clients_do_not_affect_another_client(void **state)
{
        char alone[96], third[96], killed[96], stopped[96], *expected, *text;
        struct daemon_fixture *fixture = *state;
        pid_t third_pid, killed_pid, stopped_pid;

        START_ENDLESS_DAEMON(fixture, MANY_CONNECTS, "--ring-bytes", "64K");
        third_pid = start_stream(fixture, "Three is company", "alone", TOKENS, 0, alone);
        assert_int_equal(await_process(third_pid), 0);

        killed_pid = start_stream(fixture, "One", "killed", ENDLESS, 0, killed);
        stopped_pid = start_stream(fixture, "Two", "stopped", TOKENS, STOPS, stopped);
        third_pid = start_stream(fixture, "Three is company", "third", TOKENS, 0, third);
        wait_bytes(killed, 20);
        wait_stopped(stopped_pid);
        wait_bytes(third, 20);
        kill(killed_pid, SIGKILL);
        assert_int_equal(await_process(killed_pid), -SIGKILL);
        assert_int_equal(await_process(third_pid), 0);

        expected = file_text(alone);
        text = file_text(third);
        assert_int_equal(strlen(text), TOKENS);
        assert_string_equal(text, expected);

        assert_int_equal(file_bytes(stopped), STOPS);
        fixture_await_status(fixture, "requests.stalled", 1);
        fixture_await_status(fixture, "requests.open", 1);
        assert_true(fixture_status(fixture, "blocks.in_use") > 0);
        assert_int_equal(waitpid(stopped_pid, NULL, WNOHANG), 0);
        kill(stopped_pid, SIGKILL); /* it was never continued */
        assert_int_equal(await_process(stopped_pid), -SIGKILL);
        free(expected);
        free(text);
        fixture_stop(fixture);
}

/* The same, but the stopped process is continued: its text is complete. */
static void a_stopped_client_continues_its_stream_without_loss(void **state)
{
        char alone[96], stopped[96], *expected, *text;
        struct daemon_fixture *fixture = *state;
        pid_t pid;

        START_DAEMON(fixture, MANY_CONNECTS, "--ring-bytes", "64K");
        pid = start_stream(fixture, "Two", "alone", TOKENS, 0, alone);
        assert_int_equal(await_process(pid), 0);
        pid = start_stream(fixture, "Two", "stopped", TOKENS, STOPS, stopped);
        wait_stopped(pid);
        fixture_await_status(fixture, "requests.stalled", 1);
        kill(pid, SIGCONT);
        assert_int_equal(await_process(pid), 0);
        expected = file_text(alone);
        text = file_text(stopped);
        assert_string_equal(text, expected);
        free(expected);
        free(text);
        fixture_stop(fixture);
}

/* ---- clients that are killed, in every state ---- */

enum client_state {
        BEFORE_HELLO,
        IN_A_FRAME,
        QUEUED,
        PREFILL,
        DECODE,
        NOT_READING,
        AT_THE_TEXT_WORKER,
        CANCELLING,
        CLIENT_STATES
};

static void put_generate(struct bytes_out *to, uint32_t id, size_t prompt, uint32_t max_tokens)
{
        static char text[2048];

        memset(text, 'a', sizeof(text));
        frame_put(to, "op=s id=u prompt=t max_tokens=u ignore_eos=y", "generate", id, text, prompt,
                  max_tokens, 1);
}

/* The bytes that a client sends.  No assert, because this runs in a child. */
static void put_state_bytes(struct bytes_out *to, enum client_state client_state)
{
        static const uint32_t versions[] = { SMV_PROTOCOL_VERSION, SMV_PROTOCOL_VERSION };

        if (client_state == BEFORE_HELLO)
                return;
        frame_put(to, "op=s id=u versions=I transport=s", "hello", 1u, versions, (size_t)2,
                  raw_client_transport() == RAW_CLIENT_SOCKET ? "socket" : "ring");
        for (uint32_t i = 0; client_state == QUEUED && i < 20; i++)
                put_generate(to, 2 + i, 10, 300);
        for (uint32_t i = 0; client_state == NOT_READING && i < 6; i++)
                put_generate(to, 2 + i, 10, 2000);
        for (uint32_t i = 0; client_state == CANCELLING && i < 20; i++) {
                put_generate(to, 2 + i, 300, 100);
                frame_put(to, "op=s id=u stream=u", "cancel", 100 + i, 2 + i);
        }
        if (client_state == PREFILL)
                put_generate(to, 2, 1900, 100);
        if (client_state == AT_THE_TEXT_WORKER) {
                char *text = calloc(1, 1 << 20);

                frame_put(to, "op=s id=u text=t", "tokenize", 2u, text, (size_t)1 << 20);
                frame_put(to, "op=s id=u prompt=t", "generate", 3u, text, (size_t)1 << 20);
        }
        if (client_state == IN_A_FRAME) {
                put_generate(to, 2, 500, 100);
                to->count -= 1 + random_below(500);
        }
}

static void run_client(const struct daemon_fixture *fixture, enum client_state client_state)
{
        struct bytes_out all = { 0 };
        int fd = fixture_connect(fixture);
        ssize_t n;

        /* The client reads as the library does, with a ring mapped that is partly full. */
        while (client_state == DECODE)
                stream_into_file(fixture->socket, "abc", 1900, 0, open("/dev/null", O_WRONLY));

        put_state_bytes(&all, client_state);
        for (size_t at = 0; at < all.count; at += (size_t)n) {
                n = send(fd, all.at + at, all.count - at, MSG_NOSIGNAL);
                if (n <= 0)
                        break;
        }
        for (;;)
                pause();
}

static void frees_everything_when_clients_are_killed_in_any_state(void **state)
{
        uint32_t times = scaled(40, 1000), counts[CLIENT_STATES] = { 0 };
        struct daemon_fixture *fixture = *state;
        struct honest_client honest;
        pid_t pids[6] = { 0 };

        START_DAEMON(fixture, MANY_CONNECTS, "--max-seqs", "6", "--ring-bytes", "64K",
                     "--pipeline-depth", "2");
        honest = honest_client_start(fixture);
        for (uint32_t i = 0; i < times; i++) {
                pid_t *pid = &pids[random_below(6)];
                enum client_state client_state =
                        i < CLIENT_STATES ? (enum client_state)i : random_below(CLIENT_STATES);

                if (*pid) {
                        kill(*pid, SIGKILL);
                        assert_int_equal(await_process(*pid), -SIGKILL);
                }
                counts[client_state]++;
                random_below(2); /* so that children differ */
                *pid = fork();
                if (!*pid) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        run_client(fixture, client_state);
                }
                honest_client_check_for(&honest, random_below(30));
        }
        for (size_t i = 0; i < 6; i++) {
                if (!pids[i])
                        continue;
                kill(pids[i], SIGKILL);
                assert_int_equal(await_process(pids[i]), -SIGKILL);
        }
        honest_client_stop(&honest);
        printf("# %u clients killed:", times);
        for (size_t i = 0; i < CLIENT_STATES; i++)
                printf(" %u", counts[i]);
        printf("; %u honest streams beside them\n", honest.rounds);
        fixture_stop(fixture);
}

/* The daemon dies instead: every stream of a client still ends, with LOST. */
static void a_killed_daemon_ends_every_stream_of_the_library_as_lost(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_connect at = where(fixture->socket);
        struct smv_generate ask = { SMV_SIZE(smv_generate), .prompt = "Once", .max_tokens = ENDLESS,
                                    .ignore_eos = 1 };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint32_t stream, ends = 0;
        int r;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        assert_int_equal(smv_connect(&at, &client), 0);
        for (int i = 0; i < 5; i++)
                assert_int_equal(smv_generate(client, &ask, &stream), 0);
        assert_int_equal(smv_next(client, &event, 10000), 1);
        kill(fixture->pid, SIGKILL);
        while ((r = smv_next(client, &event, 10000)) > 0)
                if (event.kind == SMV_EVENT_END) {
                        assert_int_equal(event.reason, SMV_END_ERROR);
                        assert_int_equal(event.code, SMV_LOST);
                        ends++;
                }
        assert_int_equal(r, -ENOTCONN);
        assert_int_equal(ends, 5);
        assert_int_equal(smv_generate(client, &ask, &stream), -ENOTCONN);
        smv_close(client);
        assert_int_equal(fixture_await_exit(fixture), -SIGKILL);
        assert_no_process_left();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(killed_and_stopped_clients_do_not_affect_another_client),
                DAEMON_TEST(a_stopped_client_continues_its_stream_without_loss),
                DAEMON_TEST(frees_everything_when_clients_are_killed_in_any_state),
                DAEMON_TEST(a_killed_daemon_ends_every_stream_of_the_library_as_lost),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
