/* Frames that the loop does not read itself: order, refusals, and clients that leave meanwhile. */
#include "tests/unit/edge-text-worker.h"

#include <time.h>

#define SMALL_MAX 8192u /* larger bodies are not read by the loop */

/* ---- order ---- */

static void a_large_frame_delays_later_frames_of_its_client_only(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        say_hello(fixture, &other);
        ask_letters(&client, "tokenize", 2, 100000);
        ask_plain(&client, "status", 3);
        ask_text(&client, "tokenize", 4, "text", "hello", 5);
        let_loop_turn(&other);
        assert_true(is_silent(&client, 20));
        assert_int_equal(charge_of(&other, "requests"), 1);
        assert_true(charge_of(&other, "prompt_bytes") > 100000);
        do_job(fixture); /* it is read ... */
        assert_int_equal(reply_code(&client, 3), SMV_OK);
        do_job(fixture); /* ... and done */
        expect_ids(&client, 2, 100000);
        do_job(fixture);
        assert_int_equal(reply_code(&client, 4), SMV_OK);
        client_close(&client);
        expect_nothing_held(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

/* A request that is refused needs no text worker but to be read. */
static void put_nonsense(struct buffer *frame, uint32_t id, size_t body_bytes)
{
        struct wire_writer writer;
        char *text = letters(body_bytes);
        size_t head;

        wire_begin(&writer, frame);
        head = buffer_count(frame);
        wire_put_map(&writer, 3);
        put_head(&writer, "status", id);
        wire_put_text(&writer, "nonsense");
        head = buffer_count(frame) - head;
        wire_put_bytes(&writer, text, body_bytes - head - 3);
        assert_int_equal(wire_end(&writer), 0);
        free(text);
}

static void ask_nonsense(struct client *client, uint32_t id, size_t body_bytes)
{
        struct buffer frame;

        buffer_init(&frame, 64 << 20);
        put_nonsense(&frame, id, body_bytes);
        assert_int_equal(buffer_count(&frame), body_bytes + 4);
        send_all(client, &frame);
}

static void the_loop_decodes_frames_up_to_8_kib_itself(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        ask_nonsense(&client, 2, SMALL_MAX);
        assert_int_equal(reply_code(&client, 2), SMV_BAD_FIELD);
        expect_no_job(fixture);
        ask_nonsense(&client, 3, SMALL_MAX + 1);
        do_job(fixture);
        assert_int_equal(reply_code(&client, 3), SMV_BAD_FIELD);
        expect_nothing_held(fixture, &client);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void refuses_a_frame_over_8_kib_before_hello(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client polite, rude;

        (void)state;
        edge_fixture_start(fixture, false);
        client_open(fixture, &polite);
        ask_nonsense(&polite, 2, SMALL_MAX);
        assert_int_equal(reply_code(&polite, 2), SMV_BAD_FIELD);
        expect_no_job(fixture);
        ask_hello(&polite, 3, 0, 0);
        ask_letters(&polite, "tokenize", 4, 20000); /* and at once a larger one */
        assert_int_equal(reply_code(&polite, 3), SMV_OK);
        do_job(fixture);
        do_job(fixture);
        expect_ids(&polite, 4, 20000);

        client_open(fixture, &rude);
        assert_int_equal(send(rude.fd, "\x01\x20\0\0", 4, MSG_NOSIGNAL), 4);
        assert_int_equal(reply_code(&rude, 0), SMV_BAD_FRAME);
        assert_true(is_closed(&rude));
        client_close(&rude);
        expect_nothing_held(fixture, &polite);
        client_close(&polite);
        edge_fixture_close(fixture);
}

/* Two large ones, a small one between, and half of one behind, all in one read. */
static void keeps_frames_received_in_one_read_with_a_large_frame(void **state)
{
        static const size_t cuts[] = { 1, 3, 4, 5, 10 }; /* of the last frame, in front */
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        say_hello(fixture, &other);
        for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++) {
                struct buffer frames, last;
                struct wire_writer writer;

                buffer_init(&frames, 64 << 20);
                put_nonsense(&frames, 2, 9000);
                put_nonsense(&frames, 3, 40);
                put_nonsense(&frames, 4, 9000);
                put_nonsense(&frames, 5, 9001);
                OPEN_FRAME(writer, last, 2);
                put_head(&writer, "status", 6);
                assert_int_equal(wire_end(&writer), 0);
                buffer_append(&frames, last.bytes, cuts[i]);
                send_all(&client, &frames);
                buffer_take(&last, cuts[i]);

                do_job(fixture);
                assert_int_equal(reply_code(&client, 2), SMV_BAD_FIELD);
                assert_int_equal(reply_code(&client, 3), SMV_BAD_FIELD);
                send_all(&client, &last);
                let_loop_turn(&other);
                assert_true(is_silent(&client, 5));
                do_job(fixture);
                assert_int_equal(reply_code(&client, 4), SMV_BAD_FIELD);
                do_job(fixture);
                assert_int_equal(reply_code(&client, 5), SMV_BAD_FIELD);
                assert_int_equal(reply_code(&client, 6), SMV_OK);
        }
        client_close(&client);
        expect_nothing_held(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

static void cancels_a_generate_in_a_large_frame(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        ask_letters(&client, "generate", 5, 20000);
        ask_cancel(&client, 6, 5);
        do_job(fixture);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        do_job(fixture);
        assert_int_equal(reply_code(&client, 5), SMV_CANCELLED);
        assert_int_equal(fixture->submits, 0);
        expect_nothing_held(fixture, &client);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void starts_a_stream_from_a_prompt_in_a_large_frame(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        struct wire_writer writer;
        struct buffer frame;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        OPEN_FRAME(writer, frame, 5);
        put_head(&writer, "generate", 7);
        wire_put_text(&writer, "stop");
        wire_put_text(&writer, "the end");
        wire_put_text(&writer, "tokens");
        wire_put_array(&writer, 950);
        for (uint32_t i = 0; i < 950; i++) {
                const uint8_t wide[] = { 0xcf, 0, 0, 0, 0, 0, 0, 1, (uint8_t)(i % 40) };

                buffer_append(&frame, wide, sizeof(wide));
        }
        wire_put_text(&writer, "max_tokens");
        wire_put_uint(&writer, 3);
        assert_int_equal(wire_end(&writer), 0);
        assert_true(buffer_count(&frame) > SMALL_MAX + 4);
        send_all(&client, &frame);
        do_job(fixture);
        assert_int_equal(reply_code(&client, 7), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(fixture->live[0]->prompt_count, 950);
        for (uint32_t i = 0; i < 950; i++)
                assert_int_equal(fixture->live[0]->sequence.tokens[i], 256 + i % 40);
        assert_int_equal(fixture->live[0]->stop_count, 1);
        assert_memory_equal(fixture->live[0]->stops[0], "the end", 7);
        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
        assert_int_equal(expect_end(&client, 7)->reason, SMV_END_LENGTH);
        expect_nothing_held(fixture, &client);
        client_close(&client);
        edge_fixture_close(fixture);
}

/* ---- refused ---- */

static void a_malformed_large_frame_is_refused_by_id_and_ends_the_connection(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;
        struct buffer frame;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &other);
        say_hello(fixture, &client);
        buffer_init(&frame, 64 << 20);
        put_nonsense(&frame, 77, 100000);
        frame.bytes[frame.start + 4]++; /* one pair more than there is */
        send_all(&client, &frame);
        ask_plain(&client, "status", 3); /* never read */
        do_job(fixture);
        assert_int_equal(reply_code(&client, 77), SMV_BAD_FRAME);
        assert_true(is_closed(&client));
        client_close(&client);
        expect_nothing_held(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

/* Both jobs come back in one turn, the one of the malformed frame first. */
static void a_malformed_frame_cancels_a_generate_that_comes_back_in_the_same_turn(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct text_job *prompt, *decode;
        struct client client, other;
        struct buffer frame;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &other);
        say_hello(fixture, &client);
        ask_letters(&client, "generate", 5, 100);
        prompt = take_job(fixture);
        buffer_init(&frame, 64 << 20);
        put_nonsense(&frame, 77, 100000);
        frame.bytes[frame.start + 4]++; /* one pair more than there is */
        send_all(&client, &frame);
        decode = take_job(fixture);
        prompt->result = prompt->work(prompt);
        decode->result = decode->work(decode);
        mailbox_put(fixture->from_text_worker,
                    &(struct mail){ .kind = MAIL_JOB_DONE, .what = decode });
        give_back(fixture, prompt);
        assert_int_equal(reply_code(&client, 77), SMV_BAD_FRAME);
        assert_int_equal(reply_code(&client, 5), SMV_CANCELLED);
        assert_true(is_closed(&client));
        assert_int_equal(fixture->submits, 0);
        client_close(&client);
        expect_nothing_held(fixture, &other);
        client_close(&other);
        edge_fixture_close(fixture);
}

/*
 * Refused before its body was read.  The refusal still has the frame's id, and later frames are
 * handled.
 */
static void expect_refused_unread(struct edge_fixture *fixture, struct client *client,
                                  enum smv_code code)
{
        ask_letters(client, "tokenize", 9, 100000);
        assert_int_equal(reply_code(client, 9), code);
        expect_no_job(fixture);
        ask_plain(client, "status", 10);
        assert_int_equal(reply_code(client, 10), SMV_OK);
}

static void refuses_a_large_frame_over_a_limit_with_its_id(void **state)
{
        static const enum smv_code codes[] = { SMV_QUOTA, SMV_BUSY, SMV_QUOTA };

        (void)state;
        for (uint32_t i = 0; i < 3; i++) {
                struct edge_fixture *fixture = edge_fixture_new();
                struct client client;

                if (i == 0)
                        fixture->config.uid_requests = 1;
                else if (i == 1)
                        fixture->config.requests = 1;
                else
                        fixture->config.uid_prompt_bytes = 90000;
                edge_fixture_start(fixture, false);
                say_hello(fixture, &client);
                if (i < 2) {
                        ask_generate(&client, 5);
                        assert_int_equal(reply_code(&client, 5), SMV_OK);
                        ENGINE_UNTIL(fixture, fixture->live_count == 1);
                }
                expect_refused_unread(fixture, &client, codes[i]);
                if (i < 2) {
                        end(fixture, fixture->live[0], SMV_END_LENGTH, SMV_OK);
                        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_LENGTH);
                        ENGINE_UNTIL(fixture, charge_of(&client, "requests") == 0);
                        ask_letters(&client, "tokenize", 9, 100000); /* now there is room */
                        do_job(fixture);
                        do_job(fixture);
                        expect_ids(&client, 9, 100000);
                }
                expect_nothing_held(fixture, &client);
                client_close(&client);
                edge_fixture_close(fixture);
        }
}

static void accepts_the_largest_number_of_ids_and_refuses_one_more(void **state)
{
        uint32_t *ids = calloc(SMV_TOKENS_MAX + 1, sizeof(*ids));
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        msgpack_unpacked reply;

        (void)state;
        assert_int_equal(SMV_TOKENS_MAX, 1048576); /* docs/reference/protocol.md */
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        for (uint32_t i = 0; i <= SMV_TOKENS_MAX; i++)
                ids[i] = 'y';
        ask_tokens(&client, "detokenize", 2, ids, SMV_TOKENS_MAX);
        assert_true(next_reply(&client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), 2);
        assert_int_equal(get(&reply.data, "text")->via.bin.size, SMV_TOKENS_MAX);
        drop_frame(&client, &reply);
        ask_tokens(&client, "detokenize", 3, ids, SMV_TOKENS_MAX + 1);
        assert_int_equal(reply_code(&client, 3), SMV_BAD_VALUE);
        ask_tokens(&client, "generate", 4, ids, SMV_TOKENS_MAX);
        assert_int_equal(reply_code(&client, 4), SMV_TOO_LONG);

        ids[99999] = VOCAB;
        ask_tokens(&client, "detokenize", 5, ids, 100000);
        assert_true(next_reply(&client, &reply));
        assert_int_equal(get_uint(&reply.data, "id"), 5);
        assert_int_equal(get_uint(&reply.data, "code"), SMV_BAD_VALUE);
        assert_true(is_text(get(&reply.data, "message"),
                            "tokens has 300 at index 99999; the largest id is 299"));
        drop_frame(&client, &reply);
        ENGINE_UNTIL(fixture, charge_of(&client, "requests") == 0);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
        free(ids);
}

/* ---- clients that leave meanwhile ---- */

static void frees_a_large_frame_if_its_client_disconnects_while_it_is_decoded(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &other);
        for (uint32_t i = 0; i < 4; i++) {
                bool was_read = i % 2, more_behind = i / 2;
                struct text_job *job;

                say_hello(fixture, &client);
                ask_letters(&client, "tokenize", 2, 100000);
                if (more_behind)
                        ask_plain(&client, "status", 3);
                job = take_job(fixture);
                if (was_read)
                        job->result = job->work(job);
                client_close(&client);
                ENGINE_UNTIL(fixture, charge_of(&other, "connections") == 1);
                assert_true(job->cancelled);
                assert_int_equal(charge_of(&other, "requests"), 1);
                if (!was_read) {
                        job->result = job->work(job);
                        assert_int_equal(job->result, -ECANCELED);
                }
                give_back(fixture, job);
                expect_nothing_held(fixture, &other);
        }
        client_close(&other);
        edge_fixture_close(fixture);
}

static uint64_t cpu_ms(void)
{
        struct timespec now;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void input_behind_a_large_frame_does_not_make_the_loop_spin(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        uint64_t from_ms;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        for (uint32_t i = 0; i < 2; i++) {
                ask_letters(&client, "tokenize", 2, 100000);
                usleep(20000);
                ask_plain(&client, "status", 3);
                if (i)
                        shutdown(client.fd, SHUT_WR);
                from_ms = cpu_ms();
                usleep(300000);
                assert_true(cpu_ms() - from_ms < 150);
                do_job(fixture);
                assert_int_equal(reply_code(&client, 3), SMV_OK);
                do_job(fixture);
                expect_ids(&client, 2, 100000);
        }
        assert_true(is_closed(&client));
        client_close(&client);
        edge_fixture_close(fixture);
}

static void a_half_closed_client_receives_all_replies(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;

        (void)state;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &other);
        for (uint32_t i = 0; i < 2; i++) {
                say_hello(fixture, &client);
                ask_letters(&client, "tokenize", 2, 100000);
                if (i)
                        ask_plain(&client, "status", 3);
                shutdown(client.fd, SHUT_WR);
                let_loop_turn(&other);
                do_job(fixture);
                if (i)
                        assert_int_equal(reply_code(&client, 3), SMV_OK);
                do_job(fixture);
                expect_ids(&client, 2, 100000);
                assert_true(is_closed(&client));
                client_close(&client);
                expect_nothing_held(fixture, &other);
        }
        client_close(&other);
        edge_fixture_close(fixture);
}

static void a_drain_refuses_jobs_in_the_text_worker_with_their_ids(void **state)
{
        (void)state;
        for (uint32_t i = 0; i < 2; i++) {
                struct edge_fixture *fixture = edge_fixture_new();
                struct text_job *job;
                struct client client;

                edge_fixture_start(fixture, false);
                say_hello(fixture, &client);
                ask_letters(&client, i ? "tokenize" : "generate", 5, 100000);
                job = take_job(fixture);
                if (i)
                        job->result = job->work(job);
                drain(fixture, 2);
                while (!job->cancelled)
                        usleep(1000);
                if (!i)
                        job->result = job->work(job);
                give_back(fixture, job);
                assert_int_equal(edge_fixture_stop(fixture), 0);
                assert_int_equal(reply_code(&client, 5), SMV_SHUTTING_DOWN);
                assert_true(is_closed(&client));
                client_close(&client);
        }
}

/* The daemon waits until pending replies are flushed, so the client can still send a request. */
static void refuses_a_large_frame_during_shutdown_without_decoding_it(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        fixture->config.frame_bytes = 4 << 20;
        edge_fixture_start(fixture, false);
        say_hello(fixture, &client);
        ask_letters(&client, "tokenize", 2, LONG_TEXT);
        do_job(fixture);
        do_job(fixture);
        assert_true(fill(&client));
        drain_begun(fixture, 2);
        ask_letters(&client, "tokenize", 3, 100000);
        usleep(50000);
        expect_no_job(fixture);
        expect_ids(&client, 2, LONG_TEXT);
        assert_int_equal(reply_code(&client, 3), SMV_SHUTTING_DOWN);
        client_close(&client);
        assert_int_equal(edge_fixture_stop(fixture), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_large_frame_delays_later_frames_of_its_client_only),
                cmocka_unit_test(the_loop_decodes_frames_up_to_8_kib_itself),
                cmocka_unit_test(refuses_a_frame_over_8_kib_before_hello),
                cmocka_unit_test(keeps_frames_received_in_one_read_with_a_large_frame),
                cmocka_unit_test(cancels_a_generate_in_a_large_frame),
                cmocka_unit_test(starts_a_stream_from_a_prompt_in_a_large_frame),
                cmocka_unit_test(a_malformed_large_frame_is_refused_by_id_and_ends_the_connection),
                cmocka_unit_test(
                        a_malformed_frame_cancels_a_generate_that_comes_back_in_the_same_turn),
                cmocka_unit_test(refuses_a_large_frame_over_a_limit_with_its_id),
                cmocka_unit_test(accepts_the_largest_number_of_ids_and_refuses_one_more),
                cmocka_unit_test(frees_a_large_frame_if_its_client_disconnects_while_it_is_decoded),
                cmocka_unit_test(input_behind_a_large_frame_does_not_make_the_loop_spin),
                cmocka_unit_test(a_half_closed_client_receives_all_replies),
                cmocka_unit_test(a_drain_refuses_jobs_in_the_text_worker_with_their_ids),
                cmocka_unit_test(refuses_a_large_frame_during_shutdown_without_decoding_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
