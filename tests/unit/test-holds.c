/* Holds: pinned histories, their users, their duration, and events that come in between. */
#include "tests/unit/house-scribe.h"

static void ask_hold(struct client *client, uint32_t id, uint64_t handle, uint32_t ms)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 4);
        put_head(&writer, "hold", id);
        wire_put_text(&writer, "handle");
        wire_put_uint(&writer, handle);
        wire_put_text(&writer, "ms");
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
static struct request *begin_hold(struct house *house, struct client *client, uint64_t handle,
                                  uint32_t ms)
{
        ask_hold(client, 5, handle, ms);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(reply_code(client, 5), SMV_OK);
        return house->live[0];
}

/* The core has read it. */
static void hold_for(struct house *house, struct client *client, uint64_t handle, uint32_t ms)
{
        struct request *request = begin_hold(house, client, handle, ms);

        request->anchored = true;
        end(house, request, SMV_END_LENGTH, SMV_OK);
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

static void a_hold_is_a_request_that_only_reads(void **state)
{
        struct house *house = house_new();
        struct request *request;
        struct client client;
        uint64_t handle;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        handle = open_handle(&client, 40);
        request = begin_hold(house, &client, handle, 60000);
        assert_int_equal(request->prompt_count, 40);
        assert_int_equal(request->max_tokens, 0);
        assert_int_equal(request->record_bytes_max, 0);
        assert_int_equal(request->class, REQUEST_BACKGROUND);
        assert_true(request->anchor == 1 || request->anchor == 2);
        assert_int_equal(charge_of(&client, "held_blocks"), 3);
        ask_hold(&client, 6, handle, 0);
        assert_int_equal(reply_code(&client, 6), SMV_HANDLE_BUSY);
        request->anchored = true;
        end(house, request, SMV_END_LENGTH, SMV_OK);
        expect_end(&client, 5);
        assert_int_equal(house->lifts, 0);
        assert_int_equal(charge_of(&client, "held_blocks"), 3);
        client_close(&client);
        house_close(house);
}

static void its_time_begins_when_it_is_read(void **state)
{
        struct house *house = house_new();
        struct request *request;
        struct client client;
        uint32_t anchor;
        uint64_t handle;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        handle = open_handle(&client, 16);
        request = begin_hold(house, &client, handle, 1);
        anchor = request->anchor;
        for (uint32_t i = 0; i < 20; i++) /* much longer than that */
                engine(house, 2);
        assert_int_equal(house->lifts, 0);
        request->anchored = true;
        end(house, request, SMV_END_LENGTH, SMV_OK);
        expect_end(&client, 5);
        ENGINE_UNTIL(house, house->lifts == 1);
        assert_int_equal(house->last_lift, anchor);
        assert_int_equal(charge_of(&client, "held_blocks"), 0);
        client_close(&client);
        house_close(house);
}

static void it_ends_when_it_is_asked_or_the_handle_goes(void **state)
{
        struct house *house = house_new();
        struct client client, owner;
        uint64_t handle;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        handle = open_handle(&client, 16);
        ask_hold(&client, 6, handle, 0); /* of one that is not held: nothing */
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        hold_for(house, &client, handle, 60000);
        ask_hold(&client, 6, handle, 0);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        ENGINE_UNTIL(house, house->lifts == 1);

        hold_for(house, &client, handle, 60000);
        ask_close(&client, 6, handle);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        ENGINE_UNTIL(house, house->lifts == 2);

        say_hello(house, &owner);
        handle = open_handle(&owner, 16);
        hold_for(house, &client, handle, 60000); /* held by another connection of the user */
        client_close(&owner);
        ENGINE_UNTIL(house, house->lifts == 3);
        assert_int_equal(charge_of(&client, "held_blocks"), 0);
        client_close(&client);
        house_close(house);
}

/* Closing the handle cancels first, so that no anchor is set any more when it is lifted. */
static void a_hold_that_fails_holds_nothing(void **state)
{
        struct house *house = house_new();
        struct client client;
        uint64_t handle;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        handle = open_handle(&client, 16);
        begin_hold(house, &client, handle, 60000);
        ask_cancel(&client, 6, 5);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        ENGINE_UNTIL(house, house->lifts == 1);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_CANCELLED);

        hold_for(house, &client, handle, 60000);
        begin_hold(house, &client, handle, 60000); /* what was held before goes, too */
        end(house, house->live[0], SMV_END_ERROR, SMV_NUMERIC);
        ENGINE_UNTIL(house, house->lifts == 2);
        expect_end(&client, 5);

        begin_hold(house, &client, handle, 60000);
        ask_close(&client, 6, handle);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        engine(house, 1000);
        assert_int_equal(house->cancels, 2);
        ENGINE_UNTIL(house, house->lifts == 3);
        expect_end(&client, 5);
        assert_int_equal(charge_of(&client, "held_blocks"), 0);
        client_close(&client);
        house_close(house);
}

/* Six blocks of 64 are a tenth, and there are two anchors. */
static void what_is_too_much_is_refused_with_the_numbers(void **state)
{
        struct house *house = house_new();
        struct client client;
        uint64_t handles[3];

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        handles[0] = open_handle(&client, 97);
        ask_hold(&client, 6, handles[0], 1000);
        expect_refused(&client, SMV_QUOTA,
                       "7 more would be over this user's limit of 6 held_blocks");
        for (uint32_t i = 0; i < 3; i++)
                handles[i] = open_handle(&client, i ? 1 : 64);
        hold_for(house, &client, handles[0], 60000);
        hold_for(house, &client, handles[0], 60000); /* anew: charged once */
        hold_for(house, &client, handles[1], 60000);
        assert_int_equal(charge_of(&client, "held_blocks"), 5);
        ask_hold(&client, 6, handles[2], 1000);
        expect_refused(&client, SMV_BUSY, "the daemon holds 2 histories, and no more at once");
        ask_hold(&client, 6, handles[2] + 1, 1000);
        assert_int_equal(reply_code(&client, 6), SMV_NO_HANDLE);
        ask_hold(&client, 6, handles[0], 0);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        hold_for(house, &client, handles[2], 60000);
        assert_int_equal(charge_of(&client, "held_blocks"), 2);
        client_close(&client);
        house_close(house);
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                cmocka_unit_test(a_hold_is_a_request_that_only_reads),
                cmocka_unit_test(its_time_begins_when_it_is_read),
                cmocka_unit_test(it_ends_when_it_is_asked_or_the_handle_goes),
                cmocka_unit_test(a_hold_that_fails_holds_nothing),
                cmocka_unit_test(what_is_too_much_is_refused_with_the_numbers),
        };

        return cmocka_run_group_tests_name("holds", stories, NULL, NULL);
}
