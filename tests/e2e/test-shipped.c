/* A daemon that is started without a model serves the shipped one, and says which that is. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/e2e/harness.h"

#define FILE_NAME "teaspoon-q8_0.gguf"

/* Runs a shell line with the house's folder as $1. */
static struct ran shell(const struct house *house, const char *line)
{
        return RUN(house, NULL, "/bin/sh", "-c", line, "sh", house->directory);
}

static void lay_model(const struct house *house)
{
        struct ran ran = shell(house, "mkdir $1/models && cp $BABBLE $1/models/" FILE_NAME);

        assert_int_equal(ran.status, 0);
        ran_free(&ran);
}

static void without_a_model_the_one_that_comes_along_is_served(void **state)
{
        const struct house *house = *state;
        char line[256];
        struct ran ran;

        lay_model(house);
        snprintf(line, sizeof(line),
                 "samovard: serving teaspoon, the model that comes with samovar "
                 "(%s/models/" FILE_NAME "); --model serves another\n",
                 house->directory);
        ran = shell(house, "SAMOVAR_MODELS=$1/models $SAMOVARD --check");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, line));
        assert_non_null(strstr(ran.out, "samovard: model teaspoon, "));
        ran_free(&ran);

        ran = shell(house, "SAMOVAR_MODELS=$1/models $SAMOVARD --check --model $BABBLE");
        assert_int_equal(ran.status, 0);
        assert_null(strstr(ran.out, "teaspoon"));
        ran_free(&ran);
}

/* The layout of a build tree: daemon/samovard, and models/ beside that folder. */
static void a_daemon_that_is_not_installed_finds_the_model_beside_it(void **state)
{
        const struct house *house = *state;
        struct ran ran;

        lay_model(house);
        ran = shell(house, "mkdir $1/daemon && cp $SAMOVARD $1/daemon && "
                           "$1/daemon/samovard --check");
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "/models/" FILE_NAME "); --model serves another\n"));
        ran_free(&ran);
}

static void a_model_that_did_not_come_along_is_one_clear_line(void **state)
{
        const struct house *house = *state;
        char line[256];
        struct ran ran = shell(house, "SAMOVAR_MODELS=$1 $SAMOVARD");

        assert_int_equal(ran.status, 1);
        snprintf(line, sizeof(line),
                 "samovard: there is no model to serve: " FILE_NAME
                 ", which comes with samovar, is not in %s; give --model PATH\n",
                 house->directory);
        assert_string_equal(ran.err, line);
        assert_string_equal(ran.out, "");
        ran_free(&ran);
}

static void the_help_says_so(void **state)
{
        struct ran ran = RUN(*state, NULL, given("SAMOVARD"), "--help");

        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.out, "default: teaspoon, which comes with samovar\n"));
        ran_free(&ran);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(without_a_model_the_one_that_comes_along_is_served),
                STORY(a_daemon_that_is_not_installed_finds_the_model_beside_it),
                STORY(a_model_that_did_not_come_along_is_one_clear_line),
                STORY(the_help_says_so),
        };

        need((const char *const[]){ "SAMOVARD", "BABBLE", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
