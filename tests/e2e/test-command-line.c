/* The command line of samovar: where flags may stand, what values may be, and hints at mistakes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

/* Frees `ran`, whose stderr must be this line after "samovar: ". */
static void expect_refused(struct run_result ran, const char *said)
{
        char line[512];

        snprintf(line, sizeof(line), "samovar: %s\n", said);
        assert_string_equal(ran.err, line);
        assert_string_equal(ran.out, "");
        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
}
#define EXPECT_REFUSED(fixture, said, ...)                                                         \
        expect_refused(RUN(fixture, NULL, SAMOVAR, __VA_ARGS__), said)

static void flags_may_stand_before_the_command(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        char flag[128];

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, "/usr/bin/env", "SAMOVAR_SOCKET=/nowhere", SAMOVAR, "--socket",
                  fixture->socket, "--any-uid", "tokenize", "--json", "hi");
        assert_string_equal(ran.err, "");
        assert_string_equal(ran.out, "{\"tokens\":[104,105]}\n");
        run_result_free(&ran);
        snprintf(flag, sizeof(flag), "--socket=%s", fixture->socket);
        ran = RUN(fixture, NULL, "/usr/bin/env", "SAMOVAR_SOCKET=/nowhere", SAMOVAR, flag, "status",
                  "--json");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        /* The value of a flag is not the command. */
        ran = RUN(fixture, NULL, SAMOVAR, "--model", "status", "tokenize", "hi");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "no_model"));
        run_result_free(&ran);
        EXPECT_REFUSED(fixture, "status has no flag --model; see samovar status --help", "--model",
                       "x", "status");
        EXPECT_REFUSED(fixture, "samovar has no flag --sokcet; is --socket meant?", "--sokcet", "x",
                       "status");
        EXPECT_REFUSED(fixture, "no command is given; samovar --help lists them", "--json");
        EXPECT_REFUSED(fixture, "--timeout is 0; it may be 1 to 86400", "status", "--timeout", "0");
        fixture_stop(fixture);
}

static void expect_same(struct daemon_fixture *fixture, struct run_result ran,
                        const char *const flags[])
{
        const char *argv[4] = { SAMOVAR, flags[0], flags[1] };
        struct run_result wanted = run(fixture, NULL, argv);

        assert_int_equal(ran.status, 0);
        assert_int_equal(wanted.status, 0);
        assert_string_equal(ran.out, wanted.out);
        run_result_free(&wanted);
        run_result_free(&ran);
}

static void help_and_version_are_words_too(void **state)
{
        struct daemon_fixture *fixture = *state;

        expect_same(fixture, RUN(fixture, NULL, SAMOVAR, "help"),
                    (const char *const[]){ "--help", NULL });
        expect_same(fixture, RUN(fixture, NULL, SAMOVAR, "help", "ask"),
                    (const char *const[]){ "ask", "--help" });
        expect_same(fixture, RUN(fixture, NULL, SAMOVAR, "version"),
                    (const char *const[]){ "--version", NULL });
}

static void help_lists_the_commands_in_groups(void **state)
{
        static const char *const lines[] = { "\n\nQuestions:\n  ask ",
                                             "\n\nMany questions:\n  batch ",
                                             "\n\nModels:\n  models ", "\n\nThe daemon:\n  status ",
                                             "\n\nTemplates and tokens:\n  template " };
        struct run_result ran = RUN(*state, NULL, SAMOVAR, "--help");
        const char *at = ran.out;

        assert_int_equal(ran.status, 0);
        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
                at = strstr(at, lines[i]);
                assert_non_null(at);
        }
        run_result_free(&ran);
}

static void a_mistyped_word_gets_a_hint(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        EXPECT_REFUSED(fixture, "there is no command stauts; is status meant?", "stauts");
        EXPECT_REFUSED(fixture, "there is no command detoken; is detokenize meant?", "detoken");
        EXPECT_REFUSED(fixture, "ask has no flag --tmep; is --temp meant?", "ask", "--tmep", "1");
        EXPECT_REFUSED(fixture, "ask has no flag --hlep; is --help meant?", "ask", "--hlep");
        EXPECT_REFUSED(fixture, "ask has no flag --max; is --max-tokens meant?", "ask", "--max");
        EXPECT_REFUSED(fixture, "ask has no flag --frobnicate; see samovar ask --help", "ask",
                       "--frobnicate");
        EXPECT_REFUSED(fixture, "samovar has no flag --versoin; is --version meant?", "--versoin");
        EXPECT_REFUSED(fixture, "there is no command stauts; is status meant?", "help", "stauts");
        ran = RUN(fixture, NULL, SAMOVAR, "frobnicate");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "there is no command frobnicate; the commands are ask, "));
        assert_non_null(strstr(ran.err, ", status"));
        run_result_free(&ran);
}

/* No daemon runs: a value that the daemon would refuse is refused before. */
static void refuses_values_out_of_range_without_a_daemon(void **state)
{
        static const char *const cases[][3] = {
                { "--temp", "-1", "--temp is -1; it may be 0 to 100" },
                { "--temp", "100.5", "--temp is 100.5; it may be 0 to 100" },
                { "--temp", "nan", "--temp is nan; it may be 0 to 100" },
                { "--temp", "", "--temp is empty; it may be 0 to 100" },
                { "--top-p", "0", "--top-p is 0; it may be above 0, up to 1" },
                { "--min-p", "1.1", "--min-p is 1.1; it may be 0 to 1" },
                { "--top-k", "1025", "--top-k is 1025; it may be 0 to 1024" },
                { "--seed", "-1", "--seed is -1; it may be 0 to 18446744073709551615" },
                { "--max-tokens", "0", "--max-tokens is 0; it may be 1 to 4294967295" },
                { "--max-tokens", "three", "--max-tokens is three; it may be 1 to 4294967295" },
                { "--logprobs", "33", "--logprobs is 33; it may be 0 to 32" },
                { "-n", "65", "-n is 65; it may be 1 to 64" },
                { "--best-of", "65", "--best-of is 65; it may be 1 to 64" },
                { "--beams", "17", "--beams is 17; it may be 1 to 16" },
                { "--keep", "86401", "--keep is 86401; it may be 1 to 86400" },
                { "--length-penalty", "x", "--length-penalty is x; it may be any number" },
                { "--stop", "", "--stop has 0 bytes; it may have 1 to 256" },
                { "--priority", "high",
                  "--priority is high; it may be normal, interactive or background" },
                { "--transport", "tcp", "--transport is tcp; it may be auto, ring or socket" },
        };
        struct daemon_fixture *fixture = *state;

        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
                EXPECT_REFUSED(fixture, cases[i][2], "ask", "Hi", cases[i][0], cases[i][1]);
        EXPECT_REFUSED(fixture, "--temp needs a value: T", "ask", "Hi", "--temp");
        EXPECT_REFUSED(fixture, "the resume id is 0; it may be 1 to 18446744073709551615", "attach",
                       "0");
}

/* teaspoon's answer has fewer than a dozen tokens. */
static void ignore_eos_goes_on_after_the_end_token(void **state)
{
        struct daemon_fixture *fixture = *state;
        char model[512];
        struct run_result ran;

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", model);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "What is two plus three?", "--temp", "0", "--json",
                  "--max-tokens", "40");
        assert_non_null(strstr(ran.out, "{\"end\":\"eos\""));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "What is two plus three?", "--temp", "0", "--json",
                  "--max-tokens", "40", "--ignore-eos");
        assert_non_null(strstr(ran.out, "{\"end\":\"length\""));
        assert_non_null(strstr(ran.out, "\"output_tokens\":40,"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(flags_may_stand_before_the_command),
                DAEMON_TEST(help_and_version_are_words_too),
                DAEMON_TEST(help_lists_the_commands_in_groups),
                DAEMON_TEST(a_mistyped_word_gets_a_hint),
                DAEMON_TEST(refuses_values_out_of_range_without_a_daemon),
                DAEMON_TEST(ignore_eos_goes_on_after_the_end_token),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
