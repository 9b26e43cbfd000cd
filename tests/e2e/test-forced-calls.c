/*
 * Calls by grammar, as a client of the library sees them: the shipped model is asked all kinds of
 * things, and must call tools.
 */
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/reader.h"
#include "tests/e2e/daemon-fixture.h"
#include "tests/e2e/honest-client.h"
#include "tests/e2e/packed-messages.h"

#include <msgpack.h>

#define CALLS_MOST 8u
#define TEXT_MOST  4096u
#define ASKED      50u

/* ---- what is asked ---- */

/* A tool with two whole numbers; both are required. */
static void pack_tool(msgpack_packer *to, const char *name, const char *const keys[2])
{
        msgpack_pack_map(to, 2);
        pack_pair(to, "type", "function");
        pack_text(to, "function");
        msgpack_pack_map(to, 3);
        pack_pair(to, "name", name);
        pack_text(to, "strict");
        msgpack_pack_true(to);
        pack_text(to, "parameters");
        msgpack_pack_map(to, 4);
        pack_pair(to, "type", "object");
        pack_text(to, "additionalProperties");
        msgpack_pack_false(to);
        pack_text(to, "required");
        msgpack_pack_array(to, 2);
        pack_text(to, keys[0]);
        pack_text(to, keys[1]);
        pack_text(to, "properties");
        msgpack_pack_map(to, 2);
        for (unsigned i = 0; i < 2; i++) {
                pack_text(to, keys[i]);
                msgpack_pack_map(to, 1);
                pack_pair(to, "type", "integer");
        }
}

static const char *const add_keys[2] = { "a", "b" }, *const move_keys[2] = { "x", "y" };

static void pack_tools(msgpack_sbuffer *to)
{
        msgpack_packer packer;

        msgpack_sbuffer_init(to);
        msgpack_packer_init(&packer, to, msgpack_sbuffer_write);
        msgpack_pack_array(&packer, 2);
        pack_tool(&packer, "add", add_keys);
        pack_tool(&packer, "move", move_keys);
}

struct question {
        msgpack_sbuffer messages, tools;
        struct smv_generate ask;
};

static struct question make_question(const char *text)
{
        struct question question = { .ask = { SMV_SIZE(smv_generate), .temperature = 1,
                                              .max_tokens = 400, .parts = 1 } };

        pack_messages(&question.messages, text);
        pack_tools(&question.tools);
        question.ask.packed_messages =
                (struct smv_packed){ question.messages.data, question.messages.size };
        question.ask.packed_tools = (struct smv_packed){ question.tools.data, question.tools.size };
        return question;
}

static void free_question(struct question *question)
{
        msgpack_sbuffer_destroy(&question->messages);
        msgpack_sbuffer_destroy(&question->tools);
}

/* ---- what comes back ---- */

struct answer {
        char text[TEXT_MOST], names[CALLS_MOST][16], arguments[CALLS_MOST][TEXT_MOST];
        uint32_t calls, whole;
        struct smv_event end;
};

static void take_part(struct answer *answer, const struct smv_part *part, const char *text)
{
        char *to = part->kind == SMV_PART_CALL        ? answer->names[answer->calls++]
                   : part->kind == SMV_PART_ARGUMENTS ? answer->arguments[part->call]
                                                      : answer->text;

        assert_int_equal(part->flags, 0);
        assert_true(answer->calls <= CALLS_MOST && strlen(to) + part->bytes < TEXT_MOST);
        answer->whole += part->kind == SMV_PART_CALL_END;
        if (part->kind != SMV_PART_CALL_END)
                strncat(to, text, part->bytes);
}

static void ask(struct smv_client *client, const struct smv_generate *how, struct answer *answer)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        uint32_t stream;

        memset(answer, 0, sizeof(*answer));
        assert_int_equal(smv_generate(client, how, &stream), 0);
        for (;;) {
                size_t at = 0;

                assert_int_equal(smv_next(client, &event, TIMEOUT_MS), 1);
                if (event.kind == SMV_EVENT_END)
                        break;
                for (uint32_t i = 0; i < event.part_count; at += event.parts[i++].bytes)
                        take_part(answer, &event.parts[i], event.text + at);
        }
        answer->end = event;
}

/* Two whole numbers by these keys, and nothing else. */
static void assert_numbers(const char *arguments, const char *const keys[2])
{
        struct json_document *json = NULL;
        char why[128];

        assert_int_equal(json_parse(arguments, strlen(arguments), 16, &json, why, sizeof(why)), 0);
        assert_int_equal(json_count(json, 0), 2);
        for (unsigned i = 0; i < 2; i++) {
                const char *number = json_number(json, json_member(json, 0, keys[i]));

                assert_non_null(number);
                assert_null(strpbrk(number, ".eE"));
        }
        json_free(json);
}

static void assert_calls(const struct answer *answer)
{
        assert_int_equal(answer->end.reason, SMV_END_EOS);
        assert_int_equal(answer->calls, answer->whole);
        for (uint32_t i = 0; i < answer->calls; i++) {
                bool adds = !strcmp(answer->names[i], "add");

                assert_true(adds || !strcmp(answer->names[i], "move"));
                assert_numbers(answer->arguments[i], adds ? add_keys : move_keys);
        }
}

/* ---- tests ---- */

static void start(struct daemon_fixture *fixture, struct smv_client **ret_client)
{
        struct smv_connect at = { SMV_SIZE(smv_connect), .socket = fixture->socket };
        char model[256];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        /* No constraint is kept: at the end the memory is compared. */
        START_DAEMON(fixture, "--model", model, "--threads", "1", MANY_CONNECTS,
                     "--constraints-kept", "0");
        at.socket = fixture->socket;
        assert_int_equal(smv_connect(&at, ret_client), 0);
}

static void stop(struct daemon_fixture *fixture, struct smv_client *client)
{
        smv_close(client);
        fixture_stop(fixture);
}

static const char *prompt_of(unsigned i)
{
        static const char *const words[] = { "Why is the sky blue?", "Add 3 and 4.",
                                             "Tell me a story.", "Move to the left", "Hello!" };
        static char text[64];

        snprintf(text, sizeof(text), "%s (%u)", words[i % 5], i);
        return text;
}

static void required_answers_are_valid_calls_for_fifty_prompts(void **state)
{
        static struct answer answer;
        struct smv_client *client;

        start(*state, &client);
        for (unsigned i = 0; i < ASKED; i++) {
                struct question question = make_question(prompt_of(i));

                question.ask.tool_choice = SMV_TOOLS_REQUIRED;
                question.ask.calls_max = 1 + i % 3;
                question.ask.seed = i;
                ask(client, &question.ask, &answer);
                assert_calls(&answer);
                assert_string_equal(answer.text, "");
                assert_in_range(answer.calls, 1, question.ask.calls_max);
                free_question(&question);
        }
        stop(*state, client);
}

static void a_named_tool_is_called_once(void **state)
{
        static const char *const names[] = { "add", "move" };
        static struct answer answer;
        struct smv_client *client;

        start(*state, &client);
        for (unsigned i = 0; i < ASKED; i++) {
                struct question question = make_question(prompt_of(i));

                question.ask.tool_choice = SMV_TOOLS_REQUIRED;
                question.ask.allowed_tools = &names[i % 2];
                question.ask.allowed_tool_count = 1;
                question.ask.calls_max = 1;
                question.ask.seed = i;
                ask(client, &question.ask, &answer);
                assert_calls(&answer);
                assert_int_equal(answer.calls, 1);
                assert_string_equal(answer.names[0], names[i % 2]);
                free_question(&question);
        }
        stop(*state, client);
}

static void a_model_that_decides_makes_only_calls_that_strict_tools_want(void **state)
{
        static struct answer answer;
        struct smv_client *client;
        unsigned calls = 0;

        start(*state, &client);
        for (unsigned i = 0; i < ASKED; i++) {
                struct question question = make_question(prompt_of(i));

                question.ask.calls_max = 2;
                question.ask.seed = i;
                ask(client, &question.ask, &answer);
                if (answer.end.reason == SMV_END_EOS)
                        assert_calls(&answer);
                calls += answer.calls;
                free_question(&question);
        }
        assert_true(calls > 0);
        stop(*state, client);
}

static void a_constraint_beside_tools_leaves_both(void **state)
{
        static struct answer answer;
        struct smv_client *client;

        start(*state, &client);
        for (unsigned i = 0; i < ASKED; i++) {
                struct question question = make_question(prompt_of(i));

                question.ask.constraint = "{\"choices\":[\"yes\",\"no\"]}";
                question.ask.seed = i;
                ask(client, &question.ask, &answer);
                assert_calls(&answer);
                assert_true(answer.calls
                                    ? !*answer.text
                                    : !strcmp(answer.text, "yes") || !strcmp(answer.text, "no"));
                free_question(&question);
        }
        stop(*state, client);
}

static void without_tool_calls_what_looks_like_one_is_text(void **state)
{
        static struct answer answer;
        struct smv_client *client;

        start(*state, &client);
        for (unsigned i = 0; i < 10; i++) {
                struct question question = make_question("Add 3 and 4.");

                question.ask.tool_choice = SMV_TOOLS_NONE;
                question.ask.seed = i;
                ask(client, &question.ask, &answer);
                assert_int_equal(answer.calls, 0);
                free_question(&question);
        }
        stop(*state, client);
}

static void a_handle_goes_on_with_forced_calls(void **state)
{
        static struct answer answer;
        struct smv_client *client;

        start(*state, &client);
        for (unsigned i = 0; i < 10; i++) {
                struct question question = make_question(prompt_of(i));
                struct smv_generate on = question.ask;

                assert_int_equal(smv_handle_open(client, &question.ask, &on.handle, NULL), 0);
                on.packed_messages = (struct smv_packed){ 0 };
                on.tool_choice = SMV_TOOLS_REQUIRED;
                on.calls_max = 2;
                on.seed = i;
                ask(client, &on, &answer);
                assert_calls(&answer);
                assert_in_range(answer.calls, 1, 2);
                assert_int_equal(smv_handle_close(client, on.handle), 0);
                free_question(&question);
        }
        stop(*state, client);
}

static void refused(struct smv_client *client, const struct question *question, const char *field,
                    const char *words)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        uint32_t stream;

        assert_true(smv_generate(client, &question->ask, &stream) != 0);
        smv_error(client, &problem);
        assert_true(problem.code == SMV_BAD_VALUE || problem.code == SMV_BAD_FIELD);
        assert_string_equal(problem.field, field);
        if (!strstr(problem.message, words))
                fail_msg("\"%s\" has not \"%s\"", problem.message, words);
}

static void wishes_that_cannot_be_kept_are_refused_by_name(void **state)
{
        static const char *const unknown[] = { "fly" };
        struct question question = make_question("hi");
        struct smv_client *client;

        start(*state, &client);
        question.ask.tool_choice = SMV_TOOLS_REQUIRED;
        question.ask.allowed_tools = unknown;
        question.ask.allowed_tool_count = 1;
        refused(client, &question, "tools", "fly");
        question.ask.allowed_tool_count = 0;
        question.ask.constraint = "{\"json\":true}";
        refused(client, &question, "constraint", "required");
        question.ask.constraint = NULL;
        question.ask.ignore_eos = 1;
        refused(client, &question, "ignore_eos", "calls");
        question.ask.ignore_eos = 0;
        question.ask.packed_tools = (struct smv_packed){ 0 };
        refused(client, &question, "tool_choice", "no tools");
        free_question(&question);
        stop(*state, client);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(required_answers_are_valid_calls_for_fifty_prompts),
                DAEMON_TEST(a_named_tool_is_called_once),
                DAEMON_TEST(a_model_that_decides_makes_only_calls_that_strict_tools_want),
                DAEMON_TEST(a_constraint_beside_tools_leaves_both),
                DAEMON_TEST(without_tool_calls_what_looks_like_one_is_text),
                DAEMON_TEST(a_handle_goes_on_with_forced_calls),
                DAEMON_TEST(wishes_that_cannot_be_kept_are_refused_by_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
