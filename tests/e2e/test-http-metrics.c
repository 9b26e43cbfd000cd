/* /metrics of samovar-http: each number is that of what was done before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/chat-model.h"

#define ENDLESS_BODY                                                                               \
        "{\"prompt\":\"Once\",\"max_tokens\":1000000,\"ignore_eos\":true,\"stream\":true}"
#define LONG "the beginning of a prompt, which is long enough for some blocks of the cache "

/* The number of a metric, with its labels; -1: there is none. */
static double metric(const struct bridge_fixture *bridge, const char *name)
{
        char *text = http_ask(bridge, "GET /metrics", "", NULL, 200), line[128], *at;
        double value = -1;

        snprintf(line, sizeof(line), "\nsamovar_%s ", name);
        at = strstr(text, line);
        if (at)
                value = strtod(at + strlen(line), NULL);
        free(text);
        return value;
}

static void assert_metric(const struct bridge_fixture *bridge, const char *name, double expected)
{
        double value = metric(bridge, name);

        if (value < expected || value > expected)
                fail_msg("%s is %g instead of %g", name, value, expected);
}

static void await_metric(const struct bridge_fixture *bridge, const char *name, double expected)
{
        for (int left = TIMEOUT_MS / 50; left; left--) {
                double value = metric(bridge, name);

                if (value >= expected && value <= expected)
                        return;
                sleep_ms(50);
        }
        assert_metric(bridge, name, expected);
}

static void post(const struct bridge_fixture *bridge, const char *path, const char *body)
{
        char what[64];

        snprintf(what, sizeof(what), "POST %s", path);
        free(http_ask(bridge, what, "", body, 200));
}

/* ---- what samovar-http counts ---- */

/* One of the connections is that of the scrape. */
static void connections_and_refusals_are_counted(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        double before;
        int fd;

        START_QUICK_DAEMON(fixture, NULL);
        bridge = bridge_beside(fixture);
        await_metric(&bridge, "http_connections", 1);
        before = metric(&bridge, "http_connections_total");
        fd = bridge_connect(bridge.port);
        assert_true(fd >= 0);
        await_metric(&bridge, "http_connections", 2);
        close(fd);
        await_metric(&bridge, "http_connections", 1);
        assert_true(metric(&bridge, "http_connections_total") >= before + 4);
        assert_metric(&bridge, "http_refusals_total{reason=\"denied_origin\"}", 0);
        free(http_ask(&bridge, "GET /v1/models", "origin: http://evil.example\r\n", NULL, 403));
        assert_metric(&bridge, "http_refusals_total{reason=\"denied_origin\"}", 1);
        assert_metric(&bridge, "http_body_bytes", 0);
        assert_true(metric(&bridge, "http_sent_bytes_total") > 1000);
        bridge_stop_both(&bridge, fixture);
}

/* The head is good; the size of the chunk behind it is none. */
static void send_bad_body(const struct bridge_fixture *bridge)
{
        static const char request[] = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\n"
                                      "content-type: application/json\r\n"
                                      "transfer-encoding: chunked\r\n\r\nzz\r\n";
        int fd = bridge_connect(bridge->port);
        char *answer;

        assert_true(fd >= 0);
        assert_int_equal(send(fd, request, sizeof(request) - 1, 0), sizeof(request) - 1);
        answer = http_receive(fd);
        assert_int_equal(http_status(answer), 400);
        free(answer);
}

/* A refused body is not a client that left. */
static void clients_that_leave_are_counted(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *begun;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        bridge = bridge_beside(fixture);
        for (int i = 1; i <= 3; i++) {
                int fd = bridge_connect(bridge.port);

                http_send(fd, "POST /v1/completions", "", ENDLESS_BODY);
                begun = http_await(fd, "\"text\"");
                assert_non_null(begun);
                free(begun);
                assert_metric(&bridge, "http_clients_left_total", i - 1);
                close(fd);
                await_metric(&bridge, "http_clients_left_total", i);
        }
        send_bad_body(&bridge);
        assert_metric(&bridge, "http_clients_left_total", 3);
        assert_metric(&bridge, "http_refusals_total{reason=\"bad_request\"}", 1);
        bridge_stop_both(&bridge, fixture);
}

static void bytes_that_a_client_does_not_read_are_queued(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        double queued = 0;
        int fd;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, "--queue-bytes", "1G");
        bridge_await_daemon(&bridge);
        assert_metric(&bridge, "http_queued_bytes", 0);
        fd = bridge_connect(bridge.port);
        http_send(fd, "POST /v1/completions", "", ENDLESS_BODY);
        for (int left = TIMEOUT_MS / 50; left && queued <= 0; left--) {
                sleep_ms(50);
                queued = metric(&bridge, "http_queued_bytes");
        }
        assert_true(queued > 0);
        close(fd);
        await_metric(&bridge, "http_queued_bytes", 0);
        bridge_stop_both(&bridge, fixture);
}

static void limits_and_times_of_tokens_are_in_histograms(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;

        START_QUICK_DAEMON(fixture, NULL);
        bridge = bridge_beside(fixture);
        post(&bridge, "/v1/completions",
             "{\"prompt\":\"Once\",\"max_tokens\":7,\"ignore_eos\":true,\"n\":2}");
        post(&bridge, "/v1/completions", "{\"prompt\":\"Once\",\"max_tokens\":1}");
        assert_metric(&bridge, "request_params_max_tokens_sum", 8);
        assert_metric(&bridge, "request_params_max_tokens_count", 2);
        assert_metric(&bridge, "request_params_max_tokens_bucket{le=\"5\"}", 1);
        assert_metric(&bridge, "request_time_per_output_token_seconds_count", 2);
        assert_true(metric(&bridge, "request_time_per_output_token_seconds_sum") > 0);
        bridge_stop_both(&bridge, fixture);
}

/* ---- the cache ---- */

#define MISS(reason) "cache_miss_reason_total{reason=\"" reason "\"}"

static void cache_misses_are_counted_by_reason(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;

        START_QUICK_DAEMON(fixture, NULL);
        bridge = bridge_beside(fixture);
        post(&bridge, "/v1/completions", "{\"prompt\":\"" LONG "one\",\"max_tokens\":1}");
        assert_metric(&bridge, MISS("nothing_cached"), 1);
        post(&bridge, "/v1/completions", "{\"prompt\":\"" LONG "one\",\"max_tokens\":1}");
        assert_metric(&bridge, MISS("nothing_cached"), 1);
        assert_metric(&bridge, MISS("prefix_changed"), 0);
        post(&bridge, "/v1/completions", "{\"prompt\":\"" LONG "two\",\"max_tokens\":1}");
        assert_metric(&bridge, MISS("prefix_changed"), 1);
        assert_metric(&bridge, MISS("nothing_cached"), 1);
        bridge_stop_both(&bridge, fixture);
}

#define MESSAGE(system, text)                                                                      \
        "{\"model\":\"chat\",\"max_tokens\":1,\"diagnostics\":{},\"system\":\"" system             \
        "\",\"messages\":[{\"role\":\"user\",\"content\":\"" text "\"}]}"

/* This model puts a token before each prompt, so something of each is cached. */
static void the_part_that_missed_the_cache_is_counted_if_it_is_asked_for(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;

        start_chat_model(fixture, CHATML);
        bridge = bridge_beside(fixture);
        post(&bridge, "/v1/messages", MESSAGE("be " LONG "kind", "one"));
        assert_metric(&bridge, MISS("system_changed"), 1);
        post(&bridge, "/v1/messages", MESSAGE("be " LONG "calm", "one"));
        assert_metric(&bridge, MISS("system_changed"), 2);
        assert_metric(&bridge, MISS("messages_changed"), 0);
        post(&bridge, "/v1/messages", MESSAGE("be " LONG "calm", "two"));
        assert_metric(&bridge, MISS("messages_changed"), 1);
        assert_metric(&bridge, MISS("system_changed"), 2);
        assert_metric(&bridge, MISS("prefix_changed"), 0);
        bridge_stop_both(&bridge, fixture);
}

/* ---- users ---- */

#define KEY "alpha-0123456789abcdef"

static char *start_with_key(struct daemon_fixture *fixture, struct bridge_fixture *bridge,
                            const char *peers)
{
        char *path = NULL, keys[128], uid[16];
        FILE *file;

        snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
        START_QUICK_DAEMON(fixture, "--gateway", uid);
        snprintf(keys, sizeof(keys), "%s/keys", fixture->directory);
        file = fopen(keys, "w");
        assert_non_null(file);
        fputs(KEY " alice\n", file);
        fclose(file);
        assert_int_equal(chmod(keys, 0600), 0);
        assert_true(asprintf(&path, "%s/http", fixture->directory) > 0);
        START_BRIDGE(bridge, fixture, "--keys", keys, "--listen-unix", path, "--unix-peers", peers);
        bridge_await_daemon(bridge);
        return path;
}

static char *ask_by_key(const struct bridge_fixture *bridge, const char *what, const char *body)
{
        return http_ask(bridge, what, "Authorization: Bearer " KEY "\r\n", body, 200);
}

static char *ask_without_key(const char *path)
{
        int fd = bridge_connect_unix(path);
        char *answer;

        assert_true(fd >= 0);
        http_send(fd, "GET /metrics", "", NULL);
        answer = http_receive(fd);
        assert_int_equal(http_status(answer), 200);
        return answer;
}

static void the_own_user_sees_what_each_user_does_and_the_holder_of_a_key_does_not(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *path = start_with_key(fixture, &bridge, "own"), *text, line[128];

        free(ask_by_key(&bridge, "POST /v1/completions",
                        "{\"prompt\":\"Once\",\"max_tokens\":7,\"ignore_eos\":true}"));
        snprintf(line, sizeof(line),
                 "\nsamovar_user_tokens_total{uid=\"%u\",principal=\"alice\"} 7\n",
                 (unsigned)geteuid());
        text = ask_without_key(path);
        assert_non_null(strstr(text, line));
        free(text);
        text = ask_by_key(&bridge, "GET /metrics", NULL);
        assert_non_null(strstr(text, "samovar_generation_tokens_total 7\n"));
        assert_null(strstr(text, "samovar_user_"));
        free(text);
        bridge_stop_both(&bridge, fixture);
        free(path);
}

static void no_user_is_shown_if_strangers_need_no_key(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *path = start_with_key(fixture, &bridge, "all"), *text;

        free(ask_by_key(&bridge, "GET /v1/models", NULL));
        text = ask_without_key(path);
        assert_non_null(strstr(text, "samovar_up 1\n"));
        assert_null(strstr(text, "samovar_user_"));
        free(text);
        bridge_stop_both(&bridge, fixture);
        free(path);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(connections_and_refusals_are_counted),
                DAEMON_TEST(clients_that_leave_are_counted),
                DAEMON_TEST(bytes_that_a_client_does_not_read_are_queued),
                DAEMON_TEST(limits_and_times_of_tokens_are_in_histograms),
                DAEMON_TEST(cache_misses_are_counted_by_reason),
                DAEMON_TEST(the_part_that_missed_the_cache_is_counted_if_it_is_asked_for),
                DAEMON_TEST(the_own_user_sees_what_each_user_does_and_the_holder_of_a_key_does_not),
                DAEMON_TEST(no_user_is_shown_if_strangers_need_no_key),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR_HTTP", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
