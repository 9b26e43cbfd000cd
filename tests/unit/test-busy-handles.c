/*
 * Holders: requests on a handle while another operation on it is under way, and clients that
 * leave during one.
 */
#include "tests/unit/edge-text-worker.h"

static void open_handle(struct wire_writer *writer, struct buffer *frame, const char *op,
                        uint32_t id, uint64_t handle)
{
        wire_begin(writer, frame);
        wire_put_map(writer, 4);
        put_head(writer, op, id);
        wire_put_text(writer, "handle");
        wire_put_uint(writer, handle);
}

static void ask_number(struct client *client, const char *op, uint32_t id, uint64_t handle,
                       const char *field, uint32_t value)
{
        struct wire_writer writer;
        struct buffer frame;

        buffer_init(&frame, 1 << 20);
        open_handle(&writer, &frame, op, id, handle);
        wire_put_text(&writer, field);
        wire_put_uint(&writer, value);
        wire_end(&writer);
        send_all(client, &frame);
}

static void ask_append(struct client *client, uint32_t id, uint64_t handle, const char *text)
{
        struct wire_writer writer;
        struct buffer frame;

        buffer_init(&frame, 1 << 20);
        open_handle(&writer, &frame, "append", id, handle);
        wire_put_text(&writer, text ? "text" : "tokens");
        if (text)
                wire_put_text(&writer, text);
        else
                wire_put_array(&writer, 1);
        if (!text)
                wire_put_uint(&writer, 65);
        wire_end(&writer);
        send_all(client, &frame);
}

static void ask_close(struct client *client, uint32_t id, uint64_t handle)
{
        struct wire_writer writer;
        struct buffer frame;

        buffer_init(&frame, 1 << 20);
        wire_begin(&writer, &frame);
        wire_put_map(&writer, 3);
        put_head(&writer, "close", id);
        wire_put_text(&writer, "handle");
        wire_put_uint(&writer, handle);
        wire_end(&writer);
        send_all(client, &frame);
}

static void ask_turn(struct client *client, uint32_t id, uint64_t handle)
{
        ask_number(client, "generate", id, handle, "max_tokens", 9);
}

/* A number in the next reply, which is ok and to this id. */
static uint64_t reply_number(struct client *client, uint32_t id, const char *name)
{
        msgpack_unpacked reply;
        uint64_t value;

        assert_true(next_reply(client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), id);
        assert_non_null(get(&reply.data, "ok"));
        value = get_uint(&reply.data, name);
        drop_frame(client, &reply);
        return value;
}

/* Of three tokens. */
static uint64_t hold(struct client *client)
{
        ask_tokens(client, "open", 90, (uint32_t[]){ 1, 2, 3 }, 3);
        return reply_number(client, 90, "handle");
}

static void expect_busy(struct client *client, uint64_t handle)
{
        ask_append(client, 91, handle, NULL);
        assert_int_equal(reply_code(client, 91), SMV_HANDLE_BUSY);
        ask_append(client, 92, handle, "x");
        assert_int_equal(reply_code(client, 92), SMV_HANDLE_BUSY);
        ask_number(client, "truncate", 93, handle, "length", 1);
        assert_int_equal(reply_code(client, 93), SMV_HANDLE_BUSY);
        ask_number(client, "fork", 94, handle, "count", 1);
        assert_int_equal(reply_code(client, 94), SMV_HANDLE_BUSY);
        ask_turn(client, 95, handle);
        assert_int_equal(reply_code(client, 95), SMV_HANDLE_BUSY);
}

/* Makes a token as the core does. */
static void make_token(struct edge_fixture *fixture, uint32_t token)
{
        struct sequence *sequence = &fixture->live[0]->sequence;

        sequence->tokens[sequence->token_count++] = token;
}

static void a_handle_is_busy_until_the_END_of_its_request_is_readable(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;
        uint64_t handle;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        say_hello(fixture, &other);
        handle = hold(&client);
        for (uint32_t i = 0; i < 50; i++) {
                ask_turn(&other, 5, handle);
                ENGINE_UNTIL(fixture, fixture->live_count == 1);
                assert_int_equal(fixture->live[0]->prompt_count, 3 + 3 * i);
                assert_int_equal(reply_code(&other, 5), SMV_OK);
                expect_busy(&client, handle);
                make_token(fixture, 70);
                make_token(fixture, 71);
                end(fixture, fixture->live[0], i % 2 ? SMV_END_EOS : SMV_END_ERROR, SMV_OK);
                expect_end(&other, 5);
                ask_append(&client, 6, handle, NULL);
                assert_int_equal(reply_number(&client, 6, "length"), 6 + 3 * i);
        }
        client_close(&client);
        client_close(&other);
        edge_fixture_close(fixture);
}

/* The second time its cancel and its end cross. */
static void closing_a_handle_cancels_its_generation(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;
        uint64_t handle;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        say_hello(fixture, &other);
        for (uint32_t i = 0; i < 2; i++) {
                fixture->lose_cancel = i;
                handle = hold(&client);
                ask_turn(&other, 5, handle);
                ENGINE_UNTIL(fixture, fixture->live_count == 1);
                assert_int_equal(reply_code(&other, 5), SMV_OK);
                ask_close(&other, 6, handle);
                assert_int_equal(reply_code(&other, 6), SMV_OK);
                ENGINE_UNTIL(fixture, !fixture->live_count);
                assert_int_equal(expect_end(&other, 5)->reason,
                                 i ? SMV_END_EOS : SMV_END_CANCELLED);
                ask_close(&client, 7, handle);
                assert_int_equal(reply_code(&client, 7), SMV_NO_HANDLE);
        }
        fixture->lose_cancel = false;
        client_close(&client);
        expect_nothing_held(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

static void frees_everything_if_owner_or_reader_disconnects_at_any_time(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other, witness;
        uint64_t handle;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &witness);
        for (uint32_t i = 0; i < 4; i++) {
                say_hello(fixture, &client);
                say_hello(fixture, &other);
                handle = hold(&client);
                ask_turn(i % 2 ? &client : &other, 5, handle);
                ENGINE_UNTIL(fixture, fixture->live_count == 1);
                assert_int_equal(reply_code(i % 2 ? &client : &other, 5), SMV_OK);
                client_close(i / 2 ? &client : &other);
                if (i == 1)
                        ask_cancel(&client, 8, 5);
                ENGINE_UNTIL(fixture, !fixture->live_count);
                client_close(i / 2 ? &other : &client);
                expect_nothing_held(fixture, &witness);
        }
        client_close(&witness);
        edge_fixture_close(fixture);
}

/* Refused where it is known; a handle whose first text never comes never was. */
static void a_handle_is_busy_while_its_text_is_tokenized(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, witness;
        struct text_job *job;
        uint64_t handle;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &witness);
        say_hello(fixture, &client);
        handle = hold(&client);
        ask_append(&client, 5, handle, "four");
        job = take_job(fixture);
        expect_busy(&witness, handle);
        job->result = job->work(job);
        give_back(fixture, job);
        assert_int_equal(reply_number(&client, 5, "length"), 7);

        ask_append(&client, 6, handle, "four");
        job = take_job(fixture);
        ask_close(&witness, 7, handle);
        assert_int_equal(reply_code(&witness, 7), SMV_OK);
        job->result = job->work(job);
        give_back(fixture, job);
        assert_int_equal(reply_code(&client, 6), SMV_NO_HANDLE);

        ask_text(&client, "open", 8, "prompt", "four", 4);
        job = take_job(fixture);
        ask_cancel(&client, 9, 8);
        assert_int_equal(reply_code(&client, 9), SMV_OK);
        job->result = job->work(job);
        give_back(fixture, job);
        assert_int_equal(reply_code(&client, 8), SMV_CANCELLED);

        handle = hold(&client);
        ask_text(&client, "open", 8, "prompt", "four", 4);
        ask_append(&witness, 11, handle, "four");
        job = take_job(fixture);
        client_close(&client);
        give_back(fixture, job);
        job = take_job(fixture);
        job->result = job->work(job);
        give_back(fixture, job);
        assert_int_equal(reply_code(&witness, 11), SMV_NO_HANDLE);
        expect_nothing_held(fixture, &witness);
        client_close(&witness);
        edge_fixture_close(fixture);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                cmocka_unit_test(a_handle_is_busy_until_the_END_of_its_request_is_readable),
                cmocka_unit_test(closing_a_handle_cancels_its_generation),
                cmocka_unit_test(frees_everything_if_owner_or_reader_disconnects_at_any_time),
                cmocka_unit_test(a_handle_is_busy_while_its_text_is_tokenized),
        };

        return cmocka_run_group_tests_name("holder", stories, NULL, NULL);
}
