/* Streams as clients and the engine see them: order, cancels, hang-ups, slow readers. */
#include "tests/unit/edge-client.h"

static void a_stream_is_a_reply_records_and_END_and_frees_everything(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(fixture->live[0]->prompt_count, 3);
        assert_int_equal(fixture->live[0]->max_tokens, 16);
        assert_int_equal(fixture->live[0]->sampling.seed, 42);
        say(fixture, fixture->live[0], 65);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_int_equal(next_record(&client)->type, SMV_RECORD_TOKENS);
        assert_int_equal(charge_of(&client, "requests"), 1);
        assert_int_equal(charge_of(&client, "ring_bytes"), 0); /* its ring is private */
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_EOS);
        assert_int_equal(charge_of(&client, "requests"), 0);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void an_id_stays_taken_until_its_END_was_read(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        for (uint32_t i = 0; i < 200; i++) {
                ask_generate(&client, 5);
                ENGINE_UNTIL(fixture, fixture->live_count == 1);
                assert_int_equal(reply_code(&client, 5), SMV_OK);
                if (i % 50 == 0) {
                        ask_generate(&client, 5);
                        assert_int_equal(reply_code(&client, 5), SMV_DUP_ID);
                        ask_text(&client, "tokenize", 5, "text", "x", 1);
                        assert_int_equal(reply_code(&client, 5), SMV_DUP_ID);
                }
                end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
                expect_end(&client, 5);
        }
        client_close(&client);
        edge_fixture_close(fixture);
}

static void puts_bos_before_a_text_prompt(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_text(&client, "generate", 5, "prompt", "AB", 2);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_int_equal(fixture->live[0]->prompt_count, 3);
        assert_int_equal(fixture->live[0]->sequence.tokens[0], BOS);
        assert_int_equal(fixture->live[0]->sequence.tokens[2], 'B');
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        expect_end(&client, 5);
        /* Too long is known only when it was counted. */
        {
                static char text[3000];

                memset(text, 'x', sizeof(text));
                ask_text(&client, "generate", 6, "prompt", text, sizeof(text));
                assert_int_equal(reply_code(&client, 6), SMV_TOO_LONG);
        }
        assert_int_equal(charge_of(&client, "requests"), 0);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void sends_one_cancel_and_accepts_cancels_of_unknown_streams(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        for (uint32_t i = 0; i < 3; i++) {
                ask_cancel(&client, 10 + i, 5);
                assert_int_equal(reply_code(&client, 10 + i), SMV_OK);
        }
        ask_cancel(&client, 20, 12345);
        assert_int_equal(reply_code(&client, 20), SMV_OK);
        while (engine(fixture, 20))
                ;
        assert_int_equal(fixture->cancels, 1);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_CANCELLED);
        ask_cancel(&client, 21, 5);
        assert_int_equal(reply_code(&client, 21), SMV_OK);
        while (engine(fixture, 20))
                ;
        assert_int_equal(fixture->cancels, 1);
        assert_int_equal(charge_of(&client, "requests"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void a_cancel_that_crosses_RETIRED_delays_freeing_the_request(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        struct request *request;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        request = fixture->live[0];
        ask_cancel(&client, 6, 5);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        end(fixture, request, SMV_END_EOS, SMV_OK); /* before the CANCEL is taken */
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_EOS);
        assert_int_equal(charge_of(&client, "requests"), 1);
        ENGINE_UNTIL(fixture, fixture->cancels == 1); /* posts RETIRED once more */
        ENGINE_UNTIL(fixture, charge_of(&client, "requests") == 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void ask_fork(struct client *client, uint32_t id, uint32_t stream, uint32_t count)
{
        struct wire_writer writer;
        struct buffer frame;

        OPEN_FRAME(writer, frame, 4);
        put_head(&writer, "fork", id);
        wire_put_text(&writer, "stream");
        wire_put_uint(&writer, stream);
        wire_put_text(&writer, "count");
        wire_put_uint(&writer, count);
        wire_end(&writer);
        send_all(client, &frame);
}

/* Twice forked and cancelled, none of which was taken when it retired. */
static void a_fork_that_crosses_RETIRED_delays_freeing_its_parent(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        ask_fork(&client, 10, 5, 2);
        assert_int_equal(reply_code(&client, 10), SMV_OK);
        ask_fork(&client, 20, 5, 1);
        assert_int_equal(reply_code(&client, 20), SMV_OK);
        ask_cancel(&client, 6, 5);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_EOS);
        assert_int_equal(charge_of(&client, "requests"), 4); /* it is kept */
        ENGINE_UNTIL(fixture, fixture->submits == 3 && fixture->cancels == 1);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(expect_end(&client, i < 2 ? 10 + i : 20)->code, SMV_NO_STREAM);
        ENGINE_UNTIL(fixture, charge_of(&client, "requests") == 0);
        ask_fork(&client, 30, 5, 1);
        assert_int_equal(reply_code(&client, 30), SMV_NO_STREAM);
        client_close(&client);
        edge_fixture_close(fixture);
}

/* Taken while its parent lived: then nothing more is to come. */
static void submits_forks_in_one_mail_and_ends_each_separately(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        ask_fork(&client, 10, 5, 3);
        assert_int_equal(reply_code(&client, 10), SMV_OK);
        ENGINE_UNTIL(fixture, fixture->live_count == 4);
        assert_int_equal(fixture->submits, 2);
        assert_int_equal(charge_of(&client, "requests"), 4);
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_EOS);
        assert_int_equal(charge_of(&client, "requests"), 3);
        for (uint32_t i = 0; i < 3; i++) {
                ask_cancel(&client, 30 + i, 10 + i);
                assert_int_equal(reply_code(&client, 30 + i), SMV_OK);
                ENGINE_UNTIL(fixture, fixture->cancels == i + 1);
                assert_int_equal(expect_end(&client, 10 + i)->reason, SMV_END_CANCELLED);
        }
        assert_int_equal(charge_of(&client, "requests"), 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void a_hangup_cancels_all_requests_and_leaks_nothing(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client witness, client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &witness);
        for (uint32_t i = 0; i < 20; i++) {
                fixture->lose_cancel = i % 2;
                fixture->cancels = fixture->hangups = 0;
                say_hello(fixture, &client);
                for (uint32_t id = 1; id <= 4; id++)
                        ask_generate(&client, id);
                ask_text(&client, "generate", 5, "prompt", "hello", 5);
                ENGINE_UNTIL(fixture, fixture->live_count == 5);
                if (i % 3 == 0)
                        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
                client_close(&client);
                ENGINE_UNTIL(fixture, fixture->hangups == 1);
                ENGINE_UNTIL(fixture, charge_of(&witness, "ring_bytes") == 0);
                assert_int_equal(fixture->live_count, 0);
                assert_int_equal(charge_of(&witness, "requests"), 0);
                assert_int_equal(charge_of(&witness, "prompt_bytes"), 0);
                assert_int_equal(charge_of(&witness, "connections"), 1);
        }
        client_close(&witness);
        edge_fixture_close(fixture);
}

static void serves_a_half_closed_client_to_the_end(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        shutdown(client.fd, SHUT_WR);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        for (uint32_t i = 0; i < 10; i++) {
                assert_false(engine(fixture, 5));
                say(fixture, fixture->live[0], 65);
                assert_int_equal(next_record(&client)->type, SMV_RECORD_TOKENS);
        }
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        expect_end(&client, 5);
        assert_true(is_closed(&client));
        assert_int_equal(fixture->cancels, 0);
        client_close(&client);
        edge_fixture_close(fixture);
}

static void cancels_when_a_half_closed_client_closes_completely(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        shutdown(client.fd, SHUT_WR);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_false(engine(fixture, 50));
        client_close(&client);
        ENGINE_UNTIL(fixture, fixture->cancels == 1);
        assert_int_equal(fixture->last_cancel.reason, SMV_END_CANCELLED);
        edge_fixture_close(fixture);
}

static void a_half_closed_client_receives_more_than_its_socket_holds(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client;
        uint32_t said = 0, heard = 0, idle = 0;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        ask_generate(&client, 5);
        shutdown(client.fd, SHUT_WR);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        while (idle < 20) { /* socket, buffer and ring are full */
                bool room = say(fixture, fixture->live[0], 65);

                said += room;
                idle = room ? 0 : idle + 1;
                if (!room)
                        usleep(5000);
        }
        while (heard < said) {
                assert_int_equal(next_record(&client)->type, SMV_RECORD_TOKENS);
                heard++;
        }
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        expect_end(&client, 5);
        assert_true(is_closed(&client));
        client_close(&client);
        edge_fixture_close(fixture);
}

static void a_slow_reader_is_stalled_and_resumed_when_it_reads(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, other;
        struct channel *channel;
        uint32_t said = 0, idle = 0;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &client);
        say_hello(fixture, &other);
        ask_generate(&client, 5);
        ENGINE_UNTIL(fixture, fixture->live_count == 1);
        channel = fixture->live[0]->channel;
        while (idle < 20) {
                bool room = say(fixture, fixture->live[0], 65);

                said += room;
                idle = room ? 0 : idle + 1;
                if (!room)
                        usleep(5000);
        }
        assert_true(channel_stall(channel));
        assert_false(engine(fixture, 50));
        assert_int_equal(fixture->rooms, 0);
        ask_plain(&other, "status", 2); /* no other client is delayed */
        assert_int_equal(reply_code(&other, 2), SMV_OK);

        assert_int_equal(reply_code(&client, 5), SMV_OK);
        for (uint32_t i = 0; i < said; i++)
                assert_int_equal(next_record(&client)->type, SMV_RECORD_TOKENS);
        ENGINE_UNTIL(fixture, fixture->rooms >= 1);
        channel_resume(channel);
        end(fixture, fixture->live[0], SMV_END_EOS, SMV_OK);
        expect_end(&client, 5);
        client_close(&client);
        client_close(&other);
        edge_fixture_close(fixture);
}

static void hangs_up_on_a_client_that_does_not_read_its_replies(void **state)
{
        struct edge_fixture *fixture = edge_fixture_new();
        struct client client, witness;

        (void)state;
        edge_fixture_start(fixture, true);
        say_hello(fixture, &witness);
        say_hello(fixture, &client);
        for (uint32_t i = 0; i < 5000; i++)
                ask_plain(&client, "status", i + 1);
        ENGINE_UNTIL(fixture, charge_of(&witness, "connections") == 1);
        client_close(&client);
        client_close(&witness);
        edge_fixture_close(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stream_is_a_reply_records_and_END_and_frees_everything),
                cmocka_unit_test(an_id_stays_taken_until_its_END_was_read),
                cmocka_unit_test(puts_bos_before_a_text_prompt),
                cmocka_unit_test(sends_one_cancel_and_accepts_cancels_of_unknown_streams),
                cmocka_unit_test(a_cancel_that_crosses_RETIRED_delays_freeing_the_request),
                cmocka_unit_test(a_fork_that_crosses_RETIRED_delays_freeing_its_parent),
                cmocka_unit_test(submits_forks_in_one_mail_and_ends_each_separately),
                cmocka_unit_test(a_hangup_cancels_all_requests_and_leaks_nothing),
                cmocka_unit_test(serves_a_half_closed_client_to_the_end),
                cmocka_unit_test(cancels_when_a_half_closed_client_closes_completely),
                cmocka_unit_test(a_half_closed_client_receives_more_than_its_socket_holds),
                cmocka_unit_test(a_slow_reader_is_stalled_and_resumed_when_it_reads),
                cmocka_unit_test(hangs_up_on_a_client_that_does_not_read_its_replies),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
