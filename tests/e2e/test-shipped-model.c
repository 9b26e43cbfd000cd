/* A daemon that is started without a model serves the shipped one, and says which that is. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/daemon-fixture.h"

#define FILE_NAME "teaspoon-q8_0.gguf"

/* Runs a shell line with the fixture's folder as $1. */
static struct run_result shell(const struct daemon_fixture *fixture, const char *line)
{
        return RUN(fixture, NULL, "/bin/sh", "-c", line, "sh", fixture->directory);
}

static void lay_model(const struct daemon_fixture *fixture)
{
        struct run_result ran =
                shell(fixture, "mkdir $1/models && cp $TOY_MODEL $1/models/" FILE_NAME);

        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
}

static void serves_the_shipped_model_by_default(void **state)
{
        const struct daemon_fixture *fixture = *state;
        char line[256];
        struct run_result ran;

        lay_model(fixture);
        snprintf(line, sizeof(line),
                 "samovard: serving teaspoon, the model that comes with samovar "
                 "(%s/models/" FILE_NAME "); --model serves another\n",
                 fixture->directory);
        ran = shell(fixture, "SAMOVAR_MODELS=$1/models $SAMOVARD --check");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, line));
        assert_non_null(strstr(ran.out, "samovard: model teaspoon, "));
        run_result_free(&ran);

        /* A daemon that has a file of settings is told what to write there. */
        ran = shell(fixture, "echo ctx = 64 >$1/conf && "
                             "SAMOVAR_MODELS=$1/models $SAMOVARD --check --config $1/conf");
        assert_int_equal(ran.status, 0);
        snprintf(line, sizeof(line), "; model = PATH in %s/conf serves another\n",
                 fixture->directory);
        assert_non_null(strstr(ran.out, line));
        run_result_free(&ran);

        ran = shell(fixture, "SAMOVAR_MODELS=$1/models $SAMOVARD --check --model $TOY_MODEL");
        assert_int_equal(ran.status, 0);
        assert_null(strstr(ran.out, "teaspoon"));
        run_result_free(&ran);
}

/* The files of the model say how to draw, and requests that say nothing follow them. */
static void draws_as_the_model_says_unless_the_request_does(void **state)
{
        struct daemon_fixture *fixture = *state;
        char model[256];
        struct run_result ran;

        snprintf(model, sizeof(model), "%s/models/" FILE_NAME, env_path("SOURCES"));
        START_DAEMON(fixture, "--threads", "1", "--model", model);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "ask", "--stats", "Hello");
        assert_int_equal(ran.status, 0);
        assert_non_null(
                strstr(ran.err, "sampling: temperature 0.3, top-k 0, top-p 1, min-p 0.1, "));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "ask", "--stats", "--temp", "2", "--min-p",
                  "0", "--max-tokens", "5", "Hello");
        assert_non_null(strstr(ran.err, "sampling: temperature 2, top-k 0, top-p 1, min-p 0, "));
        run_result_free(&ran);
        ran = RUN(fixture, NULL, env_path("SAMOVAR"), "status", "--json");
        assert_non_null(strstr(ran.out, "\"temperature\""));
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* The layout of a build tree: daemon/samovard, and models/ beside that folder. */
static void finds_the_shipped_model_in_a_build_tree(void **state)
{
        const struct daemon_fixture *fixture = *state;
        struct run_result ran;

        lay_model(fixture);
        ran = shell(fixture, "mkdir $1/daemon && cp $SAMOVARD $1/daemon && "
                             "$1/daemon/samovard --check");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "/models/" FILE_NAME "); --model serves another\n"));
        run_result_free(&ran);
}

static void reports_a_missing_shipped_model_in_one_line(void **state)
{
        const struct daemon_fixture *fixture = *state;
        char line[512];
        struct run_result ran =
                shell(fixture, "mkdir -p $1/bin/daemon && cp $SAMOVARD $1/bin/daemon "
                               "&& SAMOVAR_MODELS=$1 $1/bin/daemon/samovard");

        assert_int_equal(ran.status, 1);
        snprintf(line, sizeof(line),
                 "samovard: there is no model to serve: " FILE_NAME
                 ", which comes with samovar, is not in %s, nor in %s/bin/models, nor in ",
                 fixture->directory, fixture->directory);
        assert_memory_equal(ran.err, line, strlen(line));
        assert_non_null(strstr(ran.err, "; name another with the setting model (--model PATH)\n"));
        assert_ptr_equal(strchr(ran.err, '\n'), ran.err + strlen(ran.err) - 1);
        assert_string_equal(ran.out, "");
        run_result_free(&ran);
}

static void the_help_names_the_shipped_model(void **state)
{
        struct run_result ran = RUN(*state, NULL, env_path("SAMOVARD"), "--help");

        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "default: teaspoon, which comes with samovar\n"));
        run_result_free(&ran);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(draws_as_the_model_says_unless_the_request_does),
                DAEMON_TEST(serves_the_shipped_model_by_default),
                DAEMON_TEST(finds_the_shipped_model_in_a_build_tree),
                DAEMON_TEST(reports_a_missing_shipped_model_in_one_line),
                DAEMON_TEST(the_help_names_the_shipped_model),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "TOY_MODEL", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
