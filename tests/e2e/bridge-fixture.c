#include "tests/e2e/bridge-fixture.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLAGS_MAX 32

/* ---- the program ---- */

static void become(const char *const *argv, const char *log, const int *fds)
{
        int next = 3;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open("/dev/null", O_RDONLY), 0);
        dup2(open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), 1);
        dup2(1, 2);
        /* They come from far above, so no dup2() here takes the place of a later one. */
        for (; fds && *fds >= 0; fds++)
                dup2(*fds, next++);
        execv(argv[0], (char *const *)argv);
        _exit(126);
}

void bridge_spawn(struct bridge_fixture *bridge, const struct daemon_fixture *fixture,
                  const char *const *flags, const int *fds)
{
        const char *argv[FLAGS_MAX] = { env_path("SAMOVAR_HTTP") };
        size_t count = 1;

        snprintf(bridge->log, sizeof(bridge->log), "%s/bridge-log", fixture->directory);
        unlink(bridge->log);
        while (*flags) {
                argv[count++] = *flags++;
                assert(count < FLAGS_MAX);
        }
        bridge->pid = fork();
        if (!bridge->pid)
                become(argv, bridge->log, fds);
        assert(bridge->pid > 0);
}

void bridge_start(struct bridge_fixture *bridge, const struct daemon_fixture *fixture,
                  const char *const *flags)
{
        const char *all[FLAGS_MAX] = { "--config",    "none",     "--listen",
                                       "127.0.0.1:0", "--socket", fixture->socket };
        const char *at;
        size_t count = 6;
        char *log;

        while (*flags) {
                all[count++] = *flags++;
                assert(count < FLAGS_MAX);
        }
        bridge_spawn(bridge, fixture, all, NULL);
        bridge_await_log(bridge, "listening address=127.0.0.1:");
        log = file_text(bridge->log);
        at = strstr(log, "address=127.0.0.1:");
        assert_non_null(at);
        bridge->port = (uint16_t)atoi(at + strlen("address=127.0.0.1:"));
        free(log);
        /* Its signals are handled once it listens at all. */
        bridge_await_log(bridge, "ready");
}

int bridge_await_exit(struct bridge_fixture *bridge)
{
        int status = await_process(bridge->pid);

        bridge->pid = 0;
        return status;
}

void bridge_stop(struct bridge_fixture *bridge)
{
        char *log;
        int status;

        kill(bridge->pid, SIGTERM);
        status = bridge_await_exit(bridge);
        if (status) {
                log = file_text(bridge->log);
                fprintf(stderr, "--- what samovar-http has said:\n%s---\n", log);
                free(log);
        }
        assert_int_equal(status, 0);
}

bool bridge_logged(const struct bridge_fixture *bridge, const char *words)
{
        char *log = file_text(bridge->log);
        bool found = strstr(log, words);

        free(log);
        return found;
}

void bridge_await_log(const struct bridge_fixture *bridge, const char *words)
{
        uint64_t end = now_ms() + TIMEOUT_MS;

        while (!bridge_logged(bridge, words)) {
                if (now_ms() > end || waitpid(bridge->pid, NULL, WNOHANG) == bridge->pid) {
                        char *log = file_text(bridge->log);

                        fail_msg("samovar-http does not say '%s'; it says: %s", words, log);
                }
                sleep_ms(2);
        }
}

void bridge_await_daemon(const struct bridge_fixture *bridge)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        bool ready = false;

        while (!ready) {
                int fd = bridge_connect(bridge->port);
                char *answer;

                assert_true(fd >= 0 && now_ms() < end);
                http_send(fd, "GET /health", "", NULL);
                answer = http_receive(fd);
                ready = http_status(answer) == 200;
                free(answer);
                if (!ready)
                        sleep_ms(10);
        }
}

struct bridge_fixture bridge_beside(const struct daemon_fixture *fixture)
{
        struct bridge_fixture bridge;

        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        return bridge;
}

void bridge_stop_both(struct bridge_fixture *bridge, struct daemon_fixture *fixture)
{
        bridge_stop(bridge);
        fixture_stop(fixture);
}

/* ---- HTTP ---- */

int bridge_connect(uint16_t port)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
                return fd;
        assert_int_equal(errno, ECONNREFUSED);
        close(fd);
        return -1;
}

int bridge_connect_unix(const char *path)
{
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
        assert_true(fd >= 0);
        if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
                return fd;
        close(fd);
        return -1;
}

void http_send(int fd, const char *what, const char *more, const char *body)
{
        char head[1024];
        int count = snprintf(head, sizeof(head),
                             "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                             "Content-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
                             what, body ? strlen(body) : 0, more);

        assert_true(count > 0 && (size_t)count < sizeof(head));
        assert_int_equal(send(fd, head, (size_t)count, MSG_NOSIGNAL), count);
        if (body)
                assert_int_equal(send(fd, body, strlen(body), MSG_NOSIGNAL), strlen(body));
}

/* words NULL: until the end of the connection. */
static char *receive(int fd, const char *words)
{
        struct timeval wait = { .tv_sec = TIMEOUT_MS / 1000 };
        size_t count = 0, size = 4096;
        char *text = calloc(1, size);
        ssize_t n = 1;

        assert_non_null(text);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
        while (n > 0 && !(words && strstr(text, words))) {
                if (size - count < 2048)
                        text = realloc(text, size *= 2);
                assert_non_null(text);
                n = recv(fd, text + count, 1024, 0);
                if (n < 0)
                        fail_msg("receiving: %s; so far: %s", strerror(errno), text);
                count += (size_t)n;
                text[count] = '\0';
        }
        if (n > 0 || !words)
                return text;
        free(text);
        return NULL;
}

char *http_await(int fd, const char *words)
{
        return receive(fd, words);
}

char *http_receive(int fd)
{
        char *text = receive(fd, NULL);

        close(fd);
        return text;
}

unsigned http_status(const char *answer)
{
        unsigned status = 0;

        assert_int_equal(sscanf(answer, "HTTP/1.1 %u", &status), 1);
        return status;
}

char *http_ask(const struct bridge_fixture *bridge, const char *what, const char *more,
               const char *body, unsigned status)
{
        int fd = bridge_connect(bridge->port);
        char *answer;

        assert_true(fd >= 0);
        http_send(fd, what, more, body);
        answer = http_receive(fd);
        if (http_status(answer) != status)
                fail_msg("%s: the status must be %u: %s", what, status, answer);
        return answer;
}
