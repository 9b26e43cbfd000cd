/* How a daemon starts, what it refuses to start with, and how it ends while clients are served. */
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

#include "tests/e2e/raw-client.h"

static const struct want longest = { .prompt = "Once", .max_tokens = 2000, .ignore_eos = true };

/* With a small ring this stream runs for as long as it is not read. */
static const struct want unread = {
        .prompt = "Once", .max_tokens = LONG_LOGPROBS, .logprobs = LOGPROBS_MOST, .ignore_eos = true
};

/* A daemon that is to refuse: it ends with 1, and its output contains `words`. */
static void assert_refuses(struct daemon_fixture *fixture, const char *const *flags,
                           const char *words, const char *more)
{
        char *log;
        int status;

        fixture_clear_log(fixture);
        status = await_process(fixture_spawn(fixture, flags, -1));
        log = file_text(fixture->log);
        if (status != 1 || !strstr(log, words) || !strstr(log, more))
                fail_msg("status %d; wanted \"%s\" and \"%s\" in: %s", status, words, more, log);
        free(log);
}

#define REFUSES(fixture, words, more, ...)                                                         \
        assert_refuses(fixture, (const char *const[]){ __VA_ARGS__, NULL }, words, more)

static void only_the_owner_can_reach_directory_and_socket(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct stat directory, sock;
        char path[96];

        umask(0);
        START_DAEMON(fixture, "--threads", "1");
        umask(022);
        snprintf(path, sizeof(path), "%s/in", fixture->directory);
        assert_int_equal(stat(path, &directory), 0);
        assert_int_equal(stat(fixture->socket, &sock), 0);
        assert_int_equal(directory.st_mode & 07777, 0700);
        assert_int_equal(sock.st_mode & 07777, 0600);
        assert_true(S_ISSOCK(sock.st_mode));
        fixture_stop(fixture);
}

static void the_default_socket_is_in_the_runtime_directory(void **state)
{
        struct daemon_fixture *fixture = *state;
        pid_t pid;
        int fd;

        setenv("XDG_RUNTIME_DIR", fixture->directory, 1);
        pid = fixture_spawn(fixture,
                            (const char *const[]){ "--model", env_path("TOY_MODEL"), NULL }, -1);
        unsetenv("XDG_RUNTIME_DIR");
        fixture->pid = pid;
        snprintf(fixture->socket, sizeof(fixture->socket), "%s/samovar/sock", fixture->directory);
        while ((fd = fixture_connect(fixture)) < 0 && !waitpid(pid, NULL, WNOHANG))
                sleep_ms(5);
        assert_true(fd >= 0);
        close(fd);
        kill(pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
}

static void replaces_the_socket_of_a_killed_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;

        for (int i = 0; i < 3; i++) {
                START_DAEMON(fixture, "--threads", "1");
                kill(fixture->pid, SIGKILL);
                assert_int_equal(fixture_await_exit(fixture), -SIGKILL);
                assert_int_equal(access(fixture->socket, F_OK), 0);
        }
        START_DAEMON(fixture, "--threads", "1");
        fixture_stop(fixture);
}

static void a_second_daemon_reports_the_pid_of_the_first_and_ends(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct stream *alone, *stream;
        struct raw_client *client;
        char pid[16];
        uint32_t id;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        alone = stream_copy(raw_client_complete(client, &longest));
        id = raw_client_generate(client, &longest);
        snprintf(pid, sizeof(pid), "%d", (int)fixture->pid);
        for (int i = 0; i < 3; i++)
                REFUSES(fixture, fixture->socket, pid, "--model", env_path("TOY_MODEL"), "--socket",
                        fixture->socket);
        stream = raw_client_await_end(client, id);
        assert_same_stream(stream, alone);
        stream_free(alone);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* A file at the socket's path that is not a socket stays as it is. */
static void does_not_replace_a_file_at_the_path_of_the_socket(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[96], *text;
        FILE *file;

        snprintf(path, sizeof(path), "%s/in", fixture->directory);
        mkdir(path, 0700);
        file = fopen(fixture->socket, "w");
        fputs("mine", file);
        fclose(file);
        REFUSES(fixture, "samovard:", fixture->socket, "--model", env_path("TOY_MODEL"), "--socket",
                fixture->socket);
        text = file_text(fixture->socket);
        assert_string_equal(text, "mine");
        free(text);
}

static void check_prints_the_plan_and_ends(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran =
                RUN(fixture, NULL, env_path("SAMOVARD"), "--model", env_path("TOY_MODEL"),
                    "--check", "--ctx", "1024", "--kv-bytes", "16M", "--socket", fixture->socket);

        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "toy-model"));
        assert_non_null(strstr(ran.out, "context 1024"));
        assert_non_null(strstr(ran.out, "16.0 MiB"));
        assert_non_null(strstr(ran.out, "1024 blocks"));
        assert_int_equal(access(fixture->socket, F_OK), -1);
        run_result_free(&ran);
        assert_no_process_left();
}

static void refuses_a_wrong_flag_and_names_it(void **state)
{
        struct daemon_fixture *fixture = *state;
        const char *model = env_path("TOY_MODEL");
        char large[1024];

        snprintf(large, sizeof(large), "%s/tests/golden/tokenizers/bytes.model",
                 env_path("SOURCES"));
        REFUSES(fixture, "/no/x.json", "No such file", "--model", model, "--tokenizer",
                "/no/x.json");
        REFUSES(fixture, "bytes.model", "tokens for a model of", "--model", model, "--tokenizer",
                large);
        REFUSES(fixture, "--no-such-thing", "samovard:", "--model", model, "--no-such-thing", "1");
        REFUSES(fixture, "--max-seqs", "1024", "--model", model, "--max-seqs", "0");
        REFUSES(fixture, "--max-seqs", "1024", "--model", model, "--max-seqs", "1025");
        REFUSES(fixture, "--kv", "f32", "--model", model, "--kv", "f64");
        REFUSES(fixture, "--kv-bytes", "12Q", "--model", model, "--kv-bytes=12Q");
        REFUSES(fixture, "--threads", "no value", "--model", model, "--threads");
        REFUSES(fixture, "--max-seqs", "meant", "--model", model, "--max-seq", "4");
        REFUSES(fixture, "ctx is 4096", "2048", "--model", model, "--ctx", "4096", "--socket",
                fixture->socket);
        REFUSES(fixture, "step_tokens", "max_seqs", "--model", model, "--step-tokens", "8");
        REFUSES(fixture, "ring_bytes", "power of two", "--model", model, "--ring-bytes", "100000");
        REFUSES(fixture, "/no/such/file", "samovard:", "--config", "/no/such/file");
        REFUSES(fixture, "--isa", "avx", "--model", model, "--isa", "avx1");
        REFUSES(fixture, "kv_bytes: ", "block", "--model", model, "--kv-bytes", "1K", "--socket",
                fixture->socket);
        assert_no_process_left();
}

static void write_file(const char *path, const char *text)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

/* So a reload can be refused before it is tried.  No model is looked at. */
static void check_config_says_what_is_wrong_with_the_settings(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128], shown[256];
        struct run_result ran;

        snprintf(path, sizeof(path), "%s/conf", fixture->directory);
        write_file(path, "model = /no/such/model\nctx = 64\n");
        ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--check-config", "--config", path);
        assert_int_equal(ran.status, 0);
        snprintf(shown, sizeof(shown), "samovard: no fault in %s\n", path);
        assert_string_equal(ran.out, shown);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--check-config", "--config", "none");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.out, "samovard: no file of settings is read\n");
        run_result_free(&ran);

        write_file(path, "ctx = 64\nbogus = 1\n");
        REFUSES(fixture, path, ":2: there is no setting bogus", "--check-config", "--config", path);
        write_file(path, "step_tokens = 1\n");
        REFUSES(fixture, "step_tokens is 1", "max_seqs", "--check-config", "--config", path);
        REFUSES(fixture, "/no/such/file", "No such file", "--check-config", "--config",
                "/no/such/file");
}

/* As a unit with ProtectHome= shows it: the folder above the home directory is empty. */
static void a_model_that_the_sandbox_hides_is_told(void **state)
{
        static const char hidden[] = "ProtectHome= hides /home from the daemon";
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char place[128];

        snprintf(place, sizeof(place), "%s/notify", fixture->directory);
        setenv("NOTIFY_SOCKET", place, 1);
        REFUSES(fixture, "/home/hidden-one/m.gguf: No such file or directory; ", hidden, "--model",
                "/home/hidden-one/m.gguf", "--config", "none");
        REFUSES(fixture, "/home/hidden-one/t.json", hidden, "--model", env_path("TOY_MODEL"),
                "--tokenizer", "/home/hidden-one/t.json", "--config", "none");
        ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--model", "/no/m.gguf", "--config", "none");
        assert_int_equal(ran.status, 1);
        assert_null(strstr(ran.err, "ProtectHome"));
        run_result_free(&ran);
        unsetenv("NOTIFY_SOCKET");
        ran = RUN(fixture, NULL, env_path("SAMOVARD"), "--model", "/home/hidden-one/m.gguf",
                  "--config", "none");
        assert_int_equal(ran.status, 1);
        assert_null(strstr(ran.err, "ProtectHome"));
        run_result_free(&ran);
}

static void flags_override_the_config_file(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[96], model[300];
        FILE *file;

        snprintf(path, sizeof(path), "%s/conf", fixture->directory);
        file = fopen(path, "w");
        fprintf(file, "# settings\nmax_seqs = 5\nctx = 512\nthreads=1\nmodel = /no/such/model\n");
        fclose(file);
        snprintf(model, sizeof(model), "%s=urn", env_path("TOY_MODEL"));
        START_DAEMON(fixture, "--config", path, "--ctx", "256", "--model", model);
        assert_int_equal(fixture_status(fixture, "limits.max_seqs"), 5);
        assert_int_equal(fixture_status(fixture, "model.context"), 256);
        fixture_stop(fixture);

        file = fopen(path, "a");
        fprintf(file, "max_seks = 3\n");
        fclose(file);
        REFUSES(fixture, "conf:6", "max_seqs", "--config", path, "--model", model);
}

/* A file cut short, empty, or of another kind: one line that names the file; never a crash. */
static void refuses_an_invalid_model_file_and_names_it(void **state)
{
        static const long cuts[] = { 0, 3, 4, 24, 100, 700, 5000, 1000000 };
        struct daemon_fixture *fixture = *state;
        char *whole = file_text(env_path("TOY_MODEL")), path[96];
        FILE *file;

        snprintf(path, sizeof(path), "%s/bad.gguf", fixture->directory);
        REFUSES(fixture, "bad.gguf", "samovard:", "--model", path);
        for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
                file = fopen(path, "w");
                fwrite(whole, 1, (size_t)cuts[i], file);
                fclose(file);
                REFUSES(fixture, "bad.gguf", "samovard:", "--model", path);
        }
        file = fopen(path, "w");
        for (int i = 0; i < 1000; i++)
                fputs("this is no model at all\n", file);
        fclose(file);
        REFUSES(fixture, "bad.gguf", "samovard:", "--model", path);
        REFUSES(fixture, fixture->directory, "config.json is missing", "--model",
                fixture->directory);
        snprintf(path, sizeof(path), "%s/config.json", fixture->directory);
        file = fopen(path, "w");
        fputs("{}", file);
        fclose(file);
        REFUSES(fixture, fixture->directory, "neither model.safetensors nor", "--model",
                fixture->directory);
        snprintf(path, sizeof(path), "%s/bad.safetensors", fixture->directory);
        file = fopen(path, "w");
        fwrite(whole, 1, 1000000, file);
        fclose(file);
        REFUSES(fixture, path, "bad.safetensors: a header of", "--model", path);
        free(whole);
        assert_no_process_left();
}

/* "v1.5" is a version and no suffix. */
static void a_model_is_named_after_its_file(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[96];

        snprintf(path, sizeof(path), "%s/toy-model-v1.5", fixture->directory);
        assert_int_equal(symlink(env_path("TOY_MODEL"), path), 0);
        START_DAEMON(fixture, "--threads", "1", "--model", path);
        assert_true(fixture_logged(fixture, "model toy-model-v1.5, "));
        fixture_stop(fixture);
        START_DAEMON(fixture, "--threads", "1", "--model", env_path("TOY_MODEL"));
        assert_true(fixture_logged(fixture, "model toy-model, "));
        fixture_stop(fixture);
}

static void sigterm_lets_running_streams_finish(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *idle;
        uint32_t id;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K");
        idle = raw_client_greet(fixture);
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &unread);
        assert_true(raw_client_await_reply(client, id)->ok);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_LENGTH);
        raw_client_await_hangup(client);
        raw_client_await_hangup(idle);
        raw_client_close(client);
        raw_client_close(idle);
        assert_int_equal(fixture_await_exit(fixture), 0);
        assert_int_equal(access(fixture->socket, F_OK), -1);
}

static void assert_tells_that_it_stops(const struct daemon_fixture *fixture)
{
        struct raw_client *late = raw_client_connect(fixture);
        struct reply *reply = raw_client_hello(late, raw_client_transport());

        assert_int_equal(reply->code, SMV_SHUTTING_DOWN);
        assert_true(reply_uint(reply, "retry_ms") > 0);
        raw_client_await_hangup(late);
        raw_client_close(late);
}

/* The daemon drains as long as one client does not read; another client asks meanwhile. */
static void a_draining_daemon_refuses_new_requests(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        uint32_t id;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--drain-timeout-ms", "120000",
                           "--ring-bytes", "64K");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        id = raw_client_generate(client, &unread);
        assert_true(raw_client_await_reply(client, id)->ok);
        kill(fixture->pid, SIGTERM);
        while (!fixture_logged(fixture, "draining"))
                sleep_ms(1);
        assert_int_equal(raw_client_await_reply(other, raw_client_generate(other, &unread))->code,
                         SMV_SHUTTING_DOWN);
        assert_tells_that_it_stops(fixture);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_LENGTH);
        raw_client_close(client);
        raw_client_close(other);
        assert_int_equal(fixture_await_exit(fixture), 0);
}

/* It sees what the daemon waits for, and ends it; it gets no work done. */
static void a_draining_daemon_lets_in_a_client_that_asks_for_it(void **state)
{
        struct smv_connect where = { SMV_SIZE(smv_connect), .while_stopping = 1 };
        struct smv_generate late = { SMV_SIZE(smv_generate), .prompt = "Once", .max_tokens = 1 };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct smv_client *admin;
        const char *json, *at;
        uint32_t id, stream;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--drain-timeout-ms", "120000",
                           "--ring-bytes", "64K");
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &unread);
        assert_true(raw_client_await_reply(client, id)->ok);
        kill(fixture->pid, SIGTERM);
        while (!fixture_logged(fixture, "draining"))
                sleep_ms(1);
        where.socket = fixture->socket;
        assert_int_equal(smv_connect(&where, &admin), 0);
        assert_int_equal(smv_status(admin, &json), 0);
        assert_non_null(strstr(json, "\"stopping\":true,\"stops_in_s\":"));
        assert_int_equal(smv_generate(admin, &late, &stream), -EREMOTEIO);
        smv_error(admin, &problem);
        assert_int_equal(problem.code, SMV_SHUTTING_DOWN);
        assert_true(problem.retry_ms > 0);
        assert_int_equal(smv_list(admin, &json), 0);
        at = strstr(json, "\"number\":");
        assert_non_null(at);
        assert_int_equal(smv_end(admin, strtoull(at + 9, NULL, 10)), 0);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        assert_int_equal(fixture_await_exit(fixture), 0);
        smv_close(admin);
        raw_client_close(client);
}

/* With no time to drain, and with a second signal, each stream still has its END, though none of
 * the streams ends by itself. */
static void a_second_sigterm_or_no_drain_time_ends_every_stream(void **state)
{
        enum { STREAMS = 14 };
        const struct want endless = { .prompt = "Once", .max_tokens = ENDLESS, .ignore_eos = true };
        struct daemon_fixture *fixture = *state;

        for (int second = 0; second < 2; second++) {
                struct raw_client *client;
                uint32_t ids[STREAMS];

                fixture_clear_log(fixture);
                START_ENDLESS_DAEMON(fixture, "--threads", "1", "--max-seqs", "4",
                                     "--drain-timeout-ms", second ? "3600000" : "0");
                client = raw_client_greet(fixture);
                for (size_t i = 0; i < STREAMS; i++)
                        ids[i] = raw_client_generate(client, &endless);
                for (size_t i = 0; i < STREAMS; i++)
                        assert_true(raw_client_await_reply(client, ids[i])->ok);
                kill(fixture->pid, SIGTERM);
                while (second && !fixture_logged(fixture, "draining"))
                        sleep_ms(1);
                if (second)
                        kill(fixture->pid, SIGTERM);
                for (size_t i = 0; i < STREAMS; i++) {
                        const struct stream *stream = raw_client_await_end(client, ids[i]);

                        assert_int_equal(stream->end.reason, SMV_END_ERROR);
                        assert_int_equal(stream->end.code, SMV_SHUTTING_DOWN);
                }
                raw_client_await_hangup(client);
                raw_client_close(client);
                assert_int_equal(fixture_await_exit(fixture), 0);
        }
}

/* Every request was answered, and every accepted one has its END; returns how many. */
static uint32_t check_every_answer(struct raw_client *client, uint32_t *refused)
{
        uint32_t accepted = 0;

        raw_client_await_hangup(client);
        for (size_t i = 0; i < client->reply_count; i++) {
                const struct reply *reply = client->replies[i];

                accepted += reply->ok && !reply->taken; /* hello's is taken */
                if (!reply->ok)
                        assert_int_equal(reply->code, SMV_SHUTTING_DOWN);
                *refused += !reply->ok;
        }
        assert_int_equal(client->stream_count, accepted);
        for (size_t i = 0; i < client->stream_count; i++) {
                const struct stream *stream = client->streams[i];

                assert_true(stream->ended);
                if (stream->end.reason == SMV_END_ERROR)
                        assert_int_equal(stream->end.code, SMV_SHUTTING_DOWN);
                else
                        assert_int_equal(stream->end.reason, SMV_END_LENGTH);
        }
        return accepted;
}

/* Some clients have asked before the signal, some ask after it: when the signal comes is chance. */
static void request_and_terminate(struct daemon_fixture *fixture, struct raw_client **clients)
{
        struct want want = { .ignore_eos = true, .prompt = "Once" };
        uint32_t asked = 10 + random_below(20);

        for (uint32_t n = 0; n < asked; n++) {
                want.max_tokens = 1 + random_below(1900);
                raw_client_generate(clients[n % 3], &want);
                if (n == asked / 2) {
                        sleep_ms(random_below(60));
                        kill(fixture->pid, SIGTERM);
                        sleep_ms(random_below(3));
                }
        }
}

static bool have_hung_up(struct raw_client *const *clients)
{
        return clients[0]->hung_up && clients[1]->hung_up && clients[2]->hung_up;
}

static void sigterm_under_load_ends_every_accepted_stream(void **state)
{
        uint32_t times = scaled(10, 200), ended = 0, refused = 0;
        struct daemon_fixture *fixture = *state;
        uint64_t end;

        for (uint32_t i = 0; i < times; i++) {
                struct raw_client *clients[3];

                START_QUICK_DAEMON(fixture, "--max-seqs", "6", "--drain-timeout-ms",
                                   random_below(2) ? "30000" : "20", "--pipeline-depth",
                                   random_below(2) ? "1" : "2");
                for (size_t t = 0; t < 3; t++)
                        clients[t] = raw_client_greet(fixture);
                request_and_terminate(fixture, clients);
                /* the daemon waits for clients that have not read */
                for (end = now_ms() + TIMEOUT_MS; !have_hung_up(clients);
                     raw_clients_poll(clients, 3, 100))
                        assert_true(now_ms() < end);
                for (size_t t = 0; t < 3; t++) {
                        ended += check_every_answer(clients[t], &refused);
                        raw_client_close(clients[t]);
                }
                assert_int_equal(fixture_await_exit(fixture), 0);
        }
        printf("# %u SIGTERMs under load: %u streams ended, %u were refused\n", times, ended,
               refused);
        assert_no_process_left();
}

static void a_daemon_started_with_fd_ends_when_its_client_disconnects(void **state)
{
        struct daemon_fixture *fixture = *state;
        int pair[2];

        for (int busy = 0; busy < 2; busy++) {
                struct raw_client *client;

                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
                fixture->pid =
                        fixture_spawn(fixture,
                                      (const char *const[]){ "--model", env_path("TOY_MODEL"),
                                                             "--fd", "3", NULL },
                                      pair[1]);
                close(pair[1]);
                client = raw_client_adopt(pair[0]);
                assert_true(raw_client_hello(client, raw_client_transport())->ok);
                raw_client_generate(client, &longest);
                if (!busy)
                        raw_client_await_end(client, client->last_id);
                raw_client_close(client);
                assert_int_equal(fixture_await_exit(fixture), 0);
        }
        assert_no_process_left();
}

/* As after `samovard &` in a terminal that is closed. */
static void sighup_leaves_the_daemon_serving(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint32_t id;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--ring-bytes", "64K");
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &unread);
        assert_true(raw_client_await_reply(client, id)->ok);
        kill(fixture->pid, SIGHUP);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_LENGTH);
        raw_client_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(only_the_owner_can_reach_directory_and_socket),
                DAEMON_TEST(the_default_socket_is_in_the_runtime_directory),
                DAEMON_TEST(replaces_the_socket_of_a_killed_daemon),
                DAEMON_TEST(a_second_daemon_reports_the_pid_of_the_first_and_ends),
                DAEMON_TEST(does_not_replace_a_file_at_the_path_of_the_socket),
                DAEMON_TEST(check_prints_the_plan_and_ends),
                DAEMON_TEST(check_config_says_what_is_wrong_with_the_settings),
                DAEMON_TEST(a_model_that_the_sandbox_hides_is_told),
                DAEMON_TEST(refuses_a_wrong_flag_and_names_it),
                DAEMON_TEST(flags_override_the_config_file),
                DAEMON_TEST(refuses_an_invalid_model_file_and_names_it),
                DAEMON_TEST(a_model_is_named_after_its_file),
                DAEMON_TEST(sigterm_lets_running_streams_finish),
                DAEMON_TEST(a_draining_daemon_lets_in_a_client_that_asks_for_it),
                DAEMON_TEST(a_draining_daemon_refuses_new_requests),
                DAEMON_TEST(a_second_sigterm_or_no_drain_time_ends_every_stream),
                DAEMON_TEST(sigterm_under_load_ends_every_accepted_stream),
                DAEMON_TEST(a_daemon_started_with_fd_ends_when_its_client_disconnects),
                DAEMON_TEST(sighup_leaves_the_daemon_serving),
        };
        /* How a daemon starts does not depend on the transport of its clients, so only these run
         * with a ring. */
        const struct CMUnitTest with_a_ring[] = {
                DAEMON_TEST(a_second_daemon_reports_the_pid_of_the_first_and_ends),
                DAEMON_TEST(sigterm_lets_running_streams_finish),
                DAEMON_TEST(a_draining_daemon_refuses_new_requests),
                DAEMON_TEST(a_second_sigterm_or_no_drain_time_ends_every_stream),
                DAEMON_TEST(sigterm_under_load_ends_every_accepted_stream),
                DAEMON_TEST(a_daemon_started_with_fd_ends_when_its_client_disconnects),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        random_begin();
        if (raw_client_transport() != RAW_CLIENT_SOCKET)
                return cmocka_run_group_tests(with_a_ring, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
