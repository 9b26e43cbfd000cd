/*
 * samovar bench against servers that speak the API of OpenAI in ways of their own: what it reports
 * must be what they have done (odd-openai.py).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/bench-report.h"
#include "tests/e2e/python-server.h"

#define SAMOVAR  env_path("SAMOVAR")
#define REQUESTS 4
#define INPUT    16
#define OUTPUT   8

/* ---- the servers ---- */

static unsigned port;

static int set_up(void **state)
{
        if (fixture_set_up(state))
                return 1;
        port = python_server_start("odd-openai", NULL);
        return 0;
}

static int tear_down(void **state)
{
        python_server_stop();
        return fixture_tear_down(state);
}

/* The URL of "plain/v1"; valid until the second call from now. */
static const char *url_of(const char *server)
{
        static char urls[2][96];
        static unsigned turn;
        char *url = urls[turn++ % 2];

        snprintf(url, sizeof(*urls), "http://127.0.0.1:%u/%s", port, server);
        return url;
}

/* A small load: REQUESTS, INPUT and OUTPUT, with these flags besides. */
#define BENCH(fixture, server, ...)                                                                \
        RUN(fixture, NULL, SAMOVAR, "bench", "--url", url_of(server), "--requests", "4",           \
            "--input", "16", "--output", "8", __VA_ARGS__)

/* ---- answers ---- */

static void the_forms_of_other_servers_are_counted_alike(void **state)
{
        static const struct {
                const char *server;
                unsigned pieces; /* of an answer */
                bool ids;        /* its prompts have exact lengths */
        } forms[] = {
                { "plain/v1", OUTPUT, true },  { "llama/v1", OUTPUT, true },
                { "vllm/v1", OUTPUT, false },  { "torn/v1", OUTPUT, true },
                { "undone/v1", OUTPUT, true }, { "pairs/v1", OUTPUT / 2, true },
        };

        for (size_t i = 0; i < 2 * sizeof(forms) / sizeof(*forms); i++) {
                bool chat = i % 2;
                struct run_result ran =
                        BENCH(*state, forms[i / 2].server, "--json", "--concurrency", "2", "--api",
                              chat ? "chat" : "completions");

                assert_status(&ran, 0);
                assert_told(&ran, "runs.0.answered", REQUESTS);
                assert_told(&ran, "runs.0.output_tokens", REQUESTS * OUTPUT);
                assert_told(&ran, "runs.0.shorter", 0);
                assert_told(&ran, "runs.0.without_usage", 0);
                assert_told(&ran, "runs.0.ttft_ms.count", REQUESTS);
                assert_told(&ran, "runs.0.itl_ms.count", REQUESTS * (forms[i / 2].pieces - 1));
                /* A word more or less is two tokens. */
                if (forms[i / 2].ids && !chat)
                        assert_told(&ran, "runs.0.input_tokens", REQUESTS * INPUT);
                else
                        assert_in_range((unsigned)told(&ran, "runs.0.input_tokens"),
                                        REQUESTS * (INPUT - 2), REQUESTS * (INPUT + 2));
                run_result_free(&ran);
        }
}

static void the_token_that_ends_an_answer_takes_its_time(void **state)
{
        struct run_result ran = BENCH(*state, "silent-end/v1", "--concurrency", "1", "--json");
        double behind = told(&ran, "runs.0.e2e_ms.mean") - told(&ran, "runs.0.ttft_ms.mean");

        assert_status(&ran, 0);
        assert_told(&ran, "runs.0.output_tokens", REQUESTS * OUTPUT);
        assert_told(&ran, "runs.0.itl_ms.count", REQUESTS * (OUTPUT - 2));
        assert_told(&ran, "runs.0.tpot_ms.count", REQUESTS);
        /* All answers have as many tokens, so this holds for the means, too. */
        assert_about(told(&ran, "runs.0.tpot_ms.mean"), behind / (OUTPUT - 1));
        assert_true(told(&ran, "runs.0.tpot_ms.p50") > 5 * told(&ran, "runs.0.itl_ms.p50"));
        run_result_free(&ran);
}

static void answers_shorter_than_demanded_are_counted(void **state)
{
        static const struct {
                const char *server;
                unsigned shorter, tokens; /* of an answer, without --may-end */
        } cases[] = { { "stubborn/v1", REQUESTS, 3 }, { "obedient/v1", 0, OUTPUT } };

        for (size_t i = 0; i < 2; i++) {
                struct run_result ran = BENCH(*state, cases[i].server, "--json");

                assert_status(&ran, 0);
                assert_told(&ran, "runs.0.shorter", cases[i].shorter);
                assert_told(&ran, "runs.0.output_tokens", REQUESTS * cases[i].tokens);
                run_result_free(&ran);
                ran = BENCH(*state, cases[i].server, "--may-end", "--json");
                assert_status(&ran, 0);
                assert_told(&ran, "runs.0.shorter", 0);
                assert_told(&ran, "runs.0.output_tokens", REQUESTS * 3);
                run_result_free(&ran);
                ran = BENCH(*state, cases[i].server, "--may-end");
                assert_no_line(&ran, "shorter");
                run_result_free(&ran);
                ran = BENCH(*state, cases[i].server, NULL);
                if (cases[i].shorter)
                        assert_line(&ran, "shorter ", " 4 ");
                else
                        assert_no_line(&ran, "shorter");
                run_result_free(&ran);
        }
}

static void a_server_that_refuses_ignore_eos_needs_may_end(void **state)
{
        struct run_result ran = BENCH(*state, "strict/v1", "--json");

        assert_status(&ran, 1);
        assert_told(&ran, "runs.0.errors.http 400", REQUESTS);
        assert_words(&ran, "runs.0.first_error", "argument supplied: ignore_eos");
        run_result_free(&ran);
        ran = BENCH(*state, "strict/v1", "--json", "--may-end");
        assert_status(&ran, 0);
        assert_told(&ran, "runs.0.answered", REQUESTS);
        run_result_free(&ran);
}

static void answers_without_usage_are_told(void **state)
{
        struct run_result ran = BENCH(*state, "no-usage/v1", "--json");

        assert_status(&ran, 0);
        assert_told(&ran, "runs.0.without_usage", REQUESTS);
        /* Each piece counts as a token; nothing is known about prompts. */
        assert_told(&ran, "runs.0.output_tokens", REQUESTS * OUTPUT);
        assert_told(&ran, "runs.0.shorter", 0);
        assert_false(has(&ran, "runs.0.input_tokens"));
        assert_false(has(&ran, "servers.0.note"));
        run_result_free(&ran);
        ran = BENCH(*state, "usage-at-times/v1", "--warm-up", "0", "--json");
        assert_told(&ran, "runs.0.without_usage", REQUESTS / 2);
        assert_told(&ran, "runs.0.output_tokens", REQUESTS * OUTPUT);
        assert_false(has(&ran, "runs.0.input_tokens"));
        run_result_free(&ran);
        ran = BENCH(*state, "no-usage/v1", NULL);
        assert_status(&ran, 0);
        assert_line(&ran, "no usage ", " 4 ");
        assert_line(&ran, "a second ", " ? tokens of prompts");
        assert_no_line(&ran, "cached");
        assert_no_line(&ran, "note");
        run_result_free(&ran);
}

static void lengths_of_text_that_are_not_known_are_told(void **state)
{
        struct run_result ran = BENCH(*state, "no-usage-wordy/v1", "--json");

        assert_status(&ran, 0);
        assert_told(&ran, "runs.0.without_usage", REQUESTS);
        assert_words(&ran, "servers.0.note", "length");
        run_result_free(&ran);
        ran = BENCH(*state, "no-usage-wordy/v1", NULL);
        assert_line(&ran, "note ", "length");
        run_result_free(&ran);
        ran = BENCH(*state, "wordy/v1", "--json");
        assert_false(has(&ran, "servers.0.note"));
        assert_in_range((unsigned)told(&ran, "runs.0.input_tokens"), REQUESTS * (INPUT - 2),
                        REQUESTS * (INPUT + 2));
        run_result_free(&ran);
}

static void an_answer_that_does_not_end_well_is_a_failure(void **state)
{
        static const char *const faults[][2] = { { "cut/v1", "" },
                                                 { "unfinished/v1", "" },
                                                 { "failing/v1", "the engine is dead" },
                                                 { "whole/v1", "" } };

        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
                struct run_result ran = BENCH(*state, faults[i][0], "--json");

                assert_status(&ran, 1);
                assert_told(&ran, "runs.0.answered", 0);
                assert_told(&ran, "runs.0.failed", REQUESTS);
                assert_told(&ran, "runs.0.output_tokens", 0);
                assert_told(&ran, "runs.0.e2e_ms.count", 0);
                assert_words(&ran, "runs.0.first_error", faults[i][1]);
                run_result_free(&ran);
        }
}

/* ---- two servers ---- */

static void assert_ratio(const struct run_result *ran, const char *name, const char *in_run)
{
        double ratios[2];
        char path[80];

        for (unsigned i = 0; i < 2; i++)
                ratios[i] =
                        told_of(ran, 'A', i ? 3 : 1, in_run) / told_of(ran, 'B', i ? 3 : 1, in_run);
        snprintf(path, sizeof(path), "ratios.0.%s.median", name);
        assert_about(told(ran, path), (ratios[0] + ratios[1]) / 2);
        snprintf(path, sizeof(path), "ratios.0.%s.least", name);
        assert_about(told(ran, path), ratios[ratios[1] < ratios[0]]);
        snprintf(path, sizeof(path), "ratios.0.%s.most", name);
        assert_about(told(ran, path), ratios[ratios[1] > ratios[0]]);
}

static void a_round_that_fails_is_in_no_ratio(void **state)
{
        for (char bad = 'A'; bad <= 'B'; bad++) {
                const char *a = bad == 'A' ? "busy-later/v1" : "plain/v1";
                const char *b = bad == 'B' ? "busy-later/v1" : "plain/v1";
                struct run_result ran = BENCH(*state, a, "--against", url_of(b), "--rounds", "3",
                                              "--warm-up", "0", "--concurrency", "1", "--json");

                assert_status(&ran, 1);
                for (unsigned round = 1; round <= 3; round++)
                        assert_true(told_of(&ran, 'A' + 'B' - bad, round, "answered") == REQUESTS);
                assert_true(told_of(&ran, bad, 1, "answered") == REQUESTS);
                assert_true(told_of(&ran, bad, 3, "answered") == REQUESTS);
                assert_true(told_of(&ran, bad, 2, "errors.http 503") == REQUESTS);
                assert_ratio(&ran, "input_tokens_per_second", "input_tokens_per_second");
                assert_ratio(&ran, "ttft_p50_ms", "ttft_ms.p50");
                assert_ratio(&ran, "tpot_p99_ms", "tpot_ms.p99");
                assert_ratio(&ran, "e2e_p50_ms", "e2e_ms.p50");
                if (bad == 'B') /* 0 answers a second are a figure, but no divisor */
                        assert_ratio(&ran, "requests_per_second", "requests_per_second");
                run_result_free(&ran);
        }
}

static void errors_have_the_words_of_their_own_run(void **state)
{
        static const char *const good[] = { "round 1, B", "round 2, A", "round 3, A",
                                            "round 3, B" };
        struct run_result ran =
                BENCH(*state, "busy-at-first/v1", "--against", url_of("busy-later/v1"), "--rounds",
                      "3", "--warm-up", "0", "--concurrency", "1");
        unsigned a = 0, b = 0;

        assert_status(&ran, 1);
        assert_int_equal(sscanf(line_of(ran.out, "failed ", ""), "failed %u %u", &a, &b), 2);
        assert_int_equal(a, 1);
        assert_int_equal(b, REQUESTS);
        assert_line(&ran, "errors ",
                    "round 1, A, 1 at a time: http 429: 1; the first: the queue of A is full");
        assert_line(&ran, "errors ",
                    "round 2, B, 1 at a time: http 503: 4; the first: B loads its model");
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
                assert_string_equal(line_of(ran.out, "errors ", good[i]), "");
        run_result_free(&ran);
}

/* ---- what a user can do about it ---- */

static const char *write_key(const struct daemon_fixture *fixture, const char *key)
{
        static char path[128];
        FILE *file;

        snprintf(path, sizeof(path), "%s/key", fixture->directory);
        file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%s\n", key);
        fclose(file);
        return path;
}

static void a_key_is_asked_for_and_a_wrong_one_is_refused(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        assert_refusal(BENCH(fixture, "locked/v1", NULL), 1, "give a key with --key-file");
        assert_refusal(BENCH(fixture, "locked/v1", "--key-file", write_key(fixture, "sesame")), 1,
                       "refuses the key");
        ran = BENCH(fixture, "locked/v1", "--key-file", write_key(fixture, "open sesame"),
                    "--json");
        assert_status(&ran, 0);
        assert_told(&ran, "runs.0.answered", REQUESTS);
        run_result_free(&ran);
        /* llama-server shows its models to everybody. */
        ran = BENCH(fixture, "locked-later/v1", "--json");
        assert_status(&ran, 1);
        assert_told(&ran, "runs.0.errors.http 401", REQUESTS);
        assert_words(&ran, "runs.0.first_error", "the key is not valid");
        run_result_free(&ran);
}

static void answers_of_another_api_suggest_another_url(void **state)
{
        struct run_result ran = BENCH(*state, "llama", "--json");

        assert_status(&ran, 1);
        assert_told(&ran, "runs.0.answered", 0);
        assert_told(&ran, "runs.0.errors.bad answer", REQUESTS);
        assert_words(&ran, "runs.0.first_error", "/v1");
        run_result_free(&ran);
        assert_refusal(BENCH(*state, "llama", "--prompts-as", "text"), 1, "/v1");
}

/* The 404 is a page of HTML, as proxies send it. */
static void a_server_with_one_api_suggests_it(void **state)
{
        struct run_result ran = BENCH(*state, "chat-only/v1", NULL);

        assert_status(&ran, 1);
        assert_line(&ran, "errors ", "http 404: 4");
        assert_line(&ran, "errors ", "--api chat");
        run_result_free(&ran);
        assert_refusal(BENCH(*state, "chat-only-wordy/v1", NULL), 1, "--api chat");
        ran = BENCH(*state, "chat-only/v1", "--api", "chat", "--json");
        assert_status(&ran, 0);
        assert_told(&ran, "runs.0.answered", REQUESTS);
        run_result_free(&ran);
        assert_refusal(BENCH(*state, "completions-only/v1", "--api", "chat"), 1,
                       "--api completions");
}

static void servers_are_called_what_they_call_themselves(void **state)
{
        struct run_result ran = BENCH(*state, "llama/v1", "--json");

        assert_status(&ran, 0);
        assert_words(&ran, "servers.0.quantisation", "Q4_K - Medium");
        assert_words(&ran, "servers.0.model", "tea-7b");
        assert_words(&ran, "servers.0.server", "llama.cpp b6123-79c1160b");
        assert_told(&ran, "servers.0.context", 8192);
        assert_told(&ran, "servers.0.parameters", 1235814432);
        run_result_free(&ran);
        ran = BENCH(*state, "llama/v1", NULL);
        assert_line(&ran, "model ", "tea-7b, Q4_K - Medium");
        run_result_free(&ran);
        /* The version is not that of the library whose name is in the field Server. */
        ran = BENCH(*state, "vllm/v1", "--json");
        assert_words(&ran, "servers.0.server", "vllm 0.11.0");
        assert_told(&ran, "servers.0.context", 4096);
        run_result_free(&ran);
}

static void a_url_where_nothing_listens_is_told(void **state)
{
        char dead[64];

        assert_refusal(BENCH(*state, "plain/v1", "--against", "unix:/tmp/none/sock:/v1"), 3,
                       "--against: unix:/tmp/none/sock:/v1: ");
        python_server_stop();
        snprintf(dead, sizeof(dead), "http://127.0.0.1:%u/plain/v1: ", port);
        assert_refusal(BENCH(*state, "plain/v1", NULL), 3, dead);
}

#define SERVERS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                SERVERS_TEST(the_forms_of_other_servers_are_counted_alike),
                SERVERS_TEST(the_token_that_ends_an_answer_takes_its_time),
                SERVERS_TEST(answers_shorter_than_demanded_are_counted),
                SERVERS_TEST(a_server_that_refuses_ignore_eos_needs_may_end),
                SERVERS_TEST(answers_without_usage_are_told),
                SERVERS_TEST(lengths_of_text_that_are_not_known_are_told),
                SERVERS_TEST(an_answer_that_does_not_end_well_is_a_failure),
                SERVERS_TEST(a_round_that_fails_is_in_no_ratio),
                SERVERS_TEST(errors_have_the_words_of_their_own_run),
                SERVERS_TEST(a_key_is_asked_for_and_a_wrong_one_is_refused),
                SERVERS_TEST(answers_of_another_api_suggest_another_url),
                SERVERS_TEST(a_server_with_one_api_suggests_it),
                SERVERS_TEST(servers_are_called_what_they_call_themselves),
                SERVERS_TEST(a_url_where_nothing_listens_is_told),
        };

        require_env_paths((const char *const[]){ "SAMOVAR", "SOURCES", NULL });
        if (python_server_is_missing("bench --url http://127.0.0.1:1/v1"))
                return 77;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
