/* samovar doctor: on this machine, with and without a daemon. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/reader.h"
#include "tests/e2e/bridge-fixture.h"
#include "tests/e2e/raw-client.h"

#define SAMOVAR env_path("SAMOVAR")

/* The row of that topic and name in the output of --json, which it parses. */
static uint32_t row_of(const struct json_document *json, const char *topic, const char *name)
{
        uint32_t row = json_first(json, json_member(json, 0, "checks"));

        for (; row != JSON_NONE; row = json_next(json, row))
                if (!strcmp(json_string(json, json_member(json, row, "topic"), NULL), topic) &&
                    !strcmp(json_string(json, json_member(json, row, "name"), NULL), name))
                        return row;
        fail_msg("there is no row %s of %s", name, topic);
        return JSON_NONE;
}

static struct json_document *parse(const struct run_result *ran)
{
        struct json_document *json;
        char why[128];

        if (json_parse(ran->out, strlen(ran->out), 100000, &json, why, sizeof(why)))
                fail_msg("%s: %s", why, ran->out);
        return json;
}

/* The row must have this result, and these words in what was found. */
static void expect(const struct json_document *json, const char *topic, const char *name,
                   const char *result, const char *words)
{
        uint32_t row = row_of(json, topic, name);
        const char *found = json_string(json, json_member(json, row, "found"), NULL);
        const char *is = json_string(json, json_member(json, row, "result"), NULL);

        if (strcmp(is, result) != 0 || !strstr(found, words))
                fail_msg("%s %s: %s, %s", topic, name, is, found);
}

static void a_daemon_that_is_well_passes(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct json_document *json;
        struct run_result ran;
        char process[64];

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "doctor", "--json", "--model", env_path("TOY_MODEL"));
        json = parse(&ran);
        snprintf(process, sizeof(process), "process %d of user ", (int)fixture->pid);
        expect(json, "daemon", "socket", "ok", fixture->socket);
        expect(json, "daemon", "answer", "ok", process);
        expect(json, "daemon", "version", "ok", "and so is the daemon's");
        expect(json, "memory", "free", "ok", "the model has ");
        expect(json, "processors", "instructions", "ok", "the cpu backend chooses ");
        json_free(json);
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* Its exit status says that a check failed: the path was given, and nothing is there. */
static void without_a_daemon_it_says_what_to_do(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        fixture_stop(fixture);
        ran = RUN(fixture, NULL, SAMOVAR, "doctor");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.out, "daemon\n  fail  socket        "));
        assert_non_null(strstr(ran.out, "-> start one: samovard --socket "));
        assert_non_null(strstr(ran.out, " checks: "));
        assert_null(strchr(ran.out, '\x1b'));
        run_result_free(&ran);
}

static void a_model_that_is_missing_fails(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        ran = RUN(fixture, NULL, SAMOVAR, "doctor", "--model", "/nowhere/x.gguf");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.out, "/nowhere/x.gguf: No such file or directory"));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "doctor", "x");
        assert_int_equal(ran.status, 2);
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void a_daemon_that_is_stopped_is_not_waited_for_long(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct json_document *json;
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        kill(fixture->pid, SIGSTOP);
        ran = RUN(fixture, NULL, SAMOVAR, "doctor", "--json", "--timeout", "1");
        kill(fixture->pid, SIGCONT);
        assert_int_equal(ran.status, 1);
        json = parse(&ran);
        expect(json, "daemon", "answer", "fail", "did not answer within 1000 ms");
        json_free(json);
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* Changes one byte in the middle of the file. */
static void change_byte(const char *path)
{
        FILE *file = fopen(path, "r+e");
        int byte;

        assert_non_null(file);
        assert_int_equal(fseek(file, 4000, SEEK_SET), 0);
        byte = getc(file);
        assert_int_equal(fseek(file, 4000, SEEK_SET), 0);
        assert_int_not_equal(putc(byte ^ 1, file), EOF);
        assert_int_equal(fclose(file), 0);
}

static void expect_models(const struct daemon_fixture *fixture, const char *flag,
                          const char *result, const char *words)
{
        struct run_result ran = RUN(fixture, NULL, SAMOVAR, "doctor", "--json", flag);
        struct json_document *json = parse(&ran);

        expect(json, "models", "files", result, words);
        json_free(json);
        run_result_free(&ran);
}

static void a_pulled_model_that_was_changed_is_found(void **state)
{
        struct daemon_fixture *fixture = *state;
        char folder[128], copy[128], pulled[192];
        struct run_result ran;

        START_DAEMON(fixture, "--threads", "1");
        snprintf(folder, sizeof(folder), "%s/models", fixture->directory);
        snprintf(copy, sizeof(copy), "%s/toy.gguf", fixture->directory);
        snprintf(pulled, sizeof(pulled), "%s/toy/toy.gguf", folder);
        setenv("SAMOVAR_MODELS", folder, 1);
        ran = RUN(fixture, NULL, "/bin/cp", env_path("TOY_MODEL"), copy);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "pull", copy);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
        expect_models(fixture, "--any-uid", "ok", "1 pulled model, ");
        ran = RUN(fixture, NULL, SAMOVAR, "doctor", "--json", "--model", "toy");
        assert_non_null(strstr(ran.out, "the model has "));
        run_result_free(&ran);
        expect_models(fixture, "--digests", "ok", "all bytes have the digests of their source");
        change_byte(pulled);
        expect_models(fixture, "--any-uid", "ok", "sizes are right");
        expect_models(fixture, "--digests", "fail", "the SHA-256 of toy.gguf has changed");
        assert_int_equal(truncate(pulled, 4000), 0);
        expect_models(fixture, "--any-uid", "fail", "toy.gguf has 4000 bytes, not ");
        unsetenv("SAMOVAR_MODELS");
        fixture_stop(fixture);
}

static void samovar_http_is_found_at_its_port(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct bridge_fixture bridge = { 0 };
        struct json_document *json;
        struct run_result ran;
        char port[16];

        START_DAEMON(fixture, "--threads", "1");
        START_BRIDGE(&bridge, fixture, NULL);
        bridge_await_daemon(&bridge);
        snprintf(port, sizeof(port), "%u", bridge.port);
        ran = RUN(fixture, NULL, SAMOVAR, "doctor", "--json", "--http-port", port);
        json = parse(&ran);
        expect(json, "http", "127.0.0.1", "ok", "samovar-http listens");
        expect(json, "http", "health", "ok", "has a daemon with a loaded model");
        json_free(json);
        run_result_free(&ran);
        bridge_stop(&bridge);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_daemon_that_is_well_passes),
                DAEMON_TEST(without_a_daemon_it_says_what_to_do),
                DAEMON_TEST(a_model_that_is_missing_fails),
                DAEMON_TEST(a_daemon_that_is_stopped_is_not_waited_for_long),
                DAEMON_TEST(a_pulled_model_that_was_changed_is_found),
                DAEMON_TEST(samovar_http_is_found_at_its_port),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "SAMOVAR", "SAMOVAR_HTTP", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
