/*
 * Requests of the library that do not wait, beside a real daemon: each is answered as its call is,
 * whatever comes in between, and none blocks if the daemon is stopped.
 */
#include <errno.h>
#include <poll.h>
#include <samovar/client.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/e2e/chat-model.h"

static struct smv_client *connect_over(const struct daemon_fixture *fixture,
                                       enum smv_transport transport)
{
        const struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                           .transport = transport };
        struct smv_client *client;

        assert_int_equal(smv_connect(&where, &client), 0);
        return client;
}

static struct smv_problem problem_of(const struct smv_client *client)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        smv_error(client, &problem);
        return problem;
}

/* The next event; sleeps on the descriptors as an event loop does. */
static struct smv_event next_in_loop(struct smv_client *client)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        int r;

        while (!(r = smv_next(client, &event, 0))) {
                struct pollfd p = { .fd = smv_fd(client),
                                    .events = smv_wants_write(client) ? POLLIN | POLLOUT : POLLIN };

                if (poll(&p, 1, TIMEOUT_MS) != 1)
                        fail_msg("%s", "a hang: no event");
        }
        assert_int_equal(r, 1);
        return event;
}

/* The answer to a request that was just asked, which is the next event. */
static struct smv_event reply_to(struct smv_client *client, int result, const uint32_t *request)
{
        struct smv_event event;

        assert_int_equal(result, 0);
        event = next_in_loop(client);
        if (event.kind == SMV_EVENT_REPLY && event.code)
                fail_msg("refused: %s", problem_of(client).message);
        assert_int_equal(event.kind, SMV_EVENT_REPLY);
        assert_int_equal(event.stream, *request);
        return event;
}

/* ---- texts ---- */

static void same_text(const struct smv_event *reply, const char *text, size_t bytes)
{
        assert_int_equal(reply->text_bytes, bytes);
        assert_memory_equal(reply->text, text, bytes);
}

static void same_tokens(const struct smv_event *reply, const uint32_t *tokens, size_t count)
{
        assert_int_equal(reply->token_count, count);
        assert_memory_equal(reply->tokens, tokens, count * sizeof(*tokens));
}

static void same_pieces(const struct smv_event *reply, const char *bytes, size_t count)
{
        assert_int_equal(reply->piece_count, count);
        for (size_t i = 0; i < count; i++) {
                assert_memory_equal(reply->pieces[i].bytes, bytes, reply->pieces[i].count);
                bytes += reply->pieces[i].count;
        }
}

static void compare_texts(struct smv_client *client)
{
        static const struct smv_message hello = { .role = "user", .content = "a <tool_call> b" };
        const struct smv_generate chat = { SMV_SIZE(smv_generate), .messages = &hello,
                                           .message_count = 1 };
        uint32_t tokens[64], id = 0;
        const struct smv_piece *pieces;
        const uint32_t *some;
        char text[256];
        const char *words;
        size_t count, bytes, pieces_bytes = 0, vocab;
        struct smv_event reply;

        assert_int_equal(smv_tokenize(client, NULL, hello.content, 0, &some, &count), 0);
        memcpy(tokens, some, count * sizeof(*tokens));
        reply = reply_to(client, smv_ask_tokenize(client, NULL, hello.content, 0, &id), &id);
        same_tokens(&reply, tokens, count);

        assert_int_equal(smv_detokenize(client, NULL, tokens, count, &words, &bytes), 0);
        memcpy(text, words, bytes);
        reply = reply_to(client, smv_ask_detokenize(client, NULL, tokens, count, &id), &id);
        same_text(&reply, text, bytes);

        assert_int_equal(smv_pieces(client, NULL, tokens, count, &pieces), 0);
        for (size_t i = 0; i < count; i++) {
                memcpy(text + pieces_bytes, pieces[i].bytes, pieces[i].count);
                pieces_bytes += pieces[i].count;
        }
        reply = reply_to(client, smv_ask_pieces(client, NULL, tokens, count, &id), &id);
        same_pieces(&reply, text, count);

        assert_int_equal(smv_vocabulary(client, NULL, START, 3, &pieces, &count, &vocab), 0);
        assert_int_equal(count, 3);
        reply = reply_to(client, smv_ask_vocabulary(client, NULL, START, 3, &id), &id);
        same_pieces(&reply, "<|im_start|><|im_end|><tool_call>", 3);
        assert_int_equal(reply.number, vocab);

        assert_int_equal(smv_template(client, &chat, &words, &bytes, &some, &count), 0);
        memcpy(text, words, bytes);
        memcpy(tokens, some, count * sizeof(*tokens));
        reply = reply_to(client, smv_ask_template(client, &chat, 1, &id), &id);
        same_text(&reply, text, bytes);
        same_tokens(&reply, tokens, count);
        reply = reply_to(client, smv_ask_template(client, &chat, 0, &id), &id);
        same_text(&reply, text, bytes);
        assert_int_equal(reply.token_count, 0);
}

static void compare_turns(struct smv_client *client)
{
        static const struct smv_message first = { .role = "user", .content = "Hello" };
        static const struct smv_message second = { .role = "user", .content = "And now?" };
        const struct smv_generate opening = { SMV_SIZE(smv_generate), .messages = &first,
                                              .message_count = 1 };
        const struct smv_generate turn = { SMV_SIZE(smv_generate), .messages = &second,
                                           .message_count = 1 };
        struct smv_event reply;
        uint64_t waited, asked;
        uint32_t id = 0;
        size_t length;

        assert_int_equal(smv_handle_open(client, &opening, &waited, &length), 0);
        reply = reply_to(client, smv_ask_handle_open(client, &opening, &id), &id);
        asked = reply.number;
        assert_true(asked && asked != waited);
        assert_int_equal(reply.length, length);

        assert_int_equal(smv_handle_append_messages(client, waited, &turn, &length), 0);
        reply = reply_to(client, smv_ask_handle_append_messages(client, asked, &turn, &id), &id);
        assert_int_equal(reply.length, length);
        assert_int_equal(smv_handle_append_text(client, waited, "text", 4, &length), 0);
        reply = reply_to(client, smv_ask_handle_append_text(client, asked, "text", 4, &id), &id);
        assert_int_equal(reply.length, length);
        assert_int_equal(smv_handle_append(client, waited, (uint32_t[]){ 1, 2 }, 2, &length), 0);
        reply = reply_to(client, smv_ask_handle_append(client, asked, (uint32_t[]){ 1, 2 }, 2, &id),
                         &id);
        assert_int_equal(reply.length, length);
        reply = reply_to(client, smv_ask_handle_truncate(client, asked, length - 1, &id), &id);
        assert_int_equal(reply.length, length - 1);

        reply = reply_to(client, smv_ask_handle_fork(client, asked, 0, &id), &id);
        assert_true(reply.number && reply.number != asked);
        assert_int_equal(smv_handle_append(client, reply.number, (uint32_t[]){ 2 }, 1, &length), 0);
        reply_to(client, smv_ask_handle_close(client, asked, &id), &id);
        assert_int_equal(smv_handle_close(client, asked), -EREMOTEIO);
        assert_int_equal(problem_of(client).code, SMV_NO_HANDLE);
        assert_int_equal(smv_handle_close(client, waited), 0);
}

static void compare_reports(struct smv_client *client)
{
        uint32_t id = 0;

        for (int i = 0; i < 3; i++) {
                struct smv_event reply = reply_to(client, smv_ask_status(client, &id), &id);

                assert_int_equal(reply.text_bytes, strlen(reply.text));
                assert_non_null(strstr(reply.text, "\"blocks\":{"));
                reply = reply_to(client, smv_ask_list(client, &id), &id);
                assert_int_equal(reply.text_bytes, strlen(reply.text));
                assert_non_null(strstr(reply.text, "\"streams\":["));
        }
}

static void each_question_is_answered_as_its_call_is(void **state)
{
        struct daemon_fixture *fixture = *state;

        start_chat_model(fixture, CHATML);
        for (enum smv_transport way = SMV_TRANSPORT_RING; way <= SMV_TRANSPORT_SOCKET; way++) {
                struct smv_client *client = connect_over(fixture, way);

                compare_texts(client);
                compare_turns(client);
                compare_reports(client);
                assert_int_equal(smv_next(client, &(struct smv_event){ SMV_SIZE(smv_event) }, 0),
                                 -ENODATA);
                smv_close(client);
        }
        fixture_stop(fixture);
}

/* ---- streams ---- */

#define TOKENS_MAX 64u

struct seen {
        uint32_t tokens[TOKENS_MAX];
        size_t count;
        bool begun, ended;
};

/* Takes an event of this stream, of which the reply is the first. */
static void take(struct seen *seen, const struct smv_event *event)
{
        assert_false(seen->ended);
        switch (event->kind) {
        case SMV_EVENT_REPLY:
                assert_false(seen->begun);
                assert_int_equal(event->code, SMV_OK);
                seen->begun = true;
                break;
        case SMV_EVENT_TOKENS:
                assert_true(seen->begun && event->token_count <= TOKENS_MAX - seen->count);
                memcpy(seen->tokens + seen->count, event->tokens,
                       event->token_count * sizeof(*event->tokens));
                seen->count += event->token_count;
                break;
        default:
                assert_int_equal(event->kind, SMV_EVENT_END);
                assert_true(seen->begun && event->reason != SMV_END_ERROR);
                seen->ended = true;
        }
}

static void expect_end_of(struct smv_client *client, uint32_t stream, enum smv_reason reason,
                          enum smv_code code)
{
        struct smv_event event;

        do
                event = next_in_loop(client);
        while (event.stream != stream || event.kind != SMV_EVENT_END);
        assert_int_equal(event.reason, reason);
        assert_int_equal(event.code, code);
}

static const struct smv_generate endless = { SMV_SIZE(smv_generate), .prompt = "Once",
                                             .max_tokens = ENDLESS, .ignore_eos = 1 };

static void fork_in_loop(struct smv_client *client)
{
        const struct smv_fork three = { SMV_SIZE(smv_fork), .count = 3, .max_tokens = 5 };
        uint32_t parent = 0, forks[3] = { 0 };
        struct seen seen[3] = { 0 };
        struct smv_event event;

        reply_to(client, smv_ask_generate(client, &endless, &parent), &parent);
        assert_int_equal(smv_ask_fork(client, parent, &three, forks), 0);
        while (!seen[0].ended || !seen[1].ended || !seen[2].ended) {
                event = next_in_loop(client);
                for (size_t i = 0; i < 3; i++)
                        if (event.stream == forks[i] && event.kind != SMV_EVENT_REPLY)
                                take(&seen[i], &event);
                if (event.kind == SMV_EVENT_REPLY)
                        for (size_t i = 0; i < 3; i++)
                                take(&seen[i], &event);
        }
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(forks[i], forks[0] + i);
                assert_int_equal(seen[i].count, 5);
        }
        assert_int_equal(smv_cancel(client, parent), 0);
        expect_end_of(client, parent, SMV_END_CANCELLED, SMV_OK);
        assert_int_equal(smv_ask_fork(client, parent, &three, forks), 0);
        event = next_in_loop(client);
        assert_int_equal(event.kind, SMV_EVENT_REPLY);
        assert_int_equal(event.stream, forks[0]);
        assert_int_equal(event.code, SMV_NO_STREAM);
}

/* Until it is attached elsewhere, detached, and dropped; and one that is ended by its number. */
static void resume_in_loop(struct daemon_fixture *fixture, struct smv_client *client)
{
        const struct smv_generate kept = { SMV_SIZE(smv_generate), .prompt = "Once",
                                           .max_tokens = ENDLESS, .ignore_eos = 1,
                                           .keep_ms = 60000 };
        struct smv_client *other = connect_over(fixture, smv_transport_used(client));
        uint32_t stream = 0, again = 0, id = 0;
        uint64_t resume_id, number;
        struct smv_event event;

        resume_id = reply_to(client, smv_ask_generate(client, &kept, &stream), &stream).number;
        assert_int_equal(smv_resume_id(client, stream), resume_id);
        event = reply_to(other, smv_ask_attach(other, resume_id, 0, &again), &again);
        assert_int_equal(event.number, resume_id);
        expect_end_of(client, stream, SMV_END_ERROR, SMV_MOVED);
        event = next_in_loop(other);
        assert_int_equal(event.kind, SMV_EVENT_TOKENS);
        assert_int_equal(event.sequence, 0);
        assert_int_equal(smv_ask_detach(other, again, &id), 0);
        do
                event = next_in_loop(other);
        while (event.kind != SMV_EVENT_REPLY);
        assert_int_equal(event.code, SMV_OK);
        assert_int_equal(smv_next(other, &event, 0), -ENODATA);
        reply_to(client, smv_ask_drop(client, resume_id, &id), &id);
        assert_int_equal(smv_drop(client, resume_id), -EREMOTEIO);

        reply_to(client, smv_ask_generate(client, &endless, &stream), &stream);
        number = smv_stream_number(client, stream);
        reply_to(other, smv_ask_end(other, number, &id), &id);
        expect_end_of(client, stream, SMV_END_CANCELLED, SMV_OK);
        smv_close(other);
}

static void share_in_loop(struct smv_client *client)
{
        const struct smv_generate opening = { SMV_SIZE(smv_generate), .prompt = "Once upon a time",
                                              .keep_ms = 60000 };
        uint32_t id = 0;
        uint64_t handle, fork;

        handle = reply_to(client, smv_ask_handle_open(client, &opening, &id), &id).number;
        fork = reply_to(client, smv_ask_handle_fork(client, handle, 60000, &id), &id).number;
        reply_to(client, smv_ask_handle_pin(client, handle, 60000, SMV_PRIORITY_NORMAL, &id), &id);
        expect_end_of(client, id, SMV_END_LENGTH, SMV_OK);
        reply_to(client, smv_ask_handle_pin(client, handle, 0, SMV_PRIORITY_NORMAL, &id), &id);
        reply_to(client, smv_ask_handle_publish(client, handle, 8, NULL, &id), &id);
        expect_end_of(client, id, SMV_END_LENGTH, SMV_OK);
        reply_to(client, smv_ask_handle_revoke(client, handle, &id), &id);
        reply_to(client, smv_ask_handle_close(client, handle, &id), &id);
        reply_to(client, smv_ask_handle_close(client, fork, &id), &id);
}

static void each_stream_is_begun_and_ended_as_by_its_call(void **state)
{
        struct daemon_fixture *fixture = *state;

        START_ENDLESS_DAEMON(fixture, "--threads", "1", "--publish");
        for (enum smv_transport way = SMV_TRANSPORT_RING; way <= SMV_TRANSPORT_SOCKET; way++) {
                struct smv_client *client = connect_over(fixture, way);

                fork_in_loop(client);
                resume_in_loop(fixture, client);
                share_in_loop(client);
                assert_int_equal(smv_next(client, &(struct smv_event){ SMV_SIZE(smv_event) }, 0),
                                 -ENODATA);
                smv_close(client);
        }
        fixture_stop(fixture);
}

/* ---- many at once ---- */

#define KINDS  7u   /* of prompts */
#define MANY   200u /* requests, of which every third begins a stream */
#define ID_MAX (3 * MANY)

static struct smv_generate kind_of(uint32_t kind)
{
        static const char *const prompts[KINDS] = { "a", "bc", "def", "ghij", "klmno", "p", "qr" };

        return (struct smv_generate){ SMV_SIZE(smv_generate), .prompt = prompts[kind],
                                      .max_tokens = 1 + 5 * kind, .ignore_eos = 1,
                                      .seed = 100 + kind };
}

static void learn(struct smv_client *client, struct seen alone[KINDS])
{
        for (uint32_t kind = 0; kind < KINDS; kind++) {
                const struct smv_generate options = kind_of(kind);
                struct smv_event event;
                uint32_t stream;

                assert_int_equal(smv_generate(client, &options, &stream), 0);
                alone[kind] = (struct seen){ .begun = true };
                do {
                        event = next_in_loop(client);
                        take(&alone[kind], &event);
                } while (event.kind != SMV_EVENT_END);
        }
}

struct crowd {
        struct smv_client *client;
        struct seen seen[ID_MAX]; /* by id */
        uint32_t kinds[ID_MAX];
        uint32_t left; /* replies and ENDs that have not come */
};

static void ask_one(struct crowd *crowd, uint32_t number)
{
        const struct smv_generate options = kind_of(number % KINDS);
        uint32_t id = 0;

        if (number % 3 == 0)
                assert_int_equal(smv_ask_generate(crowd->client, &options, &id), 0);
        else if (number % 3 == 1)
                assert_int_equal(smv_ask_tokenize(crowd->client, NULL, options.prompt, 0, &id), 0);
        else
                assert_int_equal(smv_ask_status(crowd->client, &id), 0);
        assert_true(id < ID_MAX);
        crowd->kinds[id] = number;
        crowd->left += number % 3 ? 1 : 2;
}

static void take_one(struct crowd *crowd)
{
        struct smv_event event = next_in_loop(crowd->client);
        uint32_t number = crowd->kinds[event.stream];

        if (event.kind != SMV_EVENT_TOKENS)
                crowd->left--;
        if (number % 3 == 1) /* a token is a byte */
                assert_int_equal(event.token_count, strlen(kind_of(number % KINDS).prompt));
        else if (number % 3 == 2)
                assert_non_null(strstr(event.text, "\"blocks\":{"));
        take(&crowd->seen[event.stream], &event);
}

/* Requests and events alternate at random, and now and then a call waits. */
static void mix(struct daemon_fixture *fixture, enum smv_transport transport)
{
        struct crowd *crowd = calloc(1, sizeof(*crowd));
        struct seen alone[KINDS];
        uint32_t asked = 0;
        const uint32_t *tokens;
        size_t count;

        assert_non_null(crowd);
        crowd->client = connect_over(fixture, transport);
        learn(crowd->client, alone);
        while (asked < MANY || crowd->left) {
                if (asked < MANY && (!crowd->left || random_below(3)))
                        ask_one(crowd, asked++);
                else
                        take_one(crowd);
                if (!random_below(10))
                        assert_int_equal(smv_tokenize(crowd->client, NULL, "x", 1, &tokens, &count),
                                         0);
        }
        for (uint32_t id = 0; id < ID_MAX; id++) {
                const struct seen *seen = &crowd->seen[id],
                                  *want = &alone[crowd->kinds[id] % KINDS];

                if (!seen->begun || crowd->kinds[id] % 3)
                        continue;
                assert_true(seen->ended);
                assert_int_equal(seen->count, want->count);
                assert_memory_equal(seen->tokens, want->tokens,
                                    want->count * sizeof(*want->tokens));
        }
        smv_close(crowd->client);
        free(crowd);
}

static void requests_that_interleave_get_what_they_get_alone(void **state)
{
        struct daemon_fixture *fixture = *state;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--uid-requests", "1000");
        mix(fixture, SMV_TRANSPORT_RING);
        mix(fixture, SMV_TRANSPORT_SOCKET);
        fixture_stop(fixture);
}

static void a_refusal_is_the_one_that_the_call_gets(void **state)
{
        struct daemon_fixture *fixture = *state;
        const struct smv_generate refused[] = {
                { SMV_SIZE(smv_generate), .prompt = "x", .model = "none" },
                { SMV_SIZE(smv_generate), .prompt = "x", .top_p = 9 },
                { SMV_SIZE(smv_generate), .prompt = "x", .max_tokens = 4000000000u },
                { SMV_SIZE(smv_generate), .handle = 99 },
                { SMV_SIZE(smv_generate) },
        };

        START_DAEMON(fixture, "--threads", "1");
        for (enum smv_transport way = SMV_TRANSPORT_RING; way <= SMV_TRANSPORT_SOCKET; way++) {
                struct smv_client *client = connect_over(fixture, way);

                for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
                        struct smv_problem problem;
                        struct smv_event event;
                        char message[256];
                        uint32_t stream = 0;

                        assert_int_equal(smv_generate(client, &refused[i], &stream), -EREMOTEIO);
                        problem = problem_of(client);
                        snprintf(message, sizeof(message), "%s", problem.message);
                        assert_int_equal(smv_ask_generate(client, &refused[i], &stream), 0);
                        event = next_in_loop(client);
                        assert_int_equal(event.kind, SMV_EVENT_REPLY);
                        assert_int_equal(event.stream, stream);
                        assert_int_equal(event.code, problem.code);
                        assert_int_equal(problem_of(client).code, problem.code);
                        assert_string_equal(problem_of(client).message, message);
                        assert_int_equal(smv_next(client, &event, 0), -ENODATA);
                }
                smv_close(client);
        }
        fixture_stop(fixture);
}

/* ---- a daemon that is stopped ---- */

/* The daemon sees the cancel with its request, or once the stream has begun. */
static void cancel_before_the_reply_ends_the_stream(void **state)
{
        struct daemon_fixture *fixture = *state;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        for (enum smv_transport way = SMV_TRANSPORT_RING; way <= SMV_TRANSPORT_SOCKET; way++) {
                struct smv_client *client = connect_over(fixture, way);
                uint32_t streams[20], replies = 0, alive = 0;

                for (uint32_t i = 0; i < 20; i++) {
                        if (i % 2)
                                assert_int_equal(kill(fixture->pid, SIGSTOP), 0);
                        assert_int_equal(smv_ask_generate(client, &endless, &streams[i]), 0);
                        assert_int_equal(smv_cancel(client, streams[i]), 0);
                        assert_int_equal(kill(fixture->pid, SIGCONT), 0);
                }
                while (replies < 20 || alive) {
                        struct smv_event event = next_in_loop(client);

                        if (event.kind == SMV_EVENT_REPLY) {
                                replies++;
                                alive += !event.code;
                                assert_true(!event.code || event.code == SMV_CANCELLED);
                        } else if (event.kind == SMV_EVENT_END) {
                                alive--;
                                assert_int_equal(event.reason, SMV_END_CANCELLED);
                        }
                }
                smv_close(client);
        }
        fixture_stop(fixture);
}

static void no_call_waits_for_a_stopped_daemon(void **state)
{
        struct daemon_fixture *fixture = *state;

        START_QUICK_DAEMON(fixture, "--threads", "1", "--uid-requests", "10000");
        for (enum smv_transport way = SMV_TRANSPORT_RING; way <= SMV_TRANSPORT_SOCKET; way++) {
                struct smv_client *client = connect_over(fixture, way);
                struct smv_event event = { SMV_SIZE(smv_event) };
                static char text[20000];
                uint32_t count = 0, id = 0;
                int r;

                memset(text, 'x', sizeof(text));
                assert_int_equal(kill(fixture->pid, SIGSTOP), 0);
                while (!(r = smv_ask_tokenize(client, NULL, text, 1 + count * 7 % sizeof(text),
                                              &id))) {
                        count++;
                        assert_int_equal(smv_next(client, &event, 0), 0);
                }
                assert_int_equal(r, -EBUSY);
                assert_int_equal(count, 4096);
                assert_int_equal(smv_wants_write(client), 1);
                assert_int_equal(smv_next(client, &event, 0), 0);
                assert_int_equal(kill(fixture->pid, SIGCONT), 0);
                for (uint32_t i = 0; i < count; i++)
                        assert_int_equal(next_in_loop(client).kind, SMV_EVENT_REPLY);
                assert_int_equal(smv_wants_write(client), 0);
                assert_int_equal(smv_next(client, &event, 0), -ENODATA);
                smv_close(client);
        }
        fixture_stop(fixture);
}

static void a_killed_daemon_answers_each_request_as_lost(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct smv_event event = { SMV_SIZE(smv_event) };
        struct smv_client *client;
        uint32_t stream = 0, replies = 0, ends = 0, id;
        int r;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = connect_over(fixture, SMV_TRANSPORT_RING);
        for (uint32_t i = 0; i < 3; i++)
                assert_int_equal(smv_generate(client, &endless, &stream), 0);
        assert_int_equal(kill(fixture->pid, SIGSTOP), 0);
        for (uint32_t i = 0; i < 50; i++)
                if (i % 2)
                        assert_int_equal(smv_ask_generate(client, &endless, &id), 0);
                else
                        assert_int_equal(smv_ask_status(client, &id), 0);
        assert_int_equal(kill(fixture->pid, SIGKILL), 0);
        while ((r = smv_next(client, &event, TIMEOUT_MS)) > 0) {
                if (event.kind == SMV_EVENT_TOKENS)
                        continue;
                assert_int_equal(event.code, SMV_LOST);
                assert_int_equal(problem_of(client).code, SMV_LOST);
                replies += event.kind == SMV_EVENT_REPLY;
                ends += event.kind == SMV_EVENT_END;
        }
        assert_int_equal(r, -ENOTCONN);
        assert_int_equal(replies, 50);
        assert_int_equal(ends, 3);
        assert_int_equal(smv_ask_status(client, &id), -ENOTCONN);
        smv_close(client);
        assert_int_equal(fixture_await_exit(fixture), -SIGKILL);
        assert_no_process_left();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(each_question_is_answered_as_its_call_is),
                DAEMON_TEST(each_stream_is_begun_and_ended_as_by_its_call),
                DAEMON_TEST(requests_that_interleave_get_what_they_get_alone),
                DAEMON_TEST(a_refusal_is_the_one_that_the_call_gets),
                DAEMON_TEST(cancel_before_the_reply_ends_the_stream),
                DAEMON_TEST(no_call_waits_for_a_stopped_daemon),
                DAEMON_TEST(a_killed_daemon_answers_each_request_as_lost),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        random_begin();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
