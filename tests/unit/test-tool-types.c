/*
 * The types of a request's tools come to all of its streams, to forks, and to streams on handles.
 * The test is the text worker and the engine.
 */
#include "tests/unit/edge-text-worker.h"

#include "daemon/text/chat.h"
#include "daemon/text/parts/argument-types.h"
#include "daemon/text/parts/dialect.h"

static const char chatml[] = "{% for m in messages %}{{ m.content }}{% endfor %}"
                             "{# <tool_call> <function= <parameter= #}";

struct talk {
        struct edge_fixture *fixture;
        struct chat *chat;
        struct dialect dialect;
        struct client client;
};

static int set_up(void **state)
{
        struct talk *talk = calloc(1, sizeof(*talk));
        const struct chat_conf conf = { .plain = chatml };

        assert_int_equal(chat_open(&conf, &talk->chat), 0);
        talk->fixture = edge_fixture_new();
        *state = talk;
        return 0;
}

static int tear_down(void **state)
{
        struct talk *talk = *state;

        chat_close(talk->chat);
        free(talk);
        return 0;
}

static struct edge_fixture *begin(struct talk *talk)
{
        struct edge_fixture *fixture = talk->fixture;

        edge_fixture_start(fixture, false);
        dialect_open(&(struct dialect_conf){ .tokenizer = fixture->served.tokenizer,
                                             .templates = { chatml } },
                     &talk->dialect);
        assert_string_equal(talk->dialect.name, "qwen3-coder");
        fixture->served.chat = talk->chat;
        fixture->served.dialect = &talk->dialect;
        say_hello(fixture, &talk->client);
        return fixture;
}

static void end_talk(struct talk *talk)
{
        expect_nothing_held(talk->fixture, &talk->client);
        client_close(&talk->client);
        edge_fixture_close(talk->fixture);
}

static void put_map(struct wire_writer *writer, const char *key)
{
        wire_put_text(writer, key);
        wire_put_map(writer, 1);
}

/* The tool "f" has an argument "a", which is a string. */
static void put_conversation(struct wire_writer *writer)
{
        wire_put_text(writer, "messages");
        wire_put_array(writer, 1);
        wire_put_map(writer, 2);
        wire_put_text(writer, "role");
        wire_put_text(writer, "user");
        wire_put_text(writer, "content");
        wire_put_text(writer, "hello");
        wire_put_text(writer, "tools");
        wire_put_array(writer, 1);
        wire_put_map(writer, 2);
        wire_put_text(writer, "name");
        wire_put_text(writer, "f");
        put_map(writer, "parameters");
        put_map(writer, "properties");
        put_map(writer, "a");
        wire_put_text(writer, "type");
        wire_put_text(writer, "string");
}

static void ask(struct client *client, const char *op, uint32_t id, const char *field,
                uint64_t value, bool parts, bool conversation)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 2u + !!field + parts + 2 * conversation);
        put_head(&writer, op, id);
        if (field) {
                wire_put_text(&writer, field);
                wire_put_uint(&writer, value);
        }
        if (parts) {
                wire_put_text(&writer, "parts");
                wire_put_bool(&writer, true);
        }
        if (conversation)
                put_conversation(&writer);
        wire_end(&writer);
        send_all(client, &frame);
}

static void ask_fork(struct client *client, uint32_t id, const char *field, uint64_t number)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 4);
        put_head(&writer, "fork", id);
        wire_put_text(&writer, field);
        wire_put_uint(&writer, number);
        wire_put_text(&writer, "count");
        wire_put_uint(&writer, 1);
        wire_end(&writer);
        send_all(client, &frame);
}

static void expect_types(const struct request *request)
{
        assert_int_equal(argument_types_find(request->argument_types, "f", 1, "a", 1),
                         ARGUMENT_STRING);
        assert_int_equal(argument_types_find(request->argument_types, "f", 1, "b", 1),
                         ARGUMENT_ANY);
}

static void siblings_and_forks_have_the_types_of_their_request(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);

        ask(&talk->client, "generate", 5, "n", 2, true, true);
        do_job(fixture);
        do_job(fixture);
        assert_int_equal(reply_code(&talk->client, 5), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->live_count == 2);
        expect_types(fixture->live[0]);
        expect_types(fixture->live[1]);
        ask_fork(&talk->client, 10, "stream", 5);
        assert_int_equal(reply_code(&talk->client, 10), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->live_count == 3);
        /* the types stay until the last of them is gone */
        while (fixture->live_count) {
                struct request *request = fixture->live[0];
                uint32_t stream = request->stream;

                expect_types(request);
                end(fixture, request, SMV_END_EOS, SMV_OK);
                expect_end(&talk->client, stream);
        }
        end_talk(talk);
}

static void a_stream_without_parts_has_no_types(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);

        ask(&talk->client, "generate", 5, NULL, 0, false, true);
        do_job(fixture);
        do_job(fixture);
        assert_int_equal(reply_code(&talk->client, 5), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->live_count);
        assert_null(fixture->live[0]->argument_types);
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        expect_end(&talk->client, 5);
        end_talk(talk);
}

static uint64_t number_in_reply(struct client *client, uint32_t id, bool list)
{
        const msgpack_object *numbers;
        msgpack_unpacked reply;
        uint64_t number;

        assert_true(next_reply(client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), id);
        numbers = list ? get(&reply.data, "handles") : get(&reply.data, "handle");
        assert_non_null(numbers);
        number = list ? numbers->via.array.ptr[0].via.u64 : numbers->via.u64;
        drop_frame(client, &reply);
        return number;
}

static void streams_on_a_handle_have_the_types_of_its_tools(void **state)
{
        struct talk *talk = *state;
        struct edge_fixture *fixture = begin(talk);
        uint64_t handle, fork;

        ask(&talk->client, "open", 5, NULL, 0, false, true);
        do_job(fixture);
        do_job(fixture);
        handle = number_in_reply(&talk->client, 5, false);
        ask_fork(&talk->client, 6, "handle", handle);
        fork = number_in_reply(&talk->client, 6, true);
        /* the same tools again take the place of the first ones */
        ask(&talk->client, "append", 7, "handle", handle, false, true);
        do_job(fixture);
        do_job(fixture);
        assert_int_equal(reply_code(&talk->client, 7), SMV_OK);
        ask(&talk->client, "close", 8, "handle", handle, false, false);
        assert_int_equal(reply_code(&talk->client, 8), SMV_OK);
        ask(&talk->client, "generate", 9, "handle", fork, true, false);
        assert_int_equal(reply_code(&talk->client, 9), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->live_count);
        ask(&talk->client, "close", 10, "handle", fork, false, false);
        assert_int_equal(reply_code(&talk->client, 10), SMV_OK);
        expect_types(fixture->live[0]);
        end(fixture, fixture->live[0], SMV_END_CANCELLED, SMV_OK);
        expect_end(&talk->client, 9);
        end_talk(talk);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(siblings_and_forks_have_the_types_of_their_request,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_stream_without_parts_has_no_types, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(streams_on_a_handle_have_the_types_of_its_tools,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
