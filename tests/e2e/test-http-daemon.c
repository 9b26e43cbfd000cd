/*
 * samovar-http when the daemon is away or asleep, when it has nothing left itself, and when one
 * key asks for more than its share.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/raw-client.h"
#include "tests/skip.h"

#define COMPLETIONS    "POST /v1/completions"
#define ENDLESS_FIELDS "\"max_tokens\":1000000,\"ignore_eos\":true"
#define STREAMED       "{\"prompt\":\"Once\"," ENDLESS_FIELDS ",\"stream\":true}"
#define WHOLE          "{\"prompt\":\"Once\"," ENDLESS_FIELDS "}"
#define FINITE         "{\"prompt\":\"Twice\",\"max_tokens\":8,\"ignore_eos\":true}"
#define ALPHA          "alpha-0123456789abcdef"
#define BETA           "beta-0123456789abcdef"
#define AS_ALICE       "Authorization: Bearer " ALPHA "\r\n"
#define AS_BOB         "Authorization: Bearer " BETA "\r\n"
#define CHUNKS_END     "\r\n0\r\n\r\n"

static int begin(const struct bridge_fixture *bridge, const char *more, const char *body)
{
        int fd = bridge_connect(bridge->port);

        assert_true(fd >= 0);
        http_send(fd, COMPLETIONS, more, body);
        return fd;
}

static void await_text(int fd)
{
        char *begun = http_await(fd, "\"text\"");

        assert_non_null(begun);
        assert_int_equal(http_status(begun), 200);
        free(begun);
}

static void ask(const struct bridge_fixture *bridge, const char *what, const char *more,
                const char *body, unsigned status)
{
        free(http_ask(bridge, what, more, body, status));
}

/* ---- the daemon ---- */

static void kill_daemon(struct daemon_fixture *fixture)
{
        kill(fixture->pid, SIGKILL);
        assert_int_equal(fixture_await_exit(fixture), -SIGKILL);
}

/* The bridge is connected before the daemon could come to rest. */
static void restart_daemon(struct daemon_fixture *fixture)
{
        const char *const flags[] = { "--config",   "none",
                                      "--model",    make_quick_model(fixture, CONTEXT_LONG),
                                      "--socket",   fixture->socket,
                                      "--kv-bytes", "512M",
                                      "--threads",  "1",
                                      NULL };

        fixture->pid = fixture_spawn(fixture, flags, -1);
}

static void lose_answers(struct daemon_fixture *fixture, const struct bridge_fixture *bridge)
{
        int streamed = begin(bridge, "", STREAMED), whole;
        char *answer;

        await_text(streamed);
        whole = begin(bridge, "", WHOLE);
        fixture_await_status(fixture, "requests.running", 2);
        kill_daemon(fixture);
        answer = http_receive(streamed);
        assert_non_null(strstr(answer, "data: {\"error\":"));
        assert_null(strstr(answer, "[DONE]"));
        assert_non_null(strstr(answer, CHUNKS_END));
        free(answer);
        answer = http_receive(whole);
        assert_true(http_status(answer) >= 500);
        free(answer);
        answer = http_ask(bridge, COMPLETIONS, "", FINITE, 503);
        assert_non_null(strstr(answer, "retry-after"));
        free(answer);
}

static void a_killed_daemon_ends_answers_with_an_error_and_is_found_again(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, "--queue-bytes", "1G");
        bridge_await_daemon(&bridge);
        for (int i = 0; i < 2; i++) {
                lose_answers(fixture, &bridge);
                restart_daemon(fixture);
                bridge_await_daemon(&bridge);
                ask(&bridge, COMPLETIONS, "", FINITE, 200);
        }
        bridge_stop(&bridge);
        kill_daemon(fixture);
}

static void a_stopped_daemon_delays_only_what_needs_it(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *answer, byte;
        int fds[3];

        START_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        kill(fixture->pid, SIGSTOP);
        for (int i = 0; i < 3; i++)
                fds[i] = begin(&bridge, "", FINITE);
        for (int i = 0; i < 3; i++) {
                ask(&bridge, "GET /health", "", NULL, 200);
                ask(&bridge, "GET /metrics", "", NULL, 200);
                ask(&bridge, COMPLETIONS, "", "{", 400);
                assert_int_equal(recv(fds[i], &byte, 1, MSG_DONTWAIT), -1);
        }
        kill(fixture->pid, SIGCONT);
        for (int i = 0; i < 3; i++) {
                answer = http_receive(fds[i]);
                assert_int_equal(http_status(answer), 200);
                free(answer);
        }
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

/* ---- what it has itself ---- */

/* How many it has; *ret_free: the lowest number that is none of them. */
static unsigned descriptors(const struct bridge_fixture *bridge, unsigned *ret_free)
{
        bool taken[65536] = { false };
        const struct dirent *entry;
        unsigned count = 0;
        char path[64];
        DIR *directory;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)bridge->pid);
        directory = opendir(path);
        assert_non_null(directory);
        while ((entry = readdir(directory)))
                if (*entry->d_name != '.') {
                        taken[(unsigned)atoi(entry->d_name) % 65536] = true;
                        count++;
                }
        closedir(directory);
        for (*ret_free = 0; taken[*ret_free];)
                ++*ret_free;
        return count;
}

/* Waits until there are not more. */
static void await_descriptors(const struct bridge_fixture *bridge, unsigned most)
{
        uint64_t end = now_ms() + TIMEOUT_MS;
        unsigned first;

        while (descriptors(bridge, &first) > most) {
                if (now_ms() > end)
                        fail_msg("%u descriptors do not become %u", descriptors(bridge, &first),
                                 most);
                sleep_ms(2);
        }
}

/* Pages of memory: all, or those that are there. */
static unsigned long long pages(const struct bridge_fixture *bridge, bool resident)
{
        unsigned long long all, there;
        char path[64], *text;

        snprintf(path, sizeof(path), "/proc/%d/statm", (int)bridge->pid);
        text = file_text(path);
        assert_int_equal(sscanf(text, "%llu %llu", &all, &there), 2);
        free(text);
        return resident ? there : all;
}

static void limit(const struct bridge_fixture *bridge, int what, rlim_t most, struct rlimit *before)
{
        struct rlimit now;

        assert_int_equal(prlimit(bridge->pid, (enum __rlimit_resource)what, NULL, before), 0);
        now = *before;
        now.rlim_cur = most;
        assert_int_equal(prlimit(bridge->pid, (enum __rlimit_resource)what, &now, NULL), 0);
}

static void unlimit(const struct bridge_fixture *bridge, int what, const struct rlimit *before)
{
        assert_int_equal(prlimit(bridge->pid, (enum __rlimit_resource)what, before, NULL), 0);
}

/*
 * True: a client is answered with 503, or its connection just ends.  False: it is served, and keeps
 * its connection.
 */
static bool is_turned_away(const struct bridge_fixture *bridge, int *ret_fd)
{
        static const char get[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        char answer[64] = "";
        int fd = bridge_connect(bridge->port);

        assert_true(fd >= 0);
        (void)!send(fd, get, sizeof(get) - 1, MSG_NOSIGNAL);
        *ret_fd = fd;
        if (recv(fd, answer, sizeof(answer) - 1, 0) > 0 && !strncmp(answer, "HTTP/1.1 200", 12))
                return false;
        close(fd);
        if (*answer)
                assert_memory_equal(answer, "HTTP/1.1 503", 12);
        return true;
}

static void without_descriptors_it_turns_clients_away_until_there_are_some(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        struct rlimit before;
        unsigned first;
        int stream, fds[100];
        char *rest;
        size_t count = 0;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, "--queue-bytes", "1G");
        bridge_await_daemon(&bridge);
        stream = begin(&bridge, "", STREAMED);
        await_text(stream);
        (void)descriptors(&bridge, &first);
        limit(&bridge, RLIMIT_NOFILE, first, &before);
        /* Some numbers may have been about to be free. */
        while (!is_turned_away(&bridge, &fds[count]))
                assert_true(++count < 100);
        for (int i = 0; i < 20; i++)
                assert_true(is_turned_away(&bridge, &fds[count]));
        rest = http_await(stream, "\"text\"");
        assert_non_null(rest); /* it goes on */
        free(rest);
        unlimit(&bridge, RLIMIT_NOFILE, &before);
        ask(&bridge, COMPLETIONS, "", FINITE, 200);
        while (count)
                close(fds[--count]);
        close(stream);
        fixture_await_status(fixture, "requests.open", 0);
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

static void without_memory_it_refuses_and_recovers(void **state)
{
        enum { BODY = 24000000 };
        struct daemon_fixture *fixture = *state;
        char *body = malloc(BODY + 1), *answer;
        struct bridge_fixture bridge;
        struct rlimit before;
        int fd;

        assert_non_null(body);
        memset(body, 'a', BODY);
        memcpy(body, "{\"prompt\":\"", 11);
        memcpy(body + BODY - 2, "\"}", 3);
        START_DAEMON(fixture, "--threads", "1");
        if (fixture->sanitized) {
                fixture_stop(fixture);
                free(body);
                skip_because("a sanitizer takes addresses as it likes");
        }
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        limit(&bridge, RLIMIT_AS, (pages(&bridge, false) + 1024) * (rlim_t)getpagesize(), &before);
        for (int i = 0; i < 3; i++) {
                char head[160];
                int count = snprintf(head, sizeof(head),
                                     COMPLETIONS
                                     " HTTP/1.1\r\nHost: localhost\r\n"
                                     "Content-Type: application/json\r\nConnection: close\r\n"
                                     "Content-Length: %d\r\n\r\n",
                                     (int)BODY);

                fd = bridge_connect(bridge.port);
                assert_true(fd >= 0);
                (void)!send(fd, head, (size_t)count, MSG_NOSIGNAL);
                for (size_t sent = 0; sent < BODY;) {
                        ssize_t n = send(fd, body + sent, BODY - sent, MSG_NOSIGNAL);

                        if (n <= 0)
                                break; /* it reads no more */
                        sent += (size_t)n;
                }
                answer = http_receive(fd);
                assert_int_equal(http_status(answer), 503);
                free(answer);
                ask(&bridge, "GET /health", "", NULL, 200);
        }
        unlimit(&bridge, RLIMIT_AS, &before);
        ask(&bridge, COMPLETIONS, "", FINITE, 200);
        free(body);
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

/* Answers of all kinds over one connection, and clients that leave theirs. */
static void ask_often(const struct bridge_fixture *bridge, int rounds)
{
        static const struct {
                const char *what, *body, *end;
        } asked[] = {
                { "GET /v1/models", "", "\"object\":\"list\"" },
                { COMPLETIONS, FINITE, "\"usage\"" },
                { COMPLETIONS, "{\"prompt\":", "\"error\"" },
                { COMPLETIONS, "{\"prompt\":\"a\",\"max_tokens\":2,\"stream\":true,\"n\":2}",
                  CHUNKS_END },
        };
        int fd = bridge_connect(bridge->port);
        char text[1024];

        assert_true(fd >= 0);
        for (int i = 0; i < rounds; i++) {
                for (size_t k = 0; k < sizeof(asked) / sizeof(*asked); k++) {
                        int count = snprintf(text, sizeof(text),
                                             "%s HTTP/1.1\r\nHost: localhost\r\n"
                                             "Content-Type: application/json\r\n"
                                             "Content-Length: %zu\r\n\r\n%s",
                                             asked[k].what, strlen(asked[k].body), asked[k].body);
                        char *answer;

                        assert_int_equal(send(fd, text, (size_t)count, MSG_NOSIGNAL), count);
                        answer = http_await(fd, asked[k].end);
                        assert_non_null(answer);
                        free(answer);
                }
                close(begin(bridge, "", STREAMED));
        }
        close(fd);
}

static void many_requests_leave_nothing_behind(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        unsigned long long before;
        unsigned idle, first;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        ask_often(&bridge, 1);
        fixture_await_status(fixture, "requests.open", 0);
        idle = descriptors(&bridge, &first); /* or some more, which are about to be closed */
        ask_often(&bridge, 150);
        fixture_await_status(fixture, "requests.open", 0);
        await_descriptors(&bridge, idle);
        before = pages(&bridge, true);
        ask_often(&bridge, 300);
        fixture_await_status(fixture, "requests.open", 0);
        await_descriptors(&bridge, idle);
        /*
         * 1500 requests, so less than a page for each six of them; a sanitizer keeps what is
         * freed.
         */
        if (!fixture->sanitized)
                assert_true(pages(&bridge, true) < before + 256);
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

/* ---- two keys ---- */

static void start_with_keys(struct bridge_fixture *bridge, struct daemon_fixture *fixture)
{
        char path[128];
        FILE *keys;

        snprintf(path, sizeof(path), "%s/keys", fixture->directory);
        keys = fopen(path, "we");
        assert_non_null(keys);
        fchmod(fileno(keys), 0600);
        fputs(ALPHA " alice\n" BETA " bob\n", keys);
        fclose(keys);
        START_BRIDGE(bridge, fixture, "--keys", path, "--queue-bytes", "1G");
        bridge_await_daemon(bridge);
}

static void one_key_takes_no_requests_from_another(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *answer, gateway[16];
        int fds[8];

        snprintf(gateway, sizeof(gateway), "%u", (unsigned)geteuid());
        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--gateway", gateway, "--max-seqs", "2",
                             "--uid-requests", "8", "--promote-ms", "1000");
        start_with_keys(&bridge, fixture);
        for (int i = 0; i < 8; i++)
                fds[i] = begin(&bridge, AS_ALICE, STREAMED);
        fixture_await_status(fixture, "requests.open", 8);
        answer = http_ask(&bridge, COMPLETIONS, AS_ALICE, FINITE, 429);
        assert_non_null(strstr(answer, "retry-after"));
        free(answer);
        /* All of the slots are taken by streams that never end. */
        for (int i = 0; i < 5; i++)
                ask(&bridge, COMPLETIONS, AS_BOB, FINITE, 200);
        for (int i = 0; i < 8; i++)
                close(fds[i]);
        fixture_await_status(fixture, "requests.open", 0);
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

static char *cached_of(const struct bridge_fixture *bridge, const char *key, const char *body)
{
        char *answer = http_ask(bridge, COMPLETIONS, key, body, 200);
        char *at = strstr(answer, "\"cached_tokens\":"), *found;

        assert_non_null(at);
        at += strlen("\"cached_tokens\":");
        found = strndup(at, strspn(at, "0123456789"));
        free(answer);
        return found;
}

static void what_one_key_has_asked_is_not_cached_for_another(void **state)
{
        static const struct {
                const char *key;
                bool cached;
        } asked[] = {
                { AS_ALICE, false }, { AS_ALICE, true }, { AS_BOB, false }, { AS_BOB, true }
        };
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char gateway[16], body[1200];

        snprintf(gateway, sizeof(gateway), "%u", (unsigned)geteuid());
        snprintf(body, sizeof(body), "{\"prompt\":\"%0500d\",\"max_tokens\":1}", 7);
        START_QUICK_DAEMON(fixture, "--threads", "1", "--gateway", gateway);
        start_with_keys(&bridge, fixture);
        for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
                char *cached = cached_of(&bridge, asked[i].key, body);

                assert_int_equal(strcmp(cached, "0") != 0, asked[i].cached);
                free(cached);
        }
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_killed_daemon_ends_answers_with_an_error_and_is_found_again),
                DAEMON_TEST(a_stopped_daemon_delays_only_what_needs_it),
                DAEMON_TEST(without_descriptors_it_turns_clients_away_until_there_are_some),
                DAEMON_TEST(without_memory_it_refuses_and_recovers),
                DAEMON_TEST(many_requests_leave_nothing_behind),
                DAEMON_TEST(one_key_takes_no_requests_from_another),
                DAEMON_TEST(what_one_key_has_asked_is_not_cached_for_another),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR_HTTP", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
