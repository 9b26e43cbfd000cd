/* Streams as clients and the engine see them: order, cancels, hang-ups, slow readers. */
#include "tests/unit/house-client.h"

static void a_stream_is_reply_records_end_and_holds_nothing_afterwards(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(house->live[0]->prompt_count, 3);
        assert_int_equal(house->live[0]->max_tokens, 16);
        assert_int_equal(house->live[0]->sampling.seed, 42);
        say(house, house->live[0], 65);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_int_equal(next_record(&client)->type, SMV_RECORD_TOKENS);
        assert_int_equal(charge_of(&client, "requests"), 1);
        assert_int_equal(charge_of(&client, "ring_bytes"), 64 << 10);
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_EOS);
        assert_int_equal(charge_of(&client, "requests"), 0);
        assert_int_equal(charge_of(&client, "prompt_bytes"), 0);
        client_close(&client);
        house_close(house);
}

static void an_id_is_taken_until_its_end_was_read(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        for (uint32_t i = 0; i < 200; i++) {
                ask_generate(&client, 5);
                ENGINE_UNTIL(house, house->live_count == 1);
                assert_int_equal(reply_code(&client, 5), SMV_OK);
                if (i % 50 == 0) {
                        ask_generate(&client, 5);
                        assert_int_equal(reply_code(&client, 5), SMV_DUP_ID);
                        ask_text(&client, "tokenize", 5, "text", "x", 1);
                        assert_int_equal(reply_code(&client, 5), SMV_DUP_ID);
                }
                end(house, house->live[0], SMV_END_EOS, SMV_OK);
                expect_end(&client, 5);
        }
        client_close(&client);
        house_close(house);
}

static void a_text_prompt_gets_the_first_token_of_the_model(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_text(&client, "generate", 5, "prompt", "AB", 2);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_int_equal(house->live[0]->prompt_count, 3);
        assert_int_equal(house->live[0]->sequence.tokens[0], BOS);
        assert_int_equal(house->live[0]->sequence.tokens[2], 'B');
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
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
        house_close(house);
}

static void a_cancel_is_sent_once_and_unknown_streams_are_no_error(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_generate(&client, 5);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        for (uint32_t i = 0; i < 3; i++) {
                ask_cancel(&client, 10 + i, 5);
                assert_int_equal(reply_code(&client, 10 + i), SMV_OK);
        }
        ask_cancel(&client, 20, 12345);
        assert_int_equal(reply_code(&client, 20), SMV_OK);
        while (engine(house, 20))
                ;
        assert_int_equal(house->cancels, 1);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_CANCELLED);
        ask_cancel(&client, 21, 5);
        assert_int_equal(reply_code(&client, 21), SMV_OK);
        while (engine(house, 20))
                ;
        assert_int_equal(house->cancels, 1);
        assert_int_equal(charge_of(&client, "requests"), 0);
        client_close(&client);
        house_close(house);
}

static void a_cancel_that_crosses_retired_keeps_the_request(void **state)
{
        struct house *house = house_new();
        struct client client;
        struct request *request;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        request = house->live[0];
        ask_cancel(&client, 6, 5);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        end(house, request, SMV_END_EOS, SMV_OK); /* before the CANCEL is taken */
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_EOS);
        assert_int_equal(charge_of(&client, "requests"), 1);
        ENGINE_UNTIL(house, house->cancels == 1); /* posts RETIRED once more */
        ENGINE_UNTIL(house, charge_of(&client, "requests") == 0);
        client_close(&client);
        house_close(house);
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
static void a_fork_that_crosses_retired_keeps_its_parent(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        ask_fork(&client, 10, 5, 2);
        assert_int_equal(reply_code(&client, 10), SMV_OK);
        ask_fork(&client, 20, 5, 1);
        assert_int_equal(reply_code(&client, 20), SMV_OK);
        ask_cancel(&client, 6, 5);
        assert_int_equal(reply_code(&client, 6), SMV_OK);
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_EOS);
        assert_int_equal(charge_of(&client, "requests"), 4); /* it is kept */
        ENGINE_UNTIL(house, house->submits == 3 && house->cancels == 1);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(expect_end(&client, i < 2 ? 10 + i : 20)->code, SMV_NO_STREAM);
        ENGINE_UNTIL(house, charge_of(&client, "requests") == 0);
        ask_fork(&client, 30, 5, 1);
        assert_int_equal(reply_code(&client, 30), SMV_NO_STREAM);
        client_close(&client);
        house_close(house);
}

/* Taken while its parent lived: then nothing more is to come. */
static void forks_are_one_mail_and_streams_of_their_own(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_generate(&client, 5);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        ask_fork(&client, 10, 5, 3);
        assert_int_equal(reply_code(&client, 10), SMV_OK);
        ENGINE_UNTIL(house, house->live_count == 4);
        assert_int_equal(house->submits, 2);
        assert_int_equal(charge_of(&client, "requests"), 4);
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        assert_int_equal(expect_end(&client, 5)->reason, SMV_END_EOS);
        assert_int_equal(charge_of(&client, "requests"), 3);
        for (uint32_t i = 0; i < 3; i++) {
                ask_cancel(&client, 30 + i, 10 + i);
                assert_int_equal(reply_code(&client, 30 + i), SMV_OK);
                ENGINE_UNTIL(house, house->cancels == i + 1);
                assert_int_equal(expect_end(&client, 10 + i)->reason, SMV_END_CANCELLED);
        }
        assert_int_equal(charge_of(&client, "requests"), 0);
        client_close(&client);
        house_close(house);
}

static void a_hang_up_cancels_everything_and_leaks_nothing(void **state)
{
        struct house *house = house_new();
        struct client witness, client;

        (void)state;
        house_start(house, true);
        say_hello(house, &witness);
        for (uint32_t i = 0; i < 20; i++) {
                house->lose_cancel = i % 2;
                house->cancels = house->hangups = 0;
                say_hello(house, &client);
                for (uint32_t id = 1; id <= 4; id++)
                        ask_generate(&client, id);
                ask_text(&client, "generate", 5, "prompt", "hello", 5);
                ENGINE_UNTIL(house, house->live_count == 5);
                if (i % 3 == 0)
                        end(house, house->live[0], SMV_END_EOS, SMV_OK);
                client_close(&client);
                ENGINE_UNTIL(house, house->hangups == 1);
                ENGINE_UNTIL(house, charge_of(&witness, "ring_bytes") == 0);
                assert_int_equal(house->live_count, 0);
                assert_int_equal(charge_of(&witness, "requests"), 0);
                assert_int_equal(charge_of(&witness, "prompt_bytes"), 0);
                assert_int_equal(charge_of(&witness, "connections"), 1);
        }
        client_close(&witness);
        house_close(house);
}

static void a_half_closed_client_is_served_to_the_end(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_generate(&client, 5);
        shutdown(client.fd, SHUT_WR);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        for (uint32_t i = 0; i < 10; i++) {
                assert_false(engine(house, 5));
                say(house, house->live[0], 65);
                assert_int_equal(next_record(&client)->type, SMV_RECORD_TOKENS);
        }
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        expect_end(&client, 5);
        assert_true(is_closed(&client));
        assert_int_equal(house->cancels, 0);
        client_close(&client);
        house_close(house);
}

static void a_half_closed_client_that_goes_is_cancelled_at_once(void **state)
{
        struct house *house = house_new();
        struct client client;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_generate(&client, 5);
        shutdown(client.fd, SHUT_WR);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        assert_false(engine(house, 50));
        client_close(&client);
        ENGINE_UNTIL(house, house->cancels == 1);
        assert_int_equal(house->last_cancel.reason, SMV_END_CANCELLED);
        house_close(house);
}

static void a_half_closed_client_gets_more_than_its_socket_holds(void **state)
{
        struct house *house = house_new();
        struct client client;
        uint32_t said = 0, heard = 0, idle = 0;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        ask_generate(&client, 5);
        shutdown(client.fd, SHUT_WR);
        ENGINE_UNTIL(house, house->live_count == 1);
        assert_int_equal(reply_code(&client, 5), SMV_OK);
        while (idle < 20) { /* socket, buffer and ring are full */
                bool room = say(house, house->live[0], 65);

                said += room;
                idle = room ? 0 : idle + 1;
                if (!room)
                        usleep(5000);
        }
        while (heard < said) {
                assert_int_equal(next_record(&client)->type, SMV_RECORD_TOKENS);
                heard++;
        }
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        expect_end(&client, 5);
        assert_true(is_closed(&client));
        client_close(&client);
        house_close(house);
}

static void slow_reader_is_stalled_and_nudges_when_it_reads_on(void **state)
{
        struct house *house = house_new();
        struct client client, other;
        struct channel *channel;
        uint32_t said = 0, idle = 0;

        (void)state;
        house_start(house, true);
        say_hello(house, &client);
        say_hello(house, &other);
        ask_generate(&client, 5);
        ENGINE_UNTIL(house, house->live_count == 1);
        channel = house->live[0]->channel;
        while (idle < 20) {
                bool room = say(house, house->live[0], 65);

                said += room;
                idle = room ? 0 : idle + 1;
                if (!room)
                        usleep(5000);
        }
        assert_true(channel_stall(channel));
        assert_false(engine(house, 50));
        assert_int_equal(house->rooms, 0);
        ask_plain(&other, "status", 2); /* no other client is delayed */
        assert_int_equal(reply_code(&other, 2), SMV_OK);

        assert_int_equal(reply_code(&client, 5), SMV_OK);
        for (uint32_t i = 0; i < said; i++)
                assert_int_equal(next_record(&client)->type, SMV_RECORD_TOKENS);
        ENGINE_UNTIL(house, house->rooms >= 1);
        channel_resume(channel);
        end(house, house->live[0], SMV_END_EOS, SMV_OK);
        expect_end(&client, 5);
        client_close(&client);
        client_close(&other);
        house_close(house);
}

static void a_client_that_does_not_read_its_replies_is_hung_up(void **state)
{
        struct house *house = house_new();
        struct client client, witness;

        (void)state;
        house_start(house, true);
        say_hello(house, &witness);
        say_hello(house, &client);
        for (uint32_t i = 0; i < 5000; i++)
                ask_plain(&client, "status", i + 1);
        ENGINE_UNTIL(house, charge_of(&witness, "connections") == 1);
        client_close(&client);
        client_close(&witness);
        house_close(house);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stream_is_reply_records_end_and_holds_nothing_afterwards),
                cmocka_unit_test(an_id_is_taken_until_its_end_was_read),
                cmocka_unit_test(a_text_prompt_gets_the_first_token_of_the_model),
                cmocka_unit_test(a_cancel_is_sent_once_and_unknown_streams_are_no_error),
                cmocka_unit_test(a_cancel_that_crosses_retired_keeps_the_request),
                cmocka_unit_test(a_fork_that_crosses_retired_keeps_its_parent),
                cmocka_unit_test(forks_are_one_mail_and_streams_of_their_own),
                cmocka_unit_test(a_hang_up_cancels_everything_and_leaks_nothing),
                cmocka_unit_test(a_half_closed_client_is_served_to_the_end),
                cmocka_unit_test(a_half_closed_client_that_goes_is_cancelled_at_once),
                cmocka_unit_test(a_half_closed_client_gets_more_than_its_socket_holds),
                cmocka_unit_test(slow_reader_is_stalled_and_nudges_when_it_reads_on),
                cmocka_unit_test(a_client_that_does_not_read_its_replies_is_hung_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
