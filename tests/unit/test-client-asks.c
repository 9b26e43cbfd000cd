/*
 * libsamovar's requests that do not wait, against a scripted daemon: each has one REPLY, which
 * comes before the records of its streams, whatever the order in which the bytes arrive.
 */
#include "tests/unit/client-ring-rig.h"

#define SMALL 4096u

static const struct smv_generate once = { SMV_SIZE(smv_generate), .prompt = "Once" };

static uint32_t ask_generate(struct smv_client *client)
{
        uint32_t stream = 0;

        assert_int_equal(smv_ask_generate(client, &once, &stream), 0);
        return stream;
}

static uint32_t ask_tokenize(struct smv_client *client)
{
        uint32_t request = 0;

        assert_int_equal(smv_ask_tokenize(client, NULL, "x", 1, &request), 0);
        return request;
}

static uint32_t ask_status(struct smv_client *client)
{
        uint32_t request = 0;

        assert_int_equal(smv_ask_status(client, &request), 0);
        return request;
}

static struct smv_event expect_reply(struct smv_client *client, uint32_t request,
                                     enum smv_code code)
{
        struct smv_event e = next(client);

        assert_int_equal(e.kind, SMV_EVENT_REPLY);
        assert_int_equal(e.stream, request);
        assert_int_equal(e.code, code);
        assert_int_equal(problem(client).code, code);
        return e;
}

/* ---- what the scripted daemon says ---- */

static void say_tokens(struct script *s, uint32_t id, uint32_t token)
{
        ok_begin(s, id, 1);
        text(s, "tokens");
        byte(s, 0x91);
        number(s, token);
        frame_end(s);
}

static void say_status(struct script *s, uint32_t id)
{
        ok_begin(s, id, 1);
        text(s, "status");
        byte(s, 0x81);
        text(s, "pid");
        number(s, id);
        frame_end(s);
}

static void say_text_and_tokens(struct script *s, uint32_t id)
{
        ok_begin(s, id, 2);
        text(s, "text");
        text(s, "<|user|>hi");
        text(s, "tokens");
        byte(s, 0x92);
        number(s, 7);
        number(s, 8);
        frame_end(s);
}

/* ---- on the socket ---- */

static void a_reply_answers_the_request_of_its_id_in_any_order(void **state)
{
        static const struct smv_message hi = { .role = "user", .content = "hi" };
        const struct smv_generate chat = { SMV_SIZE(smv_generate), .messages = &hi,
                                           .message_count = 1 };
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
                assert_int_equal(smv_next(r.wire.client, &e, 5), 0);
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

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_reply_answers_the_request_of_its_id_in_any_order),
                cmocka_unit_test(a_frame_with_records_before_the_reply_waits_for_it),
                cmocka_unit_test(a_call_that_waits_leaves_the_replies_to_others),
                cmocka_unit_test(a_refusal_is_described_until_the_next_call),
                cmocka_unit_test(cancel_works_before_the_reply),
                cmocka_unit_test(a_record_in_the_ring_waits_for_the_reply),
                cmocka_unit_test(a_lost_connection_answers_each_request_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
