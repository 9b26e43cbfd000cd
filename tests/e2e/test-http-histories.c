/*
 * Stored responses on handles of the daemon.  A client that leaves, whatever its request waits for,
 * leaves no handle; and no request fails because there are none.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/chat-model.h"

#define FOREVER "\"ignore_eos\":true,\"max_output_tokens\":1000000"
#define SHORT   "\"max_output_tokens\":2"

struct scene {
        struct daemon_fixture *fixture;
        struct bridge_fixture bridge;
};

static void set_scene(struct scene *scene, void **state)
{
        scene->fixture = *state;
        start_chat_model(scene->fixture, CHATML);
        START_BRIDGE(&scene->bridge, scene->fixture, NULL);
        bridge_await_daemon(&scene->bridge);
}

static void clear_scene(struct scene *scene)
{
        fixture_await_status(scene->fixture, "requests.open", 0);
        bridge_stop(&scene->bridge);
        fixture_await_status(scene->fixture, "handles.open", 0);
        fixture_stop(scene->fixture);
}

static void body_of(char to[512], const char *previous, const char *more)
{
        snprintf(to, 512, "{\"input\":\"Once\",\"temperature\":0,%s%s%s%s}",
                 previous ? "\"previous_response_id\":\"" : "", previous ? previous : "",
                 previous ? "\"," : "", more);
}

/* Returns the id of the response; the caller frees it. */
static char *respond(const struct scene *scene, const char *previous, const char *more)
{
        char body[512], *answer, *id;

        body_of(body, previous, more);
        answer = http_ask(&scene->bridge, "POST /v1/responses", "", body, 200);
        id = strstr(answer, "\"resp_");
        assert_non_null(id);
        id = strndup(id + 1, strcspn(id + 1, "\""));
        free(answer);
        return id;
}

/* How many have begun in this way. */
static unsigned begun(const struct scene *scene, const char *way)
{
        char *metrics = http_ask(&scene->bridge, "GET /metrics", "", NULL, 200), words[64], *at;
        unsigned count;

        snprintf(words, sizeof(words), "histories_total{history=\"%s\"} ", way);
        at = strstr(metrics, words);
        assert_non_null(at);
        count = (unsigned)strtoul(at + strlen(words), NULL, 10);
        free(metrics);
        return count;
}

static void await_handles(const struct scene *scene, uint64_t count)
{
        fixture_await_status(scene->fixture, "handles.open", count);
}

static void each_response_continues_the_handle_of_the_one_before(void **state)
{
        struct scene scene;
        char *ids[4], path[96];

        set_scene(&scene, state);
        ids[0] = respond(&scene, NULL, SHORT);
        for (unsigned i = 1; i < 4; i++)
                ids[i] = respond(&scene, ids[i - 1], SHORT);
        free(respond(&scene, ids[0], SHORT)); /* and once more, from the first */
        free(respond(&scene, NULL, SHORT ",\"store\":false"));
        assert_int_equal(begun(&scene, "continued"), 4);
        assert_int_equal(begun(&scene, "rendered"), 1);
        await_handles(&scene, 5);
        for (unsigned i = 0; i < 4; i++) {
                snprintf(path, sizeof(path), "DELETE /v1/responses/%s", ids[i]);
                free(http_ask(&scene.bridge, path, "", NULL, 200));
                await_handles(&scene, 4 - i);
                free(ids[i]);
        }
        clear_scene(&scene);
}

/* The daemon is stopped, so what the client has left is an open, or a fork. */
static void leave_a_stopped_daemon(const struct scene *scene, const char *previous)
{
        char body[512];
        int fd;

        body_of(body, previous, FOREVER);
        kill(scene->fixture->pid, SIGSTOP);
        fd = bridge_connect(scene->bridge.port);
        assert_true(fd >= 0);
        http_send(fd, "POST /v1/responses", "", body);
        free(http_ask(&scene->bridge, "GET /", "", NULL, 200)); /* it was read before this */
        close(fd);
        free(http_ask(&scene->bridge, "GET /", "", NULL, 200));
        kill(scene->fixture->pid, SIGCONT);
}

static void one_that_leaves_before_the_handle_is_made_leaves_none(void **state)
{
        struct scene scene;
        char *first, *second;

        set_scene(&scene, state);
        leave_a_stopped_daemon(&scene, NULL);
        first = respond(&scene, NULL, SHORT); /* behind what was left, on the same connection */
        await_handles(&scene, 1);
        leave_a_stopped_daemon(&scene, first); /* it asks how the template shows a turn */
        second = respond(&scene, first, SHORT);
        await_handles(&scene, 2);
        leave_a_stopped_daemon(&scene, second); /* it forks */
        free(respond(&scene, second, SHORT));
        await_handles(&scene, 3);
        assert_int_equal(begun(&scene, "continued"), 2);
        assert_int_equal(begun(&scene, "rendered"), 1);
        free(first);
        free(second);
        clear_scene(&scene);
}

static void one_that_leaves_its_answer_closes_the_handle(void **state)
{
        struct scene scene;
        char body[512], *first, *piece;
        int fd;

        set_scene(&scene, state);
        first = respond(&scene, NULL, SHORT);
        for (unsigned i = 0; i < 2; i++) {
                body_of(body, i ? first : NULL, FOREVER ",\"stream\":true");
                fd = bridge_connect(scene.bridge.port);
                assert_true(fd >= 0);
                http_send(fd, "POST /v1/responses", "", body);
                piece = http_await(fd, "output_text.delta");
                assert_non_null(piece);
                free(piece);
                assert_int_equal(fixture_status(scene.fixture, "handles.open"), 2);
                close(fd);
                await_handles(&scene, 1);
        }
        free(first);
        clear_scene(&scene);
}

/* The daemon closes a handle that the bridge still counts on. */
static void one_whose_handle_is_closed_is_rendered_again(void **state)
{
        struct scene scene;
        char *id, *next, number[32];
        struct run_result listed;
        const char *at;

        set_scene(&scene, state);
        id = respond(&scene, NULL, SHORT);
        listed = RUN(scene.fixture, NULL, env_path("SAMOVAR"), "ps", "--json");
        assert_int_equal(listed.status, 0);
        at = strstr(listed.out, "\"number\":");
        assert_non_null(at);
        at += strcspn(at, "0123456789");
        snprintf(number, sizeof(number), "%.*s", (int)strspn(at, "0123456789"), at);
        run_result_free(&listed);
        listed = RUN(scene.fixture, NULL, env_path("SAMOVAR"), "cancel", number);
        assert_int_equal(listed.status, 0);
        run_result_free(&listed);
        await_handles(&scene, 0);
        next = respond(&scene, id, SHORT);
        assert_int_equal(begun(&scene, "rendered"), 2);
        free(respond(&scene, next, SHORT));
        assert_int_equal(begun(&scene, "continued"), 1);
        free(next);
        free(id);
        clear_scene(&scene);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(each_response_continues_the_handle_of_the_one_before),
                DAEMON_TEST(one_that_leaves_before_the_handle_is_made_leaves_none),
                DAEMON_TEST(one_that_leaves_its_answer_closes_the_handle),
                DAEMON_TEST(one_whose_handle_is_closed_is_rendered_again),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "SAMOVAR_HTTP",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
