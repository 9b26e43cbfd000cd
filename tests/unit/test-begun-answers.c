/*
 * A last message of the assistant goes on, in each dialect: which requests ask the daemon to
 * continue it.
 */
#include "tests/unit/call-rig.h"

#include <stdio.h>
#include <string.h>

#include "bridge/anthropic/request.h"
#include "bridge/ollama/request.h"
#include "bridge/openai/messages.h"
#include "bridge/openai/response-items.h"

/* How the prompt is to end, as the daemon is asked. */
enum end { NEW_ANSWER, CONTINUED, CLOSED };

static enum end end_of(const struct smv_generate *options)
{
        assert_false(options->continue_final_message && options->add_generation_prompt);
        if (options->continue_final_message)
                return CONTINUED;
        return options->set & SMV_SET_ADD_GENERATION_PROMPT && !options->add_generation_prompt
                       ? CLOSED
                       : NEW_ANSWER;
}

static struct smv_generate read_chat(struct call_rig *rig, const char *body, struct fields *fields)
{
        struct smv_generate options = { SMV_SIZE(smv_generate) };
        struct conversation conversation;

        call_rig_start(rig, "/v1/chat/completions", body);
        conversation = (struct conversation){ .arena = &rig->call->arena, .json = rig->call->json };
        *fields = (struct fields){ .json = rig->call->json };
        openai_read_messages(fields, &conversation);
        openai_read_end(fields, &conversation);
        if (!fields->failed)
                assert_int_equal(conversation_pack(&conversation, &options), 0);
        return options;
}

#define USER      "{\"role\":\"user\",\"content\":\"q\"}"
#define ASSISTANT "{\"role\":\"assistant\",\"content\":\"a \"}"
#define CALLS     "\"tool_calls\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"
#define MESSAGES  "{\"messages\":["

struct chat {
        const char *body;
        enum end end;
};

static void check_chats(const struct chat *cases, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                struct fields fields;
                struct call_rig rig;
                struct smv_generate options = read_chat(&rig, cases[i].body, &fields);

                assert_false(fields.failed);
                if (end_of(&options) != cases[i].end)
                        fail_msg("%s: %d", cases[i].body, end_of(&options));
                call_rig_end(&rig);
        }
}

static void a_last_message_of_the_assistant_goes_on(void **state)
{
        static const struct chat cases[] = {
                { MESSAGES USER "]}", NEW_ANSWER },
                { MESSAGES USER "," ASSISTANT "]}", CONTINUED },
                { MESSAGES ASSISTANT "]}", CONTINUED },
                { MESSAGES ASSISTANT "," USER "]}", NEW_ANSWER },
                { MESSAGES USER ",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\","
                                "\"text\":\"a\"}]}]}",
                  CONTINUED },
                { MESSAGES USER ",{\"role\":\"assistant\",\"content\":\"\"}]}", NEW_ANSWER },
                { MESSAGES USER ",{\"role\":\"assistant\",\"content\":null}]}", NEW_ANSWER },
                { MESSAGES USER ",{\"role\":\"assistant\",\"content\":\"a\"," CALLS "}]}",
                  NEW_ANSWER },
                /* A system message behind it becomes a question. */
                { MESSAGES USER "," ASSISTANT ",{\"role\":\"system\",\"content\":\"s\"}]}",
                  NEW_ANSWER },
        };

        (void)state;
        check_chats(cases, sizeof(cases) / sizeof(*cases));
}

static void the_switches_of_a_request_win(void **state)
{
#define BEGUN MESSAGES USER "," ASSISTANT "]"
#define ASKED MESSAGES USER "]"
        static const struct chat cases[] = {
                { BEGUN ",\"continue_final_message\":true}", CONTINUED },
                { BEGUN ",\"continue_final_message\":true,\"add_generation_prompt\":false}",
                  CONTINUED },
                { BEGUN ",\"continue_final_message\":false}", NEW_ANSWER },
                { BEGUN ",\"continue_final_message\":false,\"add_generation_prompt\":true}",
                  NEW_ANSWER },
                { BEGUN ",\"continue_final_message\":false,\"add_generation_prompt\":false}",
                  CLOSED },
                { BEGUN ",\"add_generation_prompt\":true}", NEW_ANSWER },
                { BEGUN ",\"add_generation_prompt\":false}", CONTINUED },
                { BEGUN ",\"add_generation_prompt\":null,\"continue_final_message\":null}",
                  CONTINUED },
                { ASKED ",\"add_generation_prompt\":false}", CLOSED },
                { ASKED ",\"continue_final_message\":false}", NEW_ANSWER },
                { MESSAGES "{\"role\":\"assistant\",\"content\":\"\"}],"
                           "\"continue_final_message\":true}",
                  CONTINUED },
        };

        (void)state;
        check_chats(cases, sizeof(cases) / sizeof(*cases));
}

static void refuses_switches_that_cannot_be_obeyed(void **state)
{
        static const struct {
                const char *body, *why;
        } cases[] = {
                { BEGUN ",\"continue_final_message\":true,\"add_generation_prompt\":true}",
                  "both true" },
                { ASKED ",\"continue_final_message\":true}", "not from the assistant" },
                { MESSAGES "{\"role\":\"assistant\",\"content\":\"a\"," CALLS
                           "}],\"continue_final_message\":true}",
                  "has tool_calls" },
                { BEGUN ",\"continue_final_message\":1}", "continue_final_message" },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct fields fields;
                struct call_rig rig;

                read_chat(&rig, cases[i].body, &fields);
                assert_true(fields.failed);
                assert_int_equal(fields.failure.class, FAILURE_REQUEST);
                assert_string_equal(fields.failure.param, "continue_final_message");
                if (!strstr(fields.failure.message, cases[i].why))
                        fail_msg("'%s' is not about '%s'", fields.failure.message, cases[i].why);
                call_rig_end(&rig);
        }
}

static void the_last_message_of_anthropic_goes_on(void **state)
{
        static const struct {
                const char *last;
                enum end end;
        } cases[] = {
                { "\"a\"", CONTINUED },
                { "[{\"type\":\"text\",\"text\":\"a\"}]", CONTINUED },
                { "[{\"type\":\"thinking\",\"thinking\":\"t\"}]", NEW_ANSWER },
                { "[{\"type\":\"thinking\",\"thinking\":\"t\"},{\"type\":\"text\",\"text\":\"a\"}]",
                  CONTINUED },
                { "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_use\",\"id\":\"i\","
                  "\"name\":\"f\",\"input\":{}}]",
                  NEW_ANSWER },
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct anthropic_request request = { 0 };
                struct fields fields = { 0 };
                struct call_rig rig;
                char body[512];

                snprintf(body, sizeof(body),
                         "{\"model\":\"m\",\"messages\":[" USER
                         ",{\"role\":\"assistant\",\"content\":%s}]}",
                         cases[i].last);
                call_rig_start(&rig, "/v1/messages", body);
                fields.json = rig.call->json;
                anthropic_read_prompt(rig.call, &fields, &request);
                assert_false(fields.failed);
                if (end_of(&request.options) != cases[i].end)
                        fail_msg("%s: %d", cases[i].last, end_of(&request.options));
                call_rig_end(&rig);
        }
}

static void the_last_message_of_ollama_goes_on(void **state)
{
        static const char *const bodies[] = { "{\"model\":\"m\",\"messages\":[" USER "]}",
                                              "{\"model\":\"m\",\"messages\":[" USER "," ASSISTANT
                                              "]}" };

        (void)state;
        for (int i = 0; i < 2; i++) {
                struct ollama_request request = { .chat = true };
                struct fields fields = { 0 };
                struct call_rig rig;

                call_rig_start(&rig, "/api/chat", bodies[i]);
                fields.json = rig.call->json;
                ollama_read(rig.call, &fields, &request);
                assert_false(fields.failed);
                assert_int_equal(end_of(&request.options), i ? CONTINUED : NEW_ANSWER);
                call_rig_end(&rig);
        }
}

/* The items of a body become the messages `wanted`, and the prompt ends in this way. */
static void check_items(const char *body, bool stored, const char *wanted, enum end end)
{
        struct smv_generate options = { SMV_SIZE(smv_generate) };
        struct conversation conversation;
        struct fields fields = { 0 };
        struct bytes said = { 0 };
        struct call_rig rig;

        call_rig_start(&rig, "/v1/responses", body);
        conversation = (struct conversation){ .arena = &rig.call->arena, .json = rig.call->json };
        fields.json = rig.call->json;
        response_read_input(&fields, &conversation, field_of(&fields, 0, "input"), stored);
        assert_false(fields.failed);
        assert_int_equal(conversation_pack(&conversation, &options), 0);
        call_rig_unpack(&options.packed_messages, &said);
        assert_string_equal(said.at, wanted);
        assert_int_equal(end_of(&options), end);
        bytes_deinit(&said);
        call_rig_end(&rig);
}

static void the_last_item_of_a_response_goes_on(void **state)
{
        (void)state;
        check_items("{\"input\":[" USER "," ASSISTANT "]}", false, "[" USER "," ASSISTANT "]",
                    CONTINUED);
        check_items("{\"input\":[{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\","
                    "\"arguments\":\"{}\"}]}",
                    false,
                    "[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c\","
                    "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{}}}]}]",
                    NEW_ANSWER);
}

#define MARK  "{\"type\":\"" RESPONSE_CONTINUES "\"}"
#define MORE  "{\"role\":\"assistant\",\"content\":\"b\"}"
#define WHOLE "{\"role\":\"assistant\",\"content\":\"a b\"}"

static void a_stored_response_is_one_message_with_its_beginning(void **state)
{
        (void)state;
        check_items("{\"input\":[" USER "," ASSISTANT "," MARK "," MORE "," USER "]}", true,
                    "[" USER "," WHOLE "," USER "]", NEW_ANSWER);
        check_items("{\"input\":[" USER "," ASSISTANT "," MARK "," MORE "]}", true,
                    "[" USER "," WHOLE "]", CONTINUED);
        /* Nothing came, or a call. */
        check_items("{\"input\":[" USER "," ASSISTANT "," MARK "," USER "," MORE "]}", true,
                    "[" USER "," ASSISTANT "," USER "," MORE "]", CONTINUED);
        check_items("{\"input\":[" USER "," ASSISTANT "," MARK
                    ",{\"type\":\"function_call\",\"name\":\"f\"}]}",
                    true,
                    "[" USER ",{\"role\":\"assistant\",\"content\":\"a \",\"tool_calls\":["
                    "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{}}}]}]",
                    NEW_ANSWER);
        check_items("{\"input\":[" MARK "," MORE "]}", true, "[" MORE "]", CONTINUED);
        /* A client cannot say so. */
        check_items("{\"input\":[" USER "," ASSISTANT "," MARK "," MORE "]}", false,
                    "[" USER "," ASSISTANT "," MORE "]", CONTINUED);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_last_message_of_the_assistant_goes_on),
                cmocka_unit_test(the_switches_of_a_request_win),
                cmocka_unit_test(refuses_switches_that_cannot_be_obeyed),
                cmocka_unit_test(the_last_message_of_anthropic_goes_on),
                cmocka_unit_test(the_last_message_of_ollama_goes_on),
                cmocka_unit_test(the_last_item_of_a_response_goes_on),
                cmocka_unit_test(a_stored_response_is_one_message_with_its_beginning),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
