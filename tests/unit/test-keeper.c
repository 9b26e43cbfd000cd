/*
 * The keeper, as its clients see it.  Clients attach, leave, cross each other, or lose their
 * stream to another client, in every state.  The test is the engine, so it decides when records
 * are there.
 */
#include "tests/unit/house-scribe.h"

#define ID 5u

/* Up to two fields beside op and id. */
static void ask_kept(struct client *client, const char *op, uint32_t id, const char *field,
                     uint64_t value, const char *other, uint64_t other_value)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, other ? 4 : 3);
        put_head(&writer, op, id);
        wire_put_text(&writer, field);
        wire_put_uint(&writer, value);
        if (other)
                wire_put_text(&writer, other);
        if (other)
                wire_put_uint(&writer, other_value);
        wire_end(&writer);
        send_all(client, &frame);
}

static void ask_kept_generate(struct client *client, uint32_t id, uint32_t keep_ms)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 5);
        put_head(&writer, "generate", id);
        wire_put_text(&writer, "tokens");
        wire_put_array(&writer, 1);
        wire_put_uint(&writer, 65);
        wire_put_text(&writer, "max_tokens");
        wire_put_uint(&writer, 100);
        wire_put_text(&writer, "keep_ms");
        wire_put_uint(&writer, keep_ms);
        wire_end(&writer);
        send_all(client, &frame);
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

static uint64_t begin(struct house *house, struct client *client, uint32_t keep_ms)
{
        uint32_t before = house->submits;

        ask_kept_generate(client, ID, keep_ms);
        ENGINE_UNTIL(house, house->submits > before);
        return reply_number(client, ID, "kept");
}

/* All that was charged for any of it is back, but the witness. */
static void expect_nothing_kept(struct house *house, struct client *witness)
{
        ENGINE_UNTIL(house, charge_of(witness, "kept") == 0);
        assert_int_equal(charge_of(witness, "kept_bytes"), 0);
        expect_nothing_held(house, witness);
        assert_int_equal(charge_of(witness, "ring_bytes"), 0);
}

static void make_tokens(struct house *house, uint32_t first, uint32_t count)
{
        for (uint32_t i = first; i < first + count; i++)
                assert_true(say(house, house->live[0], i));
}

/* Its next records are these, and not a byte of another. */
static void expect_tokens(struct client *client, uint32_t stream, uint32_t first, uint32_t count)
{
        for (uint32_t i = first; i < first + count; i++) {
                const struct smv_record *record = next_record(client);

                assert_non_null(record);
                assert_int_equal(record->type, SMV_RECORD_TOKENS);
                assert_int_equal(record->stream, stream);
                assert_int_equal(record->sequence, i);
                assert_int_equal(*((const uint8_t *)(record + 1) + 8), i);
        }
}

static void expect_the_end(struct client *client, uint32_t stream, uint32_t sequence,
                           enum smv_reason reason, enum smv_code code)
{
        const struct smv_record *record = next_record(client);
        const struct smv_record_end *end = (const struct smv_record_end *)(record + 1);

        assert_non_null(record);
        assert_int_equal(record->type, SMV_RECORD_END);
        assert_int_equal(record->stream, stream);
        assert_int_equal(record->sequence, sequence);
        assert_int_equal(end->reason, reason);
        assert_int_equal(end->code, code);
}

static void attach(struct client *client, uint32_t id, uint64_t kept, uint32_t from, uint32_t all)
{
        ask_kept(client, "attach", id, "kept", kept, "from", from);
        assert_int_equal(reply_number(client, id, "sequence"), all);
}

static void ask_ok(struct client *client, const char *op, const char *field, uint64_t value)
{
        ask_kept(client, op, 90, field, value, NULL, 0);
        assert_int_equal(reply_code(client, 90), SMV_OK);
}

static void whoever_attaches_gets_what_there_is_and_what_comes(void **state)
{
        struct house *house = house_new();
        struct client client, other;
        uint64_t kept;

        (void)state;
        house_start(house, false);
        say_hello(house, &client);
        say_hello(house, &other);
        kept = begin(house, &client, 60000);
        make_tokens(house, 0, 10);
        expect_tokens(&client, ID, 0, 10);
        client_close(&client);
        make_tokens(house, 10, 10);
        attach(&other, 7, kept, 4, 20);
        expect_tokens(&other, 7, 4, 16);
        make_tokens(house, 20, 5);
        expect_tokens(&other, 7, 20, 5);
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        expect_the_end(&other, 7, 25, SMV_END_EOS, SMV_OK);

        /* Its id is free, and all of it is still there. */
        attach(&other, 7, kept, 25, 26);
        expect_the_end(&other, 7, 25, SMV_END_EOS, SMV_OK);
        attach(&other, 7, kept, 0, 26);
        expect_tokens(&other, 7, 0, 25);
        expect_the_end(&other, 7, 25, SMV_END_EOS, SMV_OK);
        ask_kept(&other, "attach", 7, "kept", kept, "from", 26);
        assert_int_equal(reply_code(&other, 7), SMV_BAD_VALUE);
        ask_ok(&other, "drop", "kept", kept);
        ask_kept(&other, "attach", 7, "kept", kept, "from", 0);
        assert_int_equal(reply_code(&other, 7), SMV_NO_KEPT);
        expect_nothing_kept(house, &other);
        client_close(&other);
        house_close(house);
}

/* The client before gets its last record behind all its tokens, under its own id and number. */
static void the_last_one_who_attaches_is_right(void **state)
{
        struct house *house = house_new();
        struct client client, other;
        uint64_t kept;

        (void)state;
        house_start(house, false);
        say_hello(house, &client);
        say_hello(house, &other);
        kept = begin(house, &client, 60000);
        make_tokens(house, 0, 3);
        expect_tokens(&client, ID, 0, 3);
        attach(&other, 7, kept, 0, 3);
        expect_the_end(&client, ID, 3, SMV_END_ERROR, SMV_MOVED);
        expect_tokens(&other, 7, 0, 3);

        /* The same client attaches again, under another id; its present id is taken. */
        ask_kept(&other, "attach", 7, "kept", kept, "from", 0);
        assert_int_equal(reply_code(&other, 7), SMV_DUP_ID);
        attach(&other, 8, kept, 2, 3);
        expect_the_end(&other, 7, 3, SMV_END_ERROR, SMV_MOVED);
        expect_tokens(&other, 8, 2, 1);
        make_tokens(house, 3, 1);
        expect_tokens(&other, 8, 3, 1);

        /*
         * The client has left its stream, which has not been freed yet.  A client that lost its
         * stream to another has nothing to cancel.
         */
        attach(&client, ID, kept, 4, 4);
        expect_the_end(&other, 8, 4, SMV_END_ERROR, SMV_MOVED);
        ask_cancel(&other, 30, 8);
        assert_int_equal(reply_code(&other, 30), SMV_OK);
        make_tokens(house, 4, 1);
        expect_tokens(&client, ID, 4, 1);
        assert_int_equal(house->cancels, 0);
        ask_cancel(&client, 31, ID);
        ENGINE_UNTIL(house, house->cancels == 1);
        assert_int_equal(reply_code(&client, 31), SMV_OK);
        expect_the_end(&client, ID, 5, SMV_END_CANCELLED, SMV_OK);
        ask_ok(&other, "drop", "kept", kept);
        client_close(&client);
        expect_nothing_kept(house, &other);
        client_close(&other);
        house_close(house);
}

/*
 * Dropped, timed out or detached: while it runs, while its cancel and its END cross, and after
 * them.
 */
static void however_it_ends_nothing_is_left(void **state)
{
        struct house *house = house_new();
        struct client client, witness;
        uint64_t kept;

        (void)state;
        house_start(house, false);
        say_hello(house, &witness);
        for (uint32_t i = 0; i < 24; i++) {
                bool ends = i % 2, by_time = i / 2 % 2, attached = i / 4 % 2;

                house->lose_cancel = i / 8 == 1;
                say_hello(house, &client);
                kept = begin(house, &client, by_time ? 30 : 60000);
                make_tokens(house, 0, 2);
                if (ends)
                        end(house, house->live[0], SMV_END_LENGTH, SMV_OK);
                if (i / 8 == 2) {
                        expect_tokens(&client, ID, 0, 2);
                        ask_ok(&client, "detach", "stream", ID);
                        ask_ok(&client, "detach", "stream", ID);
                }
                if (!attached || by_time)
                        client_close(&client);
                if (!by_time)
                        ask_ok(&witness, "drop", "kept", kept);
                ENGINE_UNTIL(house, !house->live_count);
                ENGINE_UNTIL(house, charge_of(&witness, "kept") == 0 || (attached && !by_time));
                client_close(&client);
                expect_nothing_kept(house, &witness);
        }
        house->lose_cancel = false;
        client_close(&witness);
        house_close(house);
}

/*
 * A client that leaves before it is told its number has no resumable stream.  A client that
 * does not read delays no other.
 */
static void what_a_client_does_not_read_is_in_nobody_s_way(void **state)
{
        struct house *house = house_new();
        struct client client, deaf;
        uint64_t kept[2];

        (void)state;
        house->config.uid_kept_bytes = 64 << 20;
        house->config.max_tokens = 1000;
        house_start(house, false);
        say_hello(house, &deaf);
        say_hello(house, &client);
        kept[0] = begin(house, &deaf, 60000);
        kept[1] = begin(house, &client, 60000);
        assert_true(kept[0] != kept[1]);
        for (uint32_t i = 0; i < 100; i++) {
                assert_true(say(house, house->live[0], i));
                assert_true(say(house, house->live[1], i));
                expect_tokens(&client, ID, i, 1);
        }
        end(house, house->live[0], SMV_END_LENGTH, SMV_OK);
        end(house, house->live[0], SMV_END_LENGTH, SMV_OK);
        expect_the_end(&client, ID, 100, SMV_END_LENGTH, SMV_OK);
        expect_tokens(&deaf, ID, 0, 100);
        ask_ok(&client, "drop", "kept", kept[0]);
        ask_ok(&client, "drop", "kept", kept[1]);
        client_close(&deaf);
        expect_nothing_kept(house, &client);
        client_close(&client);
        house_close(house);
}

static void limits_are_told_with_their_numbers(void **state)
{
        struct house *house = house_new();
        struct client client;
        uint64_t kept[2];

        (void)state;
        house->config.kept = 2;
        house_start(house, false);
        say_hello(house, &client);
        for (uint32_t i = 0; i < 2; i++) {
                kept[i] = begin(house, &client, 60000);
                end(house, house->live[0], SMV_END_LENGTH, SMV_OK);
                expect_the_end(&client, ID, 0, SMV_END_LENGTH, SMV_OK);
        }
        ask_kept_generate(&client, ID, 60000);
        assert_int_equal(reply_code(&client, ID), SMV_BUSY);
        ask_ok(&client, "drop", "kept", kept[0]);
        kept[0] = begin(house, &client, 60000);
        end(house, house->live[0], SMV_END_LENGTH, SMV_OK);
        expect_the_end(&client, ID, 0, SMV_END_LENGTH, SMV_OK);
        ask_ok(&client, "drop", "kept", kept[0]);
        ask_ok(&client, "drop", "kept", kept[1]);
        expect_nothing_kept(house, &client);
        client_close(&client);
        house_close(house);
}

/* Streams that run, that ended, with and without a reader; all of them by one SIGTERM. */
static void a_daemon_that_ends_leaves_none(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 4; i++) {
                struct house *house = house_new();
                struct client client, other;

                house_start(house, false);
                say_hello(house, &client);
                say_hello(house, &other);
                begin(house, &client, 60000);
                begin(house, &other, 60000);
                make_tokens(house, 0, 3);
                if (i % 2)
                        end(house, house->live[1], SMV_END_EOS, SMV_OK);
                if (i / 2)
                        client_close(&client);
                drain(house, 2);
                ENGINE_UNTIL(house, !house->live_count);
                if (i / 2 == 0) {
                        expect_tokens(&client, ID, 0, 3);
                        expect_the_end(&client, ID, 3, SMV_END_ERROR, SMV_SHUTTING_DOWN);
                }
                assert_int_equal(house_stop(house), 0);
                client_close(&client);
                client_close(&other);
        }
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                cmocka_unit_test(whoever_attaches_gets_what_there_is_and_what_comes),
                cmocka_unit_test(the_last_one_who_attaches_is_right),
                cmocka_unit_test(however_it_ends_nothing_is_left),
                cmocka_unit_test(what_a_client_does_not_read_is_in_nobody_s_way),
                cmocka_unit_test(limits_are_told_with_their_numbers),
                cmocka_unit_test(a_daemon_that_ends_leaves_none),
        };

        return cmocka_run_group_tests_name("keeper", stories, NULL, NULL);
}
