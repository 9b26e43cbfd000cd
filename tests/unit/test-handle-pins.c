/* Holds: pinned histories, their users, their duration, and events that come in between. */
#include "tests/unit/edge-text-worker.h"

static void ask_pin(struct client *client, uint32_t id, uint64_t handle, uint32_t ms)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 4);
        put_head(&writer, "pin", id);
        wire_put_text(&writer, "handle");
        wire_put_uint(&writer, handle);
        wire_put_text(&writer, "pin_ms");
        wire_put_uint(&writer, ms);
        wire_end(&writer);
        send_all(client, &frame);
}

static void ask_close(struct client *client, uint32_t id, uint64_t handle)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 3);
        put_head(&writer, "close", id);
        wire_put_text(&writer, "handle");
        wire_put_uint(&writer, handle);
        wire_end(&writer);
        send_all(client, &frame);
}

static uint64_t open_handle(struct client *client, uint32_t count)
{
        static const uint32_t tokens[200];
        msgpack_unpacked reply;
        uint64_t handle;

        ask_tokens(client, "open", 90, tokens, count);
        assert_true(next_reply(client, &reply));
        handle = get_uint(&reply.data, "handle");
        drop_frame(client, &reply);
        return handle;
}

/* Until the engine has it, and the client knows. */
static struct request *begin_pin(struct edge_fixture *fixture, struct client *client,
                                 uint64_t handle, uint32_t ms)
{
        ask_pin(client, 5, handle, ms);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(client, 5), SMV_OK);
        return fixture->live[0];
}

/* The core has read it. */
static void pin_for(struct edge_fixture *fixture, struct client *client, uint64_t handle,
                    uint32_t ms)
{
        struct request *request = begin_pin(fixture, client, handle, ms);

        request->pinned = true;
        end(fixture, request, SMV_END_LENGTH, SMV_OK);
        expect_end(client, 5);
}

static void expect_refused(struct client *client, enum smv_code code, const char *message)
{
        const msgpack_object *text;
        msgpack_unpacked reply;

        assert_true(next_reply(client, &reply));
        assert_int_equal(get_uint(&reply.data, "code"), code);
        text = get(&reply.data, "message");
        assert_int_equal(text->via.str.size, strlen(message));
        assert_memory_equal(text->via.str.ptr, message, strlen(message));
        drop_frame(client, &reply);
}

static void a_pin_is_a_prefill_only_background_request(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct request *request;
        struct client client;
        uint64_t handle;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        handle = open_handle(&client, 40);
        request = begin_pin(fixture, &client, handle, 60000);
        assert_int_equal(request->prompt_count, 40);
        assert_int_equal(request->max_tokens, 0);
        assert_int_equal(request->record_bytes_max, 0);
        assert_int_equal(request->priority, REQUEST_BACKGROUND);
        assert_true(request->pin == 1 || request->pin == 2);
        assert_int_equal(charge_of(&client, "pinned_blocks"), 3);
        ask_pin(&client, 6, handle, 0);
        assert_int_equal(reply_code(&client, 6), SMV_HANDLE_BUSY);
        request->pinned = true;
        end(fixture, request, SMV_END_LENGTH, SMV_OK);
        expect_end(&client, 5);
        assert_int_equal(fixture->lifts, 0);
        assert_int_equal(charge_of(&client, "pinned_blocks"), 3);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void starts_the_duration_of_a_pin_after_its_prefill(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct request *request;
        struct client client;
        uint32_t anchor;
        uint64_t handle;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        handle = open_handle(&client, 16);
        request = begin_pin(fixture, &client, handle, 1);
        anchor = request->pin;
        for (uint32_t i = 0; i < 20; i++) /* much longer than that */
                engine(fixture, 2);
        assert_int_equal(fixture->lifts, 0);
        request->pinned = true;
        end(fixture, request, SMV_END_LENGTH, SMV_OK);
        expect_end(&client, 5);
        ENGINE_UNTIL(fixture, fixture->lifts == 1);
        assert_int_equal(fixture->last_lift, anchor);
        assert_int_equal(charge_of(&client, "pinned_blocks"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void unpins_on_request_on_close_and_on_disconnect(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, owner;
        uint64_t handle;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        handle = open_handle(&client, 16);
        ask_pin(&client, 6, handle, 0); /* of one that is not held: nothing */
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        pin_for(fixture, &client, handle, 60000);
        ask_pin(&client, 6, handle, 0);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->lifts == 1);

        pin_for(fixture, &client, handle, 60000);
        ask_close(&client, 6, handle);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->lifts == 2);

        say_hello(fixture, &owner);
        handle = open_handle(&owner, 16);
        pin_for(fixture, &client, handle, 60000); /* held by another connection of the user */
        client_close(&owner);
        ENGINE_UNTIL(fixture, fixture->lifts == 3);
        assert_int_equal(charge_of(&client, "pinned_blocks"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

/* Closing the handle cancels first, so that no anchor is set any more when it is lifted. */
static void a_failed_or_cancelled_pin_pins_nothing(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        uint64_t handle;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        handle = open_handle(&client, 16);
        begin_pin(fixture, &client, handle, 60000);
        ask_cancel(&client, 6, 5);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->lifts == 1);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_CANCELLED);

        pin_for(fixture, &client, handle, 60000);
        begin_pin(fixture, &client, handle, 60000); /* what was held before goes, too */
        end(fixture, fixture->live[0], SMV_END_ERROR, SMV_NUMERIC);
        ENGINE_UNTIL(fixture, fixture->lifts == 2);
        expect_end(&client, 5);

        begin_pin(fixture, &client, handle, 60000);
        ask_close(&client, 6, handle);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        engine(fixture, 1000);
        assert_int_equal(fixture->cancels, 2);
        ENGINE_UNTIL(fixture, fixture->lifts == 3);
        expect_end(&client, 5);
        assert_int_equal(charge_of(&client, "pinned_blocks"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

/* Six blocks of 64 are a tenth, and there are two anchors. */
static void refuses_a_pin_over_the_limits_with_the_numbers(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        uint64_t handles[3];

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        handles[0] = open_handle(&client, 97);
        ask_pin(&client, 6, handles[0], 1000);
        expect_refused(&client, SMV_QUOTA,
                       "you have 0 pinned blocks; 7 more would exceed the limit of 6 "
                       "(uid_pinned_percent)");
        for (uint32_t i = 0; i < 3; i++)
                handles[i] = open_handle(&client, i ? 1 : 64);
        pin_for(fixture, &client, handles[0], 60000);
        pin_for(fixture, &client, handles[0], 60000); /* anew: charged once */
        pin_for(fixture, &client, handles[1], 60000);
        assert_int_equal(charge_of(&client, "pinned_blocks"), 5);
        ask_pin(&client, 6, handles[2], 1000);
        expect_refused(&client, SMV_BUSY,
                       "the daemon has 2 pinned or published histories; the limit is 2");
        ask_pin(&client, 6, handles[2] + 1, 1000);
        assert_int_equal(reply_code(&client, 6), SMV_NO_HANDLE);
        ask_pin(&client, 6, handles[0], 0);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        pin_for(fixture, &client, handles[2], 60000);
        assert_int_equal(charge_of(&client, "pinned_blocks"), 2);
        client_close(&client);
        edge_fixture_close(fixture);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                cmocka_unit_test(a_pin_is_a_prefill_only_background_request),
                cmocka_unit_test(starts_the_duration_of_a_pin_after_its_prefill),
                cmocka_unit_test(unpins_on_request_on_close_and_on_disconnect),
                cmocka_unit_test(a_failed_or_cancelled_pin_pins_nothing),
                cmocka_unit_test(refuses_a_pin_over_the_limits_with_the_numbers),
        };

        return cmocka_run_group_tests_name("holds", stories, NULL, NULL);
}
