/* The screen of `samovar status`, made of replies that no daemon has to give. */
#include "cli/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json/reader.h"

#define DAEMON                                                                                     \
        "\"socket\":\"/run/samovar/sock\",\"version\":\"1.2.3\",\"pid\":77,\"uid\":0,"             \
        "\"uptime_s\":7500,"
#define MODEL                                                                                      \
        "\"model\":{\"name\":\"tiny\",\"backend\":\"cpu/avx2\",\"quantisation\":\"Q8_0\","         \
        "\"bytes\":4194304,\"context\":4096,\"chat\":true},"
#define LOADED "\"loading\":{\"bytes\":10,\"total\":10},"
#define POOL   "\"blocks\":{\"total\":400,\"in_use\":100,\"cached\":50},"
#define QUEUE  "\"requests\":{\"waiting\":3,\"running\":8,\"stalled\":1},"
#define RATES                                                                                      \
        "\"rates\":{\"tokens_out_per_s\":123.44,\"mean_tokens_out_per_s\":98.06,"                  \
        "\"tokens_in_per_s\":2000},"
#define ONE_USER                                                                                   \
        "\"users\":[{\"uid\":0,\"requests\":11,\"blocks\":100,\"cached_blocks\":50,"               \
        "\"pinned_blocks\":0,\"handles\":2,\"connections\":4}]"

/* The screen of this reply; the caller frees it. */
static char *made(const char *json, unsigned rows, unsigned columns)
{
        struct json_document *status;
        struct bytes lines = { 0 };
        char why[128] = "";

        if (json_parse(json, strlen(json), 1000000, &status, why, sizeof(why)))
                fail_msg("%s", why);
        assert_int_equal(
                status_make_screen(status, (struct status_size){ .rows = rows, .columns = columns },
                                   &lines),
                0);
        assert_int_equal(bytes_add(&lines, "", 1), 0);
        json_free(status);
        return lines.at;
}

static void expect(const char *screen, const char *line)
{
        if (!screen || !strstr(screen, line))
                fail_msg("\"%s\" is not in:\n%s", line, screen ? screen : "no screen");
}

/* Of 200 durations 100 are up to 10 ms, 80 more up to 20 ms, and 20 more up to 1 s. */
#define TIMES "{\"count\":200,\"sum\":2.5,\"buckets\":[0,100,180,200]}"
#define LATENCY                                                                                    \
        "\"latency\":{\"le\":[0.001,0.01,0.02,1],\"time_to_first_token_seconds\":" TIMES           \
        ",\"inter_token_latency_seconds\":{\"count\":0,\"sum\":0,\"buckets\":[0,0,0,0]},"          \
        "\"request_queue_time_seconds\":" TIMES ",\"e2e_request_latency_seconds\":"                \
        "{\"count\":10,\"sum\":90,\"buckets\":[0,0,0,0]}},"

static void shows_rates_times_queue_pool_and_users(void **state)
{
        char *screen = made("{" DAEMON MODEL LOADED POOL QUEUE RATES LATENCY ONE_USER "}", 23, 80);

        (void)state;
        expect(screen, "samovard   1.2.3, process 77 of user root (uid 0), up 2 h 5 min\n"
                       "socket     /run/samovar/sock\n");
        expect(screen, "model      tiny (Q8_0, 4.0 MiB), context 4096, chat\n");
        expect(screen, "backend    cpu/avx2\n");
        expect(screen, "tokens/s   123.4 now, 98.1 mean; prompts 2000.0 now\n");
        /* The median is the end of a bucket; 190 is half-way between 20 ms and 1 s. */
        expect(screen, "first      token p50 10 ms, p95 510 ms\n");
        expect(screen, "next       token -\n");
        /* None was as short as the last bound. */
        expect(screen, "request    p50 1.0 s, p95 1.0 s\n");
        expect(screen,
               "queue      3 waiting, 8 running, 1 stalled; waited p50 10 ms, p95 510 ms\n");
        expect(screen, "pool       [##########=====.........................] of 400 blocks\n"
                       "           # 100 in use (25 %), = 50 cached (13 %), . 250 free (62 %)\n");
        expect(screen, "           root                 11     100      50       0        2        "
                       "4\n");
        assert_null(strstr(screen, "loading"));
        free(screen);
}

/* A user without a name is shown as a number; a client that was given a socket has no path. */
static void shows_whose_daemon_answers(void **state)
{
        char *screen = made("{\"version\":\"1.2.3\",\"pid\":8,\"uid\":4123456789," MODEL LOADED POOL
                                    QUEUE ONE_USER "}",
                            23, 80);

        (void)state;
        expect(screen, "samovard   1.2.3, process 8 of user 4123456789 (uid 4123456789), up 0 s\n"
                       "model      ");
        free(screen);
}

static void says_why_requests_wait_and_how_careful_the_daemon_is(void **state)
{
        char *screen = made("{" DAEMON "\"trust\":97," MODEL LOADED POOL
                            "\"requests\":{\"waiting\":3,\"running\":8,\"stalled\":1,"
                            "\"preemptions\":5,\"preemptions_per_100\":2.26,"
                            "\"blocks_lost_per_100\":0.5},"
                            "\"waits\":{\"turn\":2,\"slot\":0,\"blocks\":1}," ONE_USER "}",
                            23, 80);

        (void)state;
        expect(screen, "queue      3 waiting, 8 running, 1 stalled\n"
                       "waiting    1 need blocks, 2 behind others\n"
                       "pool       ");
        expect(screen,
               " free (62 %)\n"
               "margin     requests begin with room for answers longer than 97 % of earlier "
               "ones\n"
               "preempted  2.3 times in 100 requests, 0.5 because the pool was full\n"
               "users      ");
        free(screen);
        screen = made("{" DAEMON MODEL LOADED POOL QUEUE ONE_USER "}", 23, 80);
        assert_null(strstr(screen, "\nwaiting "));
        assert_null(strstr(screen, "\nmargin "));
        assert_null(strstr(screen, "\npreempted "));
        free(screen);
}

/* The daemon reads its counters one after the other, so they may not add up. */
static void the_parts_of_the_pool_add_up(void **state)
{
        static const struct {
                const char *blocks, *line;
        } cases[] = {
                { "\"total\":3,\"in_use\":1,\"cached\":1",
                  "# 1 in use (33 %), = 1 cached (34 %), . 1 free (33 %)\n" },
                { "\"total\":400,\"in_use\":100,\"cached\":50,\"free\":251",
                  "# 100 in use (25 %), = 50 cached (13 %), . 250 free (62 %)\n" },
                { "\"total\":4,\"in_use\":3,\"cached\":2",
                  "# 3 in use (75 %), = 2 cached (50 %), . 0 free (0 %)\n" },
                { "\"total\":4", "# 0 in use (0 %), = 0 cached (0 %), . 4 free (100 %)\n" },
        };
        char json[256], *screen;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                snprintf(json, sizeof(json), "{\"blocks\":{%s}}", cases[i].blocks);
                screen = made(json, 23, 80);
                expect(screen, cases[i].line);
                free(screen);
        }
}

static void shows_the_swap_if_there_is_one(void **state)
{
        char *screen = made("{\"blocks\":{\"total\":4,\"swap_total\":90,\"swap_used\":12,"
                            "\"swapped_out\":30,\"swapped_in\":18}}",
                            23, 80);

        (void)state;
        expect(screen, "\nswap       12 of 90 blocks, 30 moved out, 18 came back\n");
        free(screen);
        screen = made("{\"blocks\":{\"total\":4,\"swap_total\":0}}", 23, 80);
        assert_null(strstr(screen, "swap"));
        free(screen);
}

static void shows_how_far_a_model_is_loaded(void **state)
{
        char *screen = made(
                "{" DAEMON MODEL
                "\"loading\":{\"bytes\":1073741824,\"total\":4294967296}," POOL QUEUE ONE_USER "}",
                23, 80);

        (void)state;
        expect(screen, "loading    25 % of 4.0 GiB\n");
        free(screen);
}

static void says_when_a_stopping_daemon_ends_its_streams(void **state)
{
        char *screen =
                made("{" DAEMON
                     "\"stopping\":true,\"stops_in_s\":22," MODEL LOADED POOL QUEUE ONE_USER "}",
                     23, 80);

        (void)state;
        expect(screen, "stopping   streams that still run are ended in 22 s\n");
        free(screen);
        screen = made("{" DAEMON
                      "\"stopping\":false,\"stops_in_s\":0," MODEL LOADED POOL QUEUE ONE_USER "}",
                      23, 80);
        assert_null(strstr(screen, "stopping"));
        free(screen);
}

static void says_that_other_users_see_no_rates(void **state)
{
        char *screen = made("{" DAEMON MODEL LOADED POOL QUEUE ONE_USER "}", 23, 80);

        (void)state;
        expect(screen, "times      only root and the user of the daemon see rates and times\n");
        expect(screen, "queue      3 waiting, 8 running, 1 stalled\n");
        assert_null(strstr(screen, "tokens/s"));
        free(screen);
}

static void fits_any_screen_however_many_users_there_are(void **state)
{
        static char json[200000];
        size_t used = (size_t)sprintf(json, "{" DAEMON MODEL LOADED POOL QUEUE RATES LATENCY
                                            "\"users\":[");

        (void)state;
        for (unsigned i = 0; i < 1000; i++)
                used += (size_t)sprintf(json + used,
                                        "%s{\"uid\":%u,\"requests\":%u,\"blocks\":4294967295,"
                                        "\"cached_blocks\":4294967295,\"connections\":65536}",
                                        i ? "," : "", 3000000000u + i, i);
        sprintf(json + used, "]}");
        for (unsigned rows = 1; rows < 50; rows++) {
                char *screen = made(json, rows, 80), *line = screen;
                unsigned count = 0;

                for (char *end; *line; line = end + 1, count++) {
                        end = strchr(line, '\n');
                        assert_true(end - line <= 80);
                }
                assert_true(count <= rows);
                if (rows == 23) {
                        /* Twelve lines are above the users, who come by their requests. */
                        assert_int_equal(count, 23);
                        expect(screen, "clients\n           3000000999          999 ");
                        expect(screen, "           and 990 more: samovar status --all\n");
                }
                free(screen);
        }
}

static void shows_a_principal_before_its_gateway(void **state)
{
        char *screen = made("{" DAEMON MODEL LOADED POOL QUEUE RATES LATENCY
                            "\"users\":[{\"uid\":0,\"principal\":\"alice\",\"requests\":1},"
                            "{\"uid\":0,\"principal\":\"\",\"requests\":0}]}",
                            40, 80);

        (void)state;
        expect(screen, "\n           alice@root            1 ");
        expect(screen, "\n           root                  0 ");
        free(screen);
}

static void text_of_the_reply_cannot_control_the_terminal(void **state)
{
        char *screen =
                made("{\"version\":\"\\u001b[2J\\u009b\",\"model\":{\"name\":\"a\\nb\"}}", 23, 80);

        (void)state;
        expect(screen, "samovard   ?[2J?, process 0");
        expect(screen, "model      a?b (");
        free(screen);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(shows_rates_times_queue_pool_and_users),
                cmocka_unit_test(shows_whose_daemon_answers),
                cmocka_unit_test(says_why_requests_wait_and_how_careful_the_daemon_is),
                cmocka_unit_test(the_parts_of_the_pool_add_up),
                cmocka_unit_test(shows_the_swap_if_there_is_one),
                cmocka_unit_test(shows_how_far_a_model_is_loaded),
                cmocka_unit_test(says_when_a_stopping_daemon_ends_its_streams),
                cmocka_unit_test(says_that_other_users_see_no_rates),
                cmocka_unit_test(fits_any_screen_however_many_users_there_are),
                cmocka_unit_test(shows_a_principal_before_its_gateway),
                cmocka_unit_test(text_of_the_reply_cannot_control_the_terminal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
