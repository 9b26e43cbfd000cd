/* The bench of the batching policies on a small scale: it measures every request of every run, and
 * draws them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/daemon-fixture.h"

#define TRACE                                                                                      \
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"                                                \
        "2023-11-16 18:15:46.0000000,40,5\n"                                                       \
        "2023-11-16 18:15:46.0500000,3,9\n"                                                        \
        "2023-11-16 18:15:46.1000000,70,2\n"                                                       \
        "2023-11-16 18:15:46.1500000,9,12\n"                                                       \
        "2023-11-16 18:15:46.3000000,21,7\n"                                                       \
        "2023-11-16 18:15:46.3000000,2,30\n"
#define REQUESTS 6u

static char script[300];

static void put_file(const struct daemon_fixture *fixture, const char *name, const char *text,
                     char ret_path[160])
{
        FILE *file;

        snprintf(ret_path, 160, "%s/%s", fixture->directory, name);
        file = fopen(ret_path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

/* The text of one request after "policy,load,round,": the order of its events, and its lengths. */
static void assert_valid_row(const char *line, uint32_t request)
{
        static const uint32_t outputs[REQUESTS] = { 5, 9, 2, 12, 7, 30 };
        double at, sent, first, last;
        uint32_t number, prompt, output;

        assert_int_equal(sscanf(line, "%*[a-z],0.5,1,%u,%lf,%lf,%lf,%lf,%u,%u", &number, &at, &sent,
                                &first, &last, &prompt, &output),
                         7);
        assert_int_equal(number, request);
        assert_int_equal(output, outputs[request]);
        assert_true(at <= sent && sent < first && first <= last);
}

static void assert_all_measured(char *text)
{
        char *line = strstr(text, "\npolicy,");
        uint32_t lines = 0;

        assert_non_null(line);
        assert_non_null(strstr(text, "# capacity: "));
        strtok(line, "\n");
        while ((line = strtok(NULL, "\n")))
                assert_valid_row(line, lines++ % REQUESTS);
        assert_int_equal(lines, REQUESTS * (strstr(text, "no batching policies") ? 1 : 3));
}

static void the_bench_measures_and_plots_every_request(void **state)
{
        struct daemon_fixture *fixture = *state;
        char trace[160], results[160], picture[160], *svg;
        struct run_result ran, table;

        put_file(fixture, "trace.csv", TRACE, trace);
        ran = RUN(fixture, NULL, env_path("BENCH_BATCHING"), "-n", "5", "-b", "3", "-r", "1", "-l",
                  "50", env_path("SAMOVARD"), env_path("TOY_MODEL"), trace, "--threads", "1");
        if (ran.status)
                fail_msg("bench-batching ended with %d: %s", ran.status, ran.err);
        put_file(fixture, "results.csv", ran.out, results);
        put_file(fixture, "picture.svg", "", picture);
        assert_all_measured(ran.out);

        table = RUN(fixture, NULL, "/usr/bin/env", "python3", script, results, "--picture",
                    picture);
        if (table.status)
                fail_msg("batching.py ended with %d: %s", table.status, table.err);
        assert_non_null(strstr(table.out, "| 50% | continuous | "));
        svg = file_text(picture);
        assert_non_null(strstr(svg, "</svg>"));
        free(svg);
        run_result_free(&ran);
        run_result_free(&table);
}

static void the_bench_refuses_an_invalid_trace_and_names_the_line(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char trace[160];

        put_file(fixture, "trace.csv", TRACE "nonsense\n", trace);
        ran = RUN(fixture, NULL, env_path("BENCH_BATCHING"), "-n", "7", "-b", "1",
                  env_path("SAMOVARD"), env_path("TOY_MODEL"), trace);
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "line 8 "));
        run_result_free(&ran);
}

/*
 * Computed by hand.  First tokens come after 1, 2 and 9 s; then a token every 0.1 s, every 0.5 s,
 * and none.  It takes 10 s for 11 + 3 + 1 tokens; only the first request is in time.
 */
static void the_table_has_the_figures_computed_by_hand(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char results[160];

        put_file(fixture, "results.csv",
                 "# machine: paper\n"
                 "policy,load,round,request,at,sent,first,last,prompt,output\n"
                 "static,0.7,1,0,0,0,1,2,9,11\n"
                 "static,0.7,1,1,0.5,0.5,2.5,3.5,9,3\n"
                 "static,0.7,1,2,1,1.002,10,10,9,1\n",
                 results);
        ran = RUN(fixture, NULL, "/usr/bin/env", "python3", script, results);
        if (ran.status)
                fail_msg("batching.py ended with %d: %s", ran.status, ran.err);
        assert_non_null(strstr(ran.out, "# sent late: 2.0 ms at most"));
        assert_non_null(strstr(ran.out, "| 70% | static | 1.50 | 1.10 | 2000 | 9000 | 9000 | "
                                        "100 | 500 | 500 | 3.00 | 9.00 |"));
        run_result_free(&ran);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(the_bench_measures_and_plots_every_request),
                DAEMON_TEST(the_bench_refuses_an_invalid_trace_and_names_the_line),
                DAEMON_TEST(the_table_has_the_figures_computed_by_hand),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", "BENCH_BATCHING",
                                                 "SOURCES", NULL });
        if (system("python3 -c '' 2>/dev/null")) {
                printf("1..0 # SKIP there is no python3 here\n");
                return 77;
        }
        snprintf(script, sizeof(script), "%s/contrib/dev/batching.py", env_path("SOURCES"));
        return cmocka_run_group_tests(tests, NULL, NULL);
}
