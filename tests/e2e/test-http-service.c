/*
 * samovar-http as a service: what the service manager passes and hears, settings and keys that are
 * read again, and answers that end in order when it stops.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/skip.h"

/* A stream that does not end by itself. */
#define ENDLESS_BODY                                                                               \
        "{\"prompt\":\"Once\",\"max_tokens\":1000000,\"ignore_eos\":true,\"stream\":true}"
#define ALPHA "alpha-0123456789abcdef"
#define BETA  "beta-0123456789abcdef"

static const char *path_in(const struct daemon_fixture *fixture, const char *name)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/%s", fixture->directory, name);
        return path;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        fputs(text, file);
        fclose(file);
        assert_int_equal(chmod(path, mode), 0);
}

/* ---- what the service manager hears ---- */

static int open_manager(const struct daemon_fixture *fixture)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", fixture->directory);
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

static void hear(int manager, char text[512])
{
        struct timeval wait = { .tv_sec = TIMEOUT_MS / 1000 };
        ssize_t n;

        setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        n = recv(manager, text, 511, 0);
        if (n < 0)
                fail_msg("%s", "the service manager hears nothing more");
        text[n] = '\0';
}

/* Other messages, which tell of progress, may come before it. */
static void await_message(int manager, const char *words, char text[512])
{
        do
                hear(manager, text);
        while (!strstr(text, words));
}

static void the_service_manager_hears_of_every_state(void **state)
{
        struct daemon_fixture *fixture = *state;
        int manager = open_manager(fixture);
        struct bridge_fixture bridge;
        char text[512];

        START_BRIDGE(&bridge, fixture, "--drain-timeout-ms", "7000");
        unsetenv("NOTIFY_SOCKET");
        hear(manager, text);
        assert_string_equal(text, "READY=1"); /* although there is no daemon */
        hear(manager, text);
        assert_memory_equal(text, "STATUS=waiting for samovard", 27);
        fixture->pid = fixture_spawn(fixture,
                                     (const char *const[]){ "--config", "none", "--threads", "1",
                                                            "--socket", fixture->socket, "--model",
                                                            env_path("TOY_MODEL"), NULL },
                                     -1);
        await_message(manager, "STATUS=serving", text);

        kill(bridge.pid, SIGHUP);
        await_message(manager, "RELOADING=1\nMONOTONIC_USEC=", text);
        await_message(manager, "READY=1", text);
        bridge_stop(&bridge);
        await_message(manager, "STOPPING=1", text);
        assert_non_null(strstr(text, "EXTEND_TIMEOUT_USEC=12000000"));
        await_message(manager, "STATUS=draining: 0 requests, ", text);
        close_manager(manager);
        kill(fixture->pid, SIGTERM);
        assert_int_equal(fixture_await_exit(fixture), 0);
}

static void the_watchdog_is_fed_while_the_loop_runs(void **state)
{
        struct daemon_fixture *fixture = *state;
        int manager = open_manager(fixture);
        struct bridge_fixture bridge;
        char text[512];

        setenv("WATCHDOG_USEC", "200000", 1);
        START_BRIDGE(&bridge, fixture, "--log-level", "info");
        for (int i = 0; i < 4; i++)
                await_message(manager, "WATCHDOG=1", text);
        kill(bridge.pid, SIGSTOP);
        assert_int_equal(waitpid(bridge.pid, NULL, WUNTRACED), bridge.pid);
        while (recv(manager, text, sizeof(text), MSG_DONTWAIT) > 0)
                ;
        sleep_ms(1000);
        assert_int_equal(recv(manager, text, sizeof(text), MSG_DONTWAIT), -1);
        kill(bridge.pid, SIGCONT);
        await_message(manager, "WATCHDOG=1", text);
        bridge_stop(&bridge);
        close_manager(manager);
}

/* ---- passed sockets ---- */

static int listen_tcp(uint16_t *ret_port)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t bytes = sizeof(at);

        assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 16));
        assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
        *ret_port = ntohs(at.sin_port);
        return fd;
}

static int listen_unix(const char *path)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
        assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 16));
        return fd;
}

/* Starts it with these sockets passed, as systemd would: the shell knows its own pid. */
static void start_with_passed(struct bridge_fixture *bridge, struct daemon_fixture *fixture,
                              const int *fds, const char *count, const char *flag,
                              const char *value)
{
        char *real = strdup(env_path("SAMOVAR_HTTP")), text[512];
        char *script = strdup(path_in(fixture, "activate"));
        int high[4] = { -1, -1, -1, -1 };

        snprintf(text, sizeof(text), "#!/bin/sh\nLISTEN_PID=$$ LISTEN_FDS=%s exec %s \"$@\"\n",
                 count, real);
        write_file(script, text, 0700);
        setenv("SAMOVAR_HTTP", script, 1);
        for (int i = 0; fds[i] >= 0; i++)
                assert_int_equal(high[i] = dup2(fds[i], 200 + i), 200 + i);
        bridge_spawn(bridge, fixture,
                     (const char *const[]){ "--config", "none", "--socket", fixture->socket, flag,
                                            value, NULL },
                     high);
        for (int i = 0; high[i] >= 0; i++)
                close(high[i]);
        setenv("SAMOVAR_HTTP", real, 1);
        free(script);
        free(real);
}

static void assert_answers(int fd)
{
        char *answer;

        assert_true(fd >= 0);
        http_send(fd, "GET /", "", NULL);
        answer = http_receive(fd);
        assert_int_equal(http_status(answer), 200);
        free(answer);
}

static void takes_the_sockets_of_the_service_manager_in_any_order(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = { 0 };
        char *path = strdup(path_in(fixture, "http"));
        uint16_t port;
        int tcp = listen_tcp(&port), local = listen_unix(path), early;

        early = bridge_connect(port); /* waits for the program */
        start_with_passed(&bridge, fixture, (const int[]){ local, tcp, -1 }, "2", NULL, NULL);
        assert_answers(early);
        assert_answers(bridge_connect_unix(path));
        bridge_await_log(&bridge, "ready");
        bridge_stop(&bridge);

        /* Both are still there for the next one. */
        early = bridge_connect_unix(path);
        start_with_passed(&bridge, fixture, (const int[]){ tcp, local, -1 }, "2", NULL, NULL);
        assert_answers(early);
        assert_answers(bridge_connect(port));
        bridge_await_log(&bridge, "ready");
        bridge_stop(&bridge);
        close(tcp);
        close(local);
        free(path);
}

static void refuses_passed_descriptors_that_it_cannot_serve(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = { 0 };
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        start_with_passed(&bridge, fixture, (const int[]){ pair[0], -1 }, "1", NULL, NULL);
        assert_int_equal(bridge_await_exit(&bridge), 1);
        assert_true(bridge_logged(&bridge, "descriptor 3 is no TCP or Unix stream socket"));
        start_with_passed(&bridge, fixture, (const int[]){ pair[0], -1 }, "9", NULL, NULL);
        assert_int_equal(bridge_await_exit(&bridge), 1);
        assert_true(bridge_logged(&bridge, "passes 9 sockets; samovar-http takes 8 at most"));
        close(pair[0]);
        close(pair[1]);
}

/* A socket of a network namespace that nothing else is in; -1: none can be made here. */
static int listen_in_another_network(void)
{
        const struct ifreq up = { .ifr_name = "lo", .ifr_flags = IFF_UP };
        int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd = -1, control;
        uint16_t port;

        assert_true(here >= 0);
        if (!unshare(CLONE_NEWNET)) {
                control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
                assert_int_equal(ioctl(control, SIOCSIFFLAGS, &up), 0);
                close(control);
                fd = listen_tcp(&port);
                assert_int_equal(setns(here, CLONE_NEWNET), 0);
        }
        close(here);
        return fd;
}

/* As with PrivateNetwork=: the program is in another network than its socket. */
static void a_passed_socket_of_another_network_needs_keys_or_any_local_user(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = { 0 };
        char *keys = strdup(path_in(fixture, "keys"));
        int fd = listen_in_another_network();

        if (fd < 0)
                skip_because("no network namespace can be made here");
        start_with_passed(&bridge, fixture, (const int[]){ fd, -1 }, "1", NULL, NULL);
        assert_int_equal(bridge_await_exit(&bridge), 1);
        assert_true(bridge_logged(&bridge, "is of another network namespace"));
        assert_true(bridge_logged(&bridge, "with the setting keys, or let all users of the "
                                           "machine in with any_local_user"));
        write_file(keys, ALPHA " alice\n", 0600);
        start_with_passed(&bridge, fixture, (const int[]){ fd, -1 }, "1", "--keys", keys);
        bridge_await_log(&bridge, "ready");
        bridge_stop(&bridge);
        start_with_passed(&bridge, fixture, (const int[]){ fd, -1 }, "1", "--any-local-user", NULL);
        bridge_await_log(&bridge, "ready");
        bridge_stop(&bridge);
        close(fd);
        free(keys);
}

/* ---- starts that fail ---- */

#define REFUSES_TO_START(fixture, words, ...)                                                      \
        do {                                                                                       \
                struct bridge_fixture refused;                                                     \
                                                                                                   \
                bridge_spawn(&refused, fixture,                                                    \
                             (const char *const[]){ "--config", "none", __VA_ARGS__, NULL },       \
                             NULL);                                                                \
                assert_int_equal(bridge_await_exit(&refused), 1);                                  \
                if (!bridge_logged(&refused, words))                                               \
                        fail_msg("it does not say '%s': %s", words, file_text(refused.log));       \
        } while (0)

static void a_start_that_cannot_serve_says_why(void **state)
{
        struct daemon_fixture *fixture = *state;
        char address[32], *keys = strdup(path_in(fixture, "keys"));
        uint16_t port;
        int taken = listen_tcp(&port);

        REFUSES_TO_START(fixture, "samovar-http: there is nothing to listen at: listen is none",
                         "--listen", "none");
        REFUSES_TO_START(fixture, "is no loopback address, and there is no key file", "--listen",
                         "0.0.0.0:0");
        REFUSES_TO_START(fixture, "'localhost:80' is no address to listen at", "--listen",
                         "localhost:80");
        snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port);
        REFUSES_TO_START(fixture, "Address already in use", "--listen", address);
        REFUSES_TO_START(fixture, "No such file or directory", "--keys", "/no/such/file");
        write_file(keys, ALPHA " alice\n", 0644);
        REFUSES_TO_START(fixture, "keys", "--keys", keys);
        REFUSES_TO_START(fixture, "there is no setting --keyes; is --keys meant?", "--keyes", keys);
        close(taken);
        free(keys);
}

static void an_ipv6_address_that_the_machine_lacks_is_left_out(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran = RUN(
                fixture, NULL, "/bin/sh", "-c",
                "exec unshare --net sh -c 'ip link set lo up &&"
                " echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 && echo begun &&"
                " { timeout 20 \"$SAMOVAR_HTTP\" --config none --listen \"127.0.0.1:0,[::1]:0\" &"
                " sleep 1; kill $!; wait $!; echo status=$?; }' 2>&1");

        if (!strstr(ran.out, "begun")) {
                run_result_free(&ran);
                skip_because("no network namespace without IPv6 can be made here");
        }
        assert_non_null(strstr(ran.out, "listening address=127.0.0.1:"));
        assert_non_null(strstr(ran.out, "address_is_absent"));
        run_result_free(&ran);
}

/* ---- keys and users ---- */

static void bearer(char to[128], const char *key)
{
        snprintf(to, 128, "Authorization: Bearer %s\r\n", key);
}

static unsigned status_with(const struct bridge_fixture *bridge, const char *key)
{
        char header[128], *answer;
        int fd = bridge_connect(bridge->port);
        unsigned status;

        bearer(header, key);
        assert_true(fd >= 0);
        http_send(fd, "GET /v1/models", header, NULL);
        answer = http_receive(fd);
        status = http_status(answer);
        free(answer);
        return status;
}

static void sighup_reads_the_keys_and_the_settings_again(void **state)
{
        struct daemon_fixture *fixture = *state;
        char *keys = strdup(path_in(fixture, "keys")), *conf = strdup(path_in(fixture, "conf"));
        struct bridge_fixture bridge = { 0 };

        START_DAEMON(fixture, "--threads", "1", "--gateway", "0");
        write_file(keys, ALPHA " alice\n", 0600);
        write_file(conf, "log_level = info\n", 0600);
        bridge_spawn(&bridge, fixture,
                     (const char *const[]){ "--config", conf, "--listen", "127.0.0.1:0", "--socket",
                                            fixture->socket, "--keys", keys, NULL },
                     NULL);
        bridge_await_log(&bridge, "ready");
        {
                char *log = file_text(bridge.log);

                bridge.port = (uint16_t)atoi(strstr(log, "=127.0.0.1:") + 11);
                free(log);
        }
        bridge_await_daemon(&bridge);
        assert_int_equal(status_with(&bridge, ALPHA), 200);
        assert_int_equal(status_with(&bridge, BETA), 401);

        write_file(keys, BETA " bob\n", 0600);
        write_file(conf, "log_level = debug\nconnections = 7\n", 0600);
        kill(bridge.pid, SIGHUP);
        bridge_await_log(&bridge, "reloaded_keys file=");
        assert_true(bridge_logged(&bridge, "reload_needs_restart settings=connections"));
        assert_int_equal(status_with(&bridge, ALPHA), 401);
        assert_int_equal(status_with(&bridge, BETA), 200);

        /* With a fault, what was there stays. */
        write_file(keys, "short bob\n", 0600);
        write_file(conf, "log_level = loud\n", 0600);
        kill(bridge.pid, SIGHUP);
        bridge_await_log(&bridge, "reload_keys_refused why=");
        assert_true(bridge_logged(&bridge, "reload_refused why="));
        assert_int_equal(status_with(&bridge, BETA), 200);
        bridge_stop(&bridge);
        fixture_stop(fixture);
        free(keys);
        free(conf);
}

/* Asks as user 4711, at the port, or at the socket if there is a path. */
static unsigned status_of_other_user(const struct bridge_fixture *bridge, const char *path)
{
        int pair[2], fd;
        unsigned status;
        char *answer;
        pid_t pid;

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        pid = fork();
        if (!pid) {
                if (setgroups(0, NULL) || setresgid(4711, 4711, 4711) ||
                    setresuid(4711, 4711, 4711))
                        _exit(77);
                fd = path ? bridge_connect_unix(path) : bridge_connect(bridge->port);
                if (fd < 0)
                        _exit(1);
                http_send(fd, "GET /v1/models", "", NULL);
                answer = http_receive(fd);
                status = http_status(answer);
                _exit(write(pair[1], &status, sizeof(status)) != sizeof(status));
        }
        close(pair[1]);
        if (read(pair[0], &status, sizeof(status)) != sizeof(status))
                status = 0;
        close(pair[0]);
        if (await_process(pid) == 77)
                skip_because("only root can become another user");
        return status;
}

static void other_users_need_a_setting_or_a_key(void **state)
{
        struct daemon_fixture *fixture = *state;
        char *path = strdup(path_in(fixture, "http"));
        struct bridge_fixture bridge;

        if (geteuid())
                skip_because("only root can become another user");
        assert_int_equal(chmod(fixture->directory, 0755), 0);
        START_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, "--listen-unix", path, "--listen-unix-mode", "0666");
        bridge_await_daemon(&bridge);
        assert_int_equal(status_of_other_user(&bridge, NULL), 403);
        assert_int_equal(status_of_other_user(&bridge, path), 403);
        bridge_stop(&bridge);

        START_BRIDGE(&bridge, fixture, "--any-local-user", "--listen-unix", path,
                     "--listen-unix-mode", "0666", "--unix-peers", "all");
        bridge_await_daemon(&bridge);
        assert_int_equal(status_of_other_user(&bridge, NULL), 200);
        assert_int_equal(status_of_other_user(&bridge, path), 200);
        bridge_stop(&bridge);
        fixture_stop(fixture);
        free(path);
}

/* ---- the end ---- */

static int begin_stream(const struct bridge_fixture *bridge)
{
        int fd = bridge_connect(bridge->port);
        char *begun;

        assert_true(fd >= 0);
        http_send(fd, "POST /v1/completions", "", ENDLESS_BODY);
        begun = http_await(fd, "\"text\"");
        assert_non_null(begun);
        assert_int_equal(http_status(begun), 200);
        free(begun);
        return fd;
}

/* The daemon is stopped meanwhile, so the answer cannot come before the signal does. */
static void a_running_answer_may_end_after_sigterm(void **state)
{
        static const char head[] =
                "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                "Content-Length: 50\r\nContent-Type: application/json\r\n\r\n";
        static const char body[] = "{\"prompt\":\"Once\",\"max_tokens\":8,\"ignore_eos\":true}";
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *answer;
        int fd;

        START_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, "--drain-timeout-ms", "1000000");
        bridge_await_daemon(&bridge);
        kill(fixture->pid, SIGSTOP);
        fd = bridge_connect(bridge.port);
        assert_true(fd >= 0);
        assert_int_equal(send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL), sizeof(head) - 1);
        answer = http_await(fd, "100 Continue"); /* from now on the request counts */
        assert_non_null(answer);
        free(answer);
        assert_int_equal(send(fd, body, sizeof(body) - 1, MSG_NOSIGNAL), sizeof(body) - 1);
        kill(bridge.pid, SIGTERM);
        bridge_await_log(&bridge, "stopping requests=");
        assert_int_equal(bridge_connect(bridge.port), -1);
        kill(fixture->pid, SIGCONT);
        answer = http_receive(fd);
        assert_non_null(strstr(answer, "HTTP/1.1 200"));
        assert_non_null(strstr(answer, "\"finish_reason\":\"length\""));
        free(answer);
        assert_int_equal(bridge_await_exit(&bridge), 0);
        fixture_stop(fixture);
}

static void a_second_signal_ends_streams_with_an_error(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *rest;
        int fd;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, "--drain-timeout-ms", "1000000");
        bridge_await_daemon(&bridge);
        fd = begin_stream(&bridge);
        kill(bridge.pid, SIGTERM);
        bridge_await_log(&bridge, "stopping requests=1");
        kill(bridge.pid, SIGTERM);
        rest = http_receive(fd);
        assert_non_null(strstr(rest, "samovar-http stops"));
        free(rest);
        assert_int_equal(bridge_await_exit(&bridge), 0);
        fixture_stop(fixture);
}

static void streams_that_outlive_the_draining_end_with_an_error(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *rest;
        int fd;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, "--drain-timeout-ms", "50");
        bridge_await_daemon(&bridge);
        fd = begin_stream(&bridge);
        kill(bridge.pid, SIGTERM);
        rest = http_receive(fd);
        assert_non_null(strstr(rest, "samovar-http stops"));
        free(rest);
        assert_int_equal(bridge_await_exit(&bridge), 0);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_service_manager_hears_of_every_state),
                DAEMON_TEST(the_watchdog_is_fed_while_the_loop_runs),
                DAEMON_TEST(takes_the_sockets_of_the_service_manager_in_any_order),
                DAEMON_TEST(refuses_passed_descriptors_that_it_cannot_serve),
                DAEMON_TEST(a_passed_socket_of_another_network_needs_keys_or_any_local_user),
                DAEMON_TEST(a_start_that_cannot_serve_says_why),
                DAEMON_TEST(an_ipv6_address_that_the_machine_lacks_is_left_out),
                DAEMON_TEST(sighup_reads_the_keys_and_the_settings_again),
                DAEMON_TEST(other_users_need_a_setting_or_a_key),
                DAEMON_TEST(a_running_answer_may_end_after_sigterm),
                DAEMON_TEST(a_second_signal_ends_streams_with_an_error),
                DAEMON_TEST(streams_that_outlive_the_draining_end_with_an_error),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR_HTTP", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
