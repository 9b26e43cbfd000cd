/*
 * The daemon as a service: a service manager that passes a socket, hears of every state and watches
 * over the daemon; settings that are read again; a daemon that takes another one's place.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pty.h>
#include <samovar/client.h>
#include <samovar/protocol.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/raw-client.h"
#include "tests/skip.h"

static const struct want longest = { .prompt = "Once", .max_tokens = 2000, .ignore_eos = true };

/* With a small ring this stream runs for as long as it is not read. */
static const struct want unread = {
        .prompt = "Once", .max_tokens = LONG_LOGPROBS, .logprobs = LOGPROBS_MOST, .ignore_eos = true
};

static struct sockaddr_un address_in(const struct daemon_fixture *fixture, const char *name)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };

        snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", fixture->directory, name);
        return at;
}

static void await_log(const struct daemon_fixture *fixture, const char *words)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (!fixture_logged(fixture, words)) {
                if (now_ms() > end)
                        fail_msg("the log has no %s", words);
                sleep_ms(2);
        }
}

/* ---- what the manager hears ---- */

/* A service manager that only listens.  The daemon finds it in its environment. */
static int open_manager(const struct daemon_fixture *fixture)
{
        struct sockaddr_un at = address_in(fixture, "notify");
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)));
        setenv("NOTIFY_SOCKET", at.sun_path, 1);
        return fd;
}

static void close_manager(int manager)
{
        unsetenv("NOTIFY_SOCKET");
        unsetenv("WATCHDOG_USEC");
        close(manager);
}

/* The next message, or false if none comes within `ms`. */
static bool hear(int manager, char *text, size_t bytes, int ms)
{
        struct timeval wait = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
        ssize_t n;

        setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        n = recv(manager, text, bytes - 1, 0);
        if (n < 0)
                return false;
        text[n] = '\0';
        return true;
}

/* Waits for a message with these words; others, which tell of progress, may come before it. */
static void await_message(int manager, const char *words, char *text, size_t bytes)
{
        do {
                if (!hear(manager, text, bytes, TIMEOUT_MS))
                        fail_msg("the service manager has not heard %s", words);
        } while (!strstr(text, words));
}

static void the_service_manager_hears_of_every_state(void **state)
{
        struct daemon_fixture *fixture = *state;
        int manager = open_manager(fixture);
        char text[512];

        START_DAEMON(fixture, "--threads", "1", "--drain-timeout-ms", "7000");
        assert_true(hear(manager, text, sizeof(text), TIMEOUT_MS));
        assert_string_equal(text, "READY=1");
        await_message(manager, "STATUS=serving toy-model", text, sizeof(text));

        kill(fixture->pid, SIGHUP);
        await_message(manager, "RELOADING=1\nMONOTONIC_USEC=", text, sizeof(text));
        await_message(manager, "READY=1", text, sizeof(text));
        fixture_stop(fixture);
        await_message(manager, "STOPPING=1", text, sizeof(text));
        assert_non_null(strstr(text, "EXTEND_TIMEOUT_USEC=12000000"));
        await_message(manager, "STATUS=draining: 0 requests, ", text, sizeof(text));
        close_manager(manager);
}

/* Waits until it hears of the draining of one request, and returns the seconds that are left. */
static unsigned await_draining(int manager)
{
        char text[512];
        unsigned left_s;

        await_message(manager, "STATUS=draining: ", text, sizeof(text));
        assert_int_equal(sscanf(text, "STATUS=draining: 1 request, %u s left", &left_s), 1);
        return left_s;
}

static void the_service_manager_hears_how_long_the_draining_takes(void **state)
{
        struct daemon_fixture *fixture = *state;
        int manager = open_manager(fixture);
        struct raw_client *client;
        unsigned first, second;
        uint32_t id;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--drain-timeout-ms", "1000000",
                           "--ring-bytes", "64K");
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &unread);
        assert_true(raw_client_await_reply(client, id)->ok);
        await_log(fixture, "loaded "); /* before that, the stream would end at once */
        kill(fixture->pid, SIGTERM);
        first = await_draining(manager);
        second = await_draining(manager);
        assert_true(second < first);
        /* A second signal leaves the seconds in which streams are ended. */
        kill(fixture->pid, SIGTERM);
        while (await_draining(manager) > 5)
                ;
        assert_int_equal(raw_client_await_end(client, id)->end.code, SMV_SHUTTING_DOWN);
        raw_client_close(client);
        assert_int_equal(fixture_await_exit(fixture), 0);
        close_manager(manager);
}

static void the_service_manager_hears_how_far_the_model_is_loaded(void **state)
{
        struct daemon_fixture *fixture = *state;
        int manager = open_manager(fixture);
        char text[512];
        unsigned percent;

        START_DAEMON(fixture, "--threads", "1");
        assert_true(hear(manager, text, sizeof(text), TIMEOUT_MS));
        /* A small model may be loaded before it is asked for the first time. */
        assert_true(hear(manager, text, sizeof(text), TIMEOUT_MS));
        if (sscanf(text, "STATUS=loading toy-model, %u %%", &percent) == 1)
                assert_in_range(percent, 0, 99);
        else
                assert_string_equal(text, "STATUS=serving toy-model");
        fixture_stop(fixture);
        close_manager(manager);
}

/* ---- the watchdog ---- */

/* The thread of the engine, by its name. */
static pid_t engine_thread(pid_t pid)
{
        char path[300], name[32];
        struct dirent *entry;
        pid_t found = 0;
        DIR *tasks;

        snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
        tasks = opendir(path);
        assert_non_null(tasks);
        while (!found && (entry = readdir(tasks))) {
                FILE *file;

                snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, entry->d_name);
                file = fopen(path, "r");
                if (file && fgets(name, sizeof(name), file) && !strcmp(name, "smv-engine\n"))
                        found = atoi(entry->d_name);
                if (file)
                        fclose(file);
        }
        closedir(tasks);
        assert_true(found > 0);
        return found;
}

/*
 * The engine alone stops, as if its backend hung; the loop still runs.  One ping may have been
 * taken before, so one more message may come, and then none.
 */
static void the_watchdog_is_not_fed_while_the_engine_hangs(void **state)
{
        enum { INTERVAL_MS = 200, INTERVALS = 10 };
        struct daemon_fixture *fixture = *state;
        int manager = open_manager(fixture), heard = 0, status;
        struct raw_client *client;
        char text[512];
        pid_t engine;

        setenv("WATCHDOG_USEC", "200000", 1);
        START_DAEMON(fixture, "--threads", "1");
        for (int i = 0; i < 3; i++)
                await_message(manager, "WATCHDOG=1", text, sizeof(text));

        engine = engine_thread(fixture->pid);
        if (ptrace(PTRACE_SEIZE, engine, NULL, NULL) < 0) {
                fixture_stop(fixture);
                close_manager(manager);
                skip_because("a thread cannot be stopped here");
        }
        assert_int_equal(ptrace(PTRACE_INTERRUPT, engine, NULL, NULL), 0);
        assert_int_equal(waitpid(engine, &status, __WALL), engine);
        while (hear(manager, text, sizeof(text), INTERVAL_MS * INTERVALS))
                heard++;
        assert_in_range(heard, 0, 1 + 10 /* those that were in the socket already */);
        while (hear(manager, text, sizeof(text), INTERVAL_MS * INTERVALS))
                fail_msg("fed while the engine hangs: %s", text);

        assert_int_equal(ptrace(PTRACE_DETACH, engine, NULL, NULL), 0);
        await_message(manager, "WATCHDOG=1", text, sizeof(text));
        client = raw_client_greet(fixture);
        raw_client_complete(client, &longest);
        raw_client_close(client);
        fixture_stop(fixture);
        close_manager(manager);
}

/* ---- a passed socket ---- */

#define CONTROL_FD 9 /* the shell makes it the second passed descriptor */

/* Starts the daemon with `fd`, and `control` if it is not -1, passed to it, as systemd would. */
static void start_with_passed(struct daemon_fixture *fixture, int fd, int control,
                              const char *count)
{
        char script[160], *real = strdup(env_path("SAMOVARD"));
        FILE *file;

        snprintf(script, sizeof(script), "%s/activate", fixture->directory);
        file = fopen(script, "w");
        assert_non_null(file);
        fprintf(file, "#!/bin/sh\n%sLISTEN_PID=$$ LISTEN_FDS=%s exec %s \"$@\"\n",
                control < 0 ? "" : "exec 4<&9 9<&-\n", count, real);
        fclose(file);
        assert_int_equal(chmod(script, 0700), 0);
        setenv("SAMOVARD", script, 1);
        if (control >= 0)
                assert_int_equal(dup2(control, CONTROL_FD), CONTROL_FD);
        fixture->pid = fixture_spawn(
                fixture,
                (const char *const[]){ "--config", "none", "--threads", "1", "--model",
                                       make_quick_model(fixture, "2048"), "--ring-bytes", "64K",
                                       /* no test is as slow as that */
                                       "--drain-timeout-ms", "1000000", NULL },
                fd);
        if (control >= 0)
                close(CONTROL_FD);
        setenv("SAMOVARD", real, 1);
        free(real);
}

static int listen_at(const struct daemon_fixture *fixture, const char *name)
{
        struct sockaddr_un at = address_in(fixture, name);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 16));
        return fd;
}

static int listen_in(const struct daemon_fixture *fixture)
{
        struct sockaddr_un at = address_in(fixture, "in");

        assert_int_equal(mkdir(at.sun_path, 0700), 0);
        return listen_at(fixture, "in/sock");
}

/*
 * The daemon begins to drain, and waits for a stream that its client does not read.  Returns the
 * stream's id.
 */
static uint32_t drain_with_a_stream(const struct daemon_fixture *fixture, struct raw_client *client)
{
        uint32_t id;

        assert_true(raw_client_hello(client, raw_client_transport())->ok);
        await_log(fixture, "loaded "); /* before that, draining would not wait for a stream */
        id = raw_client_generate(client, &unread);
        assert_true(raw_client_await_reply(client, id)->ok);
        kill(fixture->pid, SIGTERM);
        await_log(fixture, "draining");
        return id;
}

/*
 * Clients connect before the daemon is there, and while it drains: both are served, the latter by
 * the next daemon.
 */
static void connections_to_a_passed_socket_wait_for_the_next_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;
        int fd = listen_in(fixture);
        struct raw_client *early = raw_client_connect(fixture), *late;
        uint32_t id;

        start_with_passed(fixture, fd, -1, "1");
        id = drain_with_a_stream(fixture, early);
        late = raw_client_connect(fixture);
        assert_int_equal(raw_client_await_end(early, id)->end.reason, SMV_END_LENGTH);
        raw_client_close(early);
        assert_int_equal(fixture_await_exit(fixture), 0);
        assert_int_equal(access(fixture->socket, F_OK), 0);
        assert_int_equal(late->reply_count, 0);

        start_with_passed(fixture, fd, -1, "1");
        assert_true(raw_client_hello(late, raw_client_transport())->ok);
        raw_client_complete(late, &longest);
        raw_client_close(late);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
        assert_int_equal(access(fixture->socket, F_OK), 0);
        close(fd);
}

static void refuses_a_passed_descriptor_that_is_no_listening_socket(void **state)
{
        struct daemon_fixture *fixture = *state;
        int pair[2], fd;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        start_with_passed(fixture, pair[0], -1, "1");
        assert_int_equal(fixture_await_exit(fixture), 1);
        assert_true(fixture_logged(fixture, "is not a Unix stream socket that listens"));
        close(pair[0]);
        close(pair[1]);

        fd = listen_in(fixture);
        start_with_passed(fixture, fd, -1, "3");
        assert_int_equal(fixture_await_exit(fixture), 1);
        assert_true(fixture_logged(fixture, "passes 3 sockets"));
        close(fd);
}

static struct smv_client *connect_while_stopping(const struct daemon_fixture *fixture)
{
        struct smv_connect options = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                       .while_stopping = 1 };
        struct smv_client *client = NULL;

        assert_int_equal(smv_connect(&options, &client), 0);
        return client;
}

/* Clients of the first socket wait for the next daemon; this one is at the second, and ends it. */
static void a_passed_control_socket_answers_while_the_daemon_drains(void **state)
{
        struct daemon_fixture *fixture = *state;
        int fd = listen_in(fixture), control = listen_at(fixture, "in/sock" SMV_CONTROL_SUFFIX);
        struct raw_client *busy, *late;
        struct smv_client *admin;
        const char *json, *at;
        uint32_t id;

        start_with_passed(fixture, control, fd, "2"); /* in either order */
        busy = raw_client_connect(fixture);
        id = drain_with_a_stream(fixture, busy);
        late = raw_client_connect(fixture);

        admin = connect_while_stopping(fixture);
        assert_int_equal(smv_list(admin, &json), 0);
        at = strstr(json, "\"number\":");
        assert_non_null(at);
        assert_int_equal(smv_end(admin, strtoull(at + 9, NULL, 10)), 0);
        assert_int_equal(raw_client_await_end(busy, id)->end.reason, SMV_END_CANCELLED);
        assert_int_equal(fixture_await_exit(fixture), 0);
        assert_int_equal(late->reply_count, 0);
        smv_close(admin);
        raw_client_close(busy);
        raw_client_close(late);
        close(control);
        close(fd);
}

/* A machine that is slow may hide the answer of the control socket, so asks until it is there. */
static void expect_told_of_stopping(struct daemon_fixture *fixture)
{
        struct run_result ran;
        bool told = false;

        while (!told) {
                ran = RUN(fixture, NULL, env_path("SAMOVAR"), "complete", "Once", "--timeout", "3");
                assert_int_equal(ran.status, 1);
                told = strstr(ran.err, "the daemon is stopping (") &&
                       strstr(ran.err, "drain_timeout_ms); the next daemon will answer\n") &&
                       strstr(ran.err, "the daemon is stopping, and no other one answered within "
                                       "3000 ms (timeout_ms)\nsamovar: --timeout waits longer\n");
                run_result_free(&ran);
        }
}

static void the_command_says_that_the_daemon_is_stopping(void **state)
{
        struct daemon_fixture *fixture = *state;
        int fd = listen_in(fixture), control = listen_at(fixture, "in/sock" SMV_CONTROL_SUFFIX);
        struct raw_client *busy;
        struct run_result ran;

        start_with_passed(fixture, fd, control, "2");
        busy = raw_client_connect(fixture);
        drain_with_a_stream(fixture, busy);
        expect_told_of_stopping(fixture);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "models");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);

        raw_client_close(busy);
        assert_int_equal(fixture_await_exit(fixture), 0);
        close(control);
        close(fd);
}

static void refuses_a_second_socket_that_is_not_the_first_ones_control(void **state)
{
        struct daemon_fixture *fixture = *state;
        int fd = listen_in(fixture), other = listen_at(fixture, "in/other");

        start_with_passed(fixture, fd, other, "2");
        assert_int_equal(fixture_await_exit(fixture), 1);
        assert_true(fixture_logged(fixture, "in/other; the second one must be at the path of"));
        close(other);
        close(fd);
}

/* ---- settings ---- */

static void write_settings(const struct daemon_fixture *fixture, char path[160], const char *text)
{
        FILE *file;

        snprintf(path, 160, "%s/conf", fixture->directory);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static void sighup_reads_the_settings_again(void **state)
{
        const struct want silent = { .prompt = "Once", .ignore_eos = true };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        char path[160];

        write_settings(fixture, path, "max_tokens = 5\nmax_seqs = 3\nlog_level = info\n");
        START_DAEMON(fixture, "--threads", "1", "--config", path);
        client = raw_client_greet(fixture);
        assert_int_equal(raw_client_complete(client, &silent)->token_count, 5);

        write_settings(fixture, path, "max_tokens = 9\nmax_seqs = 4\nuid_requests = 1\n");
        kill(fixture->pid, SIGHUP);
        await_log(fixture, "reload_needs_restart settings=max_seqs");
        assert_int_equal(raw_client_complete(client, &silent)->token_count, 9);
        assert_int_equal(raw_client_call(client, "op=s prompt=s n=u", "generate", "Once", 2u)->code,
                         SMV_QUOTA);

        write_settings(fixture, path, "max_tokens = none\n");
        kill(fixture->pid, SIGHUP);
        await_log(fixture, "reload_refused");
        assert_int_equal(raw_client_complete(client, &silent)->token_count, 9);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* A user that holds more than a lowered limit keeps it, and gets no more. */
static void limits_may_fall_below_what_is_held(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        uint64_t handle, length;
        char path[160];
        uint32_t id;

        write_settings(fixture, path, "uid_prompt_bytes = 1M\nring_bytes = 64K\n");
        START_QUICK_DAEMON(fixture, "--threads", "1", "--config", path);
        client = raw_client_greet(fixture);
        handle = reply_uint(raw_client_call(client, "op=s prompt=s", "open", "Once"), "handle");
        raw_client_call(client, "op=s handle=q max_tokens=u logprobs=u ignore_eos=y", "generate",
                        handle, LONG_LOGPROBS, LOGPROBS_MOST - 1, 1);
        id = client->last_id;
        write_settings(fixture, path, "uid_prompt_bytes = 1K\nuid_handles = 1\nring_bytes = 64K\n");
        kill(fixture->pid, SIGHUP);
        await_log(fixture, "reloaded");
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_LENGTH);
        length = reply_uint(raw_client_call(client, "op=s handle=q length=u", "truncate", handle,
                                            LONG_LOGPROBS),
                            "length");
        assert_int_equal(length, LONG_LOGPROBS);
        assert_int_equal(raw_client_call(client, "op=s prompt=s", "open", "Once")->code, SMV_QUOTA);
        assert_int_equal(
                raw_client_call(client, "op=s handle=q text=s", "append", handle, "x")->code,
                SMV_QUOTA);
        raw_client_close(client);
        write_settings(fixture, path, "ring_bytes = 64K\n");
        kill(fixture->pid, SIGHUP);
        fixture_stop(fixture);
}

/* ---- signals ---- */

/* The daemon leads the session of a terminal, as in a shell's foreground, and the terminal goes. */
static void a_closed_terminal_leaves_the_daemon_serving(void **state)
{
        struct daemon_fixture *fixture = *state;
        const char *program = env_path("SAMOVARD"), *model = env_path("TOY_MODEL");
        struct raw_client *client;
        int master, slave, fd;

        assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
        fixture->pid = fork();
        if (!fixture->pid) {
                setsid();
                ioctl(slave, TIOCSCTTY, 0);
                dup2(slave, 0);
                dup2(slave, 1);
                dup2(slave, 2);
                close(master);
                execl(program, program, "--model", model, "--socket", fixture->socket, "--threads",
                      "1", "--config", "none", (char *)NULL);
                _exit(126);
        }
        close(slave);
        while ((fd = fixture_connect(fixture)) < 0)
                sleep_ms(5);
        close(fd);
        close(master);
        client = raw_client_greet(fixture);
        raw_client_complete(client, &longest);
        raw_client_close(client);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
        assert_int_equal(access(fixture->socket, F_OK), -1);
}

static void a_log_that_may_not_grow_leaves_the_daemon_serving(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct rlimit before, small;
        struct raw_client *client;
        struct stat log;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        small = before;
        small.rlim_cur = 8192;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        START_DAEMON(fixture, "--threads", "1", "--log-level", "debug", "--uid-connects-burst",
                     "60000");
        setrlimit(RLIMIT_FSIZE, &before);
        for (int i = 0; i < 500; i++) {
                kill(fixture->pid, SIGHUP);
                raw_client_close(raw_client_connect(fixture));
        }
        client = raw_client_greet(fixture);
        raw_client_complete(client, &longest);
        assert_true(reply_uint(raw_client_call(client, "op=s", "status"), "status.log_lines_lost") >
                    0);
        raw_client_close(client);
        fixture_stop(fixture);
        assert_int_equal(stat(fixture->log, &log), 0);
        assert_true(log.st_size <= 8192);
}

/* ---- replacing ---- */

static pid_t start_replacing(struct daemon_fixture *fixture)
{
        return fixture_spawn(fixture,
                             (const char *const[]){ "--config", "none", "--threads", "1", "--model",
                                                    env_path("TOY_MODEL"), "--socket",
                                                    fixture->socket, "--replace",
                                                    "--drain-timeout-ms", "120000", NULL },
                             -1);
}

static void await_listening(const struct daemon_fixture *fixture)
{
        int fd;

        while ((fd = fixture_connect(fixture)) < 0) {
                assert_int_equal(waitpid(fixture->pid, NULL, WNOHANG), 0);
                sleep_ms(5);
        }
        close(fd);
}

/* The old daemon drains: its stream is read to the end.  Then the new one serves at its socket. */
static void replace_waits_until_the_other_daemon_has_drained(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        pid_t old, new;
        uint32_t id;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--drain-timeout-ms", "120000",
                           "--ring-bytes", "64K");
        old = fixture->pid;
        client = raw_client_greet(fixture);
        id = raw_client_generate(client, &unread);
        assert_true(raw_client_await_reply(client, id)->ok);
        new = start_replacing(fixture);
        await_log(fixture, "draining");
        assert_int_equal(waitpid(new, NULL, WNOHANG), 0);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_LENGTH);
        raw_client_await_hangup(client);
        raw_client_close(client);
        assert_int_equal(await_process(old), 0);
        fixture->pid = new;
        await_listening(fixture);
        client = raw_client_greet(fixture);
        raw_client_complete(client, &longest);
        raw_client_close(client);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
        assert_no_process_left();
}

/* The owner of the lock file may write the number of any process into it. */
static void replace_stops_the_process_that_listens_whatever_the_lock_file_says(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[sizeof(fixture->socket) + 8];
        pid_t old, named = fork();
        FILE *lock;

        if (!named) {
                pause();
                _exit(1);
        }
        START_DAEMON(fixture, "--threads", "1");
        old = fixture->pid;
        snprintf(path, sizeof(path), "%s.lock", fixture->socket);
        lock = fopen(path, "r+");
        assert_true(lock && fprintf(lock, "%-11d\n", (int)named) > 0 && !fclose(lock));
        fixture->pid = start_replacing(fixture);
        assert_int_equal(await_process(old), 0);
        assert_int_equal(waitpid(named, NULL, WNOHANG), 0);
        kill(named, SIGKILL);
        waitpid(named, NULL, 0);
        await_listening(fixture);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
}

static void replace_starts_at_once_where_no_daemon_is(void **state)
{
        struct daemon_fixture *fixture = *state;

        START_DAEMON(fixture, "--threads", "1", "--replace");
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_service_manager_hears_of_every_state),
                DAEMON_TEST(the_service_manager_hears_how_long_the_draining_takes),
                DAEMON_TEST(the_service_manager_hears_how_far_the_model_is_loaded),
                DAEMON_TEST(the_watchdog_is_not_fed_while_the_engine_hangs),
                DAEMON_TEST(connections_to_a_passed_socket_wait_for_the_next_daemon),
                DAEMON_TEST(a_passed_control_socket_answers_while_the_daemon_drains),
                DAEMON_TEST(the_command_says_that_the_daemon_is_stopping),
                DAEMON_TEST(refuses_a_second_socket_that_is_not_the_first_ones_control),
                DAEMON_TEST(refuses_a_passed_descriptor_that_is_no_listening_socket),
                DAEMON_TEST(sighup_reads_the_settings_again),
                DAEMON_TEST(limits_may_fall_below_what_is_held),
                DAEMON_TEST(a_closed_terminal_leaves_the_daemon_serving),
                DAEMON_TEST(a_log_that_may_not_grow_leaves_the_daemon_serving),
                DAEMON_TEST(replace_waits_until_the_other_daemon_has_drained),
                DAEMON_TEST(replace_stops_the_process_that_listens_whatever_the_lock_file_says),
                DAEMON_TEST(replace_starts_at_once_where_no_daemon_is),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
