/*
 * Handles, by clients that know their contents.  Whatever was done to a handle, it generates what
 * the same tokens generate when they are sent as a whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <samovar/client.h>

#include "tests/e2e/raw-client.h"

#define HISTORY_MAX 4096

/* The contents of a handle as its client knows them. */
struct history {
        uint64_t handle;
        uint32_t tokens[HISTORY_MAX];
        size_t count;
};

struct turn {
        uint32_t max_tokens;
        double temperature;
        uint64_t seed;
};

static void assert_refused(const struct reply *reply, enum smv_code code, const char *field)
{
        assert_false(reply->ok);
        if (reply->code != code)
                fail_msg("%s, not %u", reply->message, code);
        assert_string_equal(reply->field, field);
}

static void note(struct history *history, const uint32_t *tokens, size_t count)
{
        assert_true(count <= HISTORY_MAX - history->count);
        if (count)
                memcpy(history->tokens + history->count, tokens, count * sizeof(*tokens));
        history->count += count;
}

/* Opens a handle by a text; the toy model's bos stands in front, and its tokens are bytes. */
static void open_text(struct raw_client *client, struct history *history, const char *text)
{
        struct reply *reply = raw_client_call(client, "op=s prompt=s", "open", text);

        assert_true(reply->ok);
        history->handle = reply_uint(reply, "handle");
        history->count = 0;
        note(history, (uint32_t[]){ 256 }, 1);
        for (; *text; text++)
                note(history, (uint32_t[]){ (uint8_t)*text }, 1);
        assert_int_equal(reply_uint(reply, "length"), history->count);
}

static void append_text(struct raw_client *client, struct history *history, const char *text)
{
        struct reply *reply =
                raw_client_call(client, "op=s handle=q text=s", "append", history->handle, text);

        if (!reply->ok)
                fail_msg("%s", reply->message);
        for (; *text; text++)
                note(history, (uint32_t[]){ (uint8_t)*text }, 1);
        assert_int_equal(reply_uint(reply, "length"), history->count);
}

static void append_tokens(struct raw_client *client, struct history *history, uint32_t first,
                          size_t count)
{
        uint32_t tokens[64];
        struct reply *reply;

        for (size_t i = 0; i < count; i++)
                tokens[i] = first + (uint32_t)i;
        reply = raw_client_call(client, "op=s handle=q tokens=I", "append", history->handle, tokens,
                                count);
        if (!reply->ok)
                fail_msg("%s", reply->message);
        note(history, tokens, count);
        assert_int_equal(reply_uint(reply, "length"), history->count);
}

static void truncate_to(struct raw_client *client, struct history *history, size_t count)
{
        struct reply *reply = raw_client_call(client, "op=s handle=q length=u", "truncate",
                                              history->handle, (uint32_t)count);

        assert_true(reply->ok);
        history->count = count;
        assert_int_equal(reply_uint(reply, "length"), count);
}

static void fork_all(struct raw_client *client, const struct history *history,
                     struct history *forks, uint32_t count)
{
        struct reply *reply =
                raw_client_call(client, "op=s handle=q count=u", "fork", history->handle, count);
        char path[32];

        assert_true(reply->ok);
        for (uint32_t i = 0; i < count; i++) {
                snprintf(path, sizeof(path), "handles.%u", i);
                forks[i] = *history;
                forks[i].handle = reply_uint(reply, path);
                assert_true(forks[i].handle != history->handle);
        }
}

/* Sends without waiting; returns the id. */
static uint32_t begin_turn(struct raw_client *client, uint64_t handle, const struct turn *turn)
{
        uint32_t id = ++client->last_id;

        raw_client_send_frame(client, "op=s id=u handle=q max_tokens=u temperature=f seed=q",
                              "generate", id, handle, turn->max_tokens, turn->temperature,
                              turn->seed);
        return id;
}

static struct stream *end_turn(struct raw_client *client, struct history *history, uint32_t id)
{
        struct reply *reply = raw_client_await_reply(client, id);
        struct stream *stream;

        if (!reply->ok)
                fail_msg("%s", reply->message);
        assert_int_equal(reply_uint(reply, "prompt_tokens"), history->count);
        stream = raw_client_await_end(client, id);
        assert_int_equal(stream->end.prompt_tokens, history->count);
        return stream;
}

/* Sends the same tokens as a whole, over another connection, and compares. */
static void compare(struct raw_client *other, struct history *history, const struct turn *turn,
                    const struct stream *stream)
{
        uint32_t id = ++other->last_id;
        struct stream *whole;

        raw_client_send_frame(other, "op=s id=u tokens=I max_tokens=u temperature=f seed=q",
                              "generate", id, history->tokens, history->count, turn->max_tokens,
                              turn->temperature, turn->seed);
        assert_true(raw_client_await_reply(other, id)->ok);
        whole = raw_client_await_end(other, id);
        assert_int_equal(stream->token_count, whole->token_count);
        assert_memory_equal(stream->tokens, whole->tokens,
                            whole->token_count * sizeof(*whole->tokens));
        assert_int_equal(stream->text_bytes, whole->text_bytes);
        assert_memory_equal(stream->text, whole->text, whole->text_bytes);
        assert_int_equal(stream->end.reason, whole->end.reason);
        assert_int_equal(stream->end.output_tokens, whole->end.output_tokens);
        assert_int_equal(stream->end.prompt_tokens, whole->end.prompt_tokens);
}

/* `known`: how many of the tokens an earlier turn on this handle has read or made. */
static void take_turn(struct raw_client *client, struct raw_client *other, struct history *history,
                      const struct turn *turn, size_t known)
{
        struct stream *stream =
                end_turn(client, history, begin_turn(client, history->handle, turn));

        if (stream->end.cached_tokens + 2 < known)
                fail_msg("%u are cached, %zu known", stream->end.cached_tokens, known);
        compare(other, history, turn, stream);
        note(history, stream->tokens, stream->token_count);
}

static void a_handle_generates_the_same_as_its_tokens_sent_whole(void **state)
{
        static const struct turn turns[] = {
                { .max_tokens = 20 },
                { .max_tokens = 33, .temperature = 1.1, .seed = 5 },
                { .max_tokens = 1 },
                { .max_tokens = 16, .temperature = 0.7, .seed = 99 },
        };
        struct history history, forks[3];
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        uint32_t ids[3];
        size_t known = 0;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        open_text(client, &history, "Once upon a time");
        for (size_t i = 0; i < 4; i++) {
                take_turn(client, other, &history, &turns[i], known);
                known = history.count;
                if (i % 2)
                        append_tokens(client, &history, 65 + (uint32_t)i, 1 + 17 * i);
                else
                        append_text(client, &history, i ? "" : " she said. ");
        }

        truncate_to(client, &history, 23);
        take_turn(client, other, &history, &turns[0], 23);
        truncate_to(client, &history, history.count);
        truncate_to(client, &history, history.count - 5);
        append_tokens(client, &history, 70, 3);

        /* Three forks at once; the original continues as if there were no forks. */
        fork_all(client, &history, forks, 3);
        for (uint32_t i = 0; i < 3; i++) {
                append_tokens(client, &forks[i], 80 + i, 1 + i);
                ids[i] = begin_turn(client, forks[i].handle, &turns[1 + i]);
        }
        take_turn(client, other, &history, &turns[3], history.count - 8);
        for (uint32_t i = 0; i < 3; i++) {
                struct stream *stream = end_turn(client, &forks[i], ids[i]);

                compare(other, &forks[i], &turns[1 + i], stream);
                note(&forks[i], stream->tokens, stream->token_count);
        }
        assert_true(raw_client_call(client, "op=s handle=q", "close", history.handle)->ok);
        take_turn(other, client, &forks[0], &turns[1], forks[0].count);
        append_text(other, &forks[2], "!");
        take_turn(other, client, &forks[2], &turns[0], forks[2].count - 1);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/* The token that ends a stream belongs to it, as it was shown, whatever ended the stream. */
static void the_history_includes_the_token_that_ended_the_stream(void **state)
{
        struct turn turn = { .max_tokens = 300, .temperature = 1, .seed = 1 };
        struct daemon_fixture *fixture = *state;
        struct history history;
        struct stream *stream;
        struct raw_client *client;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        open_text(client, &history, "Tea.");
        for (; turn.seed <= 100; turn.seed++) {
                stream = end_turn(client, &history, begin_turn(client, history.handle, &turn));
                /* it has at least 5 tokens, or this would be refused */
                truncate_to(client, &history, 5);
                if (stream->end.reason == SMV_END_EOS)
                        break;
        }
        stream = end_turn(client, &history, begin_turn(client, history.handle, &turn));
        assert_int_equal(stream->end.reason, SMV_END_EOS);
        assert_int_equal(stream->tokens[stream->token_count - 1], 257);
        note(&history, stream->tokens, stream->token_count);
        append_text(client, &history, "So"); /* this checks the length */

        id = ++client->last_id;
        raw_client_send_frame(client, "op=s id=u handle=q max_tokens=u ignore_eos=y", "generate",
                              id, history.handle, ENDLESS, 1);
        while (!raw_client_stream(client, id))
                raw_client_poll(client, 100);
        assert_true(raw_client_call(client, "op=s stream=u", "cancel", id)->ok);
        stream = end_turn(client, &history, id);
        assert_int_equal(stream->end.reason, SMV_END_CANCELLED);
        assert_int_equal(reply_uint(raw_client_call(client, "op=s handle=q text=s", "append",
                                                    history.handle, "?"),
                                    "length"),
                         history.count + stream->token_count + 1);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* A client that has read an END may continue at once, over the same connection or another. */
static void a_handle_is_never_busy_after_its_stream_has_ended(void **state)
{
        struct turn turn = { .temperature = 1 };
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        struct history history;

        START_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        open_text(client, &history, "Tea");
        for (uint32_t i = 0; i < scaled(40, 4000); i++) {
                struct raw_client *now = i % 3 ? client : other, *next = i % 2 ? client : other;
                struct stream *stream;
                uint32_t id;

                turn.max_tokens = 1 + i % 4;
                turn.seed = i;
                id = begin_turn(now, history.handle, &turn);
                if (i % 5 == 4)
                        raw_client_call(now, "op=s stream=u", "cancel", id);
                stream = end_turn(now, &history, id);
                note(&history, stream->tokens, stream->token_count);
                if (i % 4)
                        append_tokens(next, &history, 97, 1);
                else if (4 + i % 9 < history.count)
                        truncate_to(next, &history, 4 + i % 9);
        }
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

/* Sends all requests at once, so that the handle is still busy when the last one is looked at. */
static void expect_busy(struct raw_client *client, uint64_t handle)
{
        uint32_t first = client->last_id + 1;

        raw_client_send_frame(client, "op=s id=u handle=q tokens=I", "append", first, handle,
                              (uint32_t[]){ 65 }, (size_t)1);
        raw_client_send_frame(client, "op=s id=u handle=q text=s", "append", first + 1, handle,
                              "A");
        raw_client_send_frame(client, "op=s id=u handle=q length=u", "truncate", first + 2, handle,
                              1u);
        raw_client_send_frame(client, "op=s id=u handle=q count=u", "fork", first + 3, handle, 1u);
        raw_client_send_frame(client, "op=s id=u handle=q", "generate", first + 4, handle);
        client->last_id += 5;
        for (uint32_t i = 0; i < 5; i++)
                assert_refused(raw_client_await_reply(client, first + i), SMV_HANDLE_BUSY,
                               "handle");
}

/* Begins a stream and waits until its first token has come. */
static uint32_t generate_endless(struct raw_client *client, uint64_t handle)
{
        uint32_t id = ++client->last_id;

        raw_client_send_frame(client, "op=s id=u handle=q max_tokens=u ignore_eos=y", "generate",
                              id, handle, ENDLESS, 1);
        while (!raw_client_stream(client, id))
                raw_client_poll(client, 100);
        assert_true(raw_client_await_reply(client, id)->ok);
        return id;
}

static void a_generating_handle_refuses_everything_but_close(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct history history, fork;
        struct raw_client *client, *other;
        uint32_t id;

        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        open_text(client, &history, "Tea");
        fork_all(client, &history, &fork, 1);
        id = generate_endless(client, history.handle);
        expect_busy(other, history.handle);
        assert_true(raw_client_call(other, "op=s handle=q", "close", history.handle)->ok);
        assert_int_equal(raw_client_await_end(client, id)->end.reason, SMV_END_CANCELLED);
        assert_refused(raw_client_call(client, "op=s handle=q", "close", history.handle),
                       SMV_NO_HANDLE, "handle");
        append_text(other, &fork, "pot");
        assert_int_equal(raw_client_status(client, "handles.open"), 1);
        assert_int_equal(raw_client_status(client, "handles.tokens"), fork.count);
        raw_client_close(client);
        raw_client_close(other);
        fixture_stop(fixture);
}

static void refuses_invalid_handle_operations_and_names_the_field(void **state)
{
        static const uint32_t ids[100] = { 65 }, wrong[] = { 65, 1u << 20 };
        struct daemon_fixture *fixture = *state;
        struct history history, fork;
        struct reply *reply;
        struct raw_client *client;

        START_DAEMON(fixture, "--ctx", "64", "--uid-handles", "3");
        client = raw_client_greet(fixture);
        open_text(client, &history, "Tea");
        for (size_t i = 0; i < 5; i++) {
                static const char *const ops[] = { "append", "truncate", "fork", "close",
                                                   "generate" };
                static const char *const formats[] = { "op=s handle=q text=s",
                                                       "op=s handle=q length=u",
                                                       "op=s handle=q count=u", "op=s handle=q",
                                                       "op=s handle=q max_tokens=u" };
                const uint64_t none[] = { history.handle + 1, UINT64_MAX };

                for (size_t j = 0; j < 2; j++)
                        assert_refused(
                                i ? raw_client_call(client, formats[i], ops[i], none[j], 1u)
                                  : raw_client_call(client, formats[i], ops[i], none[j], "x"),
                                SMV_NO_HANDLE, "handle");
        }
        assert_refused(raw_client_call(client, "op=s handle=u", "close", 0u), SMV_BAD_VALUE,
                       "handle");
        assert_refused(raw_client_call(client, "op=s handle=q count=u", "fork", history.handle, 0u),
                       SMV_BAD_VALUE, "count");
        assert_refused(
                raw_client_call(client, "op=s handle=q count=u", "fork", history.handle, 100000u),
                SMV_BAD_VALUE, "count");
        reply = raw_client_call(client, "op=s handle=q length=u", "truncate", history.handle, 5u);
        assert_refused(reply, SMV_BAD_VALUE, "length");
        assert_string_equal(reply->message, "length is 5; the handle has 4 tokens");
        assert_refused(raw_client_call(client, "op=s handle=q model=s", "generate", history.handle,
                                       "toy-model"),
                       SMV_BAD_FIELD, "model");
        assert_refused(raw_client_call(client, "op=s handle=q n=u", "generate", history.handle, 2u),
                       SMV_BAD_FIELD, "n");
        assert_refused(
                raw_client_call(client, "op=s handle=q prompt=s", "generate", history.handle, "x"),
                SMV_BAD_FIELD, "handle");
        assert_refused(raw_client_call(client, "op=s", "open"), SMV_MISSING, "prompt");
        assert_refused(raw_client_call(client, "op=s model=s prompt=s", "open", "another", "x"),
                       SMV_NO_MODEL, "model");
        assert_refused(raw_client_call(client, "op=s tokens=I", "open", wrong, (size_t)2),
                       SMV_BAD_VALUE, "tokens");
        assert_refused(raw_client_call(client, "op=s handle=q tokens=I", "append", history.handle,
                                       wrong, (size_t)2),
                       SMV_BAD_VALUE, "tokens");
        assert_refused(raw_client_call(client, "op=s handle=q", "append", history.handle),
                       SMV_MISSING, "tokens");

        /* The limit is the context, for ids and for text; a handle that is full is still usable. */
        reply = raw_client_call(client, "op=s handle=q tokens=I", "append", history.handle, ids,
                                (size_t)61);
        assert_refused(reply, SMV_TOO_LONG, "tokens");
        assert_string_equal(reply->message, "the handle has 4 tokens and tokens has 61; together "
                                            "they may be 64");
        assert_refused(raw_client_call(client, "op=s tokens=I", "open", ids, (size_t)65),
                       SMV_TOO_LONG, "tokens");
        reply = raw_client_call(client, "op=s handle=q text=s", "append", history.handle,
                                "a text of some bytes more than what is left of the context of it");
        assert_refused(reply, SMV_TOO_LONG, "text");
        append_tokens(client, &history, 65, 60);
        assert_refused(raw_client_call(client, "op=s handle=q", "generate", history.handle),
                       SMV_TOO_LONG, "handle");
        truncate_to(client, &history, 0);
        assert_refused(raw_client_call(client, "op=s handle=q", "generate", history.handle),
                       SMV_BAD_VALUE, "handle");

        /* A fork makes all of the new handles, or none of them. */
        assert_refused(raw_client_call(client, "op=s handle=q count=u", "fork", history.handle, 3u),
                       SMV_QUOTA, "");
        assert_int_equal(raw_client_status(client, "handles.open"), 1);
        fork_all(client, &history, &fork, 1);
        append_text(client, &fork, "x");
        open_text(client, &history, "y");
        assert_refused(raw_client_call(client, "op=s prompt=s", "open", "z"), SMV_QUOTA, "");
        assert_int_equal(raw_client_status(client, "users.0.handles"), 3);
        raw_client_close(client);
        fixture_stop(fixture);
}

/* A client hangs up while its handles are idle, generating, or with a text at the text worker; with
 * its own stream, and with another client's. */
static void frees_all_handles_when_a_client_disconnects(void **state)
{
        struct daemon_fixture *fixture = *state;
        struct raw_client *client, *other;
        struct history history;
        char *text = calloc(1, 200001);
        uint32_t id;

        memset(text, 'a', 200000);
        START_ENDLESS_DAEMON(fixture, "--threads", "1");
        client = raw_client_greet(fixture);
        open_text(client, &history, "Tea");
        raw_client_close(client);
        fixture_await_rest(fixture);

        client = raw_client_greet(fixture);
        open_text(client, &history, "Tea");
        generate_endless(client, history.handle);
        raw_client_close(client);
        fixture_await_rest(fixture);

        client = raw_client_greet(fixture);
        open_text(client, &history, "Tea");
        raw_client_send_frame(client, "op=s id=u prompt=s", "open", ++client->last_id, text);
        raw_client_send_frame(client, "op=s id=u handle=q text=s", "append", ++client->last_id,
                              history.handle, text);
        raw_client_close(client);
        fixture_await_rest(fixture);

        /* The owner goes: the other client's stream ends, and has its END. */
        client = raw_client_greet(fixture);
        other = raw_client_greet(fixture);
        open_text(client, &history, "Tea");
        id = generate_endless(other, history.handle);
        raw_client_close(client);
        assert_int_equal(raw_client_await_end(other, id)->end.reason, SMV_END_CANCELLED);
        assert_refused(raw_client_call(other, "op=s handle=q", "close", history.handle),
                       SMV_NO_HANDLE, "handle");
        assert_int_equal(raw_client_status(other, "handles.open"), 0);

        /* The generating client goes: the handle is still its owner's, and soon idle. */
        client = raw_client_greet(fixture);
        open_text(client, &history, "Tea");
        generate_endless(other, history.handle);
        raw_client_close(other);
        while (raw_client_status(client, "requests.open"))
                sleep_ms(5);
        truncate_to(client, &history, 4);
        append_text(client, &history, "s");
        raw_client_close(client);
        free(text);
        fixture_stop(fixture);
}

static void take_end(struct smv_client *client, struct history *history)
{
        struct smv_event event = { SMV_SIZE(smv_event) };

        do {
                assert_int_equal(smv_next(client, &event, -1), 1);
                note(history, event.tokens, event.kind == SMV_EVENT_TOKENS ? event.token_count : 0);
        } while (event.kind != SMV_EVENT_END);
        assert_int_equal(event.reason, SMV_END_LENGTH);
}

static void the_library_offers_every_handle_operation(void **state)
{
        struct smv_generate options = { SMV_SIZE(smv_generate), .prompt = "Tea" };
        struct smv_problem problem = { SMV_SIZE(smv_problem) };
        struct daemon_fixture *fixture = *state;
        struct smv_connect where = { SMV_SIZE(smv_connect), .socket = fixture->socket,
                                     .transport = raw_client_transport() == RAW_CLIENT_SOCKET
                                                          ? SMV_TRANSPORT_SOCKET
                                                          : SMV_TRANSPORT_RING };
        struct history history = { .count = 0 };
        struct smv_client *client;
        uint64_t handles[2];
        uint32_t stream;
        size_t length;

        START_DAEMON(fixture, "--threads", "1");
        assert_int_equal(smv_connect(&where, &client), 0);
        assert_int_equal(smv_handle_open(client, &options, &history.handle, &length), 0);
        assert_int_equal(length, 4);
        assert_int_equal(smv_handle_append_text(client, history.handle, "pot", 0, NULL), 0);
        assert_int_equal(
                smv_handle_append(client, history.handle, (uint32_t[]){ 65, 66 }, 2, &length), 0);
        assert_int_equal(length, 9);
        options = (struct smv_generate){ SMV_SIZE(smv_generate), .handle = history.handle,
                                         .max_tokens = 12, .ignore_eos = 1, .seed = 3 };
        assert_int_equal(smv_generate(client, &options, &stream), 0);
        take_end(client, &history);
        assert_int_equal(history.count, 12);
        assert_int_equal(smv_handle_fork(client, history.handle, 2, handles), 0);
        assert_int_equal(smv_handle_append_text(client, handles[1], "", 0, &length), 0);
        assert_int_equal(length, 21);

        /* Truncated to the same length, the same seed generates the same. */
        assert_int_equal(smv_handle_truncate(client, handles[0], 9), 0);
        options.handle = handles[0];
        assert_int_equal(smv_generate(client, &options, &stream), 0);
        take_end(client, &history);
        assert_memory_equal(history.tokens, history.tokens + 12, 12 * sizeof(uint32_t));

        assert_int_equal(smv_handle_truncate(client, handles[0], 22), -EREMOTEIO);
        smv_error(client, &problem);
        assert_int_equal(problem.code, SMV_BAD_VALUE);
        assert_int_equal(smv_handle_close(client, handles[1]), 0);
        assert_int_equal(smv_handle_close(client, handles[1]), -EREMOTEIO);
        smv_error(client, &problem);
        assert_int_equal(problem.code, SMV_NO_HANDLE);
        smv_close(client);
        fixture_stop(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                DAEMON_TEST(a_handle_generates_the_same_as_its_tokens_sent_whole),
                DAEMON_TEST(the_history_includes_the_token_that_ended_the_stream),
                DAEMON_TEST(a_handle_is_never_busy_after_its_stream_has_ended),
                DAEMON_TEST(a_generating_handle_refuses_everything_but_close),
                DAEMON_TEST(refuses_invalid_handle_operations_and_names_the_field),
                DAEMON_TEST(frees_all_handles_when_a_client_disconnects),
                DAEMON_TEST(the_library_offers_every_handle_operation),
        };

        require_env_paths(
                (const char *const[]){ "SAMOVARD", "TOY_MODEL", "TOY_MODEL_MAKER", NULL });
        return cmocka_run_group_tests(tests, NULL, NULL);
}
