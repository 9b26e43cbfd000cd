/*
 * Clients of HTTP that leave, or do not read.  Whatever their request waits for, its streams end in
 * the daemon, and no other stream does.
 *
 * Streams that are to be interrupted never end by themselves.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/raw-client.h"

#define ENDLESS_FIELDS "\"max_tokens\":1000000,\"ignore_eos\":true"
#define STREAMED       "{\"prompt\":\"Once\"," ENDLESS_FIELDS ",\"stream\":true}"
#define WHOLE          "{\"prompt\":\"Once\"," ENDLESS_FIELDS "}"
#define FOUR           "{\"prompt\":\"Once\"," ENDLESS_FIELDS ",\"stream\":true,\"n\":4,\"temperature\":1}"
/* Its tokens are long, so that a client that does not read is soon far behind. */
#define TALKATIVE "{\"prompt\":\"Once\"," ENDLESS_FIELDS ",\"stream\":true,\"logprobs\":5}"
/* One that ends, to compare. */
#define FINITE "{\"prompt\":\"Twice\",\"max_tokens\":400,\"ignore_eos\":true,\"temperature\":0}"

/* A daemon, a bridge, and a stream that runs through the whole test. */
struct scene {
        struct daemon_fixture *fixture;
        struct bridge_fixture bridge;
        pid_t witness;
        char *finite; /* what FINITE was answered by an idle daemon */
};

static int begin(const struct scene *scene, const char *body)
{
        int fd = bridge_connect(scene->bridge.port);

        assert_true(fd >= 0);
        http_send(fd, "POST /v1/completions", "", body);
        return fd;
}

static int begin_and_await(const struct scene *scene, const char *body, const char *words)
{
        int fd = begin(scene, body);
        char *begun = http_await(fd, words);

        assert_non_null(begun);
        assert_int_equal(http_status(begun), 200);
        free(begun);
        return fd;
}

/* The choices of a whole answer; the rest has times and names. */
static char *choices_of(const char *answer)
{
        const char *from = strstr(answer, "\"choices\""),
                   *to = from ? strstr(from, "\"usage\"") : 0;

        assert_non_null(to);
        return strndup(from, (size_t)(to - from));
}

static char *ask_finite(const struct scene *scene)
{
        char *answer = http_ask(&scene->bridge, "POST /v1/completions", "", FINITE, 200), *choices;

        choices = choices_of(answer);
        free(answer);
        return choices;
}

/* A process that reads its stream as it comes. */
static pid_t start_witness(const struct scene *scene)
{
        int fd = begin_and_await(scene, STREAMED, "\"text\"");
        pid_t pid = fork();
        char drop[65536];

        assert_true(pid >= 0);
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                while (recv(fd, drop, sizeof(drop), 0) > 0)
                        ;
                _exit(1);
        }
        close(fd);
        return pid;
}

#define SET_SCENE(scene, state, ...)                                                               \
        do {                                                                                       \
                (scene)->fixture = *(state);                                                       \
                START_ENDLESS_DAEMON((scene)->fixture, "--threads", "1", __VA_ARGS__);             \
                START_BRIDGE(&(scene)->bridge, (scene)->fixture, "--queue-bytes", "512K",          \
                             "--write-timeout-ms", "3600000");                                     \
                bridge_await_daemon(&(scene)->bridge);                                             \
                (scene)->finite = ask_finite(scene);                                               \
                (scene)->witness = start_witness(scene);                                           \
        } while (0)

static void await_open(const struct scene *scene, uint64_t count)
{
        fixture_await_status(scene->fixture, "requests.open", count);
}

/* Only the witness is left, and it runs.  Then it leaves, too. */
static void clear_scene(struct scene *scene, bool has_slots)
{
        char *choices;

        await_open(scene, 1);
        fixture_await_status(scene->fixture, "requests.running", 1);
        if (has_slots) {
                choices = ask_finite(scene);
                assert_string_equal(choices, scene->finite);
                free(choices);
        }
        assert_int_equal(fixture_status(scene->fixture, "requests.open"), 1);
        kill(scene->witness, SIGKILL);
        assert_int_equal(await_process(scene->witness), -SIGKILL);
        await_open(scene, 0);
        fixture_await_status(scene->fixture, "blocks.in_use", 0);
        bridge_stop(&scene->bridge);
        free(scene->finite);
        fixture_stop(scene->fixture);
}

static void one_that_leaves_an_answer_ends_only_its_own(void **state)
{
        struct scene scene;

        SET_SCENE(&scene, state, "--max-seqs", "8");
        close(begin_and_await(&scene, STREAMED, "\"text\""));
        await_open(&scene, 1);
        close(begin_and_await(&scene, FOUR, "\"index\":3"));
        clear_scene(&scene, true);
}

static void one_that_leaves_a_whole_answer_ends_it(void **state)
{
        struct scene scene;
        int fd;

        SET_SCENE(&scene, state, "--max-seqs", "8");
        fd = begin(&scene, WHOLE);
        fixture_await_status(scene.fixture, "requests.running", 2);
        close(fd);
        clear_scene(&scene, true);
}

/* It could still read, but no client does this and wants an answer. */
static void one_that_ends_its_sending_half_counts_as_gone(void **state)
{
        struct scene scene;
        int fd;

        SET_SCENE(&scene, state, "--max-seqs", "8");
        fd = begin_and_await(&scene, STREAMED, "\"text\"");
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        await_open(&scene, 1);
        close(fd);
        clear_scene(&scene, true);
}

static void one_that_leaves_the_queue_is_taken_out_of_it(void **state)
{
        struct scene scene;
        int fds[3];

        SET_SCENE(&scene, state, "--max-seqs", "1");
        fds[0] = begin(&scene, STREAMED);
        fds[1] = begin(&scene, WHOLE);
        fds[2] = begin(&scene, FOUR);
        fixture_await_status(scene.fixture, "requests.waiting", 6);
        close(fds[1]);
        fixture_await_status(scene.fixture, "requests.waiting", 5);
        close(fds[2]);
        fixture_await_status(scene.fixture, "requests.waiting", 1);
        close(fds[0]);
        fixture_await_status(scene.fixture, "requests.waiting", 0);
        clear_scene(&scene, false);
}

/* The prompt takes thousands of steps; behind it the stream would not end either. */
static void one_that_leaves_while_its_prompt_is_read_ends_it(void **state)
{
        static char body[220000];
        struct scene scene;
        int fd;

        memset(body, 'a', sizeof(body) - 1);
        memcpy(body, "{\"prompt\":\"", 11);
        memcpy(body + sizeof(body) - sizeof("\"," ENDLESS_FIELDS "}"), "\"," ENDLESS_FIELDS "}",
               sizeof("\"," ENDLESS_FIELDS "}"));
        SET_SCENE(&scene, state, "--max-seqs", "8", "--step-tokens", "16");
        fd = begin(&scene, body);
        fixture_await_status(scene.fixture, "requests.running", 2);
        close(fd);
        clear_scene(&scene, true);
}

/* Its request and its cancel come to the daemon together. */
static void one_that_leaves_before_the_daemon_answers_leaves_nothing(void **state)
{
        struct scene scene;
        uint64_t received;
        int fds[2];

        SET_SCENE(&scene, state, "--max-seqs", "8");
        received = fixture_status(scene.fixture, "requests.received");
        kill(scene.fixture->pid, SIGSTOP);
        fds[0] = begin(&scene, STREAMED);
        fds[1] = begin(&scene, FOUR);
        free(http_ask(&scene.bridge, "GET /", "", NULL, 200)); /* both were read before this */
        close(fds[0]);
        close(fds[1]);
        free(http_ask(&scene.bridge, "GET /", "", NULL, 200));
        kill(scene.fixture->pid, SIGCONT);
        fixture_await_status(scene.fixture, "requests.received", received + 2);
        clear_scene(&scene, true);
}

static void one_that_does_not_read_is_cut_and_the_others_go_on(void **state)
{
        struct scene scene;
        int fd, bytes = 65536;
        char *cut, *metrics;

        SET_SCENE(&scene, state, "--max-seqs", "8");
        fd = bridge_connect(scene.bridge.port);
        assert_true(fd >= 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
        http_send(fd, "POST /v1/completions", "", TALKATIVE);
        fixture_await_status(scene.fixture, "requests.running", 2);
        await_open(&scene, 1);
        metrics = http_ask(&scene.bridge, "GET /metrics", "", NULL, 200);
        assert_non_null(strstr(metrics, "slow_clients_total 1\n"));
        free(metrics);
        cut = http_receive(fd);
        assert_int_equal(http_status(cut), 200);
        assert_null(strstr(cut, "[DONE]"));
        assert_null(strstr(cut, "\r\n0\r\n\r\n")); /* its chunks have no end */
        free(cut);
        clear_scene(&scene, true);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(one_that_leaves_an_answer_ends_only_its_own),
                DAEMON_TEST(one_that_leaves_a_whole_answer_ends_it),
                DAEMON_TEST(one_that_ends_its_sending_half_counts_as_gone),
                DAEMON_TEST(one_that_leaves_the_queue_is_taken_out_of_it),
                DAEMON_TEST(one_that_leaves_while_its_prompt_is_read_ends_it),
                DAEMON_TEST(one_that_leaves_before_the_daemon_answers_leaves_nothing),
                DAEMON_TEST(one_that_does_not_read_is_cut_and_the_others_go_on),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR_HTTP", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
