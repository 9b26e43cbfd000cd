/*
 * The forms that the samovar command asks of an answer, and the parts of an answer that it shows:
 * the answer on stdout, calls as lines of it, and reasoning on stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"
#include "tests/e2e/chat-model.h"

#define SAMOVAR env_path("SAMOVAR")

static void start_teaspoon(struct daemon_fixture *fixture)
{
        char model[256];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--model", model, "--threads", "1", "--constraints-kept", "0");
}

/* Runs `samovar ask` with these words of the shell, in the folder of the fixture. */
static struct run_result ask(const struct daemon_fixture *fixture, const char *words)
{
        char line[1024];

        snprintf(line, sizeof(line), "cd %s && %s ask %s </dev/null", fixture->directory, SAMOVAR,
                 words);
        return RUN(fixture, NULL, "/bin/sh", "-c", line);
}

static void expect(const struct daemon_fixture *fixture, const char *words, const char *out)
{
        struct run_result ran = ask(fixture, words);

        if (ran.status || strcmp(ran.out, out))
                fail_msg("ask %s: %d: %s%s", words, ran.status, ran.out, ran.err);
        run_result_free(&ran);
}

static void expect_refusal(const struct daemon_fixture *fixture, const char *words, int status,
                           const char *said)
{
        struct run_result ran = ask(fixture, words);

        if (ran.status != status || *ran.out || !strstr(ran.err, said))
                fail_msg("ask %s: %d: %s%s", words, ran.status, ran.out, ran.err);
        run_result_free(&ran);
}

static void lay(const struct daemon_fixture *fixture, const char *name, const char *text)
{
        char path[128];

        write_chat_file(fixture, name, text, path);
}

static void an_answer_obeys_the_schema_of_a_file(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;
        struct json_document *json = NULL;
        char why[80];

        start_teaspoon(fixture);
        lay(fixture, "schema.json",
            "{\"properties\": {\"sure\": {\"const\": true}, \"kind\": {\"enum\": [\"bug\"]}},\n"
            " \"required\": [\"sure\", \"kind\"], \"type\": \"object\"}\n");
        ran = ask(fixture, "--schema schema.json The door does not open.");
        assert_int_equal(ran.status, 0);
        assert_int_equal(json_parse(ran.out, strlen(ran.out), 100, &json, why, sizeof(why)), 0);
        /* Nothing but the members that it names. */
        assert_int_equal(json_count(json, 0), 2);
        assert_string_equal(json_string(json, json_member(json, 0, "kind"), NULL), "bug");
        json_free(json);
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void an_answer_has_the_form_of_a_grammar_an_expression_or_a_choice(void **state)
{
        struct daemon_fixture *fixture = *state;

        start_teaspoon(fixture);
        lay(fixture, "grammar.gbnf", "root ::= \"<\" two two \">\" # four\ntwo ::= \"ab\"\n");
        expect(fixture, "--grammar grammar.gbnf hi", "<abab>\n");
        expect(fixture, "--regex '(xy){3}\"\\\\' hi", "xyxyxy\"\\\n");
        expect(fixture, "--choice '\"left\"' hi", "\"left\"\n");
        expect(fixture, "--choice left --choice left hi", "left\n");
        expect(fixture, "--constraint '{\"choices\": [\"one\"]}' hi", "one\n");
        fixture_stop(fixture);
}

static void forms_that_are_wrong_are_refused_with_their_flag(void **state)
{
        struct daemon_fixture *fixture = *state;

        start_teaspoon(fixture);
        lay(fixture, "list.json", "[1]");
        lay(fixture, "half.json", "{\"type\": ");
        lay(fixture, "two.json", "{}, \"space\": \"free\"");
        lay(fixture, "object.json", "{}");
        expect_refusal(fixture, "--choice a --regex b hi", 2,
                       "--regex and --choice both say what the answer must be");
        expect_refusal(fixture, "--beams 2 --choice a hi", 2, "--beams searches without a form");
        expect_refusal(fixture, "--beams 2 --calls-max 1 hi", 2, "leave out --calls-max");
        expect_refusal(fixture, "--schema list.json hi", 1,
                       "--schema list.json: schema, at \"\": ");
        expect_refusal(fixture, "--schema half.json hi", 1, "half.json is no JSON: ");
        expect_refusal(fixture, "--schema two.json hi", 1, "two.json is no JSON: ");
        expect_refusal(fixture, "--schema none.json hi", 1, "none.json: No such file");
        expect_refusal(fixture, "--regex '(' hi", 1, "--regex (: regular expression, byte 1: ");
        expect_refusal(fixture, "--tools object.json hi", 1,
                       "object.json: it is not a list of tools");
        expect_refusal(fixture, "--tools half.json hi", 1, "half.json: it is not a list of tools");
        expect_refusal(fixture, "--tools list.json --messages list.json", 2,
                       "leave out --tools, and write them there");
        fixture_stop(fixture);
}

#define TOOLS                                                                                      \
        "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": "    \
        "\"Get the weather of a city\", \"parameters\": {\"type\": \"object\", \"properties\": "   \
        "{\"city\": {\"type\": \"string\"}}, \"required\": [\"city\"]}}}]"

static void calls_are_lines_of_the_answer(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        start_teaspoon(fixture);
        lay(fixture, "tools.json", TOOLS);
        ran = ask(fixture, "--temp 0 --tools tools.json Is it warm in Athens?");
        assert_int_equal(ran.status, 0);
        assert_ptr_equal(strstr(ran.out, "get_weather({\"city\": \"Athens\"})\n"), ran.out);
        run_result_free(&ran);
        ran = ask(fixture, "--temp 0 --json --tools tools.json Is it warm in Athens?");
        assert_int_equal(ran.status, 0);
        assert_non_null(
                strstr(ran.out, "{\"kind\":\"call\",\"text\":\"get_weather\",\"number\":0}"));
        assert_non_null(strstr(ran.out, "{\"kind\":\"call_end\",\"text\":\"\",\"number\":0}"));
        assert_non_null(strstr(ran.out, "\"calls\":1,"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* The template opens reasoning, and the model, whose weights are random, does not end it. */
static void reasoning_goes_to_stderr(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        start_chat_model(fixture, CHATML "{% if add_generation_prompt %}{{ '<think>\\n' }}"
                                         "{% if done %}{{ '\\n</think>\\n\\n' }}{% endif %}"
                                         "{% endif %}");
        ran = ask(fixture, "--max-tokens 8 --parts --ignore-eos hi");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.out, "\n");
        assert_true(strlen(ran.err) > 1);
        run_result_free(&ran);
        ran = ask(fixture, "--max-tokens 8 --ignore-eos hi");
        assert_true(strlen(ran.out) > 1);
        assert_string_equal(ran.err, "");
        run_result_free(&ran);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(an_answer_obeys_the_schema_of_a_file),
                DAEMON_TEST(an_answer_has_the_form_of_a_grammar_an_expression_or_a_choice),
                DAEMON_TEST(forms_that_are_wrong_are_refused_with_their_flag),
                DAEMON_TEST(calls_are_lines_of_the_answer),
                DAEMON_TEST(reasoning_goes_to_stderr),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
