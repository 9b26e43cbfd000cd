/*
 * libsamovar and resumable streams: by which transport they come, where they continue, and that
 * nothing is seen of a stream after the client let go of it.
 */
#include "tests/unit/client-ring-rig.h"

#define SMALL  4096u
#define NUMBER 77u

static void say_kept(struct script *s, uint32_t id)
{
        ok_begin(s, id, 1);
        text(s, "resume_id");
        number(s, NUMBER);
        frame_end(s);
}

static uint32_t generate_kept(struct smv_client *client)
{
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "Once", .keep_ms = 1000 };
        uint32_t stream = 0;

        assert_int_equal(smv_generate(client, &g, &stream), 0);
        assert_int_equal(smv_resume_id(client, stream), NUMBER);
        return stream;
}

static uint32_t attach(struct smv_client *client, uint32_t from)
{
        uint32_t stream = 0;

        assert_int_equal(smv_attach(client, NUMBER, from, &stream), 0);
        assert_int_equal(smv_resume_id(client, stream), NUMBER);
        assert_int_equal(smv_stream_number(client, stream), NUMBER);
        return stream;
}

/* Stream 2 is in the ring, 3 is kept. */
static void open_both(struct ringer *r, enum smv_doorbell doorbell)
{
        open_ring(r, SMALL, 1, (struct smv_connect){ .doorbell = doorbell });
        say_kept(&script, 3);
        send_script(&r->wire);
        assert_int_equal(generate_kept(r->wire.client), 3);
        assert_int_equal(smv_resume_id(r->wire.client, 2), 0);
}

static void delivers_a_resumable_stream_by_the_socket_beside_the_ring(void **state)
{
        (void)state;
        for (enum smv_doorbell bell = SMV_DOORBELL_KICK; bell <= SMV_DOORBELL_NONE; bell++) {
                struct ringer r;
                struct smv_event e;

                open_both(&r, bell);
                tokens_frame(&script, 3, 0, 0, 1, "by the socket");
                send_script(&r.wire);
                expect_tokens(r.wire.client, 3, 0, 1, "by the socket");
                put_token(&r, "by the ring");
                publish(&r);
                expect_tokens(r.wire.client, 2, 0, 1, "by the ring");
                assert_int_equal(next_now(r.wire.client), 0);
                tokens_frame(&script, 3, 1, 1, 1, "again");
                send_script(&r.wire);
                e = next(r.wire.client);
                assert_int_equal(e.sequence, 1);
                assert_int_equal(try_end(&r, 2, 1), 0);
                publish(&r);
                expect_end(r.wire.client, 2, SMV_END_LENGTH, SMV_OK);
                end_frame(&script, 3, 2, SMV_END_EOS);
                send_script(&r.wire);
                e = next(r.wire.client);
                assert_int_equal(e.kind, SMV_EVENT_END);
                assert_int_equal(e.sequence, 2);
                assert_int_equal(next_now(r.wire.client), -ENODATA);
                close_ring(&r);
        }
}

static void loses_the_connection_if_a_stream_uses_the_wrong_transport(void **state)
{
        struct ringer r;

        (void)state;
        open_both(&r, SMV_DOORBELL_KICK);
        tokens_frame(&script, 2, 0, 0, 1, "not where it comes");
        send_script(&r.wire);
        expect_lost(r.wire.client, 2);
        close_ring(&r);

        open_both(&r, SMV_DOORBELL_KICK);
        assert_int_equal(try_tokens(&r, 3, 0, 0, 1, "nor this"), 0);
        publish(&r);
        expect_lost(r.wire.client, 2);
        close_ring(&r);
}

static void continues_with_the_record_that_attach_asked_for(void **state)
{
        struct wire w;

        (void)state;
        begin();
        say_kept(&script, 2);
        tokens_frame(&script, 2, 5, 4, 1, "five");
        open_wire(&w);
        assert_int_equal(attach(w.client, 5), 2);
        expect_tokens(w.client, 2, 4, 1, "five");
        close_wire(&w);

        begin();
        say_kept(&script, 2);
        tokens_frame(&script, 2, 4, 4, 1, "four");
        open_wire(&w);
        attach(w.client, 5);
        expect_lost(w.client, 1);
        close_wire(&w);
}

/* Records of that stream come before and among those of other streams. */
static void delivers_nothing_of_a_stream_after_detach(void **state)
{
        (void)state;
        for (unsigned lost = 0; lost < 2; lost++) {
                struct wire w;

                begin();
                say_kept(&script, 2);
                ok(&script, 3);
                tokens_frame(&script, 2, 0, 0, 1, "a");
                tokens_frame(&script, 3, 0, 0, 1, "b");
                records_begin(&script);
                tokens_record(&script, 2, 1, 1, 1, "c");
                tokens_record(&script, 3, 1, 1, 1, "d");
                tokens_record(&script, 2, 2, 2, 1, "e");
                records_end(&script);
                ok(&script, 4);
                if (!lost)
                        end_frame(&script, 3, 2, SMV_END_EOS);
                open_wire(&w);
                assert_int_equal(generate_kept(w.client), 2);
                assert_int_equal(generate(w.client), 3);
                expect_tokens(w.client, 2, 0, 1, "a");
                assert_int_equal(smv_detach(w.client, 3), -EINVAL);
                assert_int_equal(smv_detach(w.client, 2), 0);
                assert_int_equal(smv_detach(w.client, 99), 0);
                if (lost)
                        hang_up(&w);
                expect_tokens(w.client, 3, 0, 1, "b");
                expect_tokens(w.client, 3, 1, 1, "d");
                if (lost) {
                        expect_lost(w.client, 1);
                } else {
                        expect_end(w.client, 3, SMV_END_EOS, SMV_OK);
                        assert_int_equal(next_now(w.client), -ENODATA);
                }
                close_wire(&w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(delivers_a_resumable_stream_by_the_socket_beside_the_ring),
                cmocka_unit_test(loses_the_connection_if_a_stream_uses_the_wrong_transport),
                cmocka_unit_test(continues_with_the_record_that_attach_asked_for),
                cmocka_unit_test(delivers_nothing_of_a_stream_after_detach),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
