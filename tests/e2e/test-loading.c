/*
 * A daemon while its weights are still being read.  It is the real main() in a child, and its reads
 * go through a hook, with which this process holds them, slows them or lets them fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/engine/weights-reader.h"
#include "base/sys.h"
#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/raw-client.h"

#define SLOW_US 100000

int samovard_main(int argc, char **argv);

/* Shared with the child.  `passes` of the reads that are held are let through. */
enum { READ_ON, READ_SLOWLY, READ_HELD, READ_FAILS };
static struct {
        _Atomic int read_mode, reads_let_through;
} * reads;
static char model[96];

static const char *const ways[] = { "cached", "uring", "plain" };
#define WAYS (sizeof(ways) / sizeof(*ways))

static const struct want want = { .prompt = "Once", .max_tokens = 20, .ignore_eos = true };

static bool must_wait(void)
{
        if (atomic_load(&reads->read_mode) != READ_HELD)
                return false;
        if (atomic_fetch_sub(&reads->reads_let_through, 1) > 0)
                return false;
        atomic_fetch_add(&reads->reads_let_through, 1);
        return true;
}

/* Reads of headers, by the main thread, go through unchanged. */
static int on_call(const char *call, void *arg)
{
        bool is_read = !strcmp(call, "pread") || !strcmp(call, "io_uring_enter");

        (void)arg;
        if (gettid() == getpid())
                return 0;
        if (!strcmp(call, "pread") || !strcmp(call, "io_uring_read"))
                if (atomic_load(&reads->read_mode) == READ_FAILS)
                        return -EIO;
        if (is_read && atomic_load(&reads->read_mode) == READ_SLOWLY)
                usleep(SLOW_US);
        while (is_read && must_wait())
                usleep(1000);
        return 0;
}

/* The signal handlers are cmocka's: with them a crash would continue as more tests. */
static void run_daemon(const struct daemon_fixture *fixture, const char *way)
{
        static const int crashes[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
        char *argv[] = { "samovard", "--model",   model, "--socket", (char *)fixture->socket,
                         "--load",   (char *)way, NULL };
        int log = open(fixture->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
                signal(crashes[i], SIG_DFL);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(log);
        sys_set_fault(on_call, NULL);
        exit(samovard_main((int)(sizeof(argv) / sizeof(*argv)) - 1, argv));
}

/* Returns when the daemon listens. */
static void begin(struct daemon_fixture *fixture, const char *way, int mode)
{
        int fd, status;

        snprintf(model, sizeof(model), "%s/toy-model.gguf", fixture->directory);
        if (access(model, F_OK)) {
                struct run_result ran =
                        RUN(fixture, NULL, env_path("TOY_MODEL_MAKER"), model, "--tied");

                assert_int_equal(ran.status, 0);
                run_result_free(&ran);
        }
        atomic_store(&reads->read_mode, mode);
        atomic_store(&reads->reads_let_through, 0);
        unlink(fixture->log);
        fflush(NULL);
        fixture->pid = fork();
        assert_true(fixture->pid >= 0);
        if (!fixture->pid)
                run_daemon(fixture, way);
        while ((fd = fixture_connect(fixture)) < 0) {
                if (waitpid(fixture->pid, &status, WNOHANG)) {
                        fixture->pid = 0;
                        fail_msg("samovard did not start: %x", (unsigned)status);
                }
                sleep_ms(2);
        }
        close(fd);
}

static void end(struct daemon_fixture *fixture)
{
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
}

static bool has_way(const char *way)
{
        struct reader *reader;

        if (strcmp(way, "uring"))
                return true;
        if (reader_open_uring(1, &reader)) {
                printf("# io_uring is not to be had here\n");
                return false;
        }
        reader->close(reader);
        return true;
}

static void await_loaded(struct raw_client *client)
{
        while (raw_client_status(client, "loading.bytes") <
               raw_client_status(client, "loading.total"))
                sleep_ms(2);
}

static void status_shows_the_progress_of_loading(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint64_t total, bytes, before = 0;

        begin(fixture, "plain", READ_HELD);
        client = raw_client_greet(fixture);
        total = raw_client_status(client, "loading.total");
        assert_true(total > 1000000);
        assert_int_equal(raw_client_status(client, "loading.bytes"), 0);
        assert_true(raw_client_call(client, "op=s text=s", "tokenize", "at once")->ok);
        atomic_store(&reads->reads_let_through, 1);
        while ((bytes = raw_client_status(client, "loading.bytes")) == 0)
                sleep_ms(2);
        assert_true(bytes < total);
        atomic_store(&reads->read_mode, READ_ON);
        for (; bytes < total; bytes = raw_client_status(client, "loading.bytes")) {
                assert_true(bytes >= before);
                before = bytes;
        }
        assert_int_equal(bytes, total);
        raw_client_close(client);
        assert_true(fixture_logged(fixture, "loading bytes="));
        assert_true(fixture_logged(fixture, "method=plain"));
        end(fixture);
}

static void a_request_sent_while_loading_gets_the_same_tokens_as_later(void **state)
{
        struct daemon_fixture *fixture = *state;

        for (size_t i = 0; i < WAYS; i++) {
                struct raw_client *client;
                uint32_t id;

                if (!has_way(ways[i]))
                        continue;
                begin(fixture, ways[i], READ_HELD);
                client = raw_client_greet(fixture);
                id = raw_client_generate(client, &want);
                assert_true(raw_client_await_reply(client, id)->ok);
                raw_client_poll(client, 100);
                assert_null(raw_client_stream(client, id));
                atomic_store(&reads->read_mode, READ_ON);
                assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_LENGTH);
                assert_same_stream(raw_client_stream(client, id),
                                   raw_client_complete(client, &want));
                raw_client_close(client);
                end(fixture);
        }
}

static void a_request_cancelled_while_loading_ends_at_once(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        uint32_t id;

        begin(fixture, "plain", READ_HELD);
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        id = raw_client_generate(other, &want);
        assert_true(raw_client_await_reply(other, id)->ok);
        id = raw_client_generate(client, &want);
        assert_true(raw_client_await_reply(client, id)->ok);
        assert_int_equal(raw_client_status(client, "requests.open"), 2);
        raw_client_send_frame(client, "op=s id=u stream=u", "cancel", 77, id);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        raw_client_close(other);
        while (raw_client_status(client, "requests.open") ||
               raw_client_status(client, "connections.open") != 1)
                sleep_ms(2);
        assert_int_equal(raw_client_status(client, "loading.bytes"), 0);
        atomic_store(&reads->read_mode, READ_ON);
        assert_int_equal(raw_client_complete(client, &want)->end.reason, SMV_END_LENGTH);
        raw_client_close(client);
        end(fixture);
}

/* The daemon waits for no more than the piece that is being read.  Before it ends, waiting requests
 * get their END. */
static void sigterm_while_loading_ends_waiting_streams_and_the_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;

        for (size_t i = 0; i < WAYS; i++) {
                struct raw_client *client;
                uint32_t id;

                if (!has_way(ways[i]))
                        continue;
                begin(fixture, ways[i], READ_HELD);
                client = raw_client_greet(fixture);
                id = raw_client_generate(client, &want);
                assert_true(raw_client_await_reply(client, id)->ok);
                kill(fixture->pid, SIGTERM);
                assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_ERROR);
                assert_int_equal(raw_client_stream(client, id)->end.code, SMV_SHUTTING_DOWN);
                atomic_store(&reads->read_mode, READ_SLOWLY);
                raw_client_await_hangup(client);
                raw_client_close(client);
                assert_int_equal(fixture_await_exit(fixture), 0);
                assert_false(fixture_logged(fixture, "loaded "));
        }
}

/* The daemon had said hello.  Waiting requests get their END, it prints the reason in one line, and
 * exits with 1. */
static void assert_refuses_file(struct daemon_fixture *fixture, int next_mode, const char *words)
{
        struct raw_client *client = raw_client_greet(fixture);
        uint32_t id = raw_client_generate(client, &want);

        assert_true(raw_client_await_reply(client, id)->ok);
        atomic_store(&reads->read_mode, next_mode);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_ERROR);
        assert_int_equal(raw_client_stream(client, id)->end.code, SMV_INTERNAL);
        raw_client_close(client);
        assert_int_equal(fixture_await_exit(fixture), 1);
        if (!fixture_logged(fixture, words) || !fixture_logged(fixture, "toy-model.gguf: ")) {
                char *log = file_text(fixture->log);

                fail_msg("not \"%s\" in: %s", words, log);
        }
}

static void a_read_error_of_the_weights_names_tensor_and_offset(void **state)
{
        struct daemon_fixture *fixture = *state;

        for (size_t i = 0; i < WAYS; i++) {
                if (!has_way(ways[i]))
                        continue;
                begin(fixture, ways[i], READ_HELD);
                assert_refuses_file(fixture, READ_FAILS, "weight': reading it at byte ");
                assert_true(fixture_logged(fixture, "Input/output error"));
        }
}

static void refuses_a_model_file_changed_while_loading(void **state)
{
        struct daemon_fixture *fixture = *state;

        for (size_t i = 0; i < WAYS; i++) {
                int fd;

                if (!has_way(ways[i]))
                        continue;
                begin(fixture, ways[i], READ_HELD);
                assert_int_equal(truncate(model, 40000), 0);
                assert_refuses_file(fixture, READ_ON, "became shorter while it was read");
                unlink(model);

                begin(fixture, ways[i], READ_HELD);
                fd = open(model, O_WRONLY);
                assert_int_equal(pwrite(fd, "x", 1, 400000), 1);
                close(fd);
                assert_refuses_file(fixture, READ_ON, "was changed while it was read");
                unlink(model);
        }
}

/* Reads the terminal until its other side is closed, or until the words have come. */
static size_t read_terminal(int master, char *to, size_t bytes, const char *words)
{
        size_t at = 0;
        ssize_t n;

        to[0] = '\0';
        while (at < bytes - 1 && !(words && strstr(to, words)) &&
               (n = read(master, to + at, bytes - 1 - at)) > 0) {
                at += (size_t)n;
                to[at] = '\0';
        }
        return at;
}

static pid_t ask_at_terminal(const struct daemon_fixture *fixture, int *ret_master)
{
        int slave, out = open("/dev/null", O_WRONLY | O_CLOEXEC);
        pid_t pid;

        assert_int_equal(openpty(ret_master, &slave, NULL, NULL, NULL), 0);
        pid = fork();
        if (!pid) {
                dup2(out, 1);
                dup2(slave, 2);
                close(*ret_master);
                execl(env_path("SAMOVAR"), "samovar", "complete", "--socket", fixture->socket,
                      "--max-tokens", "3", "Once", (char *)NULL);
                _exit(126);
        }
        close(slave);
        close(out);
        return pid;
}

static void the_command_shows_a_progress_bar_at_a_terminal_only(void **state)
{
        static char seen[65536];
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct run_result ran;
        size_t count;
        int master;
        pid_t pid;

        begin(fixture, "plain", READ_HELD);
        pid = ask_at_terminal(fixture, &master);
        count = read_terminal(master, seen, sizeof(seen), " of 2.");
        atomic_store(&reads->read_mode, READ_SLOWLY);
        read_terminal(master, seen + count, sizeof(seen) - count, NULL);
        close(master);
        assert_int_equal(await_process(pid), 0);
        assert_non_null(strstr(seen, "\rloading [#"));
        assert_non_null(strstr(seen, "  0 %  0 bytes of 2."));
        assert_string_equal(seen + strlen(seen) - 4, "\r\x1b[K");

        pid = ask_at_terminal(fixture, &master);
        assert_int_equal(read_terminal(master, seen, sizeof(seen), NULL), 0);
        close(master);
        assert_int_equal(await_process(pid), 0);
        end(fixture);

        begin(fixture, "plain", READ_HELD);
        client = raw_client_greet(fixture);
        atomic_store(&reads->read_mode, READ_SLOWLY);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "complete", "--socket", fixture->socket,
                  "--max-tokens", "3", "Once");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.err, "");
        run_result_free(&ran);
        await_loaded(client);
        raw_client_close(client);
        end(fixture);
}

/* Asks samovar-http.  Returns the share of the weights that it tells; 1: it says ok. */
static double health(const struct bridge_fixture *bridge, double before)
{
        int fd = bridge_connect(bridge->port);
        double share = 1;
        char *answer;

        assert_true(fd >= 0);
        http_send(fd, "GET /health", "", NULL);
        answer = http_receive(fd);
        if (http_status(answer) == 200) {
                assert_non_null(strstr(answer, "\"status\":\"ok\""));
        } else {
                assert_int_equal(http_status(answer), 503);
                assert_non_null(strstr(answer, "\"status\":\"loading\""));
                assert_non_null(strstr(answer, "\"loaded\":"));
                share = strtod(strstr(answer, "\"loaded\":") + strlen("\"loaded\":"), NULL);
        }
        free(answer);
        assert_true(share >= before);
        return share;
}

static void health_over_http_tells_a_share_that_does_not_fall(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        double share;

        begin(fixture, "plain", READ_HELD);
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_log(&bridge, "daemon_connected");
        assert_true(health(&bridge, 0) == 0);
        atomic_store(&reads->reads_let_through, 1);
        while ((share = health(&bridge, 0)) == 0)
                sleep_ms(2);
        assert_true(share < 1);
        for (int i = 0; i < 20; i++)
                assert_true((share = health(&bridge, share)) < 1);
        atomic_store(&reads->read_mode, READ_ON);
        while ((share = health(&bridge, share)) < 1)
                sleep_ms(2);
        bridge_stop(&bridge);
        end(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(status_shows_the_progress_of_loading),
                DAEMON_TEST(a_request_sent_while_loading_gets_the_same_tokens_as_later),
                DAEMON_TEST(a_request_cancelled_while_loading_ends_at_once),
                DAEMON_TEST(sigterm_while_loading_ends_waiting_streams_and_the_daemon),
                DAEMON_TEST(a_read_error_of_the_weights_names_tensor_and_offset),
                DAEMON_TEST(refuses_a_model_file_changed_while_loading),
                DAEMON_TEST(the_command_shows_a_progress_bar_at_a_terminal_only),
                DAEMON_TEST(health_over_http_tells_a_share_that_does_not_fall),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVAR", "SAMOVAR_HTTP", "TOY_MODEL_MAKER", NULL });
        reads = mmap(NULL, sizeof(*reads), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                     0);
        if (reads == MAP_FAILED)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
