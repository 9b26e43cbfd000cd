/* Peers as clients see them: hello, frames, the text worker's work, limits, and the end. */
#include "tests/unit/edge-text-worker.h"

/* ---- hello ---- */

static void requires_one_hello_before_other_operations(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client a, b, c;
        msgpack_unpacked reply;

        (void)state;
        edge_fixture_start(fixture, true);
        client_open(fixture, &a);
        ask_plain(&a, "status", 5);
        assert_int_equal(reply_code(&a, 5), SMV_NO_HELLO);
        assert_true(is_closed(&a));

        client_open(fixture, &b);
        ask_hello(&b, 7, 0, 3);
        assert_true(next_reply(&b, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), 7);
        assert_int_equal(get_uint(&reply.data, "version"), 0);
        assert_int_equal(get_uint(&reply.data, "uid"), getuid());
        assert_int_equal(get_uint(&reply.data, "frame_bytes"), 1 << 20);
        assert_int_equal(get(&reply.data, "models")->via.array.size, 1);
        assert_int_equal(get_uint(&get(&reply.data, "models")->via.array.ptr[0], "vocab"), VOCAB);
        drop_frame(&b, &reply);
        ask_hello(&b, 8, 0, 0);
        assert_int_equal(reply_code(&b, 8), SMV_NO_HELLO);
        ask_plain(&b, "status", 9);
        assert_int_equal(reply_code(&b, 9), SMV_OK);

        client_open(fixture, &c);
        ask_hello(&c, 1, 4, 9);
        assert_int_equal(reply_code(&c, 1), SMV_VERSION);
        assert_true(is_closed(&c));
        client_close(&a);
        client_close(&b);
        client_close(&c);
        edge_fixture_close(fixture);
}

static void hello_and_each_frame_have_a_deadline(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client a, b;

        (void)state;
        fixture->config.hello_timeout_ms = 50;
        edge_fixture_start(fixture, true);
        client_open(fixture, &a);
        assert_int_equal(reply_code(&a, 0), SMV_TIMEOUT);
        assert_true(is_closed(&a));
        client_close(&a);
        edge_fixture_close(fixture);

        fixture = edge_fixture_new(); /* where a hello has all its time */
        fixture->config.frame_timeout_ms = 50;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &b);
        usleep(100000); /* between frames there is none */
        ask_plain(&b, "status", 2);
        assert_int_equal(reply_code(&b, 2), SMV_OK);
        /* Each byte is in time, the frame is not. */
        for (uint32_t i = 0; i < 10; i++) {
                send(b.fd, &"\x20\0\0\0xxxxxxxxxxxxx"[i], 1, MSG_NOSIGNAL);
                usleep(10000);
        }
        assert_int_equal(reply_code(&b, 0), SMV_TIMEOUT);
        assert_true(is_closed(&b));
        client_close(&b);
        edge_fixture_close(fixture);
}

static void replies_to_a_malformed_frame_and_closes_the_connection(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client a, b;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &a);
        assert_int_equal(send(a.fd, "\xff\xff\xff\x7f", 4, MSG_NOSIGNAL), 4);
        assert_int_equal(reply_code(&a, 0), SMV_BAD_FRAME);
        assert_true(is_closed(&a));
        say_hello(fixture, &b);
        ask_plain(&b, "nonsense", 3);
        assert_int_equal(reply_code(&b, 3), SMV_BAD_VALUE);
        assert_int_equal(send(b.fd, "\0\0\0\0", 4, MSG_NOSIGNAL), 4); /* a doorbell */
        ask_plain(&b, "status", 4);
        assert_int_equal(reply_code(&b, 4), SMV_OK);
        client_close(&a);
        client_close(&b);
        edge_fixture_close(fixture);
}

/* ---- the text worker ---- */

static void tokenizes_and_detokenizes_text(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        msgpack_unpacked reply;
        uint32_t ids[] = { 'H', 'i', 0xff, BOS };

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_text(&client, "tokenize", 2, "text", "Hi\xc3\xa9", 4);
        assert_true(next_reply(&client, &reply));
        assert_int_equal(get(&reply.data, "tokens")->via.array.size, 4);
        assert_int_equal(get(&reply.data, "tokens")->via.array.ptr[3].via.u64, 0xa9);
        drop_frame(&client, &reply);

        ask_tokens(&client, "detokenize", 3, ids, 4);
        assert_true(next_reply(&client, &reply));
        assert_int_equal(get(&reply.data, "text")->type, MSGPACK_OBJECT_BIN);
        assert_int_equal(get(&reply.data, "text")->via.bin.size, 3);
        assert_memory_equal(get(&reply.data, "text")->via.bin.ptr, "Hi\xff", 3);
        drop_frame(&client, &reply);

        ids[2] = VOCAB;
        ask_tokens(&client, "detokenize", 4, ids, 4);
        assert_int_equal(reply_code(&client, 4), SMV_BAD_VALUE);
        assert_int_equal(charge_of(&client, "requests"), 0);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void ask_pieces(struct client *client, uint32_t id, uint32_t from, uint32_t length)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, length == UINT32_MAX ? 3 : 4);
        put_head(&writer, "pieces", id);
        wire_put_text(&writer, "from");
        wire_put_uint(&writer, from);
        if (length != UINT32_MAX) {
                wire_put_text(&writer, "length");
                wire_put_uint(&writer, length);
        }
        wire_end(&writer);
        send_all(client, &frame);
}

/* Reads a reply with `count` pieces of the byte tokenizer, from the id `from` on. */
static void expect_pieces(struct client *client, uint32_t from, uint32_t count)
{
        const msgpack_object *pieces, *kinds;
        msgpack_unpacked reply;

        assert_true(next_reply(client, &reply));
        assert_int_equal(get_uint(&reply.data, "vocab"), VOCAB);
        pieces = get(&reply.data, "pieces");
        kinds = get(&reply.data, "kinds");
        assert_int_equal(pieces->via.array.size, count);
        assert_int_equal(kinds->via.array.size, count);
        for (uint32_t i = 0; i < count; i++) {
                const msgpack_object *piece = &pieces->via.array.ptr[i];

                assert_int_equal(piece->type, MSGPACK_OBJECT_BIN);
                assert_int_equal(piece->via.bin.size, from + i < 256 ? 1 : 0);
                if (piece->via.bin.size)
                        assert_int_equal((uint8_t)piece->via.bin.ptr[0], from + i);
                assert_int_equal(kinds->via.array.ptr[i].via.u64, from + i < 256 ? 0 : 5);
        }
        drop_frame(client, &reply);
}

static void returns_the_pieces_of_ids_and_of_the_vocabulary(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        msgpack_unpacked reply;
        uint32_t ids[] = { 200, 201, 202 };

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_tokens(&client, "pieces", 2, ids, 3);
        expect_pieces(&client, 200, 3);
        ask_pieces(&client, 3, 250, 20);
        expect_pieces(&client, 250, 20);
        ask_pieces(&client, 4, 0, UINT32_MAX);
        expect_pieces(&client, 0, VOCAB);
        ask_pieces(&client, 5, VOCAB - 1, 9);
        expect_pieces(&client, VOCAB - 1, 1);

        ids[1] = VOCAB;
        ask_tokens(&client, "pieces", 6, ids, 3);
        assert_true(next_reply(&client, &reply));
        assert_int_equal(get_uint(&reply.data, "code"), SMV_BAD_VALUE);
        assert_true(is_text(get(&reply.data, "field"), "tokens"));
        assert_true(is_text(get(&reply.data, "message"),
                            "tokens has 300 at index 1; the largest id is 299"));
        drop_frame(&client, &reply);
        ask_pieces(&client, 7, VOCAB, 1);
        assert_true(next_reply(&client, &reply));
        assert_true(is_text(get(&reply.data, "field"), "from"));
        assert_true(is_text(get(&reply.data, "message"), "from is 300; the largest id is 299"));
        drop_frame(&client, &reply);
        ask_pieces(&client, 8, 0, 0);
        assert_int_equal(reply_code(&client, 8), SMV_BAD_VALUE);
        assert_int_equal(charge_of(&client, "requests"), 0);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

/* Of successive ids, a frame has as many as fit; a list of ids is refused as a whole. */
static void the_vocabulary_comes_in_as_many_frames_as_it_needs(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        uint32_t ids[VOCAB] = { 0 }, from, frames = 0;
        struct client client;

        (void)state;
        fixture->config.frame_bytes = 600;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        for (from = 0; from < VOCAB; frames++) {
                msgpack_unpacked reply;
                uint32_t count;

                ask_pieces(&client, 2, from, UINT32_MAX);
                assert_true(next_reply(&client, &reply));
                count = get(&reply.data, "pieces")->via.array.size;
                assert_true(count > 0 && count < VOCAB / 2);
                for (uint32_t i = 0; i < count && from + i < 256; i++)
                        assert_int_equal((uint8_t)get(&reply.data, "pieces")
                                                 ->via.array.ptr[i]
                                                 .via.bin.ptr[0],
                                         from + i);
                from += count;
                drop_frame(&client, &reply);
        }
        assert_int_equal(from, VOCAB);
        assert_true(frames > 2);
        ask_tokens(&client, "pieces", 3, ids, VOCAB);
        assert_int_equal(reply_code(&client, 3), SMV_BAD_VALUE);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void refuses_a_reply_longer_than_a_frame(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        size_t bytes = (1 << 20) - 64;
        char *text = malloc(bytes);

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        memset(text, 'x', bytes);
        ask_text(&client, "tokenize", 2, "text", text, bytes);
        assert_int_equal(reply_code(&client, 2), SMV_OK);
        /* ids that take two bytes each */
        for (size_t i = 0; i + 1 < bytes; i += 2)
                memcpy(text + i, "\xc3\xa9", 2);
        ask_text(&client, "tokenize", 3, "text", text, bytes);
        assert_int_equal(reply_code(&client, 3), SMV_BAD_VALUE);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        free(text);
        client_close(&client);
        edge_fixture_close(fixture);
}

/* Undoes the job if that was requested; otherwise gives it two ids that no tokenizer made. */
static void give_two_ids(struct edge_fixture *fixture, struct text_job *job)
{
        if (job->cancelled) {
                job->result = -ECANCELED;
        } else {
                job->id_count = 2;
                job->ids = calloc(2, sizeof(*job->ids));
        }
        give_back(fixture, job);
}

static void a_generate_cancelled_while_tokenized_never_reaches_the_engine(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct text_job *job;
        struct client client;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        ask_text(&client, "generate", 5, "prompt", "hello", 5);
        job = take_job(fixture);
        ask_generate(&client, 5);
        assert_int_equal(reply_code(&client, 5), SMV_DUP_ID);
        ask_cancel(&client, 6, 5);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        assert_true(job->cancelled);
        give_two_ids(fixture, job);
        assert_int_equal(reply_code(&client, 5), SMV_CANCELLED);
        assert_int_equal(charge_of(&client, "requests"), 0);
        assert_int_equal(fixture->submits, 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void frees_jobs_that_return_after_their_client_disconnected(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct text_job *jobs[3];
        struct client client, witness;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &witness);
        say_hello(fixture, &client);
        ask_text(&client, "generate", 5, "prompt", "hello", 5);
        ask_text(&client, "tokenize", 6, "text", "hello", 5);
        ask_tokens(&client, "detokenize", 7, (uint32_t[]){ 65 }, 1);
        for (uint32_t i = 0; i < 3; i++)
                jobs[i] = take_job(fixture);
        assert_int_equal(charge_of(&witness, "requests"), 3);
        client_close(&client);
        ENGINE_UNTIL(fixture, charge_of(&witness, "ring_bytes") == 0);
        assert_int_equal(charge_of(&witness, "requests"), 3);
        for (uint32_t i = 0; i < 3; i++) {
                assert_true(jobs[i]->cancelled);
                give_two_ids(fixture, jobs[i]);
        }
        ENGINE_UNTIL(fixture, charge_of(&witness, "requests") == 0);
        assert_int_equal(charge_of(&witness, "prompt_bytes"), 0);
        assert_int_equal(fixture->submits, 0);
        client_close(&witness);
        edge_fixture_close(fixture);
}

/* ---- limits ---- */

static void charges_a_large_frame_while_it_arrives(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client a, b;
        static char half[400 << 10];

        (void)state;
        fixture->config.uid_prompt_bytes = 1000 << 10;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &a);
        say_hello(fixture, &b);
        /* Announces 800 KiB, sends half, waits. */
        assert_int_equal(send(a.fd, "\x00\x80\x0c\x00", 4, MSG_NOSIGNAL), 4);
        {
                struct buffer frame;

                buffer_init(&frame, sizeof(half));
                buffer_append(&frame, half, sizeof(half));
                send_all(&a, &frame);
        }
        while (charge_of(&b, "prompt_bytes") != (800 << 10) + 4 - (64 << 10))
                usleep(1000);
        /* Now another of this size is too much. */
        assert_int_equal(send(b.fd, "\x00\x80\x0c\x00", 4, MSG_NOSIGNAL), 4);
        assert_int_equal(reply_code(&b, 0), SMV_QUOTA);
        assert_true(is_closed(&b));
        client_close(&a);
        client_close(&b);
        say_hello(fixture, &a);
        while (charge_of(&a, "prompt_bytes"))
                usleep(1000);
        client_close(&a);
        edge_fixture_close(fixture);
}

static void refuses_connections_over_the_user_limit_with_an_error(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client clients[4];

        (void)state;
        fixture->config.uid_connections = 3;
        edge_fixture_start(fixture, true);
        for (uint32_t i = 0; i < 3; i++)
                say_hello(fixture, &clients[i]);
        client_open(fixture, &clients[3]);
        assert_int_equal(reply_code(&clients[3], 0), SMV_QUOTA);
        assert_true(is_closed(&clients[3]));
        client_close(&clients[3]);
        client_close(&clients[0]);
        ENGINE_UNTIL(fixture, charge_of(&clients[1], "connections") == 2);
        say_hello(fixture, &clients[0]);
        for (uint32_t i = 0; i < 3; i++)
                client_close(&clients[i]);
        edge_fixture_close(fixture);
}

/* ---- the end ---- */

static void a_drain_refuses_new_requests_and_lets_running_ones_finish(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, idle;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        say_hello(fixture, &idle);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        drain_begun(fixture, 1);
        ask_generate(&client, 6);
        assert_int_equal(reply_code(&client, 6), SMV_SHUTTING_DOWN);
        say(fixture, fixture->live[0], 65);
        next_record(&client);
        assert_int_equal(fixture->cancels, 0);
        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_LENGTH);
        assert_int_equal(edge_fixture_stop(fixture), 0);
        assert_true(is_closed(&client));
        assert_true(is_closed(&idle));
        client_close(&client);
        client_close(&idle);
}

static void a_second_drain_ends_every_stream_with_shutting_down(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        struct smv_record_end *record;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        drain(fixture, 2);
        assert_int_equal(edge_fixture_stop(fixture), 0);
        record = expect_end(&client, 5);
        assert_int_equal(record->reason, SMV_END_ERROR);
        assert_int_equal(record->code, SMV_SHUTTING_DOWN);
        assert_true(is_closed(&client));
        client_close(&client);
}

static void a_drain_ends_running_streams_after_drain_ms(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        fixture->config.drain_timeout_ms = 50;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        drain(fixture, 1);
        assert_int_equal(edge_fixture_stop(fixture), 0);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_int_equal(expect_end(&client, 5)->code, SMV_SHUTTING_DOWN);
        client_close(&client);
}

static void a_drain_does_not_wait_for_a_client_that_does_not_read(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        uint32_t idle = 0;
        uint64_t began_ns;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        while (idle < 100) {
                struct channel *channel = fixture->live[0]->channel;
                uint64_t room = 0;

                ring_free_bytes(&channel->writer, 64, &room);
                if (room > 32768 && say(fixture, fixture->live[0], 65))
                        idle = 0;
                else
                        idle++, usleep(2000);
        }
        began_ns = sys_clock_ns();
        drain(fixture, 2);
        assert_int_equal(edge_fixture_stop(fixture), 0);
        assert_true(sys_clock_ns() - began_ns >= 900000000);
        client_close(&client);
}

/* A client that comes while others still wait for their ENDs is told about the failure. */
static void an_engine_failure_stops_the_daemon_with_its_error(void **state)
{
        static const struct mail failed = { .kind = MAIL_FAILED,
                                            .result = -EIO,
                                            .why = "it broke in two" };
        struct edge_fixture *fixture = edge_fixture_new();
        msgpack_unpacked late;
        struct client client;
        struct mail cancel;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        mailbox_post(fixture->from_waker, &failed);
        assert_int_equal(
                mailbox_take(fixture->to_engine, &cancel, 1, sys_clock_ns() + WAIT_MS * 1000000ull),
                1);
        assert_int_equal(cancel.kind, MAIL_CANCEL);
        fixture->live[0]->mails_taken++;
        ask_generate(&client, 6);
        assert_true(next_reply(&client, &late));
        assert_int_equal(get_uint(&late.data, "id"), 6);
        assert_int_equal(get_uint(&late.data, "code"), SMV_SHUTTING_DOWN);
        assert_true(is_text(get(&late.data, "message"), failed.why));
        drop_frame(&client, &late);
        end(fixture, fixture->live[0], SMV_END_ERROR, SMV_BACKEND);
        assert_int_equal(edge_fixture_stop(fixture), -EIO);
        assert_int_equal(expect_end(&client, 5)->code, SMV_BACKEND);
        assert_true(is_closed(&client));
        client_close(&client);
}

static void with_fd_set_the_daemon_ends_with_its_only_connection(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        fixture->config.fd = 0; /* which one does not matter here */
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        client_close(&client);
        assert_int_equal(edge_fixture_stop(fixture), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requires_one_hello_before_other_operations),
                cmocka_unit_test(hello_and_each_frame_have_a_deadline),
                cmocka_unit_test(replies_to_a_malformed_frame_and_closes_the_connection),
                cmocka_unit_test(tokenizes_and_detokenizes_text),
                cmocka_unit_test(returns_the_pieces_of_ids_and_of_the_vocabulary),
                cmocka_unit_test(the_vocabulary_comes_in_as_many_frames_as_it_needs),
                cmocka_unit_test(refuses_a_reply_longer_than_a_frame),
                cmocka_unit_test(a_generate_cancelled_while_tokenized_never_reaches_the_engine),
                cmocka_unit_test(frees_jobs_that_return_after_their_client_disconnected),
                cmocka_unit_test(charges_a_large_frame_while_it_arrives),
                cmocka_unit_test(refuses_connections_over_the_user_limit_with_an_error),
                cmocka_unit_test(a_drain_refuses_new_requests_and_lets_running_ones_finish),
                cmocka_unit_test(a_second_drain_ends_every_stream_with_shutting_down),
                cmocka_unit_test(a_drain_ends_running_streams_after_drain_ms),
                cmocka_unit_test(a_drain_does_not_wait_for_a_client_that_does_not_read),
                cmocka_unit_test(an_engine_failure_stops_the_daemon_with_its_error),
                cmocka_unit_test(with_fd_set_the_daemon_ends_with_its_only_connection),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
