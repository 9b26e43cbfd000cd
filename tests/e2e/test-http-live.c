/* What samovar-http shows of the daemon's work: /samovar/status, /samovar/work, /samovar/pool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/chat-model.h"

#define ENDLESS_BODY                                                                               \
        "{\"prompt\":\"Once\",\"max_tokens\":1000000,\"ignore_eos\":true,\"stream\":true,"         \
        "\"stream_keep_ms\":600000}"
#define LONG "the beginning of a prompt, which is long enough for some blocks of the cache "

/* The text behind `key` up to the next quote; the caller frees it. */
static char *text_after(const char *answer, const char *key)
{
        const char *at = strstr(answer, key);

        assert_non_null(at);
        at += strlen(key);
        return strndup(at, strcspn(at, "\"\r\n"));
}

static bool has(const char *answer, const char *words)
{
        return strstr(answer, words) != NULL;
}

/* Asks until the answer has these words, and returns it. */
static char *await_answer(const struct bridge_fixture *bridge, const char *what, const char *words)
{
        char *answer = http_ask(bridge, what, "", NULL, 200);

        for (int left = TIMEOUT_MS / 20; left && !has(answer, words); left--) {
                free(answer);
                sleep_ms(20);
                answer = http_ask(bridge, what, "", NULL, 200);
        }
        if (!has(answer, words))
                fail_msg("%s does not have %s: %s", what, words, answer);
        return answer;
}

static void shows_the_status_and_the_pool_of_the_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *answer;

        START_QUICK_DAEMON(fixture, NULL);
        bridge = bridge_beside(fixture);
        answer = http_ask(&bridge, "GET /samovar/status", "", NULL, 200);
        assert_true(has(answer, "\"blocks\":{\"total\":") && has(answer, "\"model\":{"));
        free(answer);
        free(http_ask(&bridge, "POST /v1/completions", "",
                      "{\"prompt\":\"" LONG "\",\"max_tokens\":1}", 200));
        answer = await_answer(&bridge, "GET /samovar/pool", ",1,0,0]"); /* cached, of user 0 */
        assert_true(has(answer, "\"all_users\":true") && has(answer, "\"positions\":16"));
        free(answer);
        free(http_ask(&bridge, "GET /samovar/pool?from=x", "", NULL, 400));
        free(http_ask(&bridge, "GET /samovar/pool?from=99999999999", "", NULL, 400));
        bridge_stop_both(&bridge, fixture);
}

/* A page finds the row of its own stream by stream_id, and ends it by the number. */
static void shows_and_ends_streams(void **state)
{
        struct daemon_fixture *fixture = *state;
        char *head, *stream_id, *row, *number, what[96];
        struct bridge_fixture bridge;
        int fd;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        bridge = bridge_beside(fixture);
        fd = bridge_connect(bridge.port);
        http_send(fd, "POST /v1/completions", "", ENDLESS_BODY);
        head = http_await(fd, "data: {");
        assert_non_null(head);
        assert_true(has(head, "x-samovar-queue-position: 0\r\n"));
        stream_id = text_after(head, "x-samovar-stream-id: ");

        row = await_answer(&bridge, "GET /samovar/work", "\"state\":\"running\"");
        snprintf(what, sizeof(what), "\"stream_id\":\"%s\"", stream_id);
        assert_true(has(row, what) && has(row, "\"kind\":\"resumable\"") &&
                    has(row, "\"prompt\":") && has(row, "\"prompt_done\":"));
        number = text_after(row, "\"number\":\"");
        snprintf(what, sizeof(what), "DELETE /samovar/work/%s", number);
        free(http_ask(&bridge, what, "", NULL, 200));
        free(http_ask(&bridge, "DELETE /samovar/work/1", "", NULL, 404));
        free(http_ask(&bridge, "DELETE /samovar/work/one", "", NULL, 400));
        free(http_receive(fd)); /* it ends */
        snprintf(what, sizeof(what), "DELETE /v1/streams/%s", stream_id);
        free(http_ask(&bridge, what, "", NULL, 200));
        free(head);
        free(stream_id);
        free(row);
        free(number);
        bridge_stop_both(&bridge, fixture);
}

static void tells_why_a_prompt_was_not_in_the_cache(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        char *answer;

        start_chat_model(fixture, "{{ messages[0]['content'] }}");
        bridge = bridge_beside(fixture);
        answer = http_ask(&bridge, "POST /v1/chat/completions", "",
                          "{\"messages\":[{\"role\":\"user\",\"content\":\"" LONG "one\"}],"
                          "\"max_tokens\":1}",
                          200);
        assert_true(has(answer, "\"cache_miss\":\"nothing_cached\""));
        free(answer);
        answer = http_ask(&bridge, "POST /v1/chat/completions", "",
                          "{\"messages\":[{\"role\":\"user\",\"content\":\"" LONG "two\"}],"
                          "\"max_tokens\":1}",
                          200);
        assert_true(has(answer, "\"cache_miss\":\"prefix_changed\""));
        free(answer);
        bridge_stop_both(&bridge, fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(shows_the_status_and_the_pool_of_the_daemon),
                DAEMON_TEST(shows_and_ends_streams),
                DAEMON_TEST(tells_why_a_prompt_was_not_in_the_cache),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR_HTTP", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
