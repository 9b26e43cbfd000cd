/* libsamovar against a daemon whose every byte is scripted: its promises to programs. */
#include "tests/unit/client-rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/unit/count-alloc.h"

/* Sends the script in two pieces, the second once the first was read. */
struct feed {
        int fd, reader;
        size_t cut;
};

static void *feed(void *arg)
{
        struct feed *f = arg;
        int waiting = 1;

        send_all(f->fd, script.at, f->cut);
        for (int i = 0; i < 200000 && waiting; i++) {
                if (ioctl(f->reader, FIONREAD, &waiting) < 0)
                        break;
                sched_yield();
        }
        send_all(f->fd, script.at + f->cut, script.count - f->cut);
        return NULL;
}

static void tell_story(int fd)
{
        struct smv_client *client;
        const uint32_t *ids;
        size_t count;

        assert_int_equal(connect_fd(fd, &client), 0);
        assert_int_equal(generate(client), 2);
        expect_tokens(client, 2, 0, 1, "a");
        assert_int_equal(smv_tokenize(client, NULL, "x y z", 5, &ids, &count), 0);
        assert_int_equal(count, 3);
        assert_int_equal(ids[0], 7);
        assert_int_equal(ids[1], 8);
        assert_int_equal(ids[2], 256);
        expect_tokens(client, 2, 1, 3, "bcd");
        expect_tokens(client, 2, 4, 1, "");
        expect_tokens(client, 2, 5, 0, "\xc3\xa9");
        expect_end(client, 2, SMV_END_LENGTH, SMV_OK);
        assert_int_equal(next_now(client), -ENODATA);
        smv_close(client);
}

static void a_conversation_split_at_any_byte_reads_the_same(void **state)
{
        size_t all;

        (void)state;
        story(&script);
        all = script.count;
        for (size_t cut = 0; cut <= all; cut++) {
                struct feed f = { .cut = cut };
                pthread_t thread;
                int pair[2];

                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
                f.fd = pair[0];
                f.reader = pair[1];
                pthread_create(&thread, NULL, feed, &f);
                tell_story(pair[1]);
                pthread_join(thread, NULL);
                close(pair[0]);
        }
}

static void records_that_arrive_before_a_reply_keep_their_order(void **state)
{
        const uint32_t *ids;
        const char *json;
        struct wire w;
        size_t count;

        (void)state;
        begin();
        ok(&script, 2);
        tokens_frame(&script, 2, 0, 0, 1, "a");
        tokens_frame(&script, 2, 1, 1, 1, "b");
        ok_begin(&script, 3, 1);
        text(&script, "tokens");
        byte(&script, 0x91);
        number(&script, 5);
        frame_end(&script);
        tokens_frame(&script, 2, 2, 2, 1, "c");
        records_begin(&script); /* no record at all is allowed */
        records_end(&script);
        ok_begin(&script, 4, 1);
        text(&script, "status");
        byte(&script, 0x80);
        frame_end(&script);
        end_frame(&script, 2, 3, SMV_END_EOS);
        open_wire(&w);

        generate(w.client);
        expect_tokens(w.client, 2, 0, 1, "a");
        assert_int_equal(smv_tokenize(w.client, NULL, "x", 1, &ids, &count), 0);
        assert_int_equal(count, 1);
        assert_int_equal(smv_status(w.client, &json), 0);
        assert_string_equal(json, "{}");
        expect_tokens(w.client, 2, 1, 1, "b");
        expect_tokens(w.client, 2, 2, 2 - 1, "c");
        expect_end(w.client, 2, SMV_END_EOS, SMV_OK);
        assert_false(connection_has_kept(&w.client->connection));
        close_wire(&w);
}

static void two_streams_interleave(void **state)
{
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        tokens_frame(&script, 2, 0, 0, 1, "a");
        ok(&script, 3);
        records_begin(&script);
        tokens_record(&script, 3, 0, 0, 1, "A");
        tokens_record(&script, 2, 1, 1, 1, "b");
        end_record(&script, 2, 2, SMV_END_STOP, 0);
        tokens_record(&script, 3, 1, 1, 1, "B");
        records_end(&script);
        end_frame(&script, 3, 2, SMV_END_EOS);
        open_wire(&w);

        assert_int_equal(generate(w.client), 2);
        assert_int_equal(generate(w.client), 3);
        expect_tokens(w.client, 2, 0, 1, "a");
        expect_tokens(w.client, 3, 0, 1, "A");
        expect_tokens(w.client, 2, 1, 1, "b");
        expect_end(w.client, 2, SMV_END_STOP, SMV_OK);
        expect_tokens(w.client, 3, 1, 1, "B");
        expect_end(w.client, 3, SMV_END_EOS, SMV_OK);
        assert_int_equal(next_now(w.client), -ENODATA);
        close_wire(&w);
}

static void refusal_names_field_and_message(void **state)
{
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "x" };
        struct smv_problem p;
        struct wire w;
        uint32_t stream = 77;

        (void)state;
        begin();
        refusal(&script, 2, "bad_value", SMV_BAD_VALUE, "top_p", "top_p is 9");
        refusal(&script, 3, "from_the_future", 4000, NULL, "what");
        ok(&script, 4);
        open_wire(&w);

        assert_int_equal(smv_generate(w.client, &g, &stream), -EREMOTEIO);
        assert_int_equal(stream, 77);
        p = problem(w.client);
        assert_int_equal(p.code, SMV_BAD_VALUE);
        assert_string_equal(p.name, "bad_value");
        assert_string_equal(p.field, "top_p");
        assert_string_equal(p.message, "top_p is 9");

        assert_int_equal(smv_generate(w.client, &g, &stream), -EREMOTEIO);
        p = problem(w.client);
        assert_string_equal(p.name, "from_the_future");
        assert_string_equal(p.field, "");
        assert_string_equal(smv_code_name(p.code), "unknown");

        assert_int_equal(generate(w.client), 4);
        assert_int_equal(problem(w.client).code, SMV_OK);
        close_wire(&w);
}

static void every_reason_of_an_end_arrives(void **state)
{
        struct smv_event e;
        struct wire w;

        (void)state;
        begin();
        for (uint32_t reason = SMV_END_EOS; reason <= SMV_END_ERROR; reason++) {
                ok(&script, 1 + reason);
                records_begin(&script);
                end_record(&script, 1 + reason, 0, reason,
                           reason == SMV_END_ERROR ? SMV_NUMERIC : SMV_OK);
                records_end(&script);
        }
        open_wire(&w);
        for (uint32_t reason = SMV_END_EOS; reason <= SMV_END_ERROR; reason++) {
                generate(w.client);
                e = next(w.client);
                assert_int_equal(e.reason, reason);
                assert_int_equal(e.code, reason == SMV_END_ERROR ? SMV_NUMERIC : SMV_OK);
                assert_int_equal(e.prompt_tokens, 3);
                assert_int_equal(e.cached_tokens, 1);
                assert_int_equal(e.output_tokens, 7);
                assert_int_equal(e.queued_ns, 11);
                assert_int_equal(e.prefill_ns, 12);
                assert_int_equal(e.decode_ns, 13);
                assert_int_equal(e.diverged_at, 2);
                assert_int_equal(e.diverged_cached_token, 14);
                assert_int_equal(e.diverged_prompt_token, 15);
                assert_int_equal(e.preemptions, 16);
                assert_int_equal(e.blocks_lost, 17);
                assert_int_equal(e.recomputed, 18);
                assert_int_equal(e.restored, 19);
                assert_int_equal(e.stopped_by, reason == SMV_END_STOP ? SMV_STOPPED_BY_STRING
                                                                      : SMV_STOPPED_BY_NOTHING);
                assert_int_equal(e.stop_index, reason == SMV_END_STOP ? 9 : 0);
        }
        close_wire(&w);
}

/* A program that was built with an older client.h has a shorter event: nothing is written after. */
static void an_older_program_gets_the_members_that_it_knows(void **state)
{
        struct smv_event e;
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        records_begin(&script);
        end_record(&script, 2, 0, SMV_END_LENGTH, SMV_OK);
        records_end(&script);
        open_wire(&w);
        generate(w.client);
        memset(&e, 0xee, sizeof(e));
        e.size = offsetof(struct smv_event, preemptions);
        assert_int_equal(smv_next(w.client, &e, -1), 1);
        assert_int_equal(e.kind, SMV_EVENT_END);
        assert_int_equal(e.diverged_prompt_token, 15);
        assert_int_equal(e.preemptions, 0xeeeeeeee);
        assert_int_equal(e.restored, 0xeeeeeeee);
        close_wire(&w);
}

/* END as it was before it had `preemptions`: an older reader has this, and continues at `size`. */
struct older_end {
        uint8_t reason, pad[3];
        uint32_t code, prompt_tokens, cached_tokens, output_tokens, diverged_at;
        uint64_t queued_ns, prefill_ns, decode_ns;
        uint32_t diverged_cached_token, diverged_prompt_token;
};

static void an_older_reader_finds_its_members_in_the_longer_END(void **state)
{
        const size_t head = sizeof(struct smv_record);
        static struct script written;
        struct older_end end;
        struct smv_record record;

        (void)state;
        end_record(&written, 2, 3, SMV_END_STOP, SMV_OK);
        assert_int_equal(sizeof(end), 56);
        memcpy(&record, written.at, head);
        memcpy(&end, written.at + head, sizeof(end));
        assert_int_equal(record.type, SMV_RECORD_END);
        assert_int_equal(record.sequence, 3);
        assert_int_equal(record.size, written.count);
        assert_true(record.size > head + sizeof(end));
        assert_int_equal(end.reason, SMV_END_STOP);
        assert_int_equal(end.code, SMV_OK);
        assert_int_equal(end.prompt_tokens, 3);
        assert_int_equal(end.cached_tokens, 1);
        assert_int_equal(end.output_tokens, 7);
        assert_int_equal(end.diverged_at, 2);
        assert_int_equal(end.queued_ns, 11);
        assert_int_equal(end.prefill_ns, 12);
        assert_int_equal(end.decode_ns, 13);
        assert_int_equal(end.diverged_cached_token, 14);
        assert_int_equal(end.diverged_prompt_token, 15);
}

/* Its first 48 bytes are in every END; it has grown since, and will. */
static void accepts_the_longer_and_shorter_END_of_other_versions(void **state)
{
        const size_t sizes[] = { 48, 52, 56, 60, 72, 80 };
        struct wire w;

        (void)state;
        begin();
        for (uint32_t i = 0; i < 6; i++) {
                ok(&script, 2 + i);
                records_begin(&script);
                end_record_of(&script, 2 + i, 0, SMV_END_LENGTH, SMV_OK, sizes[i]);
                records_end(&script);
        }
        ok(&script, 8);
        records_begin(&script);
        end_record_of(&script, 8, 0, SMV_END_LENGTH, SMV_OK, 47);
        records_end(&script);
        open_wire(&w);
        for (uint32_t i = 0; i < 6; i++) {
                struct smv_event e;

                generate(w.client);
                e = next(w.client);
                assert_int_equal(e.kind, SMV_EVENT_END);
                assert_int_equal(e.decode_ns, 13);
                assert_int_equal(e.diverged_at, 2); /* what was zero then is nowhere */
                assert_int_equal(e.diverged_cached_token, sizes[i] >= 52 ? 14 : 0);
                assert_int_equal(e.diverged_prompt_token, sizes[i] >= 56 ? 15 : 0);
                assert_int_equal(e.preemptions, sizes[i] >= 60 ? 16 : 0);
                assert_int_equal(e.blocks_lost, sizes[i] >= 72 ? 17 : 0);
                assert_int_equal(e.recomputed, sizes[i] >= 72 ? 18 : 0);
                assert_int_equal(e.restored, sizes[i] >= 72 ? 19 : 0);
        }
        generate(w.client);
        expect_end(w.client, 8, SMV_END_ERROR, SMV_LOST);
        close_wire(&w);
}

static void cancel_of_an_ended_stream_succeeds(void **state)
{
        uint8_t sent[4096];
        struct wire w;
        size_t n;

        (void)state;
        begin();
        ok(&script, 2);
        open_wire(&w);
        generate(w.client);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_true(n > 0);

        assert_int_equal(smv_cancel(w.client, 2), 0);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(n, 4 + 3 + 3 + 7 + 3 + 1 + 7 + 1);
        assert_memory_equal(sent + 4,
                            "\xde\0\x03\xa2op\xa6"
                            "cancel\xa2id\x03\xa6stream\x02",
                            25);

        end_frame(&script, 2, 0, SMV_END_CANCELLED);
        ok(&script, 3);
        send_script(&w);
        expect_end(w.client, 2, SMV_END_CANCELLED, SMV_OK);
        assert_int_equal(smv_cancel(w.client, 2), 0);
        assert_int_equal(smv_cancel(w.client, 0), 0);
        assert_int_equal(sent_so_far(&w, sent, sizeof(sent)), 0);
        assert_int_equal(next_now(w.client), -ENODATA);
        close_wire(&w);
}

static void generate_sends_exactly_the_fields_that_were_set(void **state)
{
        static const char want[] =
                "\xde\0\x0d\xa2op\xa8generate\xa2id\x02\xa5model\xa1m\xa6prompt"
                "\xa2hi\xaamax_tokens\x05\xabtemperature\xcb\0\0\0\0\0\0\0\0"
                "\xa4seed\x00\xaaignore_eos\xc3\xac"
                "control_text\xc3\xa8progress\xc3\xa5parts\xc3\xa4stop\x92\xa1x\xa2yz"
                "\xabstop_tokens\x91\xcd\x01\x00";
        static const char *const stops[] = { "x", "yz" };
        static const uint32_t stop_ids[] = { 256 };
        struct smv_generate g = {
                SMV_SIZE(smv_generate), .model = "m",    .prompt = "hidden",
                .prompt_bytes = 2,      .max_tokens = 5, .set = SMV_SET_TEMPERATURE | SMV_SET_SEED,
                .stops = stops,         .stop_count = 2, .stop_tokens = stop_ids,
                .stop_token_count = 1,  .ignore_eos = 1, .control_text = 1,
                .progress = 1,          .parts = 1,
        };
        uint8_t sent[4096];
        uint32_t length, stream;
        struct wire w;
        size_t n;

        (void)state;
        begin();
        ok(&script, 2);
        open_wire(&w);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_true(n > 4);
        assert_memory_equal(sent + 4,
                            "\xde\0\x05\xa2op\xa5hello\xa2id\x01\xa8versions\x92\0\0"
                            "\xa9transport\xa4"
                            "auto\xa8"
                            "doorbell\xa4kick",
                            n - 4);
        g.prompt = "hidden";
        g.prompt = "hi";
        assert_int_equal(smv_generate(w.client, &g, &stream), 0);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(n, 4 + sizeof(want) - 1);
        memcpy(&length, sent, 4);
        assert_int_equal(le32toh(length), sizeof(want) - 1);
        assert_memory_equal(sent + 4, want, sizeof(want) - 1);
        close_wire(&w);
}

static void smv_stream_number_is_what_the_reply_says_of_each_stream(void **state)
{
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "Once", .n = 2 };
        struct wire w;
        uint32_t stream;

        (void)state;
        begin();
        ok_begin(&script, 2, 1);
        text(&script, "numbers");
        byte(&script, 0x92);
        number(&script, 1001);
        number(&script, 1003);
        frame_end(&script);
        ok(&script, 4); /* of a daemon that knows no numbers */
        end_frame(&script, 2, 0, SMV_END_EOS);
        open_wire(&w);
        assert_int_equal(smv_generate(w.client, &g, &stream), 0);
        assert_int_equal(smv_stream_number(w.client, stream), 1001);
        assert_int_equal(smv_stream_number(w.client, stream + 1), 1003);
        assert_int_equal(smv_stream_number(w.client, stream + 2), 0);
        assert_int_equal(generate(w.client), 4);
        assert_int_equal(smv_stream_number(w.client, 4), 0);
        expect_end(w.client, 2, SMV_END_EOS, SMV_OK);
        assert_int_equal(smv_stream_number(w.client, 2), 0);
        assert_int_equal(smv_stream_number(w.client, 3), 1003);
        close_wire(&w);
}

static void smv_accepted_reports_the_reply_of_the_last_stream(void **state)
{
        /* 1500, as its last field */
        static const char want[] = "\xab"
                                   "deadline_ms\xcd\x05\xdc";
        struct smv_generate g = { SMV_SIZE(smv_generate), .prompt = "a", .deadline_ms = 1500 };
        struct smv_accepted accepted = { SMV_SIZE(smv_accepted), .queue_position = 99 };
        uint8_t sent[4096];
        uint32_t stream;
        struct wire w;
        size_t n;

        (void)state;
        begin();
        ok_begin(&script, 2, 10);
        text(&script, "chain");
        text(&script, "temperature top_k draw");
        text(&script, "temperature");
        raw(&script, "\xca\x3f\x00\x00\x00", 5); /* 0.5 */
        text(&script, "top_k");
        number(&script, 40);
        text(&script, "top_p");
        raw(&script, "\xcb\x3f\xd0\x00\x00\x00\x00\x00\x00", 9); /* 0.25 */
        text(&script, "min_p");
        number(&script, 0);
        text(&script, "seed");
        raw(&script, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9);
        text(&script, "prompt_tokens");
        number(&script, 7);
        text(&script, "max_tokens");
        number(&script, 64);
        text(&script, "queue_position");
        number(&script, 3);
        text(&script, "wait_ms");
        number(&script, 4000000000u);
        frame_end(&script);
        refusal(&script, 3, "busy", SMV_BUSY, NULL, "later");
        ok(&script, 4);
        open_wire(&w);
        smv_accepted(w.client, &accepted);
        assert_int_equal(accepted.queue_position, 0);
        sent_so_far(&w, sent, sizeof(sent));

        assert_int_equal(smv_generate(w.client, &g, &stream), 0);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_memory_equal(sent + n - (sizeof(want) - 1), want, sizeof(want) - 1);
        for (int refused = 0; refused < 2; refused++) {
                smv_accepted(w.client, &accepted);
                assert_int_equal(accepted.size, sizeof(accepted));
                assert_int_equal(accepted.prompt_tokens, 7);
                assert_int_equal(accepted.max_tokens, 64);
                assert_int_equal(accepted.queue_position, 3);
                assert_int_equal(accepted.wait_ms, 4000000000u);
                assert_true(accepted.temperature == 0.5f && accepted.top_p == 0.25f);
                assert_true(accepted.min_p == 0 && accepted.top_k == 40);
                assert_true(accepted.seed == UINT64_MAX);
                assert_string_equal(accepted.chain, "temperature top_k draw");
                if (!refused)
                        assert_int_equal(smv_generate(w.client, &g, &stream), -EREMOTEIO);
        }
        assert_int_equal(smv_generate(w.client, &g, &stream), 0); /* an older daemon says nothing */
        smv_accepted(w.client, &accepted);
        assert_int_equal(accepted.queue_position + accepted.prompt_tokens, 0);
        assert_string_equal(accepted.chain, "");
        close_wire(&w);
}

/* Of two tokens with one likeliest each; `entries` of those four that should be there. */
static void logprobs_record(uint8_t type, uint32_t stream, unsigned entries)
{
        const struct smv_record_logprobs head = { .position = htole32(11),
                                                  .token_count = htole16(2),
                                                  .top_count = htole16(1) };
        static const uint32_t entry[4][2] = { { 1, 0xbf800000 },   /* -1 */
                                              { 8, 0xbf000000 },   /* -0.5 */
                                              { 2, 0xc0000000 },   /* -2 */
                                              { 9, 0xbe800000 } }; /* -0.25 */

        record_head(&script, type, 0, stream, 0, sizeof(head) + entries * 8);
        raw(&script, &head, sizeof(head));
        for (unsigned i = 0; i < entries; i++)
                for (unsigned j = 0; j < 2; j++)
                        raw(&script, &(uint32_t){ htole32(entry[i][j]) }, 4);
}

static void logprobs_arrive_with_their_tokens(void **state)
{
        static const struct smv_logprob want[] = {
                { 1, -1 }, { 8, -0.5f }, { 2, -2 }, { 9, -0.25f }
        };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct wire w;

        (void)state;
        for (int frames = 1; frames <= 2; frames++) {
                begin();
                ok(&script, 2);
                records_begin(&script);
                logprobs_record(SMV_RECORD_LOGPROBS, 2, 4);
                if (frames == 2) {
                        records_end(&script);
                        records_begin(&script);
                }
                tokens_record(&script, 2, 1, 1, 2, "ab");
                tokens_record(&script, 2, 2, 0, 0, "c");
                end_record(&script, 2, 3, SMV_END_LENGTH, 0);
                records_end(&script);
                open_wire(&w);
                assert_int_equal(generate(w.client), 2);
                assert_int_equal(smv_next(w.client, &event, 1000), 1);
                assert_int_equal(event.token_count, 2);
                assert_int_equal(event.top_count, 1);
                assert_memory_equal(event.logprobs, want, sizeof(want));
                assert_int_equal(smv_next(w.client, &event, 1000), 1);
                assert_int_equal(event.text_bytes, 1);
                assert_null(event.logprobs);
                expect_end(w.client, 2, SMV_END_LENGTH, SMV_OK);
                close_wire(&w);
        }
}

static void prompt_logprobs_are_an_event_of_their_own(void **state)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        records_begin(&script);
        logprobs_record(SMV_RECORD_PROMPT_LOGPROBS, 2, 4);
        tokens_record(&script, 2, 1, 1, 1, "a");
        end_record(&script, 2, 2, SMV_END_LENGTH, 0);
        records_end(&script);
        open_wire(&w);
        assert_int_equal(generate(w.client), 2);
        assert_int_equal(smv_next(w.client, &event, 1000), 1);
        assert_int_equal(event.kind, SMV_EVENT_PROMPT_LOGPROBS);
        assert_int_equal(event.position, 11);
        assert_int_equal(event.token_count, 2);
        assert_int_equal(event.tokens[0], 1);
        assert_int_equal(event.tokens[1], 2);
        assert_int_equal(event.logprobs[3].token, 9);
        assert_int_equal(smv_next(w.client, &event, 1000), 1);
        assert_int_equal(event.kind, SMV_EVENT_TOKENS);
        assert_null(event.logprobs);
        expect_end(w.client, 2, SMV_END_LENGTH, SMV_OK);
        close_wire(&w);
}

static void progress_records_that_are_too_short_end_the_connection(void **state)
{
        const uint32_t numbers[] = { htole32(9), htole32(1), htole32(5) };
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct wire w;

        (void)state;
        for (size_t count = 3; count > 1; count--) {
                begin();
                ok(&script, 2);
                records_begin(&script);
                record_head(&script, SMV_RECORD_PROGRESS, 0, 2, 0, count * 4);
                raw(&script, numbers, count * 4);
                end_record(&script, 2, 1, SMV_END_LENGTH, 0);
                records_end(&script);
                open_wire(&w);
                assert_int_equal(generate(w.client), 2);
                if (count == 3) {
                        assert_int_equal(smv_next(w.client, &event, 1000), 1);
                        assert_int_equal(event.kind, SMV_EVENT_PROGRESS);
                        assert_int_equal(event.prompt_tokens, 9);
                        assert_int_equal(event.cached_tokens, 1);
                        assert_int_equal(event.prefilled, 5);
                        expect_end(w.client, 2, SMV_END_LENGTH, SMV_OK);
                } else {
                        expect_end(w.client, 2, SMV_END_ERROR, SMV_LOST);
                }
                close_wire(&w);
        }
}

static void inconsistent_logprobs_end_the_connection(void **state)
{
        struct wire w;

        (void)state;
        for (int lie = 0; lie < 3; lie++) {
                begin();
                ok(&script, 2);
                records_begin(&script);
                /* shorter than it says */
                logprobs_record(SMV_RECORD_LOGPROBS, 2, lie == 0 ? 3 : 4);
                if (lie == 1)
                        tokens_record(&script, 2, 1, 1, 1,
                                      /* it says two tokens, and there is one */
                                      "a");
                if (lie == 2)
                        tokens_record(&script, 2, 1, 1, 3, "a");
                records_end(&script);
                open_wire(&w);
                assert_int_equal(generate(w.client), 2);
                expect_end(w.client, 2, SMV_END_ERROR, SMV_LOST);
                close_wire(&w);
        }
}

/* Two parts of these sizes, in a record that has `entries` of them and says that it has two. */
static void parts_record(uint32_t stream, uint32_t first, uint32_t second, unsigned entries)
{
        struct smv_record_parts head = { .part_count = htole32(2) };
        const struct smv_record_part parts[] = {
                { .kind = htole32(SMV_PART_TEXT), .bytes = htole32(first) },
                { .kind = htole32(SMV_PART_CALL),
                  .bytes = htole32(second),
                  .call = htole32(7),
                  .flags = htole32(SMV_PARTS_CUT) },
        };

        record_head(&script, SMV_RECORD_PARTS, 0, stream, 0,
                    sizeof(head) + entries * sizeof(*parts));
        raw(&script, &head, sizeof(head));
        raw(&script, parts, entries * sizeof(*parts));
}

static void parts_arrive_with_their_text(void **state)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct wire w;

        (void)state;
        for (int frames = 1; frames <= 2; frames++) {
                begin();
                ok(&script, 2);
                records_begin(&script);
                parts_record(2, 1, 2, 2);
                if (frames == 2) {
                        records_end(&script);
                        records_begin(&script);
                }
                tokens_record(&script, 2, 1, 1, 1, "abc");
                tokens_record(&script, 2, 2, 0, 0, "c");
                end_record(&script, 2, 3, SMV_END_LENGTH, 0);
                records_end(&script);
                open_wire(&w);
                assert_int_equal(generate(w.client), 2);
                assert_int_equal(smv_next(w.client, &event, 1000), 1);
                assert_int_equal(event.part_count, 2);
                assert_int_equal(event.parts[0].kind, SMV_PART_TEXT);
                assert_int_equal(event.parts[0].bytes, 1);
                assert_int_equal(event.parts[1].kind, SMV_PART_CALL);
                assert_int_equal(event.parts[1].bytes, 2);
                assert_int_equal(event.parts[1].call, 7);
                assert_int_equal(event.parts[1].flags, SMV_PARTS_CUT);
                assert_int_equal(smv_next(w.client, &event, 1000), 1);
                assert_null(event.parts);
                expect_end(w.client, 2, SMV_END_LENGTH, SMV_OK);
                close_wire(&w);
        }
}

static void inconsistent_parts_end_the_connection(void **state)
{
        struct wire w;

        (void)state;
        for (int lie = 0; lie < 4; lie++) {
                begin();
                ok(&script, 2);
                records_begin(&script);
                if (lie == 0)
                        parts_record(2, 1, 2, 1); /* it says two parts, and there is one */
                else if (lie == 1)
                        parts_record(2, 1, 3, 2); /* more than the text */
                else if (lie == 2)
                        parts_record(2, 1, 1, 2); /* less */
                else
                        parts_record(2, UINT32_MAX, 4, 2); /* the sum does not fit 32 bits */
                if (lie)
                        tokens_record(&script, 2, 1, 1, 1, "abc");
                records_end(&script);
                open_wire(&w);
                assert_int_equal(generate(w.client), 2);
                expect_end(w.client, 2, SMV_END_ERROR, SMV_LOST);
                close_wire(&w);
        }
}

static void does_not_send_a_request_over_the_frame_limit(void **state)
{
        struct smv_generate g = { SMV_SIZE(smv_generate) };
        char *long_prompt = malloc(9u << 20);
        struct wire w;
        uint32_t stream;

        (void)state;
        assert_non_null(long_prompt);
        memset(long_prompt, 'x', 9u << 20);
        g.prompt = long_prompt;
        g.prompt_bytes = 9u << 20;
        begin();
        ok(&script, 3);
        open_wire(&w);
        assert_int_equal(smv_generate(w.client, &g, &stream), -EMSGSIZE);
        assert_non_null(strstr(problem(w.client).message, "8388608"));
        assert_int_equal(generate(w.client), 3);
        free(long_prompt);
        close_wire(&w);
}

static void the_fd_is_readable_when_data_or_a_hangup_arrived(void **state)
{
        struct pollfd p;
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        open_wire(&w);
        generate(w.client);
        p = (struct pollfd){ .fd = smv_fd(w.client), .events = POLLIN };
        assert_int_equal(next_now(w.client), 0);
        assert_int_equal(poll(&p, 1, 0), 0);
        tokens_frame(&script, 2, 0, 0, 1, "a");
        send_script(&w);
        assert_int_equal(poll(&p, 1, 1000), 1);
        expect_tokens(w.client, 2, 0, 1, "a");
        assert_int_equal(next_now(w.client), 0);
        assert_int_equal(poll(&p, 1, 0), 0);
        hang_up(&w);
        assert_int_equal(poll(&p, 1, 1000), 1);
        expect_lost(w.client, 1);
        close_wire(&w);
}

static void accepts_structs_of_older_and_newer_headers(void **state)
{
        struct smv_generate g = { .size = offsetof(struct smv_generate, max_tokens),
                                  .prompt = "x",
                                  .max_tokens = 99,
                                  .ignore_eos = 1 };
        struct {
                struct smv_generate g;
                uint64_t future;
        } newer = { .g = { .size = sizeof(newer), .prompt = "x" } };
        struct smv_event small, big;
        uint8_t sent[4096];
        struct wire w;
        uint32_t stream;
        size_t n;

        (void)state;
        begin();
        ok(&script, 2);
        ok(&script, 3);
        tokens_frame(&script, 2, 0, 0, 1, "abc");
        open_wire(&w);
        sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(smv_generate(w.client, &g, &stream), 0);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_null(memmem(sent, n, "max_tokens", 10));
        assert_null(memmem(sent, n, "ignore_eos", 10));

        assert_int_equal(smv_generate(w.client, &newer.g, &stream), 0);
        newer.future = 1;
        assert_int_equal(smv_generate(w.client, &newer.g, &stream), -E2BIG);
        newer.g.size = 0;
        assert_int_equal(smv_generate(w.client, &newer.g, &stream), -EINVAL);

        memset(&small, 0xaa, sizeof(small));
        small.size = 0;
        assert_int_equal(smv_next(w.client, &small, 0), -EINVAL);
        small.size = offsetof(struct smv_event, text);
        big = small;
        assert_int_equal(smv_next(w.client, &small, 0), 1);
        assert_int_equal(small.kind, SMV_EVENT_TOKENS);
        assert_int_equal(small.token_count, 1);
        assert_int_equal(small.size, offsetof(struct smv_event, text));
        assert_memory_equal(&small.text, &big.text, sizeof(small) - small.size);
        close_wire(&w);
}

static void reading_a_token_allocates_nothing(void **state)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        unsigned long before = 0;
        struct wire w;

        (void)state;
        begin();
        ok(&script, 2);
        open_wire(&w);
        generate(w.client);
        for (uint32_t i = 0; i < 4096; i++) {
                tokens_frame(&script, 2, i, i, 1 + i % 4, "some words");
                send_script(&w);
                if (i == 16)
                        before = alloc_count;
                if (smv_next(w.client, &e, 1000) != 1)
                        fail();
        }
        assert_true(before > 0); /* the counter does count */
        assert_int_equal(alloc_count, before);
        close_wire(&w);
}

/* A reply with a text, a part of a character and a control token, of a vocabulary of 9. */
static void pieces_reply(struct script *s, uint32_t id, unsigned kinds)
{
        static const char *const pieces[] = { "ab", "\xe2", "<|x|>" };

        ok_begin(s, id, 3);
        text(s, "vocab");
        number(s, 9);
        text(s, "kinds");
        byte(s, 0x90 | kinds);
        for (unsigned i = 0; i < kinds; i++)
                byte(s, (const uint8_t[]){ 0, 2, 3, 77 }[i]);
        text(s, "pieces");
        byte(s, 0x93);
        for (unsigned i = 0; i < 3; i++) {
                byte(s, 0xc4);
                byte(s, (unsigned)strlen(pieces[i]));
                raw(s, pieces[i], strlen(pieces[i]));
        }
        frame_end(s);
}

static void pieces_come_as_pointers_lengths_and_kinds(void **state)
{
        static const char ask[] = "\xde\0\x03\xa2op\xa6pieces\xa2id\x02\xa6tokens\x93\1\2\3";
        static const char ask_more[] = "\xde\0\x04\xa2op\xa6pieces\xa2id\x03\xa4"
                                       "from\x05\xa6length\x04";
        const uint32_t ids[] = { 1, 2, 3 };
        const struct smv_piece *pieces = NULL;
        size_t count, vocab, n;
        uint8_t sent[4096];
        struct wire w;

        (void)state;
        begin();
        pieces_reply(&script, 2, 3);
        pieces_reply(&script, 3, 3);
        pieces_reply(&script, 4, 3);
        pieces_reply(&script, 5, 2);
        open_wire(&w);
        sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(smv_pieces(w.client, NULL, ids, 3, &pieces), 0);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(n, 4 + sizeof(ask) - 1);
        assert_memory_equal(sent + 4, ask, sizeof(ask) - 1);
        assert_int_equal(pieces[0].count, 2);
        assert_memory_equal(pieces[0].bytes, "ab", 2);
        assert_int_equal(pieces[0].kind, SMV_PIECE_TEXT);
        assert_int_equal(pieces[1].count, 1);
        assert_memory_equal(pieces[1].bytes, "\xe2", 1);
        assert_string_equal(smv_piece_kind_name(pieces[1].kind), "byte");
        assert_memory_equal(pieces[2].bytes, "<|x|>", pieces[2].count);
        assert_string_equal(smv_piece_kind_name(pieces[2].kind), "control");
        assert_string_equal(smv_piece_kind_name(6), "unknown");

        assert_int_equal(smv_vocabulary(w.client, NULL, 5, 4, &pieces, &count, &vocab), 0);
        n = sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(n, 4 + sizeof(ask_more) - 1);
        assert_memory_equal(sent + 4, ask_more, sizeof(ask_more) - 1);
        assert_int_equal(count, 3);
        assert_int_equal(vocab, 9);

        /* Replies that do not fit the question leave the caller's variables as they were. */
        pieces = NULL;
        assert_int_equal(smv_pieces(w.client, NULL, ids, 2, &pieces), -EPROTO);
        assert_int_equal(smv_vocabulary(w.client, NULL, 5, 4, &pieces, &count, &vocab), -EPROTO);
        assert_null(pieces);
        close_wire(&w);
}

static void replies_do_not_grow_the_buffer(void **state)
{
        const char *text_back;
        struct wire w;
        size_t bytes;

        (void)state;
        begin();
        ok(&script, 2);
        end_frame(&script, 2, 0, SMV_END_EOS);
        open_wire(&w);
        generate(w.client);
        expect_end(w.client, 2, SMV_END_EOS, SMV_OK);
        for (uint32_t id = 3; id < 5000; id++) {
                ok_begin(&script, id, 1);
                text(&script, "text");
                if (id % 2) {
                        text(&script, "back again");
                } else {
                        byte(&script, 0xc4);
                        byte(&script, 10);
                        raw(&script, "back again", 10);
                }
                frame_end(&script);
                send_script(&w);
                assert_int_equal(
                        smv_detokenize(w.client, NULL, &(uint32_t){ 1 }, 1, &text_back, &bytes), 0);
                assert_int_equal(bytes, 10);
                assert_memory_equal(text_back, "back again", 10);
        }
        assert_true(w.client->connection.in.size <= 65536);
        close_wire(&w);
}

static void finds_the_default_socket_through_the_environment(void **state)
{
        struct smv_connect o = { SMV_SIZE(smv_connect) };
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char dir[] = "/tmp/samovar-test-XXXXXX", sub[64], why[256] = "";
        struct smv_client *client;
        pthread_t thread;
        void *accepted;
        int listener;

        (void)state;
        assert_non_null(mkdtemp(dir));
        snprintf(sub, sizeof(sub), "%s/samovar", dir);
        assert_int_equal(mkdir(sub, 0700), 0);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/sock", sub);
        unsetenv("SAMOVAR_SOCKET");
        setenv("XDG_RUNTIME_DIR", dir, 1);

        o.message = why;
        o.message_bytes = sizeof(why);
        if (access(SMV_SYSTEM_SOCKET, F_OK)) { /* else the machine's own daemon would answer */
                assert_int_equal(smv_connect(&o, &client), -ENOENT);
                assert_non_null(strstr(why, address.sun_path));
        }

        listener = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(listen(listener, 4), 0);
        for (int named = 0; named < 2; named++) {
                begin();
                if (named) {
                        setenv("XDG_RUNTIME_DIR", "/nowhere", 1);
                        setenv("SAMOVAR_SOCKET", address.sun_path, 1);
                }
                pthread_create(&thread, NULL, accept_one, &listener);
                assert_int_equal(smv_connect(named ? NULL : &o, &client), 0);
                pthread_join(thread, &accepted);
                smv_close(client);
                close((int)(intptr_t)accepted);
        }
        close(listener);
        unlink(address.sun_path);
        rmdir(sub);
        rmdir(dir);
        unsetenv("SAMOVAR_SOCKET");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_conversation_split_at_any_byte_reads_the_same),
                cmocka_unit_test(records_that_arrive_before_a_reply_keep_their_order),
                cmocka_unit_test(two_streams_interleave),
                cmocka_unit_test(refusal_names_field_and_message),
                cmocka_unit_test(every_reason_of_an_end_arrives),
                cmocka_unit_test(accepts_the_longer_and_shorter_END_of_other_versions),
                cmocka_unit_test(an_older_program_gets_the_members_that_it_knows),
                cmocka_unit_test(an_older_reader_finds_its_members_in_the_longer_END),
                cmocka_unit_test(cancel_of_an_ended_stream_succeeds),
                cmocka_unit_test(generate_sends_exactly_the_fields_that_were_set),
                cmocka_unit_test(smv_stream_number_is_what_the_reply_says_of_each_stream),
                cmocka_unit_test(smv_accepted_reports_the_reply_of_the_last_stream),
                cmocka_unit_test(logprobs_arrive_with_their_tokens),
                cmocka_unit_test(prompt_logprobs_are_an_event_of_their_own),
                cmocka_unit_test(progress_records_that_are_too_short_end_the_connection),
                cmocka_unit_test(inconsistent_logprobs_end_the_connection),
                cmocka_unit_test(parts_arrive_with_their_text),
                cmocka_unit_test(inconsistent_parts_end_the_connection),
                cmocka_unit_test(does_not_send_a_request_over_the_frame_limit),
                cmocka_unit_test(the_fd_is_readable_when_data_or_a_hangup_arrived),
                cmocka_unit_test(accepts_structs_of_older_and_newer_headers),
                cmocka_unit_test(reading_a_token_allocates_nothing),
                cmocka_unit_test(pieces_come_as_pointers_lengths_and_kinds),
                cmocka_unit_test(replies_do_not_grow_the_buffer),
                cmocka_unit_test(finds_the_default_socket_through_the_environment),
        };

        count_allocs();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
