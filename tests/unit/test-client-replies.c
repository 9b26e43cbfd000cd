/*
 * The replies to libsamovar's requests that do not wait, against a scripted daemon: each request
 * has one, before the records of its streams, whatever the order in which the bytes arrive.
 */
#include "tests/unit/client-asks-rig.h"

#include <pthread.h>

#define SMALL 4096u

static unsigned polls; /* calls of poll() by the library, and by the tests */

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
        const struct timespec time = { timeout / 1000, timeout % 1000 * 1000000L };

        polls++;
        return ppoll(fds, count, timeout < 0 ? NULL : &time, NULL);
}

/* ---- on the socket ---- */

static void a_reply_answers_the_request_of_its_id_in_any_order(void **state)
{
        struct smv_accepted accepted = { SMV_SIZE(smv_accepted) };
        uint32_t template = 0;
        struct smv_event e;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        assert_int_equal(next_now(w.client), -ENODATA);
        assert_int_equal(ask_tokenize(w.client), 2);
        assert_int_equal(ask_generate(w.client), 3);
        assert_int_equal(ask_status(w.client), 4);
        assert_int_equal(smv_ask_template(w.client, &chat, 1, &template), 0);
        assert_int_equal(next_now(w.client), 0);

        say_text_and_tokens(&script, template);
        say_status(&script, 4);
        ok_begin(&script, 3, 1);
        text(&script, "prompt_tokens");
        number(&script, 5);
        frame_end(&script);
        tokens_frame(&script, 3, 0, 0, 1, "a");
        say_tokens(&script, 2, 77);
        end_frame(&script, 3, 1, SMV_END_EOS);
        send_script(&w);

        e = expect_reply(w.client, template, SMV_OK);
        assert_int_equal(e.text_bytes, 10);
        assert_memory_equal(e.text, "<|user|>hi", 10);
        assert_int_equal(e.token_count, 2);
        assert_int_equal(e.tokens[1], 8);
        e = expect_reply(w.client, 4, SMV_OK);
        assert_string_equal(e.text, "{\"pid\":4}");
        assert_int_equal(e.text_bytes, strlen(e.text));
        expect_reply(w.client, 3, SMV_OK);
        smv_accepted(w.client, &accepted);
        assert_int_equal(accepted.prompt_tokens, 5);
        expect_tokens(w.client, 3, 0, 1, "a");
        e = expect_reply(w.client, 2, SMV_OK);
        assert_int_equal(e.token_count, 1);
        assert_int_equal(e.tokens[0], 77);
        expect_end(w.client, 3, SMV_END_EOS, SMV_OK);
        assert_int_equal(next_now(w.client), -ENODATA);
        close_wire(&w);
}

static void a_frame_with_records_before_the_reply_waits_for_it(void **state)
{
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        open_wire(&w);
        assert_int_equal(generate(w.client), 2);
        assert_int_equal(ask_generate(w.client), 3);
        assert_int_equal(ask_generate(w.client), 4);
        records_begin(&script);
        tokens_record(&script, 2, 0, 0, 1, "a");
        tokens_record(&script, 3, 0, 0, 1, "A");
        tokens_record(&script, 4, 0, 0, 1, "x");
        tokens_record(&script, 2, 1, 1, 1, "b");
        records_end(&script);
        ok(&script, 4);
        end_frame(&script, 3, 1, SMV_END_EOS);
        send_script(&w);
        expect_tokens(w.client, 2, 0, 1, "a");
        assert_int_equal(next_now(w.client), 0);
        assert_int_equal(next_now(w.client), 0);
        ok(&script, 3);
        end_frame(&script, 4, 1, SMV_END_STOP);
        end_frame(&script, 2, 2, SMV_END_LENGTH);
        send_script(&w);
        expect_reply(w.client, 3, SMV_OK);
        expect_tokens(w.client, 3, 0, 1, "A");
        expect_reply(w.client, 4, SMV_OK);
        expect_tokens(w.client, 4, 0, 1, "x");
        expect_tokens(w.client, 2, 1, 1, "b");
        expect_end(w.client, 3, SMV_END_EOS, SMV_OK);
        expect_end(w.client, 4, SMV_END_STOP, SMV_OK);
        expect_end(w.client, 2, SMV_END_LENGTH, SMV_OK);
        assert_int_equal(next_now(w.client), -ENODATA);
        close_wire(&w);
}

static void a_call_that_waits_leaves_the_replies_to_others(void **state)
{
        const uint32_t *ids;
        const char *json;
        struct wire w;
        size_t count;

        (void)state;
        begin();
        open_wire(&w);
        assert_int_equal(ask_generate(w.client), 2);
        assert_int_equal(ask_status(w.client), 3);
        say_status(&script, 3);
        tokens_frame(&script, 2, 0, 0, 1, "early");
        say_tokens(&script, 4, 9);
        refusal(&script, 2, "busy", SMV_BUSY, NULL, "later");
        send_script(&w);
        assert_int_equal(smv_tokenize(w.client, NULL, "y", 1, &ids, &count), 0);
        assert_int_equal(ids[0], 9);
        say_status(&script, 5);
        send_script(&w);
        assert_int_equal(smv_status(w.client, &json), 0);
        assert_string_equal(json, "{\"pid\":5}");
        assert_string_equal(expect_reply(w.client, 3, SMV_OK).text, "{\"pid\":3}");
        /* A daemon that refuses a stream and sends records of it is believed no more. */
        expect_reply(w.client, 2, SMV_BUSY);
        expect_lost(w.client, 0);
        close_wire(&w);
}

#define TURNS 3000u

/* Events come as they were sent, although the buffer moves and grows between them. */
static void events_keep_their_order_whichever_call_reads_ahead(void **state)
{
        static struct {
                uint32_t request, sequence; /* request 0: tokens */
        } sent[TURNS];
        struct smv_event e = { SMV_SIZE(smv_event) };
        uint32_t count = 0, read = 0, sequence = 0;
        uint64_t draw = 20261129;
        char words[240];
        struct wire w;

        (void)state;
        memset(words, 'w', sizeof(words) - 1);
        words[sizeof(words) - 1] = '\0';
        begin();
        ok(&script, 2);
        open_wire(&w);
        generate(w.client);
        while (read < TURNS) {
                const char *json;

                draw = draw * 6364136223846793005u + 1442695040888963407u;
                if (count < TURNS && draw >> 62) {
                        if (draw >> 61 & 1) {
                                sent[count++].request = ask_status(w.client);
                                say_status(&script, w.client->last_id);
                        } else {
                                sent[count++].sequence = sequence;
                                tokens_frame(&script, 2, sequence, sequence, 1, words);
                                sequence++;
                        }
                        send_script(&w);
                } else if (draw >> 60 & 1 || read == count) {
                        say_status(&script, w.client->last_id + 1);
                        send_script(&w);
                        if (smv_status(w.client, &json))
                                fail();
                }
                if ((draw >> 59 & 1 || count == TURNS) && read < count) {
                        assert_int_equal(smv_next(w.client, &e, 1000), 1);
                        if (e.kind == SMV_EVENT_REPLY)
                                assert_int_equal(e.stream, sent[read].request);
                        else
                                assert_int_equal(e.sequence, sent[read].sequence);
                        assert_int_equal(e.kind,
                                         sent[read].request ? SMV_EVENT_REPLY : SMV_EVENT_TOKENS);
                        read++;
                }
                sent_so_far(&w, (uint8_t[4096]){ 0 }, 4096);
        }
        assert_int_equal(next_now(w.client), 0);
        assert_false(connection_has_kept(&w.client->connection));
        close_wire(&w);
}

static void a_refusal_is_described_until_the_next_call(void **state)
{
        struct smv_event e;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        ask_generate(w.client);
        ask_tokenize(w.client);
        ask_tokenize(w.client);
        refusal(&script, 2, "bad_value", SMV_BAD_VALUE, "top_p", "top_p is 9");
        ok(&script, 3); /* without its tokens */
        refusal(&script, 4, "odd", 0, NULL, "a refusal without a code");
        send_script(&w);
        e = expect_reply(w.client, 2, SMV_BAD_VALUE);
        assert_null(e.tokens);
        assert_string_equal(problem(w.client).field, "top_p");
        assert_string_equal(problem(w.client).message, "top_p is 9");
        expect_reply(w.client, 3, SMV_INTERNAL);
        assert_string_equal(problem(w.client).name, "internal");
        assert_non_null(strstr(problem(w.client).message, "lacks the field tokens"));
        expect_reply(w.client, 4, SMV_INTERNAL);
        assert_int_equal(next_now(w.client), -ENODATA);
        assert_int_equal(problem(w.client).code, SMV_OK);
        close_wire(&w);
}

static void cancel_works_before_the_reply(void **state)
{
        uint8_t sent[4096];
        struct wire w;
        size_t n;

        (void)state;
        begin();
        open_wire(&w);
        assert_int_equal(ask_generate(w.client), 2);
        sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(smv_cancel(w.client, 2), 0);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_non_null(memmem(sent, n,
                               "\xa6"
                               "cancel",
                               7));
        refusal(&script, 2, "cancelled", SMV_CANCELLED, NULL, "cancelled before it began");
        ok(&script, 3);
        send_script(&w);
        expect_reply(w.client, 2, SMV_CANCELLED);
        assert_int_equal(next_now(w.client), -ENODATA);
        assert_int_equal(smv_cancel(w.client, 2), 0);
        assert_int_equal(sent_so_far(&w, sent, sizeof(sent)), 0);
        ask_tokenize(w.client);
        sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(smv_cancel(w.client, 4), 0); /* it is no stream */
        assert_int_equal(sent_so_far(&w, sent, sizeof(sent)), 0);
        close_wire(&w);
}

static void new_ids_are_not_those_of_requests_that_are_outstanding(void **state)
{
        const struct smv_generate three = { SMV_SIZE(smv_generate), .prompt = "Once", .n = 3 };
        uint32_t stream = 0;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        assert_int_equal(smv_ask_generate(w.client, &three, &stream), 0);
        assert_int_equal(stream, 2);
        w.client->last_id = UINT32_MAX; /* the ids begin anew */
        assert_int_equal(ask_status(w.client), 1);
        assert_int_equal(ask_status(w.client), 5);
        close_wire(&w);
}

/* The ids of all of them are taken from the beginning, and one reply begins them. */
static void one_reply_begins_all_streams_of_a_request(void **state)
{
        const struct smv_generate three = { SMV_SIZE(smv_generate), .prompt = "Once", .n = 3 };
        uint32_t stream = 0;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        assert_int_equal(smv_ask_generate(w.client, &three, &stream), 0);
        assert_int_equal(stream, 2);
        assert_int_equal(ask_generate(w.client), 5);
        records_begin(&script);
        end_record(&script, 4, 0, SMV_END_EOS, 0);
        records_end(&script);
        ok_begin(&script, 2, 1);
        text(&script, "numbers");
        byte(&script, 0x93);
        for (uint32_t i = 0; i < 3; i++)
                number(&script, 1001 + i);
        frame_end(&script);
        ok(&script, 3); /* the id of one of its streams is not that of a request */
        send_script(&w);
        expect_reply(w.client, 2, SMV_OK);
        assert_int_equal(smv_stream_number(w.client, 3), 1002);
        expect_end(w.client, 4, SMV_END_EOS, SMV_OK);
        assert_int_equal(next_now(w.client), 0);
        refusal(&script, 5, "busy", SMV_BUSY, NULL, "later");
        send_script(&w);
        expect_reply(w.client, 5, SMV_BUSY);
        hang_up(&w);
        expect_lost(w.client, 2);
        close_wire(&w);
}

static void the_streams_of_many_replies_find_their_space(void **state)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        for (uint32_t id = 2; id < 102; id++)
                assert_int_equal(ask_generate(w.client), id);
        for (uint32_t id = 2; id < 102; id++)
                ok(&script, id);
        send_script(&w);
        for (uint32_t id = 2; id < 102; id++)
                expect_reply(w.client, id, SMV_OK);
        hang_up(&w);
        for (uint32_t id = 2; id < 102; id++) {
                assert_int_equal(smv_next(w.client, &e, 1000), 1);
                assert_int_equal(e.kind, SMV_EVENT_END);
        }
        expect_lost(w.client, 0);
        close_wire(&w);
}

static void a_record_of_a_request_without_streams_ends_the_connection(void **state)
{
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        ask_tokenize(w.client);
        tokens_frame(&script, 2, 0, 0, 1, "of no stream");
        say_tokens(&script, 2, 7);
        send_script(&w);
        expect_reply(w.client, 2, SMV_LOST);
        expect_lost(w.client, 0);
        close_wire(&w);
}

static void a_second_reply_to_a_request_is_skipped(void **state)
{
        const char *json;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        ask_tokenize(w.client);
        say_tokens(&script, 2, 7);
        say_tokens(&script, 2, 8);
        say_status(&script, 3);
        say_tokens(&script, 2, 9);
        send_script(&w);
        assert_int_equal(smv_status(w.client, &json), 0);
        assert_int_equal(expect_reply(w.client, 2, SMV_OK).tokens[0], 7);
        assert_int_equal(next_now(w.client), -ENODATA);
        assert_false(connection_has_kept(&w.client->connection));
        close_wire(&w);
}

static void detach_ends_the_events_of_a_stream_at_its_reply(void **state)
{
        uint32_t stream = 0, request = 0;
        struct wire w;

        (void)state;
        begin();
        say_kept(&script, 2);
        open_wire(&w);
        assert_int_equal(smv_ask_generate(w.client, &kept, &stream), 0);
        assert_int_equal(smv_ask_detach(w.client, 2, &request), -EBUSY);
        assert_int_equal(smv_detach(w.client, 2), -EBUSY);
        assert_int_equal(expect_reply(w.client, 2, SMV_OK).number, 77);
        assert_int_equal(smv_resume_id(w.client, 2), 77);
        assert_int_equal(smv_ask_detach(w.client, 2, &request), 0);
        tokens_frame(&script, 2, 0, 0, 1, "a");
        ok(&script, request);
        send_script(&w);
        expect_tokens(w.client, 2, 0, 1, "a");
        expect_reply(w.client, request, SMV_OK);
        assert_int_equal(next_now(w.client), -ENODATA);
        /* The daemon says so of streams that have ended, too. */
        assert_int_equal(smv_ask_detach(w.client, 2, &request), 0);
        ok(&script, request);
        send_script(&w);
        expect_reply(w.client, request, SMV_OK);
        assert_int_equal(next_now(w.client), -ENODATA);
        close_wire(&w);
}

/* ---- in the ring ---- */

static void a_record_in_the_ring_waits_for_the_reply(void **state)
{
        (void)state;
        for (enum smv_doorbell bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++) {
                struct pollfd p = { .events = POLLIN };
                struct smv_event e = { SMV_SIZE(smv_event) };
                struct ringer r;

                open_ring(&r, SMALL, 1, (struct smv_connect){ .doorbell = bell });
                p.fd = smv_fd(r.wire.client);
                assert_int_equal(ask_generate(r.wire.client), 3);
                put_token(&r, "before");
                assert_int_equal(try_tokens(&r, 3, 0, 0, 1, "early"), 0);
                put_token(&r, "behind");
                show(&r);
                expect_tokens(r.wire.client, 2, 0, 1, "before");
                polls = 0;
                assert_int_equal(smv_next(r.wire.client, &e, 50), 0);
                assert_in_range(polls, 1, 5);
                assert_int_equal(next_now(r.wire.client), 0);
                assert_int_equal(poll(&p, 1, 0), 0);
                ok(&script, 3);
                send_script(&r.wire);
                assert_int_equal(poll(&p, 1, 1000), 1);
                expect_reply(r.wire.client, 3, SMV_OK);
                expect_tokens(r.wire.client, 3, 0, 1, "early");
                expect_tokens(r.wire.client, 2, 1, 1, "behind");
                assert_int_equal(next_now(r.wire.client), 0);
                assert_int_equal(poll(&p, 1, 0), 0);
                close_ring(&r);
        }
}

/* Both are begun before any reply; the one that outlives the connection comes in frames. */
static void streams_of_both_transports_wait_for_their_replies(void **state)
{
        uint32_t stream = 0;
        struct ringer r;

        (void)state;
        open_ring(&r, SMALL, 0, (struct smv_connect){ 0 });
        assert_int_equal(ask_generate(r.wire.client), 2);
        assert_int_equal(smv_ask_generate(r.wire.client, &kept, &stream), 0);
        put_token(&r, "by the ring");
        show(&r);
        tokens_frame(&script, 3, 0, 0, 1, "by the socket");
        ok(&script, 2);
        send_script(&r.wire);
        assert_int_equal(next_now(r.wire.client), 0); /* the frame is in front of the reply */
        say_kept(&script, 3);
        send_script(&r.wire);
        expect_reply(r.wire.client, 3, SMV_OK);
        expect_tokens(r.wire.client, 3, 0, 1, "by the socket");
        expect_reply(r.wire.client, 2, SMV_OK);
        expect_tokens(r.wire.client, 2, 0, 1, "by the ring");
        assert_int_equal(next_now(r.wire.client), 0);
        close_ring(&r);

        open_ring(&r, SMALL, 0, (struct smv_connect){ 0 });
        assert_int_equal(ask_generate(r.wire.client), 2);
        tokens_frame(&script, 2, 0, 0, 1, "not where it comes");
        send_script(&r.wire);
        expect_reply(r.wire.client, 2, SMV_LOST);
        expect_lost(r.wire.client, 0);
        close_ring(&r);
}

static void a_ring_that_is_never_empty_does_not_hide_replies(void **state)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct ringer r;
        unsigned events = 0;

        (void)state;
        open_ring(&r, 65536, 1, (struct smv_connect){ 0 });
        assert_int_equal(next_now(r.wire.client), 0);
        ask_status(r.wire.client);
        say_status(&script, 3);
        send_script(&r.wire);
        put_token(&r, "x");
        do {
                put_token(&r, "x");
                publish(&r);
                assert_int_equal(smv_next(r.wire.client, &e, 0), 1);
                assert_true(events++ < 100);
        } while (e.kind != SMV_EVENT_REPLY);
        close_ring(&r);
}

static void *reply_later(void *arg)
{
        struct ringer *r = arg;

        usleep(20000);
        send_script(&r->wire);
        return NULL;
}

/* In each way of waiting: asleep on the bell, and polling the ring. */
static void a_reply_wakes_a_client_that_waits_for_its_ring(void **state)
{
        (void)state;
        for (enum smv_doorbell bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++)
                for (int spins = 0; spins < 2; spins++) {
                        struct smv_event e = { SMV_SIZE(smv_event) };
                        struct ringer r;
                        pthread_t thread;

                        open_ring(&r, SMALL, 1,
                                  (struct smv_connect){ .doorbell = bell,
                                                        .spin_us = spins ? UINT32_MAX : 0 });
                        ask_status(r.wire.client);
                        say_status(&script, 3);
                        pthread_create(&thread, NULL, reply_later, &r);
                        assert_int_equal(smv_next(r.wire.client, &e, -1), 1);
                        assert_int_equal(e.kind, SMV_EVENT_REPLY);
                        pthread_join(thread, NULL);
                        close_ring(&r);
                }
}

/* ---- the end of the connection ---- */

static void a_lost_connection_answers_each_request_once(void **state)
{
        struct ringer r;

        (void)state;
        open_ring(&r, SMALL, 1, (struct smv_connect){ 0 });
        assert_int_equal(ask_generate(r.wire.client), 3);
        assert_int_equal(ask_status(r.wire.client), 4);
        assert_int_equal(ask_tokenize(r.wire.client), 5);
        assert_int_equal(try_tokens(&r, 3, 0, 0, 1, "nobody will see"), 0);
        put_token(&r, "of stream 2");
        assert_int_equal(try_end(&r, 3, 1), 0);
        show(&r);
        refusal(&script, 4, "busy", SMV_BUSY, NULL, "later");
        send_script(&r.wire);
        hang_up(&r.wire);
        expect_reply(r.wire.client, 4, SMV_BUSY);
        expect_reply(r.wire.client, 3, SMV_LOST);
        expect_tokens(r.wire.client, 2, 0, 1, "of stream 2");
        expect_reply(r.wire.client, 5, SMV_LOST);
        assert_string_equal(problem(r.wire.client).message, "the daemon closed the connection");
        expect_lost(r.wire.client, 1);
        assert_int_equal(smv_ask_status(r.wire.client, &(uint32_t){ 0 }), -ENOTCONN);
        close_ring(&r);
}

/* Of the replies that came before the end, none is lost, whatever they are behind. */
static void a_reply_behind_records_that_wait_is_not_lost(void **state)
{
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        assert_int_equal(ask_tokenize(w.client), 2);
        assert_int_equal(ask_generate(w.client), 3);
        assert_int_equal(ask_generate(w.client), 4);
        records_begin(&script);
        tokens_record(&script, 3, 0, 0, 1, "nobody will see");
        tokens_record(&script, 4, 0, 0, 1, "seen");
        records_end(&script);
        say_tokens(&script, 2, 7);
        ok(&script, 4);
        send_script(&w);
        hang_up(&w);
        expect_reply(w.client, 3, SMV_LOST);
        expect_reply(w.client, 4, SMV_OK);
        expect_tokens(w.client, 4, 0, 1, "seen");
        assert_int_equal(expect_reply(w.client, 2, SMV_OK).tokens[0], 7);
        assert_string_equal(problem(w.client).message, "the daemon closed the connection");
        expect_lost(w.client, 1);
        close_wire(&w);
}

static void a_refusal_that_came_late_is_not_the_reason_of_the_loss(void **state)
{
        const char *json;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        ask_tokenize(w.client);
        ask_tokenize(w.client);
        ask_tokenize(w.client);
        refusal(&script, 2, "busy", SMV_BUSY, NULL, "later");
        say_tokens(&script, 3, 7);
        send_script(&w);
        hang_up(&w);
        assert_int_equal(smv_status(w.client, &json), -ENOTCONN);
        expect_reply(w.client, 2, SMV_BUSY);
        expect_reply(w.client, 3, SMV_OK);
        assert_int_equal(problem(w.client).code, SMV_LOST);
        expect_reply(w.client, 4, SMV_LOST);
        expect_lost(w.client, 0);
        close_wire(&w);
}

static void a_call_that_times_out_answers_the_requests_of_others(void **state)
{
        const char *json;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        ask_generate(w.client);
        ask_tokenize(w.client);
        say_tokens(&script, 3, 7);
        send_script(&w);
        w.client->reply_ms = 20;
        assert_int_equal(smv_status(w.client, &json), -ETIMEDOUT);
        assert_int_equal(smv_ask_status(w.client, &(uint32_t){ 0 }), -ENOTCONN);
        expect_reply(w.client, 3, SMV_OK);
        expect_reply(w.client, 2, SMV_LOST);
        expect_lost(w.client, 0);
        close_wire(&w);
}

/* ---- any bytes ---- */

/* A conversation about the requests 2 to 6, of which 3, 4 and 6 begin streams: 6 begins two. */
static void tell_story(struct script *s)
{
        s->count = 0;
        hello(s);
        say_tokens(s, 5, 7);
        tokens_frame(s, 3, 0, 0, 1, "early");
        ok(s, 3);
        doorbell(s);
        records_begin(s);
        tokens_record(s, 3, 1, 1, 3, "bcd");
        tokens_record(s, 6, 0, 0, 1, "early, too");
        end_record(s, 3, 2, SMV_END_LENGTH, 0);
        records_end(s);
        ok(s, 6);
        say_status(s, 2);
        refusal(s, 4, "busy", SMV_BUSY, NULL, "later");
        end_frame(s, 7, 0, SMV_END_EOS);
        end_frame(s, 6, 1, SMV_END_EOS);
}

/*
 * Reads to the end.  Each request has one REPLY, each stream that has begun one END, and no event
 * of a stream comes outside of these two.
 */
static void read_all(struct smv_client *client, uint32_t requests)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        uint32_t replies = 0, alive = 0;
        int r;

        while ((r = smv_next(client, &e, 1000)) > 0) {
                uint32_t bit = 1u << e.stream;

                if (e.kind == SMV_EVENT_REPLY) {
                        assert_true(requests & bit);
                        assert_false(replies & bit);
                        replies |= bit;
                        if (!e.code && (e.stream == 3 || e.stream == 4))
                                alive |= bit;
                        if (!e.code && e.stream == 6)
                                alive |= bit | bit << 1;
                        continue;
                }
                assert_true(alive & bit);
                if (e.kind == SMV_EVENT_END)
                        alive &= ~bit;
        }
        assert_true(r == -ENOTCONN || r == -ENODATA);
        assert_int_equal(replies, requests);
        assert_int_equal(alive, 0);
}

static uint32_t ask_five(struct smv_client *client)
{
        const struct smv_generate two_of_it = { SMV_SIZE(smv_generate), .prompt = "x", .n = 2 };
        uint32_t requests = 0, id = 0;

        /* If it is lost already, nothing is asked. */
        if (!smv_ask_status(client, &id))
                requests |= 1u << id;
        for (int i = 0; i < 2; i++)
                if (!smv_ask_generate(client, &once, &id))
                        requests |= 1u << id;
        if (!smv_ask_tokenize(client, NULL, "x", 1, &id))
                requests |= 1u << id;
        if (!smv_ask_generate(client, &two_of_it, &id))
                requests |= 1u << id;
        return requests;
}

static void each_request_has_one_reply_for_any_received_bytes(void **state)
{
        static struct script whole;
        uint64_t draw = 20261127;

        (void)state;
        tell_story(&whole);
        for (int turn = 0; turn < 20000; turn++) {
                const uint32_t *tokens;
                struct smv_client *client;
                uint32_t requests;
                size_t count;
                int pair[2];

                memcpy(script.at, whole.at, whole.count);
                script.count = whole.count;
                for (int i = 0; turn && i < 1 + turn % 3; i++) {
                        draw = draw * 6364136223846793005u + 1442695040888963407u;
                        script.at[(draw >> 33) % whole.count] ^= (uint8_t)(1u << (draw >> 29 & 7));
                }
                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
                send_all(pair[0], script.at, script.count);
                shutdown(pair[0], SHUT_WR);
                if (!connect_fd(pair[1], &client)) {
                        requests = ask_five(client);
                        if (turn % 2) /* it reads ahead, to the end */
                                smv_tokenize(client, NULL, "y", 1, &tokens, &count);
                        read_all(client, requests);
                        smv_close(client);
                }
                close(pair[0]);
        }
}

/* The same, with the records of streams 3 and 6 in a ring. */
static void each_request_has_one_reply_for_any_ring_contents(void **state)
{
        uint64_t draw = 20261128;

        (void)state;
        for (int turn = 0; turn < 3000; turn++) {
                struct ringer r;
                uint32_t requests;
                uint8_t *bytes;

                open_ring(&r, SMALL, 0, (struct smv_connect){ 0 });
                requests = ask_five(r.wire.client);
                for (uint32_t i = 0; i < 5; i++)
                        assert_int_equal(try_tokens(&r, 3, i, i, 1, "abcdefg"), 0);
                assert_int_equal(try_end(&r, 7, 0), 0);
                assert_int_equal(try_end(&r, 3, 5), 0);
                assert_int_equal(try_end(&r, 6, 0), 0);
                publish(&r);
                bytes = r.ring;
                for (int i = 0; turn && i < 1 + turn % 4; i++) {
                        draw = draw * 6364136223846793005u + 1442695040888963407u;
                        bytes[turn % 8 ? SMV_RING_HEADER + (draw >> 33) % r.writer.tail
                                       : 0x80 + (draw >> 33) % 8] ^=
                                (uint8_t)(1u << (draw >> 29 & 7));
                }
                say_status(&script, 2);
                if (turn % 3)
                        ok(&script, 3);
                if (turn % 5)
                        ok(&script, 6);
                send_script(&r.wire);
                shutdown(r.wire.daemon, SHUT_WR);
                read_all(r.wire.client, requests);
                close_ring(&r);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_reply_answers_the_request_of_its_id_in_any_order),
                cmocka_unit_test(a_frame_with_records_before_the_reply_waits_for_it),
                cmocka_unit_test(a_call_that_waits_leaves_the_replies_to_others),
                cmocka_unit_test(events_keep_their_order_whichever_call_reads_ahead),
                cmocka_unit_test(a_refusal_is_described_until_the_next_call),
                cmocka_unit_test(cancel_works_before_the_reply),
                cmocka_unit_test(new_ids_are_not_those_of_requests_that_are_outstanding),
                cmocka_unit_test(one_reply_begins_all_streams_of_a_request),
                cmocka_unit_test(the_streams_of_many_replies_find_their_space),
                cmocka_unit_test(a_record_of_a_request_without_streams_ends_the_connection),
                cmocka_unit_test(a_second_reply_to_a_request_is_skipped),
                cmocka_unit_test(detach_ends_the_events_of_a_stream_at_its_reply),
                cmocka_unit_test(a_record_in_the_ring_waits_for_the_reply),
                cmocka_unit_test(streams_of_both_transports_wait_for_their_replies),
                cmocka_unit_test(a_ring_that_is_never_empty_does_not_hide_replies),
                cmocka_unit_test(a_reply_wakes_a_client_that_waits_for_its_ring),
                cmocka_unit_test(a_lost_connection_answers_each_request_once),
                cmocka_unit_test(a_reply_behind_records_that_wait_is_not_lost),
                cmocka_unit_test(a_refusal_that_came_late_is_not_the_reason_of_the_loss),
                cmocka_unit_test(a_call_that_times_out_answers_the_requests_of_others),
                cmocka_unit_test(each_request_has_one_reply_for_any_received_bytes),
                cmocka_unit_test(each_request_has_one_reply_for_any_ring_contents),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
