/* samovar bench: against the socket and samovar-http, with exact counts, and servers that die. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/e2e/bench-report.h"
#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

static void assert_lines(const char *path, unsigned wanted)
{
        char *text = file_text(path);
        unsigned lines = 0;

        for (const char *at = text; *at; at++)
                lines += *at == '\n';
        free(text);
        assert_int_equal(lines, wanted);
}

/* ---- counts ---- */

static void counts_of_the_socket_are_exact(void **state)
{
        struct daemon_fixture *fixture = *state;
        char raw[128], csv[128], svg[128];
        struct run_result ran;

        START_QUICK_DAEMON(fixture, "--threads", "1");
        /* With a vocabulary of 258, prompts of some seeds begin with the same token. */
        snprintf(raw, sizeof(raw), "%s/raw", fixture->directory);
        snprintf(csv, sizeof(csv), "%s/csv", fixture->directory);
        snprintf(svg, sizeof(svg), "%s/svg", fixture->directory);
        ran = RUN(fixture, NULL, SAMOVAR, "bench", "--input", "20", "--output", "7",
                  "--concurrency", "1,3", "--requests", "12", "--connections", "2", "--raw", raw,
                  "--csv", csv, "--svg", svg, "--slo", "e2e=1000s", "--seed", "7", "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "runs", 2);
        for (unsigned i = 0; i < 2; i++) {
                assert_told(&ran, i ? "runs.1.answered" : "runs.0.answered", 12);
                assert_told(&ran, i ? "runs.1.failed" : "runs.0.failed", 0);
                assert_told(&ran, i ? "runs.1.input_tokens" : "runs.0.input_tokens", 240);
                assert_told(&ran, i ? "runs.1.output_tokens" : "runs.0.output_tokens", 84);
                assert_told(&ran, i ? "runs.1.cached_tokens" : "runs.0.cached_tokens", 0);
                assert_told(&ran, i ? "runs.1.itl_ms.count" : "runs.0.itl_ms.count", 72);
                assert_told(&ran, i ? "runs.1.good_share" : "runs.0.good_share", 1);
        }
        assert_told(&ran, "runs.0.most_in_flight", 1);
        assert_told(&ran, "runs.1.most_in_flight", 3);
        assert_lines(raw, 24);
        assert_lines(csv, 3);
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void counts_of_a_url_are_exact(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        struct run_result ran;
        char url[64];

        START_QUICK_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/v1", bridge.port);
        ran = RUN(fixture, NULL, SAMOVAR, "bench", "--url", url, "--input", "20", "--output", "7",
                  "--concurrency", "3", "--requests", "12", "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "runs.0.answered", 12);
        assert_told(&ran, "runs.0.input_tokens", 240);
        assert_told(&ran, "runs.0.output_tokens", 84);
        assert_told(&ran, "runs.0.ttft_ms.count", 12);
        run_result_free(&ran);
        /* As text a word may be several tokens: the bench finds out how many. */
        ran = RUN(fixture, NULL, SAMOVAR, "bench", "--url", url, "--prompts-as", "text", "--input",
                  "100", "--output", "2", "--requests", "8", "--json");
        assert_int_equal(ran.status, 0);
        assert_in_range((unsigned)told(&ran, "runs.0.input_tokens"), 600, 1000);
        assert_told(&ran, "runs.0.output_tokens", 16);
        run_result_free(&ran);
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

static void prefixes_are_found_in_the_cache(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_QUICK_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "bench", "--input", "8", "--prefix", "1:64", "--output",
                  "2", "--concurrency", "1", "--requests", "5", "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "runs.0.input_tokens", 5 * 72);
        /* The first request computes the prefix; each of the others finds it. */
        assert_true(told(&ran, "runs.0.cached_tokens") >= 4 * 64);
        run_result_free(&ran);
        fixture_stop(fixture);
}

#define BENCH_LOOPS(fixture, ...)                                                                  \
        RUN(fixture, NULL, SAMOVAR, "bench", "--input", "20", "--output", "64", "--temp", "0",     \
            "--concurrency", "1", "--requests", "4", __VA_ARGS__)

/* Without chance the untrained model soon repeats itself. */
static void guesses_of_the_daemon_are_shown(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--draft", "always");
        ran = BENCH_LOOPS(fixture, "--json");
        assert_int_equal(ran.status, 0);
        assert_true(told(&ran, "runs.0.drafts_right") > 0);
        assert_true(told(&ran, "runs.0.drafted_tokens") >= told(&ran, "runs.0.drafts_right"));
        assert_about(told(&ran, "runs.0.tokens_per_step"),
                     256 / (256 - told(&ran, "runs.0.drafts_right")));
        run_result_free(&ran);
        ran = BENCH_LOOPS(fixture, "--seed", "3");
        assert_line(&ran, "drafts ", " tokens a step");
        run_result_free(&ran);
        fixture_stop(fixture);
        START_QUICK_DAEMON(fixture, "--threads", "1", "--draft", "off");
        ran = BENCH_LOOPS(fixture, "--json");
        assert_int_equal(ran.status, 0);
        assert_false(has(&ran, "runs.0.drafted_tokens"));
        run_result_free(&ran);
        ran = BENCH_LOOPS(fixture, "--seed", "3");
        assert_no_line(&ran, "drafts");
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* Without --may-end each answer is as long as asked for. */
static void an_answer_that_the_model_ends_is_good(void **state)
{
        static const char questions[] = "{\"turns\": [\"Who is it?\"]}\n"
                                        "{\"turns\": [\"Good night.\"]}\n"
                                        "{\"turns\": [\"How are you?\"]}\n";
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char model[512];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", model, "--ctx", "512");
        ran = RUN(fixture, questions, SAMOVAR, "bench", "--prompts", "-", "--output", "400",
                  "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "runs.0.answered", 3);
        assert_true(told(&ran, "runs.0.output_tokens") < 1200);
        run_result_free(&ran);
        ran = RUN(fixture, questions, SAMOVAR, "bench", "--prompts", "-", "--output", "400",
                  "--ignore-eos", "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "runs.0.output_tokens", 1200);
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void a_trace_is_sent_at_its_times(void **state)
{
        static const char trace[] = "timestamp,input_length,output_length\n"
                                    "0,10,2\n0.2,20,3\n0.4,30,4\n";
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_QUICK_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, trace, SAMOVAR, "bench", "--trace", "-", "--speed", "2", "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "runs.0.answered", 3);
        assert_told(&ran, "runs.0.input_tokens", 60);
        assert_told(&ran, "runs.0.output_tokens", 9);
        /* The last one is due after 0.2 s, so the run is not shorter. */
        assert_true(told(&ran, "runs.0.seconds") >= 0.2);
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void a_rate_ends_with_its_time(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_QUICK_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "bench", "--rate", "100", "--arrivals", "fixed", "--for",
                  "0.195", "--input", "4", "--output", "1", "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "runs.0.answered", 20);
        assert_told(&ran, "runs.0.late_ms.count", 20);
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* ---- failures ---- */

static void requests_that_fail_are_counted_by_their_code(void **state)
{
        static char text[20001];
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        struct run_result ran;
        char url[64];

        START_QUICK_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/v1", bridge.port);
        ran = RUN(fixture, "a\nb\n", SAMOVAR, "bench", "--prompts", "-", "--output", "9999",
                  "--warm-up", "0", "--json");
        assert_int_equal(ran.status, 1);
        assert_told(&ran, "runs.0.failed", 2);
        assert_told(&ran, "runs.0.errors.too_long", 2);
        assert_non_null(strstr(ran.out, "\"first_error\":\""));
        run_result_free(&ran);
        /* samovar-http lowers max_tokens, but not the prompt. */
        memset(text, 'x', sizeof(text) - 1);
        for (size_t i = 1; i < sizeof(text) - 1; i += 2)
                text[i] = ' ';
        ran = RUN(fixture, text, SAMOVAR, "bench", "--url", url, "--prompts", "-", "--warm-up",
                  "0");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.out, "\nrequests   0 answered, 1 failed"));
        assert_non_null(strstr(ran.out, "\nerrors     http 400: 1; the first: "));
        run_result_free(&ran);
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

/* Starts a bench with stdout to a file in the fixture's directory. */
static pid_t start_bench(const struct daemon_fixture *fixture, const char *const *more)
{
        const char *argv[32] = { SAMOVAR, "bench", "--json" };
        size_t count = 3;
        char path[128];
        pid_t pid;

        while (*more)
                argv[count++] = *more++;
        snprintf(path, sizeof(path), "%s/out", fixture->directory);
        pid = fork();
        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
        setenv("SAMOVAR_SOCKET", fixture->socket, 1);
        execv(argv[0], (char *const *)argv);
        _exit(126);
}
#define START_BENCH(fixture, ...) start_bench(fixture, (const char *const[]){ __VA_ARGS__, NULL })

static struct run_result end_of_bench(const struct daemon_fixture *fixture, pid_t pid)
{
        struct run_result ran = { .status = await_process(pid) };
        char path[128];

        snprintf(path, sizeof(path), "%s/out", fixture->directory);
        ran.out = file_text(path);
        ran.err = strdup("");
        return ran;
}

static void a_daemon_that_dies_ends_the_run(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        pid_t pid;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        pid = START_BENCH(fixture, "--input", "4", "--output", "1000000", "--concurrency", "4",
                          "--requests", "40", "--warm-up", "0");
        fixture_await_status(fixture, "requests.running", 4);
        kill(fixture->pid, SIGKILL);
        fixture_await_exit(fixture);
        ran = end_of_bench(fixture, pid);
        assert_int_equal(ran.status, 1);
        assert_told(&ran, "runs.0.answered", 0);
        assert_told(&ran, "runs.0.errors.lost", 4);
        assert_told(&ran, "runs.0.not_sent", 36);
        run_result_free(&ran);
}

/* Requests that are refused a connection are no answers: the run ends. */
static void a_url_that_dies_ends_the_run(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        struct run_result ran;
        char url[64];
        pid_t pid;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/v1", bridge.port);
        pid = START_BENCH(fixture, "--url", url, "--input", "4", "--output", "1000000",
                          "--concurrency", "4", "--requests", "400", "--warm-up", "0");
        fixture_await_status(fixture, "requests.running", 4);
        kill(bridge.pid, SIGKILL);
        bridge_await_exit(&bridge);
        ran = end_of_bench(fixture, pid);
        assert_int_equal(ran.status, 1);
        assert_told(&ran, "runs.0.answered", 0);
        assert_true(told(&ran, "runs.0.failed") >= 4);
        assert_true(told(&ran, "runs.0.not_sent") > 300);
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void an_interrupt_reports_so_far(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        pid_t pid;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        pid = START_BENCH(fixture, "--input", "4", "--output", "1000000", "--concurrency", "2",
                          "--requests", "8", "--warm-up", "0");
        fixture_await_status(fixture, "requests.running", 2);
        kill(pid, SIGINT);
        ran = end_of_bench(fixture, pid);
        assert_int_equal(ran.status, 130);
        assert_told(&ran, "runs.0.errors.cancelled", 2);
        assert_told(&ran, "runs.0.not_sent", 6);
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void no_server_is_told(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran =
                RUN(fixture, NULL, SAMOVAR, "bench", "--url", "http://127.0.0.1:1/v1");

        assert_int_equal(ran.status, 3);
        assert_non_null(strstr(ran.err, "http://127.0.0.1:1/v1: "));
        assert_string_equal(ran.out, "");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "bench");
        assert_int_equal(ran.status, 3);
        run_result_free(&ran);
}

/* ---- two servers ---- */

static void two_servers_run_in_turns(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge;
        struct run_result ran;
        char url[64];

        START_QUICK_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        snprintf(url, sizeof(url), "http://127.0.0.1:%u/v1", bridge.port);
        ran = RUN(fixture, NULL, SAMOVAR, "bench", "--against", url, "--rounds", "2", "--input",
                  "10-30", "--output", "4", "--requests", "6", "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "servers", 2);
        assert_told(&ran, "runs", 4);
        assert_told(&ran, "ratios", 1);
        assert_true(told(&ran, "ratios.0.output_tokens_per_second.median") > 0);
        /* A, B, then B, A; both get as many tokens, and none of them in the cache. */
        assert_told(&ran, "runs.1.input_tokens", told(&ran, "runs.0.input_tokens"));
        assert_told(&ran, "runs.3.input_tokens", told(&ran, "runs.2.input_tokens"));
        assert_non_null(strstr(ran.out, "\"runs\":[{\"server\":\"A\",\"round\":1"));
        assert_non_null(strstr(ran.out, ",{\"server\":\"B\",\"round\":1"));
        assert_true(strstr(ran.out, "{\"server\":\"B\",\"round\":2") <
                    strstr(ran.out, "{\"server\":\"A\",\"round\":2"));
        run_result_free(&ran);
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

/* ---- exercises ---- */

static void exercises_start_daemons_of_their_own(void **state)
{
        struct daemon_fixture *fixture = *state;
        const char *model = make_quick_model(fixture, "2048");
        struct run_result ran;

        ran = RUN(fixture, NULL, SAMOVAR, "bench", "batch-sizes", "--model", model, "--concurrency",
                  "1,2,4", "--input", "8", "--output", "4", "--json");
        assert_int_equal(ran.status, 0);
        assert_told(&ran, "runs", 3);
        assert_told(&ran, "runs.2.batch", 4);
        assert_told(&ran, "runs.2.answered", 16);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "bench", "batching", "--model", model, "--batch", "4",
                  "--loads", "50", "--input", "8", "--output", "4", "--requests", "8");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "\ncontinuous "));
        assert_non_null(strstr(ran.out, "\ndynamic "));
        assert_non_null(strstr(ran.out, "\nstatic "));
        run_result_free(&ran);
        assert_no_process_left();
}

/* ---- mistakes ---- */

static void mistakes_are_told_before_anything_is_sent(void **state)
{
        static const struct {
                const char *flags[5], *why;
        } cases[] = {
                { { "--concurrency", "1,,2" },
                  "--concurrency is 1,,2; it may be up to 32 numbers" },
                { { "--concurrency", "0" }, "--concurrency is 0; " },
                { { "--rate", "x" }, "--rate is x; " },
                { { "--input", "9-1" }, "--input is 9-1; it may be N, LOW-HIGH" },
                { { "--prefix", "2:5" }, "--prefix is 2:5; it may be SHARE:TOKENS" },
                { { "--slo", "ttft" }, "--slo is ttft; it may be like ttft=200ms" },
                { { "--rate", "5", "--concurrency", "1,2" }, "--concurrency is 1,2; with --rate" },
                { { "--speed", "2" }, "--speed needs --trace" },
                { { "--trace", "a", "--prompts", "b" }, "--trace and --prompts both say" },
                { { "--prompts", "a", "--input", "5" }, "--prompts says what is asked" },
                { { "--url", "ftp://x", "--requests", "1" }, "--url is ftp://x; it must be like" },
                { { "--url", "http://x/v1", "--socket", "y" }, "--url names the server" },
                { { "--key-file", "x" }, "--key-file needs --url" },
                { { "--csv", "/nowhere/x" }, "--csv /nowhere/x: No such file" },
                { { "--svg", "/nowhere/x" }, "--svg /nowhere/x: No such file" },
                { { "--model", "no-such" }, "the daemon serves no model no-such" },
                { { "batch-size" }, "bench takes one argument at most" },
                { { "exercises", "--csv", "x" }, "--csv needs one exercise" },
                { { "batching", "--rate", "5" }, "batching has rates of its own" },
                { { "batching", "--url", "http://x/v1" }, "batching starts private daemons" },
        };
        struct daemon_fixture *fixture = *state;

        START_QUICK_DAEMON(fixture, "--threads", "1");
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct run_result ran =
                        RUN(fixture, NULL, SAMOVAR, "bench", cases[i].flags[0], cases[i].flags[1],
                            cases[i].flags[2], cases[i].flags[3]);
                char begin[128];

                snprintf(begin, sizeof(begin), "samovar: %s", cases[i].why);
                if (!ran.status || strncmp(ran.err, begin, strlen(begin)) || *ran.out)
                        fail_msg("%s: %d: %s%s", cases[i].why, ran.status, ran.err, ran.out);
                run_result_free(&ran);
        }
        fixture_stop(fixture);
}

static void a_request_longer_than_the_context_is_told_before(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_QUICK_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "bench", "--input", "2000", "--output", "100");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "a request has 2100 tokens with its answer"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(counts_of_the_socket_are_exact),
                DAEMON_TEST(counts_of_a_url_are_exact),
                DAEMON_TEST(prefixes_are_found_in_the_cache),
                DAEMON_TEST(guesses_of_the_daemon_are_shown),
                DAEMON_TEST(an_answer_that_the_model_ends_is_good),
                DAEMON_TEST(a_trace_is_sent_at_its_times),
                DAEMON_TEST(a_rate_ends_with_its_time),
                DAEMON_TEST(requests_that_fail_are_counted_by_their_code),
                DAEMON_TEST(a_daemon_that_dies_ends_the_run),
                DAEMON_TEST(a_url_that_dies_ends_the_run),
                DAEMON_TEST(an_interrupt_reports_so_far),
                DAEMON_TEST(no_server_is_told),
                DAEMON_TEST(two_servers_run_in_turns),
                DAEMON_TEST(exercises_start_daemons_of_their_own),
                DAEMON_TEST(mistakes_are_told_before_anything_is_sent),
                DAEMON_TEST(a_request_longer_than_the_context_is_told_before),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "SAMOVAR_HTTP", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
