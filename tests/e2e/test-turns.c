/*
 * Conversations on a handle, turn by turn, with the shipped model: the history is what the chat
 * template makes of the whole conversation.
 */
#include <errno.h>
#include <samovar/client.h>
#include <stdio.h>
#include <string.h>

#include "tests/e2e/raw-client.h"

struct answer {
        char text[4096];
        size_t bytes;
        struct smv_event end;
};

static void take_answer(struct smv_client *client, struct answer *ret_answer)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        *ret_answer = (struct answer){ .bytes = 0 };
        while (smv_next(client, &event, TIMEOUT_MS) > 0 && event.kind != SMV_EVENT_END) {
                assert_true(ret_answer->bytes + event.text_bytes < sizeof(ret_answer->text));
                memcpy(ret_answer->text + ret_answer->bytes, event.text, event.text_bytes);
                ret_answer->bytes += event.text_bytes;
        }
        assert_int_equal(event.kind, SMV_EVENT_END);
        ret_answer->end = event;
}

static void ask(struct smv_client *client, const struct smv_message *messages, size_t count,
                uint64_t handle, uint32_t max_tokens, struct answer *ret_answer)
{
        const struct smv_generate options = { SMV_SIZE(smv_generate),
                                              .messages = handle ? NULL : messages,
                                              .message_count = handle ? 0 : count,
                                              .handle = handle,
                                              .max_tokens = max_tokens,
                                              .set = SMV_SET_TEMPERATURE };
        uint32_t stream;

        assert_int_equal(smv_generate(client, &options, &stream), 0);
        take_answer(client, ret_answer);
}

static struct smv_client *start(struct daemon_fixture *fixture)
{
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket };
        struct smv_client *client;
        char model[256];

        snprintf(model, sizeof(model), "%s/models/teaspoon-q8_0.gguf", env_path("SOURCES"));
        START_DAEMON(fixture, "--threads", "1", "--model", model);
        assert_int_equal(smv_connect(&where, &client), 0);
        return client;
}

/* The first answer ends with the model's end token, or it is cut after `first_tokens`. */
static void converse(struct smv_client *client, uint32_t first_tokens, enum smv_reason reason)
{
        struct smv_message messages[] = {
                { .role = "system", .content = "Answer shortly." },
                { .role = "user", .content = "Hello" },
                { .role = "assistant" },
                { .role = "user", .content = "What can I cook with rice?" },
                { .role = "assistant" },
                { .role = "user", .content = "What is 3 + 4?" },
        };
        struct smv_generate opening = { SMV_SIZE(smv_generate), .messages = messages,
                                        .message_count = 2 };
        struct smv_generate turn = { SMV_SIZE(smv_generate), .message_count = 1 };
        struct answer answers[3], whole; /* of the handle, turn by turn */
        uint64_t handle;
        size_t length;

        assert_int_equal(smv_handle_open(client, &opening, &handle, &length), 0);
        ask(client, NULL, 0, handle, first_tokens, &answers[0]);
        assert_int_equal(answers[0].end.reason, reason);
        for (size_t at = 3; at <= 5; at += 2) {
                struct answer *before = &answers[(at - 3) / 2], *now = before + 1;

                messages[at - 1].content = before->text;
                messages[at - 1].content_bytes = before->bytes;
                turn.messages = &messages[at];
                assert_int_equal(smv_handle_append_messages(client, handle, &turn, &length), 0);
                ask(client, NULL, 0, handle, 60, now);
                assert_int_equal(now->end.prompt_tokens, length);
                ask(client, messages, at + 1, 0, 60, &whole);
                assert_int_equal(whole.end.prompt_tokens, length);
                assert_int_equal(whole.end.cached_tokens, length - 1);
                assert_int_equal(whole.bytes, now->bytes);
                assert_memory_equal(whole.text, now->text, whole.bytes);
        }
        assert_int_equal(smv_handle_close(client, handle), 0);
}

static void a_turn_continues_an_answer_that_the_model_ended(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client = start(fixture);

        converse(client, 100, SMV_END_EOS);
        smv_close(client);
        fixture_stop(fixture);
}

static void a_turn_continues_an_answer_that_was_cut(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client = start(fixture);

        converse(client, 2, SMV_END_LENGTH);
        smv_close(client);
        fixture_stop(fixture);
}

/*
 * Opens a handle with the first message, reads an answer to it if `answers`, and appends the third
 * message.  The history must be what the template makes of all of them; the second one gets the
 * answer.
 */
static void expect_as_a_whole(struct smv_client *client, struct smv_message messages[3],
                              bool answers)
{
        struct smv_generate opening = { SMV_SIZE(smv_generate), .messages = messages,
                                        .message_count = 1 };
        const struct smv_generate turn = { SMV_SIZE(smv_generate), .messages = &messages[2],
                                           .message_count = 1 };
        struct answer first, next, whole;
        uint64_t handle;
        size_t length;

        assert_int_equal(smv_handle_open(client, &opening, &handle, NULL), 0);
        messages[1] = (struct smv_message){ .role = "assistant", .content = "" };
        if (answers) {
                ask(client, NULL, 0, handle, 40, &first);
                messages[1].content = first.text;
                messages[1].content_bytes = first.bytes;
        }
        assert_int_equal(smv_handle_append_messages(client, handle, &turn, &length), 0);
        ask(client, NULL, 0, handle, 40, &next);
        ask(client, messages, 3, 0, 40, &whole);
        assert_int_equal(whole.end.prompt_tokens, length);
        assert_int_equal(whole.end.cached_tokens, length - 1);
        assert_int_equal(whole.bytes, next.bytes);
        assert_memory_equal(whole.text, next.text, whole.bytes);
        assert_int_equal(smv_handle_close(client, handle), 0);
}

static void a_turn_may_have_every_role_that_the_template_takes(void **state)
{
        static const char *const roles[] = { "user", "system", "assistant", "tool", "bogus" };
        struct daemon_fixture *fixture = *state;
        struct smv_client *client = start(fixture);

        for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
                struct smv_message messages[3] = {
                        [0] = { .role = "user", .content = "Hello" },
                        [2] = { .role = roles[i], .content = "What can I cook with rice?" },
                };

                expect_as_a_whole(client, messages, true);
        }
        smv_close(client);
        fixture_stop(fixture);
}

static void a_turn_before_any_answer_follows_an_empty_one(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client = start(fixture);
        struct smv_message messages[3] = {
                [0] = { .role = "user", .content = "Hello" },
                [2] = { .role = "user", .content = "What can I cook with rice?" },
        };

        expect_as_a_whole(client, messages, false);
        smv_close(client);
        fixture_stop(fixture);
}

static void a_stream_with_keep_ms_needs_a_handle_with_keep_ms(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client = start(fixture);
        struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Once" };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct answer answer;
        uint64_t handle;
        uint32_t stream;

        for (uint32_t keep_ms = 0; keep_ms <= 60000; keep_ms += 60000) {
                options.handle = 0;
                options.prompt = "Once";
                options.keep_ms = keep_ms;
                assert_int_equal(smv_handle_open(client, &options, &handle, NULL), 0);
                options.prompt = NULL;
                options.handle = handle;
                options.keep_ms = 60000;
                options.max_tokens = 5;
                if (!keep_ms) {
                        assert_int_equal(smv_generate(client, &options, &stream), -EREMOTEIO);
                        smv_error(client, &problem);
                        assert_int_equal(problem.code, SMV_BAD_VALUE);
                        assert_string_equal(problem.field, "keep_ms");
                        continue;
                }
                assert_int_equal(smv_generate(client, &options, &stream), 0);
                assert_int_equal(smv_drop(client, smv_resume_id(client, stream)), 0);
                take_answer(client, &answer);
                assert_int_equal(smv_handle_close(client, handle), 0);
        }
        smv_close(client);
        fixture_stop(fixture);
}

/* The last answer of a turn that was begun goes on as in the whole conversation. */
static void a_turn_may_end_with_the_beginning_of_an_answer(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_client *client = start(fixture);
        struct smv_message messages[] = {
                { .role = "user", .content = "Hello" },
                { .role = "assistant" },
                { .role = "user", .content = "What can I cook with rice?" },
                { .role = "assistant", .content = "You can cook " },
        };
        struct smv_generate options = { SMV_SIZE(smv_generate), .messages = messages,
                                        .message_count = 1, .set = SMV_SET_TEMPERATURE,
                                        .max_tokens = 40 };
        struct answer first, next, whole;
        uint64_t handle;
        uint32_t stream;
        size_t length;

        assert_int_equal(smv_handle_open(client, &options, &handle, NULL), 0);
        ask(client, NULL, 0, handle, 40, &first);
        messages[1].content = first.text;
        messages[1].content_bytes = first.bytes;
        options.messages = &messages[2];
        options.message_count = 2;
        options.continue_final_message = 1;
        assert_int_equal(smv_handle_append_messages(client, handle, &options, &length), 0);
        ask(client, NULL, 0, handle, 40, &next);
        options.messages = messages;
        options.message_count = 4;
        assert_int_equal(smv_generate(client, &options, &stream), 0);
        take_answer(client, &whole);
        assert_int_equal(whole.end.prompt_tokens, length);
        assert_int_equal(whole.end.cached_tokens, length - 1);
        assert_int_equal(whole.bytes, next.bytes);
        assert_memory_equal(whole.text, next.text, whole.bytes);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_turn_continues_an_answer_that_the_model_ended),
                DAEMON_TEST(a_turn_continues_an_answer_that_was_cut),
                DAEMON_TEST(a_turn_may_end_with_the_beginning_of_an_answer),
                DAEMON_TEST(a_turn_may_have_every_role_that_the_template_takes),
                DAEMON_TEST(a_turn_before_any_answer_follows_an_empty_one),
                DAEMON_TEST(a_stream_with_keep_ms_needs_a_handle_with_keep_ms),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SOURCES", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
