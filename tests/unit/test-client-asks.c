/*
 * libsamovar's requests that do not wait, against a scripted daemon: each sends and takes what its
 * call does, in bounded memory.
 */
#include "tests/unit/client-asks-rig.h"

#include "tests/unit/count-alloc.h"

/* An ok reply that has every field that a reply may have. */
static void say_everything(struct script *s, uint32_t id)
{
        ok_begin(s, id, 12);
        text(s, "text");
        text(s, "some text");
        text(s, "tokens");
        byte(s, 0x92);
        number(s, 7);
        number(s, 300);
        text(s, "pieces");
        byte(s, 0x92);
        raw(s, "\xc4\2ab\xc4\1c", 7);
        text(s, "kinds");
        byte(s, 0x92);
        byte(s, 0);
        byte(s, 3);
        text(s, "vocab");
        number(s, 1000);
        text(s, "status");
        byte(s, 0x80);
        text(s, "work");
        byte(s, 0x80);
        text(s, "pool");
        byte(s, 0x80);
        text(s, "handle");
        number(s, 4001);
        text(s, "length");
        number(s, 12);
        text(s, "handles");
        byte(s, 0x91);
        number(s, 4002);
        text(s, "resume_id");
        number(s, 77);
        frame_end(s);
}

/* ---- the two forms of each call ---- */

static const struct smv_fork two = { SMV_SIZE(smv_fork), .count = 2, .seed = 5 };
static const uint32_t pair_of_ids[] = { 1, 2 };
static const uint32_t group = 40;

/* A call, and what it returns as the event that its other form gets. */
#define WAIT(name, call)                                                                           \
        static int wait_##name(struct smv_client *c, struct smv_event *e)                          \
        {                                                                                          \
                size_t size = 0;                                                                   \
                int result = call;                                                                 \
                                                                                                   \
                if (size)                                                                          \
                        e->length = size;                                                          \
                return result;                                                                     \
        }
/* Its other form, which fills e->stream. */
#define ASK(name, call)                                                                            \
        static int ask_##name(struct smv_client *c, struct smv_event *e)                           \
        {                                                                                          \
                return call;                                                                       \
        }

/* The two forms of forks return two ids. */
static int wait_fork(struct smv_client *c, struct smv_event *e)
{
        uint32_t streams[2] = { 0 };
        int result = smv_fork(c, 1, &two, streams);

        e->stream = streams[0];
        assert_int_equal(streams[1], streams[0] ? streams[0] + 1 : 0);
        return result;
}

static int ask_fork(struct smv_client *c, struct smv_event *e)
{
        uint32_t streams[2] = { 0 };
        int result = smv_ask_fork(c, 1, &two, streams);

        e->stream = streams[0];
        assert_int_equal(streams[1], streams[0] ? streams[0] + 1 : 0);
        return result;
}

WAIT(generate, smv_generate(c, &once, &e->stream))
ASK(generate_once, smv_ask_generate(c, &once, &e->stream))
WAIT(attach, smv_attach(c, 77, 3, &e->stream))
ASK(attach, smv_ask_attach(c, 77, 3, &e->stream))
WAIT(drop, smv_drop(c, 77))
ASK(drop, smv_ask_drop(c, 77, &e->stream))
WAIT(template, smv_template(c, &chat, &e->text, &e->text_bytes, NULL, NULL))
ASK(template, smv_ask_template(c, &chat, 0, &e->stream))
WAIT(template_ids, smv_template(c, &chat, &e->text, &e->text_bytes, &e->tokens, &e->token_count))
ASK(template_ids, smv_ask_template(c, &chat, 1, &e->stream))
WAIT(tokenize, smv_tokenize(c, "toy", "a b", 3, &e->tokens, &e->token_count))
ASK(tokenize_ab, smv_ask_tokenize(c, "toy", "a b", 3, &e->stream))
WAIT(detokenize, smv_detokenize(c, "toy", pair_of_ids, 2, &e->text, &e->text_bytes))
ASK(detokenize, smv_ask_detokenize(c, "toy", pair_of_ids, 2, &e->stream))
WAIT(pieces, (e->piece_count = 2, smv_pieces(c, "toy", pair_of_ids, 2, &e->pieces)))
ASK(pieces, smv_ask_pieces(c, "toy", pair_of_ids, 2, &e->stream))
WAIT(vocabulary, smv_vocabulary(c, "toy", 5, 9, &e->pieces, &e->piece_count, &e->number))
ASK(vocabulary, smv_ask_vocabulary(c, "toy", 5, 9, &e->stream))
WAIT(status, smv_status(c, &e->text))
ASK(status_of, smv_ask_status(c, &e->stream))
WAIT(list, smv_list(c, &e->text))
ASK(list, smv_ask_list(c, &e->stream))
WAIT(pool, smv_pool(c, 7, &e->text))
ASK(pool, smv_ask_pool(c, 7, &e->stream))
WAIT(end, smv_end(c, 1001))
ASK(end, smv_ask_end(c, 1001, &e->stream))
WAIT(open, smv_handle_open(c, &kept, &e->number, &size))
ASK(open, smv_ask_handle_open(c, &kept, &e->stream))
WAIT(append, smv_handle_append(c, 9, pair_of_ids, 2, &size))
ASK(append, smv_ask_handle_append(c, 9, pair_of_ids, 2, &e->stream))
WAIT(append_text, smv_handle_append_text(c, 9, "a b", 3, &size))
ASK(append_text, smv_ask_handle_append_text(c, 9, "a b", 3, &e->stream))
WAIT(append_messages, smv_handle_append_messages(c, 9, &chat, &size))
ASK(append_messages, smv_ask_handle_append_messages(c, 9, &chat, &e->stream))
WAIT(truncate, (e->length = 12, smv_handle_truncate(c, 9, 12)))
ASK(truncate, smv_ask_handle_truncate(c, 9, 12, &e->stream))
WAIT(handle_fork, smv_handle_fork(c, 9, 1, &e->number))
ASK(handle_fork, smv_ask_handle_fork(c, 9, 0, &e->stream))
WAIT(handle_fork_keep, smv_handle_fork_keep(c, 9, 1, 500, &e->number))
ASK(handle_fork_keep, smv_ask_handle_fork(c, 9, 500, &e->stream))
WAIT(pin, smv_handle_pin(c, 9, 1000, SMV_PRIORITY_BACKGROUND, &e->stream))
ASK(pin, smv_ask_handle_pin(c, 9, 1000, SMV_PRIORITY_BACKGROUND, &e->stream))
WAIT(unpin, smv_handle_pin(c, 9, 0, SMV_PRIORITY_BACKGROUND, &e->stream))
ASK(unpin, smv_ask_handle_pin(c, 9, 0, SMV_PRIORITY_BACKGROUND, &e->stream))
WAIT(publish, smv_handle_publish(c, 9, 4, &group, &e->stream))
ASK(publish, smv_ask_handle_publish(c, 9, 4, &group, &e->stream))
WAIT(revoke, smv_handle_revoke(c, 9))
ASK(revoke, smv_ask_handle_revoke(c, 9, &e->stream))
WAIT(close, smv_handle_close(c, 9))
ASK(close, smv_ask_handle_close(c, 9, &e->stream))

static const struct form {
        int (*wait)(struct smv_client *client, struct smv_event *ret_answer);
        int (*ask)(struct smv_client *client, struct smv_event *ret_request);
        size_t streams; /* that the request begins */
} forms[] = {
        { wait_generate, ask_generate_once, 1 },
        { wait_fork, ask_fork, 2 },
        { wait_attach, ask_attach, 1 },
        { wait_pin, ask_pin, 1 },
        { wait_publish, ask_publish, 1 },
        { wait_unpin, ask_unpin, 0 },
        { wait_drop, ask_drop, 0 },
        { wait_template, ask_template, 0 },
        { wait_template_ids, ask_template_ids, 0 },
        { wait_tokenize, ask_tokenize_ab, 0 },
        { wait_detokenize, ask_detokenize, 0 },
        { wait_pieces, ask_pieces, 0 },
        { wait_vocabulary, ask_vocabulary, 0 },
        { wait_status, ask_status_of, 0 },
        { wait_list, ask_list, 0 },
        { wait_pool, ask_pool, 0 },
        { wait_end, ask_end, 0 },
        { wait_open, ask_open, 0 },
        { wait_append, ask_append, 0 },
        { wait_append_text, ask_append_text, 0 },
        { wait_append_messages, ask_append_messages, 0 },
        { wait_truncate, ask_truncate, 0 },
        { wait_handle_fork, ask_handle_fork, 0 },
        { wait_handle_fork_keep, ask_handle_fork_keep, 0 },
        { wait_revoke, ask_revoke, 0 },
        { wait_close, ask_close, 0 },
};
#define FORMS (sizeof(forms) / sizeof(*forms))

static void expect_same_bytes(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
        assert_int_equal(a_bytes, b_bytes);
        if (a_bytes)
                assert_memory_equal(a, b, a_bytes);
}

static void expect_same_answer(const struct smv_event *a, const struct smv_event *b)
{
        expect_same_bytes(a->text, a->text_bytes, b->text, b->text_bytes);
        expect_same_bytes(a->tokens, a->token_count * sizeof(*a->tokens), b->tokens,
                          b->token_count * sizeof(*b->tokens));
        assert_int_equal(a->piece_count, b->piece_count);
        for (size_t i = 0; i < a->piece_count; i++) {
                expect_same_bytes(a->pieces[i].bytes, a->pieces[i].count, b->pieces[i].bytes,
                                  b->pieces[i].count);
                assert_int_equal(a->pieces[i].kind, b->pieces[i].kind);
        }
        assert_int_equal(a->number, b->number);
        assert_int_equal(a->length, b->length);
}

/* The bytes on the socket are the same, and so is all that the reply says. */
static void each_ask_sends_and_takes_what_its_call_does(void **state)
{
        (void)state;
        for (size_t i = 0; i < FORMS; i++) {
                static uint8_t sent[2][4096];
                struct smv_event waited = { 0 }, asked = { 0 }, reply;
                struct wire w[2];
                size_t count[2];

                for (int j = 0; j < 2; j++) {
                        begin();
                        if (!j)
                                say_everything(&script, 2);
                        open_wire(&w[j]);
                        sent_so_far(&w[j], sent[j], sizeof(sent[j]));
                }
                assert_int_equal(forms[i].wait(w[0].client, &waited), 0);
                if (waited.text && !waited.text_bytes)
                        waited.text_bytes = strlen(waited.text);
                count[0] = sent_so_far(&w[0], sent[0], sizeof(sent[0]));
                assert_int_equal(forms[i].ask(w[1].client, &asked), 0);
                count[1] = sent_so_far(&w[1], sent[1], sizeof(sent[1]));
                expect_same_bytes(sent[0], count[0], sent[1], count[1]);
                assert_int_equal(asked.stream, 2);
                assert_int_equal(next_now(w[1].client), 0);
                say_everything(&script, 2);
                send_script(&w[1]);
                reply = expect_reply(w[1].client, 2, SMV_OK);
                if (forms[i].streams) {
                        assert_int_equal(waited.stream, 2);
                        waited.number = smv_resume_id(w[0].client, 2);
                }
                expect_same_answer(&waited, &reply);
                assert_int_equal(w[0].client->streams.count, forms[i].streams);
                assert_int_equal(w[1].client->streams.count, forms[i].streams);
                for (uint32_t id = 2; id < 2 + forms[i].streams; id++)
                        assert_int_equal(smv_resume_id(w[0].client, id),
                                         smv_resume_id(w[1].client, id));
                assert_int_equal(next_now(w[1].client), forms[i].streams ? 0 : -ENODATA);
                close_wire(&w[0]);
                close_wire(&w[1]);
        }
}

/* Whatever a request wants: each field that its reply lacks is a failure of that request only. */
static void a_reply_that_lacks_its_fields_fails_only_its_request(void **state)
{
        unsigned failed = 0;

        (void)state;
        for (size_t i = 0; i < FORMS; i++) {
                struct smv_event asked = { 0 }, e = { SMV_SIZE(smv_event) };
                struct wire w;

                begin();
                open_wire(&w);
                assert_int_equal(forms[i].ask(w.client, &asked), 0);
                assert_int_equal(ask_status(w.client), 3 + (forms[i].streams == 2));
                ok(&script, 2);
                say_status(&script, 3 + (forms[i].streams == 2));
                send_script(&w);
                assert_int_equal(smv_next(w.client, &e, 1000), 1);
                failed += e.code == SMV_INTERNAL;
                assert_true(e.code == SMV_INTERNAL || e.code == SMV_OK);
                expect_reply(w.client, 3 + (forms[i].streams == 2), SMV_OK);
                close_wire(&w);
        }
        assert_int_equal(failed, FORMS - 10);
}

static void nothing_is_asked_without_a_client(void **state)
{
        struct smv_event e = { 0 };

        (void)state;
        for (size_t i = 0; i < FORMS; i++)
                assert_int_equal(forms[i].ask(NULL, &e), -EINVAL);
        assert_int_equal(smv_ask_detach(NULL, 1, &e.stream), -EINVAL);
        assert_int_equal(e.stream, 0);
        assert_int_equal(smv_wants_write(NULL), 0);
}

static void an_invalid_request_is_not_asked(void **state)
{
        const struct smv_generate many = { SMV_SIZE(smv_generate), .prompt = "x", .n = 65 };
        const struct smv_fork none = { SMV_SIZE(smv_fork) };
        uint8_t sent[4096];
        uint32_t id = 7;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        sent_so_far(&w, sent, sizeof(sent));
        assert_int_equal(smv_ask_generate(w.client, &many, &id), -EINVAL);
        assert_string_equal(problem(w.client).field, "n");
        assert_int_equal(smv_ask_fork(w.client, 2, &none, &id), -EINVAL);
        assert_int_equal(smv_ask_handle_append_messages(w.client, 9, &once, &id), -EINVAL);
        assert_int_equal(smv_ask_handle_pin(w.client, 9, 1, (enum smv_priority)9, &id), -EINVAL);
        assert_int_equal(id, 7);
        assert_int_equal(sent_so_far(&w, sent, sizeof(sent)), 0);
        assert_int_equal(next_now(w.client), -ENODATA);
        close_wire(&w);
}

/* ---- memory and limits ---- */

static void an_older_program_gets_no_members_that_it_does_not_know(void **state)
{
        struct smv_event e;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        ask_tokenize(w.client);
        say_tokens(&script, 2, 7);
        send_script(&w);
        memset(&e, 0xee, sizeof(e));
        e.size = offsetof(struct smv_event, pieces);
        assert_int_equal(smv_next(w.client, &e, 1000), 1);
        assert_int_equal(e.kind, SMV_EVENT_REPLY);
        assert_int_equal(e.tokens[0], 7);
        assert_int_equal(e.piece_count, 0xeeeeeeeeeeeeeeee);
        assert_int_equal(e.length, 0xeeeeeeeeeeeeeeee);
        close_wire(&w);
}

static void asking_again_and_again_allocates_nothing(void **state)
{
        unsigned long before = 0;
        uint8_t sent[4096];
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        for (uint32_t id = 2; id < 2000; id += 2) {
                struct smv_event e = { SMV_SIZE(smv_event) };
                uint32_t asked;

                if (id == 32)
                        before = alloc_count;
                if (smv_ask_status(w.client, &asked) || asked != id ||
                    smv_ask_tokenize(w.client, NULL, "x", 1, &asked))
                        fail();
                sent_so_far(&w, sent, sizeof(sent));
                say_status(&script, id);
                say_tokens(&script, id + 1, id);
                send_script(&w);
                if (smv_next(w.client, &e, 1000) != 1 || e.stream != id ||
                    smv_next(w.client, &e, 1000) != 1 || *e.tokens != id)
                        fail();
        }
        assert_true(before > 0);
        assert_int_equal(alloc_count, before);
        close_wire(&w);
}

static void asks_until_the_library_refuses(void **state)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        const char *json;
        uint32_t id = 0;
        struct wire w;

        (void)state;
        begin();
        open_wire(&w);
        for (unsigned i = 0; i < CLIENT_PENDING_MAX; i++)
                ask_status(w.client);
        assert_int_equal(smv_ask_status(w.client, &id), -EBUSY);
        assert_string_equal(problem(w.client).message,
                            "4096 replies are outstanding; no more may be");
        assert_int_equal(id, 0);
        assert_int_equal(next_now(w.client), 0);
        say_status(&script, 4000);
        say_status(&script, w.client->last_id + 1); /* of the call below */
        send_script(&w);
        assert_int_equal(smv_status(w.client, &json), 0);
        expect_reply(w.client, 4000, SMV_OK);
        ask_status(w.client);
        hang_up(&w);
        for (unsigned i = 0; i < CLIENT_PENDING_MAX; i++) {
                assert_int_equal(smv_next(w.client, &e, 1000), 1);
                assert_int_equal(e.code, SMV_LOST);
        }
        expect_lost(w.client, 0);
        close_wire(&w);
}

/* Reads what was sent, of requests of `bytes` bytes each, and answers those that are whole. */
static unsigned answer_whole(struct wire *w, size_t bytes, uint32_t first)
{
        static uint8_t sink[1u << 16];
        static size_t have = 4; /* the first length was read */
        unsigned answered = 0;
        ssize_t n;

        while ((n = recv(w->daemon, sink, sizeof(sink), MSG_DONTWAIT)) > 0)
                for (have += (size_t)n; have >= bytes; have -= bytes)
                        say_tokens(&script, first + answered++, 5);
        send_script(w);
        return answered;
}

static void what_the_daemon_does_not_take_is_sent_later_in_order(void **state)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        struct pollfd p = { .events = POLLOUT };
        static char large[1u << 20];
        uint32_t count = 0, replies = 0, answered, id;
        uint32_t length;
        size_t bytes;
        uint8_t sent[4096];
        struct wire w;
        int r;

        (void)state;
        memset(large, 'x', sizeof(large));
        begin();
        open_wire(&w);
        sent_so_far(&w, sent, sizeof(sent));
        p.fd = smv_fd(w.client);
        assert_int_equal(smv_wants_write(w.client), 0);
        while (!(r = smv_ask_tokenize(w.client, NULL, large, sizeof(large), &id)))
                assert_int_equal(id, 2 + count++);
        assert_int_equal(r, -EBUSY);
        assert_non_null(strstr(problem(w.client).message, "the daemon has not taken"));
        assert_in_range(count, 64, 70);
        assert_int_equal(smv_wants_write(w.client), 1);
        assert_int_equal(next_now(w.client), 0);
        assert_int_equal(poll(&p, 1, 0), 0);
        assert_int_equal(recv(w.daemon, &length, 4, 0), 4);
        bytes = 4 + le32toh(length);
        for (answered = 0; replies < count; answered += answer_whole(&w, bytes, 2 + answered))
                while ((r = smv_next(w.client, &e, 0)) > 0) {
                        assert_int_equal(e.stream, 2 + replies++);
                        assert_int_equal(e.code, SMV_OK);
                }
        assert_int_equal(answered, count);
        assert_int_equal(smv_wants_write(w.client), 0);
        assert_int_equal(next_now(w.client), -ENODATA);
        assert_true(w.client->connection.out.size <= 160u << 20);
        close_wire(&w);
}

/* A daemon that is always one request behind does not make the library's memory grow. */
static void unsent_requests_take_no_more_memory_than_their_bytes(void **state)
{
        static char large[1u << 17];
        static uint8_t sink[1u << 16];
        struct wire w;

        (void)state;
        memset(large, 'x', sizeof(large));
        begin();
        open_wire(&w);
        for (unsigned i = 0; i < 1000; i++) {
                uint32_t id = 0;

                while (connection_unsent(&w.client->connection) < sizeof(large))
                        assert_int_equal(
                                smv_ask_tokenize(w.client, NULL, large, sizeof(large), &id), 0);
                assert_true(recv(w.daemon, sink, sizeof(sink), 0) > 0);
                assert_int_equal(next_now(w.client), 0);
        }
        assert_true(w.client->connection.out.size <= 8 * sizeof(large));
        close_wire(&w);
}

static void beam_search_is_refused_while_replies_are_outstanding(void **state)
{
        const struct smv_beam o = { SMV_SIZE(smv_beam), .start = &once };
        const struct smv_beam_result *results;
        struct wire w;
        size_t count;

        (void)state;
        begin();
        open_wire(&w);
        ask_status(w.client);
        assert_int_equal(smv_beam(w.client, &o, &results, &count), -EBUSY);
        close_wire(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_ask_sends_and_takes_what_its_call_does),
                cmocka_unit_test(a_reply_that_lacks_its_fields_fails_only_its_request),
                cmocka_unit_test(nothing_is_asked_without_a_client),
                cmocka_unit_test(an_invalid_request_is_not_asked),
                cmocka_unit_test(an_older_program_gets_no_members_that_it_does_not_know),
                cmocka_unit_test(asking_again_and_again_allocates_nothing),
                cmocka_unit_test(asks_until_the_library_refuses),
                cmocka_unit_test(what_the_daemon_does_not_take_is_sent_later_in_order),
                cmocka_unit_test(unsent_requests_take_no_more_memory_than_their_bytes),
                cmocka_unit_test(beam_search_is_refused_while_replies_are_outstanding),
        };

        count_allocs();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
