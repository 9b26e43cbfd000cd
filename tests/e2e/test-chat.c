/* Conversations with a real daemon. */
#include <errno.h>
#include <samovar/client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/e2e/chat-model.h"

#define SAMOVAR env_path("SAMOVAR")

/* ---- conversations ---- */

struct messages {
        msgpack_sbuffer buffer;
        msgpack_packer packer;
};

static void put_text(struct messages *messages, const char *text)
{
        msgpack_pack_str_with_body(&messages->packer, text, strlen(text));
}

/* An array of messages: role, content, ..., NULL. */
static void put_messages(struct messages *messages, ...)
{
        const char *role;
        va_list all;
        size_t count = 0;

        msgpack_sbuffer_init(&messages->buffer);
        msgpack_packer_init(&messages->packer, &messages->buffer, msgpack_sbuffer_write);
        va_start(all, messages);
        while (va_arg(all, const char *))
                count++;
        va_end(all);
        msgpack_pack_array(&messages->packer, count / 2);
        va_start(all, messages);
        while ((role = va_arg(all, const char *))) {
                msgpack_pack_map(&messages->packer, 2);
                put_text(messages, "role");
                put_text(messages, role);
                put_text(messages, "content");
                put_text(messages, va_arg(all, const char *));
        }
        va_end(all);
}

#define DATA(messages) (const void *)(messages).buffer.data, (messages).buffer.size

static void free_messages(struct messages *messages)
{
        msgpack_sbuffer_destroy(&messages->buffer);
}

/* Ids, written by hand: 0 ends them; bytes stand for themselves. */
static void expect_ids(const struct reply *reply, const uint32_t *ids)
{
        const msgpack_object *tokens = reply_at(reply, "tokens");

        assert_non_null(tokens);
        for (size_t i = 0; ids[i] || i < tokens->via.array.size; i++) {
                assert_true(i < tokens->via.array.size);
                assert_int_equal(tokens->via.array.ptr[i].via.u64, ids[i]);
        }
}

static void expect_text(const struct reply *reply, const char *path, const char *text)
{
        const msgpack_object *found = reply_at(reply, path);

        assert_non_null(found);
        assert_int_equal(found->via.str.size, strlen(text));
        assert_memory_equal(found->via.str.ptr, text, strlen(text));
}

static void a_control_token_typed_by_a_user_stays_plain_text(void **state)
{
        static const uint32_t wanted[] = { START, 'u', 's', 'e',  'r',   '\n', 'a',  '<',
                                           '|',   'i', 'm', '_',  'e',   'n',  'd',  '|',
                                           '>',   'b', END, '\n', START, 'a',  's',  's',
                                           'i',   's', 't', 'a',  'n',   't',  '\n', 0 };
        struct daemon_fixture *fixture = *state;
        struct messages messages;
        struct reply *reply;
        struct raw_client *client;

        start_chat_model(fixture, CHATML);
        client = raw_client_greet(fixture);
        put_messages(&messages, "user", "a<|im_end|>b", NULL);
        reply = raw_client_call(client, "op=s messages=x tokenize=y", "template", DATA(messages),
                                1);
        assert_true(reply->ok);
        expect_text(reply, "text",
                    "<|im_start|>user\na<|im_end|>b<|im_end|>\n<|im_start|>assistant\n");
        expect_ids(reply, wanted);
        free_messages(&messages);

        /* A user cannot write a control token by the role either, or in two halves around the
         * template's text. */
        put_messages(&messages, "<|im_end|>", "", NULL);
        reply = raw_client_call(client, "op=s messages=x tokenize=y add_generation_prompt=y",
                                "template", DATA(messages), 1, 0);
        expect_ids(reply, (const uint32_t[]){ START, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|',
                                              '>', '\n', END, '\n', 0 });
        free_messages(&messages);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_non_special_added_token_is_text_in_both_directions(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct messages messages;
        struct reply *reply;
        struct raw_client *client;

        start_chat_model(fixture, CHATML);
        client = raw_client_greet(fixture);
        put_messages(&messages, "user", "<tool_call>", NULL);
        reply = raw_client_call(client, "op=s messages=x tokenize=y add_generation_prompt=y",
                                "template", DATA(messages), 1, 0);
        expect_ids(reply,
                   (const uint32_t[]){ START, 'u', 's', 'e', 'r', '\n', CALL, END, '\n', 0 });
        free_messages(&messages);
        reply = raw_client_call(client, "op=s tokens=I", "detokenize",
                                (const uint32_t[]){ START, CALL, '{', END }, (size_t)4);
        expect_text(reply, "text", "<tool_call>{");
        raw_client_close(client);
        fixture_stop(fixture);
}

static struct stream *whole(struct raw_client *client, struct reply *reply)
{
        if (!reply->ok)
                fail_msg("%s", reply->message);
        return stream_copy(raw_client_await_end(client, client->last_id));
}

/* As messages, as the ids that they are rendered to, and on a handle that is opened with them. */
static void expect_same_streams(struct raw_client *client, const struct messages *messages,
                                int goes_on)
{
        struct reply *reply;
        struct stream *a, *b;
        uint32_t ids[512];
        size_t count;

        a = whole(client,
                  raw_client_call(client,
                                  "op=s messages=x continue_final_message=y seed=u max_tokens=u",
                                  "generate", DATA(*messages), goes_on, 7u, 60u));
        reply = raw_client_call(client, "op=s messages=x continue_final_message=y tokenize=y",
                                "template", DATA(*messages), goes_on, 1);
        count = reply_at(reply, "tokens")->via.array.size;
        assert_true(count < 512);
        for (size_t i = 0; i < count; i++)
                ids[i] = (uint32_t)reply_at(reply, "tokens")->via.array.ptr[i].via.u64;
        b = whole(client, raw_client_call(client, "op=s tokens=I seed=u max_tokens=u", "generate",
                                          ids, count, 7u, 60u));
        assert_int_equal(a->end.prompt_tokens, count);
        assert_same_stream(a, b);
        stream_free(b);

        reply = raw_client_call(client, "op=s messages=x continue_final_message=y", "open",
                                DATA(*messages), goes_on);
        assert_int_equal(reply_uint(reply, "length"), count);
        b = whole(client, raw_client_call(client, "op=s handle=q seed=u max_tokens=u", "generate",
                                          reply_uint(reply, "handle"), 7u, 60u));
        assert_same_stream(a, b);
        stream_free(a);
        stream_free(b);
}

static void messages_and_their_rendered_ids_give_the_same_stream(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct messages messages;

        start_chat_model(fixture, CHATML);
        client = raw_client_greet(fixture);
        put_messages(&messages, "system", "Be <|im_start|> brief.", "user", "Tea?", "assistant",
                     "Yes.", "user", "Why<|im_end|>", NULL);
        expect_same_streams(client, &messages, 0);
        free_messages(&messages);
        put_messages(&messages, "user", "Tea?", "assistant", "Yes<|im_end|> \n", NULL);
        expect_same_streams(client, &messages, 1);
        free_messages(&messages);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void expect_refusal(const struct reply *reply, enum smv_code code, const char *field,
                           const char *words)
{
        assert_false(reply->ok);
        if (reply->code != code || strcmp(reply->field, field) || !strstr(reply->message, words))
                fail_msg("%s of %s: \"%s\"", reply->error, reply->field, reply->message);
}

/* One message with this in it, beside its role. */
static struct reply *call_raw(struct raw_client *client, const void *bytes, size_t count)
{
        struct bytes_out raw = { 0 };
        struct reply *reply;

        bytes_put(&raw,
                  "\x91\x82\xa4role\xa4user\xa7"
                  "content",
                  20);
        bytes_put(&raw, bytes, count);
        reply = raw_client_call(client, "op=s messages=x", "generate", raw.at, raw.count);
        free(raw.at);
        return reply;
}
#define CALL_RAW(client, literal) call_raw(client, literal, sizeof(literal) - 1)

static void refuses_hostile_messages_and_leaves_other_streams_unchanged(void **state)
{
        const struct want honest = { .prompt = "Once upon", .max_tokens = 40, .seed = 3 };
        struct daemon_fixture *fixture = *state;
        struct stream *before, *after;
        struct bytes_out many = { 0 }, nested = { 0 };
        struct raw_client *client, *deep;
        struct messages messages;

        start_chat_model(fixture, CHATML);
        client = raw_client_greet(fixture);
        before = stream_copy(raw_client_complete(client, &honest));
        expect_refusal(CALL_RAW(client, "\xc4\1x"), SMV_BAD_VALUE, "messages", "binary at index 0");
        expect_refusal(CALL_RAW(client, "\xa1\xff"), SMV_BAD_VALUE, "messages", "UTF-8 at index 0");
        expect_refusal(CALL_RAW(client, "\x81\1\1"), SMV_BAD_VALUE, "messages",
                       "a key that is not");
        expect_refusal(CALL_RAW(client, "\xcb\x7f\xf0\0\0\0\0\0\0"), SMV_BAD_VALUE, "messages",
                       "not finite");
        expect_refusal(CALL_RAW(client, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), SMV_BAD_VALUE,
                       "messages", "above 9223372036854775807");
        expect_refusal(CALL_RAW(client, "\x82\xa1"
                                        "a\1\xa1"
                                        "a\2"),
                       SMV_BAD_VALUE, "messages", "a key twice");
        expect_refusal(raw_client_call(client, "op=s messages=x", "generate", "\x91\x81\xa4role\1",
                                       (size_t)8),
                       SMV_BAD_VALUE, "messages", "no role");
        expect_refusal(raw_client_call(client, "op=s messages=x", "generate", "\x90", (size_t)1),
                       SMV_BAD_VALUE, "messages", "0 elements");
        expect_refusal(raw_client_call(client, "op=s messages=s", "generate", "hello"),
                       SMV_BAD_VALUE, "messages", "is a text; it must be an array");
        put_messages(&messages, "user", "hello", NULL);
        expect_refusal(raw_client_call(client, "op=s messages=x prompt=s", "generate",
                                       DATA(messages), "hello"),
                       SMV_BAD_FIELD, "messages", "only one of them");
        expect_refusal(raw_client_call(client, "op=s messages=x template_vars=x", "generate",
                                       DATA(messages), "\x81\xa8messages\xc0", (size_t)11),
                       SMV_BAD_VALUE, "template_vars", "may not set messages");
        free_messages(&messages);

        bytes_put(&many, "\xdd\0\1\0\0", 5);
        for (uint32_t i = 0; i < 1u << 16; i++)
                bytes_put(&many, "\xc0", 1);
        expect_refusal(call_raw(client, many.at, many.count), SMV_BAD_VALUE, "messages",
                       "more than 65536 values");
        free(many.at);
        after = stream_copy(raw_client_complete(client, &honest));
        assert_same_stream(before, after);

        /* Too deep a frame is no frame: that ends the connection, and no other. */
        bytes_put(&nested, "\x91\x81\xa4role", 7);
        for (int i = 0; i < 30; i++)
                bytes_put(&nested, "\x91", 1);
        bytes_put(&nested, "\1", 1);
        deep = raw_client_greet(fixture);
        raw_client_send_frame(deep, "op=s id=u messages=x", "generate", 9u, nested.at,
                              nested.count);
        expect_refusal(raw_client_await_reply(deep, 9), SMV_BAD_FRAME, "", "nested deeper than 32");
        free(nested.at);
        raw_client_await_hangup(deep);
        raw_client_close(deep);
        assert_true(raw_client_call(client, "op=s", "status")->ok);
        stream_free(before);
        stream_free(after);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* Each conversation is as much work as a template is allowed to do; the test does not wait for the
 * last one. */
static void cancels_do_not_wait_for_templates_being_rendered(void **state)
{
        enum { MANY = 12 };
        struct daemon_fixture *fixture = *state;
        struct bytes_out frames = { 0 };
        struct raw_client *client;
        struct messages messages;

        start_chat_model(fixture,
                         "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}"
                         "{% endfor %}");
        client = raw_client_greet(fixture);
        put_messages(&messages, "user", "hello", NULL);
        for (unsigned i = 0; i < MANY; i++)
                frame_put(&frames, "op=s id=u messages=x", "generate", 100 + i, DATA(messages));
        for (unsigned i = 0; i < MANY; i++)
                frame_put(&frames, "op=s id=u stream=u", "cancel", 200 + i, 100 + i);
        raw_client_send(client, frames.at, frames.count);
        for (unsigned i = 0; i < MANY; i++)
                assert_true(raw_client_await_reply(client, 200 + i)->ok);
        for (unsigned i = 0; i < MANY; i++)
                assert_int_equal(raw_client_await_reply(client, 100 + i)->code, SMV_CANCELLED);
        assert_false(raw_client_call(client, "op=s messages=x", "generate", DATA(messages))->ok);
        free(frames.at);
        free_messages(&messages);
        raw_client_close(client);
        fixture_stop(fixture);
}

static void a_broken_template_is_reported_and_the_model_is_still_served(void **state)
{
        const struct want honest = { .prompt = "Once", .max_tokens = 5 };
        struct daemon_fixture *fixture = *state;
        struct reply *reply;
        struct raw_client *client;
        struct messages messages;
        struct run_result ran;
        char model[128];

        start_chat_model(fixture, "{% bad %}");
        assert_true(fixture_logged(fixture,
                                   "warn no_template model=chat why=\"this model's chat template "
                                   "cannot be used: "));
        client = raw_client_greet(fixture);
        assert_true(raw_client_complete(client, &honest)->ended);
        put_messages(&messages, "user", "hello", NULL);
        reply = raw_client_call(client, "op=s messages=x", "generate", DATA(messages));
        expect_refusal(reply, SMV_NO_TEMPLATE, "messages",
                       "this model's chat template cannot be used: ");
        reply = raw_client_call(client, "op=s messages=x", "template", DATA(messages));
        expect_refusal(reply, SMV_NO_TEMPLATE, "messages", "cannot be used: ");
        reply = raw_client_call(client, "op=s", "status");
        assert_int_equal(reply_at(reply, "status.model.chat")->type, MSGPACK_OBJECT_BOOLEAN);
        assert_false(reply_at(reply, "status.model.chat")->via.boolean);
        free_messages(&messages);
        raw_client_close(client);
        snprintf(model, sizeof(model), "%s/chat.gguf", fixture->directory);
        ran = RUN(fixture, NULL, SAMOVAR, "inspect", model);
        assert_non_null(strstr(ran.out, "\nchat        no: this model's chat template cannot"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void refuses_messages_if_the_model_has_no_template(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct messages messages;
        struct run_result ran;

        start_chat_model(fixture, NULL);
        client = raw_client_greet(fixture);
        put_messages(&messages, "user", "hello", NULL);
        expect_refusal(raw_client_call(client, "op=s messages=x", "generate", DATA(messages)),
                       SMV_NO_TEMPLATE, "messages", "this model has no chat template");
        free_messages(&messages);
        raw_client_close(client);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "Once upon", "--max-tokens", "20", "--temp", "0");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.err, "samovar: this model has no chat template: it continues the "
                                     "text\n");
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--system", "Be brief.", "Once upon");
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "no chat template"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* ---- the command ---- */

static void expect_out(struct run_result ran, const char *out)
{
        assert_string_equal(ran.err, "");
        assert_string_equal(ran.out, out);
        assert_int_equal(ran.status, 0);
        run_result_free(&ran);
}

static void the_ask_command_uses_the_chat_template(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct stream *stream;
        struct raw_client *client;
        struct messages messages;
        struct run_result ran;

        start_chat_model(fixture, CHATML);
        expect_out(
                RUN(fixture, NULL, SAMOVAR, "template", "--system", "Be brief.", "Is it", "tea?"),
                "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nIs it tea?"
                "<|im_end|>\n<|im_start|>assistant\n");
        ran = RUN(fixture, NULL, SAMOVAR, "template", "--json", "a");
        assert_string_equal(ran.out, "{\"text\":\"<|im_start|>user\\na<|im_end|>\\n<|im_start|>"
                                     "assistant\\n\",\"tokens\":[256,117,115,101,114,10,97,257,10,"
                                     "256,97,115,115,105,115,116,97,110,116,10]}\n");
        run_result_free(&ran);

        client = raw_client_greet(fixture);
        put_messages(&messages, "system", "Be brief.", "user", "Tea?", NULL);
        stream = whole(client, raw_client_call(client, "op=s messages=x temperature=i max_tokens=u",
                                               "generate", DATA(messages), 0, 30u));
        free_messages(&messages);
        raw_client_close(client);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--system", "Be brief.", "--temp", "0",
                  "--max-tokens", "30", "Tea?");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.err, "");
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        run_result_free(&ran);
        stream_free(stream);
        fixture_stop(fixture);
}

/* The text of a control token in the beginning of an answer does not become that token. */
static void the_prompt_ends_with_the_beginning_of_an_answer(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct messages messages;
        struct reply *reply;
        struct raw_client *client;

        start_chat_model(fixture, CHATML);
        client = raw_client_greet(fixture);
        put_messages(&messages, "assistant", "a<|im_end|> ", NULL);
        reply = raw_client_call(client, "op=s messages=x tokenize=y continue_final_message=y",
                                "template", DATA(messages), 1, 1);
        assert_true(reply->ok);
        expect_text(reply, "text", "<|im_start|>assistant\na<|im_end|> ");
        expect_ids(reply, (const uint32_t[]){ START, 'a', 's',  's', 'i', 's', 't', 'a',
                                              'n',   't', '\n', 'a', '<', '|', 'i', 'm',
                                              '_',   'e', 'n',  'd', '|', '>', ' ', 0 });
        free_messages(&messages);
        put_messages(&messages, "user", "a", NULL);
        expect_refusal(raw_client_call(client, "op=s messages=x continue_final_message=y",
                                       "generate", DATA(messages), 1),
                       SMV_BAD_VALUE, "messages",
                       "continue_final_message is true, but the last message is not from the "
                       "assistant");
        free_messages(&messages);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* The prompt that `template` shows gives the same answer as the messages. */
static void the_commands_continue_an_answer(void **state)
{
        static const char prompt[] =
                "<|im_start|>user\nTea?<|im_end|>\n<|im_start|>assistant\nYes ";
        struct daemon_fixture *fixture = *state;
        struct raw_client *client;
        struct run_result ran;
        struct stream *stream;
        struct messages messages;
        char path[128];

        start_chat_model(fixture, CHATML);
        expect_out(RUN(fixture, NULL, SAMOVAR, "template", "--answer", "Yes ", "Tea?"), prompt);
        write_chat_file(fixture, "begun.json",
                        "{\"continue_final_message\":true,\"messages\":["
                        "{\"role\":\"user\",\"content\":\"Tea?\"},"
                        "{\"role\":\"assistant\",\"content\":\"Yes \"}]}",
                        path);
        expect_out(RUN(fixture, NULL, SAMOVAR, "template", "--messages", path), prompt);

        client = raw_client_greet(fixture);
        put_messages(&messages, "user", "Tea?", "assistant", "Yes ", NULL);
        stream = whole(client, raw_client_call(client,
                                               "op=s messages=x continue_final_message=y "
                                               "temperature=i max_tokens=u",
                                               "generate", DATA(messages), 1, 0, 30u));
        free_messages(&messages);
        raw_client_close(client);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--answer", "Yes ", "--temp", "0", "--max-tokens",
                  "30", "Tea?");
        assert_int_equal(ran.status, 0);
        assert_string_equal(ran.err, "");
        assert_memory_equal(ran.out, stream->text, stream->text_bytes);
        run_result_free(&ran);
        stream_free(stream);

        write_chat_file(fixture, "open.json",
                        "{\"add_generation_prompt\":false,"
                        "\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}",
                        path);
        expect_out(RUN(fixture, NULL, SAMOVAR, "template", "--messages", path),
                   "<|im_start|>user\na<|im_end|>\n");
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--messages", path, "--answer", "x");
        assert_int_equal(ran.status, 2);
        assert_string_equal(ran.err, "samovar: --messages has the whole conversation: leave out "
                                     "--answer\n");
        run_result_free(&ran);
        write_chat_file(fixture, "odd.json",
                        "{\"messages\":[{\"role\":\"user\"}],\"continue_final_message\":1}", path);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--messages", path);
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "neither true nor false"));
        run_result_free(&ran);
        fixture_stop(fixture);
}

/* The daemon refuses the field `messages`, whatever the command has made it of. */
static void a_refusal_names_what_the_user_gave(void **state)
{
        struct daemon_fixture *fixture = *state;
        char text[40000], file[40100], path[128], named[200];
        struct run_result ran;

        start_chat_model(fixture, CHATML);
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        ran = RUN(fixture, NULL, SAMOVAR, "ask", text);
        assert_int_equal(ran.status, 1);
        assert_memory_equal(ran.err, "samovar: the question: the prompt has ", 38);
        run_result_free(&ran);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--system", text, "Tea?");
        assert_int_equal(ran.status, 1);
        assert_memory_equal(ran.err, "samovar: --system and the question: the prompt has ", 51);
        run_result_free(&ran);

        snprintf(file, sizeof(file), "[{\"role\": \"user\", \"content\": \"%s\"}]", text);
        write_chat_file(fixture, "long.json", file, path);
        ran = RUN(fixture, NULL, SAMOVAR, "ask", "--messages", path);
        assert_int_equal(ran.status, 1);
        snprintf(named, sizeof(named), "samovar: --messages %s: the prompt has ", path);
        assert_memory_equal(ran.err, named, strlen(named));
        run_result_free(&ran);
        fixture_stop(fixture);
}

static void the_command_sends_a_conversation_file_unchanged(void **state)
{
        struct daemon_fixture *fixture = *state;
        char path[128];

        start_chat_model(fixture, "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
                                  "{% if tools %}{{ tools[0].function.name }}{% endif %}"
                                  "{% if deep %}{{ n }}{{ deep[0].x[1] }}{% endif %}");
        write_chat_file(
                fixture, "talk.json",
                " [ {\"role\": \"user\", \"content\": \"a\\\"\\n\\u00e9\\ud83d\\ude00\"} ] ", path);
        expect_out(RUN(fixture, NULL, SAMOVAR, "template", "--messages", path),
                   "user:a\"\n\xc3\xa9\xf0\x9f\x98\x80;");
        write_chat_file(
                fixture, "talk.json",
                "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\"}}],\n"
                "\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
                "{\"role\":\"tool\",\"content\":\"b\",\"tool_calls\":[]}],"
                "\"template_vars\":{\"n\":-7,\"deep\":[{\"x\":[1.5,true,null,{}]}]}}\n",
                path);
        expect_out(RUN(fixture, NULL, SAMOVAR, "template", "--messages", path),
                   "user:a;tool:b;weather-7True");
        fixture_stop(fixture);
}

static void refuses_an_invalid_conversation_file_and_names_the_byte(void **state)
{
        static const struct {
                const char *text, *reason;
        } cases[] = {
                { "", "it ends too early, at byte 0" },
                { "[{\n", "it ends too early, at byte 3" },
                { "{\"messages\"", "it ends too early, at byte 11" },
                { "[x]", "it has something that is not a JSON value, at byte 1" },
                { "{}", "it has something else where a text must be, at byte 1" },
                { "[{\"role\":\"user\"", "it ends too early, at byte 15" },
                { "[1 2]", "it lacks a comma, or a bracket, at byte 3" },
                { "[\"a", "it ends within a text, at byte 3" },
                { "[\"\\ud800\"]", "it has half of a surrogate pair, at byte 8" },
                { "[1e999]", "it has something that is not a JSON value, at byte 6" },
                { "[99999999999999999999]",
                  "it has an integer that does not fit 64 bits, at byte 21" },
                { "[] x", "it has something after its end, at byte 3" },
                { "{\"tools\":[]}", "it has no messages, at byte 12" },
                { "{\"tools\":[],\"other\":1}",
                  "it has more than messages, tools, template_vars, add_generation_prompt and "
                  "continue_final_message, or one of them twice, at byte 20" },
                { "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "it is nested too deep, at byte 31" },
        };
        struct daemon_fixture *fixture = *state;
        char path[128], wanted[256];

        start_chat_model(fixture, CHATML);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct run_result ran;

                write_chat_file(fixture, "talk.json", cases[i].text, path);
                ran = RUN(fixture, NULL, SAMOVAR, "ask", "--messages", path);
                snprintf(wanted, sizeof(wanted), "samovar: %s: %s\n", path, cases[i].reason);
                assert_string_equal(ran.err, wanted);
                assert_int_equal(ran.status, 1);
                run_result_free(&ran);
        }
        fixture_stop(fixture);
}

/* The library's own calls: all tokens in two answers, and a list of some. */
static void the_library_reads_the_vocabulary_in_chunks(void **state)
{
        static const uint32_t some[] = { CALL, 'a', END };
        struct smv_connect options = { SMV_SIZE(smv_connect) };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct daemon_fixture *fixture = *state;
        const struct smv_piece *pieces;
        size_t count, vocab = 1, at;
        struct smv_client *client;

        start_chat_model(fixture, CHATML);
        options.socket = fixture->socket;
        assert_int_equal(smv_connect(&options, &client), 0);
        for (at = 0; at < vocab; at += count) {
                assert_int_equal(smv_vocabulary(client, NULL, (uint32_t)at, at ? 0 : 3, &pieces,
                                                &count, &vocab),
                                 0);
                assert_true(count && at + count <= vocab);
                for (size_t i = 0; i < count; i++) {
                        size_t id = at + i;

                        assert_int_equal(pieces[i].kind, id < START   ? SMV_PIECE_TEXT
                                                         : id < CALL  ? SMV_PIECE_CONTROL
                                                         : id == CALL ? SMV_PIECE_USER
                                                                      : SMV_PIECE_UNUSED);
                        if (id < 256)
                                assert_int_equal((uint8_t)*pieces[i].bytes, id);
                        assert_int_equal(pieces[i].count, id < 256      ? 1
                                                          : id == START ? 12
                                                          : id == END   ? 10
                                                          : id == CALL  ? 11
                                                                        : 0);
                }
        }
        assert_int_equal(vocab, 300);
        assert_int_equal(smv_pieces(client, NULL, some, 3, &pieces), 0);
        assert_memory_equal(pieces[0].bytes, "<tool_call>", pieces[0].count);
        assert_memory_equal(pieces[1].bytes, "a", pieces[1].count);
        assert_memory_equal(pieces[2].bytes, "<|im_end|>", pieces[2].count);
        assert_int_equal(smv_vocabulary(client, NULL, 300, 0, &pieces, &count, &vocab), -EREMOTEIO);
        smv_error(client, &problem);
        assert_string_equal(problem.field, "from");
        assert_string_equal(problem.message, "from is 300; the largest id is 299");
        smv_close(client);
        fixture_stop(fixture);
}

static void the_command_prints_control_tokens_only_if_it_is_asked(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct run_result ran;

        start_chat_model(fixture, CHATML);
        for (int shown = 0; shown < 2; shown++) {
                ran = RUN(fixture, NULL, SAMOVAR, "complete", "Once", "--temp", "100", "--seed",
                          "3", "--max-tokens", "1500", "--ignore-eos",
                          shown ? "--control-text" : "--stats");
                assert_int_equal(ran.status, 0);
                assert_true(!!memmem(ran.out, ran.out_bytes, "<|im_start|>", 12) == shown);
                run_result_free(&ran);
        }
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_control_token_typed_by_a_user_stays_plain_text),
                DAEMON_TEST(a_non_special_added_token_is_text_in_both_directions),
                DAEMON_TEST(messages_and_their_rendered_ids_give_the_same_stream),
                DAEMON_TEST(refuses_hostile_messages_and_leaves_other_streams_unchanged),
                DAEMON_TEST(cancels_do_not_wait_for_templates_being_rendered),
                DAEMON_TEST(a_broken_template_is_reported_and_the_model_is_still_served),
                DAEMON_TEST(refuses_messages_if_the_model_has_no_template),
                DAEMON_TEST(the_ask_command_uses_the_chat_template),
                DAEMON_TEST(the_prompt_ends_with_the_beginning_of_an_answer),
                DAEMON_TEST(the_commands_continue_an_answer),
                DAEMON_TEST(a_refusal_names_what_the_user_gave),
                DAEMON_TEST(the_command_sends_a_conversation_file_unchanged),
                DAEMON_TEST(the_library_reads_the_vocabulary_in_chunks),
                DAEMON_TEST(the_command_prints_control_tokens_only_if_it_is_asked),
                DAEMON_TEST(refuses_an_invalid_conversation_file_and_names_the_byte),
        };

        require_env_paths((const char *const[]){ "SAMOVARD", "SAMOVAR", "TOY_MODEL",
                                                 "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
