/*
 * contrib/run, in a tree of its own with the programs of this build: packages and compilers are
 * left alone.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/raw-client.h"

/* A command in the tree. */
static void in_tree(const struct daemon_fixture *fixture, const char *words)
{
        char command[2560];
        struct run_result ran;

        snprintf(command, sizeof(command), "set -e; cd %s; %s", fixture->directory, words);
        ran = RUN(fixture, NULL, "/bin/sh", "-c", command);
        assert_string_equal(ran.err, "");
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
}

/* Makes the tree, with two models that differ in their names only. */
static void make_tree(const struct daemon_fixture *fixture)
{
        char command[2048];

        snprintf(command, sizeof(command),
                 "mkdir -p contrib/dev bin build/cli build/daemon build/bridge; sources=%s; "
                 "cp $sources/contrib/run contrib; cp $sources/contrib/dev/progress contrib/dev; "
                 "for stub in contrib/dev/deps bin/meson; do printf '#!/bin/sh\\n' >$stub; "
                 "chmod 755 $stub; done; touch build/build.ninja; ln -s %s build/cli/samovar; "
                 "ln -s %s build/daemon/samovard; ln -s %s build/bridge/samovar-http; for name in "
                 "first second; do ln -s %s $name.gguf; "
                 "done",
                 env_path("SOURCES"), env_path("SAMOVAR"), env_path("SAMOVARD"),
                 env_path("SAMOVAR_HTTP"), env_path("TOY_MODEL"));
        in_tree(fixture, command);
}

/* Runs the script in its tree, with these words of a shell. */
static struct run_result run_script(const struct daemon_fixture *fixture, const char *words)
{
        char command[512];

        snprintf(command, sizeof(command), "cd %s; PATH=$PWD/bin:$PATH contrib/run %s",
                 fixture->directory, words);
        return RUN(fixture, NULL, "/bin/sh", "-c", command);
}

/* The process of samovar-http, which must answer at the address that the script names. */
static pid_t expect_http(const struct run_result *ran)
{
        const char *at = strstr(ran->err, "at http://127.0.0.1:");
        struct bridge_fixture bridge = { 0 };

        assert_non_null(at);
        assert_non_null(strstr(ran->err, "\nThe page: http://127.0.0.1:"));
        bridge.port = (uint16_t)atoi(at + strlen("at http://127.0.0.1:"));
        bridge_await_daemon(&bridge);
        at = strstr(at, "(process ");
        assert_non_null(at);
        assert_non_null(strstr(at, "\ncurl http://127.0.0.1:"));
        return (pid_t)strtol(at + strlen("(process "), NULL, 10);
}

static void end(pid_t process)
{
        kill(process, SIGTERM);
        assert_int_equal(await_process(process), 0);
}

static const char *last_line(char *text)
{
        char *end = text + strlen(text) - 1, *line;

        assert_true(end > text && *end == '\n');
        *end = '\0';
        line = strrchr(text, '\n');
        return line ? line + 1 : text;
}

static void help_and_wrong_flags_start_nothing(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        make_tree(fixture);
        ran = run_script(fixture, "--help");
        assert_int_equal(ran.status, 0);
        assert_memory_equal(ran.out, "usage: contrib/run [--model FILE] QUESTION...\n", 46);
        assert_string_equal(ran.err, "");
        run_result_free(&ran);
        ran = run_script(fixture, "");
        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
        ran = run_script(fixture, "--modle first.gguf Hi");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "there is no flag --modle"));
        run_result_free(&ran);
        ran = run_script(fixture, "--model third.gguf Hi");
        assert_int_equal(ran.status, 2);
        assert_non_null(strstr(ran.err, "--model is third.gguf; there is no such file"));
        run_result_free(&ran);
        assert_int_equal(access(fixture->socket, F_OK), -1);
        assert_no_process_left();
}

/* Expects that the daemon serves the first model, and returns its process. */
static pid_t expect_first(const struct run_result *ran)
{
        const char *at = strstr(ran->err, "samovard serves first and keeps running (process ");

        assert_int_equal(ran->status, 0);
        assert_non_null(at);
        return (pid_t)strtol(strstr(at, "(process ") + strlen("(process "), NULL, 10);
}

static void serves_the_model_and_ends_with_the_next_command(void **state)
{
        struct daemon_fixture *fixture = *state;
        char line[512], wanted[512];
        struct run_result ran;
        pid_t daemon, http;

        make_tree(fixture);
        ran = run_script(fixture, "--model first.gguf Once upon");
        daemon = expect_first(&ran);
        http = expect_http(&ran);
        assert_true(ran.out_bytes > 0);
        snprintf(wanted, sizeof(wanted), "%s/build/cli/samovar --socket %s ask ",
                 fixture->directory, fixture->socket);
        snprintf(line, sizeof(line), "%s", last_line(ran.err));
        assert_memory_equal(line, wanted, strlen(wanted));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, "/bin/sh", "-c", line);
        assert_int_equal(ran.status, 0);
        assert_true(ran.out_bytes > 0);
        run_result_free(&ran);

        /* The same model, or none: that daemon answers. */
        ran = run_script(fixture, "--model=./first.gguf Once");
        assert_int_equal(expect_first(&ran), daemon);
        assert_int_equal(expect_http(&ran), http);
        run_result_free(&ran);
        ran = run_script(fixture, "Once");
        assert_int_equal(expect_first(&ran), daemon);
        run_result_free(&ran);

        ran = run_script(fixture, "--model second.gguf Once");
        assert_int_equal(ran.status, 1);
        assert_string_equal(ran.out, "");
        snprintf(wanted, sizeof(wanted), "a daemon that serves first runs at %s (process %d).\n",
                 fixture->socket, (int)daemon);
        assert_non_null(strstr(ran.err, wanted));
        snprintf(wanted, sizeof(wanted), "stop it with  kill %d ", (int)daemon);
        assert_non_null(strstr(ran.err, wanted));
        run_result_free(&ran);

        /* Another one is started only if it has ended. */
        end(http);
        ran = run_script(fixture, "Once");
        assert_int_equal(expect_first(&ran), daemon);
        http = expect_http(&ran);
        run_result_free(&ran);
        end(http);
        end(daemon);
        assert_no_process_left();
}

/* Expects these texts in this order. */
static void expect_in_order(const char *text, const char *const *wanted)
{
        for (; *wanted; wanted++) {
                const char *at = strstr(text, *wanted);

                if (!at)
                        fail_msg("not there, or too early: %s", *wanted);
                text = at + strlen(*wanted);
        }
}

/* The tree is new, and this meson configures nothing, and compiles by a copy. */
static void says_how_far_it_is_the_first_time(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        pid_t daemon, http;

        make_tree(fixture);
        in_tree(fixture, "mv build built; printf '%s\\n' '#!/bin/sh' '[ $1 = compile ] || exit 0' "
                         "'for i in $(seq 20); do echo \"[$i/20] Compiling C object\"; done' "
                         "'cp -r built/. build' >bin/meson");
        ran = run_script(fixture, "--model first.gguf Once");
        daemon = expect_first(&ran);
        expect_in_order(ran.err,
                        (const char *const[]){ "about 3 minutes", "configures", "compiles",
                                               "[2/20] compiling, 10 %\n[4/20] compiling, 20 %\n",
                                               "[20/20] compiling, 100 %\n", "starts the daemon",
                                               "starts samovar-http", NULL });
        http = expect_http(&ran);
        run_result_free(&ran);

        ran = run_script(fixture, "Once");
        assert_int_equal(expect_first(&ran), daemon);
        assert_null(strstr(ran.err, "minutes"));
        run_result_free(&ran);
        end(http);
        end(daemon);
        assert_no_process_left();
}

static void prints_what_the_compiler_said_if_it_fails(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        make_tree(fixture);
        in_tree(fixture, "printf '%s\\n' '#!/bin/sh' 'echo \"x.c:1: error: no such thing\"' "
                         "'exit 7' >bin/meson");
        ran = run_script(fixture, "--model first.gguf Once");
        assert_int_equal(ran.status, 7);
        assert_string_equal(ran.out, "");
        assert_non_null(strstr(ran.err, "x.c:1: error: no such thing\n"));
        run_result_free(&ran);
        assert_no_process_left();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(help_and_wrong_flags_start_nothing),
                DAEMON_TEST(serves_the_model_and_ends_with_the_next_command),
                DAEMON_TEST(says_how_far_it_is_the_first_time),
                DAEMON_TEST(prints_what_the_compiler_said_if_it_fails),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "SAMOVAR_HTTP", "TOY_MODEL",
                                                 "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
