/*
 * The keeper, as its clients see it.  Clients attach, leave, cross each other, or lose their
 * stream to another client, in every state.  The test is the engine, so it decides when records
 * are there.
 */
#include "tests/unit/edge-text-worker.h"

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

static uint64_t begin(struct edge_fixture *fixture, struct client *client, uint32_t keep_ms)
{
        uint32_t before = fixture->submits;

        ask_kept_generate(client, ID, keep_ms);
        ENGINE_UNTIL(fixture, fixture->submits > before);
        return reply_number(client, ID, "resume_id");
}

/* All that was charged for any of it is back, but the witness. */
static void expect_nothing_kept(struct edge_fixture *fixture, struct client *witness)
{
        ENGINE_UNTIL(fixture, charge_of(witness, "resumable") == 0);
        assert_int_equal(charge_of(witness, "resumable_bytes"), 0);
        expect_nothing_held(fixture, witness);
        assert_int_equal(charge_of(witness, "ring_bytes"), 0);
}

static void make_tokens(struct edge_fixture *fixture, uint32_t first, uint32_t count)
{
        for (uint32_t i = first; i < first + count; i++)
                assert_true(say(fixture, fixture->live[0], i));
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
        ask_kept(client, "attach", id, "resume_id", kept, "from", from);
        assert_int_equal(reply_number(client, id, "sequence"), all);
}

static void ask_ok(struct client *client, const char *op, const char *field, uint64_t value)
{
        ask_kept(client, op, 90, field, value, NULL, 0);
        assert_int_equal(reply_code(client, 90), SMV_OK);
}

static void a_client_that_attaches_gets_old_and_new_records(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;
        uint64_t kept;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        say_hello(fixture, &other);
        kept = begin(fixture, &client, 60000);
        make_tokens(fixture, 0, 10);
        expect_tokens(&client, ID, 0, 10);
        client_close(&client);
        make_tokens(fixture, 10, 10);
        attach(&other, 7, kept, 4, 20);
        expect_tokens(&other, 7, 4, 16);
        make_tokens(fixture, 20, 5);
        expect_tokens(&other, 7, 20, 5);
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        expect_the_end(&other, 7, 25, SMV_END_EOS, SMV_OK);

        /* Its id is free, and all of it is still there. */
        attach(&other, 7, kept, 25, 26);
        expect_the_end(&other, 7, 25, SMV_END_EOS, SMV_OK);
        attach(&other, 7, kept, 0, 26);
        expect_tokens(&other, 7, 0, 25);
        expect_the_end(&other, 7, 25, SMV_END_EOS, SMV_OK);
        ask_kept(&other, "attach", 7, "resume_id", kept, "from", 26);
        assert_int_equal(reply_code(&other, 7), SMV_BAD_VALUE);
        ask_ok(&other, "drop", "resume_id", kept);
        ask_kept(&other, "attach", 7, "resume_id", kept, "from", 0);
        assert_int_equal(reply_code(&other, 7), SMV_NO_RESUMABLE);
        expect_nothing_kept(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

/* The client before gets its last record behind all its tokens, under its own id and number. */
static void a_new_attach_moves_the_stream_away_from_the_older_reader(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;
        uint64_t kept;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        say_hello(fixture, &other);
        kept = begin(fixture, &client, 60000);
        make_tokens(fixture, 0, 3);
        expect_tokens(&client, ID, 0, 3);
        attach(&other, 7, kept, 0, 3);
        expect_the_end(&client, ID, 3, SMV_END_ERROR, SMV_MOVED);
        expect_tokens(&other, 7, 0, 3);

        /* The same client attaches again, under another id; its present id is taken. */
        ask_kept(&other, "attach", 7, "resume_id", kept, "from", 0);
        assert_int_equal(reply_code(&other, 7), SMV_DUP_ID);
        attach(&other, 8, kept, 2, 3);
        expect_the_end(&other, 7, 3, SMV_END_ERROR, SMV_MOVED);
        expect_tokens(&other, 8, 2, 1);
        make_tokens(fixture, 3, 1);
        expect_tokens(&other, 8, 3, 1);

        /*
         * The client has left its stream, which has not been freed yet.  A client that lost its
         * stream to another has nothing to cancel.
         */
        attach(&client, ID, kept, 4, 4);
        expect_the_end(&other, 8, 4, SMV_END_ERROR, SMV_MOVED);
        ask_cancel(&other, 30, 8);
        assert_int_equal(reply_code(&other, 30), SMV_OK);
        make_tokens(fixture, 4, 1);
        expect_tokens(&client, ID, 4, 1);
        assert_int_equal(fixture->cancels, 0);
        ask_cancel(&client, 31, ID);
        ENGINE_UNTIL(fixture, fixture->cancels == 1);
        assert_int_equal(reply_code(&client, 31), SMV_OK);
        expect_the_end(&client, ID, 5, SMV_END_CANCELLED, SMV_OK);
        ask_ok(&other, "drop", "resume_id", kept);
        client_close(&client);
        expect_nothing_kept(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

/*
 * Dropped, timed out or detached: while it runs, while its cancel and its END cross, and after
 * them.
 */
static void frees_a_resumable_stream_however_it_ends(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, witness;
        uint64_t kept;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &witness);
        for (uint32_t i = 0; i < 24; i++) {
                bool ends = i % 2, by_time = i / 2 % 2, attached = i / 4 % 2;

                fixture->lose_cancel = i / 8 == 1;
                say_hello(fixture, &client);
                kept = begin(fixture, &client, by_time ? 30 : 60000);
                make_tokens(fixture, 0, 2);
                if (ends)
                        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
                if (i / 8 == 2) {
                        expect_tokens(&client, ID, 0, 2);
                        ask_ok(&client, "detach", "stream", ID);
                        ask_ok(&client, "detach", "stream", ID);
                }
                if (!attached || by_time)
                        client_close(&client);
                if (!by_time)
                        ask_ok(&witness, "drop", "resume_id", kept);
                ENGINE_UNTIL(fixture, !fixture->live_count);
                ENGINE_UNTIL(fixture,
                             charge_of(&witness, "resumable") == 0 || (attached && !by_time));
                client_close(&client);
                expect_nothing_kept(fixture, &witness);
        }
        fixture->lose_cancel = false;
        client_close(&witness);
        edge_fixture_close(fixture);
}

/* The message of a refusal of the next reply, which is to this id. */
static void expect_refusal(struct client *client, uint32_t id, enum smv_code code,
                           const char *message)
{
        const msgpack_object *said;
        msgpack_unpacked reply;

        assert_true(next_reply(client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), id);
        assert_int_equal(get_uint(&reply.data, "code"), code);
        said = get(&reply.data, "message");
        assert_non_null(said);
        assert_int_equal(said->via.str.size, strlen(message));
        assert_memory_equal(said->via.str.ptr, message, strlen(message));
        drop_frame(client, &reply);
}

/* The test is the text worker, too, and holds the text of the stream back. */
static void refuses_to_detach_a_stream_before_its_reply(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        struct wire_writer writer;
        struct buffer frame;
        uint64_t kept;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        OPEN_FRAME(writer, frame, 5);
        put_head(&writer, "generate", ID);
        wire_put_text(&writer, "prompt");
        wire_put_text(&writer, "x");
        wire_put_text(&writer, "max_tokens");
        wire_put_uint(&writer, 100);
        wire_put_text(&writer, "keep_ms");
        wire_put_uint(&writer, 60000);
        wire_end(&writer);
        send_all(&client, &frame);
        ask_kept(&client, "detach", 90, "stream", ID, NULL, 0);
        expect_refusal(&client, 90, SMV_BAD_VALUE,
                       "request 5 has no reply yet; detach its stream after the reply");
        do_job(fixture);
        kept = reply_number(&client, ID, "resume_id");
        ask_ok(&client, "detach", "stream", ID);
        ask_ok(&client, "drop", "resume_id", kept);
        ENGINE_UNTIL(fixture, !fixture->live_count);
        expect_nothing_kept(fixture, &client);
        client_close(&client);
        edge_fixture_close(fixture);
}

/*
 * A client that leaves before it is told its number has no resumable stream.  A client that
 * does not read delays no other.
 */
static void a_client_that_does_not_read_delays_no_other_client(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, deaf;
        uint64_t kept[2];

        (void)state;
        fixture->config.uid_resumable_bytes = 64 << 20;
        fixture->config.max_tokens = 1000;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &deaf);
        say_hello(fixture, &client);
        kept[0] = begin(fixture, &deaf, 60000);
        kept[1] = begin(fixture, &client, 60000);
        assert_true(kept[0] != kept[1]);
        for (uint32_t i = 0; i < 100; i++) {
                assert_true(say(fixture, fixture->live[0], i));
                assert_true(say(fixture, fixture->live[1], i));
                expect_tokens(&client, ID, i, 1);
        }
        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
        expect_the_end(&client, ID, 100, SMV_END_LENGTH, SMV_OK);
        expect_tokens(&deaf, ID, 0, 100);
        ask_ok(&client, "drop", "resume_id", kept[0]);
        ask_ok(&client, "drop", "resume_id", kept[1]);
        client_close(&deaf);
        expect_nothing_kept(fixture, &client);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void refuses_a_resumable_stream_over_the_limit_of_the_daemon(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        uint64_t kept[2];

        (void)state;
        fixture->config.resumable = 2;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        for (uint32_t i = 0; i < 2; i++) {
                kept[i] = begin(fixture, &client, 60000);
                end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
                expect_the_end(&client, ID, 0, SMV_END_LENGTH, SMV_OK);
        }
        ask_kept_generate(&client, ID, 60000);
        assert_int_equal(reply_code(&client, ID), SMV_BUSY);
        ask_ok(&client, "drop", "resume_id", kept[0]);
        kept[0] = begin(fixture, &client, 60000);
        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
        expect_the_end(&client, ID, 0, SMV_END_LENGTH, SMV_OK);
        ask_ok(&client, "drop", "resume_id", kept[0]);
        ask_ok(&client, "drop", "resume_id", kept[1]);
        expect_nothing_kept(fixture, &client);
        client_close(&client);
        edge_fixture_close(fixture);
}

/* Streams that run, that ended, with and without a reader; all of them by one SIGTERM. */
static void shutdown_ends_all_resumable_streams(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 4; i++) {
                struct edge_fixture *fixture = edge_fixture_new();
                struct client client, other;

                edge_fixture_start(fixture, false);
                say_hello(fixture, &client);
                say_hello(fixture, &other);
                begin(fixture, &client, 60000);
                begin(fixture, &other, 60000);
                make_tokens(fixture, 0, 3);
                if (i % 2)
                        end(fixture, fixture->live[1], SMV_END_EOS, SMV_OK);
                if (i / 2)
                        client_close(&client);
                drain(fixture, 2);
                ENGINE_UNTIL(fixture, !fixture->live_count);
                if (i / 2 == 0) {
                        expect_tokens(&client, ID, 0, 3);
                        expect_the_end(&client, ID, 3, SMV_END_ERROR, SMV_SHUTTING_DOWN);
                }
                assert_int_equal(edge_fixture_stop(fixture), 0);
                client_close(&client);
                client_close(&other);
        }
}

int main(void)
{
        const struct CMUnitTest stories[] = {
                cmocka_unit_test(a_client_that_attaches_gets_old_and_new_records),
                cmocka_unit_test(a_new_attach_moves_the_stream_away_from_the_older_reader),
                cmocka_unit_test(frees_a_resumable_stream_however_it_ends),
                cmocka_unit_test(refuses_to_detach_a_stream_before_its_reply),
                cmocka_unit_test(a_client_that_does_not_read_delays_no_other_client),
                cmocka_unit_test(refuses_a_resumable_stream_over_the_limit_of_the_daemon),
                cmocka_unit_test(shutdown_ends_all_resumable_streams),
        };

        return cmocka_run_group_tests_name("keeper", stories, NULL, NULL);
}
